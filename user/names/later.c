/* SPDX-License-Identifier: GPL-2.0-or-later */
/* later: postpones what could not be read of a file. */
#include <errno.h>
#include <stdlib.h>

#include "base/retry.h"
#include "base/base.h"
#include "names_priv.h"

/* The pauses of one file, by the slot of what failed. */
struct pauses {
	struct {
		const struct slot_key *key;
		struct names_pause pause;
	} v[SLOTS_MAX];
	size_t n;
};

static const struct slot_key pauses_key = {.free = free};

/* NULL: none. */
static struct names_pause *find(const struct slots *slots, const struct slot_key *key)
{
	struct pauses *pauses;
	void *kept;

	if (!slots__get(slots, &pauses_key, &kept) || !kept)
		return NULL;
	pauses = kept;
	for (size_t i = 0; i < pauses->n; i++)
		if (pauses->v[i].key == key)
			return &pauses->v[i].pause;
	return NULL;
}

/* NULL: no memory. */
static struct names_pause *get(struct slots *slots, const struct slot_key *key)
{
	struct names_pause *pause = find(slots, key);
	struct pauses *pauses;
	void *kept = NULL;

	if (pause)
		return pause;
	if (!slots__get(slots, &pauses_key, &kept))
		kept = slots__put(slots, &pauses_key, calloc(1, sizeof(*pauses)));
	pauses = kept;
	if (!pauses || pauses->n == ARRAY_SIZE(pauses->v))
		return NULL;
	pauses->v[pauses->n].key = key;
	return &pauses->v[pauses->n++].pause;
}

bool names__pauses(struct names *names, const struct names_pause *pause, uint64_t now)
{
	int err = names_pause__now(pause, now);

	names->incomplete |= err == -EBUSY;
	return err != 0;
}

void names__begin_pause(struct names *names, struct names_pause *pause, uint64_t now, int err)
{
	names_pause__begin(pause, now, err);
	names->incomplete |= pause->err == -EBUSY;
}

bool names__waits(struct names *names, const struct slots *slots, const struct slot_key *key)
{
	const struct names_pause *pause = find(slots, key);

	return pause && names__pauses(names, pause, time__monotonic_ns());
}

bool names__put_off(struct names *names, struct slots *slots, const struct slot_key *key, int err)
{
	struct names_pause *pause;

	if (!retry__shows_nothing(err))
		return false;
	pause = err == -EBUSY ? NULL : get(slots, key);
	if (pause)
		names__begin_pause(names, pause, time__monotonic_ns(), err);
	else
		names->incomplete |= err == -EBUSY;
	/* if out of memory for a pause, give up, since each attempt takes long */
	return pause || err == -EBUSY;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ahead_living: looks for Haskell threads, of which a replay in windows knows from the begin. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_living_priv.h"
#include "base/base.h"
#include "intake/tap.h"

#define MAX_LOOKS ((size_t)1 << 20)

/* Of the target of this number. */
struct living_look {
	size_t no, n;
	uint64_t began_ns, at_ns;
	struct target_living_thread *v;
};

void ahead_living__free(struct ahead_living *living)
{
	for (size_t i = 0; i < living->n; i++)
		free(living->v[i].v);
	free(living->v);
	*living = (struct ahead_living){0};
}

int ahead_living__add(struct ahead_living *living, size_t no, const struct intake_input *input)
{
	struct living_look look = {.no = no,
				   .n = input->size / sizeof(struct target_living_thread),
				   .began_ns = input->b,
				   .at_ns = input->a};
	int err = ARRAY_RESERVE(living->v, living->cap, living->n + 1, MAX_LOOKS);

	if (err)
		return err;
	look.v = malloc((look.n + 1) * sizeof(*look.v));
	if (!look.v)
		return -ENOMEM;
	if (look.n)
		memcpy(look.v, input->data, look.n * sizeof(*look.v));
	living->v[living->n++] = look;
	return 0;
}

int ahead_living__give(const struct ahead_living *living, size_t no, struct intake *in, pid_t pid)
{
	int err = 0;

	for (size_t i = 0; !err && i < living->n; i++) {
		const struct living_look *look = &living->v[i];

		if (look->no != no)
			continue;
		err = intake__living_ahead(in, pid, look->v, look->n, look->began_ns, look->at_ns);
		/* what is not taken is not known */
		if (err != -ENOMEM)
			err = 0;
	}
	return err;
}

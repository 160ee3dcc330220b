/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ahead_living: looks for Haskell threads, which a replay in windows knows from the start. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_living_priv.h"
#include "ahead_room_priv.h"
#include "base/base.h"
#include "base/hash.h"
#include "base/search.h"
#include "intake/tap.h"

#define MAX_LOOKS ((size_t)1 << 20)
#define MAX_SIGNS (1U << 20)

/* Of target number `no`. */
struct living_look {
	size_t no, n;
	uint64_t began_ns, at_ns;
	struct target_living_thread *v;
};

/* A thread's signs of life: time of the last one, and the windows of the first and the last. */
struct living_sign {
	UT_hash_handle hh;
	struct living_key {
		uint64_t no, tso;
	} key;
	uint64_t ns;
	size_t first, last;
};

/* What is kept of a sign. */
struct living_seen {
	size_t no;
	uint64_t tso, ns;
};

void ahead_living__free(struct ahead_living *living)
{
	for (size_t i = 0; i < living->n; i++)
		free(living->v[i].v);
	free(living->v);
	free(living->seen);
	HASH_FREE(living->signs);
	*living = (struct ahead_living){0};
}

int ahead_living__add(struct ahead_living *living, struct ahead_room *room, size_t no,
		      const struct intake_input *input)
{
	struct living_look look = {.no = no,
				   .n = input->size / sizeof(struct target_living_thread),
				   .began_ns = input->b,
				   .at_ns = input->a};
	int err = AHEAD_RESERVE(room, AHEAD_HASKELL, living->v, living->cap, living->n + 1,
				MAX_LOOKS);

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

static struct living_sign *add_sign(struct ahead_living *living, const struct living_key *key,
				    size_t window)
{
	struct living_sign *sign = calloc(1, sizeof(*sign));

	if (!sign)
		return NULL;
	sign->key = *key;
	sign->first = window;
	return HASH_INSERT(living->signs, key, sizeof(sign->key), sign) ? NULL : sign;
}

/* Notes that a thread of that target was seen at ns. */
static int note_sign(struct ahead_living *living, struct ahead_room *room, size_t no, uint64_t tso,
		     uint64_t ns)
{
	const struct living_key key = {no, tso};
	size_t window = ahead__cut_at(living->first_ns, living->every_ns, ns);
	struct living_sign *sign;

	HASH_FIND(hh, living->signs, &key, sizeof(key), sign);
	if (!sign && ahead_room__has(room, HASH_COUNT(living->signs), MAX_SIGNS)) {
		ahead_room__leave_out(room, AHEAD_HASKELL);
		return 0;
	}
	if (!sign)
		sign = add_sign(living, &key, window);
	if (!sign)
		return -ENOMEM;
	sign->first = MIN(sign->first, window);
	sign->last = MAX(sign->last, window);
	sign->ns = MAX(sign->ns, ns);
	return 0;
}

/* Whether the thread that ran before is known to be alive; if nothing was read of it, it is not. */
static bool left_lives(const struct wire_tso *rec)
{
	return rec->left_id && rec->left_why != WIRE_TSO_UNKNOWN &&
	       !wire_tso_has_ended(rec->left_what_next);
}

int ahead_living__record(struct ahead_living *living, struct ahead_room *room, size_t no,
			 const struct intake_input *input)
{
	union {
		struct wire_hdr h;
		struct wire_tso tso;
		struct wire_sample sample; /* a call begins with the same members */
		struct wire_off off;
	} u;
	int err;

	/* these are the largest; the intake refuses records that are too short */
	if (input->size < sizeof(struct wire_hdr))
		return 0;
	memset(&u, 0, sizeof(u));
	memcpy(&u, input->data, MIN(input->size, sizeof(u)));
	switch (u.h.type) {
	case WIRE_TSO:
		err = u.tso.id ? note_sign(living, room, no, u.tso.id, u.h.ns) : 0;
		return err || !left_lives(&u.tso)
			       ? err
			       : note_sign(living, room, no, u.tso.left_id, u.h.ns);
	case WIRE_SAMPLE:
	case WIRE_CALL:
		return u.sample.rts.tso && u.sample.rts.tso_id
			       ? note_sign(living, room, no, u.sample.rts.tso_id, u.h.ns)
			       : 0;
	case WIRE_OFF:
		return u.off.out_ns && u.off.out_ns <= u.h.ns && u.off.rts.tso && u.off.rts.tso_id
			       ? note_sign(living, room, no, u.off.rts.tso_id, u.off.out_ns)
			       : 0;
	default:
		return 0;
	}
}

static int by_no(const void *pa, const void *pb)
{
	const struct living_look *a = pa, *b = pb;

	return CMP(a->no, b->no) ?: CMP(a->at_ns, b->at_ns) ?: CMP(a->began_ns, b->began_ns);
}

static int by_thread(const void *pa, const void *pb)
{
	const struct living_seen *a = pa, *b = pb;

	return CMP(a->no, b->no) ?: CMP(a->tso, b->tso);
}

static size_t first_look(const struct ahead_living *living, size_t no)
{
	return search__first(living->n, i, living->v[i].no >= no);
}

/* Whether the sign is needed: there is a cut between it and the thread's first one. */
static bool is_needed(const struct living_sign *sign)
{
	return sign->first != sign->last;
}

int ahead_living__looked(struct ahead_living *living)
{
	const struct living_sign *sign;
	size_t n = 0;

	array__sort(living->v, living->n, sizeof(*living->v), by_no);
	for (sign = living->signs; sign; sign = sign->hh.next)
		n += is_needed(sign);
	living->seen = malloc((n + 1) * sizeof(*living->seen));
	if (!living->seen)
		return -ENOMEM;
	for (sign = living->signs; sign; sign = sign->hh.next)
		if (is_needed(sign))
			living->seen[living->n_seen++] = (struct living_seen){
				.no = sign->key.no, .tso = sign->key.tso, .ns = sign->ns};
	array__sort(living->seen, living->n_seen, sizeof(*living->seen), by_thread);
	HASH_FREE(living->signs);
	return 0;
}

int ahead_living__give(const struct ahead_living *living, struct ahead_room *room, size_t no,
		       struct intake *in, pid_t pid)
{
	size_t k = search__first(living->n_seen, i, living->seen[i].no >= no);
	int err = 0;

	for (size_t i = first_look(living, no); i < living->n && living->v[i].no == no; i++) {
		const struct living_look *look = &living->v[i];

		err = intake__living_ahead(in, pid, look->v, look->n, look->began_ns, look->at_ns);
		/* what is refused stays unknown */
		if (err == -E2BIG)
			ahead_room__leave_out(room, AHEAD_HASKELL);
		else if (err == -ENOMEM)
			return err;
	}
	for (; k < living->n_seen && living->seen[k].no == no; k++) {
		err = intake__seen_ahead(in, pid, living->seen[k].tso, living->seen[k].ns);
		if (err == -E2BIG)
			ahead_room__leave_out(room, AHEAD_HASKELL);
		else if (err == -ENOMEM)
			return err;
	}
	return 0;
}

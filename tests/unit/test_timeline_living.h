/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tests of Haskell threads that wait: they run, stop, and are found by looks. */
#ifndef SAFESCOPED_TEST_TIMELINE_LIVING_H
#define SAFESCOPED_TEST_TIMELINE_LIVING_H

#include "intake/seen.h"
#include "picture/make.h"
#include "test_timeline_kit.h"

#define WINDOW 100000ULL

#define NOT_BLOCKED	     0
#define BLOCKED_ON_MVAR	     1
#define BLOCKED_ON_BLACKHOLE 2
#define BLOCKED_ON_STM	     6
#define BLOCKED_ON_CCALL     10
#define BLOCKED_ON_THROW_TO  12
#define THREAD_RUN_GHC	     1

static const struct timeline_opts opts = {
	.haskell_lanes = true, .start_ns = T0, .start_unix_ns = UINT64_C(1795270032155432149)};

static inline void hs_sample(struct kit *kit, pid_t tid, uint64_t ns, uint64_t tso)
{
	union rec r;

	mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.rts.tso = 0x1000;
	r.sample.rts.tso_id = tso;
	put(kit, &r);
}

/*
 * From now on the OS thread runs `tso` (0: none), after leaving the thread `left` for the reason
 * `why`.
 */
static inline void put_left(struct kit *kit, uint64_t ns, uint64_t tso, uint64_t left, unsigned why)
{
	union {
		union rec r;
		struct wire_tso tso;
	} u;

	rec_head(&u.r, WIRE_TSO, 7, ns, sizeof(u.tso));
	u.tso.id = tso;
	u.tso.left_id = left;
	u.tso.left_why = (uint16_t)why;
	u.tso.left_what_next = THREAD_RUN_GHC;
	put(kit, &u.r);
}

static inline void sleeps(struct kit *kit, uint64_t from, uint64_t to)
{
	union rec r;

	put(kit, mk_off(&r, 7, from, to, to, WIRE_WHERE_NO_CAP, STOP));
}

/* `tso` runs, and begins to wait 10 µs after `at`; the OS thread sleeps until `until`. */
static inline void waits(struct kit *kit, uint64_t at, uint64_t tso, unsigned why, uint64_t until)
{
	put_left(kit, at + 1000, tso, 0, WIRE_TSO_UNKNOWN);
	hs_sample(kit, 7, at + 1000, tso);
	put_left(kit, at + 10000, 0, tso, why);
	sleeps(kit, at + 10000, until);
}

static inline void look(struct kit *kit, uint64_t began, uint64_t at, uint64_t tso, unsigned why)
{
	const struct target_living_thread v[] = {
		{.id = 1, .why_blocked = BLOCKED_ON_MVAR},
		{.id = tso, .why_blocked = (uint16_t)why},
	};

	assert_int_equal(intake__living(kit->in, PID, v, tso ? 2 : 1, began, at), 0);
}

static inline const struct pic_target *window(struct kit *kit, uint64_t at,
					      struct picture **ret_pic)
{
	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	assert_non_null(*ret_pic);
	check_all(*ret_pic);
	kit->pic = timeline__picture(kit->tl);
	return picture__target(*ret_pic, 0);
}

static inline const struct pic_lane *find(const struct pic_target *t, uint64_t tso)
{
	for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
		if (t->lanes[LANE_HASKELL].v[i].tso == tso)
			return &t->lanes[LANE_HASKELL].v[i];
	return NULL;
}

static inline uint64_t waited(const struct pic_target *t, uint64_t tso)
{
	return find(t, tso)->states_ns[HS_BLOCKED_MVAR];
}

static inline void begin(struct kit *kit)
{
	union rec r;

	kit_new_opts(kit, &opts);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

static inline uint64_t in_hole(const struct pic_target *t, uint64_t tso)
{
	return find(t, tso) ? find(t, tso)->states_ns[HS_BLOCKED_BLACKHOLE] : 0;
}

static inline uint64_t unknown(const struct pic_target *t, uint64_t tso)
{
	return find(t, tso) ? find(t, tso)->states_ns[HS_UNKNOWN] : 0;
}

#endif

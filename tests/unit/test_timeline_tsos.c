/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Haskell threads' lanes, safe calls that move between capabilities, and the curves. */
#include <sys/syscall.h>

#include "intake/seen.h"
#include "lanes/lanes.h"
#include "test_timeline_kit.h"

static void kit_tsos(struct kit *kit)
{
	const struct timeline_opts opts = {.haskell_lanes = true};

	kit_new_opts(kit, &opts);
}

static const struct pic_lane *tso_of(const struct pic_target *t, uint64_t tso)
{
	return lane_by(t, LANE_HASKELL, tso);
}

static void check_tso_slice(const struct pic_lane *lane, size_t i, uint64_t start, uint64_t end,
			    enum haskell_state state, uint32_t cap)
{
	assert_true(i < lane->n_slices);
	assert_string_equal(state__name(LANE_HASKELL, lane->slices[i].state),
			    state__name(LANE_HASKELL, state));
	assert_int_equal(lane->slices[i].start_ns, start);
	assert_int_equal(lane->slices[i].end_ns, end);
	assert_int_equal(lane->slices[i].cap, cap);
}

static union rec *of_tso(union rec *r, uint64_t tso)
{
	struct wire_rts *rts = r->h.type == WIRE_SAMPLE ? &r->sample.rts
			       : r->h.type == WIRE_OFF	? &r->off.rts
							: &r->call.rts;

	rts->tso = 0x1000;
	rts->tso_id = tso;
	return r;
}

static void put_tso(struct kit *kit, pid_t tid, uint64_t ns, uint64_t id, const char *label,
		    uint64_t left, unsigned why)
{
	union {
		union rec r;
		struct wire_tso tso;
	} u;

	rec_head(&u.r, WIRE_TSO, tid, ns, sizeof(u.tso));
	u.tso.id = id;
	u.tso.left_id = left;
	u.tso.left_why = (uint16_t)why;
	u.tso.bound = id == 5;
	snprintf(u.tso.label, sizeof(u.tso.label), "%s", label);
	put(kit, &u.r);
}

static void hs_sample(struct kit *kit, pid_t tid, uint64_t ns, uint64_t tso)
{
	union rec r;

	put(kit, of_tso(mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP), tso));
}

/* A kit with one OS thread. */
static void kit_of_7(struct kit *kit)
{
	union rec r;

	kit_tsos(kit);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

/* It waits in the runtime. */
static void rts_off(struct kit *kit, uint64_t start, uint64_t end)
{
	union rec r;

	put(kit, mk_off(&r, 7, start, end, end, WIRE_WHERE_RTS, STOP));
}

/* Ends the kit of one OS thread; returns the lane of Haskell thread 5. */
static const struct pic_lane *lane_at_end(struct kit *kit, uint64_t end)
{
	union rec r;

	put(kit, mk_event(&r, WIRE_THREAD_EXIT, 7, end));
	finish(kit);
	return tso_of(picture__target(kit->pic, 0), 5);
}

/* 5 runs, blocks on an MVar, and runs again on another OS thread and capability. */
static void test_states(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0 + 50000));
	put_tso(&kit, 7, T0 + 1000, 5, "five", 0, 0);
	hs_sample(&kit, 7, T0 + 1000, 5);
	hs_sample(&kit, 7, T0 + 19000, 6);
	put_tso(&kit, 7, T0 + 19000, 6, "", 5, 1);
	put_tso(&kit, 8, T0 + 51000, 5, "five", 0, 0);
	mk_sample(&r, 8, T0 + 51000, WIRE_WHERE_HASKELL, CFN(3), CIP(CFN(3)), CALLED(HS(1)), STOP);
	r.sample.rts.cap_no = 0;
	put(&kit, of_tso(&r, 5));
	put(&kit, of_tso(mk_call(&r, 8, T0 + 60000, T0 + 80000, SITE(1), RET(HS(1)), STOP), 5));
	mk_off(&r, 8, T0 + 81000, T0 + 85000, T0 + 85000, WIRE_WHERE_RESUMING, STOP);
	put(&kit, of_tso(&r, 5));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 40000));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 85000));
	finish(&kit);
	lane = tso_of(picture__target(kit.pic, 0), 5);
	assert_string_equal(lane->name, "five");
	assert_true(lane->bound);
	check_tso_slice(lane, 0, T0, T0 + 10000, HS_RUNNING, 1);
	check_tso_slice(lane, 1, T0 + 10000, T0 + 50000, HS_BLOCKED_MVAR, NO_CAP);
	check_tso_slice(lane, 2, T0 + 50000, T0 + 60000, HS_UNSAFE_CALL, 0);
	check_tso_slice(lane, 3, T0 + 60000, T0 + 80000, HS_SAFE_CALL, NO_CAP);
	/* in resumeThread, and asleep in it */
	assert_int_equal(lane->states_ns[HS_RUNNABLE], 5000);
	assert_int_equal(lane->end_ns, T0 + 85000);
	assert_string_equal(tso_of(picture__target(kit.pic, 0), 6)->name, "");
	timeline__free(kit.tl);
}

/* Another thread was seen in its place before the piece ends that its last sample began: what it
 * waited for is known, unless it has run since. */
static void test_left_in_piece(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_of_7(&kit);
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_tso(&kit, 7, T0 + 1500, 6, "", 5, 14);
	put_tso(&kit, 7, T0 + 5000, 0, "", 6, 1);
	rts_off(&kit, T0 + 5000, T0 + 40000);
	hs_sample(&kit, 7, T0 + 41000, 5);
	put_tso(&kit, 7, T0 + 41500, 6, "", 5, 14);
	put_tso(&kit, 7, T0 + 42000, 5, "", 6, 1);
	put_tso(&kit, 7, T0 + 45000, 0, "", 5, WIRE_TSO_UNKNOWN);
	rts_off(&kit, T0 + 45000, T0 + 60000);
	hs_sample(&kit, 7, T0 + 61000, 5);
	put_tso(&kit, 7, T0 + 61500, 6, "", 5, 6);
	put_tso(&kit, 7, T0 + 65000, 0, "", 6, 1);
	put(&kit, mk_off(&r, 7, T0 + 65000, 0, END, WIRE_WHERE_NO_CAP, STOP));
	lane = lane_at_end(&kit, END);
	assert_int_equal(lane->states_ns[HS_BLOCKED_MVAR], 35000);
	assert_int_equal(lane->states_ns[HS_UNKNOWN], 15000);
	assert_int_equal(lane->states_ns[HS_RUNNING], 15000);
	assert_int_equal(lane->states_ns[HS_BLOCKED_STM], END - (T0 + 65000));
	timeline__free(kit.tl);
}

/* After a call too short for a record, in which another thread was seen, it waits as seen later. */
static void test_left_after_call(void **state)
{
	struct kit kit;
	const struct pic_lane *lane;

	(void)state;
	kit_of_7(&kit);
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_tso(&kit, 7, T0 + 2000, 0, "", 5, 10);
	rts_off(&kit, T0 + 2000, T0 + 3000);
	put_tso(&kit, 7, T0 + 5000, 0, "", 5, 1);
	rts_off(&kit, T0 + 5000, T0 + 20000);
	hs_sample(&kit, 7, T0 + 21000, 5);
	lane = lane_at_end(&kit, T0 + 22000);
	assert_true(lane->states_ns[HS_BLOCKED_MVAR] >= 15000);
	timeline__free(kit.tl);
}

/* Before a collection some Haskell thread ran, of which no sample shows which one: not one that was
 * first seen later, or has ended. */
static void test_before_and_after(void **state)
{
	struct kit kit;
	union {
		union rec r;
		struct wire_tso tso;
	} u;
	const struct pic_lane *lane;

	(void)state;
	kit_of_7(&kit);
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_START, T0 + 3000));
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_END, T0 + 5000));
	put_tso(&kit, 7, T0 + 6000, 5, "", 0, 0);
	hs_sample(&kit, 7, T0 + 6000, 5);
	rec_head(&u.r, WIRE_TSO, 7, T0 + 8000, sizeof(u.tso));
	u.tso.left_id = 5;
	u.tso.left_what_next = 4; /* ThreadComplete */
	put(&kit, &u.r);
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_START, T0 + 8000));
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_END, T0 + 10000));
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_START, T0 + 14000));
	put(&kit, mk_gc(&u.r, 7, WIRE_GC_END, T0 + 16000));
	lane = lane_at_end(&kit, T0 + 20000);
	assert_int_equal(lane->start_ns, T0 + 5000);
	assert_int_equal(lane->states_ns[HS_RUNNING], 3000);
	assert_int_equal(lane->end_ns, T0 + 8000);
	timeline__free(kit.tl);
}

/* What nothing shows is unknown; what the OS thread shows is used. */
static void test_between(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_of_7(&kit);
	hs_sample(&kit, 7, T0 + 1000, 5);
	hs_sample(&kit, 7, T0 + 3000, 6);
	hs_sample(&kit, 7, T0 + 5000, 5);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 6000));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 8000));
	hs_sample(&kit, 7, T0 + 9000, 5);
	mk_off(&r, 7, T0 + 10000, T0 + 20000, T0 + 20000, WIRE_WHERE_NO_CAP, STOP);
	put(&kit, &r);
	hs_sample(&kit, 7, T0 + 21000, 5);
	/* 5 blocks in STM until the session ends; 6 has finished */
	put_tso(&kit, 7, T0 + 22000, 0, "", 5, 6);
	put(&kit, mk_off(&r, 7, T0 + 22000, 0, END, WIRE_WHERE_NO_CAP, STOP));
	lane = lane_at_end(&kit, END);
	check_tso_slice(lane, 0, T0, T0 + 2000, HS_RUNNING, 1);
	check_tso_slice(lane, 1, T0 + 2000, T0 + 4000, HS_UNKNOWN, NO_CAP);
	check_tso_slice(lane, 2, T0 + 4000, T0 + 6000, HS_RUNNING, 1);
	check_tso_slice(lane, 3, T0 + 6000, T0 + 8000, HS_GC, NO_CAP);
	check_tso_slice(lane, 4, T0 + 8000, T0 + 10000, HS_RUNNING, 1);
	check_tso_slice(lane, 5, T0 + 10000, T0 + 20000, HS_BLOCKED_OTHER, NO_CAP);
	check_tso_slice(lane, 6, T0 + 20000, T0 + 22000, HS_RUNNING, 1);
	check_tso_slice(lane, 7, T0 + 22000, END, HS_BLOCKED_STM, NO_CAP);
	assert_int_equal(tso_of(picture__target(kit.pic, 0), 6)->end_ns, T0 + 4000);
	timeline__free(kit.tl);
}

static void gc_sample(struct kit *kit, pid_t tid, uint64_t ns)
{
	union rec r;

	put(kit, mk_sample(&r, tid, ns, WIRE_WHERE_RTS, GCFN(1), CIP(GCFN(1)), STOP));
}

/* 5 is ready while a collection runs, and while 6 runs. */
static void put_sampled_gcs(struct kit *kit, bool come_off, bool fold)
{
	union rec r;

	kit_tsos(kit);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(kit, 7, T0 + 1000, 5);
	put(kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 3000));
	put(kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 4000));
	if (come_off)
		put(kit, mk_gc(&r, 7, WIRE_GC_OFF, T0 + 10000));
	hs_sample(kit, 7, T0 + 12000, 5);
	gc_sample(kit, 7, T0 + 14000);
	gc_sample(kit, 7, T0 + 16000);
	hs_sample(kit, 7, T0 + 18000, 5);
	gc_sample(kit, 7, T0 + 20000);
	hs_sample(kit, 7, T0 + 22000, 6);
	put_tso(kit, 7, T0 + 22000, 6, "", 5, 0);
	if (fold) {
		put(kit, mk_off(&r, 7, T0 + 22500, T0 + 22600, T0 + 22600, WIRE_WHERE_HASKELL,
				IP(HS(1)), STOP));
		assert_int_equal(timeline__fold(kit->tl), 0);
	}
	hs_sample(kit, 7, T0 + 24000, 5);
	put(kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 26000));
	finish(kit);
}

/*
 * Once the probes on collections have come off, samples in the collector show collections, as in
 * the lanes of OS threads and capabilities, whenever the lanes are made.
 */
static void test_sampled_gcs(void **state)
{
	struct kit kit;
	const struct pic_lane *lane;

	(void)state;
	for (int fold = 0; fold < 2; fold++) {
		put_sampled_gcs(&kit, true, fold);
		lane = tso_of(picture__target(kit.pic, 0), 5);
		check_tso_slice(lane, 0, T0, T0 + 3000, HS_RUNNING, 1);
		check_tso_slice(lane, 1, T0 + 3000, T0 + 4000, HS_GC, NO_CAP);
		check_tso_slice(lane, 2, T0 + 4000, T0 + 13000, HS_RUNNING, 1);
		check_tso_slice(lane, 3, T0 + 13000, T0 + 17000, HS_GC, NO_CAP);
		check_tso_slice(lane, 4, T0 + 17000, T0 + 19000, HS_RUNNING, 1);
		check_tso_slice(lane, 5, T0 + 19000, T0 + 21000, HS_GC, NO_CAP);
		assert_string_equal(state__name(LANE_HASKELL, lane->slices[6].state),
				    state__name(LANE_HASKELL, HS_RUNNABLE));
		assert_int_equal(lane->slices[6].start_ns, T0 + 21000);
		assert_true(lane->sampled_states >> HS_GC & 1);
		timeline__free(kit.tl);
	}
	/* while the probes are on, they see all collections */
	put_sampled_gcs(&kit, false, false);
	lane = tso_of(picture__target(kit.pic, 0), 5);
	assert_int_equal(lane->states_ns[HS_GC], 1000);
	timeline__free(kit.tl);
}

/* The call has ended: the memory that shows it is from before the collector moved the thread. */
static void test_after_a_call(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put(&kit, of_tso(mk_call(&r, 7, T0 + 10000, T0 + 30000, SITE(1), RET(HS(1)), STOP), 5));
	put_tso(&kit, 7, T0 + 31000, 0, "", 5, 10);
	put(&kit, mk_off(&r, 7, T0 + 31000, END, END, WIRE_WHERE_NO_CAP, STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	finish(&kit);
	lane = tso_of(picture__target(kit.pic, 0), 5);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 20000);
	assert_true(lane->end_ns <= T0 + 31000);
	timeline__free(kit.tl);
}

static void test_not_asked_for(void **state)
{
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_tso(&kit, 7, T0 + 1000, 5, "five", 4, 1);
	assert_int_equal(finish(&kit)->lanes[LANE_HASKELL].n, 0);
	timeline__free(kit.tl);
}

static void test_flows(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	const struct pic_counter *c;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	mk_call(&r, 7, T0 + 10000, T0 + 30000, SITE(1), RET(HS(1)), STOP);
	r.call.rts.cap_no = 1;
	put(&kit, of_tso(&r, 5));
	put(&kit, mk_off(&r, 7, T0 + 31000, T0 + 35000, T0 + 36000, WIRE_WHERE_RESUMING, STOP));
	hs_sample(&kit, 7, T0 + 38000, 5);
	mk_call(&r, 8, T0 + 20000, T0 + 40000, SITE(2), RET(HS(1)), STOP);
	r.call.rts.cap_no = 0;
	put(&kit, of_tso(&r, 6));
	rec_head(&r, WIRE_TICK, 99, T0 + 50000, sizeof(r.tick) + 2 * sizeof(struct wire_tick_cap));
	r.tick.ncaps = r.tick.enabled = 2;
	r.tick.caps[0].queued = 3;
	r.tick.caps[1].queued = 4;
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 40000));
	t = finish(&kit);
	assert_int_equal(t->n_flows, 2);
	assert_int_equal(t->flows[0].tid, 7);
	assert_int_equal(t->flows[0].tso, 5);
	assert_string_equal(t->flows[0].function, "c1");
	assert_int_equal(t->flows[0].cap_from, 1);
	assert_int_equal(t->flows[0].cap_to, 1);
	assert_int_equal(t->flows[0].start_ns, T0 + 10000);
	assert_int_equal(t->flows[0].end_ns, T0 + 30000);
	assert_int_equal(t->flows[0].back_ns, T0 + 36000);
	assert_int_equal(t->flows[1].cap_from, 0);
	assert_true(t->flows[1].cap_to == UINT32_MAX);
	assert_int_equal(t->flows[1].back_ns, 0);
	assert_int_equal(t->n_counters, 2);
	c = &t->counters[0];
	assert_int_equal(c->kind, TC_RUNNABLE);
	assert_int_equal(c->n_points, 1);
	assert_int_equal(c->points[0].value, 7);
	c = &t->counters[1];
	assert_int_equal(c->kind, TC_SAFE_CALLS);
	assert_int_equal(c->max_value, 2);
	assert_int_equal(c->last_value, 0);
	assert_int_equal(c->n_points, 4);
	assert_int_equal(c->points[1].ns, T0 + 20000);
	assert_int_equal(c->points[1].value, 2);
	timeline__free(kit.tl);
}

/* A call that is open at the end counts as in flight until then, though no record has it. */
static void test_open_in_flight(void **state)
{
	struct wire_thread final = {.tgid = PID, .on_since_ns = T0 + 50000, .depth = 1};
	const struct pic_counter *c;
	struct picture *first;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 30000, SITE(1), RET(HS(1)), STOP));
	final.open[0] = (struct wire_open){.start_ns = T0 + 50000, .site = SITE(1)};
	assert_int_equal(intake__thread_state(kit.in, 7, &final), 0);
	assert_int_equal(timeline__window(kit.tl, T0 + 70000, &first), 0);
	c = &picture__target(first, 0)->counters[0];
	assert_int_equal(c->kind, TC_SAFE_CALLS);
	assert_int_equal(c->n_points, 3);
	assert_int_equal(c->points[2].ns, T0 + 50000);
	assert_int_equal(c->last_value, 1);
	picture__free(first);
	/* the window in which it ends has the rest of it */
	put(&kit, mk_call(&r, 7, T0 + 50000, T0 + 80000, SITE(1), RET(HS(1)), STOP));
	final.depth = 0;
	assert_int_equal(intake__thread_state(kit.in, 7, &final), 0);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	c = &picture__target(timeline__picture(kit.tl), 0)->counters[0];
	assert_int_equal(c->n_points, 2);
	assert_int_equal(c->points[0].ns, T0 + 70000);
	assert_int_equal(c->points[1].ns, T0 + 80000);
	assert_int_equal(c->last_value, 0);
	timeline__free(kit.tl);
}

/*
 * More Haskell threads than may have lanes: the time that they take is reported, and after a cut
 * there is room again.
 */
static void test_too_many(void **state)
{
	const struct lanes_opts opts = {.haskell = true, .max_haskell = 2};
	const uint64_t cut = T0 + 500000000;
	struct picture *next;
	struct lanes *l;
	struct kit kit;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t tso = 1; tso <= 4; tso++)
		hs_sample(&kit, 7, T0 + 100000000 * tso, tso);
	assert_int_equal(lanes__new(&opts, kit.in, intake__find(kit.in, PID), &l), 0);
	assert_int_equal(lanes__fold(l, 1000), 0);
	assert_int_equal(lanes__window(l, cut, 1000), 0);
	t = picture__target(kit.pic, 0);
	assert_int_equal(t->lanes[LANE_HASKELL].n, 2);
	assert_int_equal(tso_of(t, 1)->states_ns[HS_RUNNING], 150000000);
	assert_int_equal(tso_of(t, 2)->states_ns[HS_RUNNING], 100000000);
	assert_int_equal(t->n_missing, 1);
	assert_non_null(strstr(t->missing[0], "in calls, for 0.150 s in all"));
	assert_int_equal(picture__new(1000, &next), 0);
	assert_int_equal(intake__cut(kit.in, cut, next), 0);
	assert_int_equal(lanes__cut(l, cut), 0);
	intake__cut_end(kit.in, false);
	hs_sample(&kit, 7, cut + 100000000, 5);
	assert_int_equal(lanes__finish(l, cut + 500000000, 1000), 0);
	t = picture__target(next, 0);
	assert_int_equal(tso_of(t, 5)->states_ns[HS_RUNNING], 500000000);
	assert_int_equal(t->n_missing, 0);
	lanes__free(l);
	timeline__free(kit.tl);
	picture__free(next);
}

/* 5 calls C code, which calls back for most of the time: 5 is in its call all the while, even if
 * the collector has moved it, and its memory does not show it. */
static void test_callback(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put_tso(&kit, 7, T0 + 25000, 6, "", 5, WIRE_TSO_UNKNOWN);
	mk_sample(&r, 7, T0 + 25000, WIRE_WHERE_HASKELL, HS(5), IP(HS(5)), STOP);
	r.sample.site = SITE(1);
	r.sample.call_start_ns = T0 + 10000;
	put(&kit, of_tso(&r, 6));
	put(&kit, of_tso(mk_call(&r, 7, T0 + 30000, T0 + 89000, SITE(2), RET(HS(5)), STOP), 6));
	put(&kit, of_tso(mk_call(&r, 7, T0 + 10000, T0 + 90000, SITE(1), RET(HS(1)), STOP), 5));
	hs_sample(&kit, 7, T0 + 95000, 5);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	finish(&kit);
	lane = tso_of(picture__target(kit.pic, 0), 5);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 80000);
	assert_int_equal(lane->states_ns[HS_RUNNING], 20000);
	assert_int_equal(lane->end_ns, T0 + 100000);
	lane = tso_of(picture__target(kit.pic, 0), 6);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 59000);
	timeline__free(kit.tl);
}

/* A collection's leader that sleeps without a capability has not been called back. */
static void test_no_callback_of_a_collection(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_tsos(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample(&kit, 7, T0 + 1000, 5);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 10000));
	put(&kit, mk_off(&r, 7, T0 + 12000, T0 + 14000, T0 + 14000, WIRE_WHERE_NO_CAP, STOP));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 20000));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 30000));
	finish(&kit);
	lane = tso_of(picture__target(kit.pic, 0), 5);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 0);
	timeline__free(kit.tl);
}

/* On capability 0. */
static void hs_sample_0(struct kit *kit, pid_t tid, uint64_t ns, uint64_t tso)
{
	union rec r;

	mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.rts.cap_no = 0;
	put(kit, of_tso(&r, tso));
}

/* How long 5, which was ready when 6 was seen in its place, is known to be ready while 6 is in a
 * call, or the scheduler waits. */
static uint64_t ready_ns(bool threaded, bool scheduler)
{
	const struct timeline_opts opts = {
		.start_ns = T0, .start_unix_ns = 1, .haskell_lanes = true};
	struct kit kit;
	union rec r;
	uint64_t ns;

	kit_new_timeline(&kit, &opts);
	kit_add_way(&kit, PID, T0, 1, threaded);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	hs_sample_0(&kit, 7, T0 + 10000, 5);
	put_tso(&kit, 7, T0 + 20000, 6, "", 5, 0);
	hs_sample_0(&kit, 7, T0 + 20000, 6);
	mk_off(&r, 7, T0 + 30000, T0 + 5000000, T0 + 5000000,
	       scheduler ? WIRE_WHERE_RTS : WIRE_WHERE_SAFE_CALL, STOP);
	r.off.syscall = SYS_select;
	r.off.site = scheduler ? 0 : SITE(1);
	r.off.call_start_ns = scheduler ? 0 : T0 + 30000;
	put(&kit, scheduler ? &r : of_tso(&r, 6));
	if (!scheduler)
		put(&kit,
		    of_tso(mk_call(&r, 7, T0 + 30000, T0 + 5010000, SITE(1), RET(HS(1)), STOP), 6));
	hs_sample_0(&kit, 7, T0 + 5020000, 6);
	hs_sample_0(&kit, 7, T0 + 5040000, 5);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 5050000));
	assert_int_equal(timeline__finish(kit.tl, T0 + 5050000), 0);
	check_all(kit.pic);
	ns = tso_of(picture__target(kit.pic, 0), 5)->states_ns[HS_RUNNABLE];
	timeline__free(kit.tl);
	return ns;
}

/*
 * A capability without work has run what was ready. Without -threaded it is idle in safe calls,
 * too, and nothing else can run meanwhile.
 */
static void test_ready_in_calls(void **state)
{
	(void)state;
	assert_in_range(ready_ns(false, false), 5000000, 5020000);
	assert_in_range(ready_ns(true, false), 1, 50000);
	assert_in_range(ready_ns(false, true), 1, 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_in_flight),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_before_and_after),
		cmocka_unit_test(test_left_after_call),
		cmocka_unit_test(test_left_in_piece),
		cmocka_unit_test(test_sampled_gcs),
		cmocka_unit_test(test_not_asked_for),
		cmocka_unit_test(test_flows),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_after_a_call),
		cmocka_unit_test(test_callback),
		cmocka_unit_test(test_ready_in_calls),
		cmocka_unit_test(test_no_callback_of_a_collection),
	};

	return cmocka_run_group_tests_name("timeline_tsos", tests, NULL, NULL);
}

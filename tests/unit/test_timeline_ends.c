/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was in progress when the session began, and what is when it ends. */
#include "picture/figures.h"
#include "picture/make.h"
#include "test_timeline_kit.h"

/* Threads that never did anything have the snapshot's state. */
static void test_snapshot_only(void **state)
{
	struct snap_thread snaps[4] = {
		kit_snap(1, WIRE_WHERE_SAFE_CALL, 'S'),
		kit_snap(2, WIRE_WHERE_NO_CAP, 'S'),
		kit_snap(3, WIRE_WHERE_FOREIGN, 'S'),
		kit_snap(4, WIRE_WHERE_RESUMING, 'S'),
	};
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	snaps[0].site = SITE(1);
	snaps[0].frames[0] = RET(HS(4));
	snaps[0].stack.nframes = 1;
	snaps[0].stack.end = WIRE_END_COMPLETE;
	put_snap(&kit, snaps, 4, false);
	put_snap(&kit, snaps, 4, true);
	t = finish(&kit);
	assert_int_equal(t->lanes[LANE_THREAD].n, 4);
	check_slice(kit.pic, lane_of(t, 1), 0, T0, END, ST_SAFE_CALL_BLOCKED,
		    "Main.h4;c1;[safe call, blocked]");
	check_slice(kit.pic, lane_of(t, 2), 0, T0, END, ST_IDLE, "");
	lane = lane_of(t, 3);
	check_slice(kit.pic, lane, 0, T0, END, ST_FOREIGN_BLOCKED, "[foreign code, blocked]");
	assert_string_equal(lane->name, "snap");
	check_slice(kit.pic, lane_of(t, 4), 0, T0, END, ST_CAP_WAIT,
		    "[no stack];[waiting for a capability]");
	/* The idle worker comes last. */
	assert_int_equal(t->lanes[LANE_THREAD].v[3].tid, 2);
	/* The call that was open all the time is listed with what was seen of it. */
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, "c1");
	assert_int_equal(t->calls[0].calls, 0);
	assert_int_equal(t->calls[0].open_at_start, 1);
	assert_int_equal(t->calls[0].open_at_end, 1);
	assert_int_equal(t->calls[0].open_wall_ns, END - T0);
	assert_true(t->calls[0].p50_ns == UINT64_MAX);
	timeline__free(kit.tl);
}

/* The snapshot comes a little after the probes: the kernel may have seen the call begin. */
static void test_open_at_start(void **state)
{
	struct snap_thread snaps[] = {
		kit_snap(1, WIRE_WHERE_SAFE_CALL, 'S'), kit_snap(2, WIRE_WHERE_SAFE_CALL, 'S'),
		kit_snap(3, WIRE_WHERE_SAFE_CALL, 'S'), kit_snap(4, WIRE_WHERE_SAFE_CALL, 'S'),
		kit_snap(5, WIRE_WHERE_SAFE_CALL, 'S'),
	};
	struct wire_thread final = {.tgid = PID, .depth = 1, .open = {{.site = SITE(4)}}};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	for (size_t i = 0; i < ARRAY_SIZE(snaps); i++)
		snaps[i].site = SITE(i + 1);
	put_snap(&kit, snaps, ARRAY_SIZE(snaps), false);
	/*
	 * thread 1's call began after the attach, 2's before it, and so did 3's, which was then
	 * repeated
	 */
	put(&kit, mk_call(&r, 1, T0 + 100, T0 + 5000, SITE(1), RET(HS(4)), STOP));
	mk_call(&r, 2, T0, T0 + 5000, SITE(2), RET(HS(4)), STOP);
	r.call.flags = WIRE_CALL_OPEN_AT_START;
	put(&kit, &r);
	mk_call(&r, 3, T0, T0 + 5000, SITE(3), RET(HS(4)), STOP);
	r.call.flags = WIRE_CALL_OPEN_AT_START;
	put(&kit, &r);
	put(&kit, mk_call(&r, 3, T0 + 6000, T0 + 9000, SITE(3), RET(HS(4)), STOP));
	/*
	 * at the end 4 is in a call whose begin the kernel has seen; 5 slept in its call, and has
	 * not been on the CPU since
	 */
	final.open[0].start_ns = T0 + 50;
	assert_int_equal(intake__thread_state(kit.in, 4, &final), 0);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 4);
	for (size_t i = 0; i < t->n_calls; i++) {
		unsigned no = (unsigned)strtoul(t->calls[i].function + 1, NULL, 10);

		assert_in_range(no, 2, 5);
		assert_int_equal(t->calls[i].open_at_start, no != 4);
		assert_int_equal(t->calls[i].open_at_end, no >= 4);
	}
	timeline__free(kit.tl);
}

/*
 * A call that was open at the attach and never ends has no record. The thread's time on the CPU in
 * it is not Haskell's, even though the kernel has seen no short calls.
 */
static void first_call(bool leaves, size_t max_records)
{
	struct timeline_opts opts = {.max_records = max_records};
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	const struct pic_lane *lane;
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	kit_new_opts(&kit, &opts);
	snap.site = SITE(1);
	snap.frames[0] = RET(HS(4));
	snap.stack.nframes = 1;
	snap.stack.end = WIRE_END_COMPLETE;
	put_snap(&kit, &snap, 1, false);
	for (uint64_t at = T0; at < T0 + 100000; at += 10000) {
		/* 4 us asleep, 6 us on the CPU, a sample in some of them */
		put(&kit, mk_off(&r, 7, at, at + 4000, at + 4000, WIRE_WHERE_SAFE_CALL, STOP));
		if (at % 20000)
			put(&kit, mk_sample(&r, 7, at + 7000, WIRE_WHERE_SAFE_CALL, CFN(1),
					    CIP(CFN(1)), STOP));
	}
	if (leaves)
		put(&kit,
		    mk_sample(&r, 7, T0 + 105000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 120000));
	t = finish(&kit);
	lane = lane_of(t, 7);
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_BLOCKED], 40000);
	assert_int_equal(t->calls[0].open_at_start, 1);
	if (leaves) {
		/* 80 us on the CPU, divided by samples, of which one is Haskell's and five the
		 * call's */
		assert_in_range(lane->states_ns[ST_HASKELL], 80000 / 6, 80000 / 6 + 1);
		assert_int_equal(t->calls[0].open_wall_ns, 0);
	} else {
		assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 80000);
		assert_int_equal(t->calls[0].open_wall_ns, 120000);
	}
	timeline__free(kit.tl);
}

static void test_first_call(void **state)
{
	(void)state;
	first_call(false, 0);
	first_call(true, 0);
	/* folded part by part */
	first_call(false, 6);
}

/*
 * The snapshot may fail to find the site of a call on the CPU: the call has a row all the same. If
 * its own record comes, which has the site, it counts at that site instead.
 */
static void placeless_call(bool ends)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'R');
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put_snap(&kit, &snap, 1, false);
	for (uint64_t at = T0 + 10000; at < T0 + 100000; at += 10000)
		put(&kit, mk_sample(&r, 7, at, WIRE_WHERE_SAFE_CALL, CFN(1), CIP(CFN(1)), STOP));
	if (ends) {
		mk_call(&r, 7, T0, T0 + 110000, SITE(1), RET(HS(4)), STOP);
		r.call.flags = WIRE_CALL_OPEN_AT_START;
		put(&kit, &r);
	} else {
		put_snap(&kit, &snap, 1, true);
	}
	t = finish(&kit);
	check_lane(kit.pic, lane_of(t, 7));
	assert_int_equal(t->n_calls, 1);
	assert_string_equal(t->calls[0].function, ends ? "c1" : "[unknown function]");
	assert_int_equal(t->calls[0].open_at_start, 1);
	assert_int_equal(t->calls[0].open_at_end, !ends);
	assert_int_equal(t->calls[0].open_wall_ns, ends ? 0 : END - T0);
	timeline__free(kit.tl);
}

static void test_placeless_call(void **state)
{
	(void)state;
	placeless_call(false);
	placeless_call(true);
}

/* The first off-CPU interval began before the session: the snapshot shows its state. */
static void test_first_off(void **state)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	snap.site = SITE(3);
	put_snap(&kit, &snap, 1, false);
	put(&kit, mk_off(&r, 7, 0, T0 + 400, T0 + 500, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 600, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 700));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	check_slice(kit.pic, lane, 0, T0, T0 + 400, ST_SAFE_CALL_BLOCKED,
		    "Main.h3;c3;[safe call, blocked]");
	check_slice(kit.pic, lane, 1, T0 + 400, T0 + 500, ST_PREEMPTED, "Main.h3;c3;[preempted]");
	assert_int_equal(lane->states_ns[ST_UNKNOWN], 0);
	timeline__free(kit.tl);
}

/*
 * The snapshot found the thread ready, so it waited for a CPU from then on; what it was in is
 * known.
 */
static void test_first_off_was_ready(void **state)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_HASKELL, 'R');
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put_snap(&kit, &snap, 1, false);
	put(&kit, mk_off(&r, 7, 0, 0, T0 + 500, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 600, WIRE_WHERE_HASKELL, HS(1), STOP));
	t = finish(&kit);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_PREEMPTED], 500);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_HASKELL_BLOCKED], 0);
	timeline__free(kit.tl);
}

/*
 * The kernel side had no room for the thread at first. Once it has, the first switch shows nothing
 * of the time before, in which the thread was sampled.
 */
static void late_entry(uint64_t cut)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_HASKELL, 'S');
	const struct pic_target *t;
	struct picture *window = NULL;
	uint64_t before = 0;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put_snap(&kit, &snap, 1, false);
	for (uint64_t at = T0 + 1000; at < T0 + 500000; at += 1000) {
		put(&kit, mk_sample(&r, 7, at, WIRE_WHERE_HASKELL, HS(1), STOP));
		if (at != cut)
			continue;
		assert_int_equal(timeline__window(kit.tl, cut + 500, &window), 0);
		before = lane_of(picture__target(window, 0), 7)->states_ns[ST_HASKELL];
		kit.pic = timeline__picture(kit.tl);
	}
	put(&kit, mk_off(&r, 7, 0, 0, T0 + 500000, WIRE_WHERE_UNKNOWN, STOP));
	mk_off(&r, 7, T0 + 600000, 0, T0 + 700000, WIRE_WHERE_NO_CAP, STOP);
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 700000));
	t = finish(&kit);
	assert_true(before + lane_of(t, 7)->states_ns[ST_HASKELL] == 600000);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_IDLE], 100000);
	picture__free(window);
	timeline__free(kit.tl);
}

static void test_late_entry(void **state)
{
	(void)state;
	late_entry(0);
	late_entry(T0 + 200000);
}

static void put_unfollowed(struct kit *kit, pid_t tid, uint64_t ns)
{
	union rec r;

	mk_sample(&r, tid, ns, WIRE_WHERE_HASKELL, HS(1), STOP);
	r.sample.rts.flags = WIRE_RTS_NO_ENTRY;
	put(kit, &r);
}

/* A lane's time in a state, including that in an earlier window. */
static uint64_t both(const struct picture *window, const struct picture *pic, pid_t tid,
		     enum thread_state state)
{
	uint64_t ns = lane_of(picture__target(pic, 0), tid)->states_ns[state];

	return window ? ns + lane_of(picture__target(window, 0), tid)->states_ns[state] : ns;
}

/*
 * Threads that the kernel side has no room for: they are known only where they are sampled. Between
 * samples they did not run, or they would have been sampled.
 */
static void unfollowed(uint64_t cut)
{
	const struct timeline_opts opts = {.frequency_hz = 1000000};
	struct picture *window = NULL;
	struct kit kit;
	union rec r;

	kit_new_opts(&kit, &opts);
	for (pid_t tid = 7; tid < 10; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0 + 1000));
	put_unfollowed(&kit, 7, T0 + 100000);
	put_unfollowed(&kit, 7, T0 + 100600);
	put_unfollowed(&kit, 8, T0 + 200000);
	if (cut) {
		assert_int_equal(timeline__window(kit.tl, cut, &window), 0);
		kit.pic = timeline__picture(kit.tl);
	}
	put_unfollowed(&kit, 7, T0 + 300000);
	put(&kit, mk_off(&r, 9, 0, 0, T0 + 400000, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 9, T0 + 400000));
	put(&kit, mk_off(&r, 7, 0, 0, T0 + 500000, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 550000, WIRE_WHERE_HASKELL, HS(1), STOP));
	mk_off(&r, 7, T0 + 600000, 0, T0 + 700000, WIRE_WHERE_NO_CAP, STOP);
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 700000));
	finish(&kit);
	/* half a period on either side of its samples, and everything once it is followed */
	assert_int_equal(both(window, kit.pic, 7, ST_HASKELL), 1600 + 1000 + 100000);
	assert_int_equal(both(window, kit.pic, 7, ST_UNKNOWN), 98500 + 198400 + 199500);
	assert_int_equal(both(window, kit.pic, 7, ST_IDLE), 100000);
	assert_int_equal(both(window, kit.pic, 8, ST_HASKELL), 1000);
	assert_int_equal(both(window, kit.pic, 8, ST_UNKNOWN), END - T0 - 1000 - 1000);
	/* it may have waited for a CPU, or for anything else */
	assert_int_equal(both(window, kit.pic, 9, ST_PREEMPTED), 0);
	assert_int_equal(both(window, kit.pic, 9, ST_UNKNOWN), 399000);
	picture__free(window);
	timeline__free(kit.tl);
}

static void test_unfollowed(void **state)
{
	(void)state;
	unfollowed(0);
	unfollowed(T0 + 250000);
}

/* The kernel's entry closes the lane, with an off-CPU interval and a call that have not ended. */
static void test_still_off(void **state)
{
	struct wire_thread th = {.tgid = PID,
				 .depth = 1,
				 .off_since_ns = T0 + 5000,
				 .on_since_ns = T0 + 1000,
				 .off_state = 1,
				 .off_syscall = 7};
	struct wire_off_stack stack = {0};
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	th.off_rts.where = WIRE_WHERE_SAFE_CALL;
	th.open[0].start_ns = T0 + 3000;
	th.open[0].site = SITE(2);
	th.open[0].flags = WIRE_CALL_INTERRUPTIBLE;
	assert_int_equal(intake__thread_state(kit.in, 7, &th), 0);
	stack.stack.nframes = 1;
	stack.stack.end = WIRE_END_COMPLETE;
	stack.frames[0] = RET(HS(6));
	assert_int_equal(intake__off_stack(kit.in, PID, 7, &stack), 0);
	assert_int_equal(intake__off_stack(kit.in, PID, 8, &stack), -ENOENT);
	t = finish(&kit);
	lane = lane_of(t, 7);
	check_slice(kit.pic, lane, 0, T0, T0 + 3000, ST_HASKELL, "Main.h6");
	check_slice(kit.pic, lane, 1, T0 + 3000, T0 + 5000, ST_SAFE_CALL_CPU, "Main.h6;c2");
	check_slice(kit.pic, lane, 2, T0 + 5000, END, ST_SAFE_CALL_BLOCKED,
		    "Main.h6;c2;[safe call, blocked]");
	assert_int_equal(t->n_calls, 1);
	assert_true(t->calls[0].interruptible);
	assert_int_equal(t->calls[0].open_at_end, 1);
	assert_int_equal(t->calls[0].open_wall_ns, END - T0 - 3000);
	timeline__free(kit.tl);
}

/* Off the CPU at the end of the session, which only the snapshot shows. */
static void test_end_snapshot(void **state)
{
	struct snap_thread snaps[2] = {kit_snap(7, WIRE_WHERE_NO_CAP, 'S'),
				       kit_snap(8, WIRE_WHERE_NO_CAP, 'S')};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put_snap(&kit, snaps, 1, false);
	put(&kit, mk_sample(&r, 7, T0 + 1000, WIRE_WHERE_HASKELL, HS(1), STOP));
	snaps[1].start_time_ns = T0 + 5000; /* created in between, and not seen */
	put_snap(&kit, snaps, 2, true);
	t = finish(&kit);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_IDLE], END - T0 - 1000);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_HASKELL], 1000);
	assert_int_equal(lane_of(t, 8)->start_ns, T0 + 5000);
	assert_int_equal(lane_of(t, 8)->states_ns[ST_IDLE], END - T0 - 5000);
	timeline__free(kit.tl);
}

/*
 * A snapshot takes a while to read, and includes threads that are created meanwhile. Such a thread
 * begins when it was created, and had no state before; its tid may have been another thread's.
 */
static void test_created_meanwhile(void **state)
{
	static const struct {
		uint64_t shown_ns; /* its start by /proc; 0: gone before that was read */
		bool exited;	   /* before the second thread began */
		size_t lanes;
	} cases[] = {{T0 + 500, false, 1},
		     {T0 + 900, false, 1},
		     {T0 + 901, false, 2},
		     {0, false, 1},
		     {0, true, 2}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'R');
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		snap.start_time_ns = cases[i].shown_ns;
		put_snap(&kit, &snap, 1, false);
		if (cases[i].exited)
			put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 800));
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0 + 900));
		t = finish(&kit);
		assert_int_equal(t->lanes[LANE_THREAD].n, cases[i].lanes);
		if (cases[i].lanes == 1)
			assert_int_equal(lane_of(t, 7)->start_ns, T0 + 900);
		timeline__free(kit.tl);
	}
}

/* Before the runtime can be read, code without rows is Haskell code, and its stack is missing. */
static void test_early(void **state)
{
	static const struct {
		uint64_t ip;
		unsigned cause;
		enum thread_state expect;
	} cases[] = {
		{HS(1), WIRE_CAUSE_C_NO_ROW, ST_HASKELL},
		{CFN(1), WIRE_CAUSE_C_NO_ROW, ST_RTS},
		{RTS(1), WIRE_CAUSE_C_NO_ROW, ST_RTS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool haskell = cases[i].expect == ST_HASKELL;
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		mk_sample(&r, 7, T0 + 500, WIRE_WHERE_NOT_READY, cases[i].ip, CIP(cases[i].ip),
			  STOP);
		r.sample.stack.end = WIRE_END_BROKEN;
		r.sample.stack.cause = (uint8_t)cases[i].cause;
		put(&kit, &r);
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 1000));
		finish(&kit);
		t = picture__target(kit.pic, 0);
		assert_int_equal(lane_of(t, 7)->states_ns[cases[i].expect], 1000);
		assert_int_equal(t->quality.haskell_samples, 0);
		assert_int_equal(t->quality.early, haskell);
		timeline__free(kit.tl);
	}
}

/*
 * The kernel has a state for a thread that was off the CPU, for as long as it lives: without one,
 * the thread has ended. It need not have one for a thread that only a snapshot or samples showed,
 * and has none for one that began later.
 */
static void test_lost_end(void **state)
{
	const struct wire_thread alive = {.tgid = PID, .on_since_ns = T0 + 3000, .epoch = 1};
	struct snap_thread snap = kit_snap(3, WIRE_WHERE_FOREIGN, 'S');
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	for (int folded = 0; folded < 2; folded++) {
		kit_new(&kit);
		put_snap(&kit, &snap, 1, false);
		for (pid_t tid = 7; tid < 9; tid++) {
			put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
			put(&kit,
			    mk_off(&r, tid, T0 + 1000, 0, T0 + 3000, WIRE_WHERE_NO_CAP, STOP));
		}
		put(&kit, mk_sample(&r, 9, T0 + 2000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
		mk_event(&r, WIRE_THREAD_NEW, 11, T0 + 2500);
		r.event.flags = WIRE_THREAD_HAS_ENTRY;
		put(&kit, &r);
		if (folded)
			assert_int_equal(timeline__fold(kit.tl), 0);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 10, T0 + 5500));
		put(&kit, mk_off(&r, 10, T0 + 6000, 0, T0 + 7000, WIRE_WHERE_NO_CAP, STOP));
		assert_int_equal(intake__thread_state(kit.in, 8, &alive), 0);
		assert_int_equal(intake__end_lost(kit.in, T0 + 5000), 0);
		t = finish(&kit);
		assert_int_equal(lane_of(t, 7)->end_ns, T0 + 3000);
		/* all but the thread that was never seen to run */
		assert_int_equal(t->lanes[LANE_THREAD].n, 5);
		for (pid_t tid = 8; tid < 11; tid++)
			assert_int_equal(lane_of(t, tid)->end_ns, END);
		assert_int_equal(lane_of(t, 3)->end_ns, END);
		timeline__free(kit.tl);
	}
}

static void keep_figures(void *ctx, const struct figures *figures, bool closed)
{
	(void)closed;
	*(struct figures *)ctx = *figures;
}

/* Figures show when a process ended. */
static void test_figures_end(void **state)
{
	struct figures got = {.ended_ns = 1};
	struct kit kit;

	(void)state;
	kit_new(&kit);
	timeline__set_figures(kit.tl, keep_figures, &got);
	assert_int_equal(timeline__figures(kit.tl, T0 + 100), 0);
	assert_false(got.ended);
	assert_int_equal(got.ended_ns, 0);
	assert_int_equal(intake__end_target(kit.in, PID, "exited 0", T0 + 150), 0);
	assert_int_equal(timeline__figures(kit.tl, T0 + 900), 0);
	assert_true(got.ended);
	assert_int_equal(got.ended_ns, T0 + 150);
	finish(&kit);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshot_only),
		cmocka_unit_test(test_open_at_start),
		cmocka_unit_test(test_first_call),
		cmocka_unit_test(test_placeless_call),
		cmocka_unit_test(test_first_off),
		cmocka_unit_test(test_first_off_was_ready),
		cmocka_unit_test(test_late_entry),
		cmocka_unit_test(test_still_off),
		cmocka_unit_test(test_unfollowed),
		cmocka_unit_test(test_end_snapshot),
		cmocka_unit_test(test_created_meanwhile),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_lost_end),
		cmocka_unit_test(test_figures_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

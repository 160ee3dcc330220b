/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timeline's lanes: every nanosecond of a thread has a state. */
#include "test_timeline_kit.h"

/* A sample in the middle of a thread that was never off the CPU: one slice. */
static void test_one_sample(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0 + 100));
	put(&kit, mk_sample(&r, 7, T0 + 500, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)),
			    RET(UPD), STOP));
	t = finish(&kit);
	lane = lane_of(t, 7);
	assert_int_equal(lane->start_ns, T0 + 100);
	assert_int_equal(lane->end_ns, END);
	assert_int_equal(lane->n_slices, 1);
	check_slice(kit.pic, lane, 0, T0 + 100, END, ST_HASKELL, "Main.h2;Main.h1");
	assert_int_equal(lane->slices[0].samples, 1);
	assert_int_equal(lane->slices[0].cap, 1);
	assert_int_equal(lane->slices[0].exact, 0);
	assert_true(lane->sampled_states & 1U << ST_HASKELL);
	assert_string_equal(lane->name, "t7");
	assert_int_equal(lane->cpu_ns, END - T0 - 100);
	timeline__free(kit.tl);
}

static void test_midpoints(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_off(&r, 7, 0, 0, T0 + 1000, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 2000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 4000, WIRE_WHERE_HASKELL, CFN(3), CIP(CFN(3)),
			    CALLED(HS(1)), STOP));
	/* Arrives late, and is put in its place. */
	put(&kit, mk_sample(&r, 7, T0 + 3000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_off(&r, 7, T0 + 5000, T0 + 5500, T0 + 6000, WIRE_WHERE_NO_CAP, STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 6500));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->n_slices, 6);
	/*
	 * The thread was not seen before; its next off-CPU interval shows what it was most likely
	 * doing.
	 */
	check_slice(kit.pic, lane, 0, T0, T0 + 1000, ST_IDLE, "");
	check_slice(kit.pic, lane, 1, T0 + 1000, T0 + 3500, ST_HASKELL, "Main.h1");
	assert_int_equal(lane->slices[1].samples, 2);
	check_slice(kit.pic, lane, 2, T0 + 3500, T0 + 5000, ST_UNSAFE_CALL_CPU, "Main.h1;c3");
	check_slice(kit.pic, lane, 3, T0 + 5000, T0 + 5500, ST_IDLE, "");
	assert_int_equal(lane->slices[3].exact, 1);
	check_slice(kit.pic, lane, 4, T0 + 5500, T0 + 6000, ST_PREEMPTED, "[RTS];[preempted]");
	assert_int_equal(lane->slices[4].exact, 1);
	assert_int_equal(lane->end_ns, T0 + 6500);
	timeline__free(kit.tl);
}

/* A recorded call with a sleep inside: all its boundaries are exact. */
static void test_recorded_call(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 20000, T0 + 60000, T0 + 61000, WIRE_WHERE_SAFE_CALL, STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 10000;
	put(&kit, &r);
	mk_sample(&r, 7, T0 + 65000, WIRE_WHERE_SAFE_CALL, CFN(9), CIP(CFN(9)), RET(HS(2)), STOP);
	r.sample.site = SITE(1);
	r.sample.call_start_ns = T0 + 10000;
	put(&kit, &r);
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 70000, SITE(1), RET(HS(2)), STOP));
	put(&kit,
	    mk_off(&r, 7, T0 + 80000, T0 + 80000, T0 + 81000, WIRE_WHERE_HASKELL, IP(HS(2)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	t = finish(&kit);
	lane = lane_of(t, 7);
	/* A safe call is made by Haskell code, so that is what ran before it. */
	check_slice(kit.pic, lane, 0, T0, T0 + 10000, ST_HASKELL, "Main.h2");
	check_slice(kit.pic, lane, 1, T0 + 10000, T0 + 20000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	assert_int_equal(lane->slices[1].exact, 1);
	check_slice(kit.pic, lane, 2, T0 + 20000, T0 + 60000, ST_SAFE_CALL_BLOCKED,
		    "Main.h2;c1;[safe call, blocked]");
	assert_int_equal(lane->slices[2].exact, 1);
	check_slice(kit.pic, lane, 3, T0 + 60000, T0 + 61000, ST_PREEMPTED,
		    "Main.h2;c1;[preempted]");
	check_slice(kit.pic, lane, 4, T0 + 61000, T0 + 70000, ST_SAFE_CALL_CPU, "Main.h2;c1;c9");
	check_slice(kit.pic, lane, 5, T0 + 70000, T0 + 80000, ST_HASKELL, "Main.h2");
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 19000);
	assert_false(lane->sampled_states & 1U << ST_SAFE_CALL_CPU);
	assert_int_equal(lane->cpu_ns, 90000 - 41000 - 1000);
	timeline__free(kit.tl);
}

/* C calls back into Haskell, which makes the next safe call. */
static void test_nested_calls(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_sample(&r, 7, T0 + 25000, WIRE_WHERE_HASKELL, HS(5), IP(HS(5)), STOP);
	r.sample.site = SITE(1); /* the outer call is still open in the callback */
	r.sample.call_start_ns = T0 + 10000;
	put(&kit, &r);
	put(&kit, mk_call(&r, 7, T0 + 30000, T0 + 40000, SITE(2), RET(HS(5)), STOP));
	put(&kit, mk_call(&r, 7, T0 + 50000, T0 + 60000, SITE(2), RET(HS(5)), STOP));
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 90000, SITE(1), RET(HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	check_slice(kit.pic, lane, 0, T0, T0 + 10000, ST_HASKELL, "Main.h1");
	/* The sample shows that the callback ran before the first inner call. */
	check_slice(kit.pic, lane, 1, T0 + 10000, T0 + 30000, ST_HASKELL, "Main.h5");
	check_slice(kit.pic, lane, 2, T0 + 30000, T0 + 40000, ST_SAFE_CALL_CPU, "Main.h5;c2");
	/* Between two calls of one callback Haskell code runs. */
	check_slice(kit.pic, lane, 3, T0 + 40000, T0 + 50000, ST_HASKELL, "Main.h5");
	check_slice(kit.pic, lane, 4, T0 + 50000, T0 + 60000, ST_SAFE_CALL_CPU, "Main.h5;c2");
	check_slice(kit.pic, lane, 5, T0 + 60000, T0 + 90000, ST_SAFE_CALL_CPU, "Main.h1;c1");
	assert_int_equal(lane->n_slices, 7);
	timeline__free(kit.tl);
}

/* Calls below the threshold have no record: off-CPU intervals show them. */
static void test_short_call(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 20000, T0 + 21000, T0 + 21000, WIRE_WHERE_SAFE_CALL, RET(HS(2)), STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 18000;
	put(&kit, &r);
	mk_off(&r, 7, T0 + 50000, T0 + 51000, T0 + 51000, WIRE_WHERE_SAFE_CALL, RET(HS(2)), STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 48000;
	put(&kit, &r);
	put(&kit, mk_off(&r, 7, T0 + 52000, T0 + 53000, T0 + 53000, WIRE_WHERE_RESUMING, RET(HS(2)),
			 STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 60000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	check_slice(kit.pic, lane, 0, T0, T0 + 18000, ST_HASKELL, "Main.h2");
	check_slice(kit.pic, lane, 1, T0 + 18000, T0 + 20000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	check_slice(kit.pic, lane, 2, T0 + 20000, T0 + 21000, ST_SAFE_CALL_BLOCKED,
		    "Main.h2;c1;[safe call, blocked]");
	/* The call went on, but no longer than a call without a record lasts (10 us here). */
	check_slice(kit.pic, lane, 3, T0 + 21000, T0 + 28000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	assert_int_equal(lane->slices[3].exact, 0);
	check_slice(kit.pic, lane, 4, T0 + 28000, T0 + 48000, ST_HASKELL, "Main.h2");
	check_slice(kit.pic, lane, 5, T0 + 48000, T0 + 50000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	check_slice(kit.pic, lane, 7, T0 + 51000, T0 + 51500, ST_SAFE_CALL_CPU, "Main.h2;c1");
	check_slice(kit.pic, lane, 9, T0 + 52000, T0 + 53000, ST_CAP_WAIT,
		    "Main.h2;[waiting for a capability]");
	timeline__free(kit.tl);
}

/* The kernel's sums correct the totals, but never take more time than there is. */
static void test_short_sums(void **state)
{
	static const struct {
		uint64_t wall, blocked, runnable, haskell, safe;
	} cases[] = {
		{300, 0, 0, 700, 300}, /* sampling has seen none of it */
		{500, 300, 100, 900, 100},
		{5000, 0, 0, 0, 1000}, /* more than the thread ran */
		{10, 20, 30, 1000, 0}, /* damaged: off the CPU for longer than the calls lasted */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_thread th = {.tgid = PID};
		const struct pic_lane *lane;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
		put(&kit, mk_sample(&r, 7, END - 500, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
		th.on_since_ns = END - 1000;
		th.short_calls = 3;
		th.short_wall_ns = cases[i].wall;
		th.short_blocked_ns = cases[i].blocked;
		th.short_runnable_ns = cases[i].runnable;
		assert_int_equal(intake__thread_state(kit.in, 7, &th), 0);
		finish(&kit);
		lane = lane_of(picture__target(kit.pic, 0), 7);
		assert_int_equal(lane->states_ns[ST_HASKELL], cases[i].haskell);
		assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], cases[i].safe);
		assert_int_equal(lane->short_calls, 3);
		timeline__free(kit.tl);
	}
	{
		/* The reverse: sampling found more of it than there was. */
		struct wire_thread th = {.tgid = PID, .on_since_ns = END - 1000};
		const struct pic_lane *lane;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
		mk_sample(&r, 7, END - 500, WIRE_WHERE_SAFE_CALL, CFN(1), STOP);
		r.sample.call_start_ns = END - 1000;
		put(&kit, &r);
		th.short_wall_ns = 400;
		assert_int_equal(intake__thread_state(kit.in, 7, &th), 0);
		finish(&kit);
		lane = lane_of(picture__target(kit.pic, 0), 7);
		assert_int_equal(lane->states_ns[ST_HASKELL], 600);
		assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 400);
		timeline__free(kit.tl);
	}
}

/*
 * The last switch of a thread leaves an empty entry in the kernel's map; the record of the thread's
 * end has its sums.
 */
static void test_state_after_end(void **state)
{
	const struct wire_thread empty = {.tgid = PID, .off_since_ns = END - 100};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 2000));
	put(&kit, mk_sample(&r, 7, END - 1500, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	mk_event(&r, WIRE_THREAD_EXIT, 7, END - 1000);
	r.event.short_calls = 3;
	r.event.short_wall_ns = 300;
	put(&kit, &r);
	assert_int_equal(intake__thread_state(kit.in, 7, &empty), 0);
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->short_calls, 3);
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 300);
	assert_int_equal(lane->states_ns[ST_HASKELL], 700);
	assert_int_equal(lane->end_ns, END - 1000);
	timeline__free(kit.tl);
}

static void test_gc(void **state)
{
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 10)); /* began before the session */
	put(&kit, mk_sample(&r, 7, T0 + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 1000));
	put(&kit, mk_sample(&r, 7, T0 + 1500, WIRE_WHERE_RTS, GCFN(1), CIP(GCFN(1)), STOP));
	put(&kit, mk_off(&r, 8, T0 + 1100, T0 + 1900, T0 + 1950, WIRE_WHERE_RTS, STOP));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 2000));
	put(&kit,
	    mk_off(&r, 8, T0 + 2500, T0 + 2600, T0 + 2600, WIRE_WHERE_RTS, CIP(RTS(9)), STOP));
	put(&kit,
	    mk_off(&r, 8, T0 + 2700, T0 + 2800, T0 + 2800, WIRE_WHERE_RTS, CIP(RTS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 3000));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 3000));
	t = finish(&kit);
	lane = lane_of(t, 7);
	check_slice(kit.pic, lane, 0, T0, T0 + 1000, ST_HASKELL, "Main.h1");
	check_slice(kit.pic, lane, 1, T0 + 1000, T0 + 2000, ST_GC_WORK, "[GC];g1");
	assert_int_equal(lane->states_ns[ST_GC_WORK], 1000);
	assert_false(lane->sampled_states & 1U << ST_GC_WORK);
	lane = lane_of(t, 8);
	assert_int_equal(lane->states_ns[ST_GC_WAIT], 800 + 100);
	assert_int_equal(lane->states_ns[ST_RTS_BLOCKED], 100);
	assert_true(t->gc.known);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(t->gc.pause_ns, 1000);
	assert_int_equal(t->gc.max_pause_ns, 1000);
	timeline__free(kit.tl);
}

/* What a thread does off the CPU, by where the runtime is. */
static void test_off_states(void **state)
{
	static const struct {
		unsigned where;
		uint32_t syscall;
		uint64_t ip;
		enum thread_state expect;
		uint32_t prev_state;
	} cases[] = {
		{WIRE_WHERE_HASKELL, 35, CFN(1), ST_UNSAFE_CALL_BLOCKED, 1},
		{WIRE_WHERE_HASKELL, WIRE_NO_SYSCALL, CFN(1), ST_HASKELL_BLOCKED, 1},
		{WIRE_WHERE_HASKELL, WIRE_NO_SYSCALL, HS(1), ST_HASKELL_BLOCKED, 1},
		{WIRE_WHERE_HASKELL, 9, RTS(1), ST_RTS_BLOCKED, 1},
		{WIRE_WHERE_SAFE_CALL, 35, CFN(1), ST_SAFE_CALL_BLOCKED, 1},
		{WIRE_WHERE_RESUMING, 202, CFN(1), ST_CAP_WAIT, 1},
		{WIRE_WHERE_RTS, 202, RTS(1), ST_RTS_BLOCKED, 1},
		{WIRE_WHERE_RTS, 202, GCFN(1), ST_GC_WAIT, 1},
		{WIRE_WHERE_NO_CAP, 202, CFN(1), ST_IDLE, 1},
		{WIRE_WHERE_FOREIGN, 202, CFN(1), ST_FOREIGN_BLOCKED, 1},
		{WIRE_WHERE_NOT_READY, 202, CFN(1), ST_RTS_BLOCKED, 1},
		/* held at its exec */
		{WIRE_WHERE_NOT_READY, 59, CFN(1), ST_IDLE, 0x108},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kit kit;
		union rec r;
		const struct pic_lane *lane;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		mk_off(&r, 7, T0 + 100, T0 + 900, T0 + 1000, cases[i].where, STOP);
		r.off.syscall = cases[i].syscall;
		r.off.prev_state = cases[i].prev_state;
		r.off.ip = cases[i].ip;
		put(&kit, &r);
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 2000));
		finish(&kit);
		lane = lane_of(picture__target(kit.pic, 0), 7);
		assert_int_equal(lane->states_ns[cases[i].expect], 800);
		assert_int_equal(lane->states_ns[ST_PREEMPTED], 100);
		assert_int_equal(lane->states_ns[ST_UNKNOWN], 0);
		/* which is none of its own waits */
		assert_int_equal(!strcmp(lane->off_cpu[0].reason, "tracer: held at its start"),
				 cases[i].prev_state != 1);
		timeline__free(kit.tl);
	}
}

/* What a thread does on the CPU, by where the runtime is and by the code that runs. */
static void test_on_states(void **state)
{
	static const struct {
		unsigned where;
		uint64_t ip;
		enum thread_state expect;
	} cases[] = {
		{WIRE_WHERE_HASKELL, HS(1), ST_HASKELL},
		{WIRE_WHERE_HASKELL, RTS(1), ST_HASKELL},
		{WIRE_WHERE_HASKELL, CFN(1), ST_UNSAFE_CALL_CPU},
		{WIRE_WHERE_HASKELL, GCFN(1), ST_GC_WORK},
		{WIRE_WHERE_SAFE_CALL, CFN(1), ST_SAFE_CALL_CPU},
		{WIRE_WHERE_RESUMING, RTS(1), ST_RTS},
		{WIRE_WHERE_RTS, RTS(1), ST_RTS},
		{WIRE_WHERE_RTS, GCFN(1), ST_GC_WORK},
		{WIRE_WHERE_NO_CAP, RTS(1), ST_RTS},
		{WIRE_WHERE_NO_CAP, GCFN(1), ST_GC_WORK},
		{WIRE_WHERE_FOREIGN, CFN(1), ST_FOREIGN_CPU},
		{WIRE_WHERE_UNKNOWN, HS(1), ST_HASKELL},
		{WIRE_WHERE_UNKNOWN, CFN(1), ST_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kit kit;
		union rec r;
		const struct pic_lane *lane;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
		put(&kit, mk_sample(&r, 7, END - 10, cases[i].where, cases[i].ip, STOP));
		finish(&kit);
		lane = lane_of(picture__target(kit.pic, 0), 7);
		assert_int_equal(lane->states_ns[cases[i].expect], 1000);
		timeline__free(kit.tl);
	}
}

/* A tid that is used again is another thread; exec and exit end every lane. */
static void test_births_and_deaths(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0 + 100));
	put(&kit, mk_off(&r, 7, 0, T0 + 100, T0 + 150, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_sample(&r, 7, T0 + 160, WIRE_WHERE_FOREIGN, CFN(1), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 200));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0 + 300));
	put(&kit, mk_sample(&r, 7, T0 + 360, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_sample(&r, 9, T0 + 370, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_event(&r, WIRE_EXEC, 9, T0 + 1000));
	assert_int_equal(
		intake__record(kit.in, mk_event(&r, WIRE_THREAD_NEW, 7, T0 + 1100), r.h.size),
		-ENOENT);
	/* The same process with another program is another target. */
	kit_add(&kit, PID, T0 + 2000);
	put(&kit, mk_sample(&r, 9, T0 + 3000, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 9, T0 + 4000));
	t = finish(&kit);
	assert_string_equal(t->end, "exec");
	assert_int_equal(t->lanes[LANE_THREAD].n, 3);
	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		assert_true(t->lanes[LANE_THREAD].v[i].end_ns <= T0 + 1000);
	/* A new thread is ready at once, and waits for its first turn. */
	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		if (t->lanes[LANE_THREAD].v[i].start_ns == T0 + 100) {
			assert_int_equal(t->lanes[LANE_THREAD].v[i].states_ns[ST_PREEMPTED], 50);
			assert_int_equal(t->lanes[LANE_THREAD].v[i].states_ns[ST_FOREIGN_CPU], 50);
		}
	t = picture__target(kit.pic, 1);
	assert_string_equal(t->end, "exited");
	assert_int_equal(t->lanes[LANE_THREAD].n, 1);
	assert_int_equal(t->lanes[LANE_THREAD].v[0].end_ns, T0 + 4000);
	timeline__free(kit.tl);
}

/* The main thread's name is the process's, also if it was never read. */
static void test_name_before_exec(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_sample(&r, PID, T0 + 160, WIRE_WHERE_HASKELL, HS(1), STOP));
	put(&kit, mk_event(&r, WIRE_EXEC, PID, T0 + 1000));
	t = finish(&kit);
	assert_string_equal(lane_of(t, PID)->name, "prog");
	timeline__free(kit.tl);
}

/* How a process ended, as far as the kernel reports it. */
static void test_how_it_ended(void **state)
{
	static const struct {
		const char *how, *end;
		int code, signal;
	} cases[] = {
		{"exited", "exited", -1, 0},
		{"exited 0", "exited", 0, 0},
		{"exited 255", "exited", 255, 0},
		{"killed 9", "killed", -1, 9},
		{"exec", "exec", -1, 0},
		{"exited x", "exited", -1, 0},
		{"killed 9999999999", "killed", -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pic_target *t;
		struct kit kit;

		kit_new(&kit);
		assert_int_equal(intake__end_target(kit.in, PID, cases[i].how, T0 + 100), 0);
		t = finish(&kit);
		assert_string_equal(t->end, cases[i].end);
		assert_int_equal(t->exit_code, cases[i].code);
		assert_int_equal(t->exit_signal, cases[i].signal);
		timeline__free(kit.tl);
	}
	/* after the kernel's own record, which has no status */
	for (int again = 0; again < 2; again++) {
		const struct pic_target *t;
		struct kit kit;

		kit_new(&kit);
		assert_int_equal(
			intake__end_target(kit.in, PID, again ? "exec" : "exited", T0 + 100), 0);
		assert_int_equal(intake__end_target(kit.in, PID, "killed 9", T0 + 200), 0);
		t = finish(&kit);
		assert_string_equal(t->end, again ? "exec" : "killed");
		assert_int_equal(t->exit_signal, again ? 0 : 9);
		timeline__free(kit.tl);
	}
}

/* Beyond the budget of slices the picture gets coarser, but the totals stay right. */
static void test_coarse(void **state)
{
	struct timeline_opts opts = {.max_slices = 256};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t t = T0 + 100 + i * 100;

		put(&kit, mk_sample(&r, 7, t, WIRE_WHERE_HASKELL, HS(1), STOP));
		put(&kit, mk_off(&r, 7, t + 10, t + 70, t + 80, WIRE_WHERE_NO_CAP, STOP));
	}
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100080));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_true(lane->merged_ns);
	assert_true(lane->n_slices <= 256);
	assert_int_equal(lane->states_ns[ST_IDLE], 60000);
	assert_int_equal(lane->states_ns[ST_PREEMPTED], 10000);
	timeline__free(kit.tl);
}

/*
 * Short times on the CPU, which hardly ever contain a sample, are divided in proportion to the
 * samples that fall into one.
 */
static void test_prior(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t t = T0 + 100 + i * 100;

		if (i % 40 == 20) /* 20 of 25 samples are in Haskell */
			put(&kit, mk_sample(&r, 7, t - 20,
					    i % 200 == 20 ? WIRE_WHERE_RTS : WIRE_WHERE_HASKELL,
					    i % 200 == 20 ? RTS(1) : HS(1), STOP));
		put(&kit, mk_off(&r, 7, t, t + 50, t + 50, WIRE_WHERE_NO_CAP, STOP));
	}
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100050));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->cpu_ns, 100 + 999 * 50);
	assert_true(lane->states_ns[ST_HASKELL] > 39000 && lane->states_ns[ST_HASKELL] < 41000);
	assert_int_equal(lane->states_ns[ST_HASKELL] + lane->states_ns[ST_RTS], lane->cpu_ns);
	timeline__free(kit.tl);
}

/* A sample in suspendThread itself is no callback: the call is not divided. */
static void test_no_callback(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_sample(&r, 7, T0 + 10001, WIRE_WHERE_HASKELL, RTS(1), CIP(RTS(1)), STOP);
	r.sample.site = SITE(1);
	r.sample.call_start_ns = T0 + 10000;
	put(&kit, &r);
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 70000, SITE(1), RET(HS(2)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 80000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 60000);
	assert_int_equal(lane->states_ns[ST_HASKELL], 20000);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_sample),
		cmocka_unit_test(test_midpoints),
		cmocka_unit_test(test_recorded_call),
		cmocka_unit_test(test_nested_calls),
		cmocka_unit_test(test_short_call),
		cmocka_unit_test(test_short_sums),
		cmocka_unit_test(test_state_after_end),
		cmocka_unit_test(test_gc),
		cmocka_unit_test(test_off_states),
		cmocka_unit_test(test_on_states),
		cmocka_unit_test(test_births_and_deaths),
		cmocka_unit_test(test_name_before_exec),
		cmocka_unit_test(test_how_it_ended),
		cmocka_unit_test(test_coarse),
		cmocka_unit_test(test_prior),
		cmocka_unit_test(test_no_callback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

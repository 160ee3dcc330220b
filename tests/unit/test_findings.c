/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings that do not concern collections: calls, waits, threads; and no findings where nothing
 * is wrong. */
#include "test_findings_kit.h"

static void test_nothing_wrong(void **state)
{
	/* a server that works, sleeps in safe calls, and collects now and then */
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     SLICE(300, 310, S_GC, ST_GC_WORK, 0, 1),
		     SLICE(310, 312, S_SUM, ST_UNSAFE_CALL_CPU, 0, 1),
		     SLICE(312, 313, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 0, 0),
		     SLICE(313, 990, S_EMPTY, ST_SAFE_CALL_BLOCKED, NO_CAP, 0),
		     SLICE(990, 1000, S_EMPTY, ST_CAP_WAIT, NO_CAP, 0)),
		LANE(2, SLICE(0, 1000, S_EMPTY, ST_IDLE, NO_CAP, 0)),
	};
	struct pic_gc_event gc = {
		.start_ns = AT(300), .end_ns = AT(310), .sync_ns = 20000, .number = 1};
	struct pic_call call = {.function = "poll",
				.caller = "GHC.Event.poll",
				.site = "prog+0x1",
				.calls = 100000,
				.wall_ns = 677 * MS,
				.cpu_ns = 7 * MS,
				.blocked_ns = 670 * MS,
				.p99_ns = 9000,
				.exact = true,
				.observed_share = 1};
	struct pic_target t = {.capabilities = 1,
			       .threaded = true,
			       .gcs = &gc,
			       .n_gcs = 1,
			       .calls = &call,
			       .n_calls = 1,
			       .gc = {.known = true, .count = 1, .pause_ns = 10 * MS}};
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
	/* an empty process */
	find(&t, lanes, 0, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

/* 300 000 empty calls in 1 s, for which the probes took 0.72 s. */
static const struct pic_call hot = {
	.function = "null",
	.caller = "Main.loop",
	.site = "prog+0x42",
	.calls = 300000,
	.wall_ns = 480 * MS,
	.cpu_ns = 470 * MS,
	.min_ns = 1400,
	.p50_ns = 1500,
	.p99_ns = 2400,
	.max_ns = 90000,
	.exact = true,
	.observed_share = 1,
};

static void find_with_traps(const struct pic_call *call, uint64_t trap_ns, struct found *found)
{
	uint64_t traps = 600000 * trap_ns;
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 520 + traps / MS, S_HASKELL, ST_HASKELL, 0, 100)),
		/* in another call */
		LANE(2, SLICE(0, 300, S_LOCK, ST_SAFE_CALL_BLOCKED, NO_CAP, 0))};
	struct pic_target t = {.threaded = true,
			       .calls = call,
			       .n_calls = 1,
			       .probe_hits = 600000,
			       .trap_ns_estimated = traps,
			       .bpf_ns = 240 * MS,
			       .bpf_ns_known = true};

	find(&t, lanes, ARRAY_SIZE(lanes), found);
}

static void find_hot(const struct pic_call *call, struct found *found)
{
	find_with_traps(call, 800, found);
}

static void test_overhead(void **state)
{
	struct pic_call call = hot;
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find_hot(&call, &found);
	f = the_only(&found, "safe_call_overhead");
	assert_int_equal(f->ns, 300000 * 60);
	assert_string_equal(f->where, "prog+0x42");
	assert_says(f,
		    "The safe call null, called from Main.loop, was made 300 000 times a second");
	assert_says(f, "less than 600 ns");
	assert_int_equal(f->longest.end_ns, 0);
	picture__free(found.pic);

	/* without probes half of the time: twice the rate, and the figure is only a bound */
	call.exact = false;
	call.observed_share = 0.5;
	find_hot(&call, &found);
	assert_says(the_only(&found, "safe_call_overhead"), "at least 600 000 times");
	picture__free(found.pic);
}

static void test_no_overhead(void **state)
{
	struct pic_call calls[] = {hot, hot, hot, hot, hot};
	struct found found;

	(void)state;
	calls[0].called_back = true;
	calls[1].p99_ns = 50000; /* some are slow */
	calls[2].blocked_ns = 20 * MS;
	calls[3].calls = 4000;	/* too rare */
	calls[4].p50_ns = 3500; /* works for 2 µs; the probes take 1.4 µs */
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		find_hot(&calls[i], &found);
		if (found.n)
			fail_msg("case %zu: %s", i, found.v[0].text);
		picture__free(found.pic);
	}
}

/* Where entering the kernel is slow, a trap takes 5 µs on average, the fastest less than 1. */
static void test_overhead_with_slow_traps(void **state)
{
	struct pic_call call = hot;
	struct found found;

	(void)state;
	call.min_ns = 752;
	call.p50_ns = 5600;
	call.p99_ns = 32000;
	find_with_traps(&call, 5000, &found);
	assert_says(the_only(&found, "safe_call_overhead"), "less than 2.70 µs");
	picture__free(found.pic);

	call.p50_ns = 9000; /* works for 3.6 µs */
	find_with_traps(&call, 5000, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

static void test_capability_wait(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 500, S_EMPTY, ST_SAFE_CALL_BLOCKED, NO_CAP, 0),
		     SLICE(500, 700, S_EMPTY, ST_CAP_WAIT, NO_CAP, 0),
		     SLICE(700, 1000, S_HASKELL, ST_HASKELL, 0, 30)),
	};
	struct pic_call calls[] = {hot, hot};
	struct pic_target t = {.capabilities = 1, .calls = calls, .n_calls = 2};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	/* mostly waiting for a CPU, which the call does not cause */
	calls[0].calls = 10;
	calls[0].cap_wait_ns = 500 * MS;
	calls[0].cap_only_ns = 50 * MS;
	calls[1].calls = 20;
	calls[1].function = "query";
	calls[1].cap_wait_ns = calls[1].cap_only_ns = 150 * MS;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "capability_wait");
	assert_int_equal(f->ns, 200 * MS);
	assert_says(f, "150 ms of it after query, called from Main.loop (20 calls)");
	assert_string_equal(f->id, "f1");
	assert_int_equal(f->longest.start_ns, AT(500));
	assert_int_equal(f->longest.end_ns, AT(700));
	assert_int_equal(f->longest.lane->tid, 1);
	picture__free(found.pic);
}

#define CAP(from, to, what)                                                                        \
	{                                                                                          \
		.start_ns = AT(from), .end_ns = AT(to), .state = (what)                            \
	}

static void test_idle_capability(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 400, S_EMPTY, ST_SAFE_CALL_CPU, NO_CAP, 40),
		     SLICE(400, 600, S_EMPTY, ST_CAP_WAIT, NO_CAP, 0),
		     SLICE(600, 1000, S_EMPTY, ST_SAFE_CALL_CPU, NO_CAP, 40)),
		/* no longer than a normal wake-up */
		LANE(2, SLICE(0, 800, S_EMPTY, ST_IDLE, NO_CAP, 0),
		     SLICE(800, 800.1, S_EMPTY, ST_CAP_WAIT, NO_CAP, 0),
		     SLICE(800.1, 1000, S_EMPTY, ST_IDLE, NO_CAP, 0)),
	};
	const struct pic_slice busy[] = {CAP(0, 1000, CS_HASKELL)};
	const struct pic_slice half[] = {CAP(0, 450, CS_HASKELL), CAP(450, 550, CS_IDLE),
					 CAP(550, 700, CS_HASKELL), CAP(700, 1000, CS_IDLE)};
	struct pic_point points[30];
	const struct seen_points starved = {.v = points, .n = 22};
	const struct pic_lane caps[] = {
		{.cap = 0,
		 .start_ns = T0,
		 .end_ns = AT(1000),
		 .states_ns = {[CS_HASKELL] = 1000 * MS},
		 .slices = busy,
		 .n_slices = ARRAY_SIZE(busy)},
		{.cap = 1,
		 .start_ns = T0,
		 .end_ns = AT(1000),
		 .states_ns = {[CS_HASKELL] = 600 * MS, [CS_IDLE] = 400 * MS},
		 .slices = half,
		 .n_slices = ARRAY_SIZE(half)},
	};
	struct pic_target t = {.capabilities = 2, .lanes[LANE_CAPABILITY] = LANES(caps)};
	struct found found;
	size_t i;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	for (i = 0; i < found.n && strcmp(found.v[i].kind, "idle_capability") != 0; i++)
		;
	assert_true(i < found.n);
	assert_int_equal(found.v[i].ns, 100 * MS);
	assert_says(&found.v[i], "while threads waited");
	assert_int_equal(found.v[i].longest.start_ns, AT(400));
	picture__free(found.pic);

	/* no thread waits for a capability, but Haskell threads are ready */
	for (i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct pic_point){AT(700 + 5 * i), i == 7 ? 3 : 2};
	t.ticks = 200;
	find_starved(&t, lanes + 1, 1, &starved, &found);
	assert_int_equal(the_only(&found, "idle_capability")->ns, 110 * MS);
	assert_says(&found.v[0], "For about 110 ms (22 ticks of the RTS's timer)");
	assert_says(&found.v[0], "up to 3");
	assert_int_equal(found.v[0].longest.end_ns, 0);
	picture__free(found.pic);
}

static void test_no_cpu(void **state)
{
	struct pic_lane lanes[] = {LANE(1, SLICE(0, 1000, S_HASKELL, ST_PREEMPTED, 0, 0))};
	struct pic_slice slices[] = {SLICE(0, 200, S_EMPTY, CS_PREEMPTED, 0, 0),
				     SLICE(200, 600, S_EMPTY, CS_IDLE, 0, 0),
				     SLICE(600, 700, S_EMPTY, CS_PREEMPTED, 0, 0),
				     SLICE(700, 1000, S_EMPTY, CS_HASKELL, 0, 0)};
	const struct pic_lane cap = {
		.start_ns = T0,
		.end_ns = AT(1000),
		.slices = slices,
		.n_slices = ARRAY_SIZE(slices),
		.states_ns = {
			[CS_HASKELL] = 300 * MS, [CS_PREEMPTED] = 300 * MS, [CS_IDLE] = 400 * MS}};
	struct pic_target t = {.lanes[LANE_CAPABILITY] = {&cap, 1}, .attach_ns = T0};
	struct found found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "capability_preempted")->ns, 300 * MS);
	assert_says(&found.v[0], "50 % of its busy time");
	/* the longest one is excluded, since safescoped's attaching caused it */
	assert_int_equal(found.v[0].longest.start_ns, AT(600));
	picture__free(found.pic);
	slices[2].state = CS_HASKELL;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.v[0].longest.start_ns, AT(0));
	picture__free(found.pic);
}

static void test_bound_thread(void **state)
{
	static struct pic_slice turns[6000];
	struct pic_lane lane = {.tid = 42,
				.start_ns = T0,
				.end_ns = AT(1000),
				.slices = turns,
				.n_slices = ARRAY_SIZE(turns)};
	struct pic_target t = {.pid = 42, .threaded = true};
	struct found found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		static const enum thread_state states[] = {ST_HASKELL, ST_RTS, ST_IDLE};

		turns[i].start_ns = i ? turns[i - 1].end_ns : T0;
		turns[i].end_ns = turns[i].start_ns + (i % 3 == 2 ? 450000 : 25000);
		turns[i].state = states[i % 3];
	}
	find(&t, &lane, 1, &found);
	assert_int_equal(the_only(&found, "bound_thread")->ns, 50 * MS);
	assert_says(&found.v[0], "took turns with other threads 2 000 times a second");
	picture__free(found.pic);
	/* not the main OS thread */
	lane.tid = 43;
	find(&t, &lane, 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
	/* too rare */
	lane.tid = 42;
	lane.n_slices = 2000;
	find(&t, &lane, 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

static void test_black_holes_and_mvars(void **state)
{
	static struct pic_slice naps[6000];
	struct pic_lane lanes[] = {LANE(1, SLICE(0, 1000, S_HASKELL, ST_HASKELL, 0, 100))};
	const struct pic_slice waits[] = {
		{.start_ns = AT(0), .end_ns = AT(30), .state = HS_BLOCKED_BLACKHOLE},
		{.start_ns = AT(30), .end_ns = AT(1000), .state = HS_BLOCKED_MVAR},
	};
	struct pic_lane tsos[] = {
		{.tso = 7,
		 .name = "worker",
		 .states_ns = {[HS_BLOCKED_BLACKHOLE] = 30 * MS, [HS_BLOCKED_MVAR] = 970 * MS},
		 .slices = waits,
		 .n_slices = 2},
		{.tso = 8, .name = "", .slices = naps, .n_slices = 0},
	};
	struct pic_target t = {.lanes[LANE_HASKELL] = LANES(tsos)};
	struct found found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "blocked_on_black_hole")->ns, 30 * MS);
	assert_says(&found.v[0], "1 Haskell thread waited 30.0 ms");
	assert_string_equal(found.v[0].where, "Haskell thread 7 (worker)");
	picture__free(found.pic);

	for (size_t i = 0; i < ARRAY_SIZE(naps); i++)
		naps[i] = (struct pic_slice){.start_ns = T0 + i * 100000,
					     .end_ns = T0 + i * 100000 + 50000,
					     .state = i % 2 ? HS_BLOCKED_STM : HS_BLOCKED_MVAR};
	tsos[0].states_ns[HS_BLOCKED_BLACKHOLE] = 0;
	tsos[1].n_slices = ARRAY_SIZE(naps);
	tsos[1].states_ns[HS_BLOCKED_MVAR] = 150 * MS;
	tsos[1].states_ns[HS_BLOCKED_STM] = 150 * MS;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
	for (size_t i = 0; i < ARRAY_SIZE(naps); i++)
		naps[i].state = HS_BLOCKED_STM;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "blocked_in_stm"),
		    "1 Haskell thread went to sleep in STM 6 000 times a second, for 25.0 µs each");
	picture__free(found.pic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_no_overhead),
		cmocka_unit_test(test_overhead_with_slow_traps),
		cmocka_unit_test(test_capability_wait),
		cmocka_unit_test(test_idle_capability),
		cmocka_unit_test(test_no_cpu),
		cmocka_unit_test(test_bound_thread),
		cmocka_unit_test(test_black_holes_and_mvars),
	};

	return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}

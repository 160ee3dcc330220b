/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is found in pictures made by hand: that it is there, with its numbers, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "test_export_fake.h"
#include "timeline/findings.h"

#define MS     UINT64_C(1000000)
#define T0     UINT64_C(1000000000000)
#define AT(ms) (T0 + (uint64_t)((ms)*1000) * 1000)

enum { F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_GC, F_YIELD, F_STATE, F_SUM };
static const struct tl_frame frames[] = {
	[F_MAIN] = {"Main.main", "Main", "", "Main", "", TF_HASKELL, false},
	[F_LOAD] = {"Main.load", "Main", "", "Main", "app/Load.hs:7", TF_HASKELL, false},
	[F_LOCK] = {"take_lock", "", "", "prog", "", TF_FOREIGN, false},
	[F_NANOSLEEP] = {"clock_nanosleep", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_GC] = {"scavenge_block", "", "", "prog", "", TF_GC, false},
	[F_YIELD] = {"sched_yield", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_STATE] = {"[a state]", "", "", "state", "", TF_STATE, false},
	[F_SUM] = {"checksum", "", "", "prog", "", TF_FOREIGN, false},
};

#define STACK(...)                                                                                 \
	{                                                                                          \
		.frames = (const uint32_t[]){__VA_ARGS__},                                         \
		.n = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)                    \
	}
enum { S_EMPTY, S_HASKELL, S_LOCK, S_GC, S_SPIN, S_SUM, S_BARE };
static const struct tl_stack stacks[] = {
	[S_EMPTY] = {0},
	[S_HASKELL] = STACK(F_MAIN, F_LOAD, F_STATE),
	[S_LOCK] = STACK(F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_STATE),
	[S_GC] = STACK(F_MAIN, F_GC, F_STATE),
	[S_SPIN] = STACK(F_GC, F_YIELD, F_STATE),
	[S_SUM] = STACK(F_MAIN, F_SUM, F_STATE),
	[S_BARE] = STACK(F_NANOSLEEP, F_STATE),
};

#define STRETCH(from, to, at, what, on, n)                                                         \
	{                                                                                          \
		.start_ns = AT(from), .end_ns = AT(to), .stack = (at), .state = (what),            \
		.cap = (on), .samples = (n)                                                        \
	}
#define LANE(of, ...)                                                                              \
	{                                                                                          \
		.tid = (of), .start_ns = T0, .end_ns = AT(1000),                                   \
		.stretches = (struct tl_stretch[]){__VA_ARGS__},                                   \
		.n_stretches =                                                                     \
			sizeof((struct tl_stretch[]){__VA_ARGS__}) / sizeof(struct tl_stretch)     \
	}

/* The sums of each lane, as the timeline would have them. */
static void add_up(struct tl_lane *lanes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memset(lanes[i].states_ns, 0, sizeof(lanes[i].states_ns));
		lanes[i].cpu_ns = 0;
		for (size_t k = 0; k < lanes[i].n_stretches; k++) {
			const struct tl_stretch *s = &lanes[i].stretches[k];

			lanes[i].states_ns[s->state] += s->end_ns - s->start_ns;
			if (state__on_cpu(s->state))
				lanes[i].cpu_ns += s->end_ns - s->start_ns;
		}
	}
}

static void find(struct tl_target *t, struct tl_lane *lanes, size_t n, struct findings *found)
{
	struct timeline tl = {.session = {.start_ns = T0, .end_ns = AT(1000), .frequency_hz = 99},
			      .targets = t,
			      .n_targets = 1,
			      .frames = frames,
			      .n_frames = ARRAY_SIZE(frames),
			      .stacks = stacks,
			      .n_stacks = ARRAY_SIZE(stacks)};

	add_up(lanes, n);
	t->lanes = lanes;
	t->n_lanes = n;
	memset(found, 0, sizeof(*found));
	assert_int_equal(findings__make(&tl, t, found), 0);
	for (size_t i = 1; i < found->n; i++)
		assert_true(found->v[i - 1].ns >= found->v[i].ns);
}

static const struct tl_finding *the_only(const struct findings *found, const char *kind)
{
	if (found->n != 1)
		fail_msg("%zu findings, should be 1; %s", found->n,
			 found->n ? found->v[0].text : "");
	assert_string_equal(found->v[0].kind, kind);
	return &found->v[0];
}

static void assert_says(const struct tl_finding *f, const char *what)
{
	if (!strstr(f->text, what))
		fail_msg("`%s` is not in: %s", what, f->text);
}

static void test_nothing_wrong(void **state)
{
	/* a server that works, sleeps in safe calls, and collects now and then */
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     STRETCH(300, 310, S_GC, ST_GC_WORK, 0, 1),
		     STRETCH(310, 312, S_SUM, ST_UNSAFE_CALL_CPU, 0, 1),
		     STRETCH(312, 313, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 0, 0),
		     STRETCH(313, 990, S_EMPTY, ST_SAFE_CALL_BLOCKED, 0xffff, 0),
		     STRETCH(990, 1000, S_EMPTY, ST_CAP_WAIT, 0xffff, 0)),
		LANE(2, STRETCH(0, 1000, S_EMPTY, ST_IDLE, 0xffff, 0)),
	};
	struct tl_gc_event gc = {
		.start_ns = AT(300), .end_ns = AT(310), .sync_ns = 20000, .number = 1};
	struct tl_call call = {.function = "poll",
			       .caller = "GHC.Event.poll",
			       .site = "prog+0x1",
			       .calls = 100000,
			       .wall_ns = 677 * MS,
			       .cpu_ns = 7 * MS,
			       .blocked_ns = 670 * MS,
			       .p99_ns = 9000,
			       .exact = true,
			       .observed_share = 1};
	struct tl_target t = {.capabilities = 1,
			      .threaded = true,
			      .gcs = &gc,
			      .n_gcs = 1,
			      .calls = &call,
			      .n_calls = 1,
			      .gc = {.known = true, .count = 1, .pause_ns = 10 * MS}};
	struct findings found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
	/* nothing at all */
	find(&t, lanes, 0, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
}

static void test_gc_was_held_up(void **state)
{
	/* Two collections: the first waited from 100 to 400 for the lock, which began at 50; a
	 * checksum elsewhere had stopped at 200. The second from 500 to 550, wholly for the lock.
	 */
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 100, S_HASKELL, ST_HASKELL, 0, 10),
		     STRETCH(100, 400, S_EMPTY, ST_GC_WAIT, 0, 0),
		     STRETCH(400, 410, S_GC, ST_GC_WORK, 0, 1),
		     STRETCH(410, 1000, S_HASKELL, ST_HASKELL, 0, 60)),
		LANE(2, STRETCH(0, 50, S_HASKELL, ST_HASKELL, 1, 5),
		     STRETCH(50, 60, S_LOCK, ST_UNSAFE_CALL_CPU, 1, 1),
		     STRETCH(60, 400, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 1, 0),
		     STRETCH(400, 495, S_HASKELL, ST_HASKELL, 1, 9),
		     STRETCH(495, 545, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 1, 0),
		     STRETCH(545, 1000, S_HASKELL, ST_HASKELL, 1, 45)),
		LANE(3, STRETCH(0, 200, S_SUM, ST_UNSAFE_CALL_CPU, 2, 5),
		     STRETCH(200, 1000, S_EMPTY, ST_IDLE, 0xffff, 5)),
	};
	struct tl_gc_event gcs[] = {
		{.start_ns = AT(400), .end_ns = AT(410), .sync_ns = 300 * MS, .tid = 1},
		{.start_ns = AT(550), .end_ns = AT(560), .sync_ns = 50 * MS, .tid = 1},
		{.start_ns = AT(700), .end_ns = AT(710), .sync_ns = UINT64_MAX},
	};
	struct tl_target t = {
		.capabilities = 3, .threaded = true, .gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	const struct tl_finding *f;
	struct findings found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "unsafe_call_held_up_gc");
	assert_int_equal(f->ns, 345 * MS);
	assert_string_equal(f->where, "Main.load (app/Load.hs:7)");
	assert_says(f, "GC waited 345 ms in 2 collections for capability 1 (longest 300 ms)");
	assert_says(f, "take_lock, called from Main.load");
	assert_says(f, "390 ms in all");
	findings__free(&found);
	/* nothing is known of the requests: what is left is that it slept */
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].sync_ns = UINT64_MAX;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "blocking_unsafe_call");
	assert_int_equal(f->ns, 390 * MS);
	assert_says(f, "(2 times, longest 340 ms)");
	findings__free(&found);
	/* a request that would have been before time began */
	gcs[0].sync_ns = UINT64_MAX - 1;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	the_only(&found, "blocking_unsafe_call");
	findings__free(&found);
}

static void test_several_capabilities(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 100, S_LOCK, ST_UNSAFE_CALL_CPU, 0, 0),
		     STRETCH(100, 1000, S_HASKELL, ST_HASKELL, 0, 0)),
		LANE(2, STRETCH(0, 200, S_HASKELL, ST_HASKELL, 3, 0),
		     STRETCH(200, 300, S_LOCK, ST_UNSAFE_CALL_CPU, 3, 0),
		     STRETCH(300, 1000, S_HASKELL, ST_HASKELL, 3, 0)),
	};
	struct tl_gc_event gcs[] = {
		{.start_ns = AT(100), .end_ns = AT(101), .sync_ns = 10 * MS},
		{.start_ns = AT(300), .end_ns = AT(301), .sync_ns = 10 * MS},
	};
	struct tl_target t = {.gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	struct findings found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_says(the_only(&found, "unsafe_call_held_up_gc"),
		    "in 2 collections for capabilities 0 and 3 (longest 10.0 ms)");
	findings__free(&found);
}

static void test_gc_waited_for_a_loop(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 100, S_HASKELL, ST_HASKELL, 0, 10),
		     STRETCH(100, 400, S_SPIN, ST_GC_WORK, 0, 30),
		     STRETCH(400, 1000, S_HASKELL, ST_HASKELL, 0, 60)),
		LANE(2, STRETCH(0, 390, S_HASKELL, ST_HASKELL, 1, 39),
		     STRETCH(390, 1000, S_EMPTY, ST_IDLE, 0xffff, 0)),
	};
	struct tl_gc_event gcs[] = {
		{.start_ns = AT(400), .end_ns = AT(401), .sync_ns = 300 * MS, .tid = 1},
		/* too short for samples to tell */
		{.start_ns = AT(500), .end_ns = AT(501), .sync_ns = 5 * MS, .tid = 1},
	};
	struct tl_target t = {.gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	struct findings found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(the_only(&found, "haskell_held_up_gc")->ns, 290 * MS);
	assert_says(&found.v[0],
		    "GC waited 290 ms in 1 collection for capability 1 while Main.load");
	findings__free(&found);
	/* it had no CPU for nearly all of the time: that is not its fault */
	lanes[1] = (struct tl_lane)LANE(2, STRETCH(0, 110, S_HASKELL, ST_HASKELL, 1, 39),
					STRETCH(110, 400, S_HASKELL, ST_PREEMPTED, 1, 0));
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
}

static void test_no_stack(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 100, S_BARE, ST_UNSAFE_CALL_BLOCKED, 0, 0),
		     STRETCH(100, 1000, S_HASKELL, ST_HASKELL, 0, 0)),
		LANE(2, STRETCH(0, 50, S_EMPTY, ST_UNSAFE_CALL_BLOCKED, 0, 0)),
	};
	struct tl_target t = {0};
	struct findings found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	/* what slept since before the session has no name, and no advice */
	assert_int_equal(found.n, 1);
	assert_says(&found.v[0], "The unsafe call clock_nanosleep slept for 100 ms");
	assert_string_equal(found.v[0].where, "clock_nanosleep");
	findings__free(&found);
}

/* 300 000 null calls in 1 s, of which the probes took 0.72 s. */
static const struct tl_call hot = {
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

static void find_hot(const struct tl_call *call, struct findings *found)
{
	struct tl_lane lanes[] = {LANE(1, STRETCH(0, 1000, S_HASKELL, ST_HASKELL, 0, 100))};
	struct tl_target t = {.threaded = true,
			      .calls = call,
			      .n_calls = 1,
			      .probe_hits = 600000,
			      .trap_ns_estimated = 480 * MS,
			      .bpf_ns = 240 * MS,
			      .bpf_ns_known = true};

	find(&t, lanes, ARRAY_SIZE(lanes), found);
}

static void test_overhead(void **state)
{
	struct tl_call call = hot;
	const struct tl_finding *f;
	struct findings found;

	(void)state;
	find_hot(&call, &found);
	f = the_only(&found, "safe_call_overhead");
	assert_int_equal(f->ns, 300000 * 60);
	assert_string_equal(f->where, "prog+0x42");
	assert_says(f, "The safe call null, called from Main.loop was made 300 000 times a second");
	assert_says(f, "less than 0.5 µs");
	findings__free(&found);

	/* half of the time without probes: twice as often, and no more than a bound */
	call.exact = false;
	call.observed_share = 0.5;
	find_hot(&call, &found);
	assert_says(the_only(&found, "safe_call_overhead"), "at least 600 000 times");
	findings__free(&found);
}

static void test_no_overhead(void **state)
{
	struct tl_call calls[] = {hot, hot, hot, hot, hot};
	struct findings found;

	(void)state;
	calls[0].called_back = true;
	calls[1].p99_ns = 50000; /* some take long */
	calls[2].blocked_ns = 20 * MS;
	calls[3].calls = 4000;	/* too rare */
	calls[4].p50_ns = 3500; /* it works for 2 µs, 1.4 are the probes' */
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		find_hot(&calls[i], &found);
		if (found.n)
			fail_msg("case %zu: %s", i, found.v[0].text);
		findings__free(&found);
	}
}

static void test_capability_wait(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 500, S_EMPTY, ST_SAFE_CALL_BLOCKED, 0xffff, 0),
		     STRETCH(500, 700, S_EMPTY, ST_CAP_WAIT, 0xffff, 0),
		     STRETCH(700, 1000, S_HASKELL, ST_HASKELL, 0, 30)),
	};
	struct tl_call calls[] = {hot, hot};
	struct tl_target t = {.capabilities = 1, .calls = calls, .n_calls = 2};
	const struct tl_finding *f;
	struct findings found;

	(void)state;
	calls[0].calls = 10;
	calls[0].cap_wait_ns = 50 * MS;
	calls[1].calls = 20;
	calls[1].function = "query";
	calls[1].cap_wait_ns = 150 * MS;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "capability_wait");
	assert_int_equal(f->ns, 200 * MS);
	assert_says(f, "150 ms of it after query, called from Main.loop (20 calls)");
	findings__free(&found);
}

static void test_gc_share_and_spin(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     STRETCH(300, 600, S_GC, ST_GC_WORK, 0, 30)),
		LANE(2, STRETCH(0, 300, S_HASKELL, ST_HASKELL, 1, 30),
		     STRETCH(300, 600, S_SPIN, ST_GC_WORK, 1, 30)),
	};
	struct tl_target t = {
		.gc = {.known = true, .count = 100, .pause_ns = 300 * MS, .max_pause_ns = 7 * MS}};
	struct findings found;

	(void)state;
	find(&t, lanes, 2, &found);
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[0].kind, "gc_share");
	assert_int_equal(found.v[0].ns, 600 * MS);
	assert_says(&found.v[0], "50 %");
	assert_says(&found.v[0], "100 collections of 3.00 ms on average, longest 7.00 ms");
	assert_says(&found.v[0], "-A64m");
	assert_string_equal(found.v[1].kind, "gc_spin");
	assert_int_equal(found.v[1].ns, 300 * MS);
	assert_says(&found.v[1], "30 of 60 samples");
	assert_string_equal(found.v[1].where, "sched_yield");
	findings__free(&found);

	/* few and long */
	t.gc.count = 3;
	t.gc.max_pause_ns = 200 * MS;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "--nonmoving-gc");
	findings__free(&found);
}

static void test_gc_share_inferred(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     STRETCH(300, 600, S_GC, ST_RTS, 0, 30),
		     STRETCH(600, 1000, S_HASKELL, ST_HASKELL, 0, 30)),
	};
	struct tl_target t = {.gc = {.known = true, .inferred = true, .pause_ns = 400 * MS}};
	struct findings found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
	lanes[0].n_stretches = 2;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "gc_share")->ns, 300 * MS);
	assert_says(&found.v[0], "took up to 50 % of");
	findings__free(&found);
	/* the runtime was busy with other things */
	t.gc.pause_ns = 20 * MS;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
}

#define CAP(from, to, what)                                                                        \
	{                                                                                          \
		.start_ns = AT(from), .end_ns = AT(to), .state = (what)                            \
	}

static void test_idle_capability(void **state)
{
	struct tl_lane lanes[] = {
		LANE(1, STRETCH(0, 400, S_EMPTY, ST_SAFE_CALL_CPU, 0xffff, 40),
		     STRETCH(400, 600, S_EMPTY, ST_CAP_WAIT, 0xffff, 0),
		     STRETCH(600, 1000, S_EMPTY, ST_SAFE_CALL_CPU, 0xffff, 40)),
		/* too short to be more than a wake-up */
		LANE(2, STRETCH(0, 800, S_EMPTY, ST_IDLE, 0xffff, 0),
		     STRETCH(800, 800.1, S_EMPTY, ST_CAP_WAIT, 0xffff, 0),
		     STRETCH(800.1, 1000, S_EMPTY, ST_IDLE, 0xffff, 0)),
	};
	const struct tl_cap_stretch busy[] = {CAP(0, 1000, CS_HASKELL)};
	const struct tl_cap_stretch half[] = {CAP(0, 450, CS_HASKELL), CAP(450, 550, CS_IDLE),
					      CAP(550, 700, CS_HASKELL), CAP(700, 1000, CS_IDLE)};
	struct tl_point starved[30];
	const struct tl_cap_lane caps[] = {
		{.no = 0,
		 .start_ns = T0,
		 .end_ns = AT(1000),
		 .states_ns = {[CS_HASKELL] = 1000 * MS},
		 .stretches = busy,
		 .n_stretches = ARRAY_SIZE(busy)},
		{.no = 1,
		 .start_ns = T0,
		 .end_ns = AT(1000),
		 .states_ns = {[CS_HASKELL] = 600 * MS, [CS_IDLE] = 400 * MS},
		 .stretches = half,
		 .n_stretches = ARRAY_SIZE(half)},
	};
	struct tl_target t = {.capabilities = 2, .cap_lanes = caps, .n_cap_lanes = 2};
	struct findings found;
	size_t i;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	for (i = 0; i < found.n && strcmp(found.v[i].kind, "idle_capability") != 0; i++)
		;
	assert_true(i < found.n);
	assert_int_equal(found.v[i].ns, 100 * MS);
	assert_says(&found.v[i], "while threads waited");
	findings__free(&found);

	/* nobody waits, but Haskell threads are ready */
	for (i = 0; i < ARRAY_SIZE(starved); i++)
		starved[i] = (struct tl_point){AT(700 + 5 * i), i == 7 ? 3 : 2};
	t.ticks = 200;
	t.starved = starved;
	t.n_starved = 22;
	find(&t, lanes + 1, 1, &found);
	assert_int_equal(the_only(&found, "idle_capability")->ns, 110 * MS);
	assert_says(&found.v[0], "For about 110 ms (22 ticks of the RTS's timer)");
	assert_says(&found.v[0], "up to 3");
	findings__free(&found);
}

static void test_no_cpu(void **state)
{
	struct tl_lane lanes[] = {LANE(1, STRETCH(0, 1000, S_HASKELL, ST_PREEMPTED, 0, 0))};
	const struct tl_cap_lane cap = {
		.start_ns = T0,
		.end_ns = AT(1000),
		.states_ns = {
			[CS_HASKELL] = 300 * MS, [CS_PREEMPTED] = 300 * MS, [CS_IDLE] = 400 * MS}};
	struct tl_target t = {.cap_lanes = &cap, .n_cap_lanes = 1};
	struct findings found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "capability_preempted")->ns, 300 * MS);
	assert_says(&found.v[0], "50 % of their busy time");
	findings__free(&found);
}

static void test_bound_thread(void **state)
{
	static struct tl_stretch turns[6000];
	struct tl_lane lane = {.tid = 42,
			       .start_ns = T0,
			       .end_ns = AT(1000),
			       .stretches = turns,
			       .n_stretches = ARRAY_SIZE(turns)};
	struct tl_target t = {.pid = 42, .threaded = true};
	struct findings found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		static const enum tl_state states[] = {ST_HASKELL, ST_RTS, ST_IDLE};

		turns[i].start_ns = i ? turns[i - 1].end_ns : T0;
		turns[i].end_ns = turns[i].start_ns + (i % 3 == 2 ? 450000 : 25000);
		turns[i].state = states[i % 3];
	}
	find(&t, &lane, 1, &found);
	assert_int_equal(the_only(&found, "bound_thread")->ns, 50 * MS);
	assert_says(&found.v[0], "was run 2 000 times a second");
	findings__free(&found);
	/* another OS thread's */
	lane.tid = 43;
	find(&t, &lane, 1, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
	/* not often */
	lane.tid = 42;
	lane.n_stretches = 2000;
	find(&t, &lane, 1, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
}

static void test_black_holes_and_mvars(void **state)
{
	static struct tl_tso_stretch naps[6000];
	struct tl_lane lanes[] = {LANE(1, STRETCH(0, 1000, S_HASKELL, ST_HASKELL, 0, 100))};
	const struct tl_tso_stretch waits[] = {
		{.start_ns = AT(0), .end_ns = AT(30), .state = HS_BLOCKED_BLACKHOLE},
		{.start_ns = AT(30), .end_ns = AT(1000), .state = HS_BLOCKED_MVAR},
	};
	struct tl_tso_lane tsos[] = {
		{.tso = 7,
		 .label = "worker",
		 .states_ns = {[HS_BLOCKED_BLACKHOLE] = 30 * MS, [HS_BLOCKED_MVAR] = 970 * MS},
		 .stretches = waits,
		 .n_stretches = 2},
		{.tso = 8, .label = "", .stretches = naps, .n_stretches = 0},
	};
	struct tl_target t = {.tso_lanes = tsos, .n_tso_lanes = 2};
	struct findings found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "blocked_on_black_hole")->ns, 30 * MS);
	assert_says(&found.v[0], "1 Haskell thread waited 30.0 ms");
	assert_string_equal(found.v[0].where, "thread 7 (worker)");
	findings__free(&found);

	for (size_t i = 0; i < ARRAY_SIZE(naps); i++)
		naps[i] =
			(struct tl_tso_stretch){.start_ns = T0 + i * 100000,
						.end_ns = T0 + i * 100000 + 50000,
						.state = i % 2 ? HS_BLOCKED_STM : HS_BLOCKED_MVAR};
	tsos[0].states_ns[HS_BLOCKED_BLACKHOLE] = 0;
	tsos[1].n_stretches = ARRAY_SIZE(naps);
	tsos[1].states_ns[HS_BLOCKED_MVAR] = 150 * MS;
	tsos[1].states_ns[HS_BLOCKED_STM] = 150 * MS;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
	findings__free(&found);
	for (size_t i = 0; i < ARRAY_SIZE(naps); i++)
		naps[i].state = HS_BLOCKED_STM;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "blocked_in_stm"),
		    "1 Haskell thread went to sleep in STM 6 000 times a second, 25.0 µs each");
	findings__free(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_wrong),
		cmocka_unit_test(test_gc_was_held_up),
		cmocka_unit_test(test_several_capabilities),
		cmocka_unit_test(test_gc_waited_for_a_loop),
		cmocka_unit_test(test_no_stack),
		cmocka_unit_test(test_overhead),
		cmocka_unit_test(test_no_overhead),
		cmocka_unit_test(test_capability_wait),
		cmocka_unit_test(test_gc_share_and_spin),
		cmocka_unit_test(test_gc_share_inferred),
		cmocka_unit_test(test_idle_capability),
		cmocka_unit_test(test_no_cpu),
		cmocka_unit_test(test_bound_thread),
		cmocka_unit_test(test_black_holes_and_mvars),
	};

	return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}

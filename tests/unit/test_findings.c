/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is found in pictures made by hand: that it is there, with its numbers, and nothing else. */
#include "findings/findings.h"
#include "lanes/lanes_priv.h"
#include "test_export_kit.h"

#define MS     UINT64_C(1000000)
#define T0     UINT64_C(1000000000000)
#define AT(ms) (T0 + (uint64_t)((ms)*1000) * 1000)

enum { F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_GC, F_YIELD, F_STATE, F_SUM };
static const struct pic_frame frames[] = {
	[F_MAIN] = {"Main.main", "Main", "", "Main", "", TF_HASKELL, false},
	[F_LOAD] = {"Main.load", "Main", "", "Main", "app/Load.hs:7", TF_HASKELL, false},
	[F_LOCK] = {"take_lock", "", "", "prog", "", TF_FOREIGN, false},
	[F_NANOSLEEP] = {"clock_nanosleep", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_GC] = {"scavenge_block", "", "", "prog", "", TF_GC, false},
	[F_YIELD] = {"sched_yield", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_STATE] = {"[a state]", "", "", "state", "", TF_STATE, false},
	[F_SUM] = {"checksum", "", "", "prog", "", TF_FOREIGN, false},
};

enum { S_EMPTY, S_HASKELL, S_LOCK, S_GC, S_SPIN, S_SUM, S_BARE };
static const struct pic_stack stacks[] = {
	[S_EMPTY] = {0},
	[S_HASKELL] = STACK(F_MAIN, F_LOAD, F_STATE),
	[S_LOCK] = STACK(F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_STATE),
	[S_GC] = STACK(F_MAIN, F_GC, F_STATE),
	[S_SPIN] = STACK(F_GC, F_YIELD, F_STATE),
	[S_SUM] = STACK(F_MAIN, F_SUM, F_STATE),
	[S_BARE] = STACK(F_NANOSLEEP, F_STATE),
};

#define SLICE(from, to, at, what, on, n)                                                           \
	{                                                                                          \
		.start_ns = AT(from), .end_ns = AT(to), .stack = (at), .state = (what),            \
		.cap = (on), .samples = (n)                                                        \
	}
#define LANE(of, ...)                                                                              \
	{                                                                                          \
		.tid = (of), .start_ns = T0, .end_ns = AT(1000),                                   \
		.slices = (struct pic_slice[]){__VA_ARGS__},                                       \
		.n_slices = sizeof((struct pic_slice[]){__VA_ARGS__}) / sizeof(struct pic_slice)   \
	}

/* The sums of each lane, as the timeline would have them. */
static void add_up(struct pic_lane *lanes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memset(lanes[i].states_ns, 0, sizeof(lanes[i].states_ns));
		lanes[i].cpu_ns = 0;
		for (size_t k = 0; k < lanes[i].n_slices; k++) {
			const struct pic_slice *s = &lanes[i].slices[k];

			lanes[i].states_ns[s->state] += s->end_ns - s->start_ns;
			if (state__on_cpu(LANE_THREAD, s->state))
				lanes[i].cpu_ns += s->end_ns - s->start_ns;
		}
	}
}

/* What a capability does while the thread holds it. */
static enum cap_state cap_state_of(enum thread_state state)
{
	switch (state) {
	case ST_HASKELL:
		return CS_HASKELL;
	case ST_UNSAFE_CALL_CPU:
	case ST_UNSAFE_CALL_BLOCKED:
		return CS_UNSAFE_CALL;
	case ST_PREEMPTED:
		return CS_PREEMPTED;
	case ST_GC_WORK:
	case ST_GC_WAIT:
		return CS_GC;
	default:
		return CS_RTS;
	}
}

static struct seen_gcs gcs_of(const struct pic_target *t)
{
	struct seen_gcs gcs = {.v = calloc(t->n_gcs + 1, sizeof(*gcs.v)), .n = t->n_gcs};

	assert_non_null(gcs.v);
	for (size_t i = 0; i < t->n_gcs; i++) {
		const struct pic_gc_event *gc = &t->gcs[i];
		bool synced = gc->sync_ns < gc->start_ns;

		gcs.v[i] = (struct gc_span){.start = gc->start_ns - (synced ? gc->sync_ns : 0),
					    .work = gc->start_ns,
					    .end = gc->end_ns,
					    .tid = gc->tid,
					    .synced = synced};
	}
	return gcs;
}

/* Each thread has a capability of its own; which collections waited for. */
static void add_holds(struct picture *pic, struct pic_target *t, const struct seen_gcs *gcs)
{
	const struct pic_lanes *lanes = &t->lanes[LANE_THREAD];
	struct holds holds = {0};

	for (size_t i = 0; i < lanes->n; i++) {
		struct holding holding = {0};

		for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
			struct pic_slice s = lanes->v[i].slices[k];

			s.tid = lanes->v[i].tid;
			s.state = (uint8_t)(s.cap == NO_CAP ? CS_IDLE : cap_state_of(s.state));
			assert_int_equal(holds__see(&holds, gcs, &holding, &s), 0);
		}
	}
	for (size_t i = 0; i < gcs->n; i++)
		holds__fill(&holds, i, (struct pic_gc_event *)&t->gcs[i]);
	assert_int_equal(holds__fill_unsafe(&holds, gcs, pic, t), 0);
	free(holds.v);
}

/* The collector's slices that lie wholly before a collection's begin. */
static void add_sync(struct picture *pic, struct pic_target *t, const struct seen_gcs *gcs)
{
	const struct pic_lanes *lanes = &t->lanes[LANE_THREAD];
	struct pic_row *rows = picture__alloc(pic, 64, sizeof(*rows));

	assert_non_null(rows);
	t->gc.sync_rows = rows;
	for (size_t i = 0; i < lanes->n; i++)
		for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
			const struct pic_slice *s = &lanes->v[i].slices[k];

			for (size_t g = 0; g < gcs->n && s->state == ST_GC_WORK; g++)
				if (s->start_ns >= gcs->v[g].start && s->end_ns <= gcs->v[g].work)
					rows[t->gc.n_sync_rows++] = lanes->v[i].rows[k];
		}
}

static void add_overlaps(struct pic_target *t, const struct seen *seen)
{
	const struct pic_lanes *threads = &t->lanes[LANE_THREAD],
			       *caps = &t->lanes[LANE_CAPABILITY];
	struct overlaps o = {0};

	for (size_t i = 0; i < threads->n; i++)
		for (size_t k = 0; k < threads->v[i].n_slices; k++) {
			const struct piece piece = {.s = threads->v[i].slices[k]};

			assert_int_equal(overlaps__thread(&o, &piece, 1), 0);
		}
	for (size_t i = 0; i < caps->n; i++) {
		uint8_t was = 0;

		for (size_t k = 0; k < caps->v[i].n_slices; k++)
			assert_int_equal(overlaps__cap(&o, &was, &caps->v[i].slices[k]), 0);
	}
	assert_int_equal(overlaps__advance(&o, seen, AT(1000), true), 0);
	t->overlaps = o.sums;
	overlaps__free(&o);
}

struct found {
	struct picture *pic;
	const struct pic_finding *v;
	size_t n;
};

static void find_starved(const struct pic_target *target, struct pic_lane *lanes, size_t n,
			 const struct seen_points *starved, struct found *found)
{
	struct seen seen = {.gcs = gcs_of(target)};
	struct pic_target t = *target, *made;
	const struct sketch sketch = {
		.session = {.start_ns = T0, .end_ns = AT(1000), .frequency_hz = 99},
		.targets = &t,
		.n_targets = 1,
		.frames = frames,
		.n_frames = ARRAY_SIZE(frames),
		.stacks = stacks,
		.n_stacks = ARRAY_SIZE(stacks)};

	add_up(lanes, n);
	t.lanes[LANE_THREAD] = (struct pic_lanes){lanes, n};
	found->pic = kit_picture(&sketch, NULL);
	made = (struct pic_target *)picture__target(found->pic, 0);
	if (starved)
		seen.starved = *starved;
	add_holds(found->pic, made, &seen.gcs);
	add_sync(found->pic, made, &seen.gcs);
	add_overlaps(made, &seen);
	free(seen.gcs.v);
	assert_int_equal(findings__make(found->pic, made), 0);
	found->v = made->findings;
	found->n = made->n_findings;
	for (size_t i = 1; i < found->n; i++)
		assert_true(found->v[i - 1].ns >= found->v[i].ns);
}

static void find(const struct pic_target *target, struct pic_lane *lanes, size_t n,
		 struct found *found)
{
	find_starved(target, lanes, n, NULL, found);
}

static const struct pic_finding *the_only(const struct found *found, const char *kind)
{
	if (found->n != 1)
		fail_msg("%zu findings, should be 1; %s", found->n,
			 found->n ? found->v[0].text : "");
	assert_string_equal(found->v[0].kind, kind);
	return &found->v[0];
}

static void assert_says(const struct pic_finding *f, const char *what)
{
	if (!strstr(f->text, what))
		fail_msg("`%s` is not in: %s", what, f->text);
}

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
	/* nothing at all */
	find(&t, lanes, 0, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

static void test_gc_was_held_up(void **state)
{
	/* Two collections: the first waited from 100 to 400 for the lock, which began at 50; a
	 * checksum elsewhere had stopped at 200. The second from 500 to 550, wholly for the lock.
	 */
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 100, S_HASKELL, ST_HASKELL, 0, 10),
		     SLICE(100, 400, S_EMPTY, ST_GC_WAIT, 0, 0),
		     SLICE(400, 410, S_GC, ST_GC_WORK, 0, 1),
		     SLICE(410, 1000, S_HASKELL, ST_HASKELL, 0, 60)),
		LANE(2, SLICE(0, 50, S_HASKELL, ST_HASKELL, 1, 5),
		     SLICE(50, 60, S_LOCK, ST_UNSAFE_CALL_CPU, 1, 1),
		     SLICE(60, 400, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 1, 0),
		     SLICE(400, 495, S_HASKELL, ST_HASKELL, 1, 9),
		     SLICE(495, 545, S_LOCK, ST_UNSAFE_CALL_BLOCKED, 1, 0),
		     SLICE(545, 1000, S_HASKELL, ST_HASKELL, 1, 45)),
		LANE(3, SLICE(0, 200, S_SUM, ST_UNSAFE_CALL_CPU, 2, 5),
		     SLICE(200, 1000, S_EMPTY, ST_IDLE, NO_CAP, 5)),
	};
	struct pic_gc_event gcs[] = {
		{.start_ns = AT(400), .end_ns = AT(410), .sync_ns = 300 * MS, .tid = 1},
		{.start_ns = AT(550), .end_ns = AT(560), .sync_ns = 50 * MS, .tid = 1},
		{.start_ns = AT(700), .end_ns = AT(710), .sync_ns = UINT64_MAX},
	};
	struct pic_target t = {
		.capabilities = 3, .threaded = true, .gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "unsafe_call_held_up_gc");
	assert_int_equal(f->ns, 345 * MS);
	assert_string_equal(f->where, "Main.load (app/Load.hs:7)");
	assert_says(f, "GC waited 345 ms in 2 collections for capability 1 (longest 300 ms)");
	assert_says(f, "take_lock, called from Main.load");
	assert_says(f, "390 ms in all");
	picture__free(found.pic);
	/* nothing is known of the requests: what is left is that it slept */
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].sync_ns = UINT64_MAX;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "blocking_unsafe_call");
	assert_int_equal(f->ns, 390 * MS);
	assert_says(f, "(2 times, longest 340 ms)");
	picture__free(found.pic);
	/* a request that would have been before time began */
	gcs[0].sync_ns = UINT64_MAX - 1;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	the_only(&found, "blocking_unsafe_call");
	picture__free(found.pic);
}

static void test_several_capabilities(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 100, S_LOCK, ST_UNSAFE_CALL_CPU, 0, 0),
		     SLICE(100, 1000, S_HASKELL, ST_HASKELL, 0, 0)),
		LANE(2, SLICE(0, 200, S_HASKELL, ST_HASKELL, 3, 0),
		     SLICE(200, 300, S_LOCK, ST_UNSAFE_CALL_CPU, 3, 0),
		     SLICE(300, 1000, S_HASKELL, ST_HASKELL, 3, 0)),
	};
	struct pic_gc_event gcs[] = {
		{.start_ns = AT(100), .end_ns = AT(101), .sync_ns = 10 * MS, .tid = 2},
		{.start_ns = AT(300), .end_ns = AT(301), .sync_ns = 10 * MS, .tid = 1},
	};
	struct pic_target t = {.gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_says(the_only(&found, "unsafe_call_held_up_gc"),
		    "in 2 collections for capabilities 0 and 3 (longest 10.0 ms)");
	picture__free(found.pic);
}

static void test_gc_waited_for_a_loop(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 100, S_HASKELL, ST_HASKELL, 0, 10),
		     SLICE(100, 400, S_SPIN, ST_GC_WORK, 0, 30),
		     SLICE(400, 1000, S_HASKELL, ST_HASKELL, 0, 60)),
		LANE(2, SLICE(0, 390, S_HASKELL, ST_HASKELL, 1, 39),
		     SLICE(390, 1000, S_EMPTY, ST_IDLE, NO_CAP, 0)),
	};
	struct pic_gc_event gcs[] = {
		{.start_ns = AT(400), .end_ns = AT(401), .sync_ns = 300 * MS, .tid = 1},
		/* too short for samples to show */
		{.start_ns = AT(500), .end_ns = AT(501), .sync_ns = 5 * MS, .tid = 1},
	};
	struct pic_target t = {.gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(the_only(&found, "haskell_held_up_gc")->ns, 290 * MS);
	assert_says(&found.v[0],
		    "GC waited 290 ms in 1 collection for capability 1 while Main.load");
	picture__free(found.pic);
	/* it had no CPU for nearly all of the time: that is not its fault */
	lanes[1] = (struct pic_lane)LANE(2, SLICE(0, 110, S_HASKELL, ST_HASKELL, 1, 39),
					 SLICE(110, 400, S_HASKELL, ST_PREEMPTED, 1, 0));
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

static void test_no_stack(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 100, S_BARE, ST_UNSAFE_CALL_BLOCKED, 0, 0),
		     SLICE(100, 1000, S_HASKELL, ST_HASKELL, 0, 0)),
		LANE(2, SLICE(0, 50, S_EMPTY, ST_UNSAFE_CALL_BLOCKED, 0, 0)),
	};
	struct pic_target t = {0};
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	/* what slept since before the session has no name, and no advice */
	assert_int_equal(found.n, 1);
	assert_says(&found.v[0], "The unsafe call clock_nanosleep slept for 100 ms");
	assert_string_equal(found.v[0].where, "clock_nanosleep");
	picture__free(found.pic);
}

/* 300 000 null calls in 1 s, of which the probes took 0.72 s. */
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

static void find_hot(const struct pic_call *call, struct found *found)
{
	struct pic_lane lanes[] = {LANE(1, SLICE(0, 1000, S_HASKELL, ST_HASKELL, 0, 100))};
	struct pic_target t = {.threaded = true,
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
	struct pic_call call = hot;
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find_hot(&call, &found);
	f = the_only(&found, "safe_call_overhead");
	assert_int_equal(f->ns, 300000 * 60);
	assert_string_equal(f->where, "prog+0x42");
	assert_says(f, "The safe call null, called from Main.loop was made 300 000 times a second");
	assert_says(f, "less than 0.5 µs");
	picture__free(found.pic);

	/* half of the time without probes: twice as often, and no more than a bound */
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
	calls[1].p99_ns = 50000; /* some take long */
	calls[2].blocked_ns = 20 * MS;
	calls[3].calls = 4000;	/* too rare */
	calls[4].p50_ns = 3500; /* it works for 2 µs, 1.4 are the probes' */
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		find_hot(&calls[i], &found);
		if (found.n)
			fail_msg("case %zu: %s", i, found.v[0].text);
		picture__free(found.pic);
	}
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
	calls[0].calls = 10;
	calls[0].cap_wait_ns = 50 * MS;
	calls[1].calls = 20;
	calls[1].function = "query";
	calls[1].cap_wait_ns = 150 * MS;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "capability_wait");
	assert_int_equal(f->ns, 200 * MS);
	assert_says(f, "150 ms of it after query, called from Main.loop (20 calls)");
	picture__free(found.pic);
}

static void test_gc_share_and_spin(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     SLICE(300, 600, S_GC, ST_GC_WORK, 0, 30)),
		LANE(2, SLICE(0, 300, S_HASKELL, ST_HASKELL, 1, 30),
		     SLICE(300, 600, S_SPIN, ST_GC_WORK, 1, 30)),
	};
	struct pic_target t = {
		.gc = {.known = true, .count = 100, .pause_ns = 300 * MS, .max_pause_ns = 7 * MS}};
	struct found found;

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
	picture__free(found.pic);

	/* what the program takes of it */
	t.rts_opts = RTS_OPTS_ALL;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "+RTS -A64m");
	assert_null(strstr(found.v[0].text, "-with-rtsopts"));
	picture__free(found.pic);
	t.rts_opts = RTS_OPTS_SOME;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "relink it with -rtsopts");
	assert_says(the_only(&found, "gc_share"), "-with-rtsopts=-A64m");
	assert_null(strstr(found.v[0].text, "+RTS -A64m"));
	picture__free(found.pic);

	/* few and long */
	t.gc.count = 3;
	t.gc.max_pause_ns = 200 * MS;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "--nonmoving-gc");
	picture__free(found.pic);
}

/* A larger allocation area is no help against major collections. */
static void test_gc_share_major(void **state)
{
	struct pic_lane lanes[] = {LANE(1, SLICE(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
					SLICE(300, 600, S_GC, ST_GC_WORK, 0, 30))};
	struct pic_gc_event gcs[60];
	struct pic_target t = {.gc = {.known = true,
				      .count = ARRAY_SIZE(gcs),
				      .pause_ns = 300 * MS,
				      .max_pause_ns = 9 * MS},
			       .gcs = gcs,
			       .n_gcs = ARRAY_SIZE(gcs)};
	struct found found;

	(void)state;
	/* 30 of 1 ms, 30 of 9 ms */
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i] = (struct pic_gc_event){.start_ns = AT(300 + 5 * i),
					       .end_ns = AT(301 + 5 * i) + i % 2 * 8 * MS,
					       .sync_ns = UINT64_MAX,
					       .cap = NO_CAP,
					       .generation = (int)(i % 2)};
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"),
		    "30 collections of the youngest generation of 1.00 ms");
	assert_says(the_only(&found, "gc_share"), "30 major ones of 9.00 ms");
	assert_null(strstr(found.v[0].text, "-A64m"));
	picture__free(found.pic);
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].generation = 1 - gcs[i].generation;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "-A64m");
	picture__free(found.pic);
}

static void test_gc_share_inferred(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 300, S_HASKELL, ST_HASKELL, 0, 30),
		     SLICE(300, 600, S_GC, ST_RTS, 0, 30),
		     SLICE(600, 1000, S_HASKELL, ST_HASKELL, 0, 30)),
	};
	struct pic_target t = {.gc = {.known = true, .inferred = true, .pause_ns = 400 * MS}};
	struct found found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
	lanes[0].n_slices = 2;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "gc_share")->ns, 300 * MS);
	assert_says(&found.v[0], "took up to 50 % of");
	picture__free(found.pic);
	/* the runtime was busy with other things */
	t.gc.pause_ns = 20 * MS;
	find(&t, lanes, 1, &found);
	assert_int_equal(found.n, 0);
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
		/* too short to be more than a wake-up */
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
	picture__free(found.pic);

	/* nobody waits, but Haskell threads are ready */
	for (i = 0; i < ARRAY_SIZE(points); i++)
		points[i] = (struct pic_point){AT(700 + 5 * i), i == 7 ? 3 : 2};
	t.ticks = 200;
	find_starved(&t, lanes + 1, 1, &starved, &found);
	assert_int_equal(the_only(&found, "idle_capability")->ns, 110 * MS);
	assert_says(&found.v[0], "For about 110 ms (22 ticks of the RTS's timer)");
	assert_says(&found.v[0], "up to 3");
	picture__free(found.pic);
}

static void test_no_cpu(void **state)
{
	struct pic_lane lanes[] = {LANE(1, SLICE(0, 1000, S_HASKELL, ST_PREEMPTED, 0, 0))};
	const struct pic_lane cap = {
		.start_ns = T0,
		.end_ns = AT(1000),
		.states_ns = {
			[CS_HASKELL] = 300 * MS, [CS_PREEMPTED] = 300 * MS, [CS_IDLE] = 400 * MS}};
	struct pic_target t = {.lanes[LANE_CAPABILITY] = {&cap, 1}};
	struct found found;

	(void)state;
	find(&t, lanes, 1, &found);
	assert_int_equal(the_only(&found, "capability_preempted")->ns, 300 * MS);
	assert_says(&found.v[0], "50 % of their busy time");
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
	assert_says(&found.v[0], "was run 2 000 times a second");
	picture__free(found.pic);
	/* another OS thread's */
	lane.tid = 43;
	find(&t, &lane, 1, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
	/* not often */
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
		    "1 Haskell thread went to sleep in STM 6 000 times a second, 25.0 µs each");
	picture__free(found.pic);
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
		cmocka_unit_test(test_gc_share_major),
		cmocka_unit_test(test_gc_share_inferred),
		cmocka_unit_test(test_idle_capability),
		cmocka_unit_test(test_no_cpu),
		cmocka_unit_test(test_bound_thread),
		cmocka_unit_test(test_black_holes_and_mvars),
	};

	return cmocka_run_group_tests_name("findings", tests, NULL, NULL);
}

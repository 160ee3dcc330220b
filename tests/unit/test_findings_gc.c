/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What collections cost and what they waited for. */
#include "test_findings_kit.h"

static void test_gc_was_held_up(void **state)
{
	/* Two collections: the first waited from 100 to 400 for the lock, whose call began at
	 * 50, while a checksum elsewhere had ended at 200. The second waited from 500 to 545 for
	 * the lock. */
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
	assert_int_equal(f->longest.start_ns, AT(100));
	assert_int_equal(f->longest.end_ns, AT(400));
	assert_null(f->longest.lane);
	picture__free(found.pic);
	/* the requests' times are unknown: only the sleeping remains to be reported */
	for (size_t i = 0; i < ARRAY_SIZE(gcs); i++)
		gcs[i].sync_ns = UINT64_MAX;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_only(&found, "blocking_unsafe_call");
	assert_int_equal(f->ns, 390 * MS);
	assert_says(f, "(2 times, longest 340 ms)");
	/* the longest slice of that call */
	assert_int_equal(f->longest.end_ns - f->longest.start_ns, 340 * MS);
	assert_int_equal(f->longest.lane->kind, LANE_THREAD);
	picture__free(found.pic);
	/* a request before time 0 */
	gcs[0].sync_ns = UINT64_MAX - 1;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	the_only(&found, "blocking_unsafe_call");
	picture__free(found.pic);
}

/* Another collection waited longer, but for a capability without a CPU: it is not the longest of
 * these. */
static void test_longest_of_its_own(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 1000, S_HASKELL, ST_HASKELL, 0, 99)),
		LANE(2, SLICE(0, 100, S_HASKELL, ST_HASKELL, 1, 10),
		     SLICE(100, 140, S_LOCK, ST_UNSAFE_CALL_CPU, 1, 4),
		     SLICE(140, 200, S_HASKELL, ST_HASKELL, 1, 6),
		     SLICE(200, 300, S_HASKELL, ST_HASKELL, 1, 10),
		     SLICE(300, 400, S_HASKELL, ST_HASKELL, 1, 10),
		     SLICE(400, 600, S_HASKELL, ST_PREEMPTED, 1, 0),
		     SLICE(600, 700, S_HASKELL, ST_HASKELL, 1, 10),
		     SLICE(700, 900, S_HASKELL, ST_PREEMPTED, 1, 0),
		     SLICE(900, 1000, S_HASKELL, ST_HASKELL, 1, 10)),
	};
	struct pic_gc_event gcs[] = {
		{.start_ns = AT(140), .end_ns = AT(141), .sync_ns = 40 * MS, .tid = 1},
		{.start_ns = AT(400), .end_ns = AT(401), .sync_ns = 100 * MS, .tid = 1},
		/* with too little Haskell code to be the code's fault */
		{.start_ns = AT(610), .end_ns = AT(611), .sync_ns = 210 * MS, .tid = 1},
		{.start_ns = AT(900), .end_ns = AT(901), .sync_ns = 200 * MS, .tid = 1},
	};
	struct pic_target t = {.gcs = gcs, .n_gcs = ARRAY_SIZE(gcs)};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	find(&t, lanes, ARRAY_SIZE(lanes), &found);
	f = the_one(&found, "haskell_held_up_gc");
	assert_says(f, "GC waited 100 ms in 1 collection for capability 1 while");
	assert_int_equal(f->longest.start_ns, AT(300));
	assert_int_equal(f->longest.end_ns, AT(400));
	f = the_one(&found, "unsafe_call_held_up_gc");
	assert_says(f, "GC waited 40.0 ms in 1 collection for capability 1, held up by");
	assert_int_equal(f->longest.start_ns, AT(100));
	assert_int_equal(f->longest.end_ns, AT(140));
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
		/* too short to show in samples */
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
	/* without a CPU for nearly all of the time: not its fault */
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
	/* sleeping since before the session began: no name, no advice */
	assert_int_equal(found.n, 1);
	assert_says(&found.v[0], "The unsafe call clock_nanosleep slept for 100 ms");
	assert_string_equal(found.v[0].where, "clock_nanosleep");
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
	assert_says(&found.v[0], "100 collections averaging 3.00 ms, longest 7.00 ms");
	assert_says(&found.v[0], "-A64m");
	assert_string_equal(found.v[1].kind, "gc_spin");
	assert_int_equal(found.v[1].ns, 300 * MS);
	assert_says(&found.v[1], "30 of 60 samples");
	assert_string_equal(found.v[1].where, "sched_yield");
	assert_says(&found.v[1], "+RTS -qg, or -with-rtsopts=-qg when linking");
	picture__free(found.pic);
	t.rts_opts = RTS_OPTS_NONE;
	find(&t, lanes, 2, &found);
	assert_says(&found.v[1], "-qg, which this program does not accept after +RTS");
	picture__free(found.pic);

	/* only advice that the program accepts */
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

	/* no advice of a larger area if it is as large already, or if the program calls for
	 * collections */
	t.capabilities = 2;
	t.heap.nursery_bytes = UINT64_C(127) << 20;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "-A64m");
	picture__free(found.pic);
	t.heap.nursery_bytes = UINT64_C(128) << 20;
	find(&t, lanes, 1, &found);
	assert_null(strstr(the_only(&found, "gc_share")->text, "-A64m"));
	picture__free(found.pic);
	t.heap.nursery_bytes = 0;
	t.alloc.collections = 100;
	t.alloc.reasons[GC_REASON_FORCED] = 51;
	find(&t, lanes, 1, &found);
	assert_null(strstr(the_only(&found, "gc_share")->text, "-A64m"));
	picture__free(found.pic);
	t.alloc.reasons[GC_REASON_FORCED] = 0;

	/* few and long */
	t.gc.count = 3;
	t.gc.max_pause_ns = 200 * MS;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "--nonmoving-gc");
	picture__free(found.pic);
}

/* CPU time before a collection begins counts as garbage collection in all tables: the findings'
 * figures do not include it, and their texts report it in addition. */
static void test_gc_share_with_sync(void **state)
{
	struct pic_lane lanes[] = {
		LANE(1, SLICE(0, 200, S_HASKELL, ST_HASKELL, 0, 20),
		     SLICE(200, 400, S_SPIN, ST_GC_WORK, 0, 20),
		     SLICE(400, 800, S_GC, ST_GC_WORK, 0, 40)),
		LANE(2, SLICE(0, 200, S_HASKELL, ST_HASKELL, 1, 20),
		     SLICE(200, 400, S_HASKELL, ST_PREEMPTED, 1, 0),
		     SLICE(400, 800, S_SPIN, ST_GC_WORK, 1, 30)),
	};
	struct pic_gc_event gc = {
		.start_ns = AT(400), .end_ns = AT(800), .sync_ns = 200 * MS, .tid = 1};
	struct pic_target t = {
		.gc = {.known = true, .count = 1, .pause_ns = 400 * MS}, .gcs = &gc, .n_gcs = 1};
	struct found found;

	(void)state;
	find(&t, lanes, 2, &found);
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[0].kind, "gc_share");
	assert_int_equal(found.v[0].ns, 800 * MS);
	assert_says(&found.v[0],
		    "57 % of the program's CPU time (800 ms), or 71 % (1.00 s) including the wait "
		    "for capabilities before collections began: 1 collection of");
	assert_string_equal(found.v[1].kind, "gc_spin");
	assert_says(&found.v[1], "30 of 70 samples in garbage collection (and 20 more before "
				 "collections began), most in");
	picture__free(found.pic);
	/* the wait is unknown: all of it is garbage collection */
	gc.sync_ns = UINT64_MAX;
	find(&t, lanes, 2, &found);
	assert_says(&found.v[0], "71 % of the program's CPU time (1.00 s): 1 collection of");
	assert_says(&found.v[1], "50 of 90 samples in garbage collection, most in");
	picture__free(found.pic);
	/* too little to mention */
	gc.sync_ns = 200 * MS;
	lanes[0] = (struct pic_lane)LANE(1, SLICE(0, 200, S_HASKELL, ST_HASKELL, 0, 20),
					 SLICE(390, 400, S_SPIN, ST_GC_WORK, 0, 0),
					 SLICE(400, 800, S_GC, ST_GC_WORK, 0, 40));
	find(&t, lanes, 2, &found);
	assert_says(&found.v[0], "66 % of the program's CPU time (800 ms): 1 collection of");
	assert_says(&found.v[1], "30 of 70 samples in garbage collection, most in");
	picture__free(found.pic);
}

/* A larger allocation area does not help with major collections. */
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
		    "30 collections of the youngest generation averaging 1.00 ms");
	assert_says(the_only(&found, "gc_share"), "30 major ones averaging 9.00 ms");
	assert_says(the_only(&found, "gc_share"), "fewer of them by +RTS -F4");
	assert_null(strstr(found.v[0].text, "-A64m"));
	picture__free(found.pic);
	/* nor does a larger factor if the heap's size does not cause them */
	t.heap.major_reasons[GC_REASON_FORCED] = 29;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "fewer calls of performGC or performMajorGC");
	assert_null(strstr(found.v[0].text, "-F4"));
	picture__free(found.pic);
	t.heap.major_reasons[GC_REASON_IDLE] = 30;
	find(&t, lanes, 1, &found);
	assert_says(the_only(&found, "gc_share"), "fewer of them while the program is idle");
	assert_null(strstr(found.v[0].text, "-F4"));
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
		LANE(2, SLICE(0, 0, S_EMPTY, ST_IDLE, NO_CAP, 0)),
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
	/* during a pause as many threads collect as there are capabilities */
	t.gc.pause_ns = 300 * MS;
	t.capabilities = 2;
	lanes[1] = lanes[0];
	lanes[1].tid = 2;
	find(&t, lanes, 2, &found);
	assert_int_equal(the_only(&found, "gc_share")->ns, 600 * MS);
	picture__free(found.pic);
}

/* A log alone has no OS threads, only the states of capabilities and the lengths of collections. */
static void test_gc_share_of_log(void **state)
{
	struct pic_lane cap = {.kind = LANE_CAPABILITY,
			       .start_ns = T0,
			       .end_ns = AT(1000),
			       .states_ns = {[CS_HASKELL] = 300 * MS, [CS_GC] = 300 * MS}};
	struct pic_gc_event gcs[] = {{.start_ns = AT(100), .end_ns = AT(300)},
				     {.start_ns = AT(500), .end_ns = AT(600), .generation = 1}};
	struct pic_target t = {
		.gcs = gcs,
		.n_gcs = ARRAY_SIZE(gcs),
		.gc = {.known = true, .count = 2, .pause_ns = 300 * MS, .max_pause_ns = 200 * MS},
		.lanes = {[LANE_CAPABILITY] = {&cap, 1}}};
	const struct pic_finding *f;
	struct found found;

	(void)state;
	cap.states_ns[CS_IDLE] = 400 * MS;
	find(&t, NULL, 0, &found);
	f = the_only(&found, "gc_share");
	assert_int_equal(f->ns, 300 * MS);
	assert_says(f,
		    "took 50 % of the time in which capabilities were busy, and paused the "
		    "program for 300 ms: 1 collection of the youngest generation averaging 200 ms");
	assert_int_equal(f->longest.start_ns, AT(100));
	picture__free(found.pic);
	/* busy with other things for a long time */
	cap.states_ns[CS_HASKELL] = 690 * MS;
	cap.states_ns[CS_IDLE] = 10 * MS;
	find(&t, NULL, 0, &found);
	assert_int_equal(found.n, 0);
	picture__free(found.pic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gc_was_held_up),
		cmocka_unit_test(test_longest_of_its_own),
		cmocka_unit_test(test_several_capabilities),
		cmocka_unit_test(test_gc_waited_for_a_loop),
		cmocka_unit_test(test_no_stack),
		cmocka_unit_test(test_gc_share_and_spin),
		cmocka_unit_test(test_gc_share_with_sync),
		cmocka_unit_test(test_gc_share_major),
		cmocka_unit_test(test_gc_share_inferred),
		cmocka_unit_test(test_gc_share_of_log),
	};

	return cmocka_run_group_tests_name("findings of collections", tests, NULL, NULL);
}

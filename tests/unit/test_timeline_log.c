/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_timeline_log: the picture that is made of a log alone, from generated logs. */
#include "export/export.h"
#include "timeline_log_kit.h"

/* ── a small log ─────────────────────────────────────────────────────────────────────────── */

static void write_centres(struct writer *w)
{
	static const struct {
		uint32_t id;
		const char *label, *module, *src;
	} centres[] = {
		{9, "MAIN", "MAIN", "<built-in>"},     {8, "IDLE", "IDLE", "<built-in>"},
		{7, "SYSTEM", "SYSTEM", "<built-in>"}, {3, "main", "Main", "Main.hs:1:1-9"},
		{2, "fib", "Main", "Main.hs:2:1-9"},   {1, "$wgo", "Data.Thing", "Thing.hs:3:1-9"},
	};

	w_event(w, EL_PROF_BEGIN, 1, "l", MS);
	for (size_t i = 0; i < ARRAY_SIZE(centres); i++)
		w_event(w, EL_HEAP_PROF_COST_CENTRE, 10, "wsssb", centres[i].id, centres[i].label,
			centres[i].module, centres[i].src, 0);
}

static void tick(struct writer *w, uint64_t time, uint32_t cap, unsigned depth, uint32_t leaf,
		 uint32_t above, uint32_t root)
{
	if (depth == 1)
		w_event(w, EL_PROF_SAMPLE_COST_CENTRE, time, "wlbw", cap, time, 1, leaf);
	else if (depth == 2)
		w_event(w, EL_PROF_SAMPLE_COST_CENTRE, time, "wlbww", cap, time, 2, leaf, above);
	else
		w_event(w, EL_PROF_SAMPLE_COST_CENTRE, time, "wlbwww", cap, time, 3, leaf, above,
			root);
}

/* Times in half milliseconds: ticks fall on odd ones. */
static void write_log(struct writer *w)
{
	w_header(w);
	w_block(w, 0xffff, 1);
	write_centres(w);
	w_event(w, EL_RTS_IDENTIFIER, 11, "wt", 1, "GHC-9.0.2 rts_thr_p");
	w_event(w, EL_OSPROCESS_PID, 12, "ww", 1, 4242);
	w_event(w, EL_PROGRAM_ARGS, 13, "wss", 1, "/usr/bin/some", "-x");
	tick(w, 3 * MS / 2, 0, 2, 2, 3, 0);
	tick(w, 5 * MS / 2, 0, 3, 1, 2, 3);
	tick(w, 7 * MS / 2, 0, 1, 7, 0, 0);
	tick(w, 9 * MS / 2, 0, 1, 7, 0, 0);
	tick(w, 11 * MS / 2, 0, 2, 2, 3, 0);
	tick(w, 17 * MS / 2, 0, 1, 3, 0, 0);
	w_block_end(w, 10 * MS);
	w_block(w, 0, 2);
	w_event(w, EL_CREATE_THREAD, 100, "w", 1);
	w_event(w, EL_THREAD_LABEL, 101, "wt", 1, "main thread");
	w_event(w, EL_RUN_THREAD, 1 * MS, "w", 1);
	w_event(w, EL_USER_MARKER, 2 * MS, "t", "half way");
	w_event(w, EL_STOP_THREAD, 3 * MS, "whw", 1, EL_STOP_FOREIGN_CALL, 0);
	w_event(w, EL_RUN_THREAD, 5 * MS, "w", 1);
	w_event(w, EL_STOP_THREAD, 6 * MS, "whw", 1, EL_STOP_HEAP_OVERFLOW, 0);
	w_event(w, EL_GC_START, 6 * MS + MS / 2, "");
	w_event(w, EL_GC_GLOBAL_SYNC, 7 * MS, "");
	w_event(w, EL_GC_END, 7 * MS + MS / 2, "");
	w_event(w, EL_RUN_THREAD, 8 * MS, "w", 1);
	w_event(w, EL_STOP_THREAD, 9 * MS, "whw", 1, EL_STOP_FINISHED, 0);
	w_block_end(w, 10 * MS);
	w_end(w);
}

static void check_slice(const struct kit *k, const struct pic_slice *s, uint64_t start,
			uint64_t end, enum cap_state state, const char *stack)
{
	char text[512];

	assert_int_equal(s->start_ns, start);
	assert_int_equal(s->end_ns, end);
	assert_int_equal(s->state, state);
	assert_string_equal(stack_text(k, s->stack, text, sizeof(text)), stack);
}

static void t_capability(void **state)
{
	struct writer w = {0};
	struct kit k = {0};
	const struct pic_lane *lane;
	const struct pic_slice *s;
	uint32_t samples = 0;

	(void)state;
	write_log(&w);
	kit_read(&k, &w);
	check_picture(&k);
	assert_int_equal(k.target->lanes[LANE_CAPABILITY].n, 1);
	lane = &k.target->lanes[LANE_CAPABILITY].v[0];
	s = lane->slices;
	/*
	 * A run's first tick stands for the time before it; the next one takes over at that point.
	 */
	check_slice(&k, &s[1], 1 * MS, 3 * MS / 2, CS_HASKELL, "MAIN;Main.main;Main.fib");
	check_slice(&k, &s[2], 3 * MS / 2, 3 * MS, CS_HASKELL,
		    "MAIN;Main.main;Main.fib;Data.Thing.$wgo");
	check_slice(&k, &s[3], 3 * MS, 5 * MS, CS_IDLE, "");
	check_slice(&k, &s[4], 5 * MS, 6 * MS, CS_HASKELL, "MAIN;Main.main;Main.fib");
	/* It gave up its turn to a collection: the scheduler's time, not idleness. */
	check_slice(&k, &s[5], 6 * MS, 6 * MS + MS / 2, CS_RTS, "[RTS]");
	check_slice(&k, &s[6], 6 * MS + MS / 2, 7 * MS + MS / 2, CS_GC, "[GC]");
	check_slice(&k, &s[7], 7 * MS + MS / 2, 8 * MS, CS_IDLE, "");
	check_slice(&k, &s[8], 8 * MS, 9 * MS, CS_HASKELL, "MAIN;Main.main");
	assert_int_equal(lane->n_slices, 9);
	for (size_t i = 0; i < lane->n_slices; i++)
		samples += s[i].samples;
	assert_int_equal(samples, 6);
	assert_int_equal(s[1].tso, 1);
	kit_free(&k);
	w_free(&w);
}

static void t_the_rest(void **state)
{
	struct writer w = {0};
	struct kit k = {0};
	const struct pic_target *t;
	const struct pic_lane *tso;

	(void)state;
	write_log(&w);
	kit_read(&k, &w);
	t = k.target;
	assert_int_equal(t->pid, 4242);
	assert_string_equal(t->comm, "some");
	assert_string_equal(t->ghc_version, "9.0.2");
	assert_string_equal(t->way, "rts_thr_p");
	assert_true(t->threaded && t->profiled);
	assert_int_equal(t->gc.count, 1);
	assert_int_equal(t->gc.pause_ns, MS);
	assert_int_equal(t->n_gcs, 1);
	assert_int_equal(t->n_marks, 1);
	assert_string_equal(t->marks[0].text, "half way");
	assert_int_equal(t->marks[0].tso, 1);
	assert_int_equal(t->lanes[LANE_HASKELL].n, 1);
	tso = &t->lanes[LANE_HASKELL].v[0];
	assert_string_equal(tso->name, "main thread");
	assert_int_equal(tso->states_ns[HS_RUNNING], 4 * MS);
	assert_int_equal(tso->states_ns[HS_SAFE_CALL], 2 * MS);
	assert_int_equal(tso->states_ns[HS_GC], MS);
	assert_int_equal(t->ticks, 6);
	assert_string_equal(t->cost_centres[0].label, "fib");
	assert_int_equal(t->cost_centres[0].self_ticks, 2);
	assert_int_equal(t->cost_centres[0].total_ticks, 3);
	/* GHC's 100 %: without the two ticks of SYSTEM. */
	assert_int_equal(t->cc_nodes[0].inherited_ticks, 4);
	assert_int_equal(t->eventlog.samples, 6);
	assert_int_equal(picture__session(k.pic)->end_ns, 9 * MS);
	kit_free(&k);
	w_free(&w);
}

/* Whether the JSON report contains a text. */
static bool reports(const struct kit *k, const char *what)
{
	const struct export_opts all = {.verbose = true};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	bool found;

	assert_non_null(out);
	assert_int_equal(export_json.write(out, k->pic, &all), 0);
	assert_int_equal(fclose(out), 0);
	found = strstr(text, what) != NULL;
	free(text);
	return found;
}

/*
 * As GHC logs parallel collections: the capability that asks leads, and the others' parts begin
 * before its own.
 */
static void t_gc_waits(void **state)
{
	struct writer w = {0};
	struct kit k = {0};

	(void)state;
	w_header(&w);
	for (uint16_t cap = 0; cap < 3; cap++) {
		w_block(&w, cap, 1);
		for (unsigned i = 0; i < 10; i++) {
			/* leaders take turns, each after a different wait */
			uint64_t at = (1 + i) * 100 * MS, start = at + (10 + i) * MS;
			bool leads = cap == i % 3;

			if (leads)
				w_event(&w, EL_REQUEST_PAR_GC, at, "");
			w_event(&w, EL_GC_START, leads ? start : at + (1 + cap) * MS, "");
			if (leads)
				w_event(&w, EL_GC_GLOBAL_SYNC, start + MS, "");
			w_event(&w, EL_GC_END, start + 2 * MS + cap, "");
		}
		w_block_end(&w, 2000 * MS);
	}
	w_end(&w);
	kit_read(&k, &w);
	assert_int_equal(k.target->n_gcs, 10);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(k.target->gcs[i].start_ns, ((1 + i) * 100 + 10 + i) * MS);
		assert_int_equal(k.target->gcs[i].sync_ns, (10 + i) * MS);
	}
	/*
	 * OS threads waited for the collections to end, but the log does not show for how long:
	 * null, not 0
	 */
	assert_true(reports(&k, "\"wait_ns\":\tnull"));
	kit_free(&k);
	w_free(&w);
}

static void t_hide(void **state)
{
	struct writer w = {0};
	struct kit k = {.hide = {"fib"}, .n_hide = 1};
	char text[256];

	(void)state;
	write_log(&w);
	kit_read(&k, &w);
	check_picture(&k);
	assert_string_equal(k.target->cost_centres[0].label, "main");
	assert_int_equal(k.target->cost_centres[0].self_ticks, 3);
	assert_string_equal(stack_text(&k, k.target->lanes[LANE_CAPABILITY].v[0].slices[2].stack,
				       text, sizeof(text)),
			    "MAIN;Main.main;Data.Thing.$wgo");
	kit_free(&k);
	w_free(&w);
}

/* ── annotations ─────────────────────────────────────────────────────────────────────────── */

static void say(struct writer *w, uint64_t time, const char *text)
{
	w_event(w, EL_USER_MSG, time, "t", text);
}

static void check_call(const struct kit *k, const struct pic_slice *s, uint64_t start, uint64_t end,
		       const char *stack)
{
	char text[512];

	assert_int_equal(s->start_ns, start);
	assert_int_equal(s->end_ns, end);
	assert_int_equal(s->state, *stack ? ST_SAFE_CALL : ST_UNKNOWN);
	assert_string_equal(stack_text(k, s->stack, text, sizeof(text)), stack);
}

static void t_calls(void **state)
{
	struct writer w = {0};
	struct kit k = {0};
	const struct pic_slice *s;

	(void)state;
	w_header(&w);
	w_block(&w, 0xffff, 1);
	write_centres(&w);
	w_block_end(&w, 2000);
	w_block(&w, 0, 20);
	say(&w, 100, "START 0 foo");
	say(&w, 101, "ANN_SCC 0 foo [\"Main.main (Main.hs:1:1-9)\",\"Main.fib (Main.hs:2:1-9)\"]");
	say(&w, 102, "ANN_TH 0 foo 77");
	say(&w, 150, "ANN_CALL_TO 0x1000 0x0 77");
	say(&w, 170, "ANN_CALL_TO 0x2000 0x0 77");
	say(&w, 180, "ANN_CALL_RET 0x2000 0x0 77");
	say(&w, 190, "ANN_CALL_RET 0x1000 0x0 77");
	say(&w, 200, "STOP 0 foo");
	/* Another span overlaps it on the same OS thread, which hs-safescope cannot handle. */
	say(&w, 300, "START 1 bar of many words");
	say(&w, 301, "ANN_TH 1 bar of many words 77");
	say(&w, 350, "START 2 foo");
	say(&w, 351, "ANN_TH 2 foo 77");
	say(&w, 400, "END 1 bar of many words");
	say(&w, 450, "END 2 foo");
	say(&w, 500, "START only a window");
	say(&w, 600, "STOP only a window");
	say(&w, 700, "STOP 9 nothing");
	w_block_end(&w, 2000);
	w_end(&w);
	kit_read(&k, &w);
	check_picture(&k);
	assert_int_equal(k.target->lanes[LANE_THREAD].n, 1);
	assert_int_equal(k.target->lanes[LANE_THREAD].v[0].tid, 77);
	s = k.target->lanes[LANE_THREAD].v[0].slices;
	check_call(&k, &s[0], 100, 150, "MAIN;Main.main;Main.fib;foo");
	check_call(&k, &s[1], 150, 170, "MAIN;Main.main;Main.fib;foo;[0x1000]");
	check_call(&k, &s[2], 170, 180, "MAIN;Main.main;Main.fib;foo;[0x1000];[0x2000]");
	check_call(&k, &s[3], 180, 190, "MAIN;Main.main;Main.fib;foo;[0x1000]");
	check_call(&k, &s[4], 190, 200, "MAIN;Main.main;Main.fib;foo");
	check_call(&k, &s[5], 200, 300, "");
	check_call(&k, &s[6], 300, 350, "bar of many words");
	check_call(&k, &s[7], 350, 450, "foo");
	assert_int_equal(k.target->lanes[LANE_THREAD].v[0].n_slices, 8);
	assert_int_equal(k.target->n_calls, 3);
	/* All took 100 ns, so they are sorted by name. */
	assert_string_equal(k.target->calls[0].function, "bar of many words");
	assert_int_equal(k.target->calls[1].wall_ns, 100);
	assert_int_equal(k.target->calls[0].cpu_ns, UINT64_MAX);
	assert_int_equal(k.target->n_windows, 3);
	assert_true(is_missing(&k, "1 annotated calls overlap"));
	assert_true(is_missing(&k, "1 annotations without a matching begin or end"));
	kit_free(&k);
	w_free(&w);
}

/* ── damage ──────────────────────────────────────────────────────────────────────────────── */

/* Cut off anywhere, as a stream and as a file: a consistent picture, or none. */
static void t_cut_everywhere(void **state)
{
	struct writer w = {0};
	size_t pictures = 0;

	(void)state;
	write_log(&w);
	for (size_t cut = 0; cut <= w.len; cut++) {
		for (int file = 0; file < 2; file++) {
			int fd = file ? w_file(w.data, cut) : -1, err;
			struct eventlog *log;
			struct kit k = {0};

			kit_new(&k);
			log = log_models__reader(k.models);
			err = file ? eventlog__open_fd(log, fd) : eventlog__feed(log, w.data, cut);
			if (!err)
				err = eventlog__finish(log);
			assert_int_equal(err, 0);
			kit_picture(&k);
			check_picture(&k);
			pictures += k.target->lanes[LANE_CAPABILITY].n;
			kit_free(&k);
			fd__close(&fd);
		}
	}
	assert_true(pictures > 500);
	w_free(&w);
}

/* ── a long run ──────────────────────────────────────────────────────────────────────────── */

static void t_merged(void **state)
{
	struct writer w = {0};
	struct kit k = {0};
	const struct pic_lane *lane;
	uint64_t t = 1000, ran = 0;

	(void)state;
	w_header(&w);
	w_block(&w, 0, 1);
	for (unsigned i = 0; i < 300000; i++) {
		w_event(&w, EL_RUN_THREAD, t, "w", 1 + i % 3);
		w_event(&w, EL_STOP_THREAD, t + 700, "whw", 1 + i % 3, EL_STOP_MVAR, 0);
		t += 1000;
		ran += 700;
		if (i % 50000 == 49999) {
			w_block_end(&w, t);
			w_block(&w, 0, t);
		}
	}
	w_block_end(&w, t);
	w_end(&w);
	kit_read(&k, &w);
	check_picture(&k);
	lane = &k.target->lanes[LANE_CAPABILITY].v[0];
	assert_true(lane->merged_ns);
	assert_true(lane->n_slices < 140000);
	/* Merging does not change the sums. */
	assert_int_equal(lane->states_ns[CS_HASKELL], ran);
	kit_free(&k);
	w_free(&w);
}

/* ── reports ─────────────────────────────────────────────────────────────────────────────── */

static void t_report(void **state)
{
	static const char json[] =
		"{\"program\":\"prog\",\"arguments\":[],\"total_ticks\":7,\"tick_interval\":1000,"
		"\"initial_capabilities\":1,\"total_time\":0.007,\"total_alloc\":0,"
		"\"cost_centres\":[{\"id\":1,\"label\":\"MAIN\",\"module\":\"MAIN\",\"src_loc\":"
		"\"<built-in>\",\"is_caf\":false},{\"id\":2,\"label\":\"f\",\"module\":\"M\","
		"\"src_loc\":\"M.hs:1:1\",\"is_caf\":false}],\"profile\":{\"id\":1,\"entries\":0,"
		"\"alloc\":0,\"ticks\":2,\"children\":[{\"id\":2,\"entries\":1,\"alloc\":0,"
		"\"ticks\":5,\"children\":[]}]}}";
	struct kit k = {0};
	struct prof_info info;
	struct cctree *tree;
	char text[64];

	(void)state;
	assert_int_equal(prof__parse(json, strlen(json), &tree, &info), 0);
	k.log = (struct join_log){.path = "x.prof",
				  .tree = tree,
				  .interval_ns = MS,
				  .capabilities = 1,
				  .program = "prog +RTS -p"};
	assert_int_equal(timeline__new(NULL, "0", "eventlog", &k.tl), 0);
	assert_int_equal(timeline__add_log_target(k.tl, &k.log), 0);
	assert_int_equal(timeline__finish(k.tl, 0), 0);
	k.pic = timeline__picture(k.tl);
	k.target = picture__target(k.pic, 0);
	assert_string_equal(k.target->comm, "prog");
	assert_int_equal(k.target->n_cc_nodes, 2);
	assert_int_equal(k.target->cc_nodes[0].inherited_ticks, 7);
	assert_string_equal(stack_text(&k, k.target->cc_nodes[1].stack, text, sizeof(text)),
			    "MAIN;M.f");
	assert_int_equal(k.target->tick_ns, MS);
	assert_int_equal(k.target->lanes[LANE_CAPABILITY].n, 0);
	timeline__free(k.tl);
	cctree__free(tree);
}

/* Events that were read but did not fit into a model are lost, too. */
static void t_lost_share(void **state)
{
	struct writer w = {0};
	struct kit k = {0};

	(void)state;
	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	for (unsigned i = 1; i <= 20; i++)
		w_event(&w, EL_PROF_SAMPLE_COST_CENTRE, i * MS, "wlb", i % 2 ? 0 : 5000, 1ul, 0);
	w_block_end(&w, 21 * MS);
	w_end(&w);
	kit_read(&k, &w);
	assert_int_equal(k.log.left_out, 10);
	assert_int_equal(k.target->eventlog.damaged_bytes, 0);
	assert_int_equal(k.target->eventlog.events, 21);
	assert_true(k.target->lost_share > 0.47 && k.target->lost_share < 0.48);
	kit_free(&k);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_capability), cmocka_unit_test(t_the_rest),
		cmocka_unit_test(t_gc_waits),	cmocka_unit_test(t_hide),
		cmocka_unit_test(t_calls),	cmocka_unit_test(t_cut_everywhere),
		cmocka_unit_test(t_merged),	cmocka_unit_test(t_report),
		cmocka_unit_test(t_lost_share),
	};

	return cmocka_run_group_tests_name("timeline_log", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Annotations, heap and process from a log's events. */
#include "eventlog_models.h"

/* ── annotations ─────────────────────────────────────────────────────────────────────────── */

#define MSG(time, text) w_event(w, EL_USER_MSG, time, "t", text)

static void write_annotations(struct writer *w)
{
	w_header(w);
	w_block(w, EL_CAP_GLOBAL, 1);
	write_centres(w);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, 11, "wsssb", 30, "f.g", "Main.Sub", "S.hs:1:2", 0);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, 11, "wsssb", 31, ".", "Main", "M.hs:1:2", 0);
	w_block_end(w, 9000);
	w_block(w, 0, 1);
	MSG(100, "START 0 bar");
	MSG(101, "ANN_SCC 0 bar [\"Main.main (Main.hs:1:1-9)\",\"Main.Sub.f.g (S.hs:1:2)\","
		 "\"Main.. (M.hs:1:2)\",\"Other.\\\"x (O.hs)\"]");
	MSG(102, "ANN_TH 0 bar 14181");
	MSG(200, "STOP 0 bar");
	MSG(150, "a message of another kind");
	MSG(300, "START read the file"); /* several words, no number */
	MSG(301, "ANN_CCS read the file [\"Main.main (Main.hs:1:1-9)\"]");
	MSG(302, "ANN_TH read the file 14181");
	MSG(310, "START 7 inner"); /* nested, in the same thread */
	MSG(311, "ANN_TH 7 inner 14181");
	MSG(320, "END 7 inner");
	MSG(400, "END read the file");
	MSG(500, "START 1 bar"); /* overlapping */
	MSG(510, "START 2 bar");
	MSG(600, "STOP 1 bar");
	MSG(700, "STOP 2 bar");
	MSG(710, "STOP 3 bar");
	MSG(711, "ANN_TH 3 bar 5");
	MSG(712, "ANN_TH bar nonsense");
	MSG(713, "ANN_SCC 0 bar no list");
	MSG(714, "START");
	MSG(800, "ANN_CALL_TO 0x4000a0 0x400123 99");
	MSG(810, "ANN_CALL_TO 0x4000b0 0x400200 99");
	MSG(820, "ANN_CALL_RET 0x4000b0 0x400200 99");
	MSG(830, "ANN_CALL_TO 0x4000c0 0x400200 99"); /* never returns */
	MSG(840, "ANN_CALL_RET 0x4000a0 0x400123 99");
	MSG(850, "ANN_CALL_RET 0x4000a0 0x400123 99");
	MSG(900, "START -1 odd");
	w_block_end(w, 1000);
	w_end(w);
}

static void check_spans(const struct el_annot *a, struct cctree *tree)
{
	const struct el_span *s = el_annot__span(a, 0);
	struct cost_centre cc;

	assert_int_equal(s->start, 100);
	assert_int_equal(s->end, 200);
	assert_int_equal(s->tid, 14181);
	assert_string_equal(el_annot__string(a, s->label), "bar");
	/* The annotation's stack, innermost first. */
	cc = cctree__cc(tree, cctree__node(tree, s->node)->cc);
	assert_string_equal(cc.label, "\"x");
	assert_string_equal(cc.module, "Other");
	cc = cctree__cc(tree, cctree__node(tree, cctree__node(tree, s->node)->parent)->cc);
	assert_int_equal(cc.id, 31);
	s = el_annot__span(a, 1);
	assert_string_equal(el_annot__string(a, s->label), "read the file");
	assert_int_equal(s->end, 400);
	assert_int_equal(cctree__cc(tree, cctree__node(tree, s->node)->cc).id, 4);
	s = el_annot__span(a, 2);
	assert_int_equal(s->n, 7);
	assert_int_equal(s->end, 320);
	assert_int_equal(s->node, CC_NO_NODE);
	s = el_annot__span(a, 3);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->end, 600);
	assert_int_equal(el_annot__span(a, 4)->end, 700);
	s = el_annot__span(a, 5);
	assert_true(s->open_end);
	assert_int_equal(s->end, 1000);
	assert_string_equal(el_annot__string(a, s->label), "-1 odd");
}

static void check_sums(const struct el_annot *a)
{
	const struct el_annot_info info = el_annot__info(a);

	assert_int_equal(info.n_sums, 4);
	assert_int_equal(el_annot__sum(a, 0)->count, 3);
	assert_int_equal(el_annot__sum(a, 0)->total_ns, 100 + 100 + 190);
	assert_int_equal(el_annot__sum(a, 0)->min_ns, 100);
	assert_int_equal(el_annot__sum(a, 0)->max_ns, 190);

	assert_int_equal(info.n_ccalls, 3);
	assert_int_equal(el_annot__ccall(a, 0)->fn, 0x4000a0);
	assert_int_equal(el_annot__ccall(a, 0)->end, 840);
	assert_int_equal(el_annot__ccall(a, 1)->depth, 1);
	assert_int_equal(el_annot__ccall(a, 1)->end, 820);
	assert_true(el_annot__ccall(a, 2)->open_end);
}

static void t_annotations(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_annot *a;
	struct el_annot_info info;
	struct cctree *tree;

	(void)state;
	write_annotations(&w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	tree = el_profile__tree(p);
	assert_int_equal(el_annot__new(NULL, tree, NULL, &a), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	assert_int_equal(el_annot__attach(a, log), 0);
	log_read(log, &w);
	assert_int_equal(el_annot__finish(a, 1000), 0);
	info = el_annot__info(a);
	assert_int_equal(info.n_spans, 6);
	assert_int_equal(info.unmatched, 3);
	assert_int_equal(info.malformed, 3);
	assert_int_equal(info.overlaps, 1);
	check_spans(a, tree);
	check_sums(a);
	el_annot__free(a);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

/* The same label is open in two threads: the scheduler's events show whose STOP it is. */
static void t_annotations_by_thread(void **state)
{
	struct eventlog *log = log_new();
	struct writer log_of_two = {0}, *w = &log_of_two;
	struct el_sched *sched;
	struct el_annot *a;

	(void)state;
	w_header(w);
	w_block(w, 0, 1);
	w_event(w, EL_RUN_THREAD, 10, "w", 1);
	MSG(20, "START work");
	w_event(w, EL_STOP_THREAD, 30, "whw", 1, EL_STOP_YIELDING, 0);
	w_event(w, EL_RUN_THREAD, 40, "w", 2);
	MSG(50, "START work");
	w_event(w, EL_STOP_THREAD, 60, "whw", 2, EL_STOP_YIELDING, 0);
	w_event(w, EL_RUN_THREAD, 70, "w", 1);
	MSG(80, "STOP work");
	w_event(w, EL_STOP_THREAD, 90, "whw", 1, EL_STOP_YIELDING, 0);
	w_event(w, EL_RUN_THREAD, 100, "w", 2);
	MSG(120, "STOP work");
	w_block_end(w, 200);
	assert_int_equal(el_sched__new(NULL, &sched), 0);
	assert_int_equal(el_annot__new(NULL, NULL, sched, &a), 0);
	assert_int_equal(el_sched__attach(sched, log), 0);
	assert_int_equal(el_annot__attach(a, log), 0);
	log_read(log, w);
	assert_int_equal(el_annot__finish(a, 200), 0);
	assert_int_equal(el_annot__info(a).n_spans, 2);
	assert_int_equal(el_annot__span(a, 0)->start, 20);
	assert_int_equal(el_annot__span(a, 0)->end, 80);
	assert_int_equal(el_annot__span(a, 0)->thread, 1);
	assert_int_equal(el_annot__span(a, 1)->end, 120);
	assert_int_equal(el_annot__span(a, 1)->thread, 2);
	el_annot__free(a);
	el_sched__free(sched);
	eventlog__free(log);
	w_free(w);
}

/* Intervals before the window, each with its own label and stack, take no room from those in it. */
static void t_annotations_window(void **state)
{
	struct el_window win = {.from = 300000 * 100ull};
	struct eventlog *log = log_new();
	struct writer events = {0}, *w = &events;
	struct cctree *tree;
	struct el_profile *p;
	struct el_annot *a;
	char text[200];

	(void)state;
	w_header(w);
	w_block(w, EL_CAP_GLOBAL, 1);
	write_centres(w);
	w_block_end(w, 10);
	w_block(w, 0, 10);
	MSG(20, "START all of it");
	MSG(30, "ANN_CCS all of it [\"Main.main (Main.hs:1:1-9)\"]");
	MSG(40, "START 5000000000 large");
	MSG(41, "START 5000000000 large");
	for (unsigned i = 1; i < 300000; i++) {
		snprintf(text, sizeof(text), "START request %u, with a few words that it has", i);
		MSG(i * 100ull, text);
		snprintf(text, sizeof(text), "END request %u, with a few words that it has", i);
		MSG(i * 100ull + 50, text);
		if (i % 50000 == 0) {
			w_block_end(w, i * 100ull + 50);
			w_block(w, 0, i * 100ull + 50);
		}
	}
	for (unsigned i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "START wanted %u", i);
		MSG(win.from + i * 100, text);
		snprintf(text, sizeof(text), "END wanted %u", i);
		MSG(win.from + i * 100 + 50, text);
	}
	MSG(win.from + 600, "END 5000000000 large");
	MSG(win.from + 700, "END 5000000000 large");
	MSG(win.from + 1000, "END all of it");
	w_block_end(w, win.from + 1000);
	w_end(w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	tree = el_profile__tree(p);
	assert_int_equal(el_annot__new(&win, tree, NULL, &a), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	assert_int_equal(el_annot__attach(a, log), 0);
	log_read(log, w);
	assert_int_equal(el_annot__finish(a, win.from + 1000), 0);
	assert_int_equal(el_annot__info(a).dropped, 0);
	assert_int_equal(el_annot__info(a).unmatched, 0);
	assert_int_equal(el_annot__info(a).n_spans, 8);
	assert_int_equal(el_annot__info(a).n_sums, 7);
	/* sorted by begin; those that began before the window come first, the longest of them
	 * first, then by end */
	assert_string_equal(el_annot__string(a, el_annot__span(a, 0)->label), "all of it");
	assert_int_equal(cctree__cc(tree, cctree__node(tree, el_annot__span(a, 0)->node)->cc).id,
			 4);
	assert_int_equal(el_annot__span(a, 0)->end, win.from + 1000);
	assert_string_equal(el_annot__string(a, el_annot__span(a, 1)->label), "large");
	assert_int_equal(el_annot__span(a, 1)->end, win.from + 700);
	assert_string_equal(el_annot__string(a, el_annot__span(a, 2)->label), "large");
	for (unsigned i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "wanted %u", i);
		assert_string_equal(el_annot__string(a, el_annot__span(a, 3 + i)->label), text);
	}
	el_annot__free(a);
	el_profile__free(p);
	eventlog__free(log);
	w_free(w);
}

/* ── heap, process ───────────────────────────────────────────────────────────────────────── */

static const struct el_series *series_of(const struct el_heap *h, uint16_t kind, const char *name)
{
	for (size_t i = 0; i < el_heap__info(h).n_series; i++) {
		const struct el_series *s = el_heap__series(h, i);

		if (s->kind == kind && !strcmp(el_heap__string(h, s->name), name))
			return s;
	}
	return NULL;
}

static void t_heap(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_heap *h;
	const struct el_series *s;

	(void)state;
	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	write_centres(&w);
	w_event(&w, 160, 12, "blwsssssss", 0, 100ul, 1, "", "", "", "", "", "", "");
	for (uint64_t i = 0; i < 3; i++) {
		w_event(&w, EL_HEAP_PROF_SAMPLE_BEGIN, 100 + i * 100, "l", i);
		w_event(&w, EL_HEAP_PROF_SAMPLE_COST_CENTRE, 100 + i * 100, "blbww", 0, 50 + i, 2,
			3, 4);
		if (i != 1)
			w_event(&w, EL_HEAP_PROF_SAMPLE_STRING, 100 + i * 100, "bls", 0, 7ul,
				"ARR_WORDS");
		w_event(&w, EL_HEAP_PROF_SAMPLE_END, 101 + i * 100, "l", i);
	}
	w_event(&w, EL_TICKY_COUNTER_DEF, 400, "lhss", 0x1234ul, 2, "pp", "foo");
	w_event(&w, EL_TICKY_COUNTER_SAMPLE, 410, "llll", 0x1234ul, 5ul, 6ul, 7ul);
	w_event(&w, EL_TICKY_COUNTER_SAMPLE, 510, "llll", 0x1234ul, 8ul, 9ul, 10ul);
	w_block_end(&w, 600);
	w_block(&w, 1, 1);
	for (uint64_t i = 0; i < 100000; i++)
		w_event(&w, EL_HEAP_SIZE, 100 + i, "wl", 1, i);
	w_event(&w, EL_HEAP_ALLOCATED, 110000, "wl", 1, 17ul);
	w_event(&w, EL_GC_STATS_GHC, 110001, "whlllwlll", 1, 1, 10ul, 11ul, 12ul, 2, 13ul, 14ul,
		15ul);
	w_block_end(&w, 200000);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	assert_int_equal(el_heap__new(NULL, el_profile__tree(p), &h), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	assert_int_equal(el_heap__attach(h, log), 0);
	log_read(log, &w);
	s = series_of(h, ESK_PROFILE, "Main.fib/Main.main");
	assert_non_null(s);
	assert_int_equal(s->n, 3);
	assert_int_equal(s->p[2].value, 52);
	s = series_of(h, ESK_PROFILE, "ARR_WORDS");
	assert_int_equal(s->n, 3);
	assert_int_equal(s->p[1].time, 200);
	assert_int_equal(s->p[1].value, 0);
	s = series_of(h, ESK_TICKY_ENTRIES, "foo");
	assert_int_equal(s->n, 2);
	assert_int_equal(s->p[1].value, 8);
	s = series_of(h, ESK_HEAP, "allocated, capability 1");
	assert_int_equal(s->p[0].value, 17);
	/* A curve with too many points is thinned over its whole length. */
	s = series_of(h, ESK_HEAP, "heap size");
	assert_true(s->n > 10000 && s->n < 40000);
	assert_true(s->every > 1);
	assert_int_equal(s->p[0].time, 100);
	assert_int_equal(s->max_value, 99999);
	el_heap__free(h);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

static void t_info(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_info *i;
	struct el_process p;

	(void)state;
	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	w_event(&w, EL_OSPROCESS_PID, 2, "ww", 1, 4242);
	w_event(&w, EL_RTS_IDENTIFIER, 2, "wt", 1, "GHC-9.0.2 rts_thr_p");
	w_event(&w, EL_PROGRAM_ARGS, 2, "wsst", 1, "./prog", "+RTS", "-l");
	w_event(&w, EL_WALL_CLOCK_TIME, 5, "wlw", 1, 1700000000ul, 7);
	w_event(&w, EL_USER_MARKER, 9, "t", "here");
	w_block_end(&w, 10);
	assert_int_equal(el_info__new(NULL, NULL, &i), 0);
	assert_int_equal(el_info__attach(i, log), 0);
	log_read(log, &w);
	p = el_info__process(i);
	assert_int_equal(p.pid, 4242);
	assert_string_equal(p.rts, "GHC-9.0.2 rts_thr_p");
	assert_string_equal(p.program, "./prog");
	assert_string_equal(p.args, "./prog +RTS -l");
	assert_true(p.wall_known);
	assert_int_equal(p.wall_time_ns, 1700000000000000007ul);
	assert_int_equal(p.wall_at, 5);
	assert_int_equal(p.n_notes, 1);
	assert_string_equal(el_info__string(i, el_info__note(i, 0)->text), "here");
	el_info__free(i);
	eventlog__free(log);
	w_free(&w);
}

/* More markers before the window than are kept: those in the window are still there. */
static void t_info_window(void **state)
{
	static const char *const inside[] = {"begin", "one", "two", "three", "end"};
	struct el_window windows[] = {{.from_marker = "begin", .to_marker = "end"},
				      {.from = 3000000, .to = 3000004}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		struct eventlog *log = log_new();
		struct writer w = {0};
		struct el_info *info;

		w_header(&w);
		w_block(&w, 0, 1);
		for (unsigned k = 0; k < 200000; k++)
			w_event(&w, k % 2 ? EL_USER_MARKER : EL_USER_MSG, 10 * (k + 1), "t",
				"request");
		for (unsigned k = 0; k < ARRAY_SIZE(inside); k++)
			w_event(&w, EL_USER_MARKER, 3000000 + k, "t", inside[k]);
		w_event(&w, EL_USER_MARKER, 3000005, "t", "after it");
		w_block_end(&w, 3000010);
		assert_int_equal(el_info__new(&windows[i], NULL, &info), 0);
		assert_int_equal(el_window__attach(&windows[i], log), 0);
		assert_int_equal(el_info__attach(info, log), 0);
		log_read(log, &w);
		assert_int_equal(el_info__process(info).dropped, 0);
		assert_int_equal(el_info__process(info).n_notes, ARRAY_SIZE(inside));
		for (size_t k = 0; k < ARRAY_SIZE(inside); k++)
			assert_string_equal(el_info__string(info, el_info__note(info, k)->text),
					    inside[k]);
		el_info__free(info);
		eventlog__free(log);
		w_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_annotations),
		cmocka_unit_test(t_annotations_by_thread),
		cmocka_unit_test(t_annotations_window),
		cmocka_unit_test(t_heap),
		cmocka_unit_test(t_info),
		cmocka_unit_test(t_info_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

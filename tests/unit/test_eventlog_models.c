/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_eventlog_models: what is made of a log's events, over logs made here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog/lane.h"
#include "eventlog/u64map.h"
#include "eventlog_writer.h"

static struct eventlog *log_new(void)
{
	struct eventlog *log;

	assert_int_equal(eventlog__new(NULL, &log), 0);
	return log;
}

static void log_read(struct eventlog *log, const struct writer *w)
{
	assert_int_equal(eventlog__feed(log, w->data, w->len), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	assert_int_equal(eventlog__stats(log)->misfits, 0);
}

/* ── cost centres ────────────────────────────────────────────────────────────────────────── */

static const struct {
	uint32_t id;
	const char *label, *module, *src;
	int caf;
} centres[] = {
	{20, "IDLE", "IDLE", "<built-in>", 0},
	{19, "GC", "GC", "<built-in>", 0},
	{18, "SYSTEM", "SYSTEM", "<built-in>", 0},
	{17, "MAIN", "MAIN", "<built-in>", 0},
	{16, "OVERHEAD_of", "PROFILING", "<built-in>", 0},
	{5, "CAF", "Main", "<entire-module>", 1},
	{4, "main", "Main", "Main.hs:1:1-9", 0},
	{3, "fib", "Main", "Main.hs:2:1-9", 0},
	{2, "$wgo", "Data.Thing", "Data/Thing.hs:3:1", 0},
	{1, "GC", "Main", "Main.hs:9:1-9", 0}, /* the program's own, of a borrowed name */
};

static void write_centres(struct writer *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(centres); i++)
		w_event(w, EL_HEAP_PROF_COST_CENTRE, 10, "wsssb", centres[i].id, centres[i].label,
			centres[i].module, centres[i].src, centres[i].caf);
}

/* main 1, main>fib 3, main>fib>$wgo 2 on capability 0, IDLE 5 and GC 1 on capability 1. */
static void write_samples(struct writer *w)
{
	uint64_t t = 1000000;

	w_header(w);
	w_block(w, EL_CAP_GLOBAL, 5);
	w_event(w, EL_PROF_BEGIN, 6, "l", 1000000ul);
	write_centres(w);
	for (unsigned i = 0; i < 6; i++, t += 1000000) {
		uint64_t at = t + (i == 3 ? 7 : 0); /* ticks jitter */

		if (i == 0)
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbw", 0, 1ul, 1, 4);
		else if (i < 4)
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbww", 0, 1ul, 2, 3, 4);
		else
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbwww", 0, 1ul, 3, 2, 3, 4);
		w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbw", 1, 1ul, 1, i == 2 ? 19 : 20);
	}
	/* Eight ticks missed; then a stack of nothing, which is MAIN. */
	w_event(w, EL_PROF_SAMPLE_COST_CENTRE, t + 8000000, "wlb", 0, 2ul, 0);
	w_block_end(w, t + 9000000);
	w_end(w);
}

static const struct cc_node *node_of(struct cctree *tree, const char *label, uint32_t *ret)
{
	for (uint32_t i = 0; i < cctree__n_nodes(tree); i++) {
		struct cc_node *n = cctree__node(tree, i);

		if (!strcmp(cctree__cc(tree, n->cc).label, label)) {
			if (ret)
				*ret = i;
			return n;
		}
	}
	return NULL;
}

static void t_profile(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_profile_info info;
	struct cctree_totals totals;
	struct cctree *tree;
	const struct slices *lane;

	(void)state;
	write_samples(&w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	log_read(log, &w);
	info = el_profile__info(p);
	assert_int_equal(info.samples, 13);
	assert_int_equal(info.interval_ns, 1000000);
	assert_int_equal(info.n_lanes, 2);
	assert_int_equal(info.unknown_centres, 0);
	tree = el_profile__tree(p);
	assert_int_equal(cctree__inherit(tree, &totals), 0);
	assert_int_equal(totals.ticks, 7);
	assert_int_equal(totals.ignored_ticks, 6);
	assert_int_equal(totals.kind_ticks[CCK_IDLE], 5);
	assert_int_equal(totals.kind_ticks[CCK_GC], 1);
	assert_int_equal(totals.kind_ticks[CCK_MAIN], 1);
	assert_int_equal(cctree__node(tree, CC_ROOT)->inherited_ticks, 7);
	assert_int_equal(node_of(tree, "main", NULL)->ticks, 1);
	assert_int_equal(node_of(tree, "main", NULL)->inherited_ticks, 6);
	assert_int_equal(node_of(tree, "fib", NULL)->ticks, 3);
	assert_int_equal(node_of(tree, "fib", NULL)->inherited_ticks, 5);
	/* Equal neighbours are one slice, on true times; missed ticks are a hole. */
	lane = el_profile__lane(p, 0)->lane;
	assert_int_equal(lane->n, 4);
	assert_int_equal(lane->v[0].start_ns, 0);
	assert_int_equal(lane->v[0].end_ns, 1000000);
	assert_int_equal(lane->v[1].end_ns, 4000007);
	assert_int_equal(lane->v[2].end_ns, 6000000);
	assert_int_equal(lane->v[3].start_ns, 14000000);
	assert_int_equal(lane->v[3].end_ns, 15000000);
	assert_int_equal(lane->v[3].stack, CC_ROOT);
	lane = el_profile__lane(p, 1)->lane;
	assert_int_equal(lane->n, 3);
	assert_int_equal(lane->v[1].state, CS_GC);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

static void t_filter(void **state)
{
	static const char *const fib[] = {"fib"}, *const thing[] = {"Data.*"},
				 *const full[] = {"Main.fib"}, *const idle[] = {"IDLE"};
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct cctree *tree, *less;
	struct cctree_totals totals;
	uint32_t *map, from, to;

	(void)state;
	write_samples(&w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	log_read(log, &w);
	tree = el_profile__tree(p);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(cctree__filter(tree, i ? full : fib, 1, NULL, 0, &less, &map), 0);
		assert_null(node_of(less, "fib", NULL));
		assert_int_equal(node_of(less, "main", &to)->ticks, 4);
		assert_non_null(node_of(tree, "fib", &from));
		assert_int_equal(map[from], to);
		assert_int_equal(node_of(less, "$wgo", NULL)->ticks, 2);
		assert_int_equal(cctree__inherit(less, &totals), 0);
		assert_int_equal(totals.ticks, 7);
		assert_int_equal(cctree__cc(less, node_of(less, "main", NULL)->cc).id, 4);
		cctree__free(less);
		free(map);
	}
	/* Only one module: the rest of the program goes to the root, the RTS's own stay. */
	assert_int_equal(cctree__filter(tree, NULL, 0, thing, 1, &less, &map), 0);
	assert_null(node_of(less, "main", NULL));
	assert_int_equal(node_of(less, "$wgo", NULL)->ticks, 2);
	assert_int_equal(cctree__node(less, CC_ROOT)->ticks, 5);
	assert_int_equal(node_of(less, "IDLE", NULL)->ticks, 5);
	cctree__free(less);
	free(map);
	assert_int_equal(cctree__filter(tree, idle, 1, NULL, 0, &less, &map), 0);
	assert_int_equal(node_of(less, "IDLE", NULL)->ticks, 5);
	cctree__free(less);
	free(map);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

static void t_kinds(void **state)
{
	static const enum cc_kind want[] = {CCK_IDLE,	  CCK_GC,     CCK_SYSTEM,  CCK_MAIN,
					    CCK_OVERHEAD, CCK_CAF,    CCK_PROGRAM, CCK_PROGRAM,
					    CCK_PROGRAM,  CCK_PROGRAM};
	struct cctree *tree;
	uint32_t cc, again;

	(void)state;
	assert_int_equal(cctree__new(&tree), 0);
	for (size_t i = 0; i < ARRAY_SIZE(centres); i++) {
		assert_int_equal(cctree__define(tree, centres[i].id, centres[i].label,
						strlen(centres[i].label), centres[i].module,
						strlen(centres[i].module), centres[i].src,
						strlen(centres[i].src), centres[i].caf),
				 0);
		assert_int_equal(cctree__cc_by_id(tree, centres[i].id, &cc), 0);
		assert_int_equal(cctree__cc(tree, cc).kind, want[i]);
		assert_int_equal(cctree__cc_by_name(tree, centres[i].label, centres[i].module,
						    centres[i].src, &again),
				 0);
		assert_int_equal(cc, again);
	}
	/* MAIN is the root's own centre. */
	assert_int_equal(cctree__n_ccs(tree), ARRAY_SIZE(centres));
	/* Used before it is defined. */
	assert_int_equal(cctree__cc_by_id(tree, 99, &cc), 0);
	assert_false(cctree__cc(tree, cc).known);
	assert_string_equal(cctree__cc(tree, cc).label, "cost centre 99");
	assert_int_equal(cctree__define(tree, 99, "late", 4, "M", 1, "M.hs", 4, false), 0);
	assert_int_equal(cctree__cc_by_id(tree, 99, &again), 0);
	assert_int_equal(cc, again);
	assert_string_equal(cctree__cc(tree, cc).label, "late");
	assert_int_equal(cctree__find_cc(tree, "late", "M", NULL), cc);
	assert_int_equal(cctree__find_cc(tree, "late", "M", "other"), CC_NO_NODE);
	cctree__free(tree);
}

/* ── the map under them ──────────────────────────────────────────────────────────────────── */

/* Against an array, through growth and deletions in every order. */
static void t_u64map(void **state)
{
	struct u64map m = {0};
	uint32_t want[512], seed = 99;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		want[i] = U64MAP_NONE;
	assert_int_equal(u64map__get(&m, 1), U64MAP_NONE);
	u64map__del(&m, 1);
	for (uint32_t round = 0; round < 50000; round++) {
		uint32_t k;

		seed = seed * 1664525u + 1013904223u;
		k = (seed >> 8) % ARRAY_SIZE(want);
		if (seed >> 31) {
			assert_int_equal(u64map__put(&m, k * 0x100000001ull, round), 0);
			want[k] = round;
		} else {
			u64map__del(&m, k * 0x100000001ull);
			want[k] = U64MAP_NONE;
		}
		if (round % 500)
			continue;
		for (k = 0; k < ARRAY_SIZE(want); k++)
			assert_int_equal(u64map__get(&m, k * 0x100000001ull), want[k]);
	}
	u64map__free(&m);
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

static struct pic_slice slice(uint64_t start_ns, uint64_t end_ns, uint32_t tso, uint8_t state)
{
	return (struct pic_slice){
		.start_ns = start_ns, .end_ns = end_ns, .tso = tso, .state = state, .exact = 1};
}

static void t_lane_merges(void **state)
{
	struct lane_room room = {.max = 50};
	struct lane lane = {.room = &room, .kind = LANE_CAPABILITY};
	uint64_t total = 0, ns[CS_MAX] = {0};
	size_t most = 0;

	(void)state;
	/* 9 of 10 ns are a thread's; 2,000,000 slices in room for what a lane has at least. */
	for (uint64_t i = 0; i < 1000000; i++) {
		struct pic_slice a = slice(i * 10, i * 10 + 9, 1, CS_HASKELL);
		struct pic_slice b = slice(i * 10 + 9, i * 10 + 10, 0, CS_IDLE);

		assert_int_equal(lane__put(&lane, &a), 0);
		assert_int_equal(lane__put(&lane, &b), 0);
		most = MAX(most, lane.slices.n);
		assert_int_equal(room.used, lane.slices.n);
	}
	assert_int_equal(lane__end(&lane), 0);
	assert_true(most <= LANE_LEAST);
	assert_true(lane.slices.merged_ns > 0);
	assert_int_equal(lane.slices.v[0].start_ns, 0);
	for (size_t i = 0; i < lane.slices.n; i++) {
		const struct pic_slice *s = &lane.slices.v[i];

		assert_true(s->end_ns > s->start_ns);
		assert_int_equal(s->start_ns, total);
		total = s->end_ns;
		ns[s->state] += s->end_ns - s->start_ns;
	}
	assert_int_equal(total, 10000000);
	/* what ran and what was idle is as long as before */
	assert_int_equal(ns[CS_HASKELL], 9000000);
	assert_int_equal(ns[CS_IDLE], 1000000);
	lane__free(&lane);
	assert_int_equal(room.used, 0);
}

/* Lanes that share room: what one has, another cannot have. */
static void t_lane_room(void **state)
{
	struct lane_room room = {.max = 20000};
	struct lane lanes[30];
	size_t most = 0;

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(lanes); k++)
		lanes[k] = (struct lane){.room = &room, .kind = LANE_HASKELL};
	for (uint64_t i = 0; i < 30000; i++)
		for (size_t k = 0; k < ARRAY_SIZE(lanes); k++) {
			struct pic_slice s =
				slice(i * 10, i * 10 + 5, 1, i % 2 ? HS_RUNNING : HS_BLOCKED_MVAR);

			/* the first has much before the others come */
			if (k && i < 15000)
				break;
			s.end_ns += 5;
			assert_int_equal(lane__put(&lanes[k], &s), 0);
			most = MAX(most, room.used);
		}
	assert_true(most <= room.max + ARRAY_SIZE(lanes) * LANE_LEAST);
	for (size_t k = 0; k < ARRAY_SIZE(lanes); k++) {
		assert_int_equal(lane__end(&lanes[k]), 0);
		assert_int_equal(lanes[k].slices.v[lanes[k].slices.n - 1].end_ns, 300000);
		assert_true(lanes[k].slices.cap <= 2 * LANE_LEAST || !k);
		lane__free(&lanes[k]);
	}
	assert_int_equal(room.used, 0);
}

/* Back in time: cut, and counted; what is left of nothing is left out. */
static void t_lane_order(void **state)
{
	const struct pic_slice in[] = {slice(10, 20, 0, CS_HASKELL), slice(5, 30, 1, CS_HASKELL),
				       slice(15, 18, 2, CS_HASKELL), slice(30, 40, 1, CS_HASKELL)};
	struct lane_room room = {.max = 100};
	struct lane lane = {.room = &room, .kind = LANE_CAPABILITY};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		assert_int_equal(lane__put(&lane, &in[i]), 0);
	assert_int_equal(room.unordered, 2);
	assert_int_equal(lane.slices.n, 2);
	assert_int_equal(lane.slices.v[1].start_ns, 20);
	assert_int_equal(lane.slices.v[1].end_ns, 40);
	lane__free(&lane);
}

/* ── scheduler ───────────────────────────────────────────────────────────────────────────── */

struct calls {
	unsigned n;
	uint64_t ns;
};

static int on_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		   uint16_t cap_after)
{
	struct calls *c = ctx;

	assert_int_equal(thread, 2);
	assert_int_equal(cap, 0);
	assert_int_equal(cap_after, 1);
	c->n++;
	c->ns += end - start;
	return 0;
}

/*
 * Thread 1 on capability 0: runs 100-200, yields, waits through a GC 250-350, runs 400-500,
 * ends. Thread 2: created 210, runs 500-600 on 0, calls C 600-900, runs on 1 900-1000, blocks.
 */
static void write_sched(struct writer *w)
{
	w_header(w);
	w_block(w, EL_CAP_GLOBAL, 1);
	w_event(w, EL_CAP_CREATE, 2, "h", 0);
	w_event(w, EL_CAP_CREATE, 2, "h", 1);
	w_block_end(w, 2000);
	w_block(w, 0, 1);
	w_event(w, EL_CREATE_THREAD, 90, "w", 1);
	w_event(w, EL_THREAD_LABEL, 95, "wt", 1, "main thread");
	w_event(w, EL_RUN_THREAD, 100, "w", 1);
	w_event(w, EL_STOP_THREAD, 200, "whw", 1, EL_STOP_YIELDING, 0);
	w_event(w, EL_CREATE_THREAD, 210, "w", 2);
	w_event(w, EL_GC_START, 250, "");
	w_event(w, 21, 260, "");
	w_event(w, 22, 340, "");
	w_event(w, EL_GC_GLOBAL_SYNC, 345, "");
	w_event(w, EL_GC_END, 350, "");
	w_event(w, EL_RUN_THREAD, 400, "w", 1);
	w_event(w, EL_STOP_THREAD, 500, "whw", 1, EL_STOP_FINISHED, 0);
	w_event(w, EL_THREAD_WAKEUP, 501, "wh", 1, 0); /* GHC posts such, after the end */
	w_event(w, EL_RUN_THREAD, 500, "w", 2);
	w_event(w, EL_STOP_THREAD, 600, "whw", 2, EL_STOP_FOREIGN_CALL, 0);
	w_block_end(w, 2000);
	w_block(w, 1, 1);
	w_event(w, EL_GC_START, 255, "");
	w_event(w, EL_GC_END, 360, "");
	w_event(w, EL_RUN_THREAD, 900, "w", 2);
	w_event(w, EL_STOP_THREAD, 1000, "whw", 2, EL_STOP_MVAR, 0);
	w_block_end(w, 2000);
	w_end(w);
}

static void t_sched(void **state)
{
	struct eventlog *log = log_new();
	struct calls calls = {0};
	const struct el_sched_opts opts = {.thread_lanes = 10, .on_call = on_call, .ctx = &calls};
	struct writer w = {0};
	struct el_sched *s;
	struct el_sched_info info;
	const struct el_thread *t;
	const struct el_cap *c;

	(void)state;
	write_sched(&w);
	assert_int_equal(el_sched__new(&opts, &s), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	log_read(log, &w);
	assert_int_equal(el_sched__finish(s, 2000), 0);
	info = el_sched__info(s);
	assert_int_equal(info.n_caps, 2);
	assert_int_equal(info.n_threads, 2);
	assert_int_equal(info.gcs, 1);
	assert_int_equal(info.gc_pause_ns, 100);
	assert_int_equal(info.odd, 0);
	assert_int_equal(calls.n, 1);
	assert_int_equal(calls.ns, 300);

	t = el_sched__find_thread(s, 1);
	assert_string_equal(t->label, "main thread");
	assert_true(t->finished);
	assert_int_equal(t->state_ns[HS_RUNNING], 200);
	assert_int_equal(t->state_ns[HS_GC], 100);
	assert_int_equal(t->state_ns[HS_RUNNABLE], 10 + 50 + 50);
	assert_int_equal(t->end, 500);
	assert_int_equal(t->lane->n, 6);
	t = el_sched__find_thread(s, 2);
	assert_int_equal(t->state_ns[HS_SAFE_CALL], 300);
	assert_int_equal(t->state_ns[HS_RUNNING], 200);
	assert_int_equal(t->state_ns[HS_BLOCKED_MVAR], 1000);
	assert_int_equal(t->state_ns[HS_GC], 100);
	assert_int_equal(t->safe_calls, 1);
	assert_null(el_sched__find_thread(s, 3));

	c = el_sched__cap(s, 0);
	assert_int_equal(c->state_ns[CS_HASKELL], 300);
	assert_int_equal(c->state_ns[CS_GC], 100);
	assert_int_equal(c->state_ns[CS_HASKELL] + c->state_ns[CS_GC] + c->state_ns[CS_IDLE] +
				 c->state_ns[CS_RTS],
			 2000 - 2);
	c = el_sched__cap(s, 1);
	assert_int_equal(c->state_ns[CS_HASKELL], 100);
	/* To the end of the collection, not of its own part in it. */
	assert_int_equal(c->state_ns[CS_GC], 95);
	el_sched__free(s);
	eventlog__free(log);
	w_free(&w);
}

static void t_window(void **state)
{
	struct el_window win = {.from = 450, .to = 950};
	const struct el_sched_opts opts = {.window = &win};
	struct el_window marks = {.from_marker = "begin", .to_marker = "end"};
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_sched *s;

	(void)state;
	write_sched(&w);
	assert_int_equal(el_sched__new(&opts, &s), 0);
	assert_int_equal(el_window__attach(&win, log), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	log_read(log, &w);
	assert_int_equal(el_sched__finish(s, 2000), 0);
	assert_int_equal(el_sched__find_thread(s, 1)->state_ns[HS_RUNNING], 50);
	assert_int_equal(el_sched__find_thread(s, 2)->state_ns[HS_RUNNING], 150);
	assert_int_equal(el_sched__find_thread(s, 2)->state_ns[HS_SAFE_CALL], 300);
	assert_int_equal(el_sched__info(s).gcs, 0);
	el_sched__free(s);
	eventlog__free(log);
	w_free(&w);

	/* By markers in another buffer: the merge puts them where they belong. */
	log = log_new();
	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	for (unsigned i = 1; i <= 10; i++)
		w_event(&w, EL_PROF_SAMPLE_COST_CENTRE, i * 1000, "wlb", 0, 1ul, 0);
	w_block_end(&w, 20000);
	w_block(&w, 0, 1);
	w_event(&w, EL_USER_MARKER, 100, "t", "end of the beginning");
	w_event(&w, EL_USER_MARKER, 3500, "t", "begin 1");
	w_event(&w, EL_USER_MARKER, 4500, "t", "begin 2");
	w_event(&w, EL_USER_MARKER, 7500, "t", "end 1");
	w_event(&w, EL_USER_MARKER, 9500, "t", "end 2");
	w_block_end(&w, 20000);
	assert_int_equal(el_profile__new(&marks, &p), 0);
	assert_int_equal(el_window__attach(&marks, log), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	log_read(log, &w);
	assert_true(marks.opened && marks.closed);
	assert_int_equal(el_profile__info(p).samples, 4);
	assert_int_equal(el_profile__info(p).outside, 6);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

/* ── annotations ─────────────────────────────────────────────────────────────────────────── */

#define MSG(time, text) w_event(&w, EL_USER_MSG, time, "t", text)

static void t_annotations(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_annot *a;
	struct el_annot_info info;
	const struct el_span *s;
	struct cctree *tree;
	struct cost_centre cc;

	(void)state;
	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	write_centres(&w);
	w_event(&w, EL_HEAP_PROF_COST_CENTRE, 11, "wsssb", 30, "f.g", "Main.Sub", "S.hs:1:2", 0);
	w_event(&w, EL_HEAP_PROF_COST_CENTRE, 11, "wsssb", 31, ".", "Main", "M.hs:1:2", 0);
	w_block_end(&w, 9000);
	w_block(&w, 0, 1);
	MSG(100, "START 0 bar");
	MSG(101, "ANN_SCC 0 bar [\"Main.main (Main.hs:1:1-9)\",\"Main.Sub.f.g (S.hs:1:2)\","
		 "\"Main.. (M.hs:1:2)\",\"Other.\\\"x (O.hs)\"]");
	MSG(102, "ANN_TH 0 bar 14181");
	MSG(200, "STOP 0 bar");
	MSG(150, "a message of another kind");
	MSG(300, "START read the file"); /* many words, no number */
	MSG(301, "ANN_CCS read the file [\"Main.main (Main.hs:1:1-9)\"]");
	MSG(302, "ANN_TH read the file 14181");
	MSG(310, "START 7 inner"); /* nested, same thread */
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
	w_block_end(&w, 1000);
	w_end(&w);
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

	s = el_annot__span(a, 0);
	assert_int_equal(s->start, 100);
	assert_int_equal(s->end, 200);
	assert_int_equal(s->tid, 14181);
	assert_string_equal(el_annot__string(a, s->label), "bar");
	/* The stack, innermost first. */
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
	el_annot__free(a);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

/* One label open on two threads at once: whose STOP it is shows from the scheduler's events. */
static void t_annotations_by_thread(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_sched *sched;
	struct el_annot *a;

	(void)state;
	w_header(&w);
	w_block(&w, 0, 1);
	w_event(&w, EL_RUN_THREAD, 10, "w", 1);
	MSG(20, "START work");
	w_event(&w, EL_STOP_THREAD, 30, "whw", 1, EL_STOP_YIELDING, 0);
	w_event(&w, EL_RUN_THREAD, 40, "w", 2);
	MSG(50, "START work");
	w_event(&w, EL_STOP_THREAD, 60, "whw", 2, EL_STOP_YIELDING, 0);
	w_event(&w, EL_RUN_THREAD, 70, "w", 1);
	MSG(80, "STOP work");
	w_event(&w, EL_STOP_THREAD, 90, "whw", 1, EL_STOP_YIELDING, 0);
	w_event(&w, EL_RUN_THREAD, 100, "w", 2);
	MSG(120, "STOP work");
	w_block_end(&w, 200);
	assert_int_equal(el_sched__new(NULL, &sched), 0);
	assert_int_equal(el_annot__new(NULL, NULL, sched, &a), 0);
	assert_int_equal(el_sched__attach(sched, log), 0);
	assert_int_equal(el_annot__attach(a, log), 0);
	log_read(log, &w);
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
	w_free(&w);
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
	/* Too long a curve: thinner, from its beginning to its end. */
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
	assert_int_equal(el_info__new(NULL, &i), 0);
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

/* ── GHC's reports ───────────────────────────────────────────────────────────────────────── */

static const char prof_text[] =
	"\tSat Nov 21 10:06 2026 Time and Allocation Profiling Report  (Final)\n\n"
	"\t   Pp +RTS -N2 -p -RTS 3000\n\n"
	"\ttotal time  =        0.50 secs   (1000 ticks @ 1000 us, 2 processors)\n"
	"\ttotal alloc =     877,424 bytes  (excludes profiling overheads)\n\n"
	"COST CENTRE MODULE           SRC                  %time %alloc\n\n"
	"bar         Main             P.hs:12:27-76         50.0    0.0\n\n\n"
	"                                                   individual      inherited\n"
	"COST CENTRE  MODULE   SRC              no.     entries  %time %alloc   %time %alloc\n\n"
	"MAIN         MAIN     <built-in>       126           0    0.6    4.3   100.0  100.0\n"
	" CAF         Main     <entire-module>  251           0    0.0    0.1     0.6   84.7\n"
	"  main       Main     my dir/P.hs:(14,1)-(27,21) 252  1   25.0    0.0     0.6   84.5\n"
	"   fib       Main     P.hs:10:1-78     254       57313    0.6    0.0     0.6   84.5\n"
	"garbage\n"
	" main        Main     my dir/P.hs:(14,1)-(27,21) 253  0   73.8   95.6    74.0   15.3\n";

static void t_prof_text(void **state)
{
	struct prof_info info;
	struct cctree *tree;
	struct cc_node *n;
	char *cut;

	(void)state;
	assert_int_equal(prof__parse(prof_text, strlen(prof_text), &tree, &info), 0);
	assert_string_equal(info.program, "Pp +RTS -N2 -p -RTS 3000");
	assert_int_equal(info.total_ticks, 1000);
	assert_int_equal(info.tick_interval_us, 1000);
	assert_int_equal(info.capabilities, 2);
	assert_false(info.has_ticks);
	assert_int_equal(info.skipped, 1);
	assert_int_equal(cctree__n_nodes(tree), 5);
	n = cctree__node(tree, 2);
	assert_string_equal(cctree__cc(tree, n->cc).srcloc, "my dir/P.hs:(14,1)-(27,21)");
	assert_int_equal(n->ticks, 250);
	assert_int_equal(n->permille_inherited_time, 6);
	assert_int_equal(cctree__node(tree, 3)->ticks, 6);
	assert_int_equal(cctree__node(tree, 4)->parent, CC_ROOT);
	assert_int_equal(cctree__node(tree, 4)->cc, n->cc);
	assert_int_equal(cctree__kind(tree, 1), CCK_CAF);
	cctree__free(tree);
	/* Cut anywhere: refused or read, never worse. */
	for (size_t len = 0; len < strlen(prof_text); len++) {
		cut = malloc(len + 1);
		memcpy(cut, prof_text, len);
		if (!prof__parse(cut, len, &tree, &info))
			cctree__free(tree);
		free(cut);
	}
}

static void t_prof_json(void **state)
{
	static const char text[] =
		"{\"program\": \"Pp\", \"total_time\": 0.01, \"total_ticks\": 26,"
		"\"tick_interval\": 1000, \"total_alloc\":1009072, \"initial_capabilities\": 2,"
		"\"cost_centres\": [{\"id\": 3, \"label\": \"MAIN\", \"module\": \"MAIN\","
		"\"src_loc\": \"<built-in>\", \"is_caf\": false}, {\"id\": 2, \"label\": \"fib\","
		"\"module\": \"Main\", \"src_loc\": \"P.hs:1\", \"is_caf\": false}],"
		"\"profile\": {\"id\": 3, \"entries\": 0, \"alloc\": 5, \"ticks\": 1, \"children\":"
		"[{\"id\": 2, \"entries\": 4, \"alloc\": 6, \"ticks\": 25, \"children\": []}]}}";
	static const char *const bad[] = {"", "{", "{}", "[1]", "{\"profile\": 3}", "hello\n"};
	struct prof_info info;
	struct cctree *tree;

	(void)state;
	assert_int_equal(prof__parse(text, strlen(text), &tree, &info), 0);
	assert_true(info.has_ticks);
	assert_int_equal(info.total_ticks, 26);
	assert_int_equal(cctree__n_nodes(tree), 2);
	assert_int_equal(cctree__node(tree, 0)->ticks, 1);
	assert_int_equal(cctree__node(tree, 1)->ticks, 25);
	assert_string_equal(cctree__cc(tree, cctree__node(tree, 1)->cc).label, "fib");
	cctree__free(tree);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(prof__parse(bad[i], strlen(bad[i]), &tree, &info), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_profile),
		cmocka_unit_test(t_filter),
		cmocka_unit_test(t_u64map),
		cmocka_unit_test(t_kinds),
		cmocka_unit_test(t_lane_merges),
		cmocka_unit_test(t_lane_room),
		cmocka_unit_test(t_lane_order),
		cmocka_unit_test(t_sched),
		cmocka_unit_test(t_window),
		cmocka_unit_test(t_annotations),
		cmocka_unit_test(t_annotations_by_thread),
		cmocka_unit_test(t_heap),
		cmocka_unit_test(t_info),
		cmocka_unit_test(t_prof_text),
		cmocka_unit_test(t_prof_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

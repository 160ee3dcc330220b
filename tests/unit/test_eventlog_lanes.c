/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lanes of a log: how the number of slices is bounded, and which slices the scheduler's events
 * make. */
#include "eventlog/lane_priv.h"
#include "eventlog/u64map_priv.h"
#include "eventlog_models.h"

/* ── the map under them ──────────────────────────────────────────────────────────────────── */

/* Compared with an array, through growth and deletions in every order. */
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
	/* 9 of 10 ns belong to a thread; 2,000,000 slices in the minimum room of a lane. */
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
	/* time running and time idle are unchanged */
	assert_int_equal(ns[CS_HASKELL], 9000000);
	assert_int_equal(ns[CS_IDLE], 1000000);
	lane__free(&lane);
	assert_int_equal(room.used, 0);
}

/* Lanes share a limit: what one lane uses, another cannot. */
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

			/* the first lane has grown large before the others start */
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

/* A slice that goes back in time is cut and counted; one of which nothing remains is dropped. */
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
 * Thread 1 on capability 0: runs 100-200, yields, waits through a GC 250-350, runs 400-500, ends.
 * Thread 2: created 210, runs 500-600 on 0, calls C 600-900, runs on 1 900-1000, blocks.
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
	w_event(w, EL_THREAD_WAKEUP, 501, "wh", 1, 0); /* GHC emits these even after the end */
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
	/* To the end of the whole collection, not of this capability's part in it. */
	assert_int_equal(c->state_ns[CS_GC], 95);
	el_sched__free(s);
	eventlog__free(log);
	w_free(&w);
}

/* ── more threads than are kept ──────────────────────────────────────────────────────────── */

#define MANY	  300000
#define KEPT	  (1u << 18)
#define WANTED	  1000 /* the last ones */
#define TURN_NS	  10000
#define LONG_TID  (MANY + 1)
#define LONG_NS	  9800 /* of the thread that ran longest, before the others, */
#define IDLE_NS	  100  /* and the time between it and them */
#define LONG_ENDS (TURN_NS - IDLE_NS)

/*
 * As written by a server that forks a thread per request: one after the other, each runs for 5 us,
 * is in a safe call for 1 us, runs for 3 us, ends. One in 100 is woken after its end.
 */
static void write_many(struct writer *w)
{
	char label[101] = {0};

	memset(label, 'r', 100);
	w_header(w);
	w_block(w, 0, 1);
	w_event(w, EL_RUN_THREAD, LONG_ENDS - LONG_NS, "w", LONG_TID);
	w_event(w, EL_STOP_THREAD, LONG_ENDS, "whw", LONG_TID, EL_STOP_FINISHED, 0);
	for (uint32_t i = 1; i <= MANY; i++) {
		uint64_t at = (uint64_t)i * TURN_NS;

		w_event(w, EL_CREATE_THREAD, at, "w", i);
		w_event(w, EL_THREAD_LABEL, at, "wt", i, label);
		w_event(w, EL_RUN_THREAD, at, "w", i);
		w_event(w, EL_STOP_THREAD, at + 5000, "whw", i, EL_STOP_FOREIGN_CALL, 0);
		w_event(w, EL_RUN_THREAD, at + 6000, "w", i);
		w_event(w, EL_STOP_THREAD, at + 9000, "whw", i, EL_STOP_FINISHED, 0);
		if (i % 100 == 0)
			w_event(w, EL_THREAD_WAKEUP, at + 9500, "wh", i, 0);
		if (i % 20000 == 0) {
			w_block_end(w, at + 9500);
			w_block(w, 0, at + 9500);
		}
	}
	w_block_end(w, (MANY + 1ull) * TURN_NS);
	w_end(w);
}

static int count_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		      uint16_t cap_after)
{
	struct calls *c = ctx;

	(void)cap, (void)cap_after;
	assert_int_equal(start, (uint64_t)thread * TURN_NS + 5000);
	c->n++;
	c->ns += end - start;
	return 0;
}

static struct el_sched *read_many(const struct writer *w, const struct el_sched_opts *opts)
{
	struct eventlog *log = log_new();
	struct el_sched *s;

	assert_int_equal(el_sched__new(opts, &s), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	log_read(log, w);
	assert_int_equal(el_sched__finish(s, (MANY + 1ull) * TURN_NS), 0);
	eventlog__free(log);
	return s;
}

/* The capability ran all of them, and threads from before the window take no room from those
 * in it. */
static void t_many_threads(void **state)
{
	const struct el_window win = {.from = (uint64_t)(MANY - WANTED + 1) * TURN_NS};
	struct calls calls = {0};
	const struct el_sched_opts late = {.window = &win, .on_call = count_call, .ctx = &calls};
	struct writer w = {0};
	const struct el_cap *c;
	struct el_sched *s;
	size_t inside = 0;

	(void)state;
	write_many(&w);
	s = read_many(&w, NULL);
	c = el_sched__cap(s, 0);
	assert_int_equal(c->runs, 2ull * MANY + 1);
	assert_int_equal(c->state_ns[CS_HASKELL], 8000ull * MANY + LONG_NS);
	assert_int_equal(c->state_ns[CS_IDLE], 2000ull * MANY + IDLE_NS);
	assert_int_equal(el_sched__info(s).odd, 0);
	/* those that ran less than others give way */
	assert_int_equal(el_sched__info(s).n_threads, KEPT);
	assert_int_equal(el_sched__info(s).n_given_up, MANY + 1 - KEPT);
	assert_non_null(el_sched__find_thread(s, LONG_TID));
	assert_non_null(el_sched__find_thread(s, MANY));
	assert_int_equal(el_sched__find_thread(s, MANY)->state_ns[HS_RUNNING], 8000);
	assert_int_equal(el_sched__find_thread(s, MANY)->safe_calls, 1);
	el_sched__free(s);

	s = read_many(&w, &late);
	c = el_sched__cap(s, 0);
	assert_int_equal(c->state_ns[CS_HASKELL], 8000ull * WANTED);
	assert_int_equal(c->state_ns[CS_IDLE], 2000ull * WANTED);
	assert_int_equal(el_sched__info(s).dropped, 0);
	assert_int_equal(calls.n, WANTED);
	assert_int_equal(calls.ns, 1000ull * WANTED);
	for (size_t i = 0; i < el_sched__info(s).n_threads; i++) {
		const struct el_thread *t = el_sched__thread(s, i);

		assert_true(t->finished);
		if (t->tid <= MANY - WANTED)
			continue;
		inside++;
		assert_int_equal(t->state_ns[HS_RUNNING], 8000);
		assert_int_equal(t->state_ns[HS_SAFE_CALL], 1000);
		assert_non_null(t->label);
		assert_ptr_equal(el_sched__find_thread(s, t->tid), t);
	}
	assert_int_equal(inside, WANTED);
	assert_null(el_sched__find_thread(s, 1));
	el_sched__free(s);
	w_free(&w);
}

/* A program that is killed has written its buffers up to different times. What its capabilities did
 * after that is unknown, and so is what the threads that were last on them did. */
static void t_cut_off(void **state)
{
	const struct el_sched_opts opts = {.thread_lanes = 10};
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_sched *s;
	const struct el_thread *t;

	(void)state;
	w_header(&w);
	w_block(&w, 0, 1);
	w_event(&w, EL_RUN_THREAD, 100, "w", 1);
	w_event(&w, EL_STOP_THREAD, 5000, "whw", 1, EL_STOP_MVAR, 0);
	w_event(&w, EL_CREATE_THREAD, 5100, "w", 4);
	w_event(&w, EL_MIGRATE_THREAD, 5200, "wh", 4, 7);
	w_block_end(&w, 9000);
	w_block(&w, 1, 1);
	w_event(&w, EL_RUN_THREAD, 200, "w", 2);
	w_event(&w, EL_STOP_THREAD, 300, "whw", 2, EL_STOP_FOREIGN_CALL, 0);
	w_event(&w, EL_RUN_THREAD, 400, "w", 3);
	w_block_end(&w, 1000);
	assert_int_equal(el_sched__new(&opts, &s), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	log_read(log, &w);
	for (uint16_t cap = 0; cap < 8; cap++)
		el_sched__cut(s, cap, eventlog__cap_reaches(log, cap));
	assert_int_equal(el_sched__finish(s, 8000), 0);
	assert_int_equal(el_sched__cap(s, 0)->state_ns[CS_UNKNOWN], 0);
	assert_int_equal(el_sched__cap(s, 1)->state_ns[CS_HASKELL], 100 + 600);
	assert_int_equal(el_sched__cap(s, 1)->state_ns[CS_UNKNOWN], 7000);
	assert_int_equal(el_sched__find_thread(s, 1)->state_ns[HS_BLOCKED_MVAR], 3000);
	t = el_sched__find_thread(s, 2);
	assert_int_equal(t->state, HS_SAFE_CALL);
	assert_int_equal(t->state_ns[HS_SAFE_CALL], 700);
	assert_int_equal(t->state_ns[HS_UNKNOWN], 7000);
	assert_int_equal(el_sched__find_thread(s, 3)->state_ns[HS_RUNNING], 600);
	/* its new capability has no buffer at all */
	t = el_sched__find_thread(s, 4);
	assert_int_equal(t->state_ns[HS_RUNNABLE], 100);
	assert_int_equal(t->state_ns[HS_UNKNOWN], 2800);
	el_sched__free(s);
	eventlog__free(log);
	w_free(&w);
}

/* Reads the part of the log of write_sched() that is in the window. */
static struct el_sched *read_part(struct el_window *win)
{
	const struct el_sched_opts opts = {.window = win};
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_sched *s;

	write_sched(&w);
	assert_int_equal(el_sched__new(&opts, &s), 0);
	assert_int_equal(el_window__attach(win, log), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	log_read(log, &w);
	assert_int_equal(el_sched__finish(s, 2000), 0);
	eventlog__free(log);
	w_free(&w);
	return s;
}

static void t_window(void **state)
{
	struct el_window win = {.from = 450, .to = 950};
	struct el_window marks = {.from_marker = "begin", .to_marker = "end"};
	struct el_sched *s = read_part(&win);
	struct eventlog *log;
	struct writer w = {0};
	struct el_profile *p;

	(void)state;
	assert_int_equal(el_sched__find_thread(s, 1)->state_ns[HS_RUNNING], 50);
	assert_int_equal(el_sched__find_thread(s, 2)->state_ns[HS_RUNNING], 150);
	assert_int_equal(el_sched__find_thread(s, 2)->state_ns[HS_SAFE_CALL], 300);
	assert_int_equal(el_sched__info(s).gcs, 0);
	el_sched__free(s);

	/* The window is given by markers in another buffer, which the merge puts in order. */
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

/* A collection at the window's edge counts with its part in the window, as in the lanes. */
static void t_gc_at_the_edge(void **state)
{
	static const struct {
		uint64_t from, to, start, end;
	} cases[] = {
		{0, 0, 250, 350},     {200, 300, 250, 300}, {300, 0, 300, 350},
		{300, 320, 300, 320}, {0, 250, 0, 0},	    {350, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct el_window win = {.from = cases[i].from, .to = cases[i].to};
		uint64_t ns = cases[i].end - cases[i].start;
		struct el_sched *s = read_part(&win);

		assert_int_equal(el_sched__info(s).gcs, ns != 0);
		assert_int_equal(el_sched__info(s).n_gcs, ns != 0);
		assert_int_equal(el_sched__info(s).gc_pause_ns, ns);
		assert_int_equal(el_sched__info(s).gc_max_pause_ns, ns);
		if (ns) {
			assert_int_equal(el_sched__gc(s, 0)->start, cases[i].start);
			assert_int_equal(el_sched__gc(s, 0)->end, cases[i].end);
		}
		el_sched__free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_u64map),	    cmocka_unit_test(t_lane_merges),
		cmocka_unit_test(t_lane_room),	    cmocka_unit_test(t_lane_order),
		cmocka_unit_test(t_sched),	    cmocka_unit_test(t_many_threads),
		cmocka_unit_test(t_cut_off),	    cmocka_unit_test(t_window),
		cmocka_unit_test(t_gc_at_the_edge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

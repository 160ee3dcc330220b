/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics of recorded sessions: counters never decrease, wherever a session is cut and whenever it
 * is read, and they add up to what the session's picture has.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "capture/capture.h"
#include "lanes/lanes.h"
#include "metrics/metrics_priv.h"
#include "picture/make.h"
#include "scraped.h"
#include "timeline/timeline.h"

#define MS UINT64_C(1000000)

struct watched {
	struct metrics *m;
	uint64_t every_ns, next_ns;
	struct scraped last;
	unsigned readings, windows;
	bool set;
};

static void at(void *ctx, struct timeline *tl, uint64_t ns, bool last)
{
	struct watched *w = ctx;
	struct scraped now;

	if (!w->set) {
		timeline__set_figures(tl, metrics__take, w->m);
		/* a process that has already ended when it is first seen is not shown */
		assert_int_equal(timeline__figures(tl, ns), 0);
	}
	w->set = true;
	if (!w->next_ns)
		w->next_ns = ns + w->every_ns;
	if (!w->every_ns || (ns < w->next_ns && !last))
		return;
	w->next_ns = ns + w->every_ns;
	assert_int_equal(timeline__figures(tl, ns), 0);
	now = scrape(w->m);
	check_histograms(&now);
	check_grown(&w->last, &now);
	scraped_free(&w->last);
	w->last = now;
	w->readings++;
}

static int window(void *ctx, struct picture *pic)
{
	struct watched *w = ctx;

	w->windows++;
	picture__free(pic);
	return 0;
}

static struct replay *replay(const char *name, const struct replay_hooks *hooks)
{
	const char *slash = strrchr(__FILE__, '/');
	struct replay *r;
	char path[1024];
	FILE *in;

	snprintf(path, sizeof(path), "%.*s/../data/capture/%s", slash ? (int)(slash - __FILE__) : 1,
		 slash ? __FILE__ : ".", name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(replay__read(in, name, hooks, &r), 0);
	fclose(in);
	return r;
}

/* Returns the metrics at the end of the session. */
static struct scraped watch(const char *name, uint64_t window_ns, uint64_t every_ns,
			    struct watched *ret_watched)
{
	struct watched w = {.every_ns = every_ns};
	const struct replay_hooks hooks = {
		.ctx = &w, .at = at, .window_ns = window_ns, .window = window};
	struct scraped end;

	assert_int_equal(metrics__new(&w.m), 0);
	replay__free(replay(name, &hooks));
	end = scrape(w.m);
	check_histograms(&end);
	check_grown(&w.last, &end);
	scraped_free(&w.last);
	metrics__free(w.m);
	*ret_watched = w;
	return end;
}

#define ROUNDED 1e-8 /* relative error of a sum of doubles */

static uint64_t lanes_ns(const struct picture *pic, enum lane_kind kind, unsigned state)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_lanes *lanes = &picture__target(pic, i)->lanes[kind];

		for (size_t k = 0; k < lanes->n; k++)
			ns += lanes->v[k].states_ns[state];
	}
	return ns;
}

/* more: seconds that may be shown in excess, as they turned out later to be of another state. */
static void check_states(const struct scraped *s, const struct picture *pic, enum lane_kind kind,
			 bool off_only, double more)
{
	const char *name = kind == LANE_THREAD ? "safescoped_thread_seconds_total"
					       : "safescoped_capability_seconds_total";
	char state[64];
	double shown;
	unsigned n = 0;

	for (unsigned i = 0; i < state__count(kind); i++) {
		uint64_t ns = lanes_ns(pic, kind, i);

		if (off_only && state__on_cpu(kind, i))
			continue;
		snprintf(state, sizeof(state), "state=\"%s\"", state__name(kind, i));
		n += ns > 0;
		shown = sum_of(s, name, state);
		if (!near(shown - more / 2, ns, more / 2 + ROUNDED))
			print_message("          %s: %" PRIu64 " ns, shown %.9f\n", state, ns,
				      shown);
		assert_true(near(shown - more / 2, ns, more / 2 + ROUNDED));
	}
	assert_true(n > 0);
}

static void check_events(const struct scraped *s, const struct picture *pic)
{
	uint64_t calls = 0, wall = 0, wait = 0, gcs = 0, pause = 0;

	for (size_t k = 0; k < picture__n_targets(pic); k++) {
		const struct pic_target *t = picture__target(pic, k);

		gcs += t->gc.count;
		pause += t->gc.pause_ns;
		for (size_t i = 0; i < t->n_calls; i++) {
			calls += t->calls[i].calls;
			wall += t->calls[i].wall_ns;
			wait += t->calls[i].cap_wait_ns;
		}
	}
	assert_true(gcs > 0);
	assert_true(sum_of(s, "safescoped_safe_call_seconds_count", "") == (double)calls);
	assert_true(near(sum_of(s, "safescoped_safe_call_seconds_sum", ""), wall, ROUNDED));
	assert_true(near(sum_of(s, "safescoped_safe_call_capability_wait_seconds_total", ""), wait,
			 EXACT));
	assert_true(sum_of(s, "safescoped_gc_collections_total", "") == (double)gcs);
	assert_true(near(sum_of(s, "safescoped_gc_pause_seconds_total", ""), pause, ROUNDED));
}

/*
 * Without readings in between, the closed parts add up to the session. (A replay makes all windows
 * before its first record at that record; these are long enough for there to be none.)
 */
static void parts_add_up(void **state)
{
	static const uint64_t windows[] = {0, 500 * MS, 97300000, 50 * MS, 61 * MS};
	static const char *const names[] = {"calls", "centres"};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
		struct replay *whole = replay(names[k], NULL);
		const struct picture *pic = replay__picture(whole);

		for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
			struct watched w;
			struct scraped end = watch(names[k], windows[i], 0, &w);

			assert_true(windows[i] ? w.windows > 0 : !w.windows);
			/*
			 * each window divides time on the CPU by its own samples, which is an
			 * estimate
			 */
			check_states(&end, pic, LANE_THREAD, windows[i] != 0, 0);
			if (!windows[i])
				check_states(&end, pic, LANE_CAPABILITY, false, 0);
			check_events(&end, pic);
			scraped_free(&end);
		}
		replay__free(whole);
	}
}

/*
 * Read at any time, with cuts and without: no counter decreases, and at the end they are complete.
 */
static void readings_never_sink(void **state)
{
	static const uint64_t windows[] = {0, 500 * MS, 61 * MS};
	static const uint64_t every[] = {7 * MS, 50 * MS, 331 * MS};
	struct replay *whole = replay("calls", NULL);
	const struct picture *pic = replay__picture(whole);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(windows); i++)
		for (size_t k = 0; k < ARRAY_SIZE(every); k++) {
			struct watched w;
			struct scraped end = watch("calls", windows[i], every[k], &w);

			assert_true(w.readings >= 2);
			check_events(&end, pic);
			/*
			 * unlike a session, a capture has no thread states at the readings: what
			 * threads have done since their last record is guessed, and an excess stays
			 * until the sums have caught up
			 */
			check_states(&end, pic, LANE_THREAD, true, 100);
			scraped_free(&end);
		}
	replay__free(whole);
}

/* A reading changes nothing: the picture is the same, slice by slice. */
static void readings_change_nothing(void **state)
{
	struct watched w = {.every_ns = 20 * MS};
	const struct replay_hooks hooks = {.ctx = &w, .at = at};
	struct replay *plain = replay("calls", NULL), *watched;
	const struct pic_target *a, *b;

	(void)state;
	assert_int_equal(metrics__new(&w.m), 0);
	watched = replay("calls", &hooks);
	a = picture__target(replay__picture(plain), 0);
	b = picture__target(replay__picture(watched), 0);
	assert_true(w.readings > 10);
	for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
		assert_int_equal(a->lanes[kind].n, b->lanes[kind].n);
		for (size_t i = 0; i < a->lanes[kind].n; i++) {
			const struct pic_lane *x = &a->lanes[kind].v[i], *y = &b->lanes[kind].v[i];

			assert_memory_equal(x->states_ns, y->states_ns, sizeof(x->states_ns));
			assert_int_equal(x->n_slices, y->n_slices);
			for (size_t k = 0; k < x->n_slices; k++)
				assert_int_equal(x->slices[k].end_ns, y->slices[k].end_ns);
		}
	}
	scraped_free(&w.last);
	metrics__free(w.m);
	replay__free(plain);
	replay__free(watched);
}

/* Without the probes on collections the heap's last values are not shown as current ones. */
static void heap_without_probes(void **state)
{
	static const char *const gauges[] = {"safescoped_heap_live_bytes",
					     "safescoped_heap_held_bytes",
					     "safescoped_haskell_threads"};
	const struct pic_target t = {.pid = 1, .comm = "prog", .exe = "/prog"};
	struct figures f = {.target = &t,
			    .allocated_bytes = 1000,
			    .live_known = true,
			    .live_bytes = 5,
			    .held_bytes = 6,
			    .haskell_threads = 7};
	struct metrics *m;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (int off = 0; off < 2; off++) {
		struct scraped s;

		f.gc_off = off;
		f.gc_off_ns = off ? 30000000 : 0;
		f.gc_missed = off ? 9 : 0;
		metrics__take(m, &f, false);
		s = scrape(m);
		for (size_t i = 0; i < ARRAY_SIZE(gauges); i++)
			assert_true(sum_of(&s, gauges[i], "") == (off ? 0 : (double)(5 + i)));
		assert_true(near(sum_of(&s, "safescoped_gc_probes_off_seconds_total", ""),
				 f.gc_off_ns, EXACT));
		assert_true(sum_of(&s, "safescoped_gc_missed_total", "") == (off ? 9 : 0));
		assert_true(sum_of(&s, "safescoped_allocated_bytes_total", "") == 1000);
		scraped_free(&s);
	}
	metrics__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(readings_never_sink),
		cmocka_unit_test(readings_change_nothing),
		cmocka_unit_test(heap_without_probes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

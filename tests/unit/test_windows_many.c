/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any number of windows: a limit or a loss that one of them met is reported in that one only, and
 * what holds for the process in all later ones.
 */
#include "intake/seen.h"
#include "lanes/lanes_priv.h"
#include "test_timeline_kit.h"

#define WINDOW_NS    500000ULL
#define MOST_MISSING 1024 /* sentences that a picture has about a process */

/* The only target of the next window; picture__free() frees *ret_pic. */
static const struct pic_target *window(struct kit *kit, struct picture **ret_pic)
{
	uint64_t at = picture__session(kit->pic)->start_ns + WINDOW_NS;

	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	assert_non_null(*ret_pic);
	check_all(*ret_pic);
	kit->pic = timeline__picture(kit->tl);
	return picture__target(*ret_pic, 0);
}

/* ── what is missing ─────────────────────────────────────────────────────────────────────── */

/* A sample of Haskell code from before the runtime could be read. */
static void put_early(struct kit *kit)
{
	uint64_t at = picture__session(kit->pic)->start_ns + 1000;
	union rec r;

	put(kit, mk_sample(&r, 7, at, WIRE_WHERE_NOT_READY, HS(1), IP(HS(1)), STOP));
}

/* What holds for the process is in all windows; what concerns one window is in that one only. */
static void test_missing(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__add_missing(kit.in, PID, "a log"), 0);
	put_early(&kit);
	t = window(&kit, &pic);
	assert_int_equal(t->quality.early, 1);
	assert_int_equal(t->n_missing, 2);
	picture__free(pic);
	t = window(&kit, &pic);
	assert_int_equal(t->quality.early, 0);
	assert_int_equal(t->n_missing, 1);
	assert_string_equal(t->missing[0], "a log");
	picture__free(pic);
	put_early(&kit);
	assert_int_equal(intake__add_missing(kit.in, PID, "its heap"), 0);
	t = window(&kit, &pic);
	assert_int_equal(t->n_missing, 3);
	picture__free(pic);
	t = window(&kit, &pic);
	assert_int_equal(t->n_missing, 2);
	assert_string_equal(t->missing[1], "its heap");
	picture__free(pic);
	timeline__free(kit.tl);
}

/* However many windows have a sentence of their own, the next one is made. */
static void test_missing_in_each(void **state)
{
	struct kit kit;
	struct picture *pic;

	(void)state;
	kit_new(&kit);
	for (unsigned i = 0; i < MOST_MISSING + 10; i++) {
		put_early(&kit);
		assert_int_equal(window(&kit, &pic)->n_missing, 1);
		picture__free(pic);
	}
	timeline__free(kit.tl);
}

/* What is missing of several programs of one process is reported once. */
static void test_missing_equal(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 2 * MOST_MISSING; k++) {
			assert_int_equal(intake__add_missing(kit.in, PID, "a log"), 0);
			assert_int_equal(intake__add_missing(kit.in, PID, "its heap"), 0);
		}
		for (unsigned k = 0; i < 2 && k < 2 * MOST_MISSING; k++) {
			assert_int_equal(intake__add_missing_once(kit.in, PID, "switches"), 0);
			assert_int_equal(intake__add_missing_once(kit.in, PID, "its heap"), 0);
		}
		t = window(&kit, &pic);
		assert_int_equal(t->n_missing, i < 2 ? 3 : 2);
		assert_string_equal(t->missing[0], "a log");
		assert_string_equal(t->missing[1], "its heap");
		if (i < 2)
			assert_string_equal(t->missing[2], "switches");
		picture__free(pic);
	}
	timeline__free(kit.tl);
}

/* Without room for another sentence a window is made all the same. */
static void test_missing_full(void **state)
{
	struct kit kit;
	struct picture *pic;

	(void)state;
	kit_new(&kit);
	for (unsigned i = 0; i <= MOST_MISSING; i++) {
		char text[32];

		snprintf(text, sizeof(text), "log %u", i);
		assert_int_equal(intake__add_missing(kit.in, PID, text),
				 i < MOST_MISSING ? 0 : -E2BIG);
	}
	for (unsigned i = 0; i < 2; i++) {
		put_early(&kit);
		assert_int_equal(window(&kit, &pic)->n_missing, MOST_MISSING);
		picture__free(pic);
	}
	timeline__free(kit.tl);
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

/* More collections than there is room for; then the probes come off, or they do not. */
static void many_gcs(bool come_off)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;
	uint64_t at = T0 + 10;

	kit_new(&kit);
	for (unsigned i = 0; i <= SEEN_MAX_GCS; i++, at += 2) {
		put(&kit, mk_gc(&r, 7, WIRE_GC_START, at));
		put(&kit, mk_gc(&r, 7, WIRE_GC_END, at + 1));
	}
	if (come_off)
		put(&kit, mk_gc(&r, 7, WIRE_GC_OFF, at));
	assert_int_equal(timeline__window(kit.tl, at + 1000, &pic), 0);
	assert_non_null(pic);
	t = picture__target(pic, 0);
	assert_int_equal(t->gc.observed_count, SEEN_MAX_GCS);
	picture__free(pic);
	kit.pic = timeline__picture(kit.tl);
	for (unsigned i = 0; i < 2; i++) {
		t = window(&kit, &pic);
		assert_int_equal(t->gc.known, !come_off);
		assert_int_equal(t->gc.observed_ns, 0);
		picture__free(pic);
	}
	timeline__free(kit.tl);
}

/* When nothing is reported any longer, this does not mean that there were none. */
static void test_gcs_off_while_full(void **state)
{
	(void)state;
	many_gcs(false);
	many_gcs(true);
}

/* ── after a window of which not all was seen ────────────────────────────────────────────── */

/* All lanes of the next window begin with it, and so do its sums. */
static void test_blind(void **state)
{
	const struct timeline_opts opts = {.max_records = 4, .haskell_lanes = true};
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	uint64_t cut;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	for (unsigned i = 0; i < 8; i++) {
		mk_call(&r, 7, T0 + 1000 + 10000 * i, T0 + 6000 + 10000 * i, SITE(1), STOP);
		assert_int_equal(intake__record(kit.in, &r, r.h.size), i < 4 ? 0 : -ENOSPC);
	}
	t = window(&kit, &pic);
	assert_int_equal(t->n_lost, 1);
	picture__free(pic);
	cut = picture__session(kit.pic)->start_ns;
	put(&kit, mk_sample(&r, 8, cut + 1000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	t = window(&kit, &pic);
	for (unsigned kind = 0; kind < LANE_KINDS; kind++)
		for (size_t i = 0; i < t->lanes[kind].n; i++) {
			assert_true(t->lanes[kind].v[i].start_ns >= cut);
			assert_true(t->lanes[kind].v[i].end_ns <= cut + WINDOW_NS);
		}
	assert_true(t->lanes[LANE_CAPABILITY].n > 0);
	assert_true(t->overlaps.active_ns > 0 && t->overlaps.active_ns <= WINDOW_NS);
	picture__free(pic);
	timeline__free(kit.tl);
}

/* ── for as long as the service runs ─────────────────────────────────────────────────────── */

/* Names improve in any window, however often that was tried before. */
static void test_renames(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_lane *lane;
	bool named = false;
	union rec r;

	(void)state;
	kit_new(&kit);
	kit.hurried = true;
	put(&kit, mk_sample(&r, 7, T0 + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(intake__rename(kit.in), 0);
	window(&kit, &pic);
	picture__free(pic);
	put(&kit,
	    mk_sample(&r, 7, T0 + WINDOW_NS + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	kit.hurried = false;
	assert_int_equal(intake__rename(kit.in), 0);
	lane = lane_of(finish(&kit), 7);
	for (size_t i = 0; i < lane->n_slices; i++)
		named |= !strcmp(stack_text(kit.pic, lane->slices[i].stack), "Main.h1");
	assert_true(named);
	timeline__free(kit.tl);
}

/* Samples between off-CPU intervals: this many in Haskell code, and in the runtime. */
static void learn(struct lanes *l, struct seen_thread *th, unsigned haskell, unsigned runtime)
{
	struct ev *v = th->samples.v;

	th->samples.n = haskell + runtime;
	for (unsigned i = 0; i < haskell + runtime; i++)
		v[i] = (struct ev){.t0 = 100 + i,
				   .t1 = 100 + i,
				   .cap = 0,
				   .where = i < haskell ? WIRE_WHERE_HASKELL : WIRE_WHERE_RTS,
				   .code = i < haskell ? CODE_HASKELL : CODE_RTS};
	prior__learn(l, th);
}

/*
 * What samples show is summed up for ever, and neither overflows nor hides a change of behaviour.
 */
static void test_prior(void **state)
{
	enum { ROUND = 1000, ROUNDS = 5000 };
	const struct prior_between *between;
	enum thread_state chosen;
	struct ev offs[2] = {{.t0 = 1, .t1 = 2}, {.t0 = 10000, .t1 = 10001}};
	struct seen_thread th = {.offs = {.v = offs, .n = 2}};
	struct seen seen = {0};
	struct lanes l = {.seen = &seen};
	uint64_t sum = 0;

	(void)state;
	th.samples.v = calloc(ROUND, sizeof(*th.samples.v));
	l.prior = calloc(1, sizeof(*l.prior));
	assert_non_null(th.samples.v);
	assert_non_null(l.prior);
	between = &l.prior->between[0][0];
	learn(&l, &th, 600, 400);
	assert_int_equal(between->n_samples, 1000);
	for (unsigned i = 1; i < ROUNDS; i++)
		learn(&l, &th, 600, 400);
	assert_true(between->n_samples > ROUND && between->n_samples <= 1U << 20);
	for (unsigned i = 0; i < ST_MAX; i++)
		sum += between->samples[i];
	assert_int_equal(sum, between->n_samples);
	assert_true(between->samples[ST_HASKELL] > between->n_samples / 100 * 59 &&
		    between->samples[ST_HASKELL] < between->n_samples / 100 * 61);
	/* another behaviour takes over within some millions of samples */
	for (unsigned i = 0; i < 2 * ROUNDS; i++)
		learn(&l, &th, 0, 1000);
	assert_true(between->samples[ST_HASKELL] < between->n_samples / 100);
	assert_true(prior__state(l.prior, 0, 0, 1000, &chosen));
	assert_int_equal(chosen, ST_RTS);
	free(l.prior);
	free(th.samples.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing),	     cmocka_unit_test(test_missing_in_each),
		cmocka_unit_test(test_missing_full), cmocka_unit_test(test_gcs_off_while_full),
		cmocka_unit_test(test_blind),	     cmocka_unit_test(test_renames),
		cmocka_unit_test(test_prior),	     cmocka_unit_test(test_missing_equal),
	};

	return cmocka_run_group_tests_name("windows_many", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States that coincided, and the times when a capability was idle: compared with counting unit by
 * unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lanes/lanes_priv.h"

#define UNIT  UINT64_C(150000) /* ns; seven idle units count as a long idle time */
#define UNITS 600
#define CAPS  3
#define LONG  1000000

static uint64_t seed;

static unsigned any(unsigned n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % n;
}

/* Fills v with states, in runs of up to `most` units. */
static void fill(uint8_t *v, const uint8_t *states, unsigned n, unsigned most)
{
	for (unsigned i = 0; i < UNITS;) {
		uint8_t state = states[any(n)];

		for (unsigned k = 1 + any(most); k && i < UNITS; k--)
			v[i++] = state;
	}
}

/* The slice from `at` to the next change, or to `until` if that is earlier. */
static struct pic_slice run_at(const uint8_t *v, unsigned at, unsigned until)
{
	unsigned end = at;

	while (end < until && v[end] == v[at])
		end++;
	return (struct pic_slice){.start_ns = at * UNIT, .end_ns = end * UNIT, .state = v[at]};
}

/* ── overlaps ────────────────────────────────────────────────────────────────────────────── */

struct scene {
	uint8_t caps[CAPS][UNITS], threads[CAPS][UNITS];
	struct gc_span gcs[4];
	struct pic_point ticks[UNITS / 5];
	struct seen seen;
};

static void make(struct scene *s)
{
	static const uint8_t cap_states[] = {CS_HASKELL, CS_IDLE, CS_PREEMPTED, CS_GC, CS_DISABLED};
	static const uint8_t thread_states[] = {ST_CAP_WAIT, ST_HASKELL, ST_UNSAFE_CALL_BLOCKED,
						ST_IDLE};

	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < CAPS; i++) {
		fill(s->caps[i], cap_states, ARRAY_SIZE(cap_states), 20);
		fill(s->threads[i], thread_states, ARRAY_SIZE(thread_states), 9);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(s->gcs); i++)
		s->gcs[i] = (struct gc_span){.start = (100 * i + any(50)) * UNIT,
					     .end = (100 * i + 50 + any(50)) * UNIT};
	for (unsigned i = 0; i < ARRAY_SIZE(s->ticks); i++)
		s->ticks[i] = (struct pic_point){5 * i * UNIT + UNIT / 2, 1 + any(9)};
	s->seen.gcs = (struct seen_gcs){.v = s->gcs, .n = ARRAY_SIZE(s->gcs)};
	s->seen.starved = (struct seen_points){.v = s->ticks, .n = ARRAY_SIZE(s->ticks)};
}

static bool long_wait(const struct scene *s, unsigned thread, unsigned at)
{
	unsigned start = at, end = at;

	while (start && s->threads[thread][start - 1] == ST_CAP_WAIT)
		start--;
	while (end < UNITS && s->threads[thread][end] == ST_CAP_WAIT)
		end++;
	return (end - start) * UNIT >= 200000;
}

static struct pic_overlaps count(const struct scene *s)
{
	struct pic_overlaps sums = {0};

	for (unsigned at = 0; at < UNITS; at++) {
		bool busy = false, idle = false, no_cpu = false, excused = false, waits = false;
		unsigned n = 0;

		for (unsigned i = 0; i < CAPS; i++) {
			unsigned cap = s->caps[i][at], th = s->threads[i][at];

			busy |= cap != CS_IDLE && cap != CS_DISABLED;
			idle |= cap == CS_IDLE;
			no_cpu |= cap == CS_PREEMPTED;
			excused |= th == ST_UNSAFE_CALL_BLOCKED;
			n += th == ST_CAP_WAIT;
			waits |= th == ST_CAP_WAIT && long_wait(s, i, at);
		}
		for (unsigned i = 0; i < ARRAY_SIZE(s->gcs); i++)
			excused |= s->gcs[i].start <= at * UNIT && at * UNIT < s->gcs[i].end;
		sums.active_ns += busy ? UNIT : 0;
		sums.cap_wait_ns += excused || no_cpu ? 0 : n * UNIT;
		sums.idle_wait_ns += idle && waits && !no_cpu ? UNIT : 0;
		if (at % 5 == 0 && !no_cpu) {
			sums.starved_ticks++;
			sums.starved_most = MAX(sums.starved_most, s->ticks[at / 5].value);
		}
	}
	return sums;
}

static void add(struct scene *s, struct overlaps *o)
{
	for (unsigned i = 0; i < CAPS; i++) {
		uint8_t was = 0;
		struct pic_slice slice;

		for (unsigned at = 0; at < UNITS; at = (unsigned)(slice.end_ns / UNIT)) {
			slice = run_at(s->caps[i], at, UNITS);
			assert_int_equal(overlaps__cap(o, &was, &slice), 0);
		}
		for (unsigned at = 0; at < UNITS; at = (unsigned)(slice.end_ns / UNIT)) {
			struct piece piece;

			slice = run_at(s->threads[i], at, UNITS);
			piece = (struct piece){.s = slice};
			assert_int_equal(overlaps__thread(o, &s->seen, &piece, 1), 0);
		}
	}
}

static void test_overlaps(void **state)
{
	(void)state;
	for (seed = 1; seed < 40; seed++) {
		uint64_t first = seed;
		struct overlaps o = {0};
		struct pic_overlaps want;
		struct scene s;

		make(&s);
		want = count(&s);
		assert_true(want.cap_wait_ns && want.idle_wait_ns && want.starved_ticks);
		add(&s, &o);
		/* in steps, none of which begins at a change */
		for (unsigned at = 37; at < UNITS; at += 100)
			assert_int_equal(overlaps__advance(&o, &s.seen, at * UNIT + UNIT / 3, true),
					 0);
		assert_int_equal(overlaps__advance(&o, &s.seen, UNITS * UNIT, true), 0);
		assert_int_equal(o.sums.active_ns, want.active_ns);
		assert_int_equal(o.sums.cap_wait_ns, want.cap_wait_ns);
		assert_int_equal(o.sums.idle_wait_ns, want.idle_wait_ns);
		assert_int_equal(o.sums.starved_ticks, want.starved_ticks);
		assert_int_equal(o.sums.starved_most, want.starved_most);
		overlaps__free(&o);
		seed = first;
	}
}

/* ── idleness ────────────────────────────────────────────────────────────────────────────── */

static uint64_t idle_before(const uint8_t *v, uint64_t t)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < UNITS && i * UNIT < t; i++)
		ns += v[i] == CS_IDLE ? MIN(UNIT, t - i * UNIT) : 0;
	return ns;
}

static uint64_t long_after(const uint8_t *v, uint64_t from, uint64_t end)
{
	for (unsigned at = 0; at < UNITS;) {
		struct pic_slice s = run_at(v, at, UNITS);
		uint64_t start = MAX(s.start_ns, from);

		if (s.state == CS_IDLE && MIN(s.end_ns, end) >= start + LONG)
			return start;
		at = (unsigned)(s.end_ns / UNIT);
	}
	return UINT64_MAX;
}

/* Queries of what has not been forgotten, while it grows and after parts of it were dropped. */
static void test_idle(void **state)
{
	static const uint8_t states[] = {CS_HASKELL, CS_IDLE};

	(void)state;
	for (seed = 1; seed < 40; seed++) {
		uint64_t first = seed;
		struct idle idle = {0}, copy;
		unsigned cuts[] = {any(UNITS / 2) + 1, UNITS}, at = 0;
		uint8_t v[UNITS];
		unsigned n_long = 0;

		fill(v, states, 2, 14);
		for (unsigned c = 0; c < ARRAY_SIZE(cuts); c++) {
			uint64_t from = at * UNIT;
			struct pic_slice s;

			for (; at < cuts[c]; at = (unsigned)(s.end_ns / UNIT)) {
				s = run_at(v, at, cuts[c]);
				if (s.state == CS_IDLE)
					assert_int_equal(idle__add(&idle, s.start_ns, s.end_ns), 0);
			}
			assert_int_equal(idle__copy(&idle, &copy), 0);
			for (unsigned k = 0; k < 200; k++) {
				unsigned span = cuts[c] - (unsigned)(from / UNIT);
				uint64_t t = from + any(span) * UNIT + any(UNIT);
				uint64_t end = t + any(40) * UNIT;

				end = MIN(end, cuts[c] * UNIT);
				assert_int_equal(idle__ns(&copy, t), idle_before(v, t));
				assert_true(idle__first_long(&copy, t, end) ==
					    long_after(v, t, end));
				n_long += long_after(v, t, end) != UINT64_MAX;
			}
			idle__free(&copy);
			idle__forget(&idle, cuts[c] * UNIT);
		}
		assert_true(n_long > 0);
		idle__free(&idle);
		seed = first;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_idle),
	};

	return cmocka_run_group_tests_name("overlaps", tests, NULL, NULL);
}

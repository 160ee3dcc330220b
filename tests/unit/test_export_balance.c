/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drawn lanes show exactly what their accounts have for each state, whatever the slices are:
 * nothing moves on the time axis, and slices with exact ends are not cut as long as others suffice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/speedscope/balance.h"

#define N 1000

static uint64_t seed = 1;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

/* The time drawn in each state, the number of slices that were cut, and how many of these were
 * exact. */
struct drawn {
	uint64_t ns[LANE_STATES];
	unsigned cuts, exact_cuts;
};

static struct drawn draw(const struct pic_lane *lane, uint64_t grain_ns)
{
	struct walk walk = {.lane = lane, .grain_ns = grain_ns};
	struct pic_slice slice, parts[BALANCE_PARTS];
	struct drawn d = {.cuts = 0};
	struct balance b;

	balance__begin(&b, lane, grain_ns);
	while (walk__next(&walk, &slice)) {
		unsigned n = balance__split(&b, &slice, parts);

		assert_in_range(n, 1, BALANCE_PARTS);
		assert_int_equal(parts[0].start_ns, slice.start_ns);
		assert_int_equal(parts[n - 1].end_ns, slice.end_ns);
		for (unsigned i = 0; i < n; i++) {
			assert_true(parts[i].start_ns <= parts[i].end_ns);
			if (i)
				assert_int_equal(parts[i].start_ns, parts[i - 1].end_ns);
			d.ns[parts[i].state] += parts[i].end_ns - parts[i].start_ns;
			assert_true(parts[i].state == slice.state || !parts[i].stack);
		}
		d.cuts += n > 1;
		d.exact_cuts += n > 1 && slice.exact;
	}
	return d;
}

static void assert_states(const struct drawn *d, const struct pic_lane *lane)
{
	for (unsigned s = 0; s < LANE_STATES; s++)
		assert_int_equal(d->ns[s], lane->states_ns[s]);
}

static void fill(struct pic_slice *v, uint64_t most_ns)
{
	uint64_t at = 1000;

	for (size_t i = 0; i < N; i++) {
		v[i] = (struct pic_slice){.start_ns = at,
					  .end_ns = at + 1 + random_below(most_ns),
					  .state = (uint8_t)random_below(CS_MAX),
					  .stack = 1 + (uint32_t)random_below(5),
					  .exact = random_below(2)};
		at = v[i].end_ns;
	}
}

/* Adds all slices to the account, with `percent` of each state's time moved to another state. */
static void account(struct pic_lane *lane, unsigned percent)
{
	uint64_t is[CS_MAX] = {0};

	for (size_t i = 0; i < lane->n_slices; i++)
		is[lane->slices[i].state] += lane->slices[i].end_ns - lane->slices[i].start_ns;
	for (unsigned s = 0; s < CS_MAX; s++) {
		uint64_t moved = is[s] * percent / 100;

		lane->states_ns[s] += is[s] - moved;
		lane->states_ns[(s + s % 2 + 1) % CS_MAX] += moved;
	}
}

static void test_states(void **state)
{
	static const unsigned percents[] = {0, 1, 10, 45, 90};
	static const uint64_t lengths[] = {3, 1000, 100000000}, grains[] = {0, 2000, 1u << 30};
	static struct pic_slice slices[N];

	(void)state;
	for (size_t p = 0; p < ARRAY_SIZE(percents); p++)
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++)
			for (size_t g = 0; g < ARRAY_SIZE(grains); g++) {
				struct pic_lane lane = {
					.kind = LANE_CAPABILITY, .slices = slices, .n_slices = N};
				struct drawn d;

				fill(slices, lengths[l]);
				account(&lane, percents[p]);
				d = draw(&lane, grains[g]);
				assert_states(&d, &lane);
				if (!percents[p] && !grains[g])
					assert_int_equal(d.cuts, 0);
			}
}

static void test_exact_slices(void **state)
{
	static struct pic_slice slices[N];
	struct pic_lane lane = {.kind = LANE_THREAD, .slices = slices, .n_slices = N};
	struct drawn d;

	(void)state;
	for (size_t i = 0; i < N; i++)
		slices[i] = (struct pic_slice){.start_ns = i * 1000,
					       .end_ns = (i + 1) * 1000,
					       .state = ST_HASKELL,
					       .exact = i % 2};
	/* a fifth of the slices with sampled ends */
	lane.states_ns[ST_HASKELL] = 900 * N;
	lane.states_ns[ST_RTS] = 100 * N;
	d = draw(&lane, 0);
	assert_states(&d, &lane);
	assert_in_range(d.cuts, N / 20, N / 2);
	assert_int_equal(d.exact_cuts, 0);
	/* more than the slices with sampled ends have */
	lane.states_ns[ST_HASKELL] = 400 * N;
	lane.states_ns[ST_RTS] = 600 * N;
	d = draw(&lane, 0);
	assert_states(&d, &lane);
	assert_true(d.exact_cuts > 0);
}

/* An account with less, or more, than there is to draw. */
static void test_odd_account(void **state)
{
	static struct pic_slice slices[N];
	struct pic_lane lane = {.kind = LANE_HASKELL, .slices = slices, .n_slices = N};
	struct drawn d;

	(void)state;
	fill(slices, 1000);
	d = draw(&lane, 0);
	assert_int_equal(d.cuts, 0);
	for (unsigned s = 0; s < LANE_STATES; s++)
		lane.states_ns[s] = UINT64_MAX;
	d = draw(&lane, 0);
	assert_int_equal(d.cuts, 0);
	lane.n_slices = 0;
	d = draw(&lane, 0);
	assert_int_equal(d.cuts, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_exact_slices),
		cmocka_unit_test(test_odd_account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

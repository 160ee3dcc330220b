/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The histogram of call durations: user space reads the slots as the kernel side writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "hist.bpf.h"
#include "lanes/hist_priv.h"

static void check(uint64_t ns)
{
	uint64_t low, high;

	hist__bounds(hist_slot(ns), &low, &high);
	assert_true(ns >= low);
	assert_true(ns < high || high == UINT64_MAX);
}

/* Every power of two, its neighbours and some values in between are within their slot's bounds. */
static void test_agrees_with_the_kernel(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < 100000; ns++)
		check(ns);
	for (unsigned log2 = 0; log2 < 64; log2++) {
		uint64_t base = 1ULL << log2;

		check(base - 1);
		for (unsigned i = 0; i < 64; i++)
			check(base + base / 64 * i);
	}
	check(UINT64_MAX);
}

static void test_slots_adjoin(void **state)
{
	uint64_t low, high, next;

	(void)state;
	hist__bounds(0, &low, &next);
	assert_int_equal(low, 0);
	for (unsigned slot = 1; slot < WIRE_HIST_SLOTS; slot++) {
		hist__bounds(slot, &low, &high);
		assert_int_equal(low, next);
		assert_true(high > low);
		/* A slot's middle is off by at most the error bound that the report prints. */
		if (slot + 1 < WIRE_HIST_SLOTS)
			assert_true((high - low) * 8 <= low);
		next = high;
	}
	assert_true(next == UINT64_MAX);
}

static void test_quantiles(void **state)
{
	uint64_t hist[WIRE_HIST_SLOTS] = {0};
	double error = 0;
	uint64_t value;

	(void)state;
	assert_true(hist__quantile(hist, 0.5, 0, 0, &error) == UINT64_MAX);

	/* 1000 … 100000 in steps of 1000. */
	for (uint64_t ns = 1000; ns <= 100000; ns += 1000)
		hist[hist_slot(ns)]++;
	value = hist__quantile(hist, 0.5, 1000, 100000, &error);
	assert_true(error == 1.0 / 16);
	assert_true(value >= 50000 - 50000 / 16 && value <= 50000 + 50000 / 16);
	value = hist__quantile(hist, 0.99, 1000, 100000, &error);
	assert_true(value >= 99000 - 99000 / 16 && value <= 99000 + 99000 / 16);
	value = hist__quantile(hist, 1.0, 1000, 100000, &error);
	assert_true(value <= 100000);

	/* A single value: min and max determine it. */
	memset(hist, 0, sizeof(hist));
	hist[hist_slot(123456)] = 7;
	assert_int_equal(hist__quantile(hist, 0.5, 123456, 123456, &error), 123456);

	/* The first and the last slot are bounded only by min and max. */
	memset(hist, 0, sizeof(hist));
	hist[0] = 3;
	assert_int_equal(hist__quantile(hist, 0.5, 9, 9, &error), 9);
	memset(hist, 0, sizeof(hist));
	hist[WIRE_HIST_SLOTS - 1] = 3;
	value = hist__quantile(hist, 0.5, 1ULL << 44, 1ULL << 44, &error);
	assert_true(value == 1ULL << 44);
	/* Full counters do not overflow. */
	for (unsigned slot = 0; slot < WIRE_HIST_SLOTS; slot++)
		hist[slot] = UINT64_MAX / WIRE_HIST_SLOTS;
	value = hist__quantile(hist, 0.99, 1, UINT64_MAX, &error);
	assert_true(value > 1ULL << 42);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_the_kernel),
		cmocka_unit_test(test_slots_adjoin),
		cmocka_unit_test(test_quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the probes on collections cost, from which the budget decides which of them stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "kernel/kernel_priv.h"

#define WINDOW_NS 100000000ULL

/* As measured on a virtual machine: the probe on the request walks a stack. */
static const struct gc_prices prices = {.sync_ns = 8900, .start_ns = 3200, .end_ns = 4700};

static void check(enum gc_probes on, enum gc_probes would, uint64_t spent_ns, double percent)
{
	double got = budget__gc_percent(&prices, on, would, spent_ns, WINDOW_NS);

	if (got < percent - 0.01 || got > percent + 0.01)
		fail_msg("%d, %d: %.3f %%, should be %.3f %%", on, would, got, percent);
}

/* What a target's own collections have cost counts, not the mean of all targets. */
static void test_only_what_is_on_costs(void **state)
{
	static const struct gc_prices none = {0};

	(void)state;
	check(GC_PROBES_ALL, GC_PROBES_ALL, 4540000, 4.54);
	check(GC_PROBES_REQUESTS, GC_PROBES_REQUESTS, 3670000, 3.67);
	check(GC_PROBES_ENDS, GC_PROBES_ENDS, 60000000, 60);
	assert_true(budget__gc_percent(&none, GC_PROBES_ENDS, GC_PROBES_ALL, WINDOW_NS,
				       WINDOW_NS) == 100);
}

/* What others would cost follows from it, by the prices of the probes. */
static void test_what_all_would_cost(void **state)
{
	(void)state;
	check(GC_PROBES_REQUESTS, GC_PROBES_ALL, 13600 * 270, 4.54);
	check(GC_PROBES_ENDS, GC_PROBES_ALL, 4700 * 270, 4.54);
	check(GC_PROBES_ENDS, GC_PROBES_ALL, 10 * 4700 * 270, 45.36);
	check(GC_PROBES_ALL, GC_PROBES_ENDS, 16800 * 270, 1.27);
}

/* Of each three windows two cost 6 %, so there are never three in a row. */
static void test_bursts_add_up(void **state)
{
	double debt = 0;
	unsigned windows = 0;

	(void)state;
	while (!budget__in_debt(&debt, windows % 3 < 2 ? 6 : 0, 2, WINDOW_NS)) {
		windows++;
		assert_true(windows < 100);
	}
	/* 2 % too much on average: the budget of five seconds is used up after five */
	assert_in_range(windows, 45, 52);
}

/* What a burst costs beyond the budget is made up for by the time without any. */
static void test_rare_bursts_are_within_the_budget(void **state)
{
	double debt = 0;

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		assert_false(budget__in_debt(&debt, i % 20 < 2 ? 18 : 0, 2, WINDOW_NS));
	assert_false(budget__in_debt(&debt, 60, 2, WINDOW_NS));
	assert_true(budget__in_debt(&debt, 60, 2, WINDOW_NS));
}

/* A target is charged its own price once it has had some hits, and the shared one before. */
static void test_own_price(void **state)
{
	struct wire_cost cost = {.probe_hits = 100, .gc_hits = 20, .call_ns = 80000000};
	struct call_price price = {0};

	(void)state;
	assert_int_equal(budget__call_price(&price, &cost, 700), 700);
	cost.probe_hits = 1020;
	cost.call_ns = 600000000;
	assert_int_equal(budget__call_price(&price, &cost, 700), 600000);
	/* too few more hits for another price */
	cost.probe_hits += 16;
	assert_int_equal(budget__call_price(&price, &cost, 700), 600000);
	/* what it does now counts, and not what it did before */
	cost.probe_hits += 984;
	cost.call_ns += 2000000;
	assert_int_equal(budget__call_price(&price, &cost, 0), 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_what_is_on_costs),
		cmocka_unit_test(test_what_all_would_cost),
		cmocka_unit_test(test_bursts_add_up),
		cmocka_unit_test(test_rare_bursts_are_within_the_budget),
		cmocka_unit_test(test_own_price),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

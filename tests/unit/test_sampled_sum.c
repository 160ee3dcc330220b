/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sum that is measured for a part of the time, such as what the programs cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/sampled_sum_priv.h"

#define MS 1000000ULL

static void assert_total(const struct sampled_sum *s, uint64_t at_ms, uint64_t now_ms,
			 uint64_t value, uint64_t should_be)
{
	uint64_t total;

	assert_true(sampled_sum__at(s, at_ms * MS, now_ms * MS, value, &total));
	assert_in_range(total, should_be ? should_be - 1 : 0, should_be + 1);
}

static void test_nothing_is_known_at_first(void **state)
{
	struct sampled_sum s = {};
	uint64_t total = 7;

	(void)state;
	assert_false(sampled_sum__at(&s, MS, MS, 0, &total));
	assert_int_equal(total, 7);
}

/* A tenth of each second is measured and stands for all of it. */
static void test_each_part_stands_for_the_time_up_to_the_next(void **state)
{
	struct sampled_sum s = {};

	(void)state;
	sampled_sum__begin(&s, 1000 * MS, 0);
	assert_total(&s, 1050, 1050, 400, 400);
	sampled_sum__end(&s, 1100 * MS, 1000);
	assert_total(&s, 1100, 1100, 0, 1000);
	assert_total(&s, 1600, 1600, 0, 6000);
	sampled_sum__begin(&s, 2000 * MS, 1000);
	assert_total(&s, 2050, 2050, 1000, 10000);
	sampled_sum__end(&s, 2100 * MS, 1000);
	assert_total(&s, 2900, 2900, 0, 10000);
}

/* The total at a time, which is not less than what it was before. */
static void assert_grows(const struct sampled_sum *s, uint64_t ms, uint64_t value, uint64_t *total)
{
	uint64_t before = *total;

	assert_true(sampled_sum__at(s, ms * MS, ms * MS, value, total));
	assert_true(*total >= before);
}

/* A costly second leaves the total of a later, quiet one alone, and that never falls. */
static void test_the_total_does_not_fall(void **state)
{
	struct sampled_sum s = {};
	uint64_t value = 0, total = 0;

	(void)state;
	for (uint64_t second = 1; second < 60; second++) {
		sampled_sum__begin(&s, second * 1000 * MS, value);
		for (uint64_t ms = 0; ms < 100; ms += 10) {
			value += second % 7 ? 0 : 50000;
			assert_grows(&s, second * 1000 + ms, value, &total);
		}
		sampled_sum__end(&s, (second * 1000 + 100) * MS, value);
		for (uint64_t ms = 100; ms < 1000; ms += 100)
			assert_grows(&s, second * 1000 + ms, 0, &total);
	}
	assert_in_range(total, 10 * value * 8 / 10, 10 * value);
}

/* Whoever asks late, for a time that is over, does not get what was measured since. */
static void test_a_time_that_is_over(void **state)
{
	struct sampled_sum s = {};

	(void)state;
	sampled_sum__begin(&s, 1000 * MS, 0);
	assert_total(&s, 1025, 1100, 4000, 1000);
	sampled_sum__end(&s, 1100 * MS, 4000);
	assert_total(&s, 1075, 1300, 0, 3000);
	sampled_sum__begin(&s, 2000 * MS, 4000);
	/* the part has hardly begun, but the programs ran for long before the question */
	assert_total(&s, 1900, 2050, 24000, 36000);
	assert_total(&s, 0, 2050, 24000, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_known_at_first),
		cmocka_unit_test(test_each_part_stands_for_the_time_up_to_the_next),
		cmocka_unit_test(test_the_total_does_not_fall),
		cmocka_unit_test(test_a_time_that_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which failures of a server are reported. */
#include "test_push_kit.h"

#define MINUTE UINT64_C(60000000000)
#define HOUR   (60 * MINUTE)
#define T0     (1000 * HOUR)

/* The reason that is reported first may not be the one that remains. */
static void test_another_reason(void **state)
{
	struct outage o = {0};

	(void)state;
	assert_true(outage__is_news(&o, 1, "Connection refused, port 4318", T0));
	assert_false(outage__is_news(&o, 2, "Connection refused, port 4319", T0 + 2 * MINUTE));
	assert_false(outage__is_news(&o, 3, "HTTP 503", T0 + MINUTE / 2));
	assert_true(outage__is_news(&o, 4, "HTTP 503", T0 + 3 * MINUTE));
	assert_false(outage__is_news(&o, 5, "HTTP 502", T0 + 4 * MINUTE));
	/* reasons that come by turns do not fill the log */
	for (unsigned i = 0; i < 50; i++)
		assert_false(outage__is_news(&o, 6 + i, i % 2 ? "HTTP 503" : "timed out",
					     T0 + (5 + i) * MINUTE));
	assert_false(outage__is_news(&o, 59, "HTTP 503", T0 + 63 * MINUTE));
	assert_true(outage__is_news(&o, 60, "HTTP 429", T0 + 63 * MINUTE));
	assert_false(outage__is_news(&o, 61, "HTTP 503", T0 + 64 * MINUTE));
}

/* Short outages after a reported one are not; a reason too long to be kept is not another one. */
static void test_short_ones(void **state)
{
	struct outage o = {0};
	char why[1000];

	(void)state;
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	assert_true(outage__is_news(&o, 1, why, T0));
	assert_false(outage__is_news(&o, 2, why, T0 + 2 * HOUR));
	o.reported = false;
	assert_true(outage__is_news(&o, 1, why, T0 + 2 * HOUR));
	o.reported = false;
	assert_false(outage__is_news(&o, 1, "gone", T0 + 2 * HOUR + MINUTE));
	assert_false(outage__is_news(&o, 2, "gone", T0 + 2 * HOUR + 2 * MINUTE - 1));
	assert_true(outage__is_news(&o, 3, "gone", T0 + 2 * HOUR + 2 * MINUTE));
	/* a new outage has a change of its own */
	assert_true(outage__is_news(&o, 4, "refused", T0 + 2 * HOUR + 4 * MINUTE));
	o.reported = false;
	assert_true(outage__is_news(&o, 1, "gone", T0 + 4 * HOUR));
	assert_true(outage__is_news(&o, 2, "refused", T0 + 4 * HOUR + 2 * MINUTE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_reason),
		cmocka_unit_test(test_short_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

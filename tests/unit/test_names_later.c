/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is retried for a file that could not be read, and what is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/base.h"
#include "names/file_job_priv.h"
#include "names/names_priv.h"

static const struct slot_key one, another;

/* What there was no time for at all is retried at once; what is broken never is. */
static void test_errors(void **state)
{
	static const struct {
		int err;
		bool put_off, waits;
	} cases[] = {
		{0, false, false},	  {-ENOENT, false, false}, {-ENOEXEC, false, false},
		{-EBADMSG, false, false}, {-E2BIG, false, false},  {-EBUSY, true, false},
		{-ETIMEDOUT, true, true}, {-EIO, true, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct names names = {0};
		struct slots slots = {0};

		assert_false(names__waits(&names, &slots, &one));
		assert_int_equal(names__put_off(&names, &slots, &one, cases[i].err),
				 cases[i].put_off);
		assert_int_equal(names.incomplete, cases[i].put_off);
		names.incomplete = false;
		assert_int_equal(names__waits(&names, &slots, &one), cases[i].waits);
		assert_int_equal(names.incomplete, cases[i].waits);
		/* each slot key has a pause of its own */
		assert_false(names__waits(&names, &slots, &another));
		slots__free(&slots);
	}
}

/* After several failures in a row, the names made without it are accepted as final. */
static void test_lasting(void **state)
{
	struct names names = {0};
	struct slots slots = {0};

	(void)state;
	for (int i = 0; i < NAMES_PAUSE_LASTING; i++) {
		names.incomplete = false;
		assert_true(names__put_off(&names, &slots, &one, -ETIMEDOUT));
		assert_int_equal(names.incomplete, i < NAMES_PAUSE_LASTING - 1);
	}
	assert_true(names__waits(&names, &slots, &one));
	assert_false(names.incomplete);
	assert_true(names__put_off(&names, &slots, &another, -EIO));
	assert_true(names.incomplete);
	slots__free(&slots);
}

/* A killed child is followed by another one, after a pause; a finished job is not repeated. */
static void test_job(void **state)
{
	struct file_jobs all = {.what = "nothing"};
	struct image image = {.name = "a"};
	struct file_job job = {.all = &all};
	struct names names = {0};

	(void)state;
	assert_false(file_job__rests(&job, &names));
	assert_null(file_job__take(&job, -EIO, &names, &image));
	assert_true(names.incomplete);
	assert_false(job.over);
	names.incomplete = false;
	assert_true(file_job__rests(&job, &names));
	assert_true(names.incomplete);
	job.pause.retry.until_ns -= NAMES_PAUSE_NS;
	assert_false(file_job__rests(&job, &names));
	assert_null(file_job__take(&job, -ETIMEDOUT, &names, &image));
	assert_int_equal(job.pause.retry.ns, 2 * NAMES_PAUSE_NS);
	job.pause.retry.until_ns = 1;
	assert_false(file_job__rests(&job, &names));
	names.incomplete = false;
	assert_null(file_job__take(&job, -ENOENT, &names, &image));
	assert_true(job.over);
	assert_true(file_job__rests(&job, &names));
	assert_false(names.incomplete);
}

/*
 * Each pause is longer than the previous one, up to an hour; after a long quiet time they start
 * over.
 */
static void pauses(void **state)
{
	const uint64_t min = NAMES_PAUSE_NS, max = NAMES_PAUSE_MAX_NS;
	struct names_pause p = {0};
	uint64_t now = 5 * max, lasted = min;

	(void)state;
	assert_int_equal(names_pause__now(&p, 0), 0);
	for (int n = 1; n < 20; n++) {
		int err = n < NAMES_PAUSE_LASTING ? -EBUSY : -EIO;

		names_pause__begin(&p, now, -EIO);
		assert_int_equal(names_pause__now(&p, now), err);
		assert_int_equal(names_pause__now(&p, now + lasted - 1), err);
		assert_int_equal(names_pause__now(&p, now + lasted), 0);
		now += lasted;
		lasted = MIN(2 * lasted, max);
	}
	assert_int_equal(lasted, max);
	now += 2 * max;
	names_pause__begin(&p, now, -ETIMEDOUT);
	assert_int_equal(names_pause__now(&p, now + min - 1), -EBUSY);
	assert_int_equal(names_pause__now(&p, now + min), 0);
	/* a success in between ends the series of failures */
	for (int n = 0; n < 3 * NAMES_PAUSE_LASTING; n++) {
		now += min;
		names_pause__begin(&p, now, -EIO);
		if (n % 2)
			names_pause__end(&p);
		else
			assert_int_equal(names_pause__now(&p, now), -EBUSY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(pauses),
		cmocka_unit_test(test_lasting),
		cmocka_unit_test(test_job),
	};

	return cmocka_run_group_tests_name("names_later", tests, NULL, NULL);
}

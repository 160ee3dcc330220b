/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of GHC's releases, and strings that are not accepted as a release. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "rts/ghc_version.h"

static void t_order(void **state)
{
	static const char *const ascending[] = {"8.10.7",	  "9.0",
						"9.0.1",	  "9.0.2",
						"9.2.8",	  "9.4.3",
						"9.4.10",	  "9.5.1",
						"9.6.0.20230111", "9.6.1",
						"9.6.1.20230111", "9.10.3",
						"9.12",		  "9.12.2",
						"9.12.20250101",  "9.14",
						"10.0.1",	  "15.63.99999999.99999999"};
	ghc_version_t last = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ascending); i++) {
		ghc_version_t v;

		assert_int_equal(ghc_version__parse(ascending[i], strlen(ascending[i]), &v), 0);
		if (v <= last)
			fail_msg("%s is not above what stands before it", ascending[i]);
		assert_true(v == ghc_version__of(ascending[i]));
		last = v;
	}
	assert_true(ghc_version__of("9.6.6") == GHC_VERSION(9, 6, 6));
	assert_true(ghc_version__of("9.14") == GHC_VERSION(9, 14, 0));
	assert_true(ghc_version__of("9.6.0.20230111") < GHC_VERSION(9, 6, 1));
}

static void t_only_len_bytes(void **state)
{
	ghc_version_t v;

	(void)state;
	assert_int_equal(ghc_version__parse("9.0.2 9.2.1", 5, &v), 0);
	assert_true(v == GHC_VERSION(9, 0, 2));
	assert_int_equal(ghc_version__parse("9.0.21", 5, &v), 0);
	assert_true(v == GHC_VERSION(9, 0, 2));
	assert_int_equal(ghc_version__parse("9.0.2", 4, &v), -EINVAL);
	assert_int_equal(ghc_version__parse("9.0.2\0x", 7, &v), -EINVAL);
}

static void t_no_version(void **state)
{
	static const char *const bad[] = {
		"",	  "9",	      "9.",	     ".0.2", "9.0.2.",	  "9.0.2x",
		"9..2",	  "a.b.c",    "-9.0.2",	     "9.-1", "9.0.2.1.1", "99999999999.1",
		"9.0.2 ", " 9.0.2",   "9.0.2\n",     "16.0", "9.64.1",	  "9.0.100000000",
		"9,0,2",  "9.0x10.1", "4294967305.0"};
	ghc_version_t v = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ghc_version__parse(bad[i], strlen(bad[i]), &v) != -EINVAL)
			fail_msg("\"%s\" was taken for a version", bad[i]);
		assert_true(ghc_version__of(bad[i]) == 0);
	}
	assert_true(v == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_order),
		cmocka_unit_test(t_only_len_bytes),
		cmocka_unit_test(t_no_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

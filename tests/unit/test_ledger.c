/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ledgers of many lines: merging those of threads that ended into one account. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ledger/ledger_priv.h"

#define OWNERS 3000

/* There are more lines than places in the table of recent ones, so that lines of different
 * owners share places. With the address sanitizer this fails if the table keeps a freed line. */
static void test_merge(void **state)
{
	const struct ledger_opts opts = {0};
	struct ledger_account *accounts;
	uint32_t to[OWNERS] = {0};
	struct ledger *l;
	uint64_t ns = 0;

	(void)state;
	assert_int_equal(ledger__new(&opts, &l), 0);
	for (uint32_t i = 0; i < OWNERS; i++) {
		assert_int_equal(ledger__off(l, i, 1, 1 + i, 4), 0);
		assert_int_equal(ledger__off(l, i, 1, 1 + i, 6), 0);
	}
	assert_non_null(l->recent);
	assert_int_equal(ledger__merge_owners(l, to, OWNERS), 0);
	assert_int_equal(HASH_COUNT(l->table), OWNERS);
	/* later bookings find the merged lines */
	for (uint32_t i = 0; i < OWNERS; i++)
		assert_int_equal(ledger__off(l, 0, 1, 1 + i, 10), 0);
	assert_int_equal(HASH_COUNT(l->table), OWNERS);
	assert_int_equal(ledger__accounts(l, 1, &accounts), 0);
	assert_int_equal(accounts[0].n, OWNERS);
	for (size_t i = 0; i < accounts[0].n; i++)
		ns += accounts[0].rows[i].ns;
	assert_int_equal(ns, OWNERS * 20);
	ledger_accounts__free(accounts, 1);
	ledger__free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares of a limited resource: the greedy are stopped, and latecomers find room. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/shares.h"
#include "kernel/kernel_priv.h"
#include "safescope.skel.h"
#include "wire.h"

enum { ANNA = 1000, BERT = 1001, CARL = 4000000000U, NOBODY = 65534 };

/* Takes things numbered from `first` until one is refused; returns how many were taken. */
static uint64_t take_all(struct shares *shares, uid_t uid, uint64_t first, uint64_t bytes)
{
	uint64_t n = 0;

	while (n < 10000 && shares__ask(shares, uid, bytes) == 0) {
		assert_int_equal(shares__use(shares, first + n, uid, bytes), 0);
		n++;
	}
	return n;
}

/*
 * How much of `max` bytes is in use, derived from the half of the rest that a user with nothing
 * gets.
 */
static uint64_t bytes_in_use(const struct shares *shares, uint64_t max)
{
	uint64_t half = 0;

	while (shares__ask(shares, NOBODY, half + 1) == 0)
		half++;
	return max - 2 * half;
}

static void t_greedy(void **state)
{
	struct shares *shares;

	(void)state;
	assert_int_equal(shares__new(1000, 1 << 20, &shares), 0);
	assert_int_equal(take_all(shares, ANNA, 0, 1), 500);
	assert_int_equal(take_all(shares, BERT, 10000, 1), 250);
	assert_int_equal(take_all(shares, CARL, 20000, 1), 125);
	assert_int_equal(shares__ask(shares, ANNA, 1), -EDQUOT);
	/* what one user releases is available to others */
	for (uint64_t i = 0; i < 500; i++)
		shares__leave(shares, i, ANNA);
	assert_int_equal(shares__of(shares, ANNA).things, 0);
	assert_int_equal(take_all(shares, BERT, 30000, 1), 437 - 250);
	shares__free(shares);
}

static void t_gone(void **state)
{
	struct shares *shares;

	(void)state;
	assert_int_equal(shares__new(1000, 1000, &shares), 0);
	assert_int_equal(shares__use(shares, 1, ANNA, 10), 0);
	assert_int_equal(shares__use(shares, 1, ANNA, 10), 0);
	assert_int_equal(shares__use(shares, 1, BERT, 10), 0);
	assert_int_equal(shares__use(shares, 2, BERT, 6), 0);
	shares__forget(shares, 1);
	assert_int_equal(shares__of(shares, ANNA).things, 0);
	assert_int_equal(shares__of(shares, BERT).things, 1);
	assert_int_equal(shares__of(shares, BERT).bytes, 6);
	assert_int_equal(bytes_in_use(shares, 1000), 6);
	/* a thing that is already gone can be released again without effect */
	shares__leave(shares, 1, ANNA);
	shares__forget(shares, 1);
	assert_int_equal(bytes_in_use(shares, 1000), 6);
	shares__free(shares);
}

static void t_bytes(void **state)
{
	struct shares *shares;

	(void)state;
	assert_int_equal(shares__new(1000, 1000, &shares), 0);
	assert_int_equal(shares__ask(shares, ANNA, 501), -EDQUOT);
	assert_int_equal(shares__ask(shares, ANNA, UINT64_MAX), -EDQUOT);
	assert_int_equal(take_all(shares, ANNA, 0, 100), 5);
	assert_int_equal(take_all(shares, BERT, 100, 100), 2);
	assert_int_equal(shares__of(shares, ANNA).bytes, 500);
	assert_int_equal(bytes_in_use(shares, 1000), 700);
	shares__free(shares);
}

/* A thing that several users share counts once in all, and for each of them. */
static void t_shared(void **state)
{
	struct shares *shares;

	(void)state;
	assert_int_equal(shares__new(10, 1000, &shares), 0);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(shares__use(shares, i, ANNA, 10), 0);
		assert_int_equal(shares__use(shares, i, BERT, 10), 0);
		assert_int_equal(shares__use(shares, i, BERT, 10), 0);
	}
	assert_int_equal(bytes_in_use(shares, 1000), 50);
	assert_int_equal(shares__of(shares, BERT).things, 5);
	assert_int_equal(shares__ask(shares, ANNA, 1), -EDQUOT);
	/* the thing stays while somebody uses it, and counts for them alone */
	shares__leave(shares, 0, ANNA);
	shares__leave(shares, 0, ANNA);
	assert_int_equal(shares__of(shares, ANNA).things, 4);
	assert_int_equal(bytes_in_use(shares, 1000), 50);
	shares__leave(shares, 0, BERT);
	assert_int_equal(shares__of(shares, BERT).things, 5);
	shares__leave(shares, 0, BERT);
	assert_int_equal(shares__of(shares, BERT).things, 4);
	assert_int_equal(bytes_in_use(shares, 1000), 40);
	shares__leave(shares, 77, CARL);
	shares__free(shares);
	shares__free(NULL);
}

/* The rule at its boundary, with odd numbers too. */
static void t_half(void **state)
{
	(void)state;
	for (uint64_t max = 0; max <= 20; max++)
		for (uint64_t others = 0; others <= 22; others++)
			for (uint64_t has = 0; has <= 22; has++)
				for (uint64_t more = 0; more <= 22; more++) {
					/*
					 * twice what the user would have, plus what the others have
					 */
					bool want = others <= max ? 2 * (has + more) + others <= max
								  : has + more == 0;

					assert_int_equal(
						wire_share_fits(max, others + has, has, more),
						want);
				}
	assert_true(wire_share_fits(UINT64_MAX, 0, 0, UINT64_MAX / 2));
	assert_false(wire_share_fits(UINT64_MAX, 0, 0, UINT64_MAX / 2 + 1));
	assert_false(wire_share_fits(UINT64_MAX, UINT64_MAX, UINT64_MAX, 1));
	/* read between two writes */
	assert_true(wire_share_fits(8, 2, 3, 1));
	assert_false(wire_share_fits(8, 2, 4, 1));
}

/* Replaces libbpf's function: all maps are empty. */
int bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	(void)fd;
	(void)in;
	(void)out;
	(void)keys;
	(void)values;
	(void)opts;
	*count = 0;
	return -ENOENT;
}

/* Calls that were open at the start follow the same rule; half of an odd number is rounded down. */
static void t_open(void **state)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	uint32_t n = 0;

	(void)state;
	assert_non_null(kernel);
	kernel->skel = calloc(1, sizeof(*kernel->skel));
	assert_non_null(kernel->skel);
	assert_int_equal(users__new(&kernel->users), 0);
	/* when there is no room the calls are counted again */
	for (uint32_t i = 0; i <= WIRE_MAX_OPEN / 2; i++)
		assert_int_equal(users__add_open(kernel, 1), 0);
	/* one of them is left, and they are not counted again within the next second */
	while (n < WIRE_MAX_OPEN && users__add_open(kernel, 2) == 0)
		n++;
	assert_int_equal(n, (WIRE_MAX_OPEN - 1) / 2);
	users__free(kernel->users);
	free(kernel->skel);
	free(kernel);
}

/* A user who was let in while there was room keeps what he has, and gets no more. */
static void t_over(void **state)
{
	struct shares *shares;

	(void)state;
	assert_int_equal(shares__new(4, 4, &shares), 0);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(shares__use(shares, i, ANNA, 1), 0);
	assert_int_equal(shares__ask(shares, ANNA, 1), -EDQUOT);
	assert_int_equal(shares__ask(shares, BERT, 1), -EDQUOT);
	shares__free(shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_greedy), cmocka_unit_test(t_gone), cmocka_unit_test(t_bytes),
		cmocka_unit_test(t_shared), cmocka_unit_test(t_over), cmocka_unit_test(t_half),
		cmocka_unit_test(t_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses are found by their frames, whatever the table of recent addresses contains. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "intake/intake_priv.h"

#define N 3000

/* Adjacent addresses, as in a program's code, each once more with another frame kind in the
 * upper bits. */
static uint64_t frame_of(size_t i)
{
	return (0x400000 + (i / 2) * 8) | (uint64_t)(i % 2) << WIRE_FRAME_KIND_SHIFT;
}

static void add(struct seen *s, size_t i)
{
	struct seen_addr *addr = calloc(1, sizeof(*addr));

	assert_non_null(addr);
	addr->key = frame_of(i);
	addr->frame = (uint32_t)i;
	assert_int_equal(addrs__add(s, addr), 0);
}

static void check(struct seen *s, size_t i)
{
	const struct seen_addr *addr = addrs__find(s, frame_of(i));

	assert_non_null(addr);
	assert_int_equal(addr->key, frame_of(i));
	assert_int_equal(addr->frame, i);
}

static void finds_all(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	uint64_t frames[N];

	(void)state;
	assert_non_null(s);
	assert_null(addrs__find(s, 1));
	addrs__expect(s, frames, 0);
	for (size_t i = 0; i < N; i++) {
		frames[i] = frame_of(i);
		assert_null(addrs__find(s, frames[i]));
		add(s, i);
		check(s, i);
		check(s, i / 2);
	}
	addrs__expect(s, frames, N);
	for (size_t k = 0; k < 3 * N; k++)
		check(s, k * 7919 % N);
	assert_null(addrs__find(s, frame_of(N)));
	addrs__free(s);
	assert_null(addrs__find(s, frames[0]));
	addrs__free(s);
	free(s);
}

/* As at a cut: unused addresses are removed. */
static void forgets(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct seen_addr *addr, *next;

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < N; i++)
		add(s, i);
	addrs__forget_recent(s);
	HASH_ITER (hh, s->addrs, addr, next) {
		if (addr->frame % 3)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(s->addrs, addr);
		free(addr);
	}
	for (size_t i = 0; i < N; i++) {
		if (i % 3)
			check(s, i);
		else
			assert_null(addrs__find(s, frame_of(i)));
	}
	for (size_t i = 0; i < N; i += 3)
		add(s, i);
	for (size_t i = 0; i < N; i++)
		check(s, i);
	addrs__free(s);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_all), cmocka_unit_test(forgets)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Atomic exchanges in code, which identify the parallel collector's code. Source: Intel SDM 2,
 * CMPXCHG and XCHG.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "rts/arch_priv.h"

static void test_exchanges(void **state)
{
	static const struct {
		uint8_t code[12];
		size_t len, n;
	} cases[] = {
		{{0x90, 0x90, 0x90, 0x90, 0x90}, 5, 0},
		/* lock cmpxchg %rbp,(%r11); %rsi,(%rdi); %ecx,(%rdi) */
		{{0xf0, 0x49, 0x0f, 0xb1, 0x2b}, 5, 1},
		{{0xf0, 0x48, 0x0f, 0xb1, 0x37, 0xc3}, 6, 1},
		{{0xf0, 0x0f, 0xb1, 0x0f}, 4, 1},
		/* not atomic */
		{{0x49, 0x0f, 0xb1, 0x2b}, 4, 0},
		/* lock xadd */
		{{0xf0, 0x48, 0x0f, 0xc1, 0x37}, 5, 0},
		/* xchg %r15,(%rbx); %rax,8(%rdx) */
		{{0x4c, 0x87, 0x3b, 0x90}, 4, 1},
		{{0x48, 0x87, 0x42, 0x08}, 4, 1},
		/* xchg %rax,%rcx; xchg %ax,%ax */
		{{0x48, 0x87, 0xc1, 0x90}, 4, 0},
		{{0x66, 0x90, 0x66, 0x90}, 4, 0},
		{{0xf0, 0x49, 0x0f, 0xb1, 0x2b, 0x4c, 0x87, 0x3b, 0x90}, 9, 2},
		/* truncated */
		{{0xf0, 0x49, 0x0f}, 3, 0},
		{{0x4c, 0x87}, 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(rts_arch__n_exchanges(cases[i].code, cases[i].len), cases[i].n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exchanges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

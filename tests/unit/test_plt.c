/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entries of procedure linkage tables, in all forms in which linkers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "elf/arch.h"

/* Each entry is at 0x1000. */
static void plt_entries(void **state)
{
	static const struct {
		uint8_t code[ELF_ARCH_PLT_MAX];
		uint64_t slot;
	} known[] = {
		{{0xff, 0x25, 0x10, 0, 0, 0}, 0x1016},
		{{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0}, 0x101b},
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x4c, 0x8b, 0x1d, 0x10, 0, 0, 0}, 0x101b},
		/* mold, lazily bound */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 0x3a, 0, 0, 0, 0xff, 0x25, 0x10, 0, 0, 0},
		 0x1020},
		/* the jump's last byte would be past the end */
		{{0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 0x3a, 0, 0, 0, 0xf2, 0xff, 0x25, 0x10, 0, 0},
		 0},
	};
	uint64_t slot;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		slot = 0;
		assert_int_equal(elf_arch__plt_slot(known[i].code, 0x1000, &slot),
				 known[i].slot != 0);
		assert_int_equal(slot, known[i].slot);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plt_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

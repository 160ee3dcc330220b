/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: its relocations (psABI, 4.4.1), and what linkers make of them (psABI, B; 11.1.2 TLS). */
#include <elf.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"

/*
 * If the linker may replace the instruction that contains a relocation, the whole instruction
 * counts as written: `mov foo@GOTPCREL(%rip),%rax` becomes `lea foo(%rip),%rax`.
 */
static const struct archives_field fields[] = {
	[R_X86_64_64] = {0, 8},
	[R_X86_64_PC32] = {0, 4},
	[R_X86_64_GOT32] = {0, 4},
	[R_X86_64_PLT32] = {0, 4},
	[R_X86_64_GOTPCREL] = {3, 7},
	[R_X86_64_32] = {0, 4},
	[R_X86_64_32S] = {0, 4},
	[R_X86_64_16] = {0, 2},
	[R_X86_64_PC16] = {0, 2},
	[R_X86_64_8] = {0, 1},
	[R_X86_64_PC8] = {0, 1},
	[R_X86_64_DTPOFF64] = {0, 8},
	[R_X86_64_TPOFF64] = {0, 8},
	[R_X86_64_TLSGD] = {4, 16},
	[R_X86_64_TLSLD] = {3, 13},
	[R_X86_64_DTPOFF32] = {0, 4},
	[R_X86_64_GOTTPOFF] = {3, 7},
	[R_X86_64_TPOFF32] = {0, 4},
	[R_X86_64_PC64] = {0, 8},
	[R_X86_64_GOTOFF64] = {0, 8},
	[R_X86_64_GOTPC32] = {0, 4},
	[R_X86_64_SIZE32] = {0, 4},
	[R_X86_64_SIZE64] = {0, 8},
	[R_X86_64_GOTPC32_TLSDESC] = {3, 7},
	[R_X86_64_TLSDESC_CALL] = {0, 2},
	[R_X86_64_GOTPCRELX] = {3, 7},
	[R_X86_64_REX_GOTPCRELX] = {3, 7},
};

bool archives_arch__is_ours(uint16_t machine)
{
	return machine == EM_X86_64;
}

bool archives_arch__field(uint32_t type, struct archives_field *ret_field)
{
	if (type == R_X86_64_NONE) {
		*ret_field = (struct archives_field){0, 0};
		return true;
	}
	if (type >= ARRAY_SIZE(fields) || !fields[type].len)
		return false;
	*ret_field = fields[type];
	return true;
}

/* nop and int3; nopw and nopl with operands of any length, after prefixes (SDM, NOP). */
uint32_t archives_arch__padding(const uint8_t *code, uint32_t len)
{
	static const uint8_t operands[256] = {
		[0x00] = 1, [0x40] = 2, [0x44] = 3, [0x80] = 5, [0x84] = 6};
	uint32_t at = 0, n;

	/* no instruction is longer (SDM, 2.3.11) */
	len = MIN(len, 15U);
	if (len && code[0] == 0xcc)
		return 1;
	while (at < len && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < len && code[at] == 0x90)
		return at + 1;
	if (len - at < 3 || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	n = operands[code[at + 2]];
	return n && n <= len - at - 2 ? at + 2 + n : 0;
}

bool archives_arch__symbol(uint32_t type, const uint8_t *field, uint64_t place, int64_t addend,
			   uint64_t *ret_vaddr)
{
	int32_t narrow;
	uint64_t value;

	switch (type) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		memcpy(&narrow, field, sizeof(narrow));
		*ret_vaddr = (uint64_t)(int64_t)narrow + place - (uint64_t)addend;
		return true;
	case R_X86_64_32S:
	case R_X86_64_32:
		memcpy(&narrow, field, sizeof(narrow));
		*ret_vaddr = (type == R_X86_64_32 ? (uint32_t)narrow : (uint64_t)(int64_t)narrow) -
			     (uint64_t)addend;
		return true;
	case R_X86_64_PC64:
		memcpy(&value, field, sizeof(value));
		*ret_vaddr = value + place - (uint64_t)addend;
		return true;
	default:
		return false;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: System V Application Binary Interface, AMD64 Architecture Processor Supplement. */
#include <elf.h>
#include <string.h>

#include "arch.h"

const char elf_arch_name[] = "x86-64";

bool elf_arch__is_ours(uint16_t machine)
{
	return machine == EM_X86_64;
}

enum elf_reloc elf_arch__reloc(uint32_t type)
{
	switch (type) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return ELF_RELOC_SLOT;
	case R_X86_64_DTPMOD64:
		return ELF_RELOC_TLS_MODULE;
	case R_X86_64_TPOFF64:
		return ELF_RELOC_TLS_OFFSET;
	default:
		return ELF_RELOC_OTHER;
	}
}

/*
 * PLT entries of GNU ld, gold, lld and mold all reach their slot through one instruction: `jmp
 * *rel32(%rip)` (ff 25), in .plt.sec after `endbr64` (f3 0f 1e fa), in files of some years with
 * MPX's `bnd` prefix (f2). mold and lld may load the slot with `mov rel32(%rip),%r11` (4c 8b 1d)
 * instead of jumping directly. mold may put the entry's number into %r11d before the jump
 * (41 bb imm32), for lazy binding.
 */
bool elf_arch__plt_slot(const uint8_t code[ELF_ARCH_PLT_MAX], uint64_t vaddr, uint64_t *ret_slot)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	int32_t rel;

	if (memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (code[at] == 0x41 && code[at + 1] == 0xbb)
		at += 6;
	if (code[at] == 0xf2)
		at++;
	if (code[at] == 0xff && code[at + 1] == 0x25)
		at += 2;
	else if (code[at] == 0x4c && code[at + 1] == 0x8b && code[at + 2] == 0x1d)
		at += 3;
	else
		return false;
	if (at + sizeof(rel) > ELF_ARCH_PLT_MAX)
		return false;
	memcpy(&rel, code + at, sizeof(rel));
	at += sizeof(rel);
	*ret_slot = vaddr + at + (uint64_t)(int64_t)rel;
	return true;
}

/*
 * TLS variant II: the executable's block ends at the thread pointer, its size rounded up to its
 * alignment (ELF Handling For Thread-Local Storage, section 3.4.6).
 */
int64_t elf_arch__tls_offset(uint64_t value, uint64_t memsz, uint64_t align)
{
	uint64_t size = (memsz + align - 1) & ~(align - 1);

	return (int64_t)value - (int64_t)size;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What of an ELF file depends on the processor. For another one, an arch_NAME.c in this room
 * provides all of this and stands in the place of arch_x86_64.c; 64 bits and little-endian is what
 * the rest of the room takes for granted.
 */
#ifndef SAFESCOPED_ELF_ARCH_H
#define SAFESCOPED_ELF_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For messages: "x86-64". */
extern const char elf_arch_name[];

/* e_machine of the files that can be read. */
bool elf_arch__is_ours(uint16_t machine);

enum elf_reloc {
	ELF_RELOC_OTHER = 0,
	ELF_RELOC_SLOT,	      /* a symbol's address: lazily bound (.got.plt) or not (.got) */
	ELF_RELOC_TLS_MODULE, /* the number of the file's thread-local block */
	ELF_RELOC_TLS_OFFSET, /* a variable's offset from the thread pointer */
};
/* What the dynamic linker writes for a relocation of this type. */
enum elf_reloc elf_arch__reloc(uint32_t type);

/* As many bytes of a PLT entry as it takes to see where it leads. */
#define ELF_ARCH_PLT_MAX 16
/* So many are enough if it is the simplest one: the last entry may end its segment. */
#define ELF_ARCH_PLT_MIN 6
/*
 * The slot that the PLT entry at vaddr jumps through; `code` has ELF_ARCH_PLT_MAX bytes of it,
 * zeros after what is known. False: it is no PLT entry.
 */
bool elf_arch__plt_slot(const uint8_t code[ELF_ARCH_PLT_MAX], uint64_t vaddr, uint64_t *ret_slot);

/*
 * Where a thread-local variable of the executable lies, relative to the thread pointer: `value` of
 * its symbol, in a block of `memsz` bytes with this alignment, a power of two. What looks for a
 * variable without a symbol (rts/check_tls.c) takes it that the block ends at the thread pointer.
 */
int64_t elf_arch__tls_offset(uint64_t value, uint64_t memsz, uint64_t align);

#endif

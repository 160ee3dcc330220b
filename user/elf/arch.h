/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processor-specific parts of reading ELF files. For another processor, an arch_NAME.c in this
 * room provides all of this and replaces arch_x86_64.c; the rest of the room assumes 64 bits and
 * little-endian.
 */
#ifndef SAFESCOPED_ELF_ARCH_H
#define SAFESCOPED_ELF_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* For messages: "x86-64". */
extern const char elf_arch_name[];

/* Whether files with this e_machine can be read. */
bool elf_arch__is_ours(uint16_t machine);

enum elf_reloc {
	ELF_RELOC_OTHER = 0,
	ELF_RELOC_SLOT,	      /* a symbol's address: lazily bound (.got.plt) or not (.got) */
	ELF_RELOC_TLS_MODULE, /* the module id of the file's thread-local block */
	ELF_RELOC_TLS_OFFSET, /* a variable's offset from the thread pointer */
};
/* What the dynamic linker stores for a relocation of this type. */
enum elf_reloc elf_arch__reloc(uint32_t type);

/* Bytes of a PLT entry needed to find its target. */
#define ELF_ARCH_PLT_MAX 16
/* Enough for the simplest form of entry: the last one may end its segment. */
#define ELF_ARCH_PLT_MIN 6
/*
 * The slot that the PLT entry at vaddr jumps through; `code` holds ELF_ARCH_PLT_MAX bytes of it,
 * zero-padded if fewer are known. False: not a PLT entry.
 */
bool elf_arch__plt_slot(const uint8_t code[ELF_ARCH_PLT_MAX], uint64_t vaddr, uint64_t *ret_slot);

/*
 * The offset of a thread-local variable of the executable from the thread pointer: `value` of its
 * symbol, in a block of `memsz` bytes with this alignment, a power of two. The search for a
 * variable without a symbol (rts/check_tls.c) assumes that the block ends at the thread pointer.
 */
int64_t elf_arch__tls_offset(uint64_t value, uint64_t memsz, uint64_t align);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an opened ELF file is made of. Shared by the files of this room only. */
#ifndef SAFESCOPED_ELF_PRIV_H
#define SAFESCOPED_ELF_PRIV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "elf/elf.h"
#include "elf_map_priv.h"

#define ELF_MAX_SEGMENTS 64
#define ELF_MAX_PHDRS	 1024
#define ELF_MAX_SECTIONS 65536
#define ELF_MAX_DYNAMIC	 4096
#define ELF_MAX_NAME	 4096 /* of a file, for messages */

struct elf_range {
	uint64_t offset, size; /* checked: inside the file */
};

struct elf_symtab_ref {
	const uint8_t *syms; /* n Elf64_Sym, not aligned */
	size_t n;
	const char *strs; /* strs[strs_size - 1] is NUL, unless strs_size is 0 */
	size_t strs_size;
};

/* A slot that the dynamic linker fills with a symbol's address. */
struct elf_got {
	uint64_t slot;
	uint32_t sym; /* index into .dynsym */
};

/* What is only made when it is first asked for. */
struct elf_lazy {
	struct elf_got *got;
	size_t n_got, cap_got;
	bool got_done;
	struct elf_fde *fdes;
	size_t n_fdes, cap_fdes;
	bool fdes_done;
	int fdes_err;
};

struct elf_file {
	char *name;
	const uint8_t *data;
	size_t size;
	uint64_t stored; /* bytes on the disk */
	uid_t user;	 /* on whose account it is read */
	struct elf_map map;
	uint16_t type;
	struct elf_segment segments[ELF_MAX_SEGMENTS];
	size_t n_segments;
	Elf64_Shdr *sections; /* a copy: what was checked cannot change any more */
	size_t n_sections;
	struct elf_range section_names;
	struct elf_range notes[8]; /* PT_NOTE */
	uint64_t note_aligns[8];
	size_t n_notes;
	struct elf_range dynamic; /* PT_DYNAMIC */
	uint64_t eh_frame_hdr;	  /* PT_GNU_EH_FRAME, address; 0: none */
	uint64_t tls_memsz, tls_align;
	bool has_tls;
	struct elf_symtab_ref symtabs[2]; /* by enum elf_symtab */
	struct elf_range relocs[2];	  /* .rela.dyn without its RELATIVE head, .rela.plt */
	struct elf_lazy *lazy;
};

static inline bool elf_in_file(const struct elf_file *elf, uint64_t offset, uint64_t len)
{
	return offset <= elf->size && len <= elf->size - offset;
}

/* Copies: nothing in a hostile file is aligned, and what is copied is read once. */
static inline bool elf_get(const struct elf_file *elf, uint64_t offset, void *out, size_t len)
{
	if (!elf_in_file(elf, offset, len))
		return false;
	memcpy(out, elf->data + offset, len);
	return true;
}

/* elf_symbols.c: finds both symbol tables and the relocations. */
void elf_symbols__init(struct elf_file *elf);
/* The symbol at an index; false if there is none or it has no readable name. */
bool elf_symbols__at(const struct elf_symtab_ref *tab, size_t i, struct elf_sym *ret_sym);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of an opened ELF file. Shared by the files of this room only. */
#ifndef SAFESCOPED_ELF_PRIV_H
#define SAFESCOPED_ELF_PRIV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/retry.h"
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

/* The last byte of `strs` was NUL when it was checked. */
struct elf_table {
	struct elf_range syms; /* whole Elf64_Sym entries, not aligned */
	struct elf_range strs;
};

/*
 * The contents of the file's header and its tables. May come from another process that parsed them:
 * call elf_heads__check() before using it.
 */
struct elf_heads {
	uint16_t type;
	bool has_tls, is_cut; /* is_cut: elf__is_cut() */
	char build_id[41];    /* hex; "": none */
	uint64_t entry;	      /* address, as the header has it */
	uint64_t n_segments, n_sections;
	struct elf_segment segments[ELF_MAX_SEGMENTS];
	struct elf_range section_names;
	struct elf_range dynamic; /* PT_DYNAMIC */
	uint64_t eh_frame_hdr;	  /* PT_GNU_EH_FRAME, address; 0: none */
	uint64_t tls_memsz, tls_align;
	struct elf_table symtabs[2]; /* by enum elf_symtab */
	struct elf_range relocs[2];  /* .rela.dyn without its leading RELATIVE entries, .rela.plt */
};

/* A slot that the dynamic linker fills with a symbol's address. */
struct elf_got {
	uint64_t slot;
	uint32_t sym; /* index into .dynsym */
};

/* A symbol that the file exports. */
struct elf_export {
	uint32_t hash; /* of its name */
	uint32_t sym;  /* index into .dynsym */
};

/* Whether something was read aside, and the result. Zeroed: not read. */
struct elf_once {
	bool done;
	int err;
	struct retry again; /* if it took too long, or the child was killed */
};

/* Tables that are read on first use. */
struct elf_lazy {
	struct elf_got *got;
	size_t n_got, cap_got;
	struct elf_once got_read;
	struct elf_export *exports; /* ascending by hash */
	size_t n_exports;
	struct elf_once exports_read;
	struct elf_fde *fdes;
	size_t n_fdes, cap_fdes;
	struct elf_once fdes_read;
};

struct elf_file {
	char *name;
	const uint8_t *data;
	size_t size;
	uint64_t stored; /* bytes allocated on disk */
	uid_t user;	 /* the user it is charged to */
	bool roots;	 /* only root can have written it, or the caller keeps the bytes */
	struct elf_map map;
	struct elf_heads heads;
	Elf64_Shdr *sections; /* heads.n_sections of them; a copy, which cannot change any more */
	struct elf_lazy *lazy;
};

static inline bool elf_in_file(const struct elf_file *elf, uint64_t offset, uint64_t len)
{
	return offset <= elf->size && len <= elf->size - offset;
}

/* Copies: nothing in a hostile file is aligned, and what is copied is read only once. */
static inline bool elf_get(const struct elf_file *elf, uint64_t offset, void *out, size_t len)
{
	if (!elf_in_file(elf, offset, len))
		return false;
	memcpy(out, elf->data + offset, len);
	return true;
}

/* elf_heads.c: parses `data` and fills in heads and sections. Errors as elf__open_fd(). */
int elf_heads__parse(struct elf_file *elf);
/* The same in a child without rights. */
int elf_heads__parse_aside(struct elf_file *elf);
/* Whether all ranges lie within a file of this size, and all counts within their limits. */
bool elf_heads__check(const struct elf_heads *heads, uint64_t size);

/* elf_symbols.c: finds both symbol tables and the relocations. */
void elf_symbols__init(struct elf_file *elf);
/* The symbol at an index; false if there is none or it has no readable name. */
bool elf_symbols__at(const struct elf_file *elf, enum elf_symtab which, size_t i,
		     struct elf_sym *ret_sym);
/* Whether the symbol has this name of len bytes, apart from a version. */
bool elf_symbols__is_called(const struct elf_sym *sym, const char *name, size_t len);

/* elf_aside.c: whether it must be read now, for the first time or after a pause. */
bool elf_once__is_due(const struct elf_once *once);
/* Notes the result of reading it. */
void elf_once__end(struct elf_once *once, int err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The code sections of archives' members, and which of their bytes the linker leaves unchanged.
 * Everything points into the archives' bytes, and all offsets have been checked. libelf parses
 * archives and members; none of its data is kept.
 *
 * For the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_SECTIONS_PRIV_H
#define SAFESCOPED_ARCHIVES_SECTIONS_PRIV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_MEMBERS	 (1U << 17)
#define MAX_SECTIONS	 (1U << 20)
#define MAX_SECTION_SIZE (16U << 20)
#define MAX_UNSORTED	 (32U << 20) /* relocations of sections in which they are not sorted */

/* An object file in an archive. Offsets are relative to its first byte. */
struct member {
	const uint8_t *bytes;
	uint32_t size;
	uint32_t symbols, n_symbols; /* Elf64_Sym */
	uint32_t strings, strings_len;
	uint32_t more_shndx; /* where section numbers are that do not fit into a symbol; 0: none */
	uint32_t first, n;   /* its sections */
	bool haskell, rts;   /* part of GHC's libraries; of its runtime */
};

/* A section of code. */
struct section {
	uint32_t member;
	uint32_t number; /* in its object file */
	uint32_t data, size;
	uint32_t relocs, n_relocs; /* Elf64_Rela */
	uint32_t order;		   /* index of their order by offset; NO_ORDER: they are sorted */
	uint32_t align;		   /* a power of two */
	uint32_t fixed;		   /* bytes that the linker does not write */
	uint32_t distinct;	   /* fixed bytes without padding, which is the same in all code */
};

#define NO_ORDER UINT32_MAX

/* HASKELL: one of GHC's libraries; RTS: GHC's runtime. */
enum archive_kind { ARCHIVE_OTHER = 0, ARCHIVE_HASKELL, ARCHIVE_RTS };

struct sections {
	struct member *members;
	size_t n_members, members_cap;
	struct section *v;
	size_t n, cap;
	uint32_t *order; /* numbers of relocations within their section */
	size_t n_order, order_cap;
	size_t left_out; /* sections and members that are damaged, or of an unknown kind */
};

/*
 * Adds the sections of an archive, which must stay mapped; `kind`: what its members belong to.
 * -ENOEXEC: not an archive; -E2BIG: too many sections; -ENOMEM. Damaged parts are left out.
 */
int sections__read(struct sections *all, const void *archive, size_t size, enum archive_kind kind);
void sections__free(struct sections *all);

static inline const struct member *section__member(const struct sections *all,
						   const struct section *s)
{
	return &all->members[s->member];
}

static inline const uint8_t *section__data(const struct sections *all, const struct section *s)
{
	return section__member(all, s)->bytes + s->data;
}

/* ── its relocations and symbols ─────────────────────────────────────────────────────────── */

/* The i-th relocation by offset. */
void section__reloc(const struct sections *all, const struct section *s, uint32_t i,
		    Elf64_Rela *ret_reloc);

struct member_symbol {
	const char *name; /* "": none */
	uint32_t section; /* number in the file; 0: not in a section of the file */
	uint64_t value, size;
	uint8_t type, bind;
};
/* False: there is no such symbol, or it is damaged. */
bool member__symbol(const struct member *m, uint32_t i, struct member_symbol *ret_symbol);
/* The section of that number in the member's file; NULL: not code. */
const struct section *member__section(const struct sections *all, const struct member *m,
				      uint32_t number);

/* ── its bytes ───────────────────────────────────────────────────────────────────────────── */

/* Iterates over the stretches of bytes that the linker does not write. */
struct stretches {
	const struct sections *all;
	const struct section *s;
	uint32_t next, at; /* next relocation; current byte */
};

void stretches__begin(struct stretches *r, const struct sections *all, const struct section *s);
/* False: there are no more. Stretches are never empty. */
bool stretches__next(struct stretches *r, uint32_t *ret_from, uint32_t *ret_to);

/* True if `code`, which is as long as the section, may be what the linker made of it. */
bool section__is_at(const struct sections *all, const struct section *s, const uint8_t *code);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sections of code in archives' members, and which of their bytes the linker leaves as they
 * are. Everything points into the archives' bytes, of which every offset was checked. libelf takes
 * archives and members apart; nothing of it is left afterwards.
 *
 * Shared by the files of this room only.
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
#define MAX_UNSORTED	 (32U << 20) /* relocations of sections that do not have them in order */

/* An object file in an archive. Offsets count from its first byte. */
struct member {
	const uint8_t *bytes;
	uint32_t size;
	uint32_t symbols, n_symbols; /* Elf64_Sym */
	uint32_t strings, strings_len;
	uint32_t more_shndx; /* where section numbers are that a symbol has no room for; 0: none */
	uint32_t first, n;   /* its sections */
	bool haskell, rts;   /* GHC's libraries'; its runtime's */
};

/* A section of code. */
struct section {
	uint32_t member;
	uint32_t number; /* in its file */
	uint32_t data, size;
	uint32_t relocs, n_relocs; /* Elf64_Rela */
	uint32_t order;		   /* where their order by offset begins; NO_ORDER: they have it */
	uint32_t align;		   /* a power of two */
	uint32_t fixed;		   /* bytes that the linker does not write */
	uint32_t distinct;	   /* of those, what is no padding: that is the same in all code */
};

#define NO_ORDER UINT32_MAX

/* Of one of GHC's libraries, or of its runtime. */
enum archive_kind { ARCHIVE_OTHER = 0, ARCHIVE_HASKELL, ARCHIVE_RTS };

struct sections {
	struct member *members;
	size_t n_members, members_cap;
	struct section *v;
	size_t n, cap;
	uint32_t *order; /* numbers of relocations in their section */
	size_t n_order, order_cap;
	size_t left_out; /* sections and members that are damaged, or of an unknown kind */
};

/*
 * Adds those of an archive, which must stay where it is; `kind`: whose its members are. -ENOEXEC:
 * it is none; -E2BIG: there are too many; -ENOMEM. What is damaged in it is left out.
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

/* The i-th by its offset. */
void section__reloc(const struct sections *all, const struct section *s, uint32_t i,
		    Elf64_Rela *ret_reloc);

struct member_symbol {
	const char *name; /* "" for one without */
	uint32_t section; /* number in the file; 0: of no section of it */
	uint64_t value, size;
	uint8_t type, bind;
};
/* False: there is no such symbol, or it is damaged. */
bool member__symbol(const struct member *m, uint32_t i, struct member_symbol *ret_symbol);
/* The section of that number in the member's file; NULL: it is no code. */
const struct section *member__section(const struct sections *all, const struct member *m,
				      uint32_t number);

/* ── its bytes ───────────────────────────────────────────────────────────────────────────── */

/* Stretches of bytes that the linker does not write, one after the other. */
struct stretches {
	const struct sections *all;
	const struct section *s;
	uint32_t next, at; /* relocation; byte */
};

void stretches__begin(struct stretches *r, const struct sections *all, const struct section *s);
/* False: there are no more. None of them is empty. */
bool stretches__next(struct stretches *r, uint32_t *ret_from, uint32_t *ret_to);

/* Whether `code`, as long as the section, may be what the linker made of it. */
bool section__is_at(const struct sections *all, const struct section *s, const uint8_t *code);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read: reads archives with libelf, and notes their members' code sections. */
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "sections_priv.h"

/* Limit for a member's section headers; GHC's largest modules, with split sections, have 60 000. */
#define MAX_HEADERS (1U << 20)

void sections__free(struct sections *all)
{
	free(all->members);
	free(all->v);
	free(all->order);
	memset(all, 0, sizeof(*all));
}

/* The relocations of a section, from the header of their own section. */
struct relocs {
	uint32_t at, n;
	bool unusable;
};

struct reader {
	struct sections *all;
	struct member m;
	struct relocs *relocs; /* by index of the section that they are for */
	size_t n_headers;
};

static bool is_inside(const struct member *m, const GElf_Shdr *sh)
{
	return sh->sh_offset <= m->size && sh->sh_size <= m->size - sh->sh_offset;
}

static void note_symbols(struct reader *r, const GElf_Shdr *sh, Elf *elf)
{
	GElf_Shdr strings;
	Elf_Scn *scn = elf_getscn(elf, sh->sh_link);

	if (sh->sh_entsize != sizeof(Elf64_Sym) || !scn || !gelf_getshdr(scn, &strings) ||
	    strings.sh_type != SHT_STRTAB || strings.sh_flags & SHF_COMPRESSED ||
	    !is_inside(&r->m, &strings) || !strings.sh_size)
		return;
	/* so that every name is terminated */
	if (r->m.bytes[strings.sh_offset + strings.sh_size - 1])
		return;
	r->m.symbols = (uint32_t)sh->sh_offset;
	r->m.n_symbols = (uint32_t)(sh->sh_size / sizeof(Elf64_Sym));
	r->m.strings = (uint32_t)strings.sh_offset;
	r->m.strings_len = (uint32_t)strings.sh_size;
}

static void note_relocs(struct reader *r, const GElf_Shdr *sh)
{
	struct relocs *of;

	if (!sh->sh_info || sh->sh_info >= r->n_headers)
		return;
	of = &r->relocs[sh->sh_info];
	if (of->n || sh->sh_type != SHT_RELA || sh->sh_entsize != sizeof(Elf64_Rela) ||
	    !is_inside(&r->m, sh))
		of->unusable = true;
	of->at = (uint32_t)sh->sh_offset;
	of->n = (uint32_t)(sh->sh_size / sizeof(Elf64_Rela));
}

/* Notes the tables first, since they may come after the sections that need them. */
static void note_tables(struct reader *r, Elf *elf)
{
	Elf_Scn *scn = NULL;
	uint64_t more = 0, more_size = 0;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_flags & SHF_COMPRESSED)
			continue;
		if (sh.sh_type == SHT_SYMTAB && is_inside(&r->m, &sh))
			note_symbols(r, &sh, elf);
		else if (sh.sh_type == SHT_SYMTAB_SHNDX && is_inside(&r->m, &sh))
			more = sh.sh_offset, more_size = sh.sh_size;
		else if (sh.sh_type == SHT_RELA || sh.sh_type == SHT_REL)
			note_relocs(r, &sh);
	}
	if (more_size / sizeof(uint32_t) >= r->m.n_symbols)
		r->m.more_shndx = (uint32_t)more;
}

struct keyed_reloc {
	uint64_t offset;
	uint32_t number;
};

static int by_offset(const void *a, const void *b)
{
	const struct keyed_reloc *x = a, *y = b;

	return CMP(x->offset, y->offset) ?: CMP(x->number, y->number);
}

/* Sorts relocations by offset: GHC's come in its assembler's order, calls after everything else. */
static int sort_relocs(struct sections *all, struct section *s)
{
	struct keyed_reloc *keyed;
	bool sorted = true;
	int err = 0;

	s->order = NO_ORDER;
	keyed = calloc(s->n_relocs + 1UL, sizeof(*keyed));
	if (!keyed)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_relocs; i++) {
		Elf64_Rela reloc;

		section__reloc(all, s, i, &reloc);
		keyed[i] = (struct keyed_reloc){reloc.r_offset, i};
		sorted &= !i || keyed[i - 1].offset <= keyed[i].offset;
	}
	if (!sorted)
		err = ARRAY_RESERVE(all->order, all->order_cap, all->n_order + s->n_relocs,
				    MAX_UNSORTED);
	if (!sorted && !err) {
		qsort(keyed, s->n_relocs, sizeof(*keyed), by_offset);
		s->order = (uint32_t)all->n_order;
		for (uint32_t i = 0; i < s->n_relocs; i++)
			all->order[all->n_order++] = keyed[i].number;
	}
	free(keyed);
	return err;
}

static uint32_t without_padding(const uint8_t *code, uint32_t len)
{
	uint32_t n = 0, padding;

	for (uint32_t at = 0; at < len; at += padding ? padding : 1) {
		padding = archives_arch__padding(code + at, len - at);
		n += !padding;
	}
	return n;
}

/* False: a relocation is of unknown type, or outside of the section. */
static bool count_fixed(const struct sections *all, struct section *s)
{
	struct stretches stretches;
	uint32_t from, to;

	for (uint32_t i = 0; i < s->n_relocs; i++) {
		struct archives_field field;
		Elf64_Rela reloc;

		section__reloc(all, s, i, &reloc);
		if (!archives_arch__field((uint32_t)ELF64_R_TYPE(reloc.r_info), &field) ||
		    reloc.r_offset > s->size ||
		    (uint64_t)(field.len - field.before) > s->size - reloc.r_offset)
			return false;
	}
	stretches__begin(&stretches, all, s);
	while (stretches__next(&stretches, &from, &to)) {
		s->fixed += to - from;
		s->distinct += without_padding(section__data(all, s) + from, to - from);
	}
	return true;
}

static int add_section(struct reader *r, const GElf_Shdr *sh, size_t number)
{
	struct sections *all = r->all;
	const struct relocs *relocs = &r->relocs[number];
	struct section s = {
		.member = (uint32_t)(all->n_members - 1),
		.number = (uint32_t)number,
		.data = (uint32_t)sh->sh_offset,
		.size = (uint32_t)sh->sh_size,
		.relocs = relocs->at,
		.n_relocs = relocs->n,
		.align = (uint32_t)MAX(sh->sh_addralign, 1ULL),
	};
	int err;

	if (!is_inside(&r->m, sh) || sh->sh_size > MAX_SECTION_SIZE || sh->sh_addralign > 4096 ||
	    s.align & (s.align - 1) || relocs->unusable) {
		all->left_out++;
		return 0;
	}
	err = sort_relocs(all, &s);
	if (!err && !count_fixed(all, &s)) {
		all->left_out++;
		return 0;
	}
	if (!err)
		err = ARRAY_RESERVE(all->v, all->cap, all->n + 1, MAX_SECTIONS);
	if (err)
		return err;
	all->v[all->n++] = s;
	all->members[all->n_members - 1].n++;
	return 0;
}

static int add_sections(struct reader *r, Elf *elf)
{
	struct sections *all = r->all;
	Elf_Scn *scn = NULL;
	int err = ARRAY_RESERVE(all->members, all->members_cap, all->n_members + 1, MAX_MEMBERS);

	if (err)
		return err;
	r->m.first = (uint32_t)all->n;
	all->members[all->n_members++] = r->m;
	while (!err && (scn = elf_nextscn(elf, scn))) {
		size_t number = elf_ndxscn(scn);
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || number >= r->n_headers)
			continue;
		if (sh.sh_type == SHT_PROGBITS && sh.sh_flags & SHF_EXECINSTR && sh.sh_size &&
		    !(sh.sh_flags & SHF_COMPRESSED))
			err = add_section(r, &sh, number);
	}
	if (!all->members[all->n_members - 1].n)
		all->n_members--;
	return err;
}

static int read_member(struct sections *all, Elf *elf, enum archive_kind kind)
{
	struct reader r = {
		.all = all, .m.haskell = kind == ARCHIVE_HASKELL, .m.rts = kind == ARCHIVE_RTS};
	GElf_Ehdr ehdr;
	size_t size;
	int err;

	r.m.bytes = (const uint8_t *)elf_rawfile(elf, &size);
	if (!r.m.bytes || size > UINT32_MAX || gelf_getclass(elf) != ELFCLASS64 ||
	    !gelf_getehdr(elf, &ehdr) || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_type != ET_REL || !archives_arch__is_ours(ehdr.e_machine) ||
	    elf_getshdrnum(elf, &r.n_headers) || !r.n_headers || r.n_headers > MAX_HEADERS) {
		all->left_out++;
		return 0;
	}
	r.m.size = (uint32_t)size;
	r.relocs = calloc(r.n_headers, sizeof(*r.relocs));
	if (!r.relocs)
		return -ENOMEM;
	note_tables(&r, elf);
	err = r.m.n_symbols ? add_sections(&r, elf) : 0;
	free(r.relocs);
	return err;
}

int sections__read(struct sections *all, const void *archive, size_t size, enum archive_kind kind)
{
	Elf_Cmd cmd = ELF_C_READ_MMAP; /* like elf_memory() */
	Elf *elf, *member;
	int err = 0;

	elf_version(EV_CURRENT);
	/* elf_memory() does not write to it, although its parameter is not const */
	elf = elf_memory((char *)(uintptr_t)archive, size);
	if (!elf)
		return -ENOEXEC;
	if (elf_kind(elf) != ELF_K_AR)
		err = -ENOEXEC;
	while (!err && cmd != ELF_C_NULL && (member = elf_begin(-1, cmd, elf))) {
		/* the symbol table and the table of long names are not objects */
		if (elf_kind(member) == ELF_K_ELF)
			err = read_member(all, member, kind);
		cmd = elf_next(member);
		elf_end(member);
	}
	elf_end(elf);
	return err;
}

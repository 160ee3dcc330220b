/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_symbols: the two symbol tables, by sections or, if these are stripped, by PT_DYNAMIC. */
#include <errno.h>

#include "base/base.h"
#include "elf_priv.h"

/* The relevant entries of the dynamic section; 0: missing. */
struct dynamic {
	uint64_t symtab, strtab, strsz, hash, gnu_hash;
	uint64_t rela, relasz, relacount, jmprel, pltrelsz;
};

static void read_dynamic(const struct elf_file *elf, struct dynamic *d)
{
	uint64_t at = elf->heads.dynamic.offset;
	size_t i;

	memset(d, 0, sizeof(*d));
	for (i = 0; i < ELF_MAX_DYNAMIC; i++) {
		Elf64_Dyn dyn;

		if (elf->heads.dynamic.size / sizeof(dyn) <= i ||
		    !elf_get(elf, at + i * sizeof(dyn), &dyn, sizeof(dyn)) || dyn.d_tag == DT_NULL)
			return;
		switch (dyn.d_tag) {
		case DT_SYMTAB:
			d->symtab = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			d->strtab = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			d->strsz = dyn.d_un.d_val;
			break;
		case DT_HASH:
			d->hash = dyn.d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			d->gnu_hash = dyn.d_un.d_ptr;
			break;
		case DT_RELA:
			d->rela = dyn.d_un.d_ptr;
			break;
		case DT_RELASZ:
			d->relasz = dyn.d_un.d_val;
			break;
		case DT_RELACOUNT:
			d->relacount = dyn.d_un.d_val;
			break;
		case DT_JMPREL:
			d->jmprel = dyn.d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			d->pltrelsz = dyn.d_un.d_val;
			break;
		default:
			break;
		}
	}
}

/* Both ranges must be in the file; a string table is used up to its last NUL. */
static void set_table(const struct elf_file *elf, struct elf_range syms, struct elf_range strs,
		      struct elf_table *tab)
{
	const char *s, *last;
	uint64_t n = MIN(syms.size / sizeof(Elf64_Sym), (uint64_t)ELF_MAX_SYMBOLS);

	memset(tab, 0, sizeof(*tab));
	if (!elf_in_file(elf, syms.offset, syms.size) || !elf_in_file(elf, strs.offset, strs.size))
		return;
	s = (const char *)elf->data + strs.offset;
	last = strs.size > 0 ? memrchr(s, '\0', strs.size) : NULL;
	if (!last)
		return;
	tab->syms = (struct elf_range){syms.offset, n * sizeof(Elf64_Sym)};
	tab->strs = (struct elf_range){strs.offset, (uint64_t)(last - s) + 1};
}

static bool table_by_section(const struct elf_file *elf, uint32_t type, struct elf_table *tab)
{
	size_t i;

	for (i = 0; i < elf->heads.n_sections; i++) {
		const Elf64_Shdr *s = &elf->sections[i], *strs;

		if (s->sh_type != type || s->sh_entsize != sizeof(Elf64_Sym) ||
		    (s->sh_flags & SHF_COMPRESSED) || s->sh_link >= elf->heads.n_sections)
			continue;
		strs = &elf->sections[s->sh_link];
		if (strs->sh_type != SHT_STRTAB || (strs->sh_flags & SHF_COMPRESSED))
			continue;
		set_table(elf, (struct elf_range){s->sh_offset, s->sh_size},
			  (struct elf_range){strs->sh_offset, strs->sh_size}, tab);
		if (tab->syms.size > 0)
			return true;
	}
	return false;
}

/* DT_GNU_HASH does not store the number of symbols: it is found from the end of the last chain. */
static uint64_t count_gnu_hash(const struct elf_file *elf, uint64_t vaddr)
{
	uint32_t head[4], last = 0, i; /* nbuckets, first symbol hashed, bloom words, shift */
	uint64_t at, chains;

	if (!elf__vaddr_to_offset(elf, vaddr, &at) || !elf_get(elf, at, head, sizeof(head)) ||
	    head[0] > ELF_MAX_SYMBOLS)
		return 0;
	at += sizeof(head) + (uint64_t)head[2] * 8;
	chains = at + (uint64_t)head[0] * 4;
	for (i = 0; i < head[0]; i++) {
		uint32_t bucket;

		if (!elf_get(elf, at + (uint64_t)i * 4, &bucket, sizeof(bucket)))
			return 0;
		last = MAX(last, bucket);
	}
	if (last < head[1])
		return head[1];
	for (; last < ELF_MAX_SYMBOLS; last++) {
		uint32_t hash;

		if (!elf_get(elf, chains + (uint64_t)(last - head[1]) * 4, &hash, sizeof(hash)))
			return 0;
		if (hash & 1)
			return (uint64_t)last + 1;
	}
	return 0;
}

static void table_by_dynamic(const struct elf_file *elf, const struct dynamic *d,
			     struct elf_table *tab)
{
	struct elf_range syms = {0}, strs = {.size = d->strsz};
	uint32_t hash[2];
	uint64_t n = 0, at;

	if (!elf__vaddr_to_offset(elf, d->symtab, &syms.offset) ||
	    !elf__vaddr_to_offset(elf, d->strtab, &strs.offset))
		return;
	if (d->hash && elf__vaddr_to_offset(elf, d->hash, &at) &&
	    elf_get(elf, at, hash, sizeof(hash)))
		n = hash[1]; /* nchain: one for each symbol */
	else if (d->gnu_hash)
		n = count_gnu_hash(elf, d->gnu_hash);
	syms.size = n * sizeof(Elf64_Sym);
	set_table(elf, syms, strs, tab);
}

static void set_relocs(const struct elf_file *elf, uint64_t vaddr, uint64_t size, uint64_t skip,
		       struct elf_range *ret_range)
{
	uint64_t offset;

	memset(ret_range, 0, sizeof(*ret_range));
	if (vaddr == 0 || !elf__vaddr_to_offset(elf, vaddr, &offset) ||
	    !elf_in_file(elf, offset, size))
		return;
	/* DT_RELACOUNT: the leading entries are relative and have no symbol */
	if (skip > size / sizeof(Elf64_Rela))
		skip = 0;
	ret_range->offset = offset + skip * sizeof(Elf64_Rela);
	ret_range->size = size - skip * sizeof(Elf64_Rela);
}

void elf_symbols__init(struct elf_file *elf)
{
	struct dynamic d;

	read_dynamic(elf, &d);
	table_by_section(elf, SHT_SYMTAB, &elf->heads.symtabs[ELF_SYMTAB]);
	if (!table_by_section(elf, SHT_DYNSYM, &elf->heads.symtabs[ELF_DYNSYM]) && d.symtab &&
	    d.strtab)
		table_by_dynamic(elf, &d, &elf->heads.symtabs[ELF_DYNSYM]);
	set_relocs(elf, d.rela, d.relasz, d.relacount, &elf->heads.relocs[0]);
	set_relocs(elf, d.jmprel, d.pltrelsz, 0, &elf->heads.relocs[1]);
}

bool elf_symbols__at(const struct elf_file *elf, enum elf_symtab which, size_t i,
		     struct elf_sym *ret_sym)
{
	const struct elf_table *tab = &elf->heads.symtabs[which];
	Elf64_Sym sym;

	if (i >= elf__n_symbols(elf, which))
		return false;
	memcpy(&sym, elf->data + tab->syms.offset + i * sizeof(sym), sizeof(sym));
	if (sym.st_name >= tab->strs.size)
		return false;
	ret_sym->name = (const char *)elf->data + tab->strs.offset + sym.st_name;
	ret_sym->value = sym.st_value;
	ret_sym->size = sym.st_size;
	ret_sym->type = ELF64_ST_TYPE(sym.st_info);
	ret_sym->bind = ELF64_ST_BIND(sym.st_info);
	ret_sym->shndx = sym.st_shndx;
	return true;
}

int elf__symbols(const struct elf_file *elf, enum elf_symtab which,
		 int (*fn)(void *ctx, const struct elf_sym *sym), void *ctx)
{
	size_t n = elf__n_symbols(elf, which), i;

	/* Symbol 0 is the null symbol. */
	for (i = 1; i < n; i++) {
		struct elf_sym sym;
		int ret;

		if (!elf_symbols__at(elf, which, i, &sym))
			continue;
		ret = fn(ctx, &sym);
		if (ret)
			return ret;
	}
	return 0;
}

size_t elf__n_symbols(const struct elf_file *elf, enum elf_symtab which)
{
	return elf->heads.symtabs[which].syms.size / sizeof(Elf64_Sym);
}

int elf__symbol(const struct elf_file *elf, enum elf_symtab which, size_t index,
		struct elf_sym *ret_sym)
{
	return elf_symbols__at(elf, which, index, ret_sym) ? 0 : -ENOENT;
}

bool elf_symbols__is_called(const struct elf_sym *sym, const char *name, size_t len)
{
	/* "memcpy@@GLIBC_2.14": the name in .symtab of a symbol with a version */
	return strncmp(sym->name, name, len) == 0 &&
	       (sym->name[len] == '\0' || sym->name[len] == '@');
}

int elf__find_symbol(const struct elf_file *elf, const char *name, struct elf_sym *ret_sym,
		     enum elf_symtab *ret_which)
{
	static const enum elf_symtab order[] = {ELF_SYMTAB, ELF_DYNSYM};
	size_t len = strlen(name), t, i;

	for (t = 0; t < ARRAY_SIZE(order); t++) {
		size_t n = elf__n_symbols(elf, order[t]);
		struct elf_sym sym, found;
		bool have = false;

		for (i = 1; i < n; i++) {
			if (!elf_symbols__at(elf, order[t], i, &sym) || sym.shndx == SHN_UNDEF ||
			    !elf_symbols__is_called(&sym, name, len))
				continue;
			if (!have || sym.bind != STB_LOCAL)
				found = sym;
			have = true;
			if (found.bind != STB_LOCAL)
				break;
		}
		if (have) {
			*ret_sym = found;
			if (ret_which)
				*ret_which = order[t];
			return 0;
		}
	}
	return -ENOENT;
}

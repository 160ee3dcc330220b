/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_exports: looks up exported symbols, through a table of their names' hashes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "elf_priv.h"

/*
 * Up to this many symbols of a root's file are read in this process: it takes a few milliseconds.
 */
#define INLINE_SYMBOLS 65536U
/* Longer names are never found. */
#define NAME_MOST 1024
/* Honest files have one symbol per hash, rarely two. */
#define SAME_HASH 16

struct exports_out {
	uint64_t n;
	struct elf_export exports[];
};

static size_t out_size(const struct elf_file *elf)
{
	return sizeof(struct exports_out) +
	       elf__n_symbols(elf, ELF_DYNSYM) * sizeof(struct elf_export);
}

/* FNV-1a, of the name without its version. */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < NAME_MOST && name[i] && name[i] != '@'; i++)
		hash = (hash ^ (unsigned char)name[i]) * 16777619U;
	return hash;
}

static int by_hash(const void *a, const void *b)
{
	const struct elf_export *x = a, *y = b;

	return CMP(x->hash, y->hash) ?: CMP(x->sym, y->sym);
}

/* In the child: collects all defined symbols that are not local. */
static int read_exports(void *ctx, void *ret_out)
{
	const struct elf_file *elf = ctx;
	struct exports_out *out = ret_out;
	size_t n = elf__n_symbols(elf, ELF_DYNSYM);

	for (size_t i = 1; i < n; i++) {
		struct elf_sym sym;

		if (!elf_symbols__at(elf, ELF_DYNSYM, i, &sym) || sym.shndx == SHN_UNDEF ||
		    sym.bind == STB_LOCAL)
			continue;
		out->exports[out->n++] =
			(struct elf_export){.hash = hash_of(sym.name), .sym = (uint32_t)i};
	}
	if (out->n)
		qsort(out->exports, out->n, sizeof(*out->exports), by_hash);
	return 0;
}

/* Any hashes in any order are safe: each match is verified against the name. */
static void take(struct elf_lazy *lazy, const struct exports_out *out, size_t most)
{
	size_t n = MIN(out->n, (uint64_t)most);

	lazy->exports = n ? malloc(n * sizeof(*lazy->exports)) : NULL;
	if (!lazy->exports)
		return;
	memcpy(lazy->exports, out->exports, n * sizeof(*lazy->exports));
	lazy->n_exports = n;
}

static void read_table(const struct elf_file *elf)
{
	size_t n = elf__n_symbols(elf, ELF_DYNSYM), size = out_size(elf);
	bool here = elf->roots && n <= INLINE_SYMBOLS;
	void *out = NULL;
	int err = 0;

	if (n > 1 && here) {
		out = calloc(1, size);
		err = out ? read_exports((void *)elf, out) : -ENOMEM;
	} else if (n > 1) {
		err = elf__aside(elf, read_exports, (void *)elf, size, &out);
	}
	if (out)
		take(elf->lazy, out, n);
	if (here)
		free(out);
	else
		confine__free_out(out, size);
	elf_once__end(&elf->lazy->exports_read, err);
}

bool elf__exports(const struct elf_file *elf, const char *name)
{
	struct elf_lazy *lazy = elf->lazy;
	size_t len = strnlen(name, NAME_MOST), at;
	uint32_t hash = hash_of(name);

	if (len == NAME_MOST)
		return false;
	if (elf_once__is_due(&lazy->exports_read))
		read_table(elf);
	if (!lazy->exports)
		return false;
	at = search__first(lazy->n_exports, i, lazy->exports[i].hash >= hash);
	for (size_t i = at; i < lazy->n_exports && i - at < SAME_HASH; i++) {
		struct elf_sym sym;

		if (lazy->exports[i].hash != hash)
			return false;
		if (elf_symbols__at(elf, ELF_DYNSYM, lazy->exports[i].sym, &sym) &&
		    elf_symbols__is_called(&sym, name, len))
			return true;
	}
	return false;
}

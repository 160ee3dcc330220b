/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_plt: finds the symbol that a PLT entry or a GOT slot is bound to. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "arch.h"
#include "confine/confine.h"
#include "elf_priv.h"

static int by_slot(const void *a, const void *b)
{
	const struct elf_got *x = a, *y = b;

	return (x->slot > y->slot) - (x->slot < y->slot);
}

static int collect(const struct elf_file *elf, struct elf_range range)
{
	struct elf_lazy *lazy = elf->lazy;
	uint64_t n = range.size / sizeof(Elf64_Rela), i;

	for (i = 0; i < n; i++) {
		void *got = lazy->got;
		Elf64_Rela rela;
		int err;

		if (!elf_get(elf, range.offset + i * sizeof(rela), &rela, sizeof(rela)))
			break;
		if (elf_arch__reloc(ELF64_R_TYPE(rela.r_info)) != ELF_RELOC_SLOT ||
		    ELF64_R_SYM(rela.r_info) == 0)
			continue;
		err = array__reserve(&got, &lazy->cap_got, lazy->n_got + 1, ELF_MAX_SYMBOLS,
				     sizeof(*lazy->got));
		lazy->got = got;
		if (err)
			return err;
		lazy->got[lazy->n_got].slot = rela.r_offset;
		lazy->got[lazy->n_got++].sym = (uint32_t)ELF64_R_SYM(rela.r_info);
	}
	return 0;
}

size_t elf__tls_slots(const struct elf_file *elf, struct elf_tls_slot *slots, size_t max)
{
	const struct elf_range range = elf->heads.relocs[0];
	uint64_t n = range.size / sizeof(Elf64_Rela), i;
	size_t found = 0;

	for (i = 0; i < n && found < max; i++) {
		enum elf_reloc kind;
		Elf64_Rela rela;

		if (!elf_get(elf, range.offset + i * sizeof(rela), &rela, sizeof(rela)))
			break;
		kind = elf_arch__reloc(ELF64_R_TYPE(rela.r_info));
		if (kind == ELF_RELOC_TLS_MODULE || kind == ELF_RELOC_TLS_OFFSET)
			slots[found++] = (struct elf_tls_slot){
				.vaddr = rela.r_offset, .module = kind == ELF_RELOC_TLS_MODULE};
	}
	return found;
}

/* Up to this many bytes of relocations of a root's file are read in this process: it takes a
 * millisecond or two. */
#define GOT_INLINE (2U << 20)

struct got_out {
	uint64_t n;
	struct elf_got got[];
};

#define OUT_SIZE (sizeof(struct got_out) + ELF_MAX_SYMBOLS * sizeof(struct elf_got))

static void collect_all(const struct elf_file *elf)
{
	struct elf_lazy *lazy = elf->lazy;

	/* If out of memory, the slots collected so far still help. */
	if (collect(elf, elf->heads.relocs[1]) == 0)
		collect(elf, elf->heads.relocs[0]);
	if (lazy->n_got > 0)
		qsort(lazy->got, lazy->n_got, sizeof(*lazy->got), by_slot);
}

/* In the child. */
static int read_got(void *ctx, void *ret_out)
{
	const struct elf_file *elf = ctx;
	struct elf_lazy *lazy = elf->lazy;
	struct got_out *out = ret_out;

	collect_all(elf);
	if (lazy->n_got)
		memcpy(out->got, lazy->got, lazy->n_got * sizeof(*lazy->got));
	out->n = lazy->n_got;
	/* for when it does not run in a child */
	free(lazy->got);
	lazy->got = NULL;
	lazy->n_got = lazy->cap_got = 0;
	return 0;
}

/* Any slots in any order are safe: an index is checked against its table, and bad slots are simply
 * not found. */
static void take(struct elf_lazy *lazy, const struct got_out *out)
{
	size_t n = MIN(out->n, (uint64_t)ELF_MAX_SYMBOLS);

	lazy->got = n ? malloc(n * sizeof(*lazy->got)) : NULL;
	if (!lazy->got)
		return;
	memcpy(lazy->got, out->got, n * sizeof(*lazy->got));
	lazy->n_got = lazy->cap_got = n;
}

static void read_slots(const struct elf_file *elf)
{
	void *out = NULL;
	int err;

	if (elf->roots && elf->heads.relocs[0].size + elf->heads.relocs[1].size <= GOT_INLINE) {
		collect_all(elf);
		elf_once__end(&elf->lazy->got_read, 0);
		return;
	}
	err = elf__aside(elf, read_got, (void *)elf, OUT_SIZE, &out);
	if (!err)
		take(elf->lazy, out);
	confine__free_out(out, OUT_SIZE);
	elf_once__end(&elf->lazy->got_read, err);
}

const char *elf__got_symbol(const struct elf_file *elf, uint64_t vaddr)
{
	struct elf_lazy *lazy = elf->lazy;
	struct elf_sym sym;
	size_t at;

	if (elf_once__is_due(&lazy->got_read))
		read_slots(elf);
	at = search__first(lazy->n_got, i, lazy->got[i].slot >= vaddr);
	if (at == lazy->n_got || lazy->got[at].slot != vaddr ||
	    !elf_symbols__at(elf, ELF_DYNSYM, lazy->got[at].sym, &sym) || sym.name[0] == '\0')
		return NULL;
	return sym.name;
}

const char *elf__plt_symbol(const struct elf_file *elf, uint64_t vaddr)
{
	static const size_t lengths[] = {ELF_ARCH_PLT_MAX, 8, ELF_ARCH_PLT_MIN};
	uint8_t code[ELF_ARCH_PLT_MAX] = {0};
	const uint8_t *bytes = NULL;
	uint64_t slot;

	for (size_t i = 0; i < ARRAY_SIZE(lengths) && !bytes; i++) {
		bytes = elf__at(elf, vaddr, lengths[i]);
		if (bytes)
			memcpy(code, bytes, lengths[i]);
	}
	return bytes && elf_arch__plt_slot(code, vaddr, &slot) ? elf__got_symbol(elf, slot) : NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_plt: which symbol a PLT entry or a GOT slot is bound to. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/search.h"
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
		uint32_t type;
		int err;

		if (!elf_get(elf, range.offset + i * sizeof(rela), &rela, sizeof(rela)))
			break;
		type = ELF64_R_TYPE(rela.r_info);
		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
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
	const struct elf_range range = elf->relocs[0];
	uint64_t n = range.size / sizeof(Elf64_Rela), i;
	size_t found = 0;

	for (i = 0; i < n && found < max; i++) {
		Elf64_Rela rela;
		uint32_t type;

		if (!elf_get(elf, range.offset + i * sizeof(rela), &rela, sizeof(rela)))
			break;
		type = ELF64_R_TYPE(rela.r_info);
		if (type == R_X86_64_DTPMOD64 || type == R_X86_64_TPOFF64)
			slots[found++] = (struct elf_tls_slot){.vaddr = rela.r_offset,
							       .module = type == R_X86_64_DTPMOD64};
	}
	return found;
}

const char *elf__got_symbol(const struct elf_file *elf, uint64_t vaddr)
{
	struct elf_lazy *lazy = elf->lazy;
	struct elf_sym sym;
	size_t at;

	if (!lazy->got_done) {
		lazy->got_done = true;
		/* Without memory for all of them, those collected so far still serve. */
		if (collect(elf, elf->relocs[1]) == 0)
			collect(elf, elf->relocs[0]);
		if (lazy->n_got > 0)
			qsort(lazy->got, lazy->n_got, sizeof(*lazy->got), by_slot);
	}
	at = search__first(lazy->n_got, i, lazy->got[i].slot >= vaddr);
	if (at == lazy->n_got || lazy->got[at].slot != vaddr ||
	    !elf_symbols__at(&elf->symtabs[ELF_DYNSYM], lazy->got[at].sym, &sym) ||
	    sym.name[0] == '\0')
		return NULL;
	return sym.name;
}

/*
 * The entries that GNU ld, gold, lld and mold make all reach their slot by one instruction:
 * `jmp *rel32(%rip)` (ff 25), in .plt.sec behind `endbr64` (f3 0f 1e fa), with MPX's `bnd` (f2)
 * before it in files of some years. mold and lld may load the slot with `mov rel32(%rip),%r11`
 * (4c 8b 1d) or jump at once.
 */
const char *elf__plt_symbol(const struct elf_file *elf, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const size_t lengths[] = {16, 8, 6}; /* the last entry may end its segment */
	uint8_t code[16] = {0};
	const uint8_t *bytes = NULL;
	size_t at = 0, i;
	int32_t rel;

	for (i = 0; i < ARRAY_SIZE(lengths) && !bytes; i++) {
		bytes = elf__at(elf, vaddr, lengths[i]);
		if (bytes)
			memcpy(code, bytes, lengths[i]);
	}
	if (!bytes)
		return NULL;
	if (memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (code[at] == 0xf2)
		at++;
	if (code[at] == 0xff && code[at + 1] == 0x25)
		at += 2;
	else if (code[at] == 0x4c && code[at + 1] == 0x8b && code[at + 2] == 0x1d)
		at += 3;
	else
		return NULL;
	memcpy(&rel, code + at, sizeof(rel));
	at += sizeof(rel);
	return elf__got_symbol(elf, vaddr + at + (uint64_t)(int64_t)rel);
}

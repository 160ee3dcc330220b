/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls everything that elf.h offers on one file and touches every byte that it returns. Asserts
 * only what must hold for any input; the sanitizers judge the rest.
 */
#ifndef SAFESCOPED_TESTS_ELF_EXERCISE_H
#define SAFESCOPED_TESTS_ELF_EXERCISE_H

#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"

struct elf_exercise {
	const struct elf_file *elf;
	size_t sum; /* keeps the compiler from dropping the reads */
};

static inline int elf_exercise_symbol(void *ctx, const struct elf_sym *sym)
{
	struct elf_exercise *ex = ctx;
	const char *name;

	ex->sum += strnlen(sym->name, 4096) + sym->value + sym->size;
	name = elf__plt_symbol(ex->elf, sym->value);
	if (name)
		ex->sum += strnlen(name, 4096);
	name = elf__got_symbol(ex->elf, sym->value);
	if (name)
		ex->sum += strnlen(name, 4096);
	return 0;
}

static inline void elf_exercise_bytes(struct elf_exercise *ex, const uint8_t *data, size_t size)
{
	size_t i;

	for (i = 0; data && i < size; i++)
		ex->sum += data[i];
}

static inline size_t elf_exercise(struct elf_file *elf)
{
	static const char *const sections[] = {
		".text",	  ".eh_frame",	".dynstr", ".note.gnu.build-id",
		".gnu_debuglink", ".debug_str", ".tbss",
	};
	struct elf_exercise ex = {.elf = elf};
	const struct elf_fde *fdes;
	struct elf_section section;
	struct elf_sym sym;
	struct elf_needs needs;
	enum elf_symtab which;
	uint64_t a, b;
	char id[41];
	size_t i, n;

	ex.sum += strlen(elf__name(elf)) + elf__is_pie_or_dso(elf);
	if (elf__build_id(elf, id)) {
		n = strlen(id);
		if (n == 0 || n > 40 || n % 2 != 0)
			abort();
	}
	if (elf__tls(elf, &a, &b))
		ex.sum += a + b;
	for (i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);
		const uint8_t *bytes = elf__at(elf, seg->vaddr, seg->filesz);

		elf_exercise_bytes(&ex, bytes, seg->filesz);
		if (elf__at(elf, seg->vaddr, SIZE_MAX) || elf__at(elf, seg->vaddr + seg->memsz, 1))
			ex.sum++;
		if (elf__vaddr_to_offset(elf, seg->vaddr, &a))
			ex.sum += a;
		elf__plt_symbol(elf, seg->vaddr + seg->filesz - 6);
	}
	if (elf__segment(elf, elf__n_segments(elf)))
		abort();
	for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (elf__section(elf, sections[i], &section) == 0)
			elf_exercise_bytes(&ex, section.data, section.data ? section.size : 0);
	}
	elf__symbols(elf, ELF_SYMTAB, elf_exercise_symbol, &ex);
	elf__symbols(elf, ELF_DYNSYM, elf_exercise_symbol, &ex);
	ex.sum += elf__n_symbols(elf, ELF_SYMTAB) + elf__n_symbols(elf, ELF_DYNSYM);
	if (elf__find_symbol(elf, "tiny_calls", &sym, &which) == 0)
		ex.sum += sym.value;
	ex.sum += elf__exports(elf, "tiny_calls") + elf__exports(elf, "");
	if (elf__needs(elf, "libc", &needs) == 0)
		ex.sum += strlen(needs.library) + strlen(needs.path);
	if (elf__fdes(elf, &fdes, &n) == 0) {
		for (i = 0; i < n; i++) {
			if (fdes[i].end <= fdes[i].start ||
			    (i > 0 && fdes[i].start < fdes[i - 1].start))
				abort();
		}
		elf__has_fde(elf, 0);
		elf__has_fde(elf, UINT64_MAX);
	}
	return ex.sum;
}

#endif

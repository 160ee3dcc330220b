/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_code: which addresses of a file are code. */
#include <stdlib.h>

#include "base/base.h"
#include "elf_priv.h"

bool elf__in_code(const struct elf_file *elf, uint64_t start, uint64_t len)
{
	size_t i;

	for (i = 0; i < elf->heads.n_segments; i++) {
		const struct elf_segment *seg = &elf->heads.segments[i];

		if (seg->exec && start >= seg->vaddr && start - seg->vaddr < seg->memsz &&
		    len <= seg->memsz - (start - seg->vaddr))
			return true;
	}
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_code *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static size_t from_sections(const struct elf_file *elf, struct elf_code *ranges, size_t max)
{
	size_t n = 0, i;

	for (i = 0; i < elf->heads.n_sections && n < max; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (!(s->sh_flags & SHF_EXECINSTR) || s->sh_size == 0 ||
		    !elf__in_code(elf, s->sh_addr, s->sh_size))
			continue;
		ranges[n].start = s->sh_addr;
		ranges[n++].end = s->sh_addr + s->sh_size;
	}
	return n;
}

size_t elf__code_ranges(const struct elf_file *elf, struct elf_code *ranges, size_t max)
{
	size_t n = from_sections(elf, ranges, max), kept = 0, i;

	for (i = 0; n == 0 && i < elf->heads.n_segments && kept < max; i++) {
		if (!elf->heads.segments[i].exec)
			continue;
		ranges[kept].start = elf->heads.segments[i].vaddr;
		ranges[kept++].end = elf->heads.segments[i].vaddr + elf->heads.segments[i].memsz;
	}
	n = MAX(n, kept);
	if (n == 0)
		return 0;
	qsort(ranges, n, sizeof(*ranges), by_start);
	for (i = 1, kept = 1; i < n; i++) {
		if (ranges[i].start >= ranges[kept - 1].end)
			ranges[kept++] = ranges[i];
	}
	return kept;
}

bool elf__vaddr_to_offset(const struct elf_file *elf, uint64_t vaddr, uint64_t *ret_offset)
{
	size_t i;

	for (i = 0; i < elf->heads.n_segments; i++) {
		const struct elf_segment *seg = &elf->heads.segments[i];

		if (vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->filesz) {
			*ret_offset = seg->offset + (vaddr - seg->vaddr);
			return true;
		}
	}
	return false;
}

bool elf__offset_to_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *ret_vaddr)
{
	size_t i;

	for (i = 0; i < elf->heads.n_segments; i++) {
		const struct elf_segment *seg = &elf->heads.segments[i];

		if (offset >= seg->offset && offset - seg->offset < seg->filesz) {
			*ret_vaddr = seg->vaddr + (offset - seg->offset);
			return true;
		}
	}
	return false;
}

const uint8_t *elf__at(const struct elf_file *elf, uint64_t vaddr, size_t len)
{
	size_t i;

	for (i = 0; i < elf->heads.n_segments; i++) {
		const struct elf_segment *seg = &elf->heads.segments[i];

		if (vaddr >= seg->vaddr && vaddr - seg->vaddr < seg->filesz &&
		    len <= seg->filesz - (vaddr - seg->vaddr))
			return elf->data + seg->offset + (vaddr - seg->vaddr);
	}
	return NULL;
}

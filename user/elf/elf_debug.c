/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_debug: the size of a file's DWARF, from its headers. */
#include <string.h>

#include "elf_priv.h"

static bool begins_with(const struct elf_file *elf, const Elf64_Shdr *s, const char *prefix)
{
	const char *names = (const char *)elf->data + elf->heads.section_names.offset;
	size_t len = strlen(prefix);

	return s->sh_name < elf->heads.section_names.size &&
	       elf->heads.section_names.size - s->sh_name > len &&
	       memcmp(names + s->sh_name, prefix, len) == 0;
}

/* The format of GNU tools before SHF_COMPRESSED: "ZLIB", then the size, big-endian. */
static uint64_t gnu_size(const struct elf_file *elf, const Elf64_Shdr *s)
{
	uint8_t head[12];
	uint64_t size = 0;

	if (!elf_get(elf, s->sh_offset, head, sizeof(head)) || memcmp(head, "ZLIB", 4) != 0)
		return 0;
	for (size_t i = 4; i < sizeof(head); i++)
		size = size << 8 | head[i];
	return size;
}

static uint64_t chdr_size(const struct elf_file *elf, const Elf64_Shdr *s)
{
	Elf64_Chdr head;

	return elf_get(elf, s->sh_offset, &head, sizeof(head)) ? head.ch_size : 0;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void elf__debug_size(const struct elf_file *elf, struct elf_debug_size *ret_size)
{
	struct elf_debug_size size = {0};

	for (size_t i = 0; i < elf->heads.n_sections; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		uint64_t inflated = 0;

		if (s->sh_type == SHT_NOBITS)
			continue;
		if (begins_with(elf, s, ".zdebug_"))
			inflated = gnu_size(elf, s);
		else if (!begins_with(elf, s, ".debug_"))
			continue;
		else if (s->sh_flags & SHF_COMPRESSED)
			inflated = chdr_size(elf, s);
		size.inflated = add(size.inflated, inflated);
		if (begins_with(elf, s, ".debug_info") || begins_with(elf, s, ".zdebug_info"))
			size.info = add(size.info, inflated ? inflated : s->sh_size);
	}
	*ret_size = size;
}

int elf__fd(const struct elf_file *elf)
{
	return elf->map.fd;
}

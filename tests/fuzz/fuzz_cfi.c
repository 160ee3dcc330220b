/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind rows of a made-up file: reading them ends and stays inside the file, and the result is
 * what the kernel side may search: buckets that point at rows, and rows in ascending order.
 */
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/cfi_asm_priv.h"
#include "unwind/cfi_graph_priv.h"
#include "wire.h"

#include "inside.h"

static void check_rows(const struct cfi_rows *r)
{
	uint64_t first = 0;

	for (uint32_t k = 0; k < r->n_buckets; k++) {
		uint32_t n = (uint32_t)(r->words[k] >> 32);

		if ((uint32_t)r->words[k] != first || n > r->n_rows - first)
			abort();
		first += n;
	}
	if (first != r->n_rows)
		abort();
	for (uint32_t i = 1; i < r->n_rows; i++)
		if (r->words[r->n_buckets + i] >> 32 <= r->words[r->n_buckets + i - 1] >> 32)
			abort();
}

static int on_range(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	uint64_t *last = ctx;

	if (start < *last || end <= start || WIRE_CFI_KIND(rule) != WIRE_CFI_RSP)
		abort();
	*last = end;
	return 0;
}

/* A file with one executable segment and the given .eh_frame. */
static uint8_t *make_elf(const uint8_t *eh, size_t size, size_t *ret_size)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		Elf64_Shdr s[3];
		char names[sizeof(names)];
	} head = {
		.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		      .e_type = ET_DYN,
		      .e_machine = EM_X86_64,
		      .e_version = EV_CURRENT,
		      .e_phoff = sizeof(Elf64_Ehdr),
		      .e_shoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		      .e_ehsize = sizeof(Elf64_Ehdr),
		      .e_phentsize = sizeof(Elf64_Phdr),
		      .e_phnum = 1,
		      .e_shentsize = sizeof(Elf64_Shdr),
		      .e_shnum = 3,
		      .e_shstrndx = 2},
		.p = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_align = 4096},
	};
	uint8_t *file = malloc(sizeof(head) + size);

	if (!file)
		return NULL;
	memcpy(head.names, names, sizeof(names));
	head.p.p_filesz = sizeof(head) + size;
	head.p.p_memsz = 1 << 20;
	head.s[1] = (Elf64_Shdr){.sh_name = 1,
				 .sh_type = SHT_PROGBITS,
				 .sh_flags = SHF_ALLOC,
				 .sh_addr = sizeof(head),
				 .sh_offset = sizeof(head),
				 .sh_size = size};
	head.s[2] = (Elf64_Shdr){.sh_name = 11,
				 .sh_type = SHT_STRTAB,
				 .sh_offset = offsetof(__typeof__(head), names),
				 .sh_size = sizeof(names)};
	memcpy(file, &head, sizeof(head));
	memcpy(file + sizeof(head), eh, size);
	*ret_size = sizeof(head) + size;
	return file;
}

static void try_file(const uint8_t *data, size_t size, bool c_only)
{
	struct cfi_rows rows = {0};
	struct elf_file *elf;

	if (elf__open_bytes(data, size, "fuzz", &elf))
		return;
	if (cfi__new(elf, c_only, &rows) == 0)
		check_rows(&rows);
	cfi_rows__free(&rows);
	elf__free(elf);
}

static void try_section(const uint8_t *eh, size_t size)
{
	size_t file_size;
	uint8_t *file = make_elf(eh, size, &file_size);

	if (file)
		try_file(file, file_size, false);
	free(file);
}

/* The input as the instructions of one function, after those that GCC puts first. */
static void try_instructions(const uint8_t *data, size_t size)
{
	static const uint8_t cie[] = {0x14, 0,	 0, 0,	  0,	0,    0, 0, 1,
				      'z',  'R', 0, 1,	  0x78, 0x10, 1, 0, /* absolute addresses */
				      0x0c, 7,	 8, 0x90, 1,	0,    0};
	uint8_t *eh = calloc(1, sizeof(cie) + 32 + size);
	uint32_t length = (uint32_t)(4 + 16 + 1 + size), back = sizeof(cie) + 4;
	uint64_t start = 4096, len = 1 << 16;

	if (!eh)
		return;
	memcpy(eh, cie, sizeof(cie));
	memcpy(eh + sizeof(cie), &length, 4);
	memcpy(eh + sizeof(cie) + 4, &back, 4);
	memcpy(eh + sizeof(cie) + 8, &start, 8);
	memcpy(eh + sizeof(cie) + 16, &len, 8);
	memcpy(eh + sizeof(cie) + 25, data, size);
	try_section(eh, sizeof(cie) + 25 + size);
	free(eh);
}

static int on_called(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	uint64_t *last = ctx;

	if (start < *last || end <= start ||
	    (WIRE_CFI_KIND(rule) != WIRE_CFI_RSP && WIRE_CFI_KIND(rule) != WIRE_CFI_RBP) ||
	    !WIRE_CFI_OFFSET(rule))
		abort();
	*last = end;
	return 0;
}

/* The input as the code of a file without rows, with functions that begin at many places in it. */
static void try_called(const uint8_t *code, size_t size)
{
	size_t file_size;
	uint8_t *file = make_elf(code, size, &file_size);
	struct cfi_graph *graph;
	struct elf_file *elf;
	uint64_t last = 0;

	if (file && elf__open_bytes(file, file_size, "fuzz", &elf) == 0) {
		if (cfi_graph__new(elf, NULL, 0, 0, &graph) == 0) {
			cfi_graph__add_called(graph);
			for (uint64_t at = file_size - size; at < file_size; at += 16)
				cfi_graph__add(graph, at);
			cfi_graph__run(graph, on_called, &last);
			cfi_graph__free(graph);
		}
		elf__free(elf);
	}
	free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t last = 0;
	struct cfi_asm *a;

	if (size < 1)
		return 0;
	switch (data[0] & 3) {
	case 0:
		try_section(data + 1, size - 1);
		break;
	case 1:
		try_instructions(data + 1, size - 1);
		break;
	case 2:
		try_file(data + 1, size - 1, data[0] & 4);
		break;
	default:
		if (data[0] & 4) {
			try_called(data + 1, size - 1);
			break;
		}
		if (cfi_asm__new(&a))
			break;
		cfi_asm__run(a, data + 1, size - 1, 0, on_range, &last);
		cfi_asm__free(a);
		break;
	}
	return 0;
}

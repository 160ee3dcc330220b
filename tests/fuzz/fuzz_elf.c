/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as an ELF file: everything that elf.h and symbols.h offer. */
#include <stddef.h>
#include <stdint.h>

#include "confine/confine.h"
#include "elf/elf.h"
#include "elf/symbols.h"

#include "../unit/elf_exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* What runs in a child else runs here, where its mistakes are found. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	confine__run_inside();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols *symbols = NULL;
	struct elf_file *elf = NULL;
	size_t i;

	if (elf__open_bytes(data, size, "fuzz", &elf))
		return 0;
	elf_exercise(elf);
	if (symbols__new(elf, &symbols) == 0) {
		for (i = 0; i < elf__n_segments(elf); i++) {
			const struct elf_segment *seg = elf__segment(elf, i);
			struct symbols_hit hit;
			uint64_t at = seg->vaddr;
			int n;

			for (n = 0; n < 64; n++, at += 1 + seg->memsz / 64) {
				if (symbols__lookup(symbols, at, &hit) == 0 &&
				    (hit.start > at || strnlen(hit.name, 65535) != hit.name_len))
					abort();
			}
		}
	}
	symbols__free(symbols);
	elf__free(elf);
	return 0;
}

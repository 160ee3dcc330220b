/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as an ELF file: all functions of elf.h and symbols.h. */
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"
#include "elf/symbols.h"

#include "../unit/elf_exercise.h"
#include "inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

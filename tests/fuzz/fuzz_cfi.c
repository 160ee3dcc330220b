/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind rows of a file that somebody made up: the reading ends, stays inside the file, and what
 * comes out is what the kernel side may search: buckets that point at rows, rows that ascend.
 */
#include <stdint.h>
#include <stdlib.h>

#include "target/cfi.h"
#include "target/cfi_asm.h"
#include "wire.h"

static void check_rows(const struct target_rows *r)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target_rows rows = {0};
	struct elf_file *elf;
	struct cfi_asm *a;
	uint64_t last = 0;

	if (elf__open_bytes(data, size, "fuzz", &elf) == 0) {
		if (cfi__new(elf, size & 1, &rows) == 0)
			check_rows(&rows);
		target_rows__free(&rows);
		elf__free(elf);
	}
	if (cfi_asm__new(&a) == 0) {
		cfi_asm__run(a, data, size, 0, on_range, &last);
		cfi_asm__free(a);
	}
	return 0;
}

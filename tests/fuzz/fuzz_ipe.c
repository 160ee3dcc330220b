/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Info-table provenance in made-up memory, in the form of every version: reading it ends, and the
 * result refers to nothing outside of what was read. Also the names of all kinds that are made of
 * it.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "names/demangle_priv.h"
#include "names/hs_name_priv.h"
#include "names/ipe_read_priv.h"

#define CODE	    0x10000000ULL
#define DATA	    0x20000000ULL
#define MAX_ENTRIES 4096
#define MAX_STRINGS 65536

struct memory {
	const uint8_t *data;
	size_t size;
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;

	if (addr < DATA || addr - DATA > m->size || len > m->size - (addr - DATA))
		return -EFAULT;
	memcpy(buf, m->data + (addr - DATA), len);
	return 0;
}

static void check(const struct ipe_out *out)
{
	char one[HS_NAME_LEN], two[HS_NAME_LEN];
	struct hs_description description;

	if (out->n > out->max_entries || out->strings_len > out->max_strings)
		abort();
	for (uint32_t i = 0; i < out->n; i++) {
		const struct ipe_raw *e = &out->entries[i];
		const uint32_t at[] = {e->table, e->label, e->module, e->unit, e->file, e->span};

		for (size_t k = 0; k < ARRAY_SIZE(at); k++)
			if (at[k] >= out->strings_len ||
			    strnlen(out->strings + at[k], out->strings_len - at[k]) ==
				    out->strings_len - at[k])
				abort();
		if (i && e->info < out->entries[i - 1].info)
			abort();
		hs_name__occurrence(out->strings + e->table, one);
		hs_name__combine(out->strings + e->label, one, two);
		hs_name__is_made_up(two, NULL);
		hs_name__is_made_up(two, one);
		hs_name__of_table(out->strings + e->table, out->strings + e->label, two);
		(void)hs_name__description(out->strings + e->table, &description);
		demangle_here(out->strings + e->table, two, sizeof(two));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const versions[] = {"9.2.8", "9.4.2", "9.4.8",
					       "9.6.6", "9.8.4", "9.10.3"};
	struct ipe_range code = {CODE, CODE + 0x100000}, range = {DATA, DATA + 65536};
	struct memory m = {.data = data, .size = size};
	struct ipe_source source = {.read = read_memory,
				    .ctx = &m,
				    .data = &range,
				    .n_data = 1,
				    .code = &code,
				    .n_code = 1,
				    .strings = &range,
				    .n_strings = 1};
	struct ipe_out out = {.max_entries = MAX_ENTRIES, .max_strings = MAX_STRINGS};

	out.entries = calloc(MAX_ENTRIES, sizeof(*out.entries));
	out.strings = calloc(MAX_STRINGS, 1);
	range.end = DATA + MIN(size, (size_t)65536);
	for (size_t i = 0; out.entries && out.strings && i < ARRAY_SIZE(versions); i++) {
		if (ipe_read(ipe_layout__find(versions[i]), &source, &out) == 0)
			check(&out);
	}
	free(out.entries);
	free(out.strings);
	return 0;
}

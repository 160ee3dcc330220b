/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * closure: info tables, and the sizes of closures (rts/include/rts/storage/InfoTables.h, Closures.h
 * and ClosureMacros.h, closure_sizeW_, GHC 8.10 to 9.14).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "census_priv.h"

/* The largest layout in words: anything larger would be a large object, in another block. */
#define MOST_WORDS 512
/* Entries of a TREC_CHUNK (rts/include/rts/Constants.h, TREC_CHUNK_NUM_ENTRIES). */
#define TREC_ENTRIES 16
#define MAX_TABLES   (1U << 17)

struct known {
	UT_hash_handle hh;
	struct info_table table;
};

struct info_tables {
	const struct census_opts *opts;
	struct known *all;
	uint32_t n;
};

int info_tables__new(const struct census_opts *opts, struct info_tables **ret_tables)
{
	struct info_tables *tables = calloc(1, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	tables->opts = opts;
	*ret_tables = tables;
	return 0;
}

void info_tables__free(struct info_tables *tables)
{
	if (!tables)
		return;
	HASH_FREE(tables->all);
	free(tables);
}

static bool in_code(const struct census_opts *opts, uint64_t addr)
{
	for (uint32_t i = 0; i < opts->n_code; i++)
		if (addr >= opts->code[i].start && addr < opts->code[i].end)
			return true;
	return false;
}

static bool is_of_heap(uint32_t type)
{
	return (type >= CLOSURE_CONSTR && type <= CLOSURE_FUN_0_2) ||
	       (type >= CLOSURE_THUNK && type <= CLOSURE_THUNK_0_2) ||
	       (type >= CLOSURE_THUNK_SELECTOR && type <= CLOSURE_IND) ||
	       (type >= CLOSURE_BLOCKING_QUEUE && type <= CLOSURE_TREC_CHUNK) ||
	       (type >= CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN && type < CLOSURE_TYPES);
}

/* With tables-next-to-code the layout (two halves), type and SRT are just before the entry code. */
static void read_table(struct info_tables *tables, struct info_table *table)
{
	uint32_t raw[4];
	const uint64_t at = table->info - sizeof(raw);

	if (tables->opts->read(tables->opts->ctx, at, raw, sizeof(raw)) < 0 || !is_of_heap(raw[2]))
		return;
	table->ptrs = raw[0];
	table->nptrs = raw[1];
	table->type = (uint8_t)raw[2];
}

int info_tables__find(struct info_tables *tables, uint64_t word, struct info_table **ret_table)
{
	struct known *known;

	*ret_table = NULL;
	/* info tables are word-aligned; the word of a forwarded closure is odd */
	if (word & 7 || !in_code(tables->opts, word))
		return 0;
	HASH_FIND(hh, tables->all, &word, sizeof(word), known);
	if (!known) {
		int err;

		if (tables->n >= MAX_TABLES)
			return 0;
		known = calloc(1, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->table.info = word;
		read_table(tables, &known->table);
		err = HASH_INSERT(tables->all, table.info, sizeof(word), known);
		if (err)
			return err;
		tables->n++;
	}
	if (known->table.type)
		*ret_table = &known->table;
	return 0;
}

/* ── sizes ───────────────────────────────────────────────────────────────────────────────── */

static uint64_t words_of_bytes(uint64_t bytes)
{
	return bytes / 8 + (bytes % 8 != 0);
}

/* Word `at` of the closure as a count that fits into what is available; UINT64_MAX: it does not
 * fit. */
static uint64_t count_at(const uint64_t *words, uint64_t n, uint64_t at)
{
	return at < n && words[at] < n ? words[at] : UINT64_MAX;
}

/* For a header, fixed fields, and as many words as the field at `at` counts. */
static uint64_t counted(const uint64_t *words, uint64_t n, uint64_t at, uint64_t fixed)
{
	uint64_t count = count_at(words, n, at);

	return count == UINT64_MAX ? 0 : fixed + count;
}

/* AP and PAP: a word of two halves, arity and number of arguments, then the function and the
 * arguments. */
static uint64_t applied(const uint64_t *words, uint64_t n, uint64_t header)
{
	return header < n ? header + 2 + (words[header] >> 32) : 0;
}

static uint64_t array(const struct info_table *table, const uint64_t *words, uint64_t n,
		      uint64_t header)
{
	uint64_t bytes;

	switch (table->type) {
	case CLOSURE_ARR_WORDS:
		bytes = header < n ? words[header] : UINT64_MAX;
		return bytes <= 8 * n ? header + 1 + words_of_bytes(bytes) : 0;
	case CLOSURE_MUT_ARR_PTRS_CLEAN ... CLOSURE_MUT_ARR_PTRS_FROZEN_CLEAN:
		/* ptrs, then size, which includes the card table */
		return counted(words, n, header + 1, header + 2);
	default:
		return counted(words, n, header, header + 1);
	}
}

static uint64_t stack(const struct census_opts *opts, const uint64_t *words, uint64_t n)
{
	const uint64_t at = opts->stack_size / 8;

	/* a u32 in the lower half */
	return at < n ? opts->stack_stack / 8 + (uint32_t)words[at] : 0;
}

static uint64_t size_of(const struct census_opts *opts, const struct info_table *table,
			const uint64_t *words, uint64_t n)
{
	const uint64_t header = opts->profiled ? 3 : 1, thunk = header + 1;
	const uint64_t payload = (uint64_t)table->ptrs + table->nptrs;

	switch (table->type) {
	case CLOSURE_THUNK ... CLOSURE_THUNK_0_2:
		return thunk + payload;
	case CLOSURE_THUNK_SELECTOR:
		return thunk + 1;
	case CLOSURE_AP:
		return applied(words, n, thunk);
	case CLOSURE_PAP:
		return applied(words, n, header);
	case CLOSURE_AP_STACK:
		return counted(words, n, thunk, thunk + 2);
	case CLOSURE_IND:
	case CLOSURE_BLACKHOLE:
	case CLOSURE_MUT_VAR_CLEAN ... CLOSURE_MUT_VAR_DIRTY:
		return header + 1;
	case CLOSURE_BCO:
		/* instrs, literals, ptrs, then two halves: arity, and the size of the whole */
		return header + 3 < n ? words[header + 3] >> 32 : 0;
	case CLOSURE_ARR_WORDS ... CLOSURE_MUT_ARR_PTRS_FROZEN_CLEAN:
	case CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN ... CLOSURE_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN:
		return array(table, words, n, header);
	case CLOSURE_STACK:
		return stack(opts, words, n);
	case CLOSURE_TREC_CHUNK:
		/* entries of the threaded runtime have a fourth word */
		return header + 2 + (uint64_t)TREC_ENTRIES * 3;
	case CLOSURE_CONTINUATION:
		return counted(words, n, header + 2, header + 3);
	case CLOSURE_TSO:
		/* the part that all releases have; the rest is skipped as a gap */
		return header + 10;
	default:
		return header + payload;
	}
}

/* True for closures with a layout: pointers come first in their payload. */
static bool has_layout(uint8_t type)
{
	return type <= CLOSURE_FUN_0_2 || type == CLOSURE_PRIM || type == CLOSURE_MUT_PRIM;
}

static bool may_point(uint64_t word)
{
	return word >= 4096 && word >> 47 == 0;
}

uint64_t closure__words(const struct census_opts *opts, const struct info_table *table,
			const uint64_t *words, uint64_t n)
{
	const uint64_t header = opts->profiled ? 3 : 1;
	uint64_t size;

	if (has_layout(table->type) && (table->ptrs > MOST_WORDS || table->nptrs > MOST_WORDS))
		return 0;
	size = size_of(opts, table, words, n);
	if (size <= header - (table->ptrs + table->nptrs == 0) || size > n)
		return 0;
	if (has_layout(table->type))
		for (uint32_t i = 0; i < table->ptrs; i++)
			if (!may_point(words[header + i]))
				return 0;
	return size;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk: the generations' blocks (rts/include/rts/storage/GC.h, struct generation_; Block.h, struct
 * bdescr_), and the closures in them. The offsets are the same from 8.10 to 9.14;
 * scripts/ghc-layout.c checks them against GHC's headers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "census_priv.h"

#define GENERATION_BLOCKS	 8
#define GENERATION_LARGE_OBJECTS 32
/* n_compact_blocks: in a compact region only the first block has a descriptor. */
#define GENERATION_COMPACT_BLOCKS 72

/* rts/include/rts/storage/Block.h */
#define BLOCK_SIZE   4096
#define BDESCR_WORDS 8 /* start, free, link, prev/u, gen, then no and flags, then blocks */
#define BF_PINNED    (4ULL << 48)
/* A megablock's, of which the first blocks hold the descriptors. */
#define MOST_BLOCKS_IN_GROUP (1U << 18)

#define MAX_BLOCKS ((size_t)1 << 22)
/* As many as the address space has: no number of blocks can be larger. */
#define MAX_COMPACT_BLOCKS ((1ULL << 47) / BLOCK_SIZE)
/* A megablock begins with its blocks' descriptors (Block.h, LAST_BLOCK …). */
#define MEGABLOCK_SIZE	(1ULL << 20)
#define DESCRIPTOR_SIZE (16U << 10)
/* Consecutive blocks are read together: the shorter the walk, the less the program changes
 * meanwhile. */
#define RUN_BLOCKS 64

struct block {
	uint64_t start, free;
	bool pinned;
};

struct walk {
	const struct census_opts *opts;
	struct census *census;
	struct info_tables *tables;
	struct block *blocks;
	size_t n, cap;
	uint64_t megablock; /* whose descriptors are cached; 0: none */
	uint8_t descriptors[DESCRIPTOR_SIZE];
	uint64_t words[RUN_BLOCKS * BLOCK_SIZE / 8];
};

static int read_at(const struct walk *w, uint64_t addr, void *buf, size_t len)
{
	return w->opts->read(w->opts->ctx, addr, buf, len);
}

/* ── closures ────────────────────────────────────────────────────────────────────────────── */

static void count(struct walk *w, struct info_table *table, uint64_t bytes, uint64_t times)
{
	struct census *c = w->census;

	if (!table->entry) {
		/* the last entry is for all tables without one of their own */
		if (c->n < CENSUS_MAX_ENTRIES)
			c->n++;
		table->entry = c->n;
		c->entries[c->n - 1].info = c->n < CENSUS_MAX_ENTRIES ? table->info : 0;
		c->entries[c->n - 1].type = c->n < CENSUS_MAX_ENTRIES ? table->type : 0;
	}
	c->entries[table->entry - 1].count += times;
	c->entries[table->entry - 1].bytes += bytes;
}

/* True if other words may follow: what an update or a shrunk array leaves unused, or the end of
 * a closure that closure__words() does not know in full. */
static bool may_leave_gap(uint8_t type)
{
	return type == CLOSURE_IND || type == CLOSURE_BLACKHOLE || type == CLOSURE_TSO ||
	       type == CLOSURE_TREC_CHUNK || type == CLOSURE_ARR_WORDS ||
	       type >= CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN;
}

/* Walks `n` words, the filled part of a block. Each closure in it stands for `times` closures. */
static int walk_words(struct walk *w, const uint64_t *words, uint64_t n, uint64_t times)
{
	struct census *c = w->census;
	bool gap = false;

	for (uint64_t at = 0; at < n;) {
		struct info_table *table;
		int err = info_tables__find(w->tables, words[at], &table);
		uint64_t size =
			err || !table ? 0 : closure__words(w->opts, table, words + at, n - at);

		if (err)
			return err;
		if (!size) {
			*(gap ? &c->gap_bytes : &c->unknown_bytes) += 8;
			at++;
			continue;
		}
		count(w, table, 8 * size * times, times);
		c->counted_bytes += 8 * size;
		gap = may_leave_gap(table->type);
		at += size;
	}
	return 0;
}

/* Walks `n` consecutive blocks. Each closure in them stands for `times` closures. */
static int walk_run(struct walk *w, const struct block *blocks, size_t n, uint64_t times)
{
	uint64_t first = blocks[0].start, len = blocks[n - 1].free - first;
	bool whole = n > 1 && read_at(w, first, w->words, len) == 0;
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		uint64_t filled = (blocks[i].free - blocks[i].start) & ~7ULL;
		const uint64_t *words = whole ? w->words + (blocks[i].start - first) / 8 : w->words;

		w->census->walked_bytes += filled;
		if (!whole && read_at(w, blocks[i].start, w->words, filled) < 0)
			w->census->unknown_bytes += filled;
		else
			err = walk_words(w, words, filled / 8, times);
	}
	return err;
}

/*
 * A large object is a single closure; its size is the filled part of its blocks. A block of pinned
 * objects, which are small byte arrays one after the other, is counted in the same way.
 */
static int count_large(struct walk *w, const struct block *b)
{
	struct info_table *table;
	uint64_t info;
	int err;

	w->census->large_bytes += b->free - b->start;
	w->census->pinned_bytes += b->pinned ? b->free - b->start : 0;
	if (read_at(w, b->start, &info, sizeof(info)) < 0) {
		w->census->unknown_bytes += b->free - b->start;
		return 0;
	}
	err = info_tables__find(w->tables, info, &table);
	if (err)
		return err;
	if (!table)
		w->census->unknown_bytes += b->free - b->start;
	else
		count(w, table, b->free - b->start, 1);
	return 0;
}

/* ── blocks ──────────────────────────────────────────────────────────────────────────────── */

/* Splits a group into blocks: outside of large objects, no closure crosses from one block to the
 * next. */
static int keep_block(struct walk *w, const struct block *b)
{
	w->census->blocks_bytes += b->free - b->start;
	for (uint64_t at = b->start; at < b->free; at += BLOCK_SIZE) {
		int err = ARRAY_RESERVE(w->blocks, w->cap, w->n + 1, MAX_BLOCKS);

		if (err == -E2BIG)
			w->census->cut = true;
		if (err)
			return err == -E2BIG ? 0 : err;
		w->blocks[w->n++] =
			(struct block){.start = at, .free = MIN(b->free, at + BLOCK_SIZE)};
	}
	return 0;
}

static int count_mutable(struct walk *w, const struct block *b)
{
	w->census->mutable_bytes += b->free - b->start;
	return 0;
}

/* Most of the following descriptors in a chain are in the same megablock, so the megablock's are
 * cached. */
static int read_descriptor(struct walk *w, uint64_t at, uint64_t *descr)
{
	uint64_t megablock = at & ~(MEGABLOCK_SIZE - 1), offset = at - megablock;
	const size_t size = BDESCR_WORDS * sizeof(*descr);

	if (!megablock || offset + size > DESCRIPTOR_SIZE)
		return read_at(w, at, descr, size);
	if (w->megablock != megablock) {
		w->megablock = 0;
		if (read_at(w, megablock, w->descriptors, DESCRIPTOR_SIZE) < 0)
			return read_at(w, at, descr, size);
		w->megablock = megablock;
	}
	memcpy(descr, w->descriptors + offset, size);
	return 0;
}

/* The program runs on: a chain may lead anywhere, and in circles. */
static int each_block(struct walk *w, uint64_t at,
		      int (*take)(struct walk *w, const struct block *b))
{
	uint64_t descr[BDESCR_WORDS];
	int err = 0;

	for (size_t i = 0; !err && at; i++) {
		struct block b;
		uint64_t blocks;

		if (i == MAX_BLOCKS || at & 63 || read_descriptor(w, at, descr) < 0) {
			w->census->cut = true;
			return 0;
		}
		b = (struct block){descr[0], descr[1], descr[5] & BF_PINNED};
		blocks = (uint32_t)descr[6];
		if (b.start % BLOCK_SIZE || !blocks || blocks > MOST_BLOCKS_IN_GROUP ||
		    b.free < b.start || b.free - b.start > blocks * BLOCK_SIZE) {
			w->census->cut = true;
			return 0;
		}
		err = take(w, &b);
		at = descr[2];
	}
	return err;
}

static int list_generation(struct walk *w, uint64_t generation)
{
	uint64_t blocks, large, compact;
	int err;

	if (read_at(w, generation + GENERATION_BLOCKS, &blocks, sizeof(blocks)) < 0 ||
	    read_at(w, generation + GENERATION_LARGE_OBJECTS, &large, sizeof(large)) < 0 ||
	    read_at(w, generation + GENERATION_COMPACT_BLOCKS, &compact, sizeof(compact)) < 0)
		return -EFAULT;
	if (compact <= MAX_COMPACT_BLOCKS)
		w->census->compact_bytes += compact * BLOCK_SIZE;
	else
		w->census->cut = true;
	err = each_block(w, blocks, keep_block);
	return err ? err : each_block(w, large, count_large);
}

/* Each capability has a list for each generation; that of the youngest is unused. The lists are
 * not part of what the walk counts, so one that changes meanwhile does no harm. */
static int count_mut_lists(struct walk *w, uint64_t at)
{
	bool cut = w->census->cut;
	uint64_t lists, list;
	int err = 0;

	if (read_at(w, at, &lists, sizeof(lists)) < 0)
		return 0;
	for (uint32_t g = 1; !err && g < w->opts->n_generations; g++)
		if (read_at(w, lists + 8ULL * g, &list, sizeof(list)) == 0)
			err = each_block(w, list, count_mutable);
	w->census->cut = cut;
	return err;
}

static int by_start(const void *pa, const void *pb)
{
	const struct block *a = pa, *b = pb;

	return CMP(a->start, b->start);
}

/* The length of the run of adjacent blocks that begins with the i-th. */
static size_t run_at(const struct walk *w, size_t i)
{
	size_t n = 1;

	while (n < RUN_BLOCKS && i + n < w->n &&
	       w->blocks[i + n].start == w->blocks[i + n - 1].start + BLOCK_SIZE)
		n++;
	return n;
}

/* A pseudo-random index from i to i + n - 1, since blocks' contents may repeat periodically. */
static size_t one_of(size_t i, size_t n)
{
	/* a round of splitmix64 */
	uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return i + (size_t)((x ^ (x >> 31)) % n);
}

/* Walks all blocks, or, if they exceed most_bytes, one of each few adjacent ones, which stands
 * for all of these. */
static int walk_all(struct walk *w)
{
	uint64_t most = MAX(w->opts->most_bytes, (uint64_t)BLOCK_SIZE);
	uint64_t step = w->census->blocks_bytes / most + 1;
	int err = 0;

	array__sort(w->blocks, w->n, sizeof(*w->blocks), by_start);
	for (size_t i = 0; !err && step > 1 && i < w->n; i += step) {
		size_t n = MIN(step, w->n - i);

		err = walk_run(w, &w->blocks[one_of(i, n)], 1, n);
	}
	for (size_t i = 0, n; !err && step == 1 && i < w->n; i += n) {
		n = run_at(w, i);
		err = walk_run(w, &w->blocks[i], n, 1);
	}
	return err;
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct census_entry *a = pa, *b = pb;

	return CMP(b->bytes, a->bytes) ?: CMP(a->info, b->info);
}

int census__walk(const struct census_opts *opts, struct census *ret_census)
{
	struct walk *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	memset(ret_census, 0, sizeof(*ret_census));
	w->opts = opts;
	w->census = ret_census;
	err = info_tables__new(opts, &w->tables);
	for (uint32_t i = 0; !err && i < MIN(opts->n_generations, CENSUS_MAX_GENERATIONS); i++)
		err = list_generation(w, opts->generations[i]);
	for (uint32_t i = 0; !err && i < opts->n_mut_lists; i++)
		err = count_mut_lists(w, opts->mut_lists[i]);
	if (!err)
		err = walk_all(w);
	if (!err)
		array__sort(ret_census->entries, ret_census->n, sizeof(ret_census->entries[0]),
			    by_bytes);
	info_tables__free(w->tables);
	free(w->blocks);
	free(w);
	return err;
}

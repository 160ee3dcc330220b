/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts the closures of a generated heap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "census/census.h"

/* The layout of the generated memory. */
#define BASE	   0x10000000ULL
#define CODE	   BASE
#define CODE_END   (BASE + 0x1000)
#define GENERATION (BASE + 0x1000)
#define DESCRS	   (BASE + 0x1800) /* of the block descriptors */
#define BLOCKS	   (BASE + 0x4000)
#define SIZE	   0x40000

#define BLOCK 4096

enum { N_DESCRS = 32 };

struct heap {
	uint8_t bytes[SIZE];
	uint64_t at; /* the next closure's address */
	unsigned n;  /* number of blocks */
	uint64_t unreadable;
};

static uint64_t *word(struct heap *h, uint64_t addr)
{
	assert_true(addr >= BASE && addr + 8 <= BASE + SIZE);
	return (uint64_t *)(void *)(h->bytes + (addr - BASE));
}

static int read_heap(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct heap *h = ctx;

	if (addr < BASE || addr > BASE + SIZE || len > BASE + SIZE - addr ||
	    (h->unreadable && addr <= h->unreadable && h->unreadable < addr + len))
		return -EFAULT;
	memcpy(buf, h->bytes + (addr - BASE), len);
	return 0;
}

/* Info pointer number `no`. */
static uint64_t info(struct heap *h, unsigned no, uint32_t type, uint32_t ptrs, uint32_t nptrs)
{
	uint64_t addr = CODE + 64ULL * (no + 1);

	*word(h, addr - 16) = ptrs | (uint64_t)nptrs << 32;
	*word(h, addr - 8) = type;
	return addr;
}

static struct heap *heap_new(void)
{
	struct heap *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	return h;
}

/* Opens a block in the generation's list at `offset`: 8: small objects, 32: large ones, 64: the
 * first blocks of compact regions. */
static void open_block(struct heap *h, unsigned offset, unsigned blocks)
{
	uint64_t descr = DESCRS + 64ULL * h->n, list = GENERATION + offset;
	uint64_t start = BLOCKS + (uint64_t)BLOCK * h->n;

	assert_true(h->n + blocks <= N_DESCRS);
	*word(h, descr) = *word(h, descr + 8) = h->at = start;
	*word(h, descr + 16) = *word(h, list);
	*word(h, descr + 48) = blocks;
	*word(h, list) = descr;
	h->n += blocks;
}

static void put(struct heap *h, unsigned n, ...)
{
	va_list args;

	va_start(args, n);
	for (unsigned i = 0; i < n; i++, h->at += 8)
		*word(h, h->at) = va_arg(args, uint64_t);
	va_end(args);
}

/* Ends the last opened block, which consists of `blocks` blocks. */
static void fill_block(struct heap *h, unsigned blocks)
{
	*word(h, DESCRS + 64ULL * (h->n - blocks) + 8) = h->at;
}

static struct census *walk(struct heap *h, struct census_opts *opts)
{
	struct census *c = malloc(sizeof(*c));

	assert_non_null(c);
	opts->read = read_heap;
	opts->ctx = h;
	opts->generations[0] = GENERATION;
	opts->n_generations = MAX(opts->n_generations, 1U);
	opts->code[0] = (struct census_range){CODE, CODE_END};
	opts->n_code = 1;
	opts->stack_size = 8;
	opts->stack_stack = 24;
	if (!opts->most_bytes)
		opts->most_bytes = 1 << 20;
	assert_int_equal(census__walk(opts, c), 0);
	return c;
}

static const struct census_entry *entry(const struct census *c, uint64_t info)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->entries[i].info == info)
			return &c->entries[i];
	return NULL;
}

static void check_entry(const struct census *c, uint64_t info, uint64_t count, uint64_t bytes)
{
	const struct census_entry *e = entry(c, info);

	assert_non_null(e);
	assert_int_equal(e->count, count);
	assert_int_equal(e->bytes, bytes);
}

#define W(x) ((uint64_t)(x))

/* Each kind of closure with its size, one after the other without gaps. */
static void test_sizes(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {0};
	const uint64_t p = BLOCKS;
	struct census *c;
	uint64_t at[20];

	(void)state;
	open_block(h, 8, 1);
	put(h, 3, at[0] = info(h, 0, CLOSURE_CONSTR, 1, 1), p, W(7));
	put(h, 3, at[1] = info(h, 1, CLOSURE_THUNK, 1, 0), W(0), p);
	put(h, 3, at[2] = info(h, 2, CLOSURE_THUNK_SELECTOR, 1, 0), W(0), p);
	put(h, 5, at[3] = info(h, 3, CLOSURE_AP, 0, 0), W(0), W(2) << 32, p, p);
	put(h, 1, p);
	put(h, 5, at[4] = info(h, 4, CLOSURE_PAP, 0, 0), W(2) << 32 | 3, p, p, p);
	put(h, 6, at[5] = info(h, 5, CLOSURE_AP_STACK, 0, 0), W(0), W(2), p, p, p);
	put(h, 2, at[6] = info(h, 6, CLOSURE_IND, 1, 0), p);
	put(h, 2, at[7] = info(h, 7, CLOSURE_MUT_VAR_DIRTY, 1, 0), p);
	put(h, 4, at[8] = info(h, 8, CLOSURE_ARR_WORDS, 0, 0), W(9), W(1), W(2));
	put(h, 6, at[9] = info(h, 9, CLOSURE_MUT_ARR_PTRS_CLEAN, 0, 0), W(2), W(3), p, p, W(0));
	put(h, 4, at[10] = info(h, 10, CLOSURE_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN, 0, 0), W(2), p, p);
	put(h, 5, at[11] = info(h, 11, CLOSURE_STACK, 0, 0), W(2), p, W(3), W(4));
	put(h, 4, at[12] = info(h, 12, CLOSURE_MVAR_CLEAN, 3, 0), p, p, p);
	put(h, 6, at[13] = info(h, 13, CLOSURE_BCO, 3, 1), p, p, p, W(6) << 32 | 1, W(0));
	put(h, 6, at[14] = info(h, 14, CLOSURE_CONTINUATION, 0, 0), W(0), W(0), W(2), p, p);
	put(h, 1, at[15] = info(h, 15, CLOSURE_CONSTR_NOCAF, 0, 0));
	fill_block(h, 1);
	c = walk(h, &opts);
	check_entry(c, at[0], 1, 24);
	check_entry(c, at[1], 1, 24);
	check_entry(c, at[2], 1, 24);
	check_entry(c, at[3], 1, 48);
	check_entry(c, at[4], 1, 40);
	check_entry(c, at[5], 1, 48);
	check_entry(c, at[6], 1, 16);
	check_entry(c, at[7], 1, 16);
	check_entry(c, at[8], 1, 32);
	check_entry(c, at[9], 1, 48);
	check_entry(c, at[10], 1, 32);
	check_entry(c, at[11], 1, 40);
	check_entry(c, at[12], 1, 32);
	check_entry(c, at[13], 1, 48);
	check_entry(c, at[14], 1, 48);
	check_entry(c, at[15], 1, 8);
	assert_int_equal(c->unknown_bytes, 0);
	assert_int_equal(c->gap_bytes, 0);
	assert_int_equal(c->counted_bytes, c->walked_bytes);
	assert_int_equal(c->blocks_bytes, c->walked_bytes);
	assert_false(c->cut);
	free(c);
	free(h);
}

/* An updated thunk leaves words that do not look like a closure and count as a gap; other
 * unrecognised words count as unknown. */
static void test_gaps(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {0};
	uint64_t con, ind, odd, big;
	struct census *c;

	(void)state;
	con = info(h, 0, CLOSURE_CONSTR, 1, 0);
	ind = info(h, 1, CLOSURE_IND, 1, 0);
	odd = info(h, 2, 30 /* RET_SMALL: never on the heap */, 1, 0);
	big = info(h, 3, CLOSURE_CONSTR, 1, 100);
	open_block(h, 8, 1);
	put(h, 2, con, BLOCKS);
	put(h, 4, ind, BLOCKS, W(5), BLOCKS);
	put(h, 2, con, BLOCKS);
	put(h, 2, odd, W(3));
	/* not a valid pointer */
	put(h, 2, con, W(3));
	put(h, 2, con, BLOCKS);
	/* does not fit into the block */
	put(h, 2, big, BLOCKS);
	fill_block(h, 1);
	c = walk(h, &opts);
	check_entry(c, con, 3, 48);
	check_entry(c, ind, 1, 16);
	assert_null(entry(c, odd));
	assert_null(entry(c, big));
	assert_int_equal(c->gap_bytes, 16);
	assert_int_equal(c->unknown_bytes, 48);
	assert_int_equal(c->counted_bytes, 64);
	free(c);
	free(h);
}

static void test_profiled(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {.profiled = true};
	uint64_t con, thunk;
	struct census *c;

	(void)state;
	con = info(h, 0, CLOSURE_CONSTR, 1, 0);
	thunk = info(h, 1, CLOSURE_THUNK, 1, 0);
	open_block(h, 8, 1);
	put(h, 4, con, W(1), W(2), BLOCKS);
	put(h, 5, thunk, W(1), W(2), W(0), BLOCKS);
	fill_block(h, 1);
	c = walk(h, &opts);
	check_entry(c, con, 1, 32);
	check_entry(c, thunk, 1, 40);
	assert_int_equal(c->unknown_bytes, 0);
	free(c);
	free(h);
}

/* A large object is one closure; a compact region, of which the list has only the first block,
 * is not examined. */
static void test_large_and_compact(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {0};
	uint64_t array;
	struct census *c;

	(void)state;
	array = info(h, 0, CLOSURE_ARR_WORDS, 0, 0);
	open_block(h, 32, 3);
	put(h, 2, array, W(10000));
	h->at += 10000;
	fill_block(h, 3);
	open_block(h, 64, 2);
	h->at += 5000;
	fill_block(h, 2);
	*word(h, GENERATION + 72) = 300;
	c = walk(h, &opts);
	check_entry(c, array, 1, 10016);
	assert_int_equal(c->large_bytes, 10016);
	assert_int_equal(c->pinned_bytes, 0);
	assert_int_equal(c->compact_bytes, 300 * BLOCK);
	assert_int_equal(c->blocks_bytes, 0);
	assert_false(c->cut);
	free(c);
	/* not a valid number of blocks */
	*word(h, GENERATION + 72) = UINT64_MAX / 2;
	c = walk(h, &opts);
	assert_int_equal(c->compact_bytes, 0);
	assert_true(c->cut);
	free(c);
	free(h);
}

/* A block of pinned objects, whose descriptor has its flags at 46; none of the lists is a
 * generation's list of small objects. */
static void test_pinned_and_mutable(void **state)
{
	struct heap *h = heap_new();
	const uint64_t mut_lists = DESCRS - 64, lists = DESCRS - 128;
	struct census_opts opts = {.mut_lists = &mut_lists, .n_mut_lists = 1};
	uint64_t array;
	struct census *c;

	(void)state;
	array = info(h, 0, CLOSURE_ARR_WORDS, 0, 0);
	open_block(h, 32, 1);
	put(h, 4, array, W(16), W(0), W(0));
	put(h, 4, array, W(16), W(0), W(0));
	fill_block(h, 1);
	*word(h, DESCRS + 40) = 4ULL << 48;
	/* generation 1's, in two blocks */
	open_block(h, 256, 1);
	put(h, 3, W(1), W(2), W(3));
	fill_block(h, 1);
	open_block(h, 256, 1);
	put(h, 2, W(1), W(2));
	fill_block(h, 1);
	*word(h, mut_lists) = lists;
	*word(h, lists + 8) = *word(h, GENERATION + 256);
	c = walk(h, &opts);
	assert_int_equal(c->large_bytes, 64);
	assert_int_equal(c->pinned_bytes, 64);
	assert_int_equal(c->mutable_bytes, 0); /* that generation does not exist */
	free(c);
	opts.n_generations = 2;
	opts.generations[1] = GENERATION + 512;
	c = walk(h, &opts);
	assert_int_equal(c->mutable_bytes, 40);
	assert_int_equal(c->blocks_bytes, 0);
	/* a broken chain does not cause a recount */
	*word(h, DESCRS + 64 + 16) = CODE + 32;
	free(c);
	c = walk(h, &opts);
	assert_int_equal(c->mutable_bytes, 40);
	assert_false(c->cut);
	free(c);
	free(h);
}

/* If there are too many blocks, a sample of them stands for all. */
static void test_sampled(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {.most_bytes = 4 * BLOCK};
	uint64_t con;
	struct census *c;

	(void)state;
	con = info(h, 0, CLOSURE_CONSTR, 1, 0);
	for (unsigned i = 0; i < 10; i++) {
		open_block(h, 8, 1);
		while (h->at % BLOCK || h->at == BLOCKS + (uint64_t)BLOCK * i)
			put(h, 2, con, BLOCKS);
		fill_block(h, 1);
	}
	c = walk(h, &opts);
	check_entry(c, con, 10ULL * BLOCK / 16, 10ULL * BLOCK);
	assert_int_equal(c->blocks_bytes, 10 * BLOCK);
	assert_int_equal(c->walked_bytes, 4 * BLOCK);
	free(c);
	free(h);
}

/* The program is running meanwhile: chains are circular or broken, pages are missing. */
static void test_broken(void **state)
{
	struct heap *h = heap_new();
	struct census_opts opts = {0};
	uint64_t con;
	struct census *c;

	(void)state;
	con = info(h, 0, CLOSURE_CONSTR, 1, 0);
	open_block(h, 8, 1);
	put(h, 2, con, BLOCKS);
	fill_block(h, 1);
	open_block(h, 8, 1);
	put(h, 2, con, BLOCKS);
	fill_block(h, 1);
	h->unreadable = BLOCKS;
	c = walk(h, &opts);
	check_entry(c, con, 1, 16);
	assert_int_equal(c->unknown_bytes, 16);
	assert_false(c->cut);
	free(c);
	/* the first block, which is second in the list, links to something that is not a
	 * descriptor */
	*word(h, DESCRS + 16) = CODE + 32;
	h->unreadable = 0;
	c = walk(h, &opts);
	check_entry(c, con, 2, 32);
	assert_true(c->cut);
	free(c);
	/* a circular chain */
	*word(h, DESCRS + 16) = DESCRS + 64;
	c = walk(h, &opts);
	assert_true(c->cut);
	free(c);
	/* a block that ends before it begins */
	*word(h, DESCRS + 16) = 0;
	*word(h, DESCRS + 8) = BLOCKS - 8;
	c = walk(h, &opts);
	check_entry(c, con, 1, 16);
	assert_true(c->cut);
	free(c);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_profiled),
		cmocka_unit_test(test_large_and_compact),
		cmocka_unit_test(test_pinned_and_mutable),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests_name("census", tests, NULL, NULL);
}

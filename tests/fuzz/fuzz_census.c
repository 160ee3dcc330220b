/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A heap that an attacker made: the walk must end, stay inside its buffers, and count no more than
 * there is. The input is the memory, repeated from address 0 up, so that most pointers lead
 * somewhere; a part of it is code.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "census/census.h"

struct bytes {
	const uint8_t *data;
	size_t size;
	unsigned reads;
};

/* Enough for any walk that ends by itself. */
#define MOST_READS 100000

static int read_bytes(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct bytes *b = ctx;

	addr %= b->size;
	if (++b->reads > MOST_READS || len > b->size - addr)
		return -14;
	memcpy(buf, b->data + addr, len);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {.data = data, .size = size};
	static struct census census;
	struct census_opts opts = {.read = read_bytes,
				   .ctx = &b,
				   .n_generations = 2,
				   .n_code = 1,
				   .stack_size = 8,
				   .stack_stack = 24,
				   .most_bytes = 1 << 20};
	uint64_t bytes = 0, mut_lists;

	if (size < 256)
		return 0;
	opts.profiled = data[0] & 1;
	opts.generations[0] = data[1] * 8ULL;
	opts.generations[1] = data[2] * 8ULL;
	mut_lists = data[3] * 8ULL;
	opts.mut_lists = &mut_lists;
	opts.n_mut_lists = 1;
	opts.code[0] = (struct census_range){0, size / 2};
	if (census__walk(&opts, &census))
		return 0;
	if (census.n > CENSUS_MAX_ENTRIES || census.counted_bytes > census.walked_bytes)
		abort();
	for (uint32_t i = 0; i < census.n; i++) {
		if (i && census.entries[i].bytes > census.entries[i - 1].bytes)
			abort();
		bytes += census.entries[i].bytes;
	}
	if (!bytes != !census.n && !census.n)
		abort();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Demo.hs: stand-ins for a database driver, a compressor and a lock. */
#include "tally.h"

int demo_query_database(int key);
int demo_query_database(int key)
{
	tally__sleep(3000000 + (uint64_t)key * 20000);
	return key * 7 + 1;
}

static int mix(int seed, unsigned rounds)
{
	uint32_t x = (uint32_t)seed;

	for (unsigned i = 0; i < rounds; i++)
		x = (x ^ (x >> 13)) * 0x5bd1e995u + i;
	return (int)(x & 0xffff);
}

/* Not inlined, so that the two show as two functions. */
static __attribute__((noinline)) int demo_match_blocks(int size)
{
	return mix(size, 600000);
}

int demo_compress(int size);
int demo_compress(int size)
{
	return demo_match_blocks(size) + 1;
}

int demo_checksum(int size);
int demo_checksum(int size)
{
	return mix(size, 150000) + 1;
}

void demo_take_lock(void);
void demo_take_lock(void)
{
	tally__sleep(2000000);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The C part of Bench.hs. */
#include <stdint.h>

int bench_nothing(int x)
{
	return x;
}

/*
 * `depth` frames, and n rounds in the innermost one. The compiler must not turn the frames into a
 * loop.
 */
__attribute__((noinline, optimize("O1"))) uint64_t bench_down(int depth, uint64_t n)
{
	volatile uint64_t sum = 0;

	if (depth > 0)
		return bench_down(depth - 1, n) + (uint64_t)depth * sum;
	for (uint64_t i = 0; i < n; i++)
		sum += i;
	return sum;
}

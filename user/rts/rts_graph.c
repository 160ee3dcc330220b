/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Distinguishes the runtime's functions from other C code without names. The linker keeps most of
 * an archive's code together, next to suspendThread, but hot, cold and exit code goes elsewhere
 * (gcc's .text.hot has the collector's evacuate and scavenge), and next to the runtime may lie the
 * code of other archives (libffi, gmp, a package's cbits). What the runtime calls and what calls
 * the runtime is the runtime's; libraries are called and do not call back, users of the runtime
 * call it and are not called.
 */
#include "rts_graph_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"

#define MAX_CALLS  (8U << 20)
#define MAX_ROUNDS 64
/* Functions in a row between two of the runtime's that are taken for its own. */
#define MAX_BETWEEN 24

struct call {
	uint32_t from, to;
};

struct graph {
	const struct elf_fde *fdes;
	size_t n;
	struct call *calls; /* ascending by from */
	size_t n_calls, cap;
	uint8_t *mark;
};

/* The function that starts at vaddr; n if there is none. */
static size_t starts_at(const struct graph *g, uint64_t vaddr)
{
	return elf_fdes__starting_at(g->fdes, g->n, vaddr);
}

/* Of which function the calls are collected. */
struct caller {
	struct graph *graph;
	size_t index;
	int err;
};

/* A branch to a function's start; bytes that are none seldom look like one. */
static bool on_branch(void *ctx, uint64_t target, uint64_t next)
{
	struct caller *c = ctx;
	struct graph *g = c->graph;
	size_t to = starts_at(g, target);

	(void)next;
	if (to == g->n || to == c->index)
		return true;
	c->err = array__reserve((void **)&g->calls, &g->cap, g->n_calls + 1, MAX_CALLS,
				sizeof(*g->calls));
	if (c->err < 0)
		return false;
	g->calls[g->n_calls++] = (struct call){(uint32_t)c->index, (uint32_t)to};
	return true;
}

static int add_calls(struct graph *g, const struct elf_file *elf, size_t i)
{
	size_t len = g->fdes[i].end - g->fdes[i].start;
	const uint8_t *code = elf__at(elf, g->fdes[i].start, len);
	struct caller c = {.graph = g, .index = i};

	if (code)
		rts_arch__branches(code, len, g->fdes[i].start,
				   RTS_ARCH_CALL | RTS_ARCH_JUMP | RTS_ARCH_COND, on_branch, &c);
	return c.err;
}

static bool follows(const struct graph *g, size_t i)
{
	return g->fdes[i].start - g->fdes[i - 1].end <= RTS_GRAPH_PADDING;
}

/*
 * In [lo, hi]: marks what marked functions call, and over again (`callees`), or what calls them.
 * True if it marked any.
 */
static bool spread(struct graph *g, size_t lo, size_t hi, bool callees)
{
	bool any = false;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		bool more = false;

		for (size_t c = 0; c < g->n_calls; c++) {
			size_t have = callees ? g->calls[c].from : g->calls[c].to;
			size_t get = callees ? g->calls[c].to : g->calls[c].from;

			if (!g->mark[have] || g->mark[get] || get < lo || get > hi)
				continue;
			g->mark[get] = 1;
			more = true;
		}
		any |= more;
		if (!more)
			break;
	}
	return any;
}

/* The run of code that `seed` lies in: what it calls there, what calls that, all between. */
static void mark_run(struct graph *g, size_t seed)
{
	size_t lo = seed, hi = seed;

	while (lo > 0 && follows(g, lo))
		lo--;
	while (hi + 1 < g->n && follows(g, hi + 1))
		hi++;
	spread(g, lo, hi, true);
	spread(g, lo, hi, false);
	while (lo < hi && !g->mark[lo])
		lo++;
	while (hi > lo && !g->mark[hi])
		hi--;
	memset(g->mark + lo, 1, hi - lo + 1);
}

/* Elsewhere: called by the runtime, and calls it. */
static void mark_elsewhere(struct graph *g, uint8_t *called)
{
	bool more = true;

	for (int round = 0; more && round < MAX_ROUNDS; round++) {
		more = false;
		for (size_t c = 0; c < g->n_calls; c++)
			if (g->mark[g->calls[c].from])
				called[g->calls[c].to] = 1;
		for (size_t c = 0; c < g->n_calls; c++) {
			size_t from = g->calls[c].from;

			if (g->mark[from] || !called[from] || !g->mark[g->calls[c].to])
				continue;
			g->mark[from] = 1;
			more = true;
		}
	}
}

static void fill_between(struct graph *g)
{
	size_t last = g->n;

	for (size_t i = 0; i < g->n; i++) {
		if (i > 0 && !follows(g, i))
			last = g->n;
		if (!g->mark[i])
			continue;
		if (last != g->n && i - last - 1 <= MAX_BETWEEN)
			memset(g->mark + last, 1, i - last);
		last = i;
	}
}

int rts_graph__mark(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
		    const uint64_t *seeds, size_t n_seeds, uint8_t *mark)
{
	struct graph g = {.fdes = fdes, .n = n, .mark = mark};
	uint8_t *called = calloc(n + 1, 1);
	int err = called ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && err == 0; i++)
		err = add_calls(&g, elf, i);
	for (size_t s = 0; s < n_seeds && err == 0; s++) {
		size_t i = starts_at(&g, seeds[s]);

		if (i != n)
			mark[i] = 1;
	}
	for (size_t s = 0; s < n_seeds && err == 0; s++) {
		size_t i = starts_at(&g, seeds[s]);

		if (i != n)
			mark_run(&g, i);
	}
	if (err == 0) {
		mark_elsewhere(&g, called);
		fill_between(&g);
	}
	free(called);
	free(g.calls);
	return err;
}

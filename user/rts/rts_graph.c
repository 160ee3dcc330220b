/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The call graph of a file, by which the runtime's functions are distinguished from other C code.
 * The linker keeps most of an archive's code together, next to suspendThread, but hot, cold and
 * exit code goes elsewhere (gcc's .text.hot has the collector's evacuate and scavenge), and the
 * code of other archives (libffi, gmp, a package's cbits) may be next to the runtime. A function
 * that both calls the runtime and is called by it is the runtime's: libraries are called and do not
 * call back, users of the runtime call it and are not called.
 */
#include "rts_graph_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "base/search.h"

#define MAX_CALLS  (8U << 20)
#define MAX_ROUNDS 64
/* Up to this many functions in a row between two of the runtime's are counted as the runtime's
 * too. */
#define MAX_BETWEEN 24

struct call {
	uint32_t from, to;
};

struct rts_graph {
	const struct elf_fde *fdes;
	size_t n;
	struct call *calls; /* ascending by `from` */
	size_t n_calls, cap;
	struct call *takes; /* the same for functions whose address is taken */
	size_t n_takes, takes_cap;
};

static size_t starts_at(const struct rts_graph *g, uint64_t vaddr)
{
	return elf_fdes__starting_at(g->fdes, g->n, vaddr);
}

/* The function whose calls are being collected. */
struct caller {
	struct rts_graph *graph;
	size_t index;
	int err;
};

/* A branch to the start of a function; bytes that are not a branch seldom look like one. */
static bool on_branch(void *ctx, uint64_t target, uint64_t next)
{
	struct caller *c = ctx;
	struct rts_graph *g = c->graph;
	size_t to = starts_at(g, target);

	(void)next;
	if (to == g->n || to == c->index)
		return true;
	c->err = ARRAY_RESERVE(g->calls, g->cap, g->n_calls + 1, MAX_CALLS);
	if (c->err < 0)
		return false;
	g->calls[g->n_calls++] = (struct call){(uint32_t)c->index, (uint32_t)to};
	return true;
}

/* The address of a function, to be called through a pointer. */
static bool on_address(void *ctx, uint64_t target)
{
	struct caller *c = ctx;
	struct rts_graph *g = c->graph;
	size_t to = starts_at(g, target);

	if (to == g->n || to == c->index)
		return true;
	c->err = ARRAY_RESERVE(g->takes, g->takes_cap, g->n_takes + 1, MAX_CALLS);
	if (c->err < 0)
		return false;
	g->takes[g->n_takes++] = (struct call){(uint32_t)c->index, (uint32_t)to};
	return true;
}

static int add_calls(struct rts_graph *g, const struct elf_file *elf, size_t i)
{
	size_t len = g->fdes[i].end - g->fdes[i].start;
	const uint8_t *code = elf__at(elf, g->fdes[i].start, len);
	struct caller c = {.graph = g, .index = i};

	if (!code)
		return 0;
	rts_arch__branches(code, len, g->fdes[i].start,
			   RTS_ARCH_CALL | RTS_ARCH_JUMP | RTS_ARCH_COND, on_branch, &c);
	if (!c.err)
		rts_arch__addresses(code, len, g->fdes[i].start, g->fdes[0].start,
				    g->fdes[g->n - 1].start, on_address, &c);
	return c.err;
}

static bool follows(const struct rts_graph *g, size_t i)
{
	return g->fdes[i].start - g->fdes[i - 1].end <= RTS_GRAPH_PADDING;
}

/*
 * Within [lo, hi], transitively marks what marked functions call (`callees`), or what calls them.
 * True if it marked any.
 */
static bool spread(const struct rts_graph *g, uint8_t *mark, size_t lo, size_t hi, bool callees)
{
	bool any = false;

	for (int round = 0; round < MAX_ROUNDS; round++) {
		bool more = false;

		for (size_t c = 0; c < g->n_calls; c++) {
			size_t have = callees ? g->calls[c].from : g->calls[c].to;
			size_t get = callees ? g->calls[c].to : g->calls[c].from;

			if (!mark[have] || mark[get] || get < lo || get > hi)
				continue;
			mark[get] = 1;
			more = true;
		}
		any |= more;
		if (!more)
			break;
	}
	return any;
}

/* Marks, in the run of adjacent code around `seed`, its callees and callers, and everything
 * between them. */
static void mark_run(const struct rts_graph *g, uint8_t *mark, size_t seed)
{
	size_t lo = seed, hi = seed;

	while (lo > 0 && follows(g, lo))
		lo--;
	while (hi + 1 < g->n && follows(g, hi + 1))
		hi++;
	spread(g, mark, lo, hi, true);
	spread(g, mark, lo, hi, false);
	while (lo < hi && !mark[lo])
		lo++;
	while (hi > lo && !mark[hi])
		hi--;
	memset(mark + lo, 1, hi - lo + 1);
}

/* Marks functions anywhere else that are called by the runtime and call it. */
static void mark_elsewhere(const struct rts_graph *g, uint8_t *mark, uint8_t *called)
{
	bool more = true;

	for (int round = 0; more && round < MAX_ROUNDS; round++) {
		more = false;
		for (size_t c = 0; c < g->n_calls; c++)
			if (mark[g->calls[c].from])
				called[g->calls[c].to] = 1;
		for (size_t c = 0; c < g->n_calls; c++) {
			size_t from = g->calls[c].from;

			if (mark[from] || !called[from] || !mark[g->calls[c].to])
				continue;
			mark[from] = 1;
			more = true;
		}
	}
}

static void fill_between(const struct rts_graph *g, uint8_t *mark)
{
	size_t last = g->n;

	for (size_t i = 0; i < g->n; i++) {
		if (i > 0 && !follows(g, i))
			last = g->n;
		if (!mark[i])
			continue;
		if (last != g->n && i - last - 1 <= MAX_BETWEEN)
			memset(mark + last, 1, i - last);
		last = i;
	}
}

int rts_graph__new(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
		   struct rts_graph **ret_graph)
{
	struct rts_graph *g = calloc(1, sizeof(*g));
	int err = 0;

	if (!g)
		return -ENOMEM;
	g->fdes = fdes;
	g->n = n;
	for (size_t i = 0; i < n && err == 0; i++)
		err = add_calls(g, elf, i);
	if (err) {
		rts_graph__free(g);
		return err;
	}
	*ret_graph = g;
	return 0;
}

void rts_graph__free(struct rts_graph *graph)
{
	if (!graph)
		return;
	free(graph->calls);
	free(graph->takes);
	free(graph);
}

int rts_graph__mark(struct rts_graph *graph, const uint64_t *seeds, size_t n_seeds, uint8_t *mark)
{
	uint8_t *called = calloc(graph->n + 1, 1);

	if (!called)
		return -ENOMEM;
	for (size_t s = 0; s < n_seeds; s++) {
		size_t i = starts_at(graph, seeds[s]);

		if (i != graph->n)
			mark[i] = 1;
	}
	for (size_t s = 0; s < n_seeds; s++) {
		size_t i = starts_at(graph, seeds[s]);

		if (i != graph->n)
			mark_run(graph, mark, i);
	}
	mark_elsewhere(graph, mark, called);
	fill_between(graph, mark);
	free(called);
	return 0;
}

/* ── questions ───────────────────────────────────────────────────────────────────────────── */

int rts_graph__enclose(const struct rts_graph *graph, const uint8_t *mark, uint8_t *among)
{
	/* for each function: bit 0: a caller in among[], bit 1: another caller */
	uint8_t *callers = malloc(graph->n + 1);
	bool more = true;

	if (!callers)
		return -ENOMEM;
	for (int round = 0; more && round < MAX_ROUNDS; round++) {
		more = false;
		memset(callers, 0, graph->n + 1);
		for (size_t c = 0; c < graph->n_calls; c++)
			callers[graph->calls[c].to] |= among[graph->calls[c].from] ? 1 : 2;
		for (size_t c = 0; c < graph->n_takes; c++)
			callers[graph->takes[c].to] |= among[graph->takes[c].from] ? 1 : 2;
		for (size_t i = 0; i < graph->n; i++) {
			if (!mark[i] || among[i] || callers[i] != 1)
				continue;
			among[i] = 1;
			more = true;
		}
	}
	free(callers);
	return 0;
}

size_t rts_graph__caller(const struct rts_graph *graph, size_t i)
{
	size_t caller = graph->n;

	for (size_t c = 0; c < graph->n_calls; c++) {
		if (graph->calls[c].to != i || graph->calls[c].from == caller)
			continue;
		if (caller != graph->n)
			return graph->n;
		caller = graph->calls[c].from;
	}
	return caller;
}

static bool calls_named(const struct rts_graph *g, size_t i, const uint16_t *names, uint16_t name)
{
	size_t c = search__first(g->n_calls, k, g->calls[k].from >= i);

	for (; c < g->n_calls && g->calls[c].from == i; c++)
		if (names[g->calls[c].to] == name)
			return true;
	return false;
}

size_t rts_graph__between(const struct rts_graph *graph, const uint16_t *names, uint16_t caller,
			  uint16_t callee)
{
	size_t found = graph->n;

	for (size_t c = 0; c < graph->n_calls; c++) {
		size_t i = graph->calls[c].to;

		if (names[graph->calls[c].from] != caller || names[i] || i == found ||
		    !calls_named(graph, i, names, callee))
			continue;
		if (found != graph->n)
			return graph->n;
		found = i;
	}
	return found;
}

bool rts_graph__calls(const struct rts_graph *graph, size_t from, size_t to)
{
	for (size_t c = 0; c < graph->n_calls; c++)
		if (graph->calls[c].from == from && graph->calls[c].to == to)
			return true;
	return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtime's own C functions in a file without symbols, found by who calls whom. Shared by
 * the files of this room only.
 */
#ifndef SAFESCOPED_RTS_GRAPH_PRIV_H
#define SAFESCOPED_RTS_GRAPH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/* Code functions at most this far apart follow each other: alignment only. */
#define RTS_GRAPH_PADDING 64

struct rts_graph;

/*
 * Who calls whom among the n functions (fdes, ascending), which must outlive the graph. -ENOMEM,
 * -E2BIG: too many calls in the file.
 */
int rts_graph__new(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
		   struct rts_graph **ret_graph);
void rts_graph__free(struct rts_graph *graph);

/*
 * Sets mark[i] for each function that is the runtime's, beginning with those that have a mark
 * already and with those that start at the n_seeds addresses, whose neighbours are looked at as
 * well. -ENOMEM
 */
int rts_graph__mark(struct rts_graph *graph, const uint64_t *seeds, size_t n_seeds, uint8_t *mark);

/*
 * Sets among[i] for each function with a mark that is called, and only by functions of which
 * among[] is set already.
 */
int rts_graph__enclose(const struct rts_graph *graph, const uint8_t *mark, uint8_t *among);

/* The one function that calls function i; `n` of the graph if none or several do. */
size_t rts_graph__caller(const struct rts_graph *graph, size_t i);
/*
 * The one function without a name (names[i] 0) that one called `caller` calls, and that calls one
 * called `callee`; `n` of the graph if none or several do.
 */
size_t rts_graph__between(const struct rts_graph *graph, const uint16_t *names, uint16_t caller,
			  uint16_t callee);
/* Whether function `from` branches to where function `to` begins. */
bool rts_graph__calls(const struct rts_graph *graph, size_t from, size_t to);

#endif

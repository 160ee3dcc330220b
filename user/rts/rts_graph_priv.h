/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the runtime's own C functions in a file without symbols, by who calls whom. For the files
 * of this room only.
 */
#ifndef SAFESCOPED_RTS_GRAPH_PRIV_H
#define SAFESCOPED_RTS_GRAPH_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

/* Functions at most this far apart are adjacent: there is only alignment between them. */
#define RTS_GRAPH_PADDING 64

struct rts_graph;

/*
 * Builds the call graph of the n functions (fdes, ascending), which must outlive it. -ENOMEM,
 * -E2BIG: too many calls in the file.
 */
int rts_graph__new(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
		   struct rts_graph **ret_graph);
void rts_graph__free(struct rts_graph *graph);

/*
 * Sets mark[i] for each function that is the runtime's, starting with those that are already marked
 * and with those that begin at the n_seeds addresses, whose neighbours are examined as well.
 * -ENOMEM
 */
int rts_graph__mark(struct rts_graph *graph, const uint64_t *seeds, size_t n_seeds, uint8_t *mark);

/*
 * Sets among[i] for each marked function that is called, and called only by functions whose among[]
 * is set.
 */
int rts_graph__enclose(const struct rts_graph *graph, const uint8_t *mark, uint8_t *among);

/* The only function that calls function i; `n` of the graph if none or several do. */
size_t rts_graph__caller(const struct rts_graph *graph, size_t i);
/*
 * The only function without a name (names[i] 0) that is called by one named `caller` and calls one
 * named `callee`; `n` of the graph if there is none or several.
 */
size_t rts_graph__between(const struct rts_graph *graph, const uint16_t *names, uint16_t caller,
			  uint16_t callee);
/* True if function `from` branches to the beginning of function `to`. */
bool rts_graph__calls(const struct rts_graph *graph, size_t from, size_t to);

#endif

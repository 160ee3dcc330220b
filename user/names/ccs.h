/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads cost-centre stacks from a process's memory. The layout is the same in every GHC from 8.10
 * on (rts/include/rts/prof/CCS.h), and `strip` leaves it intact.
 */
#ifndef SAFESCOPED_NAMES_CCS_H
#define SAFESCOPED_NAMES_CCS_H

#include <stddef.h>
#include <stdint.h>

#define CCS_MAX_NODES	16384 /* per call of ccs__collect() */
#define CCS_MAX_CENTRES 16384
#define CCS_MAX_DEPTH	1024 /* recursion does not deepen a stack: each centre is in it once */
#define CCS_MAX_TEXT	(4U << 20)
#define CCS_MAX_STRING	512

/* How to read the process's memory: read() returns 0 if all of `len` was read. */
struct ccs_reader {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

struct ccs_node {
	uint64_t addr, parent; /* parent 0: the root */
	uint32_t centre;       /* index into centres[] */
	uint32_t _pad;
};

struct ccs_centre {
	uint64_t addr;
	uint32_t label, module, src_loc; /* offsets into text[], NUL-terminated */
	uint32_t _pad;
};

/* The result: parents come before their children, all indices are in bounds, there is no cycle. */
struct ccs_found {
	uint32_t n_nodes, n_centres, n_text;
	uint32_t cut; /* set if some were left out */
	struct ccs_node nodes[CCS_MAX_NODES];
	struct ccs_centre centres[CCS_MAX_CENTRES];
	char text[CCS_MAX_TEXT];
};

/*
 * Collects the stacks at addrs[] with all their ancestors, then as much of the rest of the tree as
 * it can until deadline_ns (CLOCK_MONOTONIC; 0: only addrs[]). The caller must zero *found.
 * Unreadable nodes are left out. Returns 0 or -ENOMEM.
 */
int ccs__collect(const struct ccs_reader *reader, const uint64_t *addrs, size_t n,
		 uint64_t deadline_ns, struct ccs_found *found);

#endif

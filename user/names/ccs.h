/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cost-centre stacks in a process's memory. The layout is the same in every GHC from 8.10 on
 * (rts/include/rts/prof/CCS.h), and `strip` takes nothing of it away.
 */
#ifndef SAFESCOPED_NAMES_CCS_H
#define SAFESCOPED_NAMES_CCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CCS_MAX_NODES	16384 /* of one look */
#define CCS_MAX_CENTRES 16384
#define CCS_MAX_DEPTH	1024 /* recursion does not deepen a stack: each centre is in it once */
#define CCS_MAX_TEXT	(4U << 20)
#define CCS_MAX_STRING	512

/* Where it is read from; 0 if all of len could be read. */
struct ccs_reader {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

struct ccs_node {
	uint64_t addr, parent; /* parent 0: the root */
	uint32_t centre;       /* of centres[] */
	uint32_t _pad;
};

struct ccs_centre {
	uint64_t addr;
	uint32_t label, module, src_loc; /* of text[], NUL-terminated */
	uint32_t _pad;
};

/* What a look found: parents before their children, all indices in bounds, no cycle. */
struct ccs_found {
	uint32_t n_nodes, n_centres, n_text;
	uint32_t cut; /* there are more */
	struct ccs_node nodes[CCS_MAX_NODES];
	struct ccs_centre centres[CCS_MAX_CENTRES];
	char text[CCS_MAX_TEXT];
};

/*
 * The stacks at addrs[] with all that is above them, then as many of the whole tree as there is
 * time for until deadline_ns (CLOCK_MONOTONIC; 0: only addrs[]). *found is zeroed beforehand. What
 * cannot be read is left out. -ENOMEM.
 */
int ccs__collect(const struct ccs_reader *reader, const uint64_t *addrs, size_t n,
		 uint64_t deadline_ns, struct ccs_found *found);

#endif

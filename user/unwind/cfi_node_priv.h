/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph that cfi_graph.c builds and cfi_judge.c judges. */
#ifndef SAFESCOPED_UNWIND_CFI_NODE_PRIV_H
#define SAFESCOPED_UNWIND_CFI_NODE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_NO_NODE UINT32_MAX

/* In words: rsp is CFA − 8 depth (0: unknown), the caller's rbp is stored at CFA − 8 slot (0: it is
 * in rbp), rbp is CFA − 8 fp (0: something else). */
struct graph_state {
	uint16_t depth, slot, fp;
};

/*
 * How an instruction was reached: from an entry (2 n: node n), or after a call returned (2 n + 1:
 * the call in node n).
 */
#define CFI_BY_ENTRY(n) (2 * (n))
#define CFI_BY_CALL(n)	(2 * (n) + 1)

struct graph_node {
	uint32_t at;	 /* offset from base */
	uint32_t origin; /* CFI_BY_… */
	uint32_t tail;	 /* of an entry: another entry that it jumps to; CFI_NO_NODE */
	struct graph_state state;
	uint32_t insns; /* of an entry: number of visits to instructions from it */
	uint16_t calls; /* passed since the entry: fewer is a better claim */
	uint8_t size;	/* 0: not decoded */
	uint8_t end;	/* enum line_end, if a path ends here */
	bool good;	/* an entry from which a return was reached */
	bool good_call; /* a return was reached after this call */
	bool bad_call;	/* what was reached after this call is not its return point */
	bool bad_entry;
};

enum line_end {
	END_NONE,
	END_RETURN, /* with everything as it was at the entry */
	END_ODD,    /* something that C code does not do: the path that led here is wrong */
};

/*
 * Decides which functions are believed and which calls returned, from the ends that were reached.
 * May be called again after more was followed.
 */
void cfi_judge(struct graph_node *nodes, size_t n);
/* Whether code reached from `origin` is C code in that state. After cfi_judge(). */
bool cfi_judge__believes(const struct graph_node *nodes, uint32_t origin);
/* Keeps the believed nodes, ascending by address; origins are invalid afterwards. -ENOMEM. */
int cfi_judge__keep(struct graph_node *nodes, size_t *n);

#endif

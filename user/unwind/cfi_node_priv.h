/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What cfi_graph.c gathers, and cfi_judge.c judges. */
#ifndef SAFESCOPED_UNWIND_CFI_NODE_PRIV_H
#define SAFESCOPED_UNWIND_CFI_NODE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_NO_NODE UINT32_MAX

/* In words: rsp is CFA − 8 depth (0: not known), the caller's rbp at CFA − 8 slot (0: in rbp), rbp
 * is CFA − 8 fp (0: something else). */
struct graph_state {
	uint16_t depth, slot, fp;
};

/*
 * What an instruction was reached by: an entry (2 n: of node n), or a call that came back (2 n + 1:
 * the call in node n).
 */
#define CFI_BY_ENTRY(n) (2 * (n))
#define CFI_BY_CALL(n)	(2 * (n) + 1)

struct graph_node {
	uint32_t at;	 /* from base */
	uint32_t origin; /* CFI_BY_… */
	uint32_t tail;	 /* of an entry: another one that it jumps to; CFI_NO_NODE */
	struct graph_state state;
	uint32_t insns; /* of an entry: how often one was visited from there */
	uint16_t calls; /* passed since the entry: fewer is the better claim */
	uint8_t size;	/* 0: not decoded */
	uint8_t end;	/* enum line_end, if a line ends here */
	bool good;	/* an entry from which a return was reached */
	bool good_call; /* a return was reached after this call */
	bool bad_call;	/* what was reached after this call is not what it comes back to */
	bool bad_entry;
};

enum line_end {
	END_NONE,
	END_RETURN, /* with everything as it was at the entry */
	END_ODD,    /* something that C code does not do: it cannot be reached that way */
};

/*
 * Which functions are believed, and which calls came back, by the ends that were reached. May be
 * asked again after more was reached.
 */
void cfi_judge(struct graph_node *nodes, size_t n);
/* Whether what was reached that way is C code in that state. After cfi_judge(). */
bool cfi_judge__believes(const struct graph_node *nodes, uint32_t origin);
/* Keeps what is believed, ascending by address; origins mean nothing any more. -ENOMEM. */
int cfi_judge__keep(struct graph_node *nodes, size_t *n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the html format share: page.c (the page, and what it consists of), stacks.c
 * (all stacks as one tree of bounded size), lanes.c (lanes, their accounts, how they look as a
 * whole), slices.c (what is drawn when somebody zooms in), events.c (collections, marks, calls,
 * curves), allocation.c (what was allocated), findings.c (what stands out, and when), tables.c (the
 * tables), source.c (the files of the folder page).
 */
#ifndef SAFESCOPED_EXPORT_HTML_H
#define SAFESCOPED_EXPORT_HTML_H

#include "export/sums.h"

/* The page, its style and its program, as they are in the source: strings. */
extern const char html_page[], html_css[], html_js[];

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

/* In place of a frame: what is too small to show. */
#define HTML_SMALL UINT32_MAX

/* A frame of the tree, which is a list of these: parents come before their children. */
struct html_node {
	uint32_t depth; /* 0: a root */
	uint32_t frame; /* its number in the map; HTML_SMALL */
};

struct html_stacks {
	struct html_node *nodes; /* node i of the page is nodes[i - 1]; node 0: the empty stack */
	size_t n, cap;
	uint32_t *of_stack; /* by the picture's number of a stack: its node */
	uint32_t n_stacks;
	uint64_t small_ns; /* of the weights: below an HTML_SMALL */
};

/*
 * A tree of at most `most` nodes (and no less than one stack's) of all stacks that have a weight:
 * weights[i] is stack i's, 0: it is not used. Frames with subtrees lighter than `least`, or than
 * what keeps the tree so small, have an HTML_SMALL for these; *ret_least gets which it was.
 * -ENOMEM, -E2BIG.
 */
int html_stacks__build(const struct picture *pic, const uint64_t *weights, uint32_t n_stacks,
		       const uint32_t *map, size_t most, uint64_t least,
		       struct html_stacks *ret_stacks, uint64_t *ret_least);
void html_stacks__free(struct html_stacks *stacks);

static inline uint32_t html_stacks__node(const struct html_stacks *stacks, uint32_t stack)
{
	return stack < stacks->n_stacks ? stacks->of_stack[stack] : 0;
}

/* ── the page ────────────────────────────────────────────────────────────────────────────── */

/* A line of a lane's account: what is alike on the page is one. */
struct html_row {
	uint32_t node;
	uint8_t state;
	bool on_cpu;
	uint64_t ns, samples;
};

/* A lane of the page: one of the picture's, or what is left of a process's lanes of a kind. */
struct html_lane {
	const struct view *view; /* NULL: of more than one */
	enum lane_kind kind;
	uint32_t target_no;
	bool shown;   /* by --lanes */
	bool counted; /* all of these together are what the session took */
	bool ticks;   /* of a report that GHC wrote: nothing but its rows */
	uint64_t lanes;
	uint64_t wall_ns, cpu_ns; /* cpu_ns: UINT64_MAX: not known */
	uint64_t states_ns[LANE_STATES];
	struct html_row *rows;
	size_t n_rows, cap;
};

/* A slice's face, which many have. */
struct html_look;

struct html {
	FILE *out;
	const struct picture *pic;
	const struct export_opts *opts;
	struct views views;
	uint64_t zero_ns; /* of all times on the page: when the session began */
	struct html_lane *lanes;
	size_t n_lanes, cap_lanes;
	uint32_t *lane_of_view; /* UINT32_MAX: none */
	size_t bins;		/* of a lane's drawing */
	uint32_t *map;		/* of a picture's frame: its number */
	struct html_stacks stacks;
	uint64_t least_ns; /* frames below are not in the stacks; at most 1: all are */
	struct html_look *looks;
	uint32_t n_looks;
};

/* A time on the page; times before the session are negative. */
static inline int64_t html__time(const struct html *h, uint64_t ns)
{
	return (int64_t)(ns - h->zero_ns);
}

/* Numbers in a list: a comma before all but the first. */
static inline void html__comma(FILE *out, bool *any)
{
	if (*any)
		fputc_unlocked(',', out);
	*any = true;
}
void html__put_int(FILE *out, int64_t n);
/* UINT64_MAX: null. */
void html__put_known(FILE *out, uint64_t n);

/* The list of lanes, with what they add up to. -ENOMEM, -E2BIG. */
int html_lanes__collect(struct html *h);
void html_lanes__free(struct html *h);
/* Accounts, by the nodes that there are now. Returns how many rows there are, or an error. */
ssize_t html_lanes__account(struct html *h);
/* "bin_ns":N,"lanes":[…]: what they are, and how each looks as a whole. */
void html_lanes__put(const struct html *h);
/* "rows":[[node, 2 * state + on_cpu, ns, samples, …]], for each lane. */
void html_lanes__put_rows(const struct html *h);

/* Chooses the grain with which the slices fit. */
int html_slices__choose(struct html *h);
/* Weights of the stacks in accounts and slices, for html_stacks__build: the caller frees. */
int html_slices__weigh(const struct html *h, uint64_t **ret_weights, uint32_t *ret_n);
/* Numbers the looks of all slices; may make the grain coarser. */
int html_slices__number(struct html *h);
void html_slices__free(struct html *h);
/* "looks":[state, exact, node, capability, OS thread, Haskell thread, …]; look 0: nothing there. */
void html_slices__put_looks(const struct html *h);
/* One element for each lane that has slices: [start, length, look, samples, length, …]. */
void html_slices__put(const struct html *h);

/* "gcs":…,"marks":…,"flows":…,"counters":… of a process, of which there are `n`. */
void html__put_events(const struct html *h, const struct pic_target *target, size_t n);
/* "allocated":[[node, bytes, samples, …]], "spans":[{"whose":[capability, OS thread, Haskell
 * thread, …], "list":[end since the one before, length, index of whose, node, bytes, samples, …]}],
 * by process. -ENOMEM. */
int html__put_allocated(const struct html *h);
/* "findings":[…] */
void html__put_findings(const struct html *h, const struct pic_target *target);
/* "targets":[…]: what they are, findings, events, tables, what is missing. */
void html__put_targets(const struct html *h);

#endif

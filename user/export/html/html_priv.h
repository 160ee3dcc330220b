/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the html format share: page.c (the page and its parts), stacks.c (all stacks as
 * one tree of bounded size), lanes.c (lanes, their accounts, how they look as a whole), slices.c
 * (what is drawn when zoomed in), events.c (collections, marks, calls, curves), allocation.c,
 * findings.c (the findings and when they occurred), tables.c, source.c (the files of the folder
 * page).
 */
#ifndef SAFESCOPED_EXPORT_HTML_H
#define SAFESCOPED_EXPORT_HTML_H

#include "export/sums.h"

/* The page, its style and its program: the contents of the source files, as strings. */
extern const char html_page[], html_css[], html_js[];

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

/* Stands for frames that are too small to show. */
#define HTML_SMALL UINT32_MAX

/* A node of the tree, which is a list in which parents come before their children. */
struct html_node {
	uint32_t depth; /* 0: a root */
	uint32_t frame; /* its number in the map, or HTML_SMALL */
};

struct html_stacks {
	struct html_node *nodes; /* node i of the page is nodes[i - 1]; node 0 is the empty stack */
	size_t n, cap;
	uint32_t *of_stack; /* maps the picture's number of a stack to its node */
	uint32_t n_stacks;
	uint64_t small_ns; /* the weight under all HTML_SMALL nodes */
};

/*
 * Builds a tree of at most `most` nodes (but at least one stack's) from all stacks that have a
 * weight: weights[i] is stack i's, 0 if it is not used. Subtrees lighter than `least`, or than the
 * limit that the size of the tree requires, are replaced by an HTML_SMALL; *ret_least is the limit
 * applied. -ENOMEM, -E2BIG.
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

/* A row of a lane's account; rows that look alike on the page are merged. */
struct html_row {
	uint32_t node;
	uint8_t state;
	bool on_cpu;
	uint64_t ns, samples;
};

/* A lane of the page: one of the picture's, or all remaining ones of a process and kind. */
struct html_lane {
	const struct view *view; /* NULL: several lanes */
	enum lane_kind kind;
	uint32_t target_no;
	bool shown;   /* selected by --lanes */
	bool counted; /* together, all such lanes make up the session's time */
	bool ticks;   /* from a report that GHC wrote: it has only rows */
	uint64_t lanes;
	uint64_t wall_ns, cpu_ns; /* cpu_ns: UINT64_MAX: not known */
	uint64_t states_ns[LANE_STATES];
	struct html_row *rows;
	size_t n_rows, cap;
};

/* The appearance shared by many slices. */
struct html_look;

struct html {
	FILE *out;
	const struct picture *pic;
	const struct export_opts *opts;
	struct views views;
	uint64_t zero_ns; /* the origin of all times on the page: the session's start */
	struct html_lane *lanes;
	size_t n_lanes, cap_lanes;
	uint32_t *lane_of_view; /* maps a view to its lane; UINT32_MAX: none */
	size_t bins;		/* the number of bins in a lane's drawing */
	uint32_t *map;		/* maps a picture's frame to its number */
	struct html_stacks stacks;
	uint64_t least_ns; /* lighter frames are not in the stacks; at most 1: all are */
	struct html_look *looks;
	uint32_t n_looks;
};

/* A time on the page; times before the session are negative. */
static inline int64_t html__time(const struct html *h, uint64_t ns)
{
	return (int64_t)(ns - h->zero_ns);
}

/* Writes a comma before all but the first number of a list. */
static inline void html__comma(FILE *out, bool *any)
{
	if (*any)
		fputc_unlocked(',', out);
	*any = true;
}
void html__put_int(FILE *out, int64_t n);
/* Writes null for UINT64_MAX. */
void html__put_known(FILE *out, uint64_t n);

/* Makes the list of lanes, with their sums. -ENOMEM, -E2BIG. */
int html_lanes__collect(struct html *h);
void html_lanes__free(struct html *h);
/* Builds the accounts for the current nodes. Returns the number of rows, or an error. */
ssize_t html_lanes__account(struct html *h);
/* Writes "bin_ns":N,"lanes":[…]: the lanes, and how each looks as a whole. */
void html_lanes__put(const struct html *h);
/* Writes "rows":[[node, 2 * state + on_cpu, ns, samples, …]], a list for each lane. */
void html_lanes__put_rows(const struct html *h);

/* Chooses the grain at which the slices fit. */
int html_slices__choose(struct html *h);
/* The weights of the stacks in accounts and slices, for html_stacks__build; the caller frees. */
int html_slices__weigh(const struct html *h, uint64_t **ret_weights, uint32_t *ret_n);
/* Numbers the looks of all slices; may make the grain coarser. */
int html_slices__number(struct html *h);
void html_slices__free(struct html *h);
/* Writes "looks":[state, exact, node, capability, OS thread, Haskell thread, …]; look 0 is a
 * gap. */
void html_slices__put_looks(const struct html *h);
/* Writes the slices of each lane that has any, in elements of [start, length, look, samples,
 * length, …]. */
void html_slices__put(const struct html *h);

/* Writes "gcs":…,"marks":…,"flows":…,"curves":… of a process, one of `n`. */
void html__put_events(const struct html *h, const struct pic_target *target, size_t n);
/*
 * Writes "allocated":[[node, bytes, samples, …]], "spans":[{"whose":[capability, OS thread, Haskell
 * thread, …], "list":[end since the previous one, length, index of whose, node, bytes, samples,
 * …]}], by process. -ENOMEM.
 */
int html__put_allocated(const struct html *h);
/* Writes "findings":[…]. */
void html__put_findings(const struct html *h, const struct pic_target *target);
/* Writes "targets":[…]: the processes, with their findings, events, tables, and what is missing. */
void html__put_targets(const struct html *h);

#endif

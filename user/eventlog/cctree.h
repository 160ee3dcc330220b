/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cctree: cost centres and the tree of their stacks, from a log or from GHC's own reports. Part of
 * the room's public interface; include eventlog.h.
 */
#ifndef SAFESCOPED_EVENTLOG_CCTREE_H
#define SAFESCOPED_EVENTLOG_CCTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The RTS's own centres are recognised by label and module (rts/Profiling.c). */
enum cc_kind {
	CCK_PROGRAM,
	CCK_CAF, /* all of a module's CAFs */
	CCK_MAIN,
	CCK_IDLE,
	CCK_GC,
	CCK_SYSTEM,
	CCK_OVERHEAD,
	CCK_DONT_CARE,
	CCK_PINNED,
};

const char *cc_kind__name(enum cc_kind kind); /* "program", "caf", "idle", … */

struct cost_centre {
	uint32_t id; /* GHC's */
	bool is_caf, known;
	uint8_t kind;
	const char *label, *module, *srcloc;
};

#define CC_NO_NODE UINT32_MAX
#define CC_ROOT	   0 /* node of MAIN */

struct cc_node {
	uint32_t cc;			    /* index for cctree__cc */
	uint32_t parent;		    /* CC_NO_NODE for the root */
	uint32_t first_child, next_sibling; /* CC_NO_NODE at the end */
	uint32_t recent_child;		    /* private to the tree; 0: none */
	uint64_t ticks;
	uint64_t inherited_ticks; /* by cctree__inherit, as GHC adds up: without ignored centres */
	/* As printed in a .prof, if there are no ticks: tenths of a percent */
	uint16_t permille_time, permille_inherited_time;
};

struct cctree_totals {
	uint64_t ticks; /* without ignored centres: GHC's 100 % */
	uint64_t ignored_ticks;
	uint64_t kind_ticks[CCK_PINNED + 1];
};

struct cctree;

int cctree__new(struct cctree **ret_tree);
void cctree__free(struct cctree *tree);

/* Defines a cost centre; an id may be defined again. -E2BIG beyond the limits. */
int cctree__define(struct cctree *tree, uint32_t id, const char *label, size_t label_len,
		   const char *module, size_t module_len, const char *srcloc, size_t srcloc_len,
		   bool is_caf);
/* Index of the centre with this id; an id without a definition is named "cost centre ID". */
int cctree__cc_by_id(struct cctree *tree, uint32_t id, uint32_t *ret_cc);
/* Finds a centre by its names, or makes one without an id. */
int cctree__cc_by_name(struct cctree *tree, const char *label, const char *module,
		       const char *srcloc, uint32_t *ret_cc);
/*
 * Finds an existing centre, with any source location if `srcloc` is NULL. CC_NO_NODE if there is
 * none.
 */
uint32_t cctree__find_cc(struct cctree *tree, const char *label, const char *module,
			 const char *srcloc);
/* Finds or makes the child of `parent` for a centre. */
int cctree__child(struct cctree *tree, uint32_t parent, uint32_t cc, uint32_t *ret_node);

size_t cctree__n_ccs(const struct cctree *tree);
size_t cctree__n_nodes(const struct cctree *tree);
/* Whether a log, or a report, has defined it. */
bool cctree__known(const struct cctree *tree, uint32_t cc);
struct cost_centre cctree__cc(const struct cctree *tree, uint32_t cc);
/* The pointer is valid until the next node is made. */
struct cc_node *cctree__node(struct cctree *tree, uint32_t node);
enum cc_kind cctree__kind(const struct cctree *tree, uint32_t node);

/*
 * Fills in inherited_ticks and the totals. Percentages of GHC's table are ticks * 100 /
 * totals.ticks, printed with one digit.
 */
int cctree__inherit(struct cctree *tree, struct cctree_totals *ret_totals);

/*
 * Makes a tree without the centres that match a glob of `hide` and, if `only` is not empty, without
 * those that match none of `only`. Globs are matched against module, label, and Module.label, as in
 * fnmatch(3). Ticks of removed centres go to the parent. MAIN, CAFs and the RTS's own centres stay.
 * *ret_map (the caller frees) has the new node for each old one.
 */
int cctree__filter(struct cctree *tree, const char *const *hide, size_t n_hide,
		   const char *const *only, size_t n_only, struct cctree **ret_tree,
		   uint32_t **ret_map);

/* ── GHC's own reports ───────────────────────────────────────────────────────────────────── */

struct prof_info {
	char program[4096];
	uint64_t total_ticks, tick_interval_us;
	uint32_t capabilities;
	bool has_ticks;	  /* nodes have ticks (-P, -pj); otherwise only permille_time */
	uint64_t skipped; /* lines that made no sense */
};

/* The first byte decides: `{` is -pj, else it is the text of -p or -P. -EBADMSG: neither. */
int prof__parse(const char *data, size_t len, struct cctree **ret_tree, struct prof_info *ret_info);
struct el_input; /* eventlog.h */
int prof__read(struct el_input *in, struct cctree **ret_tree, struct prof_info *ret_info);

#endif

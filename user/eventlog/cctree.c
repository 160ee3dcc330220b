/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cctree: cost centres and the tree of their stacks. Nodes are made after their parents, so a walk
 * from the last node to the first meets children before parents.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cctree.h"
#include "pack_priv.h"
#include "u64map_priv.h"

#define CCS_MAX	  (1u << 16)
#define NODES_MAX (1u << 17)
#define TEXT_MAX  (24u << 20) /* bytes of all names, with their index */

struct cc_entry {
	uint32_t id, label, module, srcloc; /* label, module, srcloc: strtab */
	uint32_t next_same;		    /* next centre with the same label and module */
	bool has_id, is_caf, known;
	uint8_t kind;
};

/* Ids seen recently: GHC numbers centres from 1, so those of most programs all fit. */
#define RECENT_IDS 4096
struct recent_id {
	uint32_t id, full; /* full: index + 1; 0: none */
};

struct cctree {
	struct strtab *strings;
	struct cc_entry *ccs;
	size_t n_ccs, ccs_cap;
	struct cc_node *nodes;
	size_t n_nodes, nodes_cap;
	struct u64map by_id, by_name, children;
	struct recent_id recent[RECENT_IDS];
};

/* Excluded from GHC's totals under -p, -P and -pj (ignoreCC in rts/ProfilerReport.c). */
static bool is_ignored(enum cc_kind kind)
{
	return kind == CCK_IDLE || kind == CCK_GC || kind == CCK_SYSTEM || kind == CCK_OVERHEAD ||
	       kind == CCK_DONT_CARE;
}

const char *cc_kind__name(enum cc_kind kind)
{
	static const char *const names[] = {
		[CCK_PROGRAM] = "program",
		[CCK_CAF] = "caf",
		[CCK_MAIN] = "main",
		[CCK_IDLE] = "idle",
		[CCK_GC] = "gc",
		[CCK_SYSTEM] = "system",
		[CCK_OVERHEAD] = "overhead",
		[CCK_DONT_CARE] = "dont_care",
		[CCK_PINNED] = "pinned",
	};

	return names[kind];
}

static enum cc_kind kind_of(const char *label, const char *module, const char *srcloc, bool caf)
{
	static const struct {
		const char *label, *module;
		enum cc_kind kind;
	} builtin[] = {
		{"MAIN", "MAIN", CCK_MAIN},
		{"IDLE", "IDLE", CCK_IDLE},
		{"GC", "GC", CCK_GC},
		{"SYSTEM", "SYSTEM", CCK_SYSTEM},
		{"PINNED", "SYSTEM", CCK_PINNED},
		{"OVERHEAD_of", "PROFILING", CCK_OVERHEAD},
		{"DONT_CARE", "MAIN", CCK_DONT_CARE},
	};

	if (!strcmp(srcloc, "<built-in>"))
		for (size_t i = 0; i < ARRAY_SIZE(builtin); i++)
			if (!strcmp(label, builtin[i].label) && !strcmp(module, builtin[i].module))
				return builtin[i].kind;
	if (caf || (!strcmp(label, "CAF") && !strcmp(srcloc, "<entire-module>")))
		return CCK_CAF;
	return CCK_PROGRAM;
}

static int node_new(struct cctree *tree, uint32_t parent, uint32_t cc, uint32_t *ret_node)
{
	struct cc_node *node;
	int err;

	err = ARRAY_RESERVE(tree->nodes, tree->nodes_cap, tree->n_nodes + 1, NODES_MAX);
	if (err)
		return err;
	node = &tree->nodes[tree->n_nodes];
	*node = (struct cc_node){
		.cc = cc, .parent = parent, .first_child = CC_NO_NODE, .next_sibling = CC_NO_NODE};
	if (parent != CC_NO_NODE) {
		err = u64map__put(&tree->children, (uint64_t)parent << 32 | cc,
				  (uint32_t)tree->n_nodes);
		if (err)
			return err;
		node->next_sibling = tree->nodes[parent].first_child;
		tree->nodes[parent].first_child = (uint32_t)tree->n_nodes;
	}
	*ret_node = (uint32_t)tree->n_nodes++;
	return 0;
}

static int add_string(struct cctree *tree, const char *s, size_t len, uint32_t *ret_id)
{
	/* A NUL would make two names that are shown alike. */
	return strtab__add(tree->strings, s, strnlen(s, MIN(len, (size_t)STRTAB_MAX_STRING - 1)),
			   ret_id);
}

static int cc_new(struct cctree *tree, struct cc_entry entry, uint32_t *ret_cc)
{
	uint64_t key = (uint64_t)entry.label << 32 | entry.module;
	int err;

	err = ARRAY_RESERVE(tree->ccs, tree->ccs_cap, tree->n_ccs + 1, CCS_MAX);
	if (err)
		return err;
	entry.next_same = u64map__get(&tree->by_name, key);
	entry.kind = (uint8_t)kind_of(strtab__get(tree->strings, entry.label),
				      strtab__get(tree->strings, entry.module),
				      strtab__get(tree->strings, entry.srcloc), entry.is_caf);
	err = u64map__put(&tree->by_name, key, (uint32_t)tree->n_ccs);
	if (!err && entry.has_id)
		err = u64map__put(&tree->by_id, entry.id, (uint32_t)tree->n_ccs);
	if (err)
		return err;
	tree->ccs[tree->n_ccs] = entry;
	*ret_cc = (uint32_t)tree->n_ccs++;
	return 0;
}

/* Makes a tree without any centre or node. */
static int tree_new(struct cctree **ret_tree)
{
	struct cctree *tree = calloc(1, sizeof(*tree));
	int err = tree ? strtab__new(&tree->strings) : -ENOMEM;

	if (err) {
		free(tree);
		return err;
	}
	strtab__set_max(tree->strings, TEXT_MAX);
	*ret_tree = tree;
	return 0;
}

int cctree__new(struct cctree **ret_tree)
{
	struct cctree *tree;
	uint32_t cc, node;
	int err = tree_new(&tree);

	if (err)
		return err;
	err = cctree__cc_by_name(tree, "MAIN", "MAIN", "<built-in>", &cc);
	if (!err)
		err = node_new(tree, CC_NO_NODE, cc, &node);
	if (err) {
		cctree__free(tree);
		return err;
	}
	*ret_tree = tree;
	return 0;
}

void cctree__free(struct cctree *tree)
{
	if (!tree)
		return;
	strtab__free(tree->strings);
	free(tree->ccs);
	free(tree->nodes);
	u64map__free(&tree->by_id);
	u64map__free(&tree->by_name);
	u64map__free(&tree->children);
	free(tree);
}

int cctree__define(struct cctree *tree, uint32_t id, const char *label, size_t label_len,
		   const char *module, size_t module_len, const char *srcloc, size_t srcloc_len,
		   bool is_caf)
{
	struct cc_entry e = {.id = id, .has_id = true, .is_caf = is_caf, .known = true};
	uint32_t at = u64map__get(&tree->by_id, id), cc;
	int err;

	err = add_string(tree, label, label_len, &e.label);
	if (!err)
		err = add_string(tree, module, module_len, &e.module);
	if (!err)
		err = add_string(tree, srcloc, srcloc_len, &e.srcloc);
	if (err)
		return err;
	/* The root's centre exists before the log has its id. */
	if (at == U64MAP_NONE) {
		at = u64map__get(&tree->by_name, (uint64_t)e.label << 32 | e.module);
		while (at != U64MAP_NONE &&
		       (tree->ccs[at].has_id || tree->ccs[at].srcloc != e.srcloc))
			at = tree->ccs[at].next_same;
	}
	if (at == U64MAP_NONE)
		return cc_new(tree, e, &cc);
	/* Defined again (another process in one log, damage), or used before it was defined. */
	e.next_same = tree->ccs[at].next_same;
	e.kind = (uint8_t)kind_of(strtab__get(tree->strings, e.label),
				  strtab__get(tree->strings, e.module),
				  strtab__get(tree->strings, e.srcloc), e.is_caf);
	err = u64map__put(&tree->by_id, id, at);
	if (err)
		return err;
	tree->recent[id % RECENT_IDS] = (struct recent_id){0, 0};
	if (tree->ccs[at].label != e.label || tree->ccs[at].module != e.module) {
		/* It stays in the list of its old name: lookups compare the whole name. */
		uint32_t first = u64map__get(&tree->by_name, (uint64_t)e.label << 32 | e.module);

		if (first == U64MAP_NONE)
			err = u64map__put(&tree->by_name, (uint64_t)e.label << 32 | e.module, at);
		if (err)
			return err;
	}
	tree->ccs[at] = e;
	return 0;
}

int cctree__cc_by_id(struct cctree *tree, uint32_t id, uint32_t *ret_cc)
{
	struct cc_entry e = {.id = id, .has_id = true};
	struct recent_id *recent = &tree->recent[id % RECENT_IDS];
	uint32_t at;
	char name[40];
	int err;

	if (recent->id == id && recent->full) {
		*ret_cc = recent->full - 1;
		return 0;
	}
	at = u64map__get(&tree->by_id, id);
	if (at != U64MAP_NONE) {
		*recent = (struct recent_id){id, at + 1};
		*ret_cc = at;
		return 0;
	}
	snprintf(name, sizeof(name), "cost centre %u", id);
	err = add_string(tree, name, strlen(name), &e.label);
	if (!err)
		err = add_string(tree, "", 0, &e.module);
	if (err)
		return err;
	e.srcloc = e.module;
	return cc_new(tree, e, ret_cc);
}

/* Fills in the names of *e, and finds the centre that has them; U64MAP_NONE if there is none. */
static int find_names(struct cctree *tree, const char *label, const char *module,
		      const char *srcloc, struct cc_entry *e, uint32_t *ret_at)
{
	uint32_t at;
	int err;

	err = add_string(tree, label, strlen(label), &e->label);
	if (!err)
		err = add_string(tree, module, strlen(module), &e->module);
	if (!err && srcloc)
		err = add_string(tree, srcloc, strlen(srcloc), &e->srcloc);
	if (err)
		return err;
	at = u64map__get(&tree->by_name, (uint64_t)e->label << 32 | e->module);
	for (; at != U64MAP_NONE; at = tree->ccs[at].next_same)
		if (tree->ccs[at].label == e->label && tree->ccs[at].module == e->module &&
		    (!srcloc || tree->ccs[at].srcloc == e->srcloc))
			break;
	*ret_at = at;
	return 0;
}

uint32_t cctree__find_cc(struct cctree *tree, const char *label, const char *module,
			 const char *srcloc)
{
	struct cc_entry e = {.known = true};
	uint32_t at;

	return find_names(tree, label, module, srcloc, &e, &at) || at == U64MAP_NONE ? CC_NO_NODE
										     : at;
}

int cctree__cc_by_name(struct cctree *tree, const char *label, const char *module,
		       const char *srcloc, uint32_t *ret_cc)
{
	struct cc_entry e = {.known = true};
	uint32_t at;
	int err = find_names(tree, label, module, srcloc, &e, &at);

	if (err)
		return err;
	if (at != U64MAP_NONE) {
		*ret_cc = at;
		return 0;
	}
	return cc_new(tree, e, ret_cc);
}

int cctree__child(struct cctree *tree, uint32_t parent, uint32_t cc, uint32_t *ret_node)
{
	uint32_t at;

	/* Usually the child that was requested last. */
	if (parent < tree->n_nodes) {
		at = tree->nodes[parent].recent_child;
		if (at && tree->nodes[at].cc == cc) {
			*ret_node = at;
			return 0;
		}
	}
	at = u64map__get(&tree->children, (uint64_t)parent << 32 | cc);
	if (at != U64MAP_NONE) {
		tree->nodes[parent].recent_child = at;
		*ret_node = at;
		return 0;
	}
	if (parent >= tree->n_nodes || cc >= tree->n_ccs)
		return -EINVAL;
	return node_new(tree, parent, cc, ret_node);
}

bool cctree__known(const struct cctree *tree, uint32_t cc)
{
	return tree->ccs[cc].known;
}

size_t cctree__n_ccs(const struct cctree *tree)
{
	return tree->n_ccs;
}

size_t cctree__n_nodes(const struct cctree *tree)
{
	return tree->n_nodes;
}

struct cost_centre cctree__cc(const struct cctree *tree, uint32_t cc)
{
	const struct cc_entry *e = &tree->ccs[cc];

	return (struct cost_centre){.id = e->id,
				    .is_caf = e->is_caf,
				    .known = e->known,
				    .kind = e->kind,
				    .label = strtab__get(tree->strings, e->label),
				    .module = strtab__get(tree->strings, e->module),
				    .srcloc = strtab__get(tree->strings, e->srcloc)};
}

struct cc_node *cctree__node(struct cctree *tree, uint32_t node)
{
	return &tree->nodes[node];
}

enum cc_kind cctree__kind(const struct cctree *tree, uint32_t node)
{
	return tree->ccs[tree->nodes[node].cc].kind;
}

/* GHC's ignoreCCS concerns stacks that consist only of an ignored centre. */
static bool node_ignored(const struct cctree *tree, uint32_t node)
{
	return tree->nodes[node].parent == CC_ROOT && is_ignored(cctree__kind(tree, node));
}

int cctree__inherit(struct cctree *tree, struct cctree_totals *ret_totals)
{
	struct cctree_totals t = {0};

	for (size_t i = 0; i < tree->n_nodes; i++) {
		struct cc_node *n = &tree->nodes[i];

		n->inherited_ticks = n->ticks;
		t.kind_ticks[cctree__kind(tree, (uint32_t)i)] += n->ticks;
		*(node_ignored(tree, (uint32_t)i) ? &t.ignored_ticks : &t.ticks) += n->ticks;
	}
	for (size_t i = tree->n_nodes; i-- > 1;) {
		const struct cc_node *n = &tree->nodes[i];

		if (!node_ignored(tree, (uint32_t)i))
			tree->nodes[n->parent].inherited_ticks += n->inherited_ticks;
	}
	*ret_totals = t;
	return 0;
}

static bool globs_match(const char *const *globs, size_t n, const struct cost_centre *cc)
{
	char full[4096];

	snprintf(full, sizeof(full), "%s.%s", cc->module, cc->label);
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(globs[i], cc->module, 0) || !fnmatch(globs[i], cc->label, 0) ||
		    !fnmatch(globs[i], full, 0))
			return true;
	return false;
}

static bool cc_kept(const struct cost_centre *cc, const char *const *hide, size_t n_hide,
		    const char *const *only, size_t n_only)
{
	if (cc->kind != CCK_PROGRAM)
		return true;
	return !globs_match(hide, n_hide, cc) && (!n_only || globs_match(only, n_only, cc));
}

static int filter_into(struct cctree *tree, struct cctree *out, const uint8_t *kept, uint32_t *map)
{
	uint32_t cc, node;
	int err;

	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct cc_node *n = &tree->nodes[i];
		if (i == CC_ROOT) {
			map[i] = CC_ROOT;
		} else if (!kept[n->cc]) {
			map[i] = map[n->parent];
		} else {
			struct cost_centre c = cctree__cc(tree, n->cc);

			err = cctree__cc_by_name(out, c.label, c.module, c.srcloc, &cc);
			if (!err)
				err = cctree__child(out, map[n->parent], cc, &node);
			if (err)
				return err;
			out->ccs[cc].id = c.id;
			out->ccs[cc].has_id = tree->ccs[n->cc].has_id;
			out->ccs[cc].is_caf = c.is_caf;
			out->ccs[cc].known = c.known;
			out->ccs[cc].kind = c.kind;
			map[i] = node;
		}
		out->nodes[map[i]].ticks += n->ticks;
	}
	return 0;
}

int cctree__filter(struct cctree *tree, const char *const *hide, size_t n_hide,
		   const char *const *only, size_t n_only, struct cctree **ret_tree,
		   uint32_t **ret_map)
{
	struct cctree *out = NULL;
	uint32_t *map = calloc(tree->n_nodes, sizeof(*map));
	uint8_t *kept = calloc(tree->n_ccs, 1);
	int err = -ENOMEM;

	if (!map || !kept)
		goto out;
	for (size_t i = 0; i < tree->n_ccs; i++) {
		struct cost_centre c = cctree__cc(tree, (uint32_t)i);

		kept[i] = cc_kept(&c, hide, n_hide, only, n_only);
	}
	err = cctree__new(&out);
	if (!err)
		err = filter_into(tree, out, kept, map);
	if (err)
		goto out;
	*ret_tree = out;
	*ret_map = map;
	out = NULL;
	map = NULL;
out:
	cctree__free(out);
	free(map);
	free(kept);
	return err;
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

struct packed_cc {
	uint32_t id;
	uint8_t has_id, is_caf, known;
};

struct packed_node {
	uint64_t ticks;
	uint32_t cc, parent;
	uint16_t permille_time, permille_inherited_time;
};

void cctree__pack(const struct cctree *tree, struct pack *p)
{
	PACK(p, tree->n_ccs);
	for (size_t i = 0; i < tree->n_ccs; i++) {
		const struct cc_entry *e = &tree->ccs[i];
		const struct packed_cc cc = {
			.id = e->id, .has_id = e->has_id, .is_caf = e->is_caf, .known = e->known};

		PACK(p, cc);
		pack__text(p, strtab__get(tree->strings, e->label));
		pack__text(p, strtab__get(tree->strings, e->module));
		pack__text(p, strtab__get(tree->strings, e->srcloc));
	}
	PACK(p, tree->n_nodes);
	for (size_t i = 0; i < tree->n_nodes; i++) {
		const struct cc_node *n = &tree->nodes[i];
		const struct packed_node node = {.ticks = n->ticks,
						 .cc = n->cc,
						 .parent = n->parent,
						 .permille_time = n->permille_time,
						 .permille_inherited_time =
							 n->permille_inherited_time};

		PACK(p, node);
	}
}

static int unpack_cc(struct cctree *tree, struct unpack *u)
{
	struct cc_entry e = {0};
	uint32_t *const names[] = {&e.label, &e.module, &e.srcloc};
	struct packed_cc cc;
	uint32_t at;
	int err = 0;

	UNPACK(u, cc);
	for (size_t i = 0; i < ARRAY_SIZE(names) && !err; i++) {
		size_t len;
		const char *text = unpack__text(u, &len);

		err = add_string(tree, text, len, names[i]);
	}
	if (u->bad)
		return -EBADMSG;
	e.id = cc.id;
	e.has_id = cc.has_id;
	e.is_caf = cc.is_caf;
	e.known = cc.known;
	return err ? err : cc_new(tree, e, &at);
}

/* The first node is the root; any other comes after its parent. */
static int unpack_node(struct cctree *tree, struct unpack *u)
{
	struct packed_node packed;
	uint32_t at;
	int err;

	UNPACK(u, packed);
	if (!unpack__require(u, packed.cc < tree->n_ccs &&
					(tree->n_nodes ? packed.parent < tree->n_nodes
						       : packed.parent == CC_NO_NODE)))
		return -EBADMSG;
	err = node_new(tree, packed.parent, packed.cc, &at);
	if (err)
		return err;
	tree->nodes[at].ticks = packed.ticks;
	tree->nodes[at].permille_time = packed.permille_time;
	tree->nodes[at].permille_inherited_time = packed.permille_inherited_time;
	return 0;
}

int cctree__unpack(struct unpack *u, struct cctree **ret_tree)
{
	struct cctree *tree;
	size_t n;
	int err = tree_new(&tree);

	if (err)
		return err;
	UNPACK(u, n);
	for (size_t i = 0; i < n && !err; i++)
		err = unpack_cc(tree, u);
	if (!err)
		UNPACK(u, n);
	for (size_t i = 0; i < n && !err; i++)
		err = unpack_node(tree, u);
	if (!unpack__require(u, tree->n_nodes))
		err = -EBADMSG;
	if (err) {
		cctree__free(tree);
		return err == -E2BIG ? -EBADMSG : err;
	}
	*ret_tree = tree;
	return 0;
}

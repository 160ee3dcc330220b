/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ccs: cost-centre stacks. Records name them by address; what an address means is read in batches
 * while the process lives (a stack, once made, never changes), and is needed only when stretches
 * get their stacks.
 */
#include <stdio.h>

#include "private.h"

/* By the records' own clock: a batch costs a child process. */
#define RESOLVE_EACH_NS 20000000ULL
#define MAX_BATCH	4096
#define MAX_TRIES	3

static struct ccs *at(const struct target_state *tg, uint32_t id)
{
	return id && id <= tg->ccs.n ? tg->ccs.v[id - 1] : NULL;
}

static int add(struct target_state *tg, uint64_t addr, struct ccs **ret_ccs)
{
	struct ccs_tree *tree = &tg->ccs;
	struct ccs *ccs;
	int err;

	HASH_FIND(hh, tree->hash, &addr, sizeof(addr), ccs);
	if (ccs) {
		*ret_ccs = ccs;
		return 0;
	}
	err = TL_RESERVE(tree->v, tree->cap, tree->n + 1, TL_MAX_CCS);
	if (err)
		return err;
	ccs = calloc(1, sizeof(*ccs));
	if (!ccs)
		return -ENOMEM;
	ccs->addr = addr;
	HASH_ADD(hh, tree->hash, addr, sizeof(ccs->addr), ccs);
	if (!ccs->hh.tbl) {
		free(ccs);
		return -ENOMEM;
	}
	tree->v[tree->n++] = ccs;
	ccs->id = (uint32_t)tree->n;
	*ret_ccs = ccs;
	return 0;
}

int ccs__get(struct target_state *tg, uint64_t addr, uint32_t *ret_id)
{
	struct ccs *ccs;
	size_t n = tg->ccs.n;
	int err;

	*ret_id = 0;
	if (!addr || !tg->pub.profiled || !tg->namer.ccs)
		return 0;
	err = add(tg, addr, &ccs);
	if (err)
		return err == -E2BIG ? 0 : err;
	tg->ccs.n_pending += tg->ccs.n > n;
	*ret_id = ccs->id;
	return 0;
}

void ccs__free(struct ccs_tree *tree)
{
	struct cc *cc, *next;

	HASH_CLEAR(hh, tree->hash);
	for (size_t i = 0; i < tree->n; i++)
		free(tree->v[i]);
	free(tree->v);
	HASH_ITER (hh, tree->centres, cc, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(tree->centres, cc);
		free(cc);
	}
	memset(tree, 0, sizeof(*tree));
}

/* ── what they mean ──────────────────────────────────────────────────────────────────────── */

/* As GHC's own reports put it, "Main.fib"; its built-in centres are their own modules. */
static int add_frame(struct timeline *tl, struct cc *cc)
{
	struct tl_frame frame = {.module = cc->key.module,
				 .package = "",
				 .file = cc->key.module,
				 .src = cc->key.src_loc,
				 .kind = TF_HASKELL};
	struct buf buf;
	int err;

	buf__init(&buf, STRTAB_MAX_STRING);
	err = !cc->key.module[0] || !strcmp(cc->key.module, cc->key.label)
		      ? buf__adds(&buf, cc->key.label)
		      : buf__addf(&buf, "%s.%s", cc->key.module, cc->key.label);
	if (!err) {
		frame.name = buf.data;
		err = frames__add(&tl->frames, &frame, &cc->frame);
	}
	buf__free(&buf);
	return err;
}

static int centre_of(struct timeline *tl, struct target_state *tg, const struct target_ccs *found,
		     struct cc **ret_cc)
{
	struct cc_key key = {tl__string(tl, found->label), tl__string(tl, found->module),
			     tl__string(tl, found->src_loc)};
	struct cc *cc;
	int err;

	HASH_FIND(hh, tg->ccs.centres, &key, sizeof(key), cc);
	if (!cc) {
		cc = calloc(1, sizeof(*cc));
		if (!cc)
			return -ENOMEM;
		cc->key = key;
		err = add_frame(tl, cc);
		if (err) {
			free(cc);
			return err;
		}
		HASH_ADD(hh, tg->ccs.centres, key, sizeof(cc->key), cc);
		if (!cc->hh.tbl) {
			free(cc);
			return -ENOMEM;
		}
	}
	*ret_cc = cc;
	return 0;
}

/* One that was read, and what is above it. -ENOENT: it was not read. */
static int learn(struct timeline *tl, struct target_state *tg, struct ccs *ccs)
{
	struct target_ccs found;
	struct ccs *parent;
	int err;

	while (!ccs->centre) {
		err = namer__ccs(tl, tg, ccs->addr, &found);
		if (err)
			return err;
		parent = NULL;
		err = centre_of(tl, tg, &found, &ccs->centre);
		if (!err && found.parent)
			err = add(tg, found.parent, &parent);
		if (err)
			return err;
		if (!parent)
			break;
		ccs->parent = parent->id;
		ccs = parent;
	}
	return 0;
}

int ccs__resolve(struct timeline *tl, struct target_state *tg)
{
	struct ccs_tree *tree = &tg->ccs;
	uint64_t *addrs;
	size_t n = 0, i;
	int err = 0;

	if (!tree->n_pending)
		return 0;
	addrs = malloc(MAX_BATCH * sizeof(*addrs));
	if (!addrs)
		return -ENOMEM;
	/* most are there since the whole tree was read */
	for (i = 0; !err && i < tree->n; i++)
		if (!tree->v[i]->centre) {
			err = learn(tl, tg, tree->v[i]);
			if (err == -ENOENT && tree->v[i]->tries < MAX_TRIES && n < MAX_BATCH) {
				tree->v[i]->tries++;
				addrs[n++] = tree->v[i]->addr;
			}
			err = err == -ENOENT ? 0 : err;
		}
	if (!err && n && tg->namer.read_ccs)
		tg->namer.read_ccs(tg->namer.ctx, addrs, n);
	tree->n_pending = 0;
	for (i = 0; !err && n && i < tree->n; i++)
		if (!tree->v[i]->centre) {
			err = learn(tl, tg, tree->v[i]);
			tree->n_pending += err == -ENOENT && tree->v[i]->tries < MAX_TRIES;
			err = err == -ENOENT ? 0 : err;
		}
	free(addrs);
	return err;
}

int ccs__resolve_at(struct timeline *tl, struct target_state *tg, uint64_t now_ns)
{
	struct ccs_tree *tree = &tg->ccs;

	if (!tree->n_pending ||
	    (now_ns >= tree->resolved_ns && now_ns - tree->resolved_ns < RESOLVE_EACH_NS))
		return 0;
	tree->resolved_ns = now_ns;
	return ccs__resolve(tl, tg);
}

uint32_t ccs__path(const struct target_state *tg, uint32_t id, uint32_t *ret_frames, uint32_t max)
{
	const struct ccs *ccs = at(tg, id);
	uint32_t n = 0;

	for (; ccs && n < max; ccs = at(tg, ccs->parent)) {
		if (!ccs->centre)
			return 0;
		ret_frames[n++] = ccs->centre->frame;
	}
	return n;
}

/* ── counting ────────────────────────────────────────────────────────────────────────────── */

void ccs__count_tick(struct target_state *tg, uint32_t id)
{
	struct ccs *ccs = at(tg, id);

	if (ccs) {
		ccs->ticks++;
		tg->ccs.ticked = true;
	}
}

int ccs__note_tick(struct target_state *tg, uint64_t ns, uint16_t cap, uint32_t id)
{
	int err;

	if (!tg->pub.profiled)
		return 0;
	err = TL_RESERVE(tg->tick_notes, tg->tick_notes_cap, tg->n_tick_notes + 1, TL_MAX_TICKS);
	if (!err)
		tg->tick_notes[tg->n_tick_notes++] = (struct tick_note){ns, id, cap};
	return err == -E2BIG ? 0 : err;
}

const struct cc_key *ccs__centre(const struct target_state *tg, uint32_t id)
{
	const struct ccs *ccs = at(tg, id);

	return ccs && ccs->centre ? &ccs->centre->key : NULL;
}

void ccs__count_sample(struct target_state *tg, uint32_t id)
{
	struct ccs *ccs = at(tg, id);

	if (ccs)
		ccs->samples++;
}

/* By rts/Profiling.c, CC_DECLARE: the centres that the runtime makes itself. */
static const char *kind_of(const struct cc_key *key)
{
	static const struct {
		const char *label, *kind;
	} built_in[] = {{"MAIN", "main"},
			{"SYSTEM", "system"},
			{"GC", "gc"},
			{"OVERHEAD_of", "overhead"},
			{"IDLE", "idle"},
			{"PINNED", "pinned"},
			{"DONT_CARE", "dont_care"}};

	for (size_t i = 0; i < ARRAY_SIZE(built_in); i++)
		if (!strcmp(key->label, built_in[i].label) && !strcmp(key->src_loc, "<built-in>"))
			return built_in[i].kind;
	return !strcmp(key->label, "CAF") ? "caf" : "program";
}

/* Ticks of the RTS's own timer where they were seen: what GHC's profiler itself counts. */
static uint64_t self_of(const struct target_state *tg, const struct ccs *ccs)
{
	return tg->ccs.ticked ? ccs->ticks : ccs->samples;
}

static bool is_overhead(const struct ccs *ccs)
{
	const struct tl_cost_centre centre = {.kind = kind_of(&ccs->centre->key)};

	return cost_centre__is_overhead(&centre);
}

/* A stack's own ticks go to its centre, and once to each that is around it. */
static void add_up(struct target_state *tg)
{
	for (size_t i = 0; i < tg->ccs.n; i++) {
		const struct ccs *ccs = tg->ccs.v[i], *up;
		uint64_t self = self_of(tg, ccs);

		if (!self || !ccs->centre)
			continue;
		ccs->centre->self += self;
		for (up = ccs; up && up->centre; up = at(tg, up->parent)) {
			up->centre->shown = true;
			/* what is around them did not cause them */
			if (up != ccs && is_overhead(ccs))
				continue;
			if (up->centre->stamp != i + 1)
				up->centre->total += self;
			up->centre->stamp = i + 1;
		}
	}
}

static int by_self(const void *pa, const void *pb)
{
	const struct cc *a = *(struct cc *const *)pa, *b = *(struct cc *const *)pb;
	int diff;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	if (a->total != b->total)
		return a->total < b->total ? 1 : -1;
	diff = strcmp(a->key.module, b->key.module);
	diff = diff ? diff : strcmp(a->key.label, b->key.label);
	return diff ? diff : strcmp(a->key.src_loc, b->key.src_loc);
}

static int fill_centres(struct target_state *tg)
{
	size_t n = HASH_COUNT(tg->ccs.centres), k = 0;
	struct cc **sorted = calloc(n + 1, sizeof(struct cc *)), *cc, *next;

	tg->cost_centres = calloc(n + 1, sizeof(*tg->cost_centres));
	if (!sorted || !tg->cost_centres) {
		free(sorted);
		return -ENOMEM;
	}
	HASH_ITER (hh, tg->ccs.centres, cc, next) {
		/* cppcheck-suppress uninitvar ; set by the loop's head */
		if (cc->shown)
			sorted[k++] = cc;
	}
	qsort(sorted, k, sizeof(struct cc *), by_self);
	for (size_t i = 0; i < k; i++) {
		sorted[i]->index = (uint32_t)i;
		tg->cost_centres[i] = (struct tl_cost_centre){
			.label = sorted[i]->key.label,
			.module = sorted[i]->key.module,
			.src_loc = sorted[i]->key.src_loc,
			.kind = kind_of(&sorted[i]->key),
			.self_ticks = sorted[i]->self,
			.total_ticks = sorted[i]->total,
			.from_samples = !tg->ccs.ticked,
		};
	}
	tg->pub.cost_centres = tg->cost_centres;
	tg->pub.n_cost_centres = k;
	free(sorted);
	return 0;
}

/* The node of a stack, its parents' before it. */
static uint32_t add_node(struct target_state *tg, struct ccs *ccs)
{
	struct ccs *path[TL_MAX_CCS_DEPTH];
	uint32_t n = 0, parent = UINT32_MAX;

	for (; ccs && ccs->centre && n < TL_MAX_CCS_DEPTH; ccs = at(tg, ccs->parent)) {
		if (ccs->node) {
			parent = ccs->node - 1;
			break;
		}
		path[n++] = ccs;
	}
	while (n) {
		ccs = path[--n];
		tg->cc_nodes[tg->pub.n_cc_nodes++] = (struct tl_cc_node){
			.centre = ccs->centre->index,
			.parent = parent,
			.ticks = self_of(tg, ccs),
		};
		ccs->node = (uint32_t)tg->pub.n_cc_nodes;
		parent = ccs->node - 1;
	}
	return parent;
}

static int fill_nodes(struct target_state *tg)
{
	tg->cc_nodes = calloc(tg->ccs.n + 1, sizeof(*tg->cc_nodes));
	if (!tg->cc_nodes)
		return -ENOMEM;
	for (size_t i = 0; i < tg->ccs.n; i++)
		if (self_of(tg, tg->ccs.v[i]) && tg->ccs.v[i]->centre)
			add_node(tg, tg->ccs.v[i]);
	for (size_t i = tg->pub.n_cc_nodes; i-- > 0;) {
		struct tl_cc_node *node = &tg->cc_nodes[i];

		node->inherited_ticks += node->ticks;
		if (node->parent != UINT32_MAX &&
		    !cost_centre__is_overhead(&tg->cost_centres[node->centre]))
			tg->cc_nodes[node->parent].inherited_ticks += node->inherited_ticks;
	}
	tg->pub.cc_nodes = tg->cc_nodes;
	return 0;
}

int ccs__sum(struct target_state *tg)
{
	int err;

	if (!tg->ccs.n)
		return 0;
	add_up(tg);
	err = fill_centres(tg);
	return err ? err : fill_nodes(tg);
}

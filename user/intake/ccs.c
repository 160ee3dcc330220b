/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ccs: cost-centre stacks. Records refer to them by address. The meaning of addresses is read in
 * batches while the process lives (a stack never changes once it is made), and is needed only when
 * slices get their stacks.
 */

#include "intake_priv.h"

/* By the records' clock. Each batch costs a child process. */
#define RESOLVE_EACH_NS 20000000ULL
#define MAX_BATCH	4096
#define MAX_CCS		(1U << 18) /* per target */
#define MAX_TICKS	(1U << 22)
#define MAX_TRIES	3

static struct seen_ccs *at(const struct seen *s, uint32_t id)
{
	return id && id <= s->ccs.n ? s->ccs.v[id - 1] : NULL;
}

static int add(struct seen *s, uint64_t addr, struct seen_ccs **ret_ccs)
{
	struct seen_centres *tree = &s->ccs;
	struct seen_ccs *ccs;
	int err;

	HASH_FIND(hh, tree->hash, &addr, sizeof(addr), ccs);
	if (ccs) {
		*ret_ccs = ccs;
		return 0;
	}
	err = ARRAY_RESERVE(tree->v, tree->cap, tree->n + 1, MAX_CCS);
	if (err)
		return err;
	ccs = calloc(1, sizeof(*ccs));
	if (!ccs)
		return -ENOMEM;
	ccs->addr = addr;
	err = HASH_INSERT(tree->hash, addr, sizeof(ccs->addr), ccs);
	if (err)
		return err;
	tree->v[tree->n++] = ccs;
	ccs->id = (uint32_t)tree->n;
	*ret_ccs = ccs;
	return 0;
}

int ccs__get(struct seen *s, uint64_t addr, uint32_t *ret_id)
{
	struct seen_ccs *ccs;
	size_t n = s->ccs.n;
	int err;

	*ret_id = 0;
	if (!addr || !s->pub->profiled || !s->namer.ccs)
		return 0;
	err = add(s, addr, &ccs);
	if (err)
		return err == -E2BIG ? 0 : err;
	s->ccs.n_pending += s->ccs.n > n;
	*ret_id = ccs->id;
	return 0;
}

void ccs__free(struct seen_centres *centres)
{
	HASH_CLEAR(hh, centres->hash);
	for (size_t i = 0; i < centres->n; i++)
		free(centres->v[i]);
	free(centres->v);
	HASH_FREE(centres->centres);
	memset(centres, 0, sizeof(*centres));
}

const struct seen_ccs *ccs__at(const struct seen *s, uint32_t id)
{
	return at(s, id);
}

/* ── what they mean ──────────────────────────────────────────────────────────────────────── */

/* The name as in GHC's own reports, "Main.fib"; a built-in centre is its own module. */
static int add_frame(struct intake *in, struct seen_cc *cc)
{
	struct pic_frame frame = {.module = cc->key.module,
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
		err = picture__add_frame(in->pic, &frame, &cc->frame);
	}
	buf__free(&buf);
	return err;
}

static int centre_of(struct intake *in, struct seen *s, const struct target_ccs *found,
		     const struct seen_cc **ret_cc)
{
	struct cc_key key = {picture__string(in->pic, found->label),
			     picture__string(in->pic, found->module),
			     picture__string(in->pic, found->src_loc)};
	struct seen_cc *cc;
	int err;

	HASH_FIND(hh, s->ccs.centres, &key, sizeof(key), cc);
	if (!cc) {
		cc = calloc(1, sizeof(*cc));
		if (!cc)
			return -ENOMEM;
		cc->key = key;
		err = add_frame(in, cc);
		if (err) {
			free(cc);
			return err;
		}
		cc->index = HASH_COUNT(s->ccs.centres);
		err = HASH_INSERT(s->ccs.centres, key, sizeof(cc->key), cc);
		if (err)
			return err;
	}
	*ret_cc = cc;
	return 0;
}

static int ask(struct intake *in, struct seen *s, uint64_t addr, struct target_ccs *ret_ccs)
{
	struct intake_input input = {.kind = TI_CCS, .target = s->no, .a = addr};
	int err;

	if (!s->namer.ccs)
		return -ENOENT;
	err = s->namer.ccs(s->namer.ctx, addr, ret_ccs);
	input.n = (uint32_t)(err < 0 ? -err : 0);
	input.ccs = err < 0 ? NULL : ret_ccs;
	tap__report(in, 0, &input);
	return err;
}

/* True if `ccs` is `of` or one of its ancestors. */
static bool is_in(const struct seen *s, const struct seen_ccs *ccs, const struct seen_ccs *of)
{
	while (of && of != ccs)
		of = at(s, of->parent);
	return of != NULL;
}

/* Takes in a stack that was read, and its ancestors. -ENOENT: it was not read, or there is no room
 * for its centre. */
static int learn(struct intake *in, struct seen *s, struct seen_ccs *ccs)
{
	struct target_ccs found;
	struct seen_ccs *parent;
	int err;

	while (!ccs->centre) {
		err = ask(in, s, ccs->addr, &found);
		if (err)
			return err;
		parent = NULL;
		err = centre_of(in, s, &found, &ccs->centre);
		if (err)
			return err == -E2BIG ? -ENOENT : err;
		if (found.parent)
			err = add(s, found.parent, &parent);
		/* if there is no room for the parent, the path begins here; and if what was read is
		 * a cycle, which everything that follows parents relies on not to be there */
		if (err && err != -E2BIG)
			return err;
		if (!parent || is_in(s, ccs, parent))
			break;
		ccs->parent = parent->id;
		ccs = parent;
	}
	return 0;
}

int ccs__resolve(struct intake *in, struct seen *s)
{
	struct seen_centres *tree = &s->ccs;
	uint64_t *addrs;
	size_t n = 0, i;
	int err = 0;

	if (!tree->n_pending)
		return 0;
	addrs = malloc(MAX_BATCH * sizeof(*addrs));
	if (!addrs)
		return -ENOMEM;
	/* most are known, since the whole tree was read */
	for (i = 0; !err && i < tree->n; i++)
		if (!tree->v[i]->centre) {
			err = learn(in, s, tree->v[i]);
			if (err == -ENOENT && tree->v[i]->tries < MAX_TRIES && n < MAX_BATCH) {
				tree->v[i]->tries++;
				addrs[n++] = tree->v[i]->addr;
			}
			err = err == -ENOENT ? 0 : err;
		}
	if (!err && n && s->namer.read_ccs)
		s->namer.read_ccs(s->namer.ctx, addrs, n);
	if (!err)
		tree->n_pending = 0;
	for (i = 0; !err && n && i < tree->n; i++)
		if (!tree->v[i]->centre) {
			err = learn(in, s, tree->v[i]);
			tree->n_pending += err == -ENOENT && tree->v[i]->tries < MAX_TRIES;
			err = err == -ENOENT ? 0 : err;
		}
	free(addrs);
	return err;
}

int ccs__resolve_at(struct intake *in, struct seen *s, uint64_t now_ns)
{
	struct seen_centres *tree = &s->ccs;

	if (!tree->n_pending ||
	    (now_ns >= tree->resolved_ns && now_ns - tree->resolved_ns < RESOLVE_EACH_NS))
		return 0;
	tree->resolved_ns = now_ns;
	return ccs__resolve(in, s);
}

uint32_t ccs__path(const struct seen *s, uint32_t id, uint32_t *ret_frames, uint32_t max)
{
	const struct seen_ccs *ccs = at(s, id);
	uint32_t n = 0;

	for (; ccs && n < max; ccs = at(s, ccs->parent)) {
		if (!ccs->centre)
			return 0;
		ret_frames[n++] = ccs->centre->frame;
	}
	return n;
}

/* rts/Profiling.c and GHC.Types.CostCentre (GHC 8.10 to 9.12): so GHC's own centres are marked.
 * Those that its options add may have another text in brackets, "<no location info>". */
static bool is_ghcs_own(const struct seen_cc *cc)
{
	return !strcmp(cc->key.src_loc, "<built-in>") ||
	       !strcmp(cc->key.src_loc, "<entire-module>");
}

bool ccs__has_own(const struct seen *s, uint32_t id)
{
	for (const struct seen_ccs *ccs = at(s, id); ccs; ccs = at(s, ccs->parent))
		if (ccs->centre && !is_ghcs_own(ccs->centre))
			return true;
	return false;
}

/* ── counting ────────────────────────────────────────────────────────────────────────────── */

void ccs__count_tick(struct seen *s, uint32_t id)
{
	struct seen_ccs *ccs = at(s, id);

	if (ccs) {
		ccs->ticks++;
		s->ccs.ticked = true;
	}
}

int ccs__note_tick(struct seen *s, uint64_t ns, uint16_t cap, uint32_t id)
{
	int err;

	if (!s->pub->profiled)
		return 0;
	err = ARRAY_RESERVE(s->ticks, s->ticks_cap, s->n_ticks + 1, MAX_TICKS);
	if (!err)
		s->ticks[s->n_ticks++] = (struct tick_note){ns, id, cap};
	return err == -E2BIG ? 0 : err;
}

int ccs__count_sample(struct seen *s, const struct wire_rts *rts)
{
	struct seen_ccs *ccs;
	uint32_t id;
	int err;

	if (rts->where != WIRE_WHERE_HASKELL && rts->where != WIRE_WHERE_RTS &&
	    (rts->where != WIRE_WHERE_SAFE_CALL || s->pub->threaded))
		return 0;
	err = ccs__get(s, rts->cccs, &id);
	ccs = err ? NULL : at(s, id);
	if (ccs)
		ccs->samples++;
	return err;
}

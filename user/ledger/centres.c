/* SPDX-License-Identifier: GPL-2.0-or-later */
/* centres: cost centres and the tree of their stacks, with ticks, samples and allocated bytes. */
#include "intake/seen.h"
#include "sums.h"

#define MAX_DEPTH 1024

/* What a cost centre adds up to. */
struct sum {
	const struct seen_cc *cc;
	uint64_t self, total;
	uint64_t self_bytes, total_bytes;
	size_t stamp;
	bool shown;
	uint32_t index; /* in the picture */
};

struct summing {
	struct picture *pic;
	const struct seen *s;
	const struct centres_bytes *bytes;
	struct sum *sums; /* by index of the centre */
	uint32_t *node;	  /* by number of the stack: 1 + its node in the picture */
	struct pic_cc_node *nodes;
	size_t n_nodes;
};

/* The centres that the runtime makes itself (rts/Profiling.c, CC_DECLARE). */
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

/* Ticks of the RTS's own timer, if any were seen: GHC's profiler counts those. */
static uint64_t self_of(const struct seen *s, const struct seen_ccs *ccs)
{
	return s->ccs.ticked ? ccs->ticks : ccs->samples;
}

static bool is_overhead(const struct seen_cc *cc)
{
	const struct pic_cost_centre centre = {.kind = kind_of(&cc->key)};

	return cost_centre__is_overhead(&centre);
}

/* A stack's own ticks and bytes go to its centre, and once to each centre around it. */
static void add_stack(struct summing *m, const struct seen_ccs *ccs, uint64_t self, uint64_t bytes)
{
	struct sum *own = &m->sums[ccs->centre->index];

	own->self += self;
	own->self_bytes += bytes;
	for (const struct seen_ccs *up = ccs; up && up->centre; up = ccs__at(m->s, up->parent)) {
		struct sum *sum = &m->sums[up->centre->index];

		sum->cc = up->centre;
		sum->shown = true;
		/* the surrounding centres did not cause overhead */
		if (up != ccs && is_overhead(ccs->centre))
			continue;
		if (sum->stamp != ccs->id) {
			sum->total += self;
			sum->total_bytes += bytes;
		}
		sum->stamp = ccs->id;
	}
}

static void add_up(struct summing *m)
{
	for (size_t i = 0; i < m->s->ccs.n; i++) {
		const struct seen_ccs *ccs = m->s->ccs.v[i];
		uint64_t self = self_of(m->s, ccs);
		uint64_t bytes = i < m->bytes->n ? m->bytes->v[i] : 0;

		if ((self || bytes) && ccs->centre)
			add_stack(m, ccs, self, bytes);
	}
}

static int by_self(const void *pa, const void *pb)
{
	const struct sum *a = *(struct sum *const *)pa, *b = *(struct sum *const *)pb;
	const struct cc_key *x = &a->cc->key, *y = &b->cc->key;

	return CMP(b->self, a->self)
		       ?: CMP(b->total, a->total)
		       ?: CMP(b->self_bytes, a->self_bytes)
		       ?: strcmp(x->module, y->module)
		       ?: strcmp(x->label, y->label)
		       ?: strcmp(x->src_loc, y->src_loc);
}

static int fill_centres(struct summing *m)
{
	size_t n = HASH_COUNT(m->s->ccs.centres), k = 0;
	struct sum **sorted = calloc(n + 1, sizeof(struct sum *));
	struct pic_cost_centre *v = picture__alloc(m->pic, n, sizeof(*v));

	if (!sorted || !v) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		if (m->sums[i].shown)
			sorted[k++] = &m->sums[i];
	qsort(sorted, k, sizeof(struct sum *), by_self);
	for (size_t i = 0; i < k; i++) {
		const struct cc_key *key = &sorted[i]->cc->key;

		sorted[i]->index = (uint32_t)i;
		v[i] = (struct pic_cost_centre){
			.label = key->label,
			.module = key->module,
			.src_loc = key->src_loc,
			.kind = kind_of(key),
			.self_ticks = sorted[i]->self,
			.total_ticks = sorted[i]->total,
			.self_bytes = sorted[i]->self_bytes,
			.total_bytes = sorted[i]->total_bytes,
			.from_samples = !m->s->ccs.ticked,
		};
	}
	free(sorted);
	m->s->pub->cost_centres = v;
	m->s->pub->n_cost_centres = k;
	return 0;
}

/* Adds the node of a stack, after those of its parents. */
static void add_node(struct summing *m, const struct seen_ccs *ccs)
{
	const struct seen_ccs *path[MAX_DEPTH];
	uint32_t n = 0, parent = UINT32_MAX;

	for (; ccs && ccs->centre && n < MAX_DEPTH; ccs = ccs__at(m->s, ccs->parent)) {
		if (m->node[ccs->id - 1]) {
			parent = m->node[ccs->id - 1] - 1;
			break;
		}
		path[n++] = ccs;
	}
	while (n) {
		ccs = path[--n];
		m->nodes[m->n_nodes++] = (struct pic_cc_node){
			.centre = m->sums[ccs->centre->index].index,
			.parent = parent,
			.ticks = self_of(m->s, ccs),
		};
		m->node[ccs->id - 1] = (uint32_t)m->n_nodes;
		parent = (uint32_t)m->n_nodes - 1;
	}
}

static int fill_nodes(struct summing *m)
{
	const struct pic_cost_centre *centres = m->s->pub->cost_centres;

	m->nodes = picture__alloc(m->pic, m->s->ccs.n, sizeof(*m->nodes));
	if (!m->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < m->s->ccs.n; i++)
		if (self_of(m->s, m->s->ccs.v[i]) && m->s->ccs.v[i]->centre)
			add_node(m, m->s->ccs.v[i]);
	for (size_t i = m->n_nodes; i-- > 0;) {
		struct pic_cc_node *node = &m->nodes[i];

		node->inherited_ticks += node->ticks;
		if (node->parent != UINT32_MAX && !cost_centre__is_overhead(&centres[node->centre]))
			m->nodes[node->parent].inherited_ticks += node->inherited_ticks;
	}
	m->s->pub->cc_nodes = m->nodes;
	m->s->pub->n_cc_nodes = m->n_nodes;
	return 0;
}

int centres__fill(struct picture *pic, const struct seen *seen, const struct centres_bytes *bytes)
{
	struct summing m = {.pic = pic, .s = seen, .bytes = bytes};
	int err = -ENOMEM;

	if (!seen->ccs.n)
		return 0;
	m.sums = calloc(HASH_COUNT(seen->ccs.centres) + 1, sizeof(*m.sums));
	m.node = calloc(seen->ccs.n, sizeof(*m.node));
	if (m.sums && m.node) {
		add_up(&m);
		err = fill_centres(&m);
		if (!err)
			err = fill_nodes(&m);
	}
	free(m.sums);
	free(m.node);
	return err;
}

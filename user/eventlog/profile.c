/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile: cost-centre samples as a tree with ticks, and as one lane per capability.
 *
 * The RTS samples every capability at each tick (rts/Proftimer.c). A tick stands for the time since
 * the previous one, but for no more than two intervals: a machine that was too busy to tick leaves
 * a gap, not a long slice of whatever came next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eventlog.h"
#include "lane_priv.h"
#include "pack_priv.h"

#define LANES_MAX    1024	       /* GHC has 256 capabilities at most */
#define SLICES_MAX   ((size_t)1 << 19) /* of all lanes */
#define INTERVAL_GHC 1000000	       /* 1 ms: the profiled RTS's own, if the log has none */
#define DEPTH_MAX    255	       /* rts/eventlog/EventLog.c writes the depth in one byte */

struct ticks {
	struct el_profile_lane pub;
	struct lane lane;
	uint64_t last; /* time of the last tick */
	bool ticked;
	/* the last stack, root first, and its nodes: most ticks share most of it */
	uint32_t depth;
	uint8_t raw[4 * DEPTH_MAX]; /* as in the log, for the first `depth` frames */
	uint32_t ids[DEPTH_MAX];
	uint32_t nodes[DEPTH_MAX];
};

struct el_profile {
	const struct el_window *window;
	struct cctree *tree;
	struct lane_room room;
	struct ticks *by_cap[LANES_MAX], *lanes[LANES_MAX];
	struct el_profile_info info;
};

int el_profile__new(const struct el_window *window, struct el_profile **ret_p)
{
	struct el_profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->window = window;
	p->room.max = SLICES_MAX;
	err = cctree__new(&p->tree);
	if (err) {
		free(p);
		return err;
	}
	*ret_p = p;
	return 0;
}

void el_profile__free(struct el_profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->info.n_lanes; i++) {
		lane__free(&p->lanes[i]->lane);
		free(p->lanes[i]);
	}
	cctree__free(p->tree);
	free(p);
}

static struct ticks *lane_get(struct el_profile *p, uint32_t cap)
{
	struct ticks *lane;

	if (cap >= LANES_MAX || p->by_cap[cap])
		return cap < LANES_MAX ? p->by_cap[cap] : NULL;
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->pub.cap = (uint16_t)cap;
	lane->pub.lane = &lane->lane.slices;
	lane->lane.kind = LANE_CAPABILITY;
	lane->lane.room = &p->room;
	p->lanes[p->info.n_lanes++] = p->by_cap[cap] = lane;
	return lane;
}

/* The node of a stack; `ccs` is innermost first. */
static int stack_node(struct el_profile *p, struct ticks *lane, struct el_u32s ccs,
		      uint32_t *ret_node)
{
	uint32_t node = CC_ROOT, cc, d = 0;
	int err;

	if (ccs.n && ccs.n == lane->depth && !memcmp(lane->raw, ccs.p, 4 * (size_t)ccs.n)) {
		*ret_node = lane->nodes[ccs.n - 1];
		return 0;
	}
	while (d < ccs.n && d < lane->depth && el_u32s__get(ccs, ccs.n - 1 - d) == lane->ids[d])
		d++;
	if (d)
		node = lane->nodes[d - 1];
	for (; d < ccs.n; d++) {
		uint32_t id = el_u32s__get(ccs, ccs.n - 1 - d);

		err = cctree__cc_by_id(p->tree, id, &cc);
		if (!err)
			err = cctree__child(p->tree, node, cc, &node);
		/* Beyond the limits it counts for the last node that there was room for. */
		if (err == -E2BIG) {
			p->info.dropped++;
			break;
		}
		if (err) {
			lane->depth = 0;
			return err;
		}
		if (!cctree__known(p->tree, cc))
			p->info.unknown_centres++;
		lane->ids[d] = id;
		lane->nodes[d] = node;
	}
	lane->depth = d == ccs.n ? d : 0;
	if (lane->depth)
		memcpy(lane->raw, ccs.p, 4 * (size_t)ccs.n);
	*ret_node = node;
	return 0;
}

static uint8_t state_of(enum cc_kind kind)
{
	switch (kind) {
	case CCK_IDLE:
		return CS_IDLE;
	case CCK_GC:
		return CS_GC;
	case CCK_SYSTEM:
	case CCK_OVERHEAD:
		return CS_RTS;
	default:
		return CS_HASKELL;
	}
}

static int on_sample(struct el_profile *p, const struct el_event *ev)
{
	uint64_t step = p->info.interval_ns ? p->info.interval_ns : INTERVAL_GHC;
	uint64_t start = ev->time > step ? ev->time - step : 0, end = ev->time;
	struct pic_slice s;
	struct ticks *lane;
	uint32_t node;
	int err;

	if (!el_window__has(p->window, ev->time)) {
		p->info.outside++;
		return 0;
	}
	lane = lane_get(p, ev->prof_sample.cap);
	if (!lane) {
		p->info.dropped++;
		return 0;
	}
	err = stack_node(p, lane, ev->prof_sample.ccs, &node);
	if (err)
		return err;
	cctree__node(p->tree, node)->ticks++;
	lane->pub.ticks++;
	p->info.samples++;
	if (lane->ticked && ev->time >= lane->last && ev->time - lane->last <= 2 * step)
		start = lane->last;
	lane->last = ev->time;
	lane->ticked = true;
	if (!el_window__clip(p->window, &start, &end))
		return 0;
	s = (struct pic_slice){.start_ns = start,
			       .end_ns = end,
			       .stack = node,
			       .samples = 1,
			       .state = state_of(cctree__kind(p->tree, node))};
	err = lane__put(&lane->lane, &s);
	if (err == -E2BIG) {
		p->info.dropped++;
		err = 0;
	}
	return err;
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_profile *p = ctx;
	int err = 0;

	switch (ev->id) {
	case EL_PROF_BEGIN:
		p->info.interval_ns = ev->prof_interval;
		break;
	case EL_HEAP_PROF_COST_CENTRE:
		err = cctree__define(p->tree, ev->cc.id, ev->cc.label.s, ev->cc.label.len,
				     ev->cc.module.s, ev->cc.module.len, ev->cc.srcloc.s,
				     ev->cc.srcloc.len, ev->cc.is_caf);
		if (err == -E2BIG) {
			p->info.dropped++;
			err = 0;
		}
		break;
	case EL_PROF_SAMPLE_COST_CENTRE:
		err = on_sample(p, ev);
		break;
	default:
		break;
	}
	return err;
}

int el_profile__attach(struct el_profile *p, struct eventlog *log)
{
	static const uint16_t ids[] = {EL_PROF_BEGIN, EL_HEAP_PROF_COST_CENTRE,
				       EL_PROF_SAMPLE_COST_CENTRE};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, p);
}

int el_profile__finish(struct el_profile *p)
{
	int err = 0;

	for (size_t i = 0; i < p->info.n_lanes && !err; i++)
		err = lane__end(&p->lanes[i]->lane);
	return err == -E2BIG ? 0 : err;
}

struct cctree *el_profile__tree(struct el_profile *p)
{
	return p->tree;
}

struct el_profile_info el_profile__info(const struct el_profile *p)
{
	return p->info;
}

const struct el_profile_lane *el_profile__lane(const struct el_profile *p, size_t i)
{
	return &p->lanes[i]->pub;
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

void el_profile__pack(const struct el_profile *profile, struct pack *pack)
{
	cctree__pack(profile->tree, pack);
	PACK(pack, profile->info);
	for (size_t i = 0; i < profile->info.n_lanes; i++) {
		PACK(pack, profile->lanes[i]->pub.cap);
		PACK(pack, profile->lanes[i]->pub.ticks);
		pack__slices(pack, &profile->lanes[i]->lane.slices);
	}
}

static int unpack_lane(struct el_profile *p, struct unpack *u)
{
	const struct slices_kind kind = {
		.states = CS_MAX, .stacks = (uint32_t)cctree__n_nodes(p->tree), .max = LANE_MAX};
	struct ticks *lane;
	uint16_t cap;
	int err;

	UNPACK(u, cap);
	if (!unpack__require(u, cap < LANES_MAX && !p->by_cap[cap]))
		return -EBADMSG;
	lane = lane_get(p, cap);
	if (!lane)
		return -ENOMEM;
	UNPACK(u, lane->pub.ticks);
	err = unpack__slices(u, &kind, &lane->lane.slices);
	p->room.used += lane->lane.slices.n;
	return err;
}

int el_profile__unpack(struct unpack *u, struct el_profile **ret_p)
{
	struct el_profile *p = calloc(1, sizeof(*p));
	struct el_profile_info info;
	int err;

	if (!p)
		return -ENOMEM;
	p->room.max = SLICES_MAX;
	err = cctree__unpack(u, &p->tree);
	UNPACK(u, info);
	for (size_t i = 0; i < info.n_lanes && !err; i++)
		err = unpack_lane(p, u);
	if (!err && u->bad)
		err = -EBADMSG;
	if (err) {
		el_profile__free(p);
		return err;
	}
	/* with as many lanes as there are now */
	p->info = info;
	*ret_p = p;
	return 0;
}

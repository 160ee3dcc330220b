/* SPDX-License-Identifier: GPL-2.0-or-later */
/* compose: builds the whole stack that a slice shows from the parts that a record brought. */
#include "intake_priv.h"

#define MAX_COMPOSED (3 * MAX_PART + 8)

struct composer {
	struct intake *in;
	const struct seen *s;
	uint32_t *v; /* room for MAX_COMPOSED */
	uint32_t n;
	enum pic_fixed_frame no_stack; /* the mark for an unknown Haskell part */
	bool unknown;
};

static void put(struct composer *c, uint32_t frame)
{
	frame = intake__shown(c->in, frame);
	if (frame != UINT32_MAX && c->n < MAX_COMPOSED)
		c->v[c->n++] = frame;
}

static void put_part(struct composer *c, uint32_t part, uint32_t skip)
{
	struct pic_stack stack = intake__part(c->in, part);

	for (uint32_t i = skip; i < stack.n; i++)
		put(c, stack.frames[i]);
}

/* Puts the cost centres' path instead of, or before, the innermost Haskell thread's frames. */
static bool put_ccs(struct composer *c, const struct ev *ev)
{
	struct pic_stack hs = intake__part(c->in, ev->hs);
	enum intake_stacks stacks = c->in->opts.stacks;
	uint32_t path[MAX_PART], n, below;

	n = stacks == STACKS_STG ? 0 : ccs__path(c->s, ev->ccs, path, ARRAY_SIZE(path));
	if (!n)
		return false;
	below = hs.n - MIN(ev->hs_run, hs.n);
	for (uint32_t i = 0; i < below; i++)
		put(c, hs.frames[i]);
	while (n)
		put(c, path[--n]);
	if (stacks == STACKS_CCS || (stacks == STACKS_AUTO && ccs__has_own(c->s, ev->ccs)))
		return true;
	if (below < hs.n)
		put(c, picture__mark(c->in->pic, MARK_STG));
	put_part(c, ev->hs, below);
	return true;
}

/*
 * Puts the Haskell part, or the site's caller if the walk found nothing. If there is neither, a
 * mark follows what is known of the place, since nothing shows who called it.
 */
static void put_hs(struct composer *c, const struct ev *ev, const struct seen_site *site)
{
	bool no_walk = !site && (ev->flags & EV_NO_WALK);

	if (put_ccs(c, ev)) {
		/* the centre did not itself call the C function that it is in */
		c->unknown = ev->c && no_walk;
		return;
	}
	if (ev->hs)
		put_part(c, ev->hs, 0);
	else if (site && site->caller != UINT32_MAX)
		put(c, site->caller);
	c->unknown = !site && (no_walk || !ev->hs);
}

/* A stack of a thread that runs no Haskell code. */
static void put_foreign(struct composer *c, const struct ev *ev)
{
	c->unknown = ev->c && (ev->flags & EV_NO_WALK);
	put_part(c, ev->hs, 0); /* how the walk ended, if the stack is incomplete */
	put_part(c, ev->c, 0);
}

static bool in_kernel(const struct composer *c, struct pic_stack stack)
{
	return stack.n && picture__frame(c->in->pic, stack.frames[stack.n - 1])->kind == TF_KERNEL;
}

static void put_call(struct composer *c, const struct ev *ev, const struct seen_site *site,
		     bool with_c)
{
	struct pic_stack stack = intake__part(c->in, ev->c);
	uint32_t skip = 0;

	/* a callback is running: the call's function is a C frame below its Haskell frames */
	if (ev->where == WIRE_WHERE_HASKELL)
		site = NULL;
	put_hs(c, ev, site);
	if (site) {
		put(c, site->function);
		if (stack.n && intake__shown(c->in, stack.frames[0]) == site->function)
			skip = 1;
	}
	/* blocked: C frames are shown only below kernel frames, if there are any */
	if (with_c || in_kernel(c, stack))
		put_part(c, ev->c, skip);
}

/* If C code called back into Haskell, the Haskell part is below the RTS. */
static void put_rts(struct composer *c, enum pic_fixed_frame mark, const struct ev *ev)
{
	put_part(c, ev->hs, 0);
	put(c, picture__mark(c->in->pic, mark));
	put_part(c, ev->c, 0);
}

/* The stack of what a thread was doing when it was preempted. */
static void put_place(struct composer *c, const struct ev *ev, const struct seen_site *site)
{
	if (ev->flags & EV_HANDOVER) {
		put_rts(c, MARK_RTS, ev);
		return;
	}
	switch (ev->where) {
	case WIRE_WHERE_SAFE_CALL:
		put_call(c, ev, site, false);
		break;
	case WIRE_WHERE_RTS:
	case WIRE_WHERE_NO_CAP:
	case WIRE_WHERE_NOT_READY:
		put_rts(c, ev->code == CODE_GC ? MARK_GC : MARK_RTS, ev);
		break;
	case WIRE_WHERE_FOREIGN:
		put_foreign(c, ev);
		break;
	case WIRE_WHERE_UNKNOWN:
		put_part(c, ev->hs, 0);
		put_part(c, ev->c, 0);
		break;
	default:
		put_hs(c, ev, NULL);
		put_part(c, ev->c, 0);
		break;
	}
}

static void put_state(struct composer *c, enum thread_state state, const struct ev *ev,
		      const struct seen_site *site)
{
	switch (state) {
	case ST_HASKELL:
	case ST_UNSAFE_CALL_CPU:
	case ST_HASKELL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
		put_hs(c, ev, NULL);
		put_part(c, ev->c, 0);
		break;
	case ST_SAFE_CALL_CPU:
		put_call(c, ev, site, true);
		break;
	case ST_SAFE_CALL_BLOCKED:
		put_call(c, ev, site, false);
		break;
	case ST_CAP_WAIT:
		put_hs(c, ev, site);
		break;
	case ST_GC_WORK:
	case ST_GC_WAIT:
		put_rts(c, MARK_GC, ev);
		break;
	case ST_RTS:
	case ST_RTS_BLOCKED:
		put_rts(c, MARK_RTS, ev);
		break;
	case ST_FOREIGN_CPU:
		if (!ev->c)
			put(c, picture__mark(c->in->pic, MARK_FOREIGN));
		put_foreign(c, ev);
		break;
	case ST_FOREIGN_BLOCKED:
		put_foreign(c, ev);
		break;
	case ST_PREEMPTED:
		put_place(c, ev, site);
		break;
	default:
		break;
	}
	if (c->unknown)
		put(c, picture__mark(c->in->pic, c->no_stack));
	if (picture__state_frame(c->in->pic, state) != UINT32_MAX)
		put(c, picture__state_frame(c->in->pic, state));
}

/* Of a stack that is too deep the leaf side is kept: it shows what the thread was doing. */
static int add_composed(struct composer *c, uint32_t *ret_stack)
{
	uint32_t max = c->in->opts.max_depth, skip = c->n > max ? c->n - max : 0;

	if (skip)
		c->v[skip] = picture__mark(c->in->pic, MARK_TRUNCATED);
	return picture__add_stack(c->in->pic, c->v + skip, c->n - skip, ret_stack);
}

int stack__unsampled_call(struct intake *in, const struct seen *s, const struct ev *ev,
			  uint32_t *ret_stack)
{
	const struct seen_site *site = seen__site(s, ev->site);
	uint32_t frames[MAX_COMPOSED];
	struct composer c = {.in = in, .s = s, .v = frames, .no_stack = MARK_NO_STACK};

	if (!site)
		return picture__unsampled(in->pic, state__title(LANE_THREAD, ST_SAFE_CALL_CPU),
					  ret_stack);
	put_hs(&c, ev, site);
	put(&c, site->function);
	put(&c, picture__mark(in->pic, MARK_NO_SAMPLE));
	return add_composed(&c, ret_stack);
}

int stack__compose(struct intake *in, const struct seen *s, enum thread_state state,
		   const struct ev *ev, uint32_t *ret_stack)
{
	static const struct ev none;
	uint32_t frames[MAX_COMPOSED];
	struct composer c = {.in = in, .s = s, .v = frames};
	const struct seen_site *site;

	if (state == ST_IDLE) {
		*ret_stack = 0;
		return 0;
	}
	c.no_stack = ev ? MARK_NO_STACK : MARK_NO_SAMPLE;
	ev = ev ? ev : &none;
	site = seen__site(s, ev->site);
	put_state(&c, state, ev, site);
	return add_composed(&c, ret_stack);
}

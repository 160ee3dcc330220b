/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: from a record's frames to two interned parts (the C frames above, the Haskell frames and
 * all that is below them), and from those parts to the stack that a stretch shows.
 */
#include <stdio.h>

#include "private.h"

#define MAX_PART (WIRE_FRAMES_MAX + 8)

struct part {
	uint32_t v[MAX_PART]; /* leaf first */
	uint32_t n;
};

struct taker {
	struct timeline *tl;
	struct target_state *tg;
	const struct raw_stack *raw;
	struct ev *ev;
	struct part hs, c;
	uint32_t run;	 /* frames of hs that are the innermost Haskell thread's; UINT32_MAX: all */
	bool probed;	 /* the last frame was of the probes' own machinery */
	bool in_hs;	 /* the first Haskell frame was met: all further frames go there */
	bool at_leaf;	 /* the last Haskell frame was a program counter: its own return frame may
			    follow */
	bool at_updatee; /* the last Haskell frame was a thunk under evaluation */
	bool cut;	 /* deeper than max_depth */
	bool gap;	 /* C frames are not known between the last one and what comes next */
	uint8_t outer_code; /* of the outermost C frame above the Haskell ones */
};

static unsigned kind_of(uint64_t frame)
{
	return (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);
}

static void push(struct taker *t, struct part *part, uint32_t frame)
{
	if (t->hs.n + t->c.n >= t->tl->opts.max_depth || part->n >= MAX_PART - 4)
		t->cut = true;
	else
		part->v[part->n++] = frame;
}

/* C code below Haskell frames: another Haskell thread made the call. */
static void end_run(struct taker *t)
{
	if (t->run == UINT32_MAX)
		t->run = t->hs.n;
}

/* An address of a too large target: one frame for all of them. */
static int named(struct taker *t, uint64_t frame, struct addr_name *ret)
{
	const struct addr_name *name;
	int err = name__addr(t->tl, t->tg, frame, &name);

	if (err == -E2BIG) {
		memset(ret, 0, sizeof(*ret));
		ret->frame = t->tl->marks[MARK_TOO_MANY];
		return 0;
	}
	if (!err)
		*ret = *name;
	return err;
}

/* The kernel's frames come first. What the probes are the cause of is taken out again. */
static int take_kernel(struct taker *t, uint64_t frame)
{
	struct addr_name name;
	int err = named(t, frame, &name);

	if (err)
		return err;
	t->probed = name.kernel == KERNEL_OURS || (t->probed && name.kernel == KERNEL_PROBE);
	if (t->probed)
		t->c.n = 0;
	else
		push(t, &t->c, name.frame);
	return 0;
}

static int take_c(struct taker *t, uint64_t frame)
{
	struct addr_name name;
	int err = named(t, frame, &name);

	if (err)
		return err;
	if (t->in_hs) {
		end_run(t);
		name__count(&t->tg->pub.names, (enum name_source)name.source);
		push(t, &t->hs, name.frame);
		return 0;
	}
	name__count(&t->tg->pub.names, (enum name_source)name.source);
	push(t, &t->c, name.frame);
	t->outer_code = name.code;
	if (name.code == CODE_GC)
		t->ev->flags |= EV_GC_CODE;
	if (name.gc_sync)
		t->ev->flags |= EV_GC_SYNC;
	return 0;
}

/*
 * Between the C frames that are known and the Haskell code some may be missing; the last one of
 * them is what that code calls. `callee`: its frame, UINT32_MAX if it is not known.
 */
static int end_gap(struct taker *t, uint32_t callee, uint8_t code)
{
	uint32_t mark;
	int err;

	t->gap = false;
	/* Haskell code called the very function that is known: nothing is missing. */
	if (t->c.n && t->c.v[t->c.n - 1] == callee)
		return 0;
	err = frames__add_text(&t->tl->frames, TF_MARK, "[C frames not known]", &mark);
	if (err)
		return err;
	if (t->in_hs)
		end_run(t);
	push(t, t->in_hs ? &t->hs : &t->c, mark);
	t->ev->flags |= EV_GAP;
	if (callee == UINT32_MAX)
		return 0;
	push(t, t->in_hs ? &t->hs : &t->c, callee);
	if (!t->in_hs)
		t->outer_code = code;
	return 0;
}

static int end_gap_at_call(struct taker *t, uint64_t addr)
{
	uint64_t frame = addr | (uint64_t)WIRE_FRAME_CALLEE << WIRE_FRAME_KIND_SHIFT;
	struct addr_name name;
	int err = named(t, frame, &name);

	if (err)
		return err;
	if (name.code == CODE_UNKNOWN || name.code == CODE_HASKELL)
		return end_gap(t, UINT32_MAX, CODE_UNKNOWN);
	return end_gap(t, name.frame, name.code);
}

static bool in_safe_call(const struct taker *t)
{
	return t->raw->rts->where == WIRE_WHERE_SAFE_CALL ||
	       t->raw->rts->where == WIRE_WHERE_RESUMING;
}

static int take_hs(struct taker *t, uint64_t frame)
{
	unsigned kind = kind_of(frame);
	struct addr_name name;
	int err = 0;

	if (t->gap)
		err = kind == WIRE_FRAME_HS_CALL ? end_gap_at_call(t, frame & WIRE_FRAME_ADDR_MASK)
						 : end_gap(t, UINT32_MAX, CODE_UNKNOWN);
	if (!err)
		err = named(t, frame, &name);
	if (err)
		return err;
	/* The kernel side cannot always tell C code that Haskell called from Haskell code. */
	if (kind == WIRE_FRAME_HS_IP && !t->in_hs && name.code >= CODE_RTS)
		return take_c(t, frame);
	/* between a safe call's function and the runtime's: in the call, as its Haskell caller says
	 */
	if (kind == WIRE_FRAME_HS_IP && !t->in_hs && in_safe_call(t))
		return 0;
	t->in_hs = true;
	if (name.fold)
		return 0;
	/* The leaf's own return frame, or the updated thunk's own code: the same function twice. */
	if (t->hs.n && t->hs.v[t->hs.n - 1] == name.frame &&
	    (t->at_leaf || (kind == WIRE_FRAME_UPDATEE && !t->at_updatee))) {
		t->at_leaf = false;
		return 0;
	}
	t->at_updatee = kind == WIRE_FRAME_UPDATEE;
	name__count(&t->tg->pub.names, (enum name_source)name.source);
	t->at_leaf = kind == WIRE_FRAME_HS_CALL || (!t->hs.n && kind == WIRE_FRAME_HS_IP);
	push(t, &t->hs, name.frame);
	return 0;
}

static int take_site(struct taker *t, uint64_t addr)
{
	struct site *site;
	int err = name__site(t->tl, t->tg, addr, &site);

	if (err)
		return err == -E2BIG ? 0 : err;
	if (t->gap)
		err = end_gap(t, site->function, CODE_C);
	if (err)
		return err;
	/* The innermost call's function is put in when the stack is composed. */
	if (!t->in_hs) {
		t->in_hs = true;
		if (!t->ev->site)
			t->ev->site = site->index + 1;
		return 0;
	}
	end_run(t);
	push(t, &t->hs, site->function);
	return 0;
}

static int push_mark(struct taker *t, const char *text)
{
	uint32_t frame;
	int err = frames__add_text(&t->tl->frames, TF_MARK, text, &frame);

	if (!err && t->hs.n < MAX_PART)
		t->hs.v[t->hs.n++] = frame;
	return err;
}

static int take_frame(struct taker *t, uint64_t frame)
{
	uint64_t addr = frame & WIRE_FRAME_ADDR_MASK;
	char text[48];

	switch (kind_of(frame)) {
	case WIRE_FRAME_C_IP:
	case WIRE_FRAME_C_RET:
		return take_c(t, frame);
	case WIRE_FRAME_KERNEL:
		return t->in_hs ? 0 : take_kernel(t, frame);
	case WIRE_FRAME_SITE:
		return take_site(t, addr);
	case WIRE_FRAME_GAP:
		t->gap = true;
		return 0;
	case WIRE_FRAME_ELIDED:
		t->in_hs = true;
		if (addr)
			snprintf(text, sizeof(text), "[%llu chunk%s left out]",
				 (unsigned long long)addr, addr == 1 ? "" : "s");
		else
			snprintf(text, sizeof(text), "[frames left out]");
		return t->cut ? 0 : push_mark(t, text);
	default:
		return take_hs(t, frame);
	}
}

static const char *cause_text(uint8_t cause)
{
	static const char *const texts[] = {
		[WIRE_CAUSE_NONE] = "[broken]",
		[WIRE_CAUSE_NO_SP] = "[broken: no stack pointer]",
		[WIRE_CAUSE_NO_FRAME] = "[broken: no frame found]",
		[WIRE_CAUSE_BAD_TYPE] = "[broken: not a frame]",
		[WIRE_CAUSE_FAULT] = "[broken: unreadable memory]",
		[WIRE_CAUSE_SP_RANGE] = "[broken: outside the stack]",
		[WIRE_CAUSE_STOP_NOT_END] = "[broken: ended too early]",
		[WIRE_CAUSE_BAD_SIZE] = "[broken: frame too large]",
		[WIRE_CAUSE_GC_RACE] = "[broken: the thread ran on]",
		[WIRE_CAUSE_NO_TSO] = "[broken: no Haskell thread]",
		[WIRE_CAUSE_C_NO_MAP] = "[broken: code of no known file]",
		[WIRE_CAUSE_C_NO_ROW] = "[broken: code without unwind rows]",
		[WIRE_CAUSE_C_RULE] = "[broken: unknown unwind rule]",
		[WIRE_CAUSE_C_FAULT] = "[broken: unreadable C stack]",
		[WIRE_CAUSE_C_TOO_DEEP] = "[broken: too many C frames]",
	};

	return cause < ARRAY_SIZE(texts) ? texts[cause] : "[broken]";
}

static int take_end(struct taker *t)
{
	const struct wire_stack *head = t->raw->head;

	if (t->cut || head->end == WIRE_END_TRUNCATED)
		return push_mark(t, "[truncated]");
	if (head->end == WIRE_END_BROKEN)
		return push_mark(t, cause_text(head->cause));
	return 0;
}

/* The program counter: the leaf, unless the stack begins with it. */
static int take_ip(struct taker *t)
{
	const struct raw_stack *raw = t->raw;
	unsigned first = raw->head->nframes ? kind_of(raw->frames[0]) : WIRE_FRAME_HS_RET;
	bool hs = raw->rts->where == WIRE_WHERE_HASKELL || raw->rts->where == WIRE_WHERE_UNKNOWN;
	uint64_t frame = raw->ip & WIRE_FRAME_ADDR_MASK;
	struct addr_name name;
	int err;

	if (!raw->ip)
		return 0;
	frame |= (uint64_t)(hs ? WIRE_FRAME_HS_IP : WIRE_FRAME_C_IP) << WIRE_FRAME_KIND_SHIFT;
	if (first == WIRE_FRAME_HS_IP || first == WIRE_FRAME_C_IP)
		frame = (frame & WIRE_FRAME_ADDR_MASK) | (uint64_t)first << WIRE_FRAME_KIND_SHIFT;
	err = named(t, frame, &name);
	if (err)
		return err;
	t->ev->code = name.code;
	if (first == WIRE_FRAME_HS_IP || first == WIRE_FRAME_C_IP || first == WIRE_FRAME_KERNEL ||
	    (name.code == CODE_HASKELL && in_safe_call(t)))
		return 0;
	return take_frame(t, frame);
}

/* The cost-centre stack that goes with the Haskell part. */
static int take_ccs(struct taker *t)
{
	const struct wire_rts *rts = t->raw->rts;

	t->ev->hs_run = (uint16_t)MIN(t->run, t->hs.n);
	if (rts->where != WIRE_WHERE_HASKELL && rts->where != WIRE_WHERE_SAFE_CALL &&
	    rts->where != WIRE_WHERE_RESUMING)
		return 0;
	return ccs__get(t->tg, rts->cccs, &t->ev->ccs);
}

static int intern_part(struct timeline *tl, struct part *part, uint32_t *ret_id)
{
	for (uint32_t i = 0; i < part->n / 2; i++) {
		uint32_t other = part->v[part->n - 1 - i];

		part->v[part->n - 1 - i] = part->v[i];
		part->v[i] = other;
	}
	return stacks__add(&tl->parts, part->v, part->n, ret_id);
}

int stack__take(struct timeline *tl, struct target_state *tg, const struct raw_stack *raw,
		struct ev *ev)
{
	struct taker *t = calloc(1, sizeof(*t));
	struct site *site;
	int err = 0;

	if (!t)
		return -ENOMEM;
	t->tl = tl;
	t->tg = tg;
	t->raw = raw;
	t->ev = ev;
	t->run = UINT32_MAX;
	if (raw->site) {
		err = name__site(tl, tg, raw->site, &site);
		if (!err)
			ev->site = site->index + 1;
		else if (err == -E2BIG)
			err = 0;
	}
	if (!raw->head->nframes)
		ev->flags |= EV_NO_WALK;
	if (!err)
		err = take_ip(t);
	for (uint32_t i = 0; !err && i < raw->head->nframes && !t->cut; i++)
		err = take_frame(t, raw->frames[i]);
	if (!err)
		err = take_end(t);
	if (!err)
		err = take_ccs(t);
	if (t->c.n && t->outer_code == CODE_RTS)
		ev->flags |= EV_OUTER_RTS;
	if (!err)
		err = intern_part(tl, &t->hs, &ev->hs);
	if (!err)
		err = intern_part(tl, &t->c, &ev->c);
	free(t);
	return err;
}

/* ── composing ───────────────────────────────────────────────────────────────────────────── */

struct composer {
	struct timeline *tl;
	const struct target_state *tg;
	uint32_t v[3 * MAX_PART + 8];
	uint32_t n;
	enum mark no_stack; /* what stands for an unknown Haskell part */
	bool unknown;
};

static void put(struct composer *c, uint32_t frame)
{
	if (c->n < ARRAY_SIZE(c->v))
		c->v[c->n++] = frame;
}

static void put_part(struct composer *c, uint32_t part, uint32_t skip)
{
	struct tl_stack stack = stacks__get(&c->tl->parts, part);

	for (uint32_t i = skip; i < stack.n; i++)
		put(c, stack.frames[i]);
}

/* The cost centres' path instead of, or before, the frames of the innermost Haskell thread. */
static bool put_ccs(struct composer *c, const struct ev *ev)
{
	struct tl_stack hs = stacks__get(&c->tl->parts, ev->hs);
	uint32_t path[MAX_PART], n, below;

	n = c->tl->opts.stacks == TL_STACKS_STG ? 0
						: ccs__path(c->tg, ev->ccs, path, ARRAY_SIZE(path));
	if (!n)
		return false;
	below = hs.n - MIN(ev->hs_run, hs.n);
	for (uint32_t i = 0; i < below; i++)
		put(c, hs.frames[i]);
	while (n)
		put(c, path[--n]);
	if (c->tl->opts.stacks != TL_STACKS_BOTH)
		return true;
	put(c, c->tl->marks[MARK_STG]);
	put_part(c, ev->hs, below);
	return true;
}

/*
 * The Haskell part; the site's caller where the walk found nothing. Where there is neither, a mark
 * comes after what is known of the place: nothing says who called it.
 */
static void put_hs(struct composer *c, const struct ev *ev, const struct site *site)
{
	bool no_walk = !site && (ev->flags & EV_NO_WALK);

	if (put_ccs(c, ev)) {
		/* the centre has not called the C function that it is in */
		c->unknown = ev->c && no_walk;
		return;
	}
	if (ev->hs)
		put_part(c, ev->hs, 0);
	else if (site && site->caller != UINT32_MAX)
		put(c, site->caller);
	c->unknown = !site && (no_walk || !ev->hs);
}

/* A stack of a thread without Haskell. */
static void put_foreign(struct composer *c, const struct ev *ev)
{
	c->unknown = ev->c && (ev->flags & EV_NO_WALK);
	put_part(c, ev->hs, 0); /* how it ended, where it is not whole */
	put_part(c, ev->c, 0);
}

static bool in_kernel(const struct composer *c, struct tl_stack stack)
{
	return stack.n && c->tl->frames.v[stack.frames[stack.n - 1]].kind == TF_KERNEL;
}

static void put_call(struct composer *c, const struct ev *ev, const struct site *site, bool with_c)
{
	struct tl_stack stack = stacks__get(&c->tl->parts, ev->c);
	uint32_t skip = 0;

	/* a callback runs: the call's function is among the C frames below its Haskell frames */
	if (ev->where == WIRE_WHERE_HASKELL)
		site = NULL;
	put_hs(c, ev, site);
	if (site) {
		put(c, site->function);
		if (stack.n && stack.frames[0] == site->function)
			skip = 1;
	}
	/* blocked: what of C code is below the kernel's frames, if those are wanted */
	if (with_c || in_kernel(c, stack))
		put_part(c, ev->c, skip);
}

/* The Haskell part is below the RTS where C code called back into Haskell. */
static void put_rts(struct composer *c, enum mark mark, const struct ev *ev)
{
	put_part(c, ev->hs, 0);
	put(c, c->tl->marks[mark]);
	put_part(c, ev->c, 0);
}

/* A thread that was taken off the CPU: the stack of what it did. */
static void put_place(struct composer *c, const struct ev *ev, const struct site *site)
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

static void put_state(struct composer *c, enum tl_state state, const struct ev *ev,
		      const struct site *site)
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
			put(c, c->tl->marks[MARK_FOREIGN]);
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
		put(c, c->tl->marks[c->no_stack]);
	if (c->tl->state_frames[state] != UINT32_MAX)
		put(c, c->tl->state_frames[state]);
}

/* The leaf side of one that is too deep is kept: it says what the thread was doing. */
static int add_composed(struct composer *c, uint32_t *ret_stack)
{
	uint32_t max = c->tl->opts.max_depth, skip = c->n > max ? c->n - max : 0;

	if (skip)
		c->v[skip] = c->tl->marks[MARK_TRUNCATED];
	return stacks__add(&c->tl->stacks, c->v + skip, c->n - skip, ret_stack);
}

int stack__unsampled(struct timeline *tl, const char *title, uint32_t *ret_stack)
{
	uint32_t frames[2] = {0, tl->marks[MARK_NO_SAMPLE]};
	char name[64];
	int err;

	snprintf(name, sizeof(name), "[%s]", title);
	err = frames__add_text(&tl->frames, TF_STATE, name, &frames[0]);
	return err ? err : stacks__add(&tl->stacks, frames, ARRAY_SIZE(frames), ret_stack);
}

int stack__unsampled_call(struct timeline *tl, const struct target_state *tg, const struct ev *ev,
			  uint32_t *ret_stack)
{
	const struct site *site = ev->site ? tg->site_v[ev->site - 1] : NULL;
	struct composer c = {.tl = tl, .tg = tg, .no_stack = MARK_NO_STACK};

	if (!site)
		return stack__unsampled(tl, state__title(ST_SAFE_CALL_CPU), ret_stack);
	put_hs(&c, ev, site);
	put(&c, site->function);
	put(&c, tl->marks[MARK_NO_SAMPLE]);
	return add_composed(&c, ret_stack);
}

int stack__compose(struct timeline *tl, const struct target_state *tg, enum tl_state state,
		   const struct ev *ev, uint32_t *ret_stack)
{
	static const struct ev none;
	struct composer c = {.tl = tl, .tg = tg};
	const struct site *site;

	if (state == ST_IDLE) {
		*ret_stack = 0;
		return 0;
	}
	c.no_stack = ev ? MARK_NO_STACK : MARK_NO_SAMPLE;
	ev = ev ? ev : &none;
	site = ev->site ? tg->site_v[ev->site - 1] : NULL;
	put_state(&c, state, ev, site);
	return add_composed(&c, ret_stack);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: turns a record's frames into two interned parts: the C frames on top, and the Haskell
 * frames with everything below them.
 */
#include <stdio.h>

#include "intake_priv.h"

#define PROBE_FRAME "[safescoped's probe]"

struct part {
	uint32_t *v; /* leaf first; room for MAX_PART */
	uint32_t n;
};

struct taker {
	struct intake *in;
	struct seen *s;
	const struct raw_stack *raw;
	struct ev *ev;
	uint64_t first; /* the first frame */
	struct part hs, c;
	uint32_t run;	 /* frames of hs in the innermost Haskell thread; UINT32_MAX: all */
	bool probed;	 /* the last frame belonged to the probes' own machinery */
	bool in_hs;	 /* a Haskell frame was met: all further frames go into hs */
	bool at_leaf;	 /* the last Haskell frame was a program counter; its own return frame may
			    follow */
	bool at_updatee; /* the last Haskell frame was a thunk under evaluation */
	bool cut;	 /* deeper than max_depth */
	bool returns;	 /* the leaf is what a signal handler returns to */
	bool gap;	 /* C frames between the last one and the next are unknown */
	uint8_t outer_code; /* of the outermost C frame above the Haskell ones */
};

static unsigned kind_of(uint64_t frame)
{
	return (unsigned)(frame >> WIRE_FRAME_KIND_SHIFT);
}

static void push(struct taker *t, struct part *part, uint32_t frame)
{
	if (t->hs.n + t->c.n >= t->in->opts.max_depth || part->n >= MAX_PART - 4)
		t->cut = true;
	else
		part->v[part->n++] = frame;
}

/* C code below Haskell frames: the call was made by another Haskell thread. */
static void end_run(struct taker *t)
{
	if (t->run == UINT32_MAX)
		t->run = t->hs.n;
}

/* Takes a kernel frame; these come first. Frames caused by the probes are removed again. */
static int take_kernel(struct taker *t, uint64_t frame)
{
	struct seen_addr name;
	int err = name__addr(t->in, t->s, frame, &name);

	if (err)
		return err;
	t->probed = name.kernel == KERNEL_OURS || (t->probed && name.kernel == KERNEL_PROBE);
	if (t->probed)
		t->c.n = 0;
	else
		push(t, &t->c, name.frame);
	return 0;
}

static bool is_probed(const struct seen *s, uint64_t addr)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->probed); i++)
		if (addr && s->probed[i] == addr)
			return true;
	return false;
}

/*
 * A thread sampled right at a probed place is in the probe's trap, which takes a thousand times as
 * long as the instruction there: that time is not the function's. The frame is not a kernel frame,
 * since those are there only if asked for.
 */
static int take_trap(struct taker *t, uint64_t frame)
{
	const struct pic_frame probe = {.name = PROBE_FRAME,
					.module = "",
					.package = "",
					.file = "safescoped",
					.src = "",
					.kind = TF_FOREIGN};
	uint64_t ip = t->raw->ip & WIRE_FRAME_ADDR_MASK;
	uint32_t no;
	int err;

	/* with kernel frames left above it, it is something else */
	if (!t->raw->sampled || t->c.n || t->hs.n || (frame & WIRE_FRAME_ADDR_MASK) != ip ||
	    !is_probed(t->s, ip))
		return 0;
	err = picture__add_frame(t->in->pic, &probe, &no);
	if (!err)
		push(t, &t->c, no);
	return err;
}

static int take_c(struct taker *t, uint64_t frame)
{
	struct seen_addr name;
	int err = name__addr(t->in, t->s, frame, &name);

	if (!err && !t->in_hs)
		err = take_trap(t, frame);
	if (err)
		return err;
	if (t->in_hs) {
		end_run(t);
		name__count(t->s, &name, false);
		push(t, &t->hs, name.frame);
		return 0;
	}
	name__count(t->s, &name, false);
	push(t, &t->c, name.frame);
	/* nobody called it: a signal interrupted the next frame */
	if (!name.signal_return)
		t->outer_code = name.code;
	if (name.code == CODE_GC)
		t->ev->flags |= EV_GC_CODE;
	if (name.gc_sync)
		t->ev->flags |= EV_GC_SYNC;
	return 0;
}

/*
 * Closes a gap: C frames may be missing between the known ones and the Haskell code; the outermost
 * missing one is the function that this code calls. `callee`: its frame, UINT32_MAX if unknown.
 */
static int end_gap(struct taker *t, uint32_t callee, uint8_t code)
{
	uint32_t mark;
	int err;

	t->gap = false;
	/* Haskell code called the very function that is known: nothing is missing. */
	if (t->c.n && t->c.v[t->c.n - 1] == callee)
		return 0;
	err = picture__add_text(t->in->pic, TF_MARK, "[C frames not known]", &mark);
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
	struct seen_addr name;
	int err = name__addr(t->in, t->s, frame, &name);

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
	struct seen_addr name;
	int err = 0;

	if (t->gap)
		err = kind == WIRE_FRAME_HS_CALL ? end_gap_at_call(t, frame & WIRE_FRAME_ADDR_MASK)
						 : end_gap(t, UINT32_MAX, CODE_UNKNOWN);
	if (!err)
		err = name__addr(t->in, t->s, frame, &name);
	if (err)
		return err;
	/* The kernel side cannot always distinguish C code that Haskell called from Haskell code.
	 */
	if (kind == WIRE_FRAME_HS_IP && !t->in_hs && name.code >= CODE_RTS)
		return take_c(t, frame);
	/* between a safe call's function and the runtime's: still in the call, as the Haskell
	 * caller shows */
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
	name__count(t->s, &name, false);
	t->at_leaf = kind == WIRE_FRAME_HS_CALL || (!t->hs.n && kind == WIRE_FRAME_HS_IP);
	push(t, &t->hs, name.frame);
	return 0;
}

static int take_site(struct taker *t, uint64_t addr)
{
	struct seen_site *site;
	int err = name__site(t->in, t->s, addr, &site);

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
	int err = picture__add_text(t->in->pic, TF_MARK, text, &frame);

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

static int push_broken(struct taker *t, uint8_t cause)
{
	const char *title = broken__title(cause);
	char text[64];

	snprintf(text, sizeof(text), "[broken%s%s]", title ? ": " : "", title ? title : "");
	return push_mark(t, text);
}

static int take_end(struct taker *t)
{
	const struct wire_stack *head = t->raw->head;

	if (t->cut || head->end == WIRE_END_TRUNCATED)
		return push_mark(t, "[truncated]");
	if (head->end == WIRE_END_BROKEN)
		return push_broken(t, head->cause);
	return 0;
}

/*
 * Until the runtime can be read, the kernel side takes all code for C. A leaf without an unwind row
 * is Haskell code, unless the file's symbols or strings show otherwise: C code has rows, its own or
 * ones made from its instructions.
 */
static int find_first(struct taker *t)
{
	const struct wire_stack *head = t->raw->head;
	struct seen_addr name;
	uint64_t haskell;
	int err;

	t->first = head->nframes ? t->raw->frames[0] : 0;
	if (t->raw->rts->where != WIRE_WHERE_NOT_READY || head->nframes != 1 ||
	    kind_of(t->first) != WIRE_FRAME_C_IP || head->end != WIRE_END_BROKEN ||
	    head->cause != WIRE_CAUSE_C_NO_ROW)
		return 0;
	haskell = (t->first & WIRE_FRAME_ADDR_MASK) | (uint64_t)WIRE_FRAME_HS_IP
							      << WIRE_FRAME_KIND_SHIFT;
	err = name__addr(t->in, t->s, haskell, &name);
	if (!err && name.code == CODE_HASKELL)
		t->first = haskell;
	return err;
}

/* Takes the program counter: it is the leaf, unless the stack begins with it. */
static int take_ip(struct taker *t)
{
	const struct raw_stack *raw = t->raw;
	unsigned first = raw->head->nframes ? kind_of(t->first) : WIRE_FRAME_HS_RET;
	bool hs = raw->rts->where == WIRE_WHERE_HASKELL || raw->rts->where == WIRE_WHERE_UNKNOWN;
	uint64_t frame = raw->ip & WIRE_FRAME_ADDR_MASK;
	struct seen_addr name;
	int err;

	if (!raw->ip)
		return 0;
	frame |= (uint64_t)(hs ? WIRE_FRAME_HS_IP : WIRE_FRAME_C_IP) << WIRE_FRAME_KIND_SHIFT;
	if (first == WIRE_FRAME_HS_IP || first == WIRE_FRAME_C_IP)
		frame = (frame & WIRE_FRAME_ADDR_MASK) | (uint64_t)first << WIRE_FRAME_KIND_SHIFT;
	err = name__addr(t->in, t->s, frame, &name);
	if (err)
		return err;
	t->ev->code = name.code;
	t->returns = name.signal_return;
	if (raw->sampled)
		name__count(t->s, &name, true);
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
	return ccs__get(t->s, rts->cccs, &t->ev->ccs);
}

static int intern_part(struct intake *in, struct part *part, uint32_t *ret_id)
{
	for (uint32_t i = 0; i < part->n / 2; i++) {
		uint32_t other = part->v[part->n - 1 - i];

		part->v[part->n - 1 - i] = part->v[i];
		part->v[i] = other;
	}
	return stacks__add(&in->parts, part->v, part->n, ret_id);
}

/* As for a short time off the CPU, of which a service has a thousand per second. */
static bool has_nothing(const struct raw_stack *raw)
{
	return !raw->head->nframes && raw->head->end == WIRE_END_NONE && !raw->ip && !raw->site &&
	       !raw->rts->cccs;
}

static int take_all(struct intake *in, struct seen *s, const struct raw_stack *raw, struct ev *ev)
{
	uint32_t hs[MAX_PART], c[MAX_PART];
	struct taker taker = {
		.in = in,
		.s = s,
		.raw = raw,
		.ev = ev,
		.hs = {.v = hs},
		.c = {.v = c},
		.run = UINT32_MAX,
	};
	struct taker *t = &taker;
	struct seen_site *site;
	int err = 0;

	if (raw->site) {
		err = name__site(in, s, raw->site, &site);
		if (!err)
			ev->site = site->index + 1;
		else if (err == -E2BIG)
			err = 0;
	}
	if (!raw->head->nframes)
		ev->flags |= EV_NO_WALK;
	addrs__expect(s, raw->frames, raw->head->nframes);
	if (!err)
		err = find_first(t);
	if (!err)
		err = take_ip(t);
	for (uint32_t i = 0; !err && i < raw->head->nframes && !t->cut; i++)
		err = take_frame(t, i ? raw->frames[i] : t->first);
	if (!err)
		err = take_end(t);
	if (!err)
		err = take_ccs(t);
	/* the signal handler returns to the Haskell code that the signal interrupted */
	if (t->returns && t->in_hs && t->c.n == 1)
		ev->code = CODE_HASKELL;
	/* down to the thread's start: the runtime is about to enter Haskell code, or has left it */
	if (t->c.n &&
	    (t->outer_code == CODE_RTS || (!t->in_hs && raw->head->end == WIRE_END_COMPLETE)))
		ev->flags |= EV_OUTER_RTS;
	if (!err)
		err = intern_part(in, &t->hs, &ev->hs);
	if (!err)
		err = intern_part(in, &t->c, &ev->c);
	return err;
}

int stack__take(struct intake *in, struct seen *s, const struct raw_stack *raw, struct ev *ev)
{
	int err = 0;

	if (has_nothing(raw))
		ev->flags |= EV_NO_WALK;
	else
		err = take_all(in, s, raw, ev);
	if (!err)
		managers__look(in, s, ev);
	return err;
}

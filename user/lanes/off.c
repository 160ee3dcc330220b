/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * off: what a thread waited for while off the CPU: the foreign function and system call that it
 * slept in, the capability that it was to get again, or the place in the runtime.
 */
#include <stdio.h>
#include <string.h>

#include "lanes_priv.h"

static const char *const syscall_names[] = {
#include "syscall_names.h"
};

/* The outermost C function, which is the one that Haskell called; UINT32_MAX: unknown. */
static uint32_t called(const struct lanes *l, const struct ev *ev)
{
	struct pic_stack c = intake__part(l->in, ev->c);

	for (uint32_t i = 0; i < c.n; i++) {
		uint32_t shown = intake__shown(l->in, c.frames[i]);
		const struct pic_frame *frame =
			shown == UINT32_MAX ? NULL : picture__frame(l->pic, shown);

		if (frame && frame->kind != TF_KERNEL && frame->kind != TF_MARK)
			return shown;
	}
	return UINT32_MAX;
}

/* In place of a system call: it was stopped before it had a runtime. */
#define HELD 0
/* In place of a system call: stopped in whatever it did. */
#define STOPPED (WIRE_NO_SYSCALL - 1)

int off__book(struct lanes *l, const struct thread_lane *lane, enum thread_state state,
	      const struct ev *ev, uint64_t ns)
{
	uint32_t syscall = WIRE_NO_SYSCALL, function = UINT32_MAX;
	const struct seen_site *site = ev ? seen__site(l->seen, ev->site) : NULL;

	if (ev && (state == ST_SAFE_CALL_BLOCKED || state == ST_UNSAFE_CALL_BLOCKED ||
		   state == ST_RTS_BLOCKED || state == ST_FOREIGN_BLOCKED))
		syscall = ev->syscall;
	/* it waits for the one that it left (rts/Schedule.c, resumeThread: suspended_cap) */
	if (ev && state == ST_CAP_WAIT && ev->left != NO_CAP)
		syscall = ev->left;
	if (ev && ev->flags & EV_STOPPED)
		syscall = STOPPED;
	if (ev && state == ST_IDLE && ev->where == WIRE_WHERE_NOT_READY && ev->flags & EV_TRACED)
		syscall = HELD;
	if (site && state == ST_SAFE_CALL_BLOCKED)
		function = site->function;
	if (ev && state == ST_UNSAFE_CALL_BLOCKED)
		function = called(l, ev);
	return ledger__reason(l->ledger[LANE_THREAD], lane->seen->no, state, syscall, function,
			      (int64_t)ns);
}

static const char *text_of(struct lanes *l, const struct ledger_reason *r)
{
	const struct pic_frame *frame = picture__frame(l->pic, r->function);
	const char *syscall =
		r->syscall < ARRAY_SIZE(syscall_names) ? syscall_names[r->syscall] : NULL;
	const char *place = "";
	char number[32], text[256];

	if (r->syscall == STOPPED)
		return "stopped by a signal or a debugger";
	switch ((enum thread_state)r->state) {
	case ST_SAFE_CALL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
		place = frame ? frame->name : "";
		break;
	case ST_RTS_BLOCKED:
		place = "runtime";
		break;
	case ST_FOREIGN_BLOCKED:
		break;
	case ST_HASKELL_BLOCKED:
		return "memory (page fault)";
	case ST_CAP_WAIT:
		if (r->syscall == WIRE_NO_SYSCALL)
			return state__title(LANE_THREAD, r->state);
		snprintf(text, sizeof(text), "capability %u", r->syscall);
		return picture__string(l->pic, text);
	case ST_IDLE:
		/* in this mode, the only tracer is safescoped */
		if (r->syscall == HELD)
			return !strcmp(picture__session(l->pic)->mode, "command")
				       ? "safescoped: held at its start"
				       : "tracer: held at its start";
		return state__title(LANE_THREAD, r->state);
	default:
		return state__title(LANE_THREAD, r->state);
	}
	if (!syscall && r->syscall != WIRE_NO_SYSCALL) {
		snprintf(number, sizeof(number), "system call %u", r->syscall);
		syscall = number;
	}
	if (!syscall && !*place)
		return state__title(LANE_THREAD, r->state);
	if (!syscall || !*place || !strcmp(syscall, place))
		return picture__string(l->pic, syscall ? syscall : place);
	snprintf(text, sizeof(text), "%s: %s", place, syscall);
	return picture__string(l->pic, text);
}

static int by_ns(const void *pa, const void *pb)
{
	const struct pic_off_cpu *a = pa, *b = pb;

	return CMP(b->ns, a->ns) ?: strcmp(a->reason, b->reason);
}

int off__fill(struct lanes *l, const struct ledger_account *account, struct pic_lane *lane)
{
	struct pic_off_cpu *v = picture__alloc(l->pic, account->n_reasons, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < account->n_reasons; i++)
		v[i] = (struct pic_off_cpu){.reason = text_of(l, &account->reasons[i]),
					    .ns = account->reasons[i].ns};
	qsort(v, account->n_reasons, sizeof(*v), by_ns);
	lane->off_cpu = v;
	lane->n_off_cpu = account->n_reasons;
	return 0;
}

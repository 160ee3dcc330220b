/* SPDX-License-Identifier: GPL-2.0-or-later */
/* state_of: the state that a sample, or an off-CPU interval, shows. */
#include "lanes_priv.h"

static bool collects(const struct ev *ev, const struct seen *gcs, uint64_t start, uint64_t end)
{
	return ev->code == CODE_GC || (ev->flags & EV_GC_CODE) ||
	       (gcs && seen__in_gc(gcs, start, end));
}

/* The Haskell thread runs, or C code that it called without giving up its capability. */
static enum thread_state mutator_on(const struct ev *ev)
{
	if (ev->code == CODE_GC || (ev->flags & EV_GC_CODE))
		return ST_GC_WORK;
	/* What the RTS does for the mutator (newCAF, dirty_MUT_VAR, …) counts as Haskell. */
	if (ev->code == CODE_C && !(ev->flags & EV_OUTER_RTS))
		return ST_UNSAFE_CALL_CPU;
	return ST_HASKELL;
}

static enum thread_state by_code_on(const struct ev *ev)
{
	switch (ev->code) {
	case CODE_HASKELL:
		return ST_HASKELL;
	case CODE_GC:
		return ST_GC_WORK;
	case CODE_RTS:
		return ST_RTS;
	default:
		return ev->site ? ST_SAFE_CALL_CPU : ST_UNKNOWN;
	}
}

enum thread_state ev__state_on(const struct ev *ev, const struct seen *gcs, uint64_t start,
			       uint64_t end)
{
	switch (ev->where) {
	case WIRE_WHERE_HASKELL:
		return mutator_on(ev);
	case WIRE_WHERE_SAFE_CALL:
		return ST_SAFE_CALL_CPU;
	case WIRE_WHERE_RTS:
		/* The RTS already or still holds the capability while Haskell code runs its first
		 * or last instructions. */
		if (ev->code == CODE_HASKELL)
			return ST_HASKELL;
		return collects(ev, gcs, start, end) ? ST_GC_WORK : ST_RTS;
	case WIRE_WHERE_NO_CAP:
		return collects(ev, gcs, start, end) ? ST_GC_WORK : ST_RTS;
	case WIRE_WHERE_RESUMING:
		return ST_RTS;
	case WIRE_WHERE_NOT_READY:
		return ev->code == CODE_HASKELL ? ST_HASKELL : ST_RTS;
	case WIRE_WHERE_FOREIGN:
		return ST_FOREIGN_CPU;
	default:
		return by_code_on(ev);
	}
}

/* Off the CPU while holding a capability, in Haskell code or C code called from it. */
static enum thread_state mutator_off(const struct ev *ev)
{
	if (ev->code == CODE_GC || (ev->flags & EV_GC_CODE))
		return ST_GC_WAIT;
	if (ev->syscall == WIRE_NO_SYSCALL)
		return ST_HASKELL_BLOCKED;
	if (ev->code == CODE_RTS || (ev->flags & EV_OUTER_RTS))
		return ST_RTS_BLOCKED;
	/* Haskell code makes no system calls: only C code can sleep in one. */
	return ev->code == CODE_HASKELL ? ST_HASKELL_BLOCKED : ST_UNSAFE_CALL_BLOCKED;
}

enum thread_state ev__state_off(const struct ev *ev, const struct seen *gcs, uint64_t start,
				uint64_t end)
{
	/* it waits for the runtime's locks, not for anything in the call */
	if (ev->flags & EV_HANDOVER)
		return ST_RTS_BLOCKED;
	switch (ev->where) {
	case WIRE_WHERE_HASKELL:
		return mutator_off(ev);
	case WIRE_WHERE_SAFE_CALL:
		return ST_SAFE_CALL_BLOCKED;
	case WIRE_WHERE_RESUMING:
		return ST_CAP_WAIT;
	case WIRE_WHERE_RTS:
		return (ev->flags & EV_GC_SYNC) || collects(ev, gcs, start, end) ? ST_GC_WAIT
										 : ST_RTS_BLOCKED;
	case WIRE_WHERE_NO_CAP:
		return ev->code == CODE_GC || (ev->flags & EV_GC_CODE) ? ST_GC_WAIT : ST_IDLE;
	case WIRE_WHERE_NOT_READY:
		/* a command is held at its exec until it can be watched */
		return ev->flags & EV_TRACED ? ST_IDLE : ST_RTS_BLOCKED;
	case WIRE_WHERE_FOREIGN:
		return ST_FOREIGN_BLOCKED;
	default:
		return ev->site ? ST_SAFE_CALL_BLOCKED : ST_UNKNOWN;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* state: the names of the states, and which one a sample or a stay off the CPU tells of. */
#include "private.h"

static const struct {
	const char *name, *title;
	bool on_cpu;
} states[ST_MAX] = {
	[ST_HASKELL] = {"haskell", "Haskell", true},
	[ST_UNSAFE_CALL_CPU] = {"unsafe_call_cpu", "unsafe call", true},
	[ST_SAFE_CALL_CPU] = {"safe_call_cpu", "safe call", true},
	[ST_GC_WORK] = {"gc_work", "GC", true},
	[ST_RTS] = {"rts", "RTS", true},
	[ST_FOREIGN_CPU] = {"foreign_cpu", "foreign code", true},
	[ST_HASKELL_BLOCKED] = {"haskell_blocked", "Haskell, blocked", false},
	[ST_UNSAFE_CALL_BLOCKED] = {"unsafe_call_blocked", "unsafe call, blocked", false},
	[ST_SAFE_CALL_BLOCKED] = {"safe_call_blocked", "safe call, blocked", false},
	[ST_CAP_WAIT] = {"cap_wait", "waiting for a capability", false},
	[ST_GC_WAIT] = {"gc_wait", "waiting for GC", false},
	[ST_RTS_BLOCKED] = {"rts_blocked", "RTS, blocked", false},
	[ST_IDLE] = {"idle", "idle", false},
	[ST_FOREIGN_BLOCKED] = {"foreign_blocked", "foreign code, blocked", false},
	[ST_PREEMPTED] = {"preempted", "preempted", false},
	[ST_SAFE_CALL] = {"safe_call", "safe call", false},
	[ST_UNKNOWN] = {"unknown", "unknown", false},
};

const char *state__name(enum tl_state state)
{
	return (unsigned)state < ST_MAX ? states[state].name : "unknown";
}

const char *state__title(enum tl_state state)
{
	return (unsigned)state < ST_MAX ? states[state].title : "unknown";
}

bool state__on_cpu(enum tl_state state)
{
	return (unsigned)state < ST_MAX && states[state].on_cpu;
}

static bool collects(const struct ev *ev, bool in_gc)
{
	return in_gc || ev->code == CODE_GC || (ev->flags & EV_GC_CODE);
}

/* The Haskell thread runs, or C code that it called without giving up its capability. */
static enum tl_state mutator_on(const struct ev *ev)
{
	if (ev->code == CODE_GC || (ev->flags & EV_GC_CODE))
		return ST_GC_WORK;
	/* What the RTS does for the mutator (newCAF, dirty_MUT_VAR, …) is Haskell's own work. */
	if (ev->code == CODE_C && !(ev->flags & EV_OUTER_RTS))
		return ST_UNSAFE_CALL_CPU;
	return ST_HASKELL;
}

static enum tl_state by_code_on(const struct ev *ev)
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

enum tl_state ev__state_on(const struct ev *ev, bool in_gc)
{
	switch (ev->where) {
	case WIRE_WHERE_HASKELL:
		return mutator_on(ev);
	case WIRE_WHERE_SAFE_CALL:
		return ST_SAFE_CALL_CPU;
	case WIRE_WHERE_RTS:
		/* The RTS has the capability already, or still, while Haskell code runs its first
		 * or last instructions. */
		if (ev->code == CODE_HASKELL)
			return ST_HASKELL;
		return collects(ev, in_gc) ? ST_GC_WORK : ST_RTS;
	case WIRE_WHERE_NO_CAP:
		return collects(ev, in_gc) ? ST_GC_WORK : ST_RTS;
	case WIRE_WHERE_RESUMING:
	case WIRE_WHERE_NOT_READY:
		return ST_RTS;
	case WIRE_WHERE_FOREIGN:
		return ST_FOREIGN_CPU;
	default:
		return by_code_on(ev);
	}
}

/* Off the CPU with a capability in hand, in Haskell code or C code called from it. */
static enum tl_state mutator_off(const struct ev *ev)
{
	if (ev->code == CODE_GC || (ev->flags & EV_GC_CODE))
		return ST_GC_WAIT;
	if (ev->syscall == WIRE_NO_SYSCALL)
		return ST_HASKELL_BLOCKED;
	if (ev->code == CODE_RTS || (ev->flags & EV_OUTER_RTS))
		return ST_RTS_BLOCKED;
	/* Haskell code makes no system calls: it can only be C code that sleeps in one. */
	return ev->code == CODE_HASKELL ? ST_HASKELL_BLOCKED : ST_UNSAFE_CALL_BLOCKED;
}

enum tl_state ev__state_off(const struct ev *ev, bool in_gc)
{
	/* it waits for the runtime's locks, not for anything of the call */
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
		return collects(ev, in_gc) || (ev->flags & EV_GC_SYNC) ? ST_GC_WAIT
								       : ST_RTS_BLOCKED;
	case WIRE_WHERE_NO_CAP:
		return ev->code == CODE_GC || (ev->flags & EV_GC_CODE) ? ST_GC_WAIT : ST_IDLE;
	case WIRE_WHERE_NOT_READY:
		return ST_RTS_BLOCKED;
	case WIRE_WHERE_FOREIGN:
		return ST_FOREIGN_BLOCKED;
	default:
		return ev->site ? ST_SAFE_CALL_BLOCKED : ST_UNKNOWN;
	}
}

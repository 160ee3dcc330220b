/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * state: the names of the lanes' states, for the JSON report and for people, and how an OS thread
 * is judged by its time in them.
 */
#include <string.h>

#include "base/base.h"
#include "make.h"

enum { ON_CPU = 1, IDLE = 2 };

struct state {
	const char *name, *title;
	unsigned flags;
};

static const struct state thread_states[ST_MAX] = {
	[ST_HASKELL] = {"haskell", "Haskell", ON_CPU},
	[ST_UNSAFE_CALL_CPU] = {"unsafe_call_cpu", "unsafe call", ON_CPU},
	[ST_SAFE_CALL_CPU] = {"safe_call_cpu", "safe call", ON_CPU},
	[ST_GC_WORK] = {"gc_work", "GC", ON_CPU},
	[ST_RTS] = {"rts", "RTS", ON_CPU},
	[ST_FOREIGN_CPU] = {"foreign_cpu", "foreign code", ON_CPU},
	[ST_HASKELL_BLOCKED] = {"haskell_blocked", "Haskell, blocked", 0},
	[ST_UNSAFE_CALL_BLOCKED] = {"unsafe_call_blocked", "unsafe call, blocked", 0},
	[ST_SAFE_CALL_BLOCKED] = {"safe_call_blocked", "safe call, blocked", 0},
	[ST_CAP_WAIT] = {"cap_wait", "waiting for a capability", 0},
	[ST_GC_WAIT] = {"gc_wait", "waiting for GC", 0},
	[ST_RTS_BLOCKED] = {"rts_blocked", "RTS, blocked", 0},
	[ST_IDLE] = {"idle", "idle", IDLE},
	[ST_FOREIGN_BLOCKED] = {"foreign_blocked", "foreign code, blocked", 0},
	[ST_PREEMPTED] = {"preempted", "preempted", 0},
	[ST_SAFE_CALL] = {"safe_call", "safe call", 0},
	[ST_UNKNOWN] = {"unknown", "unknown", 0},
};

static const struct state cap_states[CS_MAX] = {
	[CS_HASKELL] = {"haskell", "Haskell", ON_CPU},
	[CS_UNSAFE_CALL] = {"unsafe_call", "unsafe call", 0},
	[CS_PREEMPTED] = {"preempted", "preempted", 0},
	[CS_GC] = {"gc", "GC", ON_CPU},
	[CS_RTS] = {"rts", "RTS", ON_CPU},
	[CS_IDLE] = {"idle", "idle", IDLE},
	[CS_DISABLED] = {"disabled", "disabled", IDLE},
	[CS_UNKNOWN] = {"unknown", "unknown", 0},
};

static const struct state haskell_states[HS_MAX] = {
	[HS_RUNNING] = {"running", "running", ON_CPU},
	[HS_UNSAFE_CALL] = {"unsafe_call", "unsafe call", 0},
	[HS_SAFE_CALL] = {"safe_call", "safe call", 0},
	[HS_RUNNABLE] = {"runnable", "runnable", 0},
	[HS_BLOCKED_MVAR] = {"blocked_mvar", "blocked on an MVar", 0},
	[HS_BLOCKED_STM] = {"blocked_stm", "blocked in STM", 0},
	[HS_BLOCKED_BLACKHOLE] = {"blocked_blackhole", "blocked on a black hole", 0},
	[HS_BLOCKED_IO] = {"blocked_io", "blocked on I/O", 0},
	[HS_BLOCKED_DELAY] = {"blocked_delay", "in threadDelay", 0},
	[HS_BLOCKED_OTHER] = {"blocked_other", "blocked", 0},
	[HS_GC] = {"gc", "GC", 0},
	[HS_UNKNOWN] = {"unknown", "unknown", 0},
};

static const struct {
	const struct state *v;
	unsigned n;
} kinds[LANE_KINDS] = {
	[LANE_CAPABILITY] = {cap_states, CS_MAX},
	[LANE_THREAD] = {thread_states, ST_MAX},
	[LANE_HASKELL] = {haskell_states, HS_MAX},
};

static const struct state *find(enum lane_kind kind, unsigned state)
{
	static const struct state unknown = {"unknown", "unknown", 0};

	return (unsigned)kind < LANE_KINDS && state < kinds[kind].n ? &kinds[kind].v[state]
								    : &unknown;
}

const char *state__name(enum lane_kind kind, unsigned state)
{
	return find(kind, state)->name;
}

const char *state__title(enum lane_kind kind, unsigned state)
{
	return find(kind, state)->title;
}

bool state__on_cpu(enum lane_kind kind, unsigned state)
{
	return find(kind, state)->flags & ON_CPU;
}

bool state__is_idle(enum lane_kind kind, unsigned state)
{
	return find(kind, state)->flags & IDLE;
}

unsigned state__part(enum lane_kind kind, unsigned state)
{
	unsigned flags = find(kind, state)->flags;

	return flags & ON_CPU ? 0 : flags & IDLE ? 2 : 1;
}

unsigned state__count(enum lane_kind kind)
{
	return (unsigned)kind < LANE_KINDS ? kinds[kind].n : 0;
}

/*
 * Percent of a thread's wall time: on the CPU, and in anything but idleness. A thread below both is
 * housekeeping. The second leaves room for waiting for a CPU: on a shared machine even a timer
 * thread does.
 */
#define QUIET_CPU  0.5
#define QUIET_REST 5.0
/* Percent of the time in which the thread had a CPU or needed none. One that waits for events for
 * most of that time but is on the CPU for more than this also does the program's work. */
#define MANAGER_CPU 10.0

uint64_t lane__busy_ns(const struct pic_lane *lane)
{
	uint64_t sum = 0;

	for (unsigned s = 0; s < ST_MAX; s++)
		if (s != ST_IDLE && s != ST_FOREIGN_BLOCKED && s != ST_SAFE_CALL_BLOCKED &&
		    s != ST_RTS_BLOCKED)
			sum += lane->states_ns[s];
	return sum;
}

void lane__judge(struct pic_lane *lane, uint64_t managed_ns)
{
	uint64_t wall = lane->end_ns - lane->start_ns;
	uint64_t not_idle = wall - MIN(wall, lane->states_ns[ST_IDLE]);
	uint64_t own = wall - MIN(wall, lane->states_ns[ST_PREEMPTED]);
	bool quiet = human__percent(lane->cpu_ns, wall) < QUIET_CPU;
	bool manages = managed_ns > own / 2 && human__percent(lane->cpu_ns, own) < MANAGER_CPU;

	lane->housekeeping = manages || (quiet && human__percent(not_idle, wall) < QUIET_REST);
	lane->asleep = lane->housekeeping ||
		       (quiet && human__percent(lane__busy_ns(lane), wall) < QUIET_REST);
}

bool cost_centre__is_overhead(const struct pic_cost_centre *centre)
{
	static const char *const overheads[] = {"system", "gc", "overhead", "idle", "dont_care"};

	for (size_t i = 0; i < ARRAY_SIZE(overheads); i++)
		if (!strcmp(centre->kind, overheads[i]))
			return true;
	return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* state_names: the names of capability and Haskell thread states, as in the contract and for
 * people, and which cost centres are the runtime's own. */
#include <string.h>

#include "base/base.h"
#include "timeline.h"

struct state_text {
	const char *name, *title;
};

static const struct state_text cap_states[CS_MAX] = {
	[CS_HASKELL] = {"haskell", "Haskell"},
	[CS_UNSAFE_CALL] = {"unsafe_call", "unsafe call"},
	[CS_PREEMPTED] = {"preempted", "preempted"},
	[CS_GC] = {"gc", "GC"},
	[CS_RTS] = {"rts", "RTS"},
	[CS_IDLE] = {"idle", "idle"},
	[CS_DISABLED] = {"disabled", "disabled"},
	[CS_UNKNOWN] = {"unknown", "unknown"},
};

static const struct state_text tso_states[HS_MAX] = {
	[HS_RUNNING] = {"running", "running"},
	[HS_UNSAFE_CALL] = {"unsafe_call", "unsafe call"},
	[HS_SAFE_CALL] = {"safe_call", "safe call"},
	[HS_RUNNABLE] = {"runnable", "runnable"},
	[HS_BLOCKED_MVAR] = {"blocked_mvar", "blocked on an MVar"},
	[HS_BLOCKED_STM] = {"blocked_stm", "blocked in STM"},
	[HS_BLOCKED_BLACKHOLE] = {"blocked_blackhole", "blocked on a black hole"},
	[HS_BLOCKED_IO] = {"blocked_io", "blocked on I/O"},
	[HS_BLOCKED_DELAY] = {"blocked_delay", "in threadDelay"},
	[HS_BLOCKED_OTHER] = {"blocked_other", "blocked"},
	[HS_GC] = {"gc", "GC"},
	[HS_UNKNOWN] = {"unknown", "unknown"},
};

const char *cap_state__name(enum tl_cap_state state)
{
	return (unsigned)state < CS_MAX ? cap_states[state].name : "unknown";
}

const char *cap_state__title(enum tl_cap_state state)
{
	return (unsigned)state < CS_MAX ? cap_states[state].title : "unknown";
}

const char *tso_state__name(enum tl_tso_state state)
{
	return (unsigned)state < HS_MAX ? tso_states[state].name : "unknown";
}

const char *tso_state__title(enum tl_tso_state state)
{
	return (unsigned)state < HS_MAX ? tso_states[state].title : "unknown";
}

bool cost_centre__is_overhead(const struct tl_cost_centre *centre)
{
	static const char *const kinds[] = {"system", "gc", "overhead", "idle", "dont_care"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(centre->kind, kinds[i]))
			return true;
	return false;
}

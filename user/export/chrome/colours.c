/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States in colours that chrome://tracing has names for (catapult, base/color_scheme.html). It
 * refuses a file with a name that it does not know: these are the ones that it has had since 2016.
 * Green runs, red and brown hold others up, yellow waits for a capability, grey waits for the
 * world, blue is in a safe call or could run. Perfetto makes colours of the names of slices, and so
 * has its own, as constant.
 */
#include "chrome_priv.h"

static const char *const colours[LANE_KINDS][LANE_STATES] = {
	[LANE_THREAD] =
		{
			[ST_HASKELL] = "rail_load",
			[ST_UNSAFE_CALL_CPU] = "bad",
			[ST_SAFE_CALL_CPU] = "rail_response",
			[ST_GC_WORK] = "rail_animation",
			[ST_RTS] = "good",
			[ST_FOREIGN_CPU] = "rail_idle",
			[ST_HASKELL_BLOCKED] = "thread_state_uninterruptible",
			[ST_UNSAFE_CALL_BLOCKED] = "terrible",
			[ST_SAFE_CALL_BLOCKED] = "generic_work",
			[ST_CAP_WAIT] = "startup",
			[ST_GC_WAIT] = "thread_state_iowait",
			[ST_RTS_BLOCKED] = "thread_state_sleeping",
			[ST_FOREIGN_BLOCKED] = "thread_state_sleeping",
			[ST_PREEMPTED] = "thread_state_runnable",
			[ST_SAFE_CALL] = "rail_response",
			[ST_UNKNOWN] = "black",
		},
	[LANE_CAPABILITY] =
		{
			[CS_HASKELL] = "rail_load",
			[CS_UNSAFE_CALL] = "terrible",
			[CS_PREEMPTED] = "thread_state_runnable",
			[CS_GC] = "rail_animation",
			[CS_RTS] = "good",
			[CS_DISABLED] = "generic_work",
			[CS_UNKNOWN] = "black",
		},
	[LANE_HASKELL] =
		{
			[HS_RUNNING] = "rail_load",
			[HS_UNSAFE_CALL] = "terrible",
			[HS_SAFE_CALL] = "rail_response",
			[HS_RUNNABLE] = "thread_state_runnable",
			[HS_BLOCKED_MVAR] = "thread_state_sleeping",
			[HS_BLOCKED_STM] = "thread_state_sleeping",
			[HS_BLOCKED_BLACKHOLE] = "bad",
			[HS_BLOCKED_IO] = "generic_work",
			[HS_BLOCKED_DELAY] = "generic_work",
			[HS_BLOCKED_OTHER] = "generic_work",
			[HS_GC] = "rail_animation",
			[HS_UNKNOWN] = "black",
		},
};

const char *chrome__colour(enum lane_kind kind, unsigned state)
{
	return state < LANE_STATES ? colours[kind][state] : NULL;
}

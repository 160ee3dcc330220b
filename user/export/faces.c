/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "faces.h"

const struct face_look face_looks[FACES] = {
	[FACE_HASKELL] = {"H", "Haskell", 36, "#009e73", "rail_load"},
	[FACE_UNSAFE] = {"U", "unsafe calls", 166, "#d55e00", "terrible"},
	[FACE_SAFE] = {"S", "safe calls", 32, "#1f83c4", "rail_response"},
	[FACE_GC] = {"G", "GC", 170, "#b65d94", "detailed_memory_dump"},
	[FACE_RTS] = {"R", "RTS", 245, "#808890", "generic_work"},
	[FACE_OTHER] = {"F", "foreign code", 137, "#a07b3c", "bad"},
	[FACE_IN_UNSAFE] = {"u", "in unsafe calls", 216, "#f2a477", "rail_animation"},
	[FACE_IN_SAFE] = {"s", "in safe calls", 153, "#9fd0f0", "thread_state_runnable"},
	[FACE_FOR_CAP] = {"c", "for a capability", 227, "#f0e442", "startup"},
	[FACE_FOR_GC] = {"g", "for GC", 218, "#e9c0d8", "thread_state_uninterruptible"},
	[FACE_IN_RTS] = {"r", "in the RTS", 251, "#c4c9ce", "cq_build_abandoned"},
	[FACE_IN_OTHER] = {"f", "in foreign code", 187, "#dccba4", "thread_state_unknown"},
	[FACE_FOR_PAGE] = {"m", "for memory", 115, "#8fd6bf", "thread_state_running"},
	[FACE_FOR_CPU] = {"p", "for a CPU", 214, "#e69f00", "thread_state_iowait"},
	[FACE_FOR_THREAD] = {"v", "for another thread", 182, "#cbb7e8", "cq_build_failed"},
	[FACE_FOR_VALUE] = {"b", "for a value", 95, "#7a4b58", "black"},
	[FACE_FOR_WORLD] = {"w", "for I/O or time", 152, "#bcdcdc", "thread_state_sleeping"},
	[FACE_IDLE] = {"·", "idle", 0, "#f4f4f4", NULL},
	[FACE_DISABLED] = {"-", "disabled", 0, "#d8d8d8", "cq_build_abandoned"},
	[FACE_UNKNOWN] = {"?", "unknown", 0, "#555555", "black"},
};

static const unsigned char of_thread[ST_MAX] = {
	[ST_HASKELL] = FACE_HASKELL,
	[ST_UNSAFE_CALL_CPU] = FACE_UNSAFE,
	[ST_SAFE_CALL_CPU] = FACE_SAFE,
	[ST_GC_WORK] = FACE_GC,
	[ST_RTS] = FACE_RTS,
	[ST_FOREIGN_CPU] = FACE_OTHER,
	[ST_HASKELL_BLOCKED] = FACE_FOR_PAGE,
	[ST_UNSAFE_CALL_BLOCKED] = FACE_IN_UNSAFE,
	[ST_SAFE_CALL_BLOCKED] = FACE_IN_SAFE,
	[ST_CAP_WAIT] = FACE_FOR_CAP,
	[ST_GC_WAIT] = FACE_FOR_GC,
	[ST_RTS_BLOCKED] = FACE_IN_RTS,
	[ST_IDLE] = FACE_IDLE,
	[ST_FOREIGN_BLOCKED] = FACE_IN_OTHER,
	[ST_PREEMPTED] = FACE_FOR_CPU,
	[ST_SAFE_CALL] = FACE_IN_SAFE,
	[ST_UNKNOWN] = FACE_UNKNOWN,
};

static const unsigned char of_capability[CS_MAX] = {
	[CS_HASKELL] = FACE_HASKELL,   [CS_UNSAFE_CALL] = FACE_UNSAFE,
	[CS_PREEMPTED] = FACE_FOR_CPU, [CS_GC] = FACE_GC,
	[CS_RTS] = FACE_RTS,	       [CS_IDLE] = FACE_IDLE,
	[CS_DISABLED] = FACE_DISABLED, [CS_UNKNOWN] = FACE_UNKNOWN,
};

static const unsigned char of_haskell[HS_MAX] = {
	[HS_RUNNING] = FACE_HASKELL,
	[HS_UNSAFE_CALL] = FACE_UNSAFE,
	[HS_SAFE_CALL] = FACE_IN_SAFE,
	[HS_RUNNABLE] = FACE_FOR_CAP,
	[HS_BLOCKED_MVAR] = FACE_FOR_THREAD,
	[HS_BLOCKED_STM] = FACE_FOR_THREAD,
	[HS_BLOCKED_BLACKHOLE] = FACE_FOR_VALUE,
	[HS_BLOCKED_IO] = FACE_FOR_WORLD,
	[HS_BLOCKED_DELAY] = FACE_FOR_WORLD,
	[HS_BLOCKED_OTHER] = FACE_FOR_THREAD,
	[HS_GC] = FACE_FOR_GC,
	[HS_UNKNOWN] = FACE_UNKNOWN,
};

enum face face__of(enum lane_kind kind, unsigned state)
{
	static const unsigned char *const of[LANE_KINDS] = {
		[LANE_CAPABILITY] = of_capability,
		[LANE_THREAD] = of_thread,
		[LANE_HASKELL] = of_haskell,
	};

	return state < state__count(kind) ? (enum face)of[kind][state] : FACE_UNKNOWN;
}

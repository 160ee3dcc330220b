/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A picture with all kinds of lanes, marks, flows and counters, and two processes; the second has
 * the pid of the first, hostile names, and numbers that contradict each other.
 */
#ifndef SAFESCOPED_TEST_EXPORT_LANES_H
#define SAFESCOPED_TEST_EXPORT_LANES_H

#include "test_export_kit.h"

#define MS UINT64_C(1000000)
#define T0 UINT64_C(10368000000000000)

enum { F_MAIN, F_FIB, F_SLEEP, F_BLOCKED, F_GC, F_EVIL };

static const struct pic_frame lanes_frames[] = {
	[F_MAIN] = {"Main.main", "Main", "", "Main", "", TF_HASKELL, false},
	[F_FIB] = {"Main.fib", "Main", "", "Main", "", TF_HASKELL, false},
	[F_SLEEP] = {"usleep", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_BLOCKED] = {"[safe call, blocked]", "", "", "state", "", TF_STATE, false},
	[F_GC] = {"[GC]", "", "", "state", "", TF_STATE, false},
	[F_EVIL] = {"\"\\\n\xff</script>", "", "", "", "", TF_FOREIGN, false},
};

enum { S_EMPTY, S_MAIN, S_FIB, S_SLEEP, S_GC, S_EVIL };

static const struct pic_stack lanes_stacks[] = {
	[S_EMPTY] = {0},
	[S_MAIN] = STACK(F_MAIN),
	[S_FIB] = STACK(F_MAIN, F_FIB),
	[S_SLEEP] = STACK(F_MAIN, F_SLEEP, F_BLOCKED),
	[S_GC] = STACK(F_GC),
	[S_EVIL] = STACK(F_EVIL),
};

static const struct pic_slice lanes_worker[] = {
	{.start_ns = T0, .end_ns = T0 + 10 * MS + 1, .stack = S_FIB, .state = ST_HASKELL},
	{.start_ns = T0 + 10 * MS + 1,
	 .end_ns = T0 + 12 * MS,
	 .stack = S_MAIN,
	 .state = ST_HASKELL},
	{.start_ns = T0 + 12 * MS,
	 .end_ns = T0 + 60 * MS,
	 .stack = S_SLEEP,
	 .state = ST_SAFE_CALL_BLOCKED,
	 .exact = 1,
	 .cap = NO_CAP},
	{.start_ns = T0 + 60 * MS,
	 .end_ns = T0 + 65 * MS,
	 .stack = S_MAIN,
	 .state = ST_CAP_WAIT,
	 .exact = 1,
	 .cap = NO_CAP},
	{.start_ns = T0 + 65 * MS,
	 .end_ns = T0 + 90 * MS,
	 .stack = S_FIB,
	 .state = ST_HASKELL,
	 .cap = 1},
	{.start_ns = T0 + 90 * MS,
	 .end_ns = T0 + 100 * MS,
	 .stack = S_EMPTY,
	 .state = ST_IDLE,
	 .cap = NO_CAP},
};

static const struct pic_slice lanes_cap0[] = {
	{.start_ns = T0,
	 .end_ns = T0 + 12 * MS,
	 .tso = 7,
	 .tid = 42,
	 .stack = S_FIB,
	 .state = CS_HASKELL,
	 .exact = 1},
	{.start_ns = T0 + 12 * MS,
	 .end_ns = T0 + 20 * MS,
	 .tid = 43,
	 .stack = S_GC,
	 .state = CS_GC,
	 .exact = 1},
	{.start_ns = T0 + 20 * MS, .end_ns = T0 + 100 * MS, .state = CS_IDLE},
};

static const struct pic_slice lanes_cap1[] = {
	{.start_ns = T0,
	 .end_ns = T0 + 65 * MS,
	 .tso = 9,
	 .tid = 43,
	 .stack = S_MAIN,
	 .state = CS_HASKELL},
	{.start_ns = T0 + 65 * MS,
	 .end_ns = T0 + 90 * MS,
	 .tso = 7,
	 .tid = 42,
	 .stack = S_FIB,
	 .state = CS_HASKELL},
	{.start_ns = T0 + 90 * MS,
	 .end_ns = T0 + 100 * MS,
	 .tid = 42,
	 .stack = S_SLEEP,
	 .state = CS_UNSAFE_CALL},
};

static struct pic_lane lanes_caps[] = {
	{.cap = 0,
	 .start_ns = T0,
	 .end_ns = T0 + 100 * MS,
	 .states_ns = {[CS_HASKELL] = 12 * MS, [CS_GC] = 8 * MS, [CS_IDLE] = 80 * MS},
	 .slices = lanes_cap0,
	 .n_slices = ARRAY_SIZE(lanes_cap0)},
	{.cap = 1,
	 .start_ns = T0,
	 .end_ns = T0 + 100 * MS,
	 .states_ns = {[CS_HASKELL] = 90 * MS, [CS_UNSAFE_CALL] = 10 * MS},
	 .slices = lanes_cap1,
	 .n_slices = ARRAY_SIZE(lanes_cap1)},
};

static const struct pic_slice lanes_tso7[] = {
	{.start_ns = T0,
	 .end_ns = T0 + 12 * MS,
	 .stack = S_FIB,
	 .cap = 0,
	 .tid = 42,
	 .state = HS_RUNNING},
	{.start_ns = T0 + 12 * MS,
	 .end_ns = T0 + 65 * MS,
	 .stack = S_SLEEP,
	 .cap = NO_CAP,
	 .state = HS_SAFE_CALL},
	{.start_ns = T0 + 65 * MS,
	 .end_ns = T0 + 90 * MS,
	 .stack = S_FIB,
	 .cap = 1,
	 .tid = 42,
	 .state = HS_RUNNING},
};

static struct pic_lane lanes_tsos[] = {
	{.tso = 7,
	 .name = "main λ",
	 .bound = true,
	 .start_ns = T0,
	 .end_ns = T0 + 90 * MS,
	 .states_ns = {[HS_RUNNING] = 37 * MS, [HS_SAFE_CALL] = 53 * MS},
	 .slices = lanes_tso7,
	 .n_slices = ARRAY_SIZE(lanes_tso7)},
};

static struct pic_lane lanes_threads[] = {
	{.tid = 42,
	 .name = "worker",
	 .start_ns = T0,
	 .end_ns = T0 + 100 * MS,
	 .states_ns = {[ST_HASKELL] = 37 * MS,
		       [ST_SAFE_CALL_BLOCKED] = 48 * MS,
		       [ST_CAP_WAIT] = 5 * MS,
		       [ST_IDLE] = 10 * MS},
	 .slices = lanes_worker,
	 .n_slices = ARRAY_SIZE(lanes_worker)},
};

static const struct pic_gc_event lanes_gcs[] = {
	{.start_ns = T0 + 12 * MS,
	 .end_ns = T0 + 20 * MS,
	 .sync_ns = 1 * MS,
	 .number = 3,
	 .generation = 1,
	 .tid = 43},
	{.start_ns = T0 + 30 * MS,
	 .end_ns = T0 + 30 * MS + 1,
	 .sync_ns = UINT64_MAX,
	 .number = UINT64_MAX,
	 .generation = -1},
};

static const struct pic_mark lanes_marks[] = {
	{.ns = T0 + 5 * MS, .text = "begin", .tso = 7, .cap = 0, .kind = MK_USER_MARKER},
	{.ns = T0 + 6 * MS, .text = "hello", .cap = UINT32_MAX, .kind = MK_USER_MESSAGE},
};

static const struct pic_flow lanes_flows[] = {
	{.start_ns = T0 + 12 * MS,
	 .end_ns = T0 + 60 * MS,
	 .back_ns = T0 + 65 * MS,
	 .tso = 7,
	 .tid = 42,
	 .cap_from = 0,
	 .cap_to = 1,
	 .function = "usleep"},
	/* return not seen; to an idle capability; to a capability that does not exist */
	{.start_ns = T0 + 2 * MS,
	 .end_ns = T0 + 3 * MS,
	 .cap_from = 0,
	 .cap_to = 1,
	 .function = "a"},
	{.start_ns = T0 + 2 * MS,
	 .end_ns = T0 + 3 * MS,
	 .back_ns = T0 + 50 * MS,
	 .cap_from = 1,
	 .cap_to = 0,
	 .function = "b"},
	{.start_ns = T0 + 2 * MS,
	 .end_ns = T0 + 3 * MS,
	 .back_ns = T0 + 4 * MS,
	 .cap_from = 1,
	 .cap_to = UINT32_MAX,
	 .function = "c"},
};

static const struct pic_point lanes_runnable[] = {
	/* two points before the axis: the second one's value holds at its start */
	{T0 - 9, 5},
	{T0 - 1, 4},
	{T0 + 12 * MS, 2},
	{T0 + 99 * MS, 0},
	{T0 + 900 * MS, 1}};
static const struct pic_point lanes_band[] = {{T0 + 50 * MS, UINT64_C(1) << 40}};

static const struct pic_counter lanes_counters[] = {
	{.name = "runnable threads",
	 .unit = "threads",
	 .kind = TC_RUNNABLE,
	 .points = lanes_runnable,
	 .n_points = ARRAY_SIZE(lanes_runnable),
	 .max_value = 5},
	{.name = "Main.\"x\"",
	 .unit = "bytes",
	 .kind = TC_HEAP_PROFILE,
	 .points = lanes_band,
	 .n_points = 1},
};

/* Overlapping, going back in time, and empty slices; the thread's name fills its array. */
static const struct pic_slice lanes_evil[] = {
	{.start_ns = T0 + 5 * MS, .end_ns = T0 + 9 * MS, .stack = S_EVIL, .state = ST_FOREIGN_CPU},
	{.start_ns = T0 + 7 * MS, .end_ns = T0 + 7 * MS, .stack = S_EVIL, .state = ST_RTS},
	{.start_ns = T0 + 8 * MS, .end_ns = T0 + 30 * MS, .stack = 999, .state = ST_UNKNOWN},
};

static struct pic_lane lanes_evil_threads[] = {
	{.tid = 1,
	 .name = "sixteen ;\n\"\\xxx9",
	 .start_ns = T0 + 5 * MS,
	 .end_ns = T0 + 30 * MS,
	 .slices = lanes_evil,
	 .n_slices = ARRAY_SIZE(lanes_evil)},
};

static const struct pic_gc_event lanes_evil_gcs[] = {
	{.start_ns = T0 + 20 * MS,
	 .end_ns = T0 + 22 * MS,
	 .sync_ns = UINT64_MAX - 1,
	 .number = UINT64_MAX,
	 .generation = -1},
	{.start_ns = T0 + 21 * MS,
	 .end_ns = T0 + 23 * MS,
	 .sync_ns = 5 * MS,
	 .number = 0,
	 .generation = INT32_MAX},
};

static const struct pic_target lanes_targets[] = {
	{.pid = 4242,
	 .comm = "service",
	 .exe = "/bin/service",
	 .build_id = "00ff",
	 .lanes[LANE_THREAD] = LANES(lanes_threads),
	 .lanes[LANE_CAPABILITY] = LANES(lanes_caps),
	 .lanes[LANE_HASKELL] = LANES(lanes_tsos),
	 .gcs = lanes_gcs,
	 .n_gcs = 2,
	 .marks = lanes_marks,
	 .n_marks = 2,
	 .flows = lanes_flows,
	 .n_flows = ARRAY_SIZE(lanes_flows),
	 .counters = lanes_counters,
	 .n_counters = 2},
	{.pid = 4242,
	 .comm = "ev\"il\n\xff",
	 .exe = "/bin/evil",
	 .lanes[LANE_THREAD] = LANES(lanes_evil_threads),
	 .gcs = lanes_evil_gcs,
	 .n_gcs = 2,
	 .flows = lanes_flows,
	 .n_flows = 1},
};

static const struct sketch lanes = {
	.session = {.version = "0.1.0\"",
		    .mode = "system",
		    .start_ns = T0,
		    .end_ns = T0 + 100 * MS,
		    .start_unix_ns = UINT64_C(1767225600123456789)},
	.targets = lanes_targets,
	.n_targets = ARRAY_SIZE(lanes_targets),
	.frames = lanes_frames,
	.n_frames = ARRAY_SIZE(lanes_frames),
	.stacks = lanes_stacks,
	.n_stacks = ARRAY_SIZE(lanes_stacks),
};

/* A thread that only slept, in a process without census or allocation. */
static inline struct sketch idle_one(struct pic_slice *slice, struct pic_lane *lane,
				     struct pic_target *target)
{
	struct sketch one = lanes;

	*slice = (struct pic_slice){.start_ns = T0, .end_ns = T0 + 100 * MS, .state = ST_IDLE};
	*lane = (struct pic_lane){
		.tid = 7, .name = "w", .end_ns = T0 + 100 * MS, .slices = slice, .n_slices = 1};
	*target = (struct pic_target){.pid = 7,
				      .comm = "idle",
				      .exe = "/idle",
				      .lanes[LANE_THREAD] = {.v = lane, .n = 1}};
	one.targets = target;
	one.n_targets = 1;
	return one;
}

#endif

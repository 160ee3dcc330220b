/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pictures of the golden tests: a normal service, one with hostile names and numbers
 * throughout, and an empty session.
 */
#ifndef SAFESCOPED_TEST_EXPORT_PICTURES_H
#define SAFESCOPED_TEST_EXPORT_PICTURES_H

#include "test_export_kit.h"

/* ── a service: Haskell code that hashes, a safe call that waits, one that works ─────────── */

#define MS UINT64_C(1000000)
/* A time on a machine that has been up for four months: more than 2^53 nanoseconds. */
#define T0 UINT64_C(10368000000000000)

enum {
	F_MAIN,
	F_SERVE,
	F_FIB,
	F_FIB_AGAIN, /* a different frame that looks the same in every format */
	F_USLEEP,
	F_HASH,
	F_HASKELL,
	F_SAFE_BLOCKED,
	F_SAFE_CPU,
	F_IDLE,
	F_GC,
};

static const struct pic_frame service_frames[] = {
	[F_MAIN] = {"Main.main", "Main", "", "Main", "app/Main.hs:12", TF_HASKELL, false},
	[F_SERVE] = {"~Main.serve", "Main", "", "Main", "", TF_HASKELL, true},
	[F_FIB] = {"Data.Fib.fib", "Data.Fib", "fib-1.0", "Data.Fib", "src/Data/Fib.hs:7",
		   TF_HASKELL, false},
	[F_FIB_AGAIN] = {"Data.Fib.fib", "Data.Fib", "fib-1.1", "Data.Fib", "src/Data/Fib.hs:7",
			 TF_HASKELL, false},
	[F_USLEEP] = {"usleep", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_HASH] = {"hash_block", "", "", "demo", "cbits/hash.c:101", TF_FOREIGN, false},
	[F_HASKELL] = {"[Haskell]", "", "", "state", "", TF_STATE, false},
	[F_SAFE_BLOCKED] = {"[safe call, blocked]", "", "", "state", "", TF_STATE, false},
	[F_SAFE_CPU] = {"[safe call]", "", "", "state", "", TF_STATE, false},
	[F_IDLE] = {"[idle]", "", "", "state", "", TF_STATE, false},
	[F_GC] = {"[GC work]", "", "", "GC", "", TF_STATE, false},
};

#define SLICE(from, to, at, what, is_exact, on)                                                    \
	{                                                                                          \
		.start_ns = (from), .end_ns = (to), .stack = (at), .state = (what),                \
		.exact = (is_exact), .cap = (on), .samples = SAMPLES(what, (to) - (from))          \
	}
/* One sample per 10 ms on the CPU. */
#define SAMPLES(what, ns) ((what) <= ST_FOREIGN_CPU ? (uint32_t)((ns) / (10 * MS)) : 0)

enum { S_EMPTY, S_FIB, S_FIB_AGAIN, S_SLEEP, S_HASH, S_IDLE, S_GC };

static const struct pic_stack service_stacks[] = {
	[S_EMPTY] = {0},
	[S_FIB] = STACK(F_MAIN, F_SERVE, F_FIB, F_HASKELL),
	[S_FIB_AGAIN] = STACK(F_MAIN, F_SERVE, F_FIB_AGAIN, F_HASKELL),
	[S_SLEEP] = STACK(F_MAIN, F_USLEEP, F_SAFE_BLOCKED),
	[S_HASH] = STACK(F_MAIN, F_SERVE, F_HASH, F_SAFE_CPU),
	[S_IDLE] = STACK(F_IDLE),
	[S_GC] = STACK(F_GC),
};

/* A session of 1 s. Not all lanes cover it, and no boundary is on a whole microsecond. */
static const struct pic_slice service_main[] = {
	SLICE(T0, T0 + 300 * MS + 333, S_FIB, ST_HASKELL, 0, 0),
	SLICE(T0 + 300 * MS + 333, T0 + 400 * MS + 1, S_FIB_AGAIN, ST_HASKELL, 0, 0),
	SLICE(T0 + 400 * MS + 1, T0 + 900 * MS + 499, S_SLEEP, ST_SAFE_CALL_BLOCKED, 1, NO_CAP),
	SLICE(T0 + 900 * MS + 499, T0 + 900 * MS + 499, S_HASH, ST_SAFE_CALL_CPU, 1, NO_CAP),
	SLICE(T0 + 900 * MS + 499, T0 + 1000 * MS, S_FIB, ST_HASKELL, 0, 0),
};

static const struct pic_slice service_worker[] = {
	SLICE(T0 + 250 * MS, T0 + 500 * MS, S_IDLE, ST_IDLE, 1, NO_CAP),
	SLICE(T0 + 500 * MS, T0 + 510 * MS + 7, S_GC, ST_GC_WORK, 1, 1),
	SLICE(T0 + 510 * MS + 7, T0 + 610 * MS, S_HASH, ST_SAFE_CALL_CPU, 1, NO_CAP),
	SLICE(T0 + 610 * MS, T0 + 800 * MS, S_IDLE, ST_IDLE, 1, NO_CAP),
};

static struct pic_lane service_lanes[] = {
	{
		.tid = 4242,
		.name = "service",
		.start_ns = T0,
		.end_ns = T0 + 1000 * MS,
		.cpu_ns = 499 * MS + 999502,
		.states_ns =
			{[ST_HASKELL] = 499 * MS + 999502, [ST_SAFE_CALL_BLOCKED] = 500 * MS + 498},
		.sampled_states = 1u << ST_HASKELL,
		.slices = service_main,
		.n_slices = ARRAY_SIZE(service_main),
	},
	{
		.kind = LANE_THREAD,
		.tid = 4243,
		.name = "ghc_worker",
		.start_ns = T0 + 250 * MS,
		.end_ns = T0 + 800 * MS,
		.cpu_ns = 110 * MS,
		.states_ns = {[ST_IDLE] = 440 * MS,
			      [ST_GC_WORK] = 10 * MS + 7,
			      [ST_SAFE_CALL_CPU] = 99 * MS + 999993},
		.short_calls = 3,
		.merged_ns = 1000000,
		.slices = service_worker,
		.n_slices = ARRAY_SIZE(service_worker),
	},
};

static const struct pic_call service_calls[] = {
	{
		.function = "usleep",
		.library = "libc.so.6",
		.caller = "Main.main",
		.site = "service+0x4d2f1",
		.calls = 5,
		.wall_ns = 500 * MS + 498,
		.handover_ns = 1 * MS + 7,
		.cpu_ns = 61234,
		.blocked_ns = 500 * MS - 60736,
		.cap_wait_ns = 4321,
		.min_ns = 99 * MS,
		.p50_ns = 100 * MS,
		.p99_ns = 101 * MS,
		.max_ns = 101 * MS + 1,
		.quantile_error = 0.0625,
		.open_at_end = 1,
		.open_wall_ns = 42 * MS,
		.exact = true,
		.observed_share = 1,
	},
	{
		.function = "hash_block",
		.library = "service",
		.caller = "Main.serve",
		.caller_approximate = true,
		.site = "service+0x4d3a0",
		.interruptible = true,
		.calls = 1234567,
		.wall_ns = 99 * MS + 999993,
		.handover_ns = 5 * MS,
		.cpu_ns = 99 * MS + 999993,
		.blocked_ns = 0,
		.cap_wait_ns = UINT64_MAX,
		.min_ns = UINT64_MAX,
		.p50_ns = UINT64_MAX,
		.p99_ns = UINT64_MAX,
		.max_ns = UINT64_MAX,
		.exact = false,
		.observed_share = 0.43,
	},
};

static const struct pic_unsafe service_unsafe[] = {
	{
		.function = "__gmpn_mul_1",
		.library = "libgmp.so.10",
		.caller = "Data.Fib.fib",
		.samples = 12,
		.cpu_ns = 121 * MS,
		.held_up_gc_ns = UINT64_MAX,
		.function_frame = UINT32_MAX,
		.caller_frame = UINT32_MAX,
	},
};

static const struct pic_function service_functions[] = {
	{"Data.Fib.fib", "Data.Fib", "Data.Fib", "fib-1.0", TF_HASKELL, 40, 52, 400 * MS, 520 * MS,
	 false},
	{"__gmpn_mul_1", "libgmp.so.10", "libgmp.so.10", "", TF_FOREIGN, 12, 12, 121 * MS, 121 * MS,
	 false},
	{"hash_block", "", "demo", "", TF_FOREIGN, 9, 9, 90 * MS, 90 * MS, false},
	{"Main.serve", "Main", "Main", "", TF_HASKELL, 0, 61, 0, 610 * MS, true},
	{"[safe call]", "", "state", "", TF_STATE, 9, 9, 90 * MS, 90 * MS, false},
};

static const struct pic_finding service_findings[] = {
	{.id = "f1",
	 .kind = "unsafe_call_held_up_gc",
	 .text = "GC waited 300 ms in 2 collections for capability 1, held up by the unsafe call "
		 "take_lock, called from Main.serve: a candidate for `safe`",
	 .where = "Main.serve (app/Main.hs:30)",
	 .ns = 300 * MS,
	 .longest = {T0 + 310 * MS, T0 + 500 * MS, NULL}},
	{.id = "f2",
	 .kind = "gc_share",
	 .text = "Garbage collection took 40 % of the program's CPU time (200 ms)",
	 .where = "",
	 .ns = 200 * MS,
	 .longest = {T0 + 500 * MS, T0 + 510 * MS + 7, &service_lanes[1]}},
};

static const char *service_missing[] = {
	"GC pauses: the program has no symbols; --symbols FILE would bring them",
};

static const struct pic_target service_target = {
	.pid = 4242,
	.ns_pid = 7,
	.comm = "service",
	.exe = "/usr/local/bin/service",
	.build_id = "00ff",
	.service = "demo.service",
	.cgroup = "/system.slice/demo.service",
	.container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.pod = "12345678-9abc-def0-1234-56789abcdef0",
	.ghc_version = "9.0.2",
	.way = "rts_thr",
	.version_known = true,
	.threaded = true,
	.layout_checked = true,
	.found_suspend = "symtab",
	.found_resume = "symtab",
	.found_tick = "callsites",
	.found_caps = "symtab",
	.start_time_ns = 123456789,
	.capabilities = 2,
	.attach_ns = T0 - 5,
	.attach_took_ns = 120 * MS,
	.end = "",
	.lanes[LANE_THREAD] = LANES(service_lanes),
	.calls = service_calls,
	.n_calls = ARRAY_SIZE(service_calls),
	.unsafe_calls = service_unsafe,
	.n_unsafe_calls = ARRAY_SIZE(service_unsafe),
	.functions = service_functions,
	.n_functions = ARRAY_SIZE(service_functions),
	.quality = {.samples = 61,
		    .haskell_samples = 40,
		    .complete = 58,
		    .elided = 1,
		    .resynchronised = 3,
		    .truncated = 1,
		    .haskell_complete = 39,
		    .broken = {[2] = 1, [15] = 1}},
	.names = {.exact = 6, .nearest = 3, .none = 1},
	.gc = {.known = true, .count = 3, .pause_ns = 12 * MS, .max_pause_ns = 5 * MS},
	.ticks = 100,
	.lost = {{"ring", 0}, {"off_stack_limit", 17}},
	.n_lost = 2,
	.lost_share = 0.0123,
	.probe_hits = 2469144,
	.bpf_ns = 1500000,
	.bpf_ns_known = true,
	.cost_known = true,
	.trap_ns_estimated = 6 * MS,
	.user_cpu_ns = 4 * MS,
	.max_rss_bytes = 33554432,
	.probes_paused_ns = 570 * MS,
	.missing = service_missing,
	.n_missing = 1,
	.findings = service_findings,
	.n_findings = ARRAY_SIZE(service_findings),
};

static const struct sketch service = {
	.session = {.version = "0.1.0",
		    .mode = "pid",
		    .start_ns = T0,
		    .end_ns = T0 + 1000 * MS,
		    .start_unix_ns = UINT64_C(1767225600123456789),
		    .frequency_hz = 99,
		    .period_ns = 10101010},
	.targets = &service_target,
	.n_targets = 1,
	.frames = service_frames,
	.n_frames = ARRAY_SIZE(service_frames),
	.stacks = service_stacks,
	.n_stacks = ARRAY_SIZE(service_stacks),
};

/* ── everything that other people can write into a name, and numbers at their ends ───────── */

static const struct pic_frame hostile_frames[] = {
	{"a;b\nc\td 42", "M;\x01", "", "\"quoted\\\"", "no line", TF_HASKELL, false},
	{"\xff\xc0\xaf\xed\xa0\x80 ok \xf4\x90\x80\x80", "", "", "", "x:99999999999", TF_FOREIGN,
	 false},
	{"", "", "", "", ":", TF_RTS, false},
	{"  blanks 1.5 ", "", "", "", "f:3", TF_FOREIGN, false},
	{"λ→\u2028\x7f\xc2\x85", "", "", "", "", TF_HASKELL, false},
	{"do_syscall 7", "", "", "vmlinux", "", TF_KERNEL, false},
};

static const struct pic_stack hostile_stacks[] = {
	{0}, STACK(0), STACK(0, 1, 2), STACK(2, 3), STACK(0, 4), STACK(2, 5),
};

#define HUGE_NS (UINT64_MAX / 4)

static const struct pic_slice hostile_slices[] = {
	SLICE(1, 1 + HUGE_NS, 1, ST_HASKELL, 1, 0),
	SLICE(1 + HUGE_NS, 400 + HUGE_NS, 2, ST_UNSAFE_CALL_BLOCKED, 1, 0),
	/* an explicit empty stack: time with a state but no frames */
	SLICE(400 + HUGE_NS, 900 + HUGE_NS, 0, ST_UNKNOWN, 1, 0),
	SLICE(900 + HUGE_NS, 901 + HUGE_NS, 3, ST_FOREIGN_CPU, 1, 0),
	SLICE(901 + HUGE_NS, 1901 + HUGE_NS, 4, ST_HASKELL, 1, 0),
	SLICE(1901 + HUGE_NS, 5000 + HUGE_NS, 5, ST_RTS, 1, 0),
};

static struct pic_lane hostile_lanes[] = {
	{
		.tid = 2147483647,
		.name = "sixteen ;\n\"\\xxx9",
		.start_ns = 1,
		.end_ns = 5000 + HUGE_NS,
		.cpu_ns = HUGE_NS,
		.states_ns = {[ST_HASKELL] = HUGE_NS + 1000,
			      [ST_UNSAFE_CALL_BLOCKED] = 399,
			      [ST_UNKNOWN] = 500,
			      [ST_FOREIGN_CPU] = 1,
			      [ST_RTS] = 3099},
		.sampled_states = UINT32_MAX,
		.short_calls = UINT64_MAX,
		.slices = hostile_slices,
		.n_slices = ARRAY_SIZE(hostile_slices),
	},
	{.tid = 0},
};

static const struct pic_call hostile_call = {
	.function = "\x1b[31mred",
	.calls = 0,
	.wall_ns = UINT64_MAX,
	.handover_ns = UINT64_MAX,
	.cpu_ns = UINT64_MAX,
	.blocked_ns = UINT64_MAX,
	.cap_wait_ns = UINT64_MAX,
	.min_ns = UINT64_MAX,
	.p50_ns = UINT64_MAX,
	.p99_ns = UINT64_MAX,
	.max_ns = UINT64_MAX - 1,
	.open_at_start = UINT64_MAX,
	.open_at_end = UINT64_MAX,
	.abandoned = UINT64_MAX,
	.observed_share = 1,
};

static const struct pic_finding hostile_finding = {
	.kind = "kind\"",
	.text = "  the  call \x1b[31m\xff\xff of a\nb, which has a name that is much too long"
		"_for_one_line_of_a_terminal_and_has_no_blank_in_it_at_all_and_goes_on_and_on_and_"
		"on_and",
	.where = "\x1b]0;",
	.ns = UINT64_MAX};

static const struct pic_target hostile_targets[] = {
	{
		.pid = 1,
		.comm = "my app;\x1b\xff",
		.exe = "/tmp/\"x\"\n",
		.lanes[LANE_THREAD] = LANES(hostile_lanes),
		.calls = &hostile_call,
		.n_calls = 1,
		.quality = {.samples = UINT64_MAX, .haskell_samples = 1},
		.lost = {{"a \x1b[2J", UINT64_MAX}},
		.n_lost = 1,
		.lost_share = 1,
		.max_rss_bytes = UINT64_MAX,
		.cost_known = true,
		.end = "exited",
		.exit_code = -1,
		.findings = &hostile_finding,
		.n_findings = 1,
	},
	/* nothing is known about this process, and it has no lanes */
	{.pid = 2},
};

static const struct sketch hostile = {
	.session = {.version = "0\"1",
		    .mode = "system",
		    .start_ns = 1,
		    .end_ns = 5000 + HUGE_NS,
		    .bpf_ns = 77,
		    .bpf_ns_known = true},
	.targets = hostile_targets,
	.n_targets = ARRAY_SIZE(hostile_targets),
	.frames = hostile_frames,
	.n_frames = ARRAY_SIZE(hostile_frames),
	.stacks = hostile_stacks,
	.n_stacks = ARRAY_SIZE(hostile_stacks),
};

/* ── nothing ─────────────────────────────────────────────────────────────────────────────── */

static const struct sketch empty = {
	.session = {.version = "0.1.0", .mode = "system", .start_ns = T0, .end_ns = T0},
};

#endif

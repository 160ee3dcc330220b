/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns of tables that several formats have. */
#include "columns.h"

#define CALL(member) offsetof(struct call_row, call.member)
static const struct column calls[] = {
	{"function", "function", CELL_NAME, CALL(function), 0, 0},
	{"library", NULL, CELL_TEXT, CALL(library), 0, 1},
	{"called from", "called from", CELL_NAME, CALL(caller), CALL(caller_approximate), 0},
	{"calls", "calls", CELL_COUNT, CALL(calls), CALL(exact), 0},
	{"hand-over", "hand-over before", CELL_NS, CALL(handover_ns), CALL(exact), 3},
	{"total", "total", CELL_NS, CALL(wall_ns), CALL(exact), 0},
	{"CPU", "CPU", CELL_NS, CALL(cpu_ns), CALL(exact), 0},
	{"blocked", "blocked", CELL_NS, CALL(blocked_ns), CALL(exact), 8},
	{"mean", NULL, CELL_NS, offsetof(struct call_row, mean_ns), 0, 5},
	{NULL, "median", CELL_NS, CALL(p50_ns), 0, 0},
	{"p99", "p99", CELL_NS, CALL(p99_ns), 0, 4},
	{"max", "max", CELL_NS, CALL(max_ns), 0, 6},
	{"cap wait", "then waited for a capability", CELL_NS, CALL(cap_wait_ns), CALL(exact), 0},
	{"", "notes", CELL_TEXT, offsetof(struct call_row, notes), 0, 7},
};
const struct columns call_columns = {calls, ARRAY_SIZE(calls)};

/* The times are sampled, since an unsafe call causes no event. */
#define UNSAFE(member) offsetof(struct pic_unsafe, member)
static const struct column unsafe_calls[] = {
	{"function", "function", CELL_NAME, UNSAFE(function), 0, 0},
	{"library", NULL, CELL_TEXT, UNSAFE(library), 0, 1},
	{"called from", "called from", CELL_NAME, UNSAFE(caller), UNSAFE(caller_approximate), 0},
	{"samples", "samples", CELL_COUNT, UNSAFE(samples), 0, 2},
	{"CPU", "CPU", CELL_ABOUT_NS, UNSAFE(cpu_ns), 0, 0},
	{"blocked", "blocked", CELL_ABOUT_NS, UNSAFE(blocked_ns), 0, 0},
	{"GC waited", "GC waited for it", CELL_KNOWN_NS, UNSAFE(held_up_gc_ns), 0, 0},
};
const struct columns unsafe_columns = {unsafe_calls, ARRAY_SIZE(unsafe_calls)};

#define FUNCTION(member) offsetof(struct function_row, member)
static const struct column functions[] = {
	{"self %", NULL, CELL_SHARE, FUNCTION(self), 0, 0},
	{"total %", NULL, CELL_SHARE, FUNCTION(total), 0, 0},
	{"CPU", NULL, CELL_NS, FUNCTION(function.self_ns), 0, 1},
	{"function", "function", CELL_NAME, FUNCTION(function.name), FUNCTION(function.approximate),
	 0},
	{"module", NULL, CELL_TEXT, FUNCTION(function.module), 0, 0},
	{NULL, "module", CELL_TEXT, FUNCTION(function.file), 0, 0},
	{NULL, "CPU, itself", CELL_NS, FUNCTION(function.self_ns), 0, 0},
	{NULL, "CPU, with what it calls", CELL_NS, FUNCTION(function.total_ns), 0, 0},
	{NULL, "samples, itself", CELL_COUNT, FUNCTION(function.self_samples), 0, 0},
	{NULL, "samples, with what it calls", CELL_COUNT, FUNCTION(function.total_samples), 0, 0},
};
const struct columns function_columns = {functions, ARRAY_SIZE(functions)};

#define CENTRE(member) offsetof(struct centre_row, member)
static const struct column centres[] = {
	{"self %", NULL, CELL_SHARE, CENTRE(self), 0, 0},
	{"total %", NULL, CELL_SHARE, CENTRE(total), 0, 0},
	{"cost centre", "cost centre", CELL_TEXT, CENTRE(centre.label), 0, 0},
	{"module", "module", CELL_TEXT, CENTRE(centre.module), 0, 0},
	{"source", "source", CELL_TEXT, CENTRE(centre.src_loc), 0, 0},
	{NULL, "self ticks", CELL_COUNT, CENTRE(centre.self_ticks), 0, 0},
	{NULL, "total ticks", CELL_COUNT, CENTRE(centre.total_ticks), 0, 0},
};
const struct columns centre_columns = {centres, ARRAY_SIZE(centres)};

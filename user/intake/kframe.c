/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kframe: finds the kernel frames that are there only because of the profiler: its BPF programs,
 * the tracepoint that called them, and a uprobe's trap. They are not part of what the program does.
 */
#include <ctype.h>

#include "intake_priv.h"

#define PROGRAM_PREFIX "bpf_prog_"
#define TAG_DIGITS     16 /* hex digits, then an underscore */

/* bpf/safescope.bpf.c; what these call is nearer the leaf and goes with them */
static const char *const programs[] = {"on_sample", "on_switch",   "on_wakeup",	 "on_fork",
				       "on_exit",   "on_exec",	   "on_name",	 "on_suspend",
				       "on_resume", "on_tick",	   "on_gc_sync", "on_gc_start",
				       "on_gc_end", "on_calibrate"};

static bool is_program(const char *name)
{
	size_t prefix = strlen(PROGRAM_PREFIX), i;

	if (strncmp(name, PROGRAM_PREFIX, prefix) != 0)
		return false;
	name += prefix;
	for (i = 0; i < TAG_DIGITS; i++)
		if (!isxdigit((unsigned char)name[i]))
			return false;
	if (name[i] != '_')
		return false;
	for (i = 0; i < ARRAY_SIZE(programs); i++)
		if (!strcmp(name + TAG_DIGITS + 1, programs[i]))
			return true;
	return false;
}

static bool begins(const char *name, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

enum kernel_frame kframe__of(const char *name)
{
	/* a user breakpoint's trap, and the single step after it (arch/x86/kernel/uprobes.c) */
	static const char *const traps[] = {"uprobe_",	     "asm_exc_int3", "exc_int3",
					    "asm_exc_debug", "exc_debug",    "__x64_sys_uprobe"};
	/* kernel/trace/bpf_trace.c, include/linux/tracepoint.h; the return from a trap */
	static const char *const machinery[] = {
		"bpf_trace_run",     "__bpf_trace_",	"__traceiter_",
		"__bpf_prog_",	     "bpf_trampoline_", "irqentry_exit_to_user",
		"exit_to_user_mode", "trace_call_bpf",	"perf_trace_"};

	if (is_program(name) || begins(name, traps, ARRAY_SIZE(traps)))
		return KERNEL_OURS;
	return begins(name, machinery, ARRAY_SIZE(machinery)) ? KERNEL_PROBE : KERNEL_PLAIN;
}

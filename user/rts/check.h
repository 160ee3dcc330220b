/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the finder's results with the live process, and learns what only the process can show:
 * which of the two Task layouts it has, where my_task is, whether the runtime is initialised.
 * Nothing of the process is used before this check has passed.
 */
#ifndef SAFESCOPED_RTS_CHECK_H
#define SAFESCOPED_RTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "layout.h"
#include "rts.h"

#define CHECK_MAX_CAPS	1024
#define CHECK_MAX_TASKS 4096
/* RtsOptsNone, Ignore, IgnoreAll, SafeOnly, All (rts/include/RtsAPI.h, since GHC 8.6). */
#define RTS_OPTS_KINDS 5

enum check_verdict {
	CHECK_OK = 0,
	CHECK_NOT_READY, /* no capabilities yet: before hs_init, or hs_exit has begun */
	CHECK_FAILED,	 /* see why */
};

struct check_result {
	enum check_verdict verdict;
	enum layout_variant variant;
	struct layout layout;
	uint32_t n_caps;
	uint64_t caps[CHECK_MAX_CAPS];
	uint64_t capabilities;	 /* address of the array, or of the pointer to it; 0: not found */
	uint64_t n_capabilities; /* address of the variable; 0: not found */
	bool caps_array;
	enum rts_found caps_found;
	bool tls_checked; /* my_task_tls is right for most of the Tasks examined */
	int64_t my_task_tls;
	uint32_t my_task_module; /* see wire_maps.h */
	uint32_t tasks, tsos;	 /* numbers of Tasks and TSOs confirmed */
	/* Which RTS options the program accepts: its RtsOptsEnabledEnum plus one; 0: unknown. */
	uint8_t rts_opts;
	/* the layout's offsets for the nursery, the run queue and the allocation counter hold */
	bool alloc_checked;
	char why[160];
};

/*
 * Reads the process for at most timeout_ms. `version` selects the layout. `patient`: a check that
 * fails is repeated before the failure is believed. -ETIMEDOUT, -ESRCH, -EPERM; a layout that does
 * not hold is not an error but CHECK_FAILED.
 */
int check__run(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
	       int timeout_ms, bool patient, struct check_result *ret_result,
	       bool *ret_version_known);

/* Validates a child's result: enumerations, bools, numbers and strings have valid values. */
bool check_result__is_one(const struct check_result *result);
/*
 * check__run() without waiting. *ret_check must be freed, or taken with check__take(). -EBUSY as
 * from guard__start().
 */
struct check;
int check__start(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
		 int timeout_ms, bool patient, struct check **ret_check);
/* As guard__fd(); -1: the result is there already. */
int check__fd(const struct check *check);
/* -EINPROGRESS: not finished. Otherwise returns what check__run() would, and frees the check. */
int check__take(struct check *check, struct check_result *ret_result, bool *ret_version_known);
/* NULL: does nothing. */
void check__free(struct check *check);

/* ── parts that the snapshot uses too; only inside of mem__guard() ───────────────────────── */

struct task_list {
	uint64_t tasks[CHECK_MAX_TASKS];
	uint32_t n;
};

/* All Tasks that are reachable from all_tasks or from the capabilities. */
void check__tasks(pid_t pid, const struct rts *rts, const struct layout *layout,
		  const uint64_t *caps, uint32_t n_caps, struct task_list *ret_list);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares what the finder found with the live process, and learns what only the process can show:
 * which of the two Task layouts it has, where my_task lies, whether it is initialised. Nothing of
 * the process is used before this has passed.
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
	uint64_t capabilities;	 /* of the array or of the pointer to it; 0: not found */
	uint64_t n_capabilities; /* of the variable; 0: not found */
	bool caps_array;
	enum rts_found caps_found;
	bool tls_checked; /* my_task_tls is right for every Task looked at */
	int64_t my_task_tls;
	uint32_t my_task_module; /* see wire.h */
	uint32_t tasks, tsos;	 /* how many were confirmed */
	/* Which RTS options the program takes: its RtsOptsEnabledEnum plus one, 0: not known. */
	uint8_t rts_opts;
	/* the nursery's and the run queue's places, and what was allocated, are where the layout
	 * has them */
	bool alloc_checked;
	char why[160];
};

/*
 * Reads the process for at most timeout_ms. `version` chooses the layout. `patient`: what does not
 * hold is looked at again and again before it is believed. -ETIMEDOUT, -ESRCH, -EPERM; a layout
 * that does not hold is no error but CHECK_FAILED.
 */
int check__run(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
	       int timeout_ms, bool patient, struct check_result *ret_result,
	       bool *ret_version_known);

/* What comes of a child that looked: enumerations, truths, numbers and texts are such. */
bool check_result__is_one(const struct check_result *result);
/*
 * The same without waiting: *ret_check is to be freed, or taken. -EBUSY as guard__start().
 */
struct check;
int check__start(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
		 int timeout_ms, bool patient, struct check **ret_check);
/* -1, and 0: it is over already. As guard__fd() and guard__due_ns(). */
int check__fd(const struct check *check);
/* -EINPROGRESS: it goes on. Otherwise check__run()'s result, and the check is freed. */
int check__take(struct check *check, struct check_result *ret_result, bool *ret_version_known);
/* NULL is fine. */
void check__free(struct check *check);

/* ── parts that the snapshot uses too; only inside of mem__guard() ───────────────────────── */

struct task_list {
	uint64_t tasks[CHECK_MAX_TASKS];
	uint32_t n;
};

/* All Tasks that can be reached, by all_tasks or from the capabilities. */
void check__tasks(pid_t pid, const struct rts *rts, const struct layout *layout,
		  const uint64_t *caps, uint32_t n_caps, struct task_list *ret_list);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internals of a target. Shared by the files of this room only. */
#ifndef SAFESCOPED_TARGET_PRIV_H
#define SAFESCOPED_TARGET_PRIV_H

#include "process/cgroup.h"
#include "process/image.h"
#include "process/proc.h"
#include "rts/check.h"
#include "rts/rts.h"
#include "target.h"

struct archives;
struct ccs_table;
struct file_cache;
struct names;
struct names_helpers;
struct names_kernel;
struct check;
struct snapshot_look;
struct census_look;
struct guard;

struct target {
	struct target_info info;
	struct proc_stat first; /* from when the target was opened */
	int pidfd;
	char exe[4096];
	char build_id[41];
	struct cgroup cgroup;
	char *symbols_path; /* --symbols, or NULL */
	bool force;
	bool starting, sample, unchecked;
	char why_sampled[256];	 /* "": it can be profiled */
	char why_no_probes[256]; /* see info.no_probes */
	char *reason;		 /* during target__open: buffer for the line about what is wrong */
	size_t reason_size;
	struct target_cache *cache; /* NULL: nothing is shared */
	struct images images;
	uint64_t maps_wanted_ns; /* when an address in no mapping last caused the maps to be read
				    again */
	struct rts rts;
	struct check_result check;
	struct names *names;
	struct ccs_table *ccs; /* for ccs_target.c; NULL: nothing was read */
	/* running looks; at most one of them is not NULL */
	struct check *checking;
	bool check_last;
	struct snapshot_look *snapshot;
	struct census_look *census;
	struct guard *living; /* living.c */
	bool no_freeze;	      /* it could not be stopped, which was reported */
};

/* cache.c: NULL if there is no cache. */
struct file_cache *target_cache__files(const struct target_cache *cache);
/* The table of kernel functions to be used for this address. It is read at the first call, and
 * again if it may be too old for the address. */
void target_cache__kernel(struct target_cache *cache, uint64_t addr, uint64_t now_ns,
			  struct names_kernel *ret_kernel);

/* NULL: there are none. */
const struct archives *target_cache__archives(const struct target_cache *cache);
struct debuginfod *target_cache__debuginfod(const struct target_cache *cache);
struct names_helpers *target_cache__helpers(const struct target_cache *cache);

/*
 * An executable that discover__is_plain() has found to be plain. If it changes it is another key,
 * by its size and the times of its last changes. On a host that runs a build, the same few
 * executables start hundreds of times a second; they need no place among the files that are kept
 * open.
 */
struct plain_key {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};
/* At this number all are forgotten, to be found again: about 120 bytes each. */
#define PLAIN_MAX 16384U
struct keyset;
struct keyset *target_cache__plain(const struct target_cache *cache);

/* Reports what is wrong, and what can be done: to standard error, or to the caller that asked for
 * the line. */
__attribute__((format(printf, 2, 3))) void target__refuse(struct target *t, const char *fmt, ...);

/* live.c: runs the check and waits for it; an unexpected state counts as wrong. Errors are reported
 * with their line. */
int live__check(struct target *target, enum target_verdict *ret_verdict);

/* live.c: readable once a snapshot need not wait for names any more; -1: it does not wait. */
int target__names_fd(const struct target *target);

/* snapshot.c: a running look. Like guard__fd() and guard__due_ns(). */
int snapshot_look__fd(const struct snapshot_look *look);
uint64_t snapshot_look__due_ns(const struct snapshot_look *look);

/* census.c: a running look. */
int census_look__fd(const struct census_look *look);
/* Kills the look. NULL is fine. */
void census_look__free(struct census_look *look);

/* ccs_target.c: cost-centre stacks of the target that were read. */
void ccs_table__free(struct ccs_table *table);

/* Sets info.probe_file and info.reach, for the image that holds the runtime. */
void probe__open_file(struct target *target);

/*
 * The probe in one of the runtime's functions; absent if there is no place for it, or if the place
 * is not in the image that holds the runtime. With `entry_state` the return address must still be
 * at rsp and the arguments in their registers, as at the function's first instruction.
 */
void probe__place(const struct target *target, enum rts_probed which, bool entry_state,
		  struct target_probe *ret_probe);

/* Fills info.wire and related fields from what the check confirmed. */
void target__fill_wire(struct target *target);
/* The same while nothing is confirmed: with WIRE_TARGET_UNCONFIRMED, or without a layout. */
void target__fill_wire_early(struct target *target);
/* The same for a process without a known runtime: all of its threads count as threads without
 * Haskell. */
void target__fill_wire_sampled(struct target *target);

/* target_names.c: makes target->names. */
int target__open_names(struct target *target);

/* The common part of the names that the runtime has as a library. */
#define RUNTIME_LIBRARY "libHSrts"
/* True if the program's code is in its file, so that it is not packed. */
bool target__has_code(const struct elf_file *elf);

#endif

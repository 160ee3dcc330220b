/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages between the daemon and the downloading process, and how files are kept. */
#ifndef SAFESCOPED_DEBUGINFOD_PRIV_H
#define SAFESCOPED_DEBUGINFOD_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "debuginfod.h"

#define BUILD_ID_MAX 64

/* What to request for a build-id: servers classify files with DWARF as debug files, and
 * executables, with symbols or without, as executables. */
enum debuginfod_kind { DEBUGINFOD_DEBUGINFO = 0, DEBUGINFOD_EXECUTABLE };

struct download_task {
	char build_id[BUILD_ID_MAX];
	uint32_t kind; /* enum debuginfod_kind */
	uint32_t skip; /* bit i: do not ask server i, which sent something else */
};

struct download_news {
	int32_t done;	 /* the task is over */
	int32_t err;	 /* its result, if it is over */
	uint32_t server; /* the one that sent the file */
	uint64_t bytes, total;
	char text[160]; /* error message */
};

/* The name used in URLs and in the directory. */
static inline const char *debuginfod_kind__name(enum debuginfod_kind kind)
{
	return kind == DEBUGINFOD_EXECUTABLE ? "executable" : "debuginfo";
}

/* ── download.c ──────────────────────────────────────────────────────────────────────────── */

/*
 * Downloads the tasks that arrive on `in` into `file`, each from its beginning, and reports to
 * `out`; returns when the daemon has closed its end. Runs in the confined process.
 */
void download__run(const struct debuginfod_opts *opts, int in, int out, int file);

/* ── keep.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Opens the cache directory, for all access to it; creates missing components. -EPERM: we are root,
 * and another user could replace its contents or the directory itself.
 */
int keep__open_cache(const char *path, int *ret_cache);
/* Opens the directory of a build-id in it. -EPERM: it belongs to another user. */
int keep__open_one(int cache, const char *build_id, int *ret_dir);
/* Creates an unlinked file in the directory. */
int keep__make_file(int cache, int *ret_fd);
/*
 * Begins to copy a file's first `size` bytes to the file for this build-id and name
 * (debuginfod_kind__name()): a copy, since the downloading process can still write to its own. The
 * descriptors stay open and belong to the caller.
 */
struct keeping;
int keep__begin(int file, uint64_t size, int cache, const char *build_id, const char *name,
		struct keeping **ret_keeping);
/*
 * Copies the next part. Once all is copied, the file gets its name if it has the right build-id and
 * symbols. -EAGAIN: there is more to copy; -EBUSY: there was no time to read it; -EBADMSG: wrong
 * build-id; -EMSGSIZE: its end is missing; -ENODATA: no symbols.
 */
int keep__go_on(struct keeping *keeping, const char *build_id);
/* NULL is fine. */
void keep__free(struct keeping *keeping);
/* Whether the file of that name and build-id is usable: 0, or errors as keep__go_on(). */
int keep__check(int cache, const char *build_id, const char *name);
/* The error as a text for people. */
const char *keep__why_not(int err);

/* ── trim.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Removes files that have not been read for a week, or for the time in the directory's file
 * "max_unused_age_s", and files left unfinished for a day; nothing else in the directory. `now`:
 * from time(). *ret_n_gone: number of files removed. An error: the directory cannot be read.
 */
int keep__trim(int cache, time_t now, size_t *ret_n_gone);

#endif

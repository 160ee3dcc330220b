/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon and the process that downloads send each other, and how files are kept. */
#ifndef SAFESCOPED_DEBUGINFOD_PRIV_H
#define SAFESCOPED_DEBUGINFOD_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "debuginfod.h"

#define BUILD_ID_MAX 64

/* What a server has of a build-id: it notes files that have DWARF as debug files, and executables
 * with their symbols, and those without, as such. */
enum debuginfod_kind { DEBUGINFOD_DEBUGINFO = 0, DEBUGINFOD_EXECUTABLE };

struct download_task {
	char build_id[BUILD_ID_MAX];
	uint32_t kind; /* enum debuginfod_kind */
};

struct download_news {
	int32_t done; /* it is over */
	int32_t err;  /* of one that is over */
	uint64_t bytes, total;
	char text[160]; /* what is wrong */
};

/* As it is called in URLs, and in the directory. */
static inline const char *debuginfod_kind__name(enum debuginfod_kind kind)
{
	return kind == DEBUGINFOD_EXECUTABLE ? "executable" : "debuginfo";
}

/* ── download.c ──────────────────────────────────────────────────────────────────────────── */

/*
 * Downloads what comes as tasks from `in` into `file`, from its beginning, and writes news to
 * `out`; returns when there is nobody any more who asks. In the confined process.
 */
void download__run(const struct debuginfod_opts *opts, int in, int out, int file);

/* ── keep.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Opens the directory in which files are kept, for all that is done there; what of it is not there
 * is made. -EPERM: we are root, and another user could put something else there, or in its place.
 */
int keep__open_cache(const char *path, int *ret_cache);
/* The directory of a build-id in it. -EPERM: of another user. */
int keep__open_one(int cache, const char *build_id, int *ret_dir);
/* A file in the directory that has no name any more. */
int keep__make_file(int cache, int *ret_fd);
/*
 * A file's first bytes become the file of that name (debuginfod_kind__name()) and build-id: a copy,
 * since the process that downloads can still write to what it has. The descriptors are the caller's
 * and stay open.
 */
struct keeping;
int keep__begin(int file, uint64_t size, int cache, const char *build_id, const char *name,
		struct keeping **ret_keeping);
/*
 * Copies a part of it; once all is copied it gets its name if it has the build-id and symbols.
 * -EAGAIN: there is more to copy; -EBUSY: there was no time to read it; -EBADMSG: it is of another
 * build-id; -ENODATA: it has no symbols.
 */
int keep__go_on(struct keeping *keeping, const char *build_id);
/* NULL is fine. */
void keep__free(struct keeping *keeping);
/* Whether the file of that name and build-id is of use: as keep__go_on(). */
int keep__check(int cache, const char *build_id, const char *name);

/* ── trim.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Removes what was kept and has not been read for a week, or for as long as the directory's file
 * "max_unused_age_s" has it, and what was left unfinished a day ago; nothing else that is there.
 * `now`: by time(). *ret_n_gone: files. An error: the directory cannot be read.
 */
int keep__trim(int cache, time_t now, size_t *ret_n_gone);

#endif

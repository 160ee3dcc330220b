/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon and the process that downloads send each other, and how files are kept. */
#ifndef SAFESCOPED_DEBUGINFOD_PRIV_H
#define SAFESCOPED_DEBUGINFOD_PRIV_H

#include <stdint.h>

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
 * Downloads what comes as tasks from `channel` into `file`, from its beginning, and sends news;
 * returns when there is nobody any more who asks. In the confined process.
 */
void download__run(const struct debuginfod_opts *opts, int channel, int file);

/* ── keep.c ──────────────────────────────────────────────────────────────────────────────── */

/* With those above it. */
int keep__make_directory(const char *path);
/* A file in the directory that has no name any more. */
int keep__make_file(const char *dir, int *ret_fd);
/*
 * Copies a file's first bytes to a path, if it has the build-id and symbols. -EBADMSG: it is of
 * another build-id; -ENODATA: it has no symbols; -EBUSY: there was no time to read it.
 */
int keep__file(int file, uint64_t size, const char *build_id, const char *path);
/* The same of one that is kept there: 0, or why it is of no use. */
int keep__check(const char *path, const char *build_id);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: debug files by their build-ids, from servers of the protocol of elfutils'
 * (debuginfod(8), "WEBAPI"), kept where its client library keeps them.
 *
 * A confined process speaks to the servers, and has nothing for them but what it is asked for:
 * it is started before anything is known. What it brings is copied, and kept once its own build-id
 * is the one that was asked for.
 */
#ifndef SAFESCOPED_DEBUGINFOD_H
#define SAFESCOPED_DEBUGINFOD_H

#include <limits.h>
#include <stddef.h>

#define DEBUGINFOD_MAX_URLS 8
#define DEBUGINFOD_URL_MAX  1024
/* Of one file: the largest that the elf room reads, twice. */
#define DEBUGINFOD_MAX_FILE (4ULL << 30)

struct debuginfod_opts {
	const char *urls[DEBUGINFOD_MAX_URLS]; /* asked in this order */
	size_t n;
	const char *cache; /* the directory; made if it is not there */
	int timeout_ms;	   /* of one file, from all servers */
};

/* What a server has of a build-id: it notes files that have DWARF as debug files, and executables
 * with their symbols, and those without, as such. */
enum debuginfod_kind { DEBUGINFOD_DEBUGINFO = 0, DEBUGINFOD_EXECUTABLE };

struct debuginfod;

/* Below 0 is printed. The strings are the caller's and stay. */
int debuginfod__new(const struct debuginfod_opts *opts, struct debuginfod **ret_debuginfod);
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * The file of a build-id (hex digits) as a path: from the directory, or else downloaded,
 * which is waited for, with a line now and then. -ENOENT: no server has it; -ETIMEDOUT; -EIO, what
 * is wrong is printed; -EPIPE: nothing can be asked any more.
 */
int debuginfod__fetch(struct debuginfod *debuginfod, const char *build_id,
		      enum debuginfod_kind kind, char ret_path[PATH_MAX]);

/* NULL: it can be used. Else what is wrong. */
const char *debuginfod__url_error(const char *url);

#endif

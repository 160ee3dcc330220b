/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: fetches files with symbols by their build-ids from servers that speak elfutils'
 * protocol (debuginfod(8), "WEBAPI"), and keeps them where its client library does.
 *
 * A confined process talks to the servers. It is started before the daemon has read anything, so it
 * knows nothing but what it is asked for. A downloaded file is copied, and kept only if its own
 * build-id is the one asked for. Files are downloaded one at a time while the session goes on.
 */
#ifndef SAFESCOPED_DEBUGINFOD_H
#define SAFESCOPED_DEBUGINFOD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DEBUGINFOD_MAX_URLS 8
#define DEBUGINFOD_URL_MAX  1024
/* Of one file: four times the largest that the elf room reads. */
#define DEBUGINFOD_MAX_FILE (4ULL << 30)
/* Of all files together, per day: what is asked for depends on executables that others wrote. */
#define DEBUGINFOD_MAX_ALL (16ULL << 30)
/* Files being asked for, in all and for one user; a file that has been over for ten minutes makes
 * room for another. */
#define DEBUGINFOD_MAX_WANTS	 1024
#define DEBUGINFOD_MAX_WANTS_FOR 128
/* When to ask again for a file that no server has: symbols may be published after a program is
 * started. */
#define DEBUGINFOD_NONE_MS 3600000

struct debuginfod_opts {
	const char *urls[DEBUGINFOD_MAX_URLS]; /* asked in this order */
	size_t n;
	const char *cache; /* the directory; created if it is missing */
	int timeout_ms;	   /* for one file, over all servers */
	int none_ms;	   /* DEBUGINFOD_NONE_MS, or less in tests */
};

struct debuginfod;

/* Copies the options' strings. Prints any error. */
int debuginfod__new(const struct debuginfod_opts *opts, struct debuginfod **ret_debuginfod);
/*
 * The same with the directory and the time limit that the client library would use, from
 * DEBUGINFOD_CACHE_PATH and DEBUGINFOD_TIMEOUT, and, if no URLs are given, the servers of
 * DEBUGINFOD_URLS: *ret_debuginfod is NULL if there are none, or if these cannot be used.
 */
int debuginfod__open(const char *const *urls, size_t n, struct debuginfod **ret_debuginfod);
/* NULL is fine. */
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * Finds the file with a symbol table for a build-id (hex digits): its debug file, or else the
 * executable itself. `account`: the user it is charged to (CONFINE_NOBODY: no one in particular).
 * -EAGAIN: it is being downloaded, or will be; -ENOENT: no server has it, and none is asked again
 * for an hour; any other error is printed once.
 */
int debuginfod__find(struct debuginfod *debuginfod, uid_t account, const char *build_id,
		     char ret_path[PATH_MAX]);
/* Why a requested file is not available; untrusted. NULL: it is, or may still come, or was not
 * requested; `debuginfod` NULL is fine. */
const char *debuginfod__why_not(const struct debuginfod *debuginfod, const char *build_id);
/*
 * Makes debuginfod__find() wait for downloads from now on, printing progress now and then, until a
 * time (CLOCK_MONOTONIC), or until the descriptor is readable (-1: none).
 */
void debuginfod__wait_until(struct debuginfod *debuginfod, uint64_t until_ns, int fd);
/* Time limit for one file. */
uint64_t debuginfod__timeout_ns(const struct debuginfod *debuginfod);

/* Readable when debuginfod__turn() has something to process. -1: never; NULL is fine. */
int debuginfod__fd(const struct debuginfod *debuginfod);
void debuginfod__turn(struct debuginfod *debuginfod);
/* Nothing can be downloaded any more. False for NULL. */
bool debuginfod__has_ended(const struct debuginfod *debuginfod);

/* How many requests have been completed, found or not. NULL is fine. */
size_t debuginfod__n_over(const struct debuginfod *debuginfod);

/* NULL if the URL can be used, else the reason. */
const char *debuginfod__url_error(const char *url);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfod: files with symbols by their build-ids, from servers of the protocol of elfutils'
 * (debuginfod(8), "WEBAPI"), kept where its client library keeps them.
 *
 * A confined process speaks to the servers, and has nothing for them but what it is asked for:
 * it is started before anything is known. What it brings is copied, and kept once its own build-id
 * is the one that was asked for. One file after the other is downloaded while its user does
 * something else.
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
/* Of one file: the largest that the elf room reads, twice. */
#define DEBUGINFOD_MAX_FILE (4ULL << 30)
/* Of all files together, in a day: what is asked for depends on executables that others wrote. */
#define DEBUGINFOD_MAX_ALL (16ULL << 30)
/* Files that are asked for, and those on one user's account; one that is over for ten minutes makes
 * room for another. */
#define DEBUGINFOD_MAX_WANTS	 1024
#define DEBUGINFOD_MAX_WANTS_FOR 128
/* What no server has is asked for again after that: symbols may be put there later than a program
 * is started. */
#define DEBUGINFOD_NONE_MS 3600000

struct debuginfod_opts {
	const char *urls[DEBUGINFOD_MAX_URLS]; /* asked in this order */
	size_t n;
	const char *cache; /* the directory; made if it is not there */
	int timeout_ms;	   /* of one file, from all servers */
	int none_ms;	   /* DEBUGINFOD_NONE_MS, or what a test can wait for */
};

struct debuginfod;

/* The options' strings are copied. Below 0 is printed. */
int debuginfod__new(const struct debuginfod_opts *opts, struct debuginfod **ret_debuginfod);
/*
 * The same with the directory and the time limit that the client library would take, by
 * DEBUGINFOD_CACHE_PATH and DEBUGINFOD_TIMEOUT, and if no URLs are given with the servers of
 * DEBUGINFOD_URLS: *ret_debuginfod is NULL if there are none, or if these cannot be asked.
 */
int debuginfod__open(const char *const *urls, size_t n, struct debuginfod **ret_debuginfod);
/* NULL is fine. */
void debuginfod__free(struct debuginfod *debuginfod);

/*
 * The file of a build-id (hex digits) that has a symbol table: its debug file, or else the
 * executable itself. Asked for on the account of a user (CONFINE_NOBODY: of nobody else's).
 * -EAGAIN: it is being downloaded, or is to be; -ENOENT: no server has it, and none is asked for
 * it before an hour has passed; others: an error, which is printed once.
 */
int debuginfod__find(struct debuginfod *debuginfod, uid_t account, const char *build_id,
		     char ret_path[PATH_MAX]);
/*
 * From now on debuginfod__find() waits for what is being downloaded, with a line now and then,
 * until a time (CLOCK_MONOTONIC), or until the descriptor is readable (-1: there is none).
 */
void debuginfod__wait_until(struct debuginfod *debuginfod, uint64_t until_ns, int fd);
/* How long one file may take. */
uint64_t debuginfod__timeout_ns(const struct debuginfod *debuginfod);

/* Readable when there is something for debuginfod__turn(), which takes it in. -1: never; NULL is
 * fine. */
int debuginfod__fd(const struct debuginfod *debuginfod);
void debuginfod__turn(struct debuginfod *debuginfod);
/* Nothing is downloaded any more. False for NULL. */
bool debuginfod__has_ended(const struct debuginfod *debuginfod);

/* How often one that was asked for was there, or was not found. NULL is fine. */
size_t debuginfod__n_over(const struct debuginfod *debuginfod);

/* NULL: it can be used. Else what is wrong. */
const char *debuginfod__url_error(const char *url);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: removes the files of a session's oldest windows. */
#ifndef SAFESCOPED_OUTPUT_ROTATE_PRIV_H
#define SAFESCOPED_OUTPUT_ROTATE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct output_opts;

/* "20261122T121530.250Z": sorts by time. */
#define ROTATE_TIME_SIZE 24
void rotate__time(uint64_t unix_ns, char ret_text[ROTATE_TIME_SIZE]);

/*
 * What is known of the windows in a directory. It is shared with all processes that are forked
 * after rotate__new(), of which any number may use it at a time, and any may be killed meanwhile.
 */
struct rotate;

/* NULL without a limit in `opts`, which must outlive it. -ENOMEM. */
int rotate__new(const struct output_opts *opts, const char *stem, uid_t owner,
		struct rotate **ret_rotate);
void rotate__free(struct rotate *r);

/*
 * Notes that the window that began then has been written (written false: it could not be), and
 * removes the oldest windows' files, STEM-TIME.SUFFIX in the directory of `opts`, until the rest is
 * within opts->keep, keep_bytes and keep_for_ns; the newest window is always kept. A window with a
 * time in the future, because the clock was set back, counts as the oldest for the first two
 * limits, and as not old for the third. Other files are left alone. Returns the first failure; the
 * remaining files are removed nevertheless.
 *
 * The directory is read at first, and then only for a small share of the time or when something
 * does not fit: what others remove or add may be noticed after up to ten minutes where there are
 * 100 000s of files, else at the next window. If far more files are there than may stay, it takes
 * some windows until they are removed.
 */
int rotate__window(struct rotate *r, uint64_t start_unix_ns, bool written);

/* ── reading the directory ───────────────────────────────────────────────────────────────── */

/* A window in the directory. */
struct rotate_window {
	uint64_t time; /* the digits of the time in its name, as a number */
	uint64_t bytes;
	uint32_t suffixes; /* the files that it has: bits by place__suffix()'s index */
};

/* The oldest windows, sorted by time once the directory has been read. */
struct rotate_oldest {
	struct rotate_window *v;
	size_t n, cap;
	size_t max;	/* how many are of interest */
	uint64_t limit; /* windows after this are not; 0: all are so far */
};

struct rotate_listing {
	struct rotate_oldest past, ahead; /* ahead: of the clock, which has been set back since */
	uint64_t bytes;			  /* of all windows */
	uint64_t newest;		  /* the last one that is past; 0: there is none */
};

uint64_t rotate__key(uint64_t unix_ns);
void rotate__name(const char *stem, uint64_t time, size_t suffix, char *name, size_t size);
/* Whether a file with such a name can be this user's window. Others' files in the directory are
 * neither counted nor removed: otherwise a terabyte file dated in the far future would cause all of
 * this user's to be removed. */
bool rotate__is_ours(const struct stat *st, uid_t owner);
/* Reads the directory, for the `max` oldest windows of each kind. The listing is to be freed on
 * failure as well. */
int rotate__list(int dir, const char *stem, uid_t owner, size_t max,
		 struct rotate_listing *ret_listing);
void rotate__free_listing(struct rotate_listing *listing);

#endif

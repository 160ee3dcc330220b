/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: removes the files of a session's oldest windows. */
#ifndef SAFESCOPED_OUTPUT_ROTATE_PRIV_H
#define SAFESCOPED_OUTPUT_ROTATE_PRIV_H

#include <stdint.h>
#include <sys/types.h>

struct output_opts;

/* "20261122T121530.250Z": sorts by time. */
#define ROTATE_TIME_SIZE 24
void rotate__time(uint64_t unix_ns, char ret_text[ROTATE_TIME_SIZE]);

/*
 * Removes the oldest windows' files, STEM-TIME.SUFFIX in the directory of `opts`, until the rest is
 * within opts->keep, keep_bytes and keep_for_ns; the newest window is always kept. A window with a
 * time in the future, because the clock was set back, counts as the oldest for the first two
 * limits, and as not old for the third. Other files are left alone. Returns the first failure; the
 * remaining files are removed nevertheless.
 */
int rotate__files(const struct output_opts *opts, const char *stem, uid_t owner);

#endif

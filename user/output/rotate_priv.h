/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rotate: removes the files of a session's oldest windows. */
#ifndef SAFESCOPED_OUTPUT_ROTATE_PRIV_H
#define SAFESCOPED_OUTPUT_ROTATE_PRIV_H

#include <stdint.h>
#include <sys/types.h>

struct output_opts;

/* "20261122T121530.250Z": names sort by time. */
#define ROTATE_TIME_SIZE 24
void rotate__time(uint64_t unix_ns, char ret_text[ROTATE_TIME_SIZE]);

/*
 * Removes the oldest windows' files, STEM-TIME.SUFFIX in the directory of `opts`, until what stays
 * is within opts->keep, keep_bytes and keep_for_ns; the newest window stays in any case. One whose
 * time is yet to come, since the clock was set back, is older than all others for the first two,
 * and for the third it is not old. Other files are left alone. Returns what failed first; the
 * others are gone all the same.
 */
int rotate__files(const struct output_opts *opts, const char *stem, uid_t owner);

#endif

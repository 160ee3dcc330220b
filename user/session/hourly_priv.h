/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which lines about programs the log already has. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_HOURLY_PRIV_H
#define SAFESCOPED_SESSION_HOURLY_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

/* Limit of lines per period; anything beyond it is still counted but not logged. */
#define HOURLY_MAX 128
#define HOURLY_NS  3600000000000ULL

/* Repetitions are suppressed: a program that cannot be profiled may be started thousands of times a
 * day. */
struct hourly {
	uint64_t v[HOURLY_MAX]; /* hashes of program and reason */
	size_t n;
	uint64_t began_ns; /* 0: nothing has been reported yet */
	bool full;	   /* the limit was reached, and this has been reported */
};

/*
 * True if a line about the process's program and this reason is due: there was none within the
 * hour. Reasons that differ only in numbers count as equal.
 */
bool hourly__is_new(struct hourly *hourly, pid_t pid, const char *why, uint64_t now);
/* Logs "pid N: WHAT: WHY" if that is due by hourly__is_new(). In a session of named pids every
 * process gets its line. */
void hourly__report(struct session *s, pid_t pid, const char *what, const char *why);

#endif

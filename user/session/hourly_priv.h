/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the log has about programs already. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_HOURLY_PRIV_H
#define SAFESCOPED_SESSION_HOURLY_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

/* So many lines in so long; what is more than that is counted, as ever, but not in the log. */
#define HOURLY_MAX 128
#define HOURLY_NS  3600000000000ULL

/* A program that cannot be profiled may be started thousands of times a day. */
struct hourly {
	uint64_t v[HOURLY_MAX]; /* of program and reason */
	size_t n;
	uint64_t began_ns; /* 0: nothing was reported yet */
	bool full;	   /* which was reported */
};

/*
 * Whether the program that the process runs is to have a line: it has had none within the hour.
 * Numbers do not make it another reason.
 */
bool hourly__is_new(struct hourly *hourly, pid_t pid, const char *why, uint64_t now);
/* A line "pid N: WHAT: WHY", if it is new. Who names processes gets one for each. */
void hourly__report(struct session *s, pid_t pid, const char *what, const char *why);

#endif

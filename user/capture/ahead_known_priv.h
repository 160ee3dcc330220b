/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_known: facts about a target that arrive later in the capture but hold from its start. A
 * replay without windows has them when it makes its lanes; one in windows needs them in the first
 * window.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_KNOWN_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_KNOWN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct intake;
struct intake_input;

struct known {
	bool calls_missed; /* from its last cost */
	bool ticked;
	uint32_t capabilities;
	uint64_t end_ns; /* the process's own end; 0: not seen */
};

struct ahead_known {
	struct known *v; /* by number of the target */
	size_t n, cap;
};

void ahead_known__free(struct ahead_known *known);
/* Takes an input of target number `no`; others than the relevant kinds are ignored. -ENOMEM. */
int ahead_known__look(struct ahead_known *known, size_t no, const struct intake_input *input);
/* Gives the intake what is known of target number `no`, which was just added with this pid.
 * last_ns: where an unfinished capture ends, else 0. */
void ahead_known__give(const struct ahead_known *known, size_t no, struct intake *in, pid_t pid,
		       uint64_t last_ns);

#endif

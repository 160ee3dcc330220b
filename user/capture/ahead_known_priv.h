/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_known: what comes later of a target, and is true from its begin on. A replay without
 * windows has it when it makes its lanes; one in windows is to have it in the first.
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
	bool calls_missed; /* by its last cost */
	bool ticked;
	uint32_t capabilities;
	uint64_t end_ns; /* the process's own; 0: none was seen */
};

struct ahead_known {
	struct known *v; /* by the target's number */
	size_t n, cap;
};

void ahead_known__free(struct ahead_known *known);
/* An input of target number `no`; what it does not concern is left alone. -ENOMEM. */
int ahead_known__look(struct ahead_known *known, size_t no, const struct intake_input *input);
/* Target number `no` has just been added, with this pid; last_ns: where a capture ends that was not
 * finished, else 0. */
void ahead_known__give(const struct ahead_known *known, size_t no, struct intake *in, pid_t pid,
		       uint64_t last_ns);

#endif

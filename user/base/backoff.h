/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * backoff: when to try again what failed for want of time. The first pause is short, and each one
 * after that is twice as long as the last: what the machine was too busy for is soon there, and
 * what goes on to fail costs next to nothing.
 */
#ifndef SAFESCOPED_BASE_BACKOFF_H
#define SAFESCOPED_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed there is no pause, and the next one is the first. */
struct backoff {
	uint64_t until_ns;
	uint64_t ns; /* how long the last one was */
};

/* It failed now. */
void backoff__begin(struct backoff *backoff, uint64_t now, uint64_t first_ns, uint64_t longest_ns);

/* It is not to be tried now. */
static inline bool backoff__waits(const struct backoff *backoff, uint64_t now)
{
	return now < backoff->until_ns;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * retry: when to retry something that failed for lack of time. The first pause is short, and each
 * further one is twice as long: if the machine was only busy, the result comes soon, and if the
 * failure persists, retrying costs next to nothing.
 */
#ifndef SAFESCOPED_BASE_RETRY_H
#define SAFESCOPED_BASE_RETRY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* If zeroed, there is no pause, and the next one is the first. */
struct retry {
	uint64_t until_ns;
	uint64_t ns; /* length of the last pause */
};

/* Pauses for failures that depend on how busy the machine is. */
#define RETRY_NS	 10000000000ULL
#define RETRY_LONGEST_NS 600000000000ULL

/* True if a helper took too long, was killed, or lacked memory or a descriptor. The machine may
 * have been the cause, and nothing is known of what the helper had to read. */
static inline bool retry__is_worth_it(int err)
{
	return err == -ETIMEDOUT || err == -EIO || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE;
}

/* The same, or its turn did not come (-EBUSY), for which no pause is needed. There is no answer
 * yet. */
static inline bool retry__shows_nothing(int err)
{
	return err == -EBUSY || retry__is_worth_it(err);
}

/* Length of the pause that follows one of length `last`; 0: there was none. */
static inline uint64_t retry__longer(uint64_t last, uint64_t first, uint64_t longest)
{
	if (!last)
		return first;
	return last >= longest / 2 ? longest : 2 * last;
}

/* To be called on a failure: starts the next pause. */
void retry__begin(struct retry *retry, uint64_t now, uint64_t first_ns, uint64_t longest_ns);

/* To be called on a success: the next pause is the first again. */
static inline void retry__end(struct retry *retry)
{
	*retry = (struct retry){0};
}

/* True if there was a pause since the last success. */
static inline bool retry__has_begun(const struct retry *retry)
{
	return retry->ns != 0;
}

/* True during a pause. */
static inline bool retry__waits(const struct retry *retry, uint64_t now)
{
	return now < retry->until_ns;
}

#endif

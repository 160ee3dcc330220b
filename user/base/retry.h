/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * retry: when to try again what failed for want of time. The first pause is short, and each one
 * after that is twice as long as the last: what the machine was too busy for is soon there, and
 * what goes on to fail costs next to nothing.
 */
#ifndef SAFESCOPED_BASE_RETRY_H
#define SAFESCOPED_BASE_RETRY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed there is no pause, and the next one is the first. */
struct retry {
	uint64_t until_ns;
	uint64_t ns; /* how long the last one was */
};

/* What depends on how busy the machine is. */
#define RETRY_NS	 10000000000ULL
#define RETRY_LONGEST_NS 600000000000ULL

/* Whether a helper took too long, was killed, or found no memory or descriptor: that may have been
 * the machine's fault, and shows nothing of what the helper had to read. */
static inline bool retry__is_worth_it(int err)
{
	return err == -ETIMEDOUT || err == -EIO || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE;
}

/* The same, or there was no turn for it (-EBUSY), after which there need be no pause. No answer. */
static inline bool retry__shows_nothing(int err)
{
	return err == -EBUSY || retry__is_worth_it(err);
}

/* How long the pause after one of `last` is; 0: there was none. */
static inline uint64_t retry__longer(uint64_t last, uint64_t first, uint64_t longest)
{
	if (!last)
		return first;
	return last >= longest / 2 ? longest : 2 * last;
}

/* It failed now. */
void retry__begin(struct retry *retry, uint64_t now, uint64_t first_ns, uint64_t longest_ns);

/* It went well: the next pause is the first again. */
static inline void retry__end(struct retry *retry)
{
	*retry = (struct retry){0};
}

/* There was a pause since it last went well. */
static inline bool retry__has_begun(const struct retry *retry)
{
	return retry->ns != 0;
}

/* It is not to be tried now. */
static inline bool retry__waits(const struct retry *retry, uint64_t now)
{
	return now < retry->until_ns;
}

#endif

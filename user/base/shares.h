/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shares: limited resources, and how much of them each user has, so that one user's processes
 * cannot use up what others need. The one rule: a thing is added for a user only if the user then
 * has no more than half of what the others leave. A user who comes late finds room, however greedy
 * the others are.
 *
 * A thing is identified by a number chosen by the caller, and has a size. It may be used by any
 * number of users, each any number of times; in the total it counts once, and once for each of its
 * users. Using a thing that exists already needs no room and is never refused.
 */
#ifndef SAFESCOPED_BASE_SHARES_H
#define SAFESCOPED_BASE_SHARES_H

#include <stdint.h>
#include <sys/types.h>

struct shares;

/* Room for max_things, with max_bytes in total. */
int shares__new(uint64_t max_things, uint64_t max_bytes, struct shares **ret_shares);
void shares__free(struct shares *shares);

/* Checks for room for a thing that nobody uses yet, for this user. 0 or -EDQUOT. */
int shares__ask(const struct shares *shares, uid_t uid, uint64_t bytes);
/* Adds a use of the thing by the user; `bytes` is its size, which counts from its first use on.
 * -ENOMEM. */
int shares__use(struct shares *shares, uint64_t thing, uid_t uid, uint64_t bytes);
/* Removes a use. Does nothing if there is none. */
void shares__leave(struct shares *shares, uint64_t thing, uid_t uid);
/* The thing is gone: removes all of its uses. */
void shares__forget(struct shares *shares, uint64_t thing);

/* How many things a user uses, and their total size. */
struct shares_use {
	uint64_t things, bytes;
};
struct shares_use shares__of(const struct shares *shares, uid_t uid);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shares: things of which there is a limited number, and how much of them each user has, so that
 * one user's processes cannot use up what others need. The one rule: a new thing is made for a user
 * only while he then has no more than half of what the others leave. Whoever comes late, and to
 * however greedy a neighbour, finds room.
 *
 * A thing is known by a number of the caller's, and has a size. Any number of users may use it,
 * each any number of times; over all it is counted once, and once for each of its users. Using what
 * is there already needs no room, and is never refused.
 */
#ifndef SAFESCOPED_BASE_SHARES_H
#define SAFESCOPED_BASE_SHARES_H

#include <stdint.h>
#include <sys/types.h>

struct shares;

/* Room for max_things, of max_bytes together. */
int shares__new(uint64_t max_things, uint64_t max_bytes, struct shares **ret_shares);
void shares__free(struct shares *shares);

/* Whether there is room for a thing that nobody uses yet, for this user. 0, or -EDQUOT. */
int shares__ask(const struct shares *shares, uid_t uid, uint64_t bytes);
/* The user uses the thing once more; `bytes` is its size while it is used by anybody. -ENOMEM. */
int shares__use(struct shares *shares, uint64_t thing, uid_t uid, uint64_t bytes);
/* And once less. No error if he does not. */
void shares__leave(struct shares *shares, uint64_t thing, uid_t uid);
/* The thing is gone: nobody uses it any more. */
void shares__forget(struct shares *shares, uint64_t thing);

/* How many things a user uses, and of what size together. */
struct shares_use {
	uint64_t things, bytes;
};
struct shares_use shares__of(const struct shares *shares, uid_t uid);

#endif

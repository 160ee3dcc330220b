/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shares: who uses which thing, and the totals. */
#include "shares.h"

#include <errno.h>
#include <stdlib.h>

#include "hash.h"
#include "wire.h"

/* Hashed as bytes in memory, so it must have no padding. */
struct use_key {
	uint64_t thing;
	uint64_t uid;
};

/* One user's use of one thing. */
struct use {
	struct use_key key;
	uint64_t times;
	UT_hash_handle hh;
};

struct thing {
	uint64_t no, bytes;
	uint64_t users;
	UT_hash_handle hh;
};

struct user {
	uint64_t uid;
	struct shares_use has;
	UT_hash_handle hh;
};

struct shares {
	struct shares_use max, all;
	struct use *uses;
	struct thing *things;
	struct user *users;
};

int shares__new(uint64_t max_things, uint64_t max_bytes, struct shares **ret_shares)
{
	struct shares *shares = calloc(1, sizeof(*shares));

	if (!shares)
		return -ENOMEM;
	shares->max = (struct shares_use){.things = max_things, .bytes = max_bytes};
	*ret_shares = shares;
	return 0;
}

void shares__free(struct shares *shares)
{
	if (!shares)
		return;
	HASH_FREE(shares->uses);
	HASH_FREE(shares->things);
	HASH_FREE(shares->users);
	free(shares);
}

static struct user *find_user(const struct shares *shares, uid_t uid)
{
	uint64_t key = uid;
	struct user *user;

	HASH_FIND(hh, shares->users, &key, sizeof(key), user);
	return user;
}

static struct thing *find_thing(const struct shares *shares, uint64_t no)
{
	struct thing *thing;

	HASH_FIND(hh, shares->things, &no, sizeof(no), thing);
	return thing;
}

static struct use *find_use(const struct shares *shares, uint64_t thing, uid_t uid)
{
	const struct use_key key = {.thing = thing, .uid = uid};
	struct use *use;

	HASH_FIND(hh, shares->uses, &key, sizeof(key), use);
	return use;
}

struct shares_use shares__of(const struct shares *shares, uid_t uid)
{
	const struct user *user = find_user(shares, uid);

	return user ? user->has : (struct shares_use){0};
}

int shares__ask(const struct shares *shares, uid_t uid, uint64_t bytes)
{
	struct shares_use has = shares__of(shares, uid);

	return wire_share_fits(shares->max.things, shares->all.things, has.things, 1) &&
			       wire_share_fits(shares->max.bytes, shares->all.bytes, has.bytes,
					       bytes)
		       ? 0
		       : -EDQUOT;
}

/* ── using ───────────────────────────────────────────────────────────────────────────────── */

static int get_user(struct shares *shares, uid_t uid, struct user **ret_user)
{
	struct user *user = find_user(shares, uid);
	int err = 0;

	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		err = HASH_INSERT(shares->users, uid, sizeof(user->uid), user);
	}
	if (!err)
		*ret_user = user;
	return err;
}

static int get_thing(struct shares *shares, uint64_t no, uint64_t bytes, struct thing **ret_thing)
{
	struct thing *thing = find_thing(shares, no);
	int err = 0;

	if (!thing) {
		thing = calloc(1, sizeof(*thing));
		if (!thing)
			return -ENOMEM;
		thing->no = no;
		thing->bytes = bytes;
		err = HASH_INSERT(shares->things, no, sizeof(thing->no), thing);
	}
	if (!err)
		*ret_thing = thing;
	return err;
}

/* Drops a thing without users, and a user without things. */
static void tidy(struct shares *shares, struct thing *thing, struct user *user)
{
	if (!thing->users) {
		HASH_DEL(shares->things, thing);
		free(thing);
	}
	if (!user->has.things) {
		HASH_DEL(shares->users, user);
		free(user);
	}
}

int shares__use(struct shares *shares, uint64_t no, uid_t uid, uint64_t bytes)
{
	struct use *use = find_use(shares, no, uid);
	struct thing *thing = NULL;
	struct user *user;
	int err;

	if (use) {
		use->times++;
		return 0;
	}
	err = get_user(shares, uid, &user);
	if (err)
		return err;
	err = get_thing(shares, no, bytes, &thing);
	if (!err) {
		use = calloc(1, sizeof(*use));
		err = use ? 0 : -ENOMEM;
	}
	if (!err) {
		use->key = (struct use_key){.thing = no, .uid = uid};
		use->times = 1;
		err = HASH_INSERT(shares->uses, key, sizeof(use->key), use);
	}
	if (err) {
		/* may leave a thing without users, or a user without things */
		tidy(shares, thing ? thing : &(struct thing){.users = 1}, user);
		return err;
	}
	if (!thing->users++) {
		shares->all.things++;
		shares->all.bytes += thing->bytes;
	}
	user->has.things++;
	user->has.bytes += thing->bytes;
	return 0;
}

static void end_use(struct shares *shares, struct use *use)
{
	struct thing *thing = find_thing(shares, use->key.thing);
	struct user *user = find_user(shares, (uid_t)use->key.uid);

	HASH_DEL(shares->uses, use);
	free(use);
	user->has.things--;
	user->has.bytes -= thing->bytes;
	if (!--thing->users) {
		shares->all.things--;
		shares->all.bytes -= thing->bytes;
	}
	tidy(shares, thing, user);
}

void shares__leave(struct shares *shares, uint64_t no, uid_t uid)
{
	struct use *use = find_use(shares, no, uid);

	if (use && !--use->times)
		end_use(shares, use);
}

void shares__forget(struct shares *shares, uint64_t no)
{
	struct use *use, *next;

	for (use = shares->uses; use; use = next) {
		next = use->hh.next;
		if (use->key.thing == no)
			end_use(shares, use);
	}
}

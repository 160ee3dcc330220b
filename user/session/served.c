/* SPDX-License-Identifier: GPL-2.0-or-later */
/* served: how much time was spent on each user's processes. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "members_priv.h"

/* With more users than this, everything is forgotten and counting starts again. */
#define USERS_MAX 4096

struct served_user {
	uid_t uid;
	uint64_t ns;
	UT_hash_handle hh;
};

struct served {
	struct served_user *users;
};

int served__new(struct served **ret_served)
{
	*ret_served = calloc(1, sizeof(**ret_served));
	return *ret_served ? 0 : -ENOMEM;
}

void served__free(struct served *served)
{
	if (served)
		HASH_FREE(served->users);
	free(served);
}

uint64_t served__of(const struct served *served, uid_t uid)
{
	const struct served_user *user;

	HASH_FIND(hh, served->users, &uid, sizeof(uid), user);
	return user ? user->ns : 0;
}

/* If there is no memory, the user merely comes earlier than would be fair. */
void served__add(struct served *served, uid_t uid, uint64_t ns)
{
	struct served_user *user;

	HASH_FIND(hh, served->users, &uid, sizeof(uid), user);
	if (user) {
		user->ns += ns;
		return;
	}
	if (HASH_COUNT(served->users) >= USERS_MAX)
		HASH_FREE(served->users);
	user = calloc(1, sizeof(*user));
	if (!user)
		return;
	user->uid = uid;
	user->ns = ns;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	(void)HASH_INSERT(served->users, uid, sizeof(user->uid), user);
}

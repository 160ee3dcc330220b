/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long the bytes of each user were waited for. */
#include "base/base.h"
#include "confine_priv.h"

#define USERS_MAX  256
#define GIVEN_BACK 10 /* one part in so many of the time that passes */

/* Of the program, as its time is. */
static struct user {
	uid_t id;
	uint64_t used_ns, seen_ns;
} users[USERS_MAX];
static size_t n_users;

static void give_back(struct user *u, uint64_t now)
{
	uint64_t back = (now - u->seen_ns) / GIVEN_BACK;

	u->used_ns -= MIN(back, u->used_ns);
	u->seen_ns = now;
}

/* Beyond the table's room whoever has used least is forgotten. */
static struct user *find(uid_t id)
{
	uint64_t now = time__monotonic_ns();
	struct user *least = &users[0];

	for (size_t i = 0; i < n_users; i++) {
		give_back(&users[i], now);
		if (users[i].id == id)
			return &users[i];
		if (users[i].used_ns < least->used_ns)
			least = &users[i];
	}
	if (n_users < USERS_MAX)
		least = &users[n_users++];
	*least = (struct user){.id = id, .seen_ns = now};
	return least;
}

bool confine__may_wait(uid_t user)
{
	return user == 0 || find(user)->used_ns < CONFINE_USER_NS;
}

void confine__waited(uid_t user, uint64_t took_ns, uint64_t honest_ns)
{
	if (user != 0 && took_ns > honest_ns)
		find(user)->used_ns += took_ns - honest_ns;
}

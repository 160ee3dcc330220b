/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accounts for how long each user's bytes were waited for. */
#include "base/base.h"
#include "confine_priv.h"

#define USERS_MAX     256
#define GIVEN_BACK    10 /* one part in this many of the time that passes */
#define REAP_EVERY_NS 1000000000ULL

/* Process-wide, as the daemon's time is. */
static struct user {
	uid_t id;
	uint64_t used_ns, seen_ns;
	uint64_t turn, turn_ns; /* how much of it was in turn `turn` */
	uint64_t turn_all_ns;	/* including what honest jobs took */
} users[USERS_MAX];
static size_t n_users;
static uint64_t turn; /* 0: no turns, so no limits per turn */
static uint64_t turns;
static uint64_t reaped_ns;
static uint64_t turn_sum_ns; /* all users together */

static void give_back(struct user *u, uint64_t now)
{
	uint64_t back = (now - u->seen_ns) / GIVEN_BACK;

	u->used_ns -= MIN(back, u->used_ns);
	u->seen_ns = now;
	if (u->turn != turn) {
		u->turn = turn;
		u->turn_ns = u->turn_all_ns = 0;
	}
}

/* If the table is full, replaces the user who has used least. */
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
	*least = (struct user){.id = id, .seen_ns = now, .turn = turn};
	return least;
}

void confine__new_turn(void)
{
	uint64_t now = time__monotonic_ns();

	turn = ++turns;
	turn_sum_ns = 0;
	/* children that ended idle may not be asked again for long */
	if (now - reaped_ns < REAP_EVERY_NS)
		return;
	reaped_ns = now;
	confine_servers__reap();
	confine__reap();
}

void confine__last_turn(void)
{
	turn = 0;
}

uint64_t confine__patience_ns(uid_t user)
{
	const struct user *u = find(user);
	uint64_t left = CONFINE_USER_NS - MIN(u->used_ns, CONFINE_USER_NS);
	uint64_t sum = CONFINE_TURN_SUM_NS * machine__slowness();

	if (turn &&
	    (u->turn_all_ns >= CONFINE_TURN_ALL_NS * machine__slowness() || turn_sum_ns >= sum))
		return 0;
	if (user == 0)
		return UINT64_MAX;
	if (!turn)
		return left;
	left = MIN(left, CONFINE_TURN_NS - MIN(u->turn_ns, CONFINE_TURN_NS));
	return MIN(left, sum - turn_sum_ns);
}

bool confine__may_wait(uid_t user)
{
	return confine__patience_ns(user) > 0;
}

void confine__waited(uid_t user, uint64_t took_ns, uint64_t honest_ns)
{
	struct user *u;

	if (took_ns <= honest_ns)
		return;
	u = find(user);
	u->used_ns += took_ns - honest_ns;
	u->turn_ns += took_ns - honest_ns;
}

void confine_users__took(uid_t user, uint64_t took_ns)
{
	find(user)->turn_all_ns += took_ns;
	turn_sum_ns += took_ns;
}

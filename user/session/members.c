/* SPDX-License-Identifier: GPL-2.0-or-later */
/* members: the set of processes that have joined a session. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/shares.h"
#include "session_priv.h"

/* Limit on users whose refused processes are counted individually. */
#define MAX_REFUSED_USERS 64
/* One live member per this many descriptors of the limit: each holds up to three, its process's,
 * its file's, its log's. */
#define DESCRIPTORS_PART 8

struct entry {
	struct member m; /* first, so that a member's address is that of its entry */
	bool released;
	int pidfd;
	UT_hash_handle hh;	/* live entries, by pid */
	UT_hash_handle hh_left; /* entries whose counters are still in the kernel, by pid */
};

/* A process that did not become a member. */
struct gone {
	pid_t pid;
	UT_hash_handle hh;
};

struct members {
	int ends_fd; /* epoll set of the live members' pidfds */
	struct entry **all;
	size_t n, cap, n_starting;
	uint64_t n_joined;
	struct entry *live, *left;
	struct gone *gone; /* their counters are still in the kernel; by pid */
	size_t n_released;
	struct shares *shares; /* of live members, by address */
	char why_few[112];     /* see members__why_few() */
	struct members_refused refused[MAX_REFUSED_USERS + 1];
	bool reported[MAX_REFUSED_USERS + 1]; /* logged: some have been left out since then */
	size_t n_refused;
};

static void explain_few(uint64_t max, char *out, size_t size)
{
	out[0] = '\0';
	if (max < SESSION_MAX_LIVE)
		snprintf(out, size,
			 "; at most %llu in all, as no more than %llu descriptors may be open "
			 "(RLIMIT_NOFILE)",
			 (unsigned long long)max, (unsigned long long)fd__limit());
}

const char *members__why_few(const struct members *members)
{
	return members->why_few;
}

static struct entry *entry_of(const struct member *m)
{
	return (struct entry *)m;
}

int members__new(struct members **ret_members)
{
	struct members *members = calloc(1, sizeof(*members));
	uint64_t max = MIN(SESSION_MAX_LIVE, fd__limit() / DESCRIPTORS_PART);
	int err;

	if (!members)
		return -ENOMEM;
	members->ends_fd = epoll_create1(EPOLL_CLOEXEC);
	err = members->ends_fd < 0 ? -errno : shares__new(max, UINT64_MAX, &members->shares);
	if (err) {
		members__free(members);
		return err;
	}
	explain_few(max, members->why_few, sizeof(members->why_few));
	*ret_members = members;
	return 0;
}

static void entry__free(struct entry *e)
{
	free(e->m.census.fresh);
	free(e->m.census.best);
	free(e->m.living.living);
	held__free(e->m.held);
	target__free(e->m.target);
	free(e);
}

void members__free(struct members *members)
{
	if (!members)
		return;
	HASH_CLEAR(hh, members->live);
	HASH_CLEAR(hh_left, members->left);
	HASH_FREE(members->gone);
	for (size_t i = 0; i < members->n; i++)
		entry__free(members->all[i]);
	free(members->all);
	shares__free(members->shares);
	if (members->ends_fd >= 0)
		close(members->ends_fd);
	free(members);
}

static void report_refused(struct members *members, size_t i)
{
	uid_t uid = members->refused[i].uid;
	char whose[40] = "other users";

	if (members->reported[i])
		return;
	members->reported[i] = true;
	if (uid != (uid_t)-1)
		snprintf(whose, sizeof(whose), "user %u", uid);
	log_warn("further processes of %s are left out until others end: too many of theirs are "
		 "already being profiled%s",
		 whose, members->why_few);
}

static void refuse(struct members *members, uid_t uid)
{
	size_t i = 0;

	while (i < members->n_refused && members->refused[i].uid != uid)
		i++;
	if (i >= MAX_REFUSED_USERS) {
		i = MAX_REFUSED_USERS;
		uid = (uid_t)-1;
	}
	if (i >= members->n_refused)
		members->refused[members->n_refused++] = (struct members_refused){.uid = uid};
	members->refused[i].n++;
	members->refused[i].lately++;
	report_refused(members, i);
}

const struct members_refused *members__refused(const struct members *members, size_t i)
{
	return i < members->n_refused ? &members->refused[i] : NULL;
}

void members__cut_refused(struct members *members, size_t i, uint64_t waiting)
{
	members->reported[i] = members->refused[i].lately || waiting;
	members->refused[i].lately = waiting;
}

const struct member *members__next_shown(const struct members *members, size_t *at)
{
	while (*at < members__count(members)) {
		const struct member *m = members__at(members, (*at)++);

		if (!m->forgotten)
			return m;
	}
	return NULL;
}

bool members__has_room(const struct members *members, uid_t account)
{
	return shares__ask(members->shares, account, 0) == 0;
}

int members__add(struct members *members, struct target *target, pid_t pid, uid_t account,
		 bool ready, struct member **ret_member)
{
	struct entry *e;
	int err = shares__ask(members->shares, account, 0);

	if (err)
		refuse(members, account);
	else
		err = ARRAY_RESERVE(members->all, members->cap, members->n + 1,
				    SESSION_MAX_MEMBERS);

	e = err ? NULL : calloc(1, sizeof(*e));
	if (!err)
		err = e ? held__new(&e->m.held) : -ENOMEM;
	if (err) {
		free(e);
		target__free(target);
		return err;
	}
	e->m.pid = pid;
	e->m.account = account;
	e->m.target = target;
	e->m.ready = ready;
	members->all[members->n++] = e;
	*ret_member = &e->m;
	return 0;
}

/* ── reading the set ─────────────────────────────────────────────────────────────────────── */

size_t members__count(const struct members *members)
{
	return members->n;
}

struct member *members__at(const struct members *members, size_t i)
{
	return &members->all[i]->m;
}

struct member *members__next_live(const struct members *members, const struct member *prev)
{
	struct entry *e = prev ? entry_of(prev)->hh.next : members->live;

	return e ? &e->m : NULL;
}

size_t members__count_live(const struct members *members)
{
	return HASH_COUNT(members->live);
}

size_t members__count_starting(const struct members *members)
{
	return members->n_starting;
}

struct member *members__find_live(const struct members *members, pid_t pid)
{
	struct entry *e;

	HASH_FIND(hh, members->live, &pid, sizeof(pid), e);
	return e ? &e->m : NULL;
}

/* ── changing a member ───────────────────────────────────────────────────────────────────── */

uint64_t members__n_joined(const struct members *members)
{
	return members->n_joined;
}

int members__set_live(struct members *members, struct member *m, int pidfd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = m};
	struct entry *e = entry_of(m);
	int err = shares__use(members->shares, (uintptr_t)e, m->account, 0);

	if (err)
		return err;
	HASH_ADD(hh, members->live, m.pid, sizeof(e->m.pid), e);
	if (!e->hh.tbl) { /* uthash found no memory */
		shares__leave(members->shares, (uintptr_t)e, m->account);
		return -ENOMEM;
	}
	if (epoll_ctl(members->ends_fd, EPOLL_CTL_ADD, pidfd, &event)) {
		err = -errno;
		HASH_DELETE(hh, members->live, e);
		shares__leave(members->shares, (uintptr_t)e, m->account);
		return err;
	}
	e->pidfd = pidfd;
	m->live = true;
	members->n_joined++;
	members->n_starting += !m->ready;
	return 0;
}

void members__set_ready(struct members *members, struct member *m)
{
	if (m->live && !m->ready)
		members->n_starting--;
	m->ready = true;
}

void members__set_ended(struct members *members, struct member *m)
{
	if (!m->live)
		return;
	m->live = false;
	epoll_ctl(members->ends_fd, EPOLL_CTL_DEL, entry_of(m)->pidfd, NULL);
	members->n_starting -= !m->ready;
	HASH_DELETE(hh, members->live, entry_of(m));
	shares__leave(members->shares, (uintptr_t)entry_of(m), m->account);
}

int members__ends_fd(const struct members *members)
{
	return members->ends_fd;
}

size_t members__exited(const struct members *members, struct member **ret_exited, size_t max)
{
	struct epoll_event events[64];
	int n = epoll_wait(members->ends_fd, events, (int)MIN(max, ARRAY_SIZE(events)), 0);

	for (int i = 0; i < n; i++)
		ret_exited[i] = events[i].data.ptr;
	return n > 0 ? (size_t)n : 0;
}

/* ── counters that are left in the kernel ────────────────────────────────────────────────── */

static struct entry *find_left(const struct members *members, pid_t pid)
{
	struct entry *e;

	HASH_FIND(hh_left, members->left, &pid, sizeof(pid), e);
	return e;
}

int members__leave_counters(struct members *members, const struct member *m)
{
	struct entry *e = entry_of(m);

	if (find_left(members, m->pid))
		return 0;
	HASH_ADD(hh_left, members->left, m.pid, sizeof(e->m.pid), e);
	return e->hh_left.tbl ? 0 : -ENOMEM;
}

bool members__has_left_counters(const struct members *members, pid_t pid)
{
	struct gone *gone;

	if (find_left(members, pid))
		return true;
	HASH_FIND(hh, members->gone, &pid, sizeof(pid), gone);
	return gone && !members__find_live(members, pid);
}

bool members__any_left_counters(const struct members *members)
{
	return members->left || members->gone;
}

struct member *members__take_left(struct members *members)
{
	struct entry *e = members->left;

	if (!e) {
		HASH_FREE(members->gone);
		return NULL;
	}
	HASH_DELETE(hh_left, members->left, e);
	return &e->m;
}

int members__leave_gone(struct members *members, pid_t pid)
{
	struct gone *gone;

	HASH_FIND(hh, members->gone, &pid, sizeof(pid), gone);
	if (gone)
		return 0;
	gone = calloc(1, sizeof(*gone));
	if (!gone)
		return -ENOMEM;
	gone->pid = pid;
	return HASH_INSERT(members->gone, pid, sizeof(gone->pid), gone);
}

/* ── members of which nothing is left ────────────────────────────────────────────────────── */

void members__set_released(struct members *members, struct member *m)
{
	struct entry *e = entry_of(m);

	members->n_released += !e->released;
	e->released = true;
}

size_t members__count_released(const struct members *members)
{
	return members->n_released;
}

void members__forget_released(struct members *members, size_t stay)
{
	size_t kept = 0;

	for (size_t i = 0; i < members->n; i++) {
		struct entry *e = members->all[i];

		if (!e->released || members->n_released <= stay) {
			members->all[kept++] = e;
			continue;
		}
		members->n_released--;
		entry__free(e);
	}
	members->n = kept;
}

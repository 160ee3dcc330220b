/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool: one server for each user whose bytes are asked about. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "confine_priv.h"

/* An honest question is worked on for this fraction of its time; the rest is waiting for a CPU. */
#define WORKED_ON 20

struct entry {
	uid_t user;
	uint64_t asked_ns;
	struct confine_service service;
	struct confine_server *server; /* NULL: free */
};

struct confine_pool {
	const struct confine_service *service;
	void *ctx;
	struct entry entries[CONFINE_POOL_USERS];
};

int confine_pool__new(const struct confine_service *service, void *ctx,
		      struct confine_pool **ret_pool)
{
	struct confine_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->service = service;
	p->ctx = ctx;
	*ret_pool = p;
	return 0;
}

/* The user's entry; else a free one; else the one that was asked the longest time ago. */
static struct entry *choose(struct confine_pool *p, uid_t user)
{
	struct entry *best = &p->entries[0];

	for (size_t i = 0; i < CONFINE_POOL_USERS; i++) {
		struct entry *e = &p->entries[i];

		if (e->server && e->user == user)
			return e;
		if (best->server && (!e->server || e->asked_ns < best->asked_ns))
			best = e;
	}
	return best;
}

static int server_of(struct confine_pool *p, uid_t user, struct entry **ret_entry)
{
	struct entry *e = choose(p, user);
	int err;

	if (!e->server || e->user != user) {
		confine_server__free(e->server);
		*e = (struct entry){.user = user, .service = *p->service};
		e->service.how.user = user;
		e->service.how.no_files = true;
		err = confine_server__new(&e->service, p->ctx, &e->server);
		if (err)
			return err;
	}
	e->asked_ns = time__monotonic_ns();
	*ret_entry = e;
	return 0;
}

/*
 * Waits no longer than the user may be waited for. The CPU time of a child that was already running
 * is charged too: many questions that each take nearly as long as an honest one are a burden.
 */
static int ask_patiently(struct entry *e, const void *question, size_t len, int timeout_ms,
			 uint64_t honest_ns, void *answer, size_t *ret_len)
{
	uint64_t patience = confine__patience_ns(e->user), began = time__monotonic_ns(), took, used;
	pid_t pid = confine_server__pid(e->server);
	uint64_t had = confine_children__cpu_ns(pid);
	int err;

	if (patience < UINT64_MAX)
		timeout_ms = (int)MIN((uint64_t)MAX(timeout_ms, 0),
				      (honest_ns + patience) / 1000000ULL + 1);
	err = confine_server__ask(e->server, question, len, timeout_ms, answer, ret_len);
	took = time__monotonic_ns() - began;
	used = pid && confine_server__pid(e->server) == pid ? confine_children__cpu_ns(pid) : 0;
	used -= MIN(used, had + honest_ns / WORKED_ON);
	confine__waited(e->user, MAX(took, honest_ns + used), honest_ns);
	return err;
}

int confine_pool__ask(struct confine_pool *p, uid_t user, const void *question, size_t len,
		      int timeout_ms, uint64_t honest_ns, void *answer, size_t *ret_len)
{
	struct entry *e;
	int err;

	if (confine_child__inside()) {
		*ret_len = p->service->answer(p->ctx, question, len, answer);
		return 0;
	}
	if (!confine__may_wait(user))
		return -ETIMEDOUT;
	err = server_of(p, user, &e);
	if (err)
		return err;
	return ask_patiently(e, question, len, timeout_ms, honest_ns, answer, ret_len);
}

bool confine_pool__had_no_time(int err, uint64_t began_ns, int timeout_ms)
{
	uint64_t longest = (uint64_t)MAX(timeout_ms, 0) * 1000000ULL * machine__slowness();

	return err == -EBUSY || (err == -ETIMEDOUT && time__monotonic_ns() - began_ns < longest);
}

void confine_pool__free(struct confine_pool *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < CONFINE_POOL_USERS; i++)
		confine_server__free(p->entries[i].server);
	free(p);
}

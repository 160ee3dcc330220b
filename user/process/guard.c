/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A confined child that reads a process's memory, and how long to wait for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "mem.h"
#include "patience_priv.h"
#include "proc.h"

/* With a common deadline: one guard gets a SHAREth of the remaining time, but at least LEAST_MS. */
#define SHARE	 4
#define LEAST_MS 20

struct guard {
	pid_t of;
	bool waited_for; /* by mem__guard() */
	uint64_t began_ns;
	struct confine_job *job;
};

/* Process-wide, as children are. */
static struct {
	struct patience patience;
	uint64_t all_until_ns;
} all;

void guard__all_until(uint64_t ns)
{
	all.all_until_ns = ns;
}

/* Processes whose user is not known share this one, the kernel's overflowuid. */
#define UNKNOWN_USER 65534

static uid_t user_of(pid_t pid)
{
	uid_t user;

	return proc__account(pid, &user) ? UNKNOWN_USER : user;
}

/* -EBUSY: no time for it. A guard that nobody waits for gets its full timeout, up to the common
 * deadline. */
static int time_for(pid_t of, int timeout_ms, bool waited_for, uint64_t now, int *ret_ms)
{
	uint64_t left;
	int ms, err = patience__ask(&all.patience, of, timeout_ms, now, &ms);

	if (err)
		return err;
	if (!waited_for)
		ms = timeout_ms;
	if (all.all_until_ns) {
		left = all.all_until_ns > now ? (all.all_until_ns - now) / 1000000ULL : 0;
		if (!left)
			return -EBUSY;
		if (waited_for)
			left = MAX(left / SHARE, (uint64_t)LEAST_MS);
		ms = (int)MIN((uint64_t)ms, left);
	}
	*ret_ms = ms;
	return 0;
}

/* What the child does with the descriptor that it was given. */
struct over_memory {
	int fd;
	guard_fn fn;
	void *ctx;
};

/* Runs in the child. */
static int run_over_memory(void *ctx, void *out)
{
	const struct over_memory *o = ctx;

	mem__use(o->fd);
	return o->fn(o->ctx, out);
}

static int start_over_memory(const struct guard *g, int ms, struct over_memory *o, size_t size,
			     struct confine_job **ret_job)
{
	struct confine how = {.name = "safescoped:mem", .user = user_of(g->of), .fds = &o->fd};
	int err = mem__open(g->of, &o->fd);

	/* go on without memory: its files may suffice */
	if (err == -ESRCH)
		o->fd = -1;
	else if (err)
		return err;
	how.n_fds = o->fd >= 0;
	err = confine__start(&how, ms, run_over_memory, o, size, ret_job);
	fd__close(&o->fd);
	return err;
}

static int start(pid_t of, enum guard_reads what, int timeout_ms, bool waited_for, guard_fn fn,
		 void *ctx, size_t size, struct guard **ret_guard)
{
	const struct confine with_proc = {
		.name = "safescoped:mem", .keep = CONFINE_PROC, .user = user_of(of)};
	struct over_memory over = {.fn = fn, .ctx = ctx};
	uint64_t now = time__monotonic_ns();
	struct guard *g;
	int ms, err = time_for(of, timeout_ms, waited_for, now, &ms);

	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->of = of;
	g->waited_for = waited_for;
	g->began_ns = now;
	if (what == GUARD_MEMORY)
		err = start_over_memory(g, ms, &over, size, &g->job);
	else
		err = confine__start(&with_proc, ms, fn, ctx, size, &g->job);
	if (err) {
		free(g);
		return err;
	}
	*ret_guard = g;
	return 0;
}

int guard__start(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx,
		 size_t size, struct guard **ret_guard)
{
	return start(of, what, timeout_ms, false, fn, ctx, size, ret_guard);
}

int guard__fd(const struct guard *g)
{
	return confine_job__fd(g->job);
}

uint64_t guard__due_ns(const struct guard *g)
{
	return confine_job__deadline_ns(g->job);
}

void guard__free(struct guard *g)
{
	if (!g)
		return;
	confine_job__free(g->job);
	free(g);
}

/* What the guard's end shows about the process. */
static void judge(const struct guard *g, int err)
{
	uint64_t now = time__monotonic_ns();

	if (err == -ETIMEDOUT)
		patience__hung(&all.patience, g->of, g->waited_for ? now - g->began_ns : 0, now);
	else
		patience__well(&all.patience, g->of);
}

int guard__take(struct guard *g, void **ret_out)
{
	int err = confine_job__result(g->job, ret_out);

	if (err == -EAGAIN)
		return -EINPROGRESS;
	judge(g, err);
	guard__free(g);
	return err;
}

int mem__guard(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx, size_t size,
	       void **ret_out)
{
	struct guard *g;
	int err = start(of, what, timeout_ms, true, fn, ctx, size, &g);

	if (err)
		return err;
	err = confine__wait(g->job, UINT64_MAX, ret_out);
	judge(g, err);
	guard__free(g);
	return err;
}

void mem__guard_free(void *out, size_t size)
{
	confine__free_out(out, size);
}

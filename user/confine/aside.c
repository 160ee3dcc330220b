/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aside: a job that is waited for with a budget. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/base.h"
#include "confine_priv.h"

/* How long a wait goes on after something else came up. */
#define HURRY_MS 200

/* Of the program, as the signals are. */
static struct {
	int fd;
	bool (*is_urgent)(void *ctx);
	void *ctx;
} hurry = {.fd = -1};

void confine__hurry_by(int fd, bool (*is_urgent)(void *ctx), void *ctx)
{
	hurry.fd = fd;
	hurry.is_urgent = is_urgent;
	hurry.ctx = ctx;
}

/* True once something else came up. */
static bool wait_a_while(const struct confine_job *job, int hurry_fd, uint64_t until)
{
	struct pollfd fds[] = {{.fd = confine_job__fd(job), .events = POLLIN},
			       {.fd = hurry_fd, .events = POLLIN}};
	uint64_t now = time__monotonic_ns();
	int ms = until > now ? (int)((until - now) / 1000000ULL) + 1 : 0;

	/* without a pidfd, by asking again and again */
	poll(fds, ARRAY_SIZE(fds), fds[0].fd < 0 ? MIN(ms, 1) : ms);
	return fds[1].revents & POLLIN && (!hurry.is_urgent || hurry.is_urgent(hurry.ctx));
}

int confine__wait(struct confine_job *job, uint64_t until, void **ret_out)
{
	int hurry_fd = hurry.fd, err;

	until = MIN(until, confine_job__deadline_ns(job));
	while ((err = confine_job__result(job, ret_out)) == -EAGAIN) {
		if (time__monotonic_ns() >= until && until < confine_job__deadline_ns(job))
			return -ETIMEDOUT;
		if (wait_a_while(job, hurry_fd, until)) {
			hurry_fd = -1;
			until = MIN(until, time__monotonic_ns() + HURRY_MS * 1000000ULL);
		}
	}
	return err;
}

static int run_here(int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out)
{
	void *out;
	int err = confine_job__new_out(size, &out);

	if (!err)
		err = fn(ctx, out);
	if (err)
		confine__free_out(out, size);
	else
		*ret_out = out;
	return err;
}

int confine__aside(const struct confine *how, int timeout_ms, uint64_t honest_ns,
		   int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out)
{
	uint64_t began = time__monotonic_ns(), until, patience, took;
	struct confine_job *job;
	int err;

	if (confine_child__inside())
		return run_here(fn, ctx, size, ret_out);
	patience = confine__patience_ns(how->user);
	if (!patience)
		return -EBUSY;
	err = confine__start(how, timeout_ms, fn, ctx, size, &job);
	if (err)
		return err;
	until = confine_job__deadline_ns(job);
	if (patience < UINT64_MAX)
		until = MIN(until, began + (honest_ns + patience) * machine__slowness());
	err = confine__wait(job, until, ret_out);
	confine_job__free(job);
	took = time__monotonic_ns() - began;
	/* many jobs that each take as long as an honest one are a burden too */
	confine__waited(how->user, took, honest_ns - honest_ns / 4);
	confine_users__took(how->user, took);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aside: waits for a job within the user's budget. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/base.h"
#include "confine_priv.h"

/* How long a wait goes on after something else came up. */
#define HURRY_MS 200

/* Process-wide, like signal dispositions. */
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

	/* without a pidfd, poll the job */
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

/* Waits until the job's own deadline, or until the user's time is used up. `began`: start of the
 * wait. */
static int wait_within(struct confine_job *job, uint64_t began, uint64_t honest_ns,
		       uint64_t patience_ns, void **ret_out)
{
	uint64_t until = confine_job__deadline_ns(job);

	if (patience_ns < UINT64_MAX)
		until = MIN(until, began + (honest_ns + patience_ns) * machine__slowness());
	return confine__wait(job, until, ret_out);
}

static void account(uid_t user, uint64_t began, uint64_t honest_ns)
{
	uint64_t took = time__monotonic_ns() - began;

	/* many jobs that each take as long as an honest one are a burden too */
	confine__waited(user, took, honest_ns - honest_ns / 4);
	confine_users__took(user, took);
}

int confine__aside(const struct confine *how, int timeout_ms, uint64_t honest_ns,
		   int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out)
{
	uint64_t began = time__monotonic_ns(), patience;
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
	err = wait_within(job, began, honest_ns, patience, ret_out);
	confine_job__free(job);
	account(how->user, began, honest_ns);
	return err;
}

int confine_job__await(struct confine_job *job, uid_t user, uint64_t honest_ns, void **ret_out)
{
	uint64_t began = time__monotonic_ns(), patience;
	int err = confine_job__result(job, ret_out);

	if (err != -EAGAIN)
		return err;
	patience = confine__patience_ns(user);
	if (!patience)
		return -EBUSY;
	err = wait_within(job, began, honest_ns, patience, ret_out);
	account(user, began, honest_ns);
	/* the job is still running; only this wait timed out */
	return err == -ETIMEDOUT && time__monotonic_ns() < confine_job__deadline_ns(job) ? -EBUSY
											 : err;
}

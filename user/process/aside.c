/* SPDX-License-Identifier: GPL-2.0-or-later */
/* aside: a confined job that is waited for with a budget. */
#include "aside.h"

#include <errno.h>
#include <poll.h>

#include "base/base.h"
#include "mem.h"

/* How long a wait goes on after something else came up. */
#define HURRY_MS 200

/* True once there is something on hurry_fd. */
static bool wait_a_while(const struct confine_job *job, int hurry_fd, uint64_t until)
{
	struct pollfd fds[] = {{.fd = confine_job__fd(job), .events = POLLIN},
			       {.fd = hurry_fd, .events = POLLIN}};
	uint64_t now = time__monotonic_ns();
	int ms = until > now ? (int)((until - now) / 1000000ULL) + 1 : 0;

	/* without a pidfd, by asking again and again */
	poll(fds, ARRAY_SIZE(fds), fds[0].fd < 0 ? MIN(ms, 1) : ms);
	return fds[1].revents & POLLIN;
}

int aside__run(const struct confine *how, int timeout_ms, uint64_t honest_ns,
	       int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out)
{
	uint64_t began = time__monotonic_ns(), until;
	int hurry_fd = guard__hurry_fd(), err;
	struct confine_job *job;

	if (!confine__may_wait(how->user))
		return -EBUSY;
	err = confine__start(how, timeout_ms, fn, ctx, size, &job);
	if (err)
		return err;
	until = confine_job__deadline_ns(job);
	while ((err = confine_job__result(job, ret_out)) == -EAGAIN) {
		if (time__monotonic_ns() >= until) {
			err = -ETIMEDOUT;
			break;
		}
		if (wait_a_while(job, hurry_fd, until)) {
			hurry_fd = -1;
			until = MIN(until, time__monotonic_ns() + HURRY_MS * 1000000ULL);
		}
	}
	confine_job__free(job);
	confine__waited(how->user, time__monotonic_ns() - began, honest_ns);
	return err;
}

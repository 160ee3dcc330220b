/* SPDX-License-Identifier: GPL-2.0-or-later */
/* push: all destinations. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "push_priv.h"

/* How often destinations get a turn while the program waits for them to finish. */
#define FINISH_EVERY_MS 50

struct push {
	struct destination *v[PUSH_MAX_DESTINATIONS];
	size_t n;
};

int push__check(const struct push_opts *opts)
{
	int err = 0;

	/* whoever mends the files wants to know about all of them at once */
	for (size_t i = 0; i < opts->n; i++) {
		int wrong = destination__check(&opts->to[i], opts);

		err = err ? err : wrong;
	}
	return err;
}

int push__check_queues(const struct push_opts *opts)
{
	int err = 0;

	for (size_t i = 0; !err && i < opts->n; i++)
		err = destination__check_queue(&opts->to[i], opts);
	return err;
}

uint64_t push__stamp(const struct push_opts *opts)
{
	uint64_t stamp = 0;

	for (size_t i = 0; i < opts->n; i++)
		stamp = push_files__stamp(stamp, &opts->to[i]);
	return stamp;
}

int push__open(const struct push_opts *opts, struct push **ret_push)
{
	struct push *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	if (!p)
		log_error("no memory");
	for (size_t i = 0; !err && i < opts->n; i++) {
		err = destination__open(&opts->to[i], opts, &p->v[i]);
		p->n += !err;
	}
	if (err) {
		push__free(p);
		return err;
	}
	queues__report_left(opts);
	*ret_push = p;
	return 0;
}

void push__free(struct push *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		destination__free(p->v[i]);
	free(p);
}

int push__put(const struct push *p, const struct picture *pic, const struct export_opts *opts,
	      _Atomic push_set *queued_for)
{
	int first = 0;

	for (size_t i = 0; i < p->n; i++) {
		int err = destination__put(p->v[i], pic, opts);

		if (!err)
			atomic_fetch_or(queued_for, (push_set)1 << i);
		first = first ? first : err;
	}
	return first;
}

void push__count_unqueued(struct push *p, push_set queued_for)
{
	for (size_t i = 0; i < p->n; i++)
		if (!(queued_for >> i & 1))
			destination__count_unqueued(p->v[i]);
}

void push__look(struct push *p)
{
	for (size_t i = 0; i < p->n; i++)
		destination__look(p->v[i]);
}

void push__turn(struct push *p, uint64_t now_ns)
{
	for (size_t i = 0; p && i < p->n; i++)
		destination__turn(p->v[i], now_ns);
}

uint64_t push__next_due(const struct push *p)
{
	uint64_t first = 0;

	for (size_t i = 0; p && i < p->n; i++) {
		uint64_t due = destination__next_due(p->v[i]);

		if (due && (!first || due < first))
			first = due;
	}
	return first;
}

size_t push__count(const struct push *p)
{
	return p ? p->n : 0;
}

int push__fd(const struct push *p, size_t i)
{
	return destination__fd(p->v[i]);
}

void push__stats(const struct push *p, size_t i, struct push_stats *ret_stats)
{
	destination__stats(p->v[i], ret_stats);
}

bool push__has_ended(const struct push *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		if (destination__has_ended(p->v[i]))
			return true;
	return false;
}

bool push__has_other_files(const struct push *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		if (destination__has_other_files(p->v[i]))
			return true;
	return false;
}

bool push__lost(const struct push *p)
{
	bool lost = false;

	for (size_t i = 0; p && i < p->n; i++) {
		struct push_stats s;

		destination__stats(p->v[i], &s);
		lost |= s.refused || s.rejected || s.dropped;
	}
	return lost;
}

bool push__has_more(const struct push *p)
{
	bool more = false;

	for (size_t i = 0; p && i < p->n; i++) {
		struct push_stats s;

		destination__stats(p->v[i], &s);
		more |= s.queued != 0;
	}
	return more;
}

/* True if nothing is being sent, and nothing is due by then. */
static bool is_idle_until(const struct push *p, uint64_t until_ns)
{
	bool idle = true;

	for (size_t i = 0; i < p->n; i++)
		idle &= destination__is_idle(p->v[i]) || destination__next_due(p->v[i]) >= until_ns;
	return idle;
}

/* True: a signal came. */
static bool wait_a_while(const struct push *p, int signal_fd)
{
	struct pollfd fds[PUSH_MAX_DESTINATIONS + 1];

	for (size_t i = 0; i < p->n; i++)
		fds[i] = (struct pollfd){.fd = destination__fd(p->v[i]), .events = POLLIN};
	fds[p->n] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	poll(fds, p->n + 1, FINISH_EVERY_MS);
	return fds[p->n].revents & POLLIN;
}

/* Logs the totals at the end. */
static void report(const struct destination *d)
{
	char lost[160] = "", left[96] = "";
	struct push_stats s;

	destination__stats(d, &s);
	if (s.refused || s.rejected || s.dropped)
		snprintf(lost, sizeof(lost),
			 "; %" PRIu64 " refused, %" PRIu64 " profiles rejected, %" PRIu64
			 " dropped",
			 s.refused, s.rejected, s.dropped);
	if (s.queued)
		snprintf(left, sizeof(left), "; %" PRIu64 " %s still queued (%s)", s.queued,
			 s.queued == 1 ? "is" : "are", human__bytes(s.queued_bytes).s);
	if (*lost || *left)
		log_warn("push to %s: %" PRIu64 " delivered%s%s", s.url, s.delivered, lost, left);
	else
		log_verbose("push to %s: %" PRIu64 " delivered", s.url, s.delivered);
}

void push__finish(struct push *p, uint64_t until_ns, int signal_fd)
{
	uint64_t now = time__monotonic_ns();

	push__look(p);
	push__turn(p, now);
	while (!is_idle_until(p, until_ns) && now < until_ns && !wait_a_while(p, signal_fd)) {
		now = time__monotonic_ns();
		push__turn(p, now);
	}
	for (size_t i = 0; i < p->n; i++)
		report(p->v[i]);
}

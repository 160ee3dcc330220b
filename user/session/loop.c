/* SPDX-License-Identifier: GPL-2.0-or-later */
/* loop: waits for events in a session and handles them, until the session is over. */
#include <poll.h>

#include "confine/confine.h"
#include "session_priv.h"

/* Upper limit of a wait: the ring wakes user space only once it holds many records. */
#define DRAIN_EVERY_NS	      50000000ULL
#define DRAIN_SPARSE_EVERY_NS 200000000ULL
#define SWEEP_EVERY_NS	      2000000000ULL
/* If the session is killed, its capture is not much older than this, … */
#define FLUSH_EVERY_NS 1000000000ULL
/* … and the counters of calls in it are not much older than this. */
#define COUNT_EVERY_NS 5000000000ULL
/* How long a command's processes may take to end after it. */
#define LAST_ENDS_NS 200000000ULL
/* Descriptors in a poll. */
#define MAX_FDS (8 + PUSH_MAX_DESTINATIONS + LOOKS_MAX)
/* Limit on exited members handled at once. */
#define ENDS_AT_ONCE 32

struct loop {
	struct session *s;
	struct progress progress;
	uint64_t began_ns, end_ns; /* end_ns 0: no time limit */
	uint64_t swept_ns, flushed_ns, counted_ns;
	bool write_now; /* write the window so far */
};

/* ── waiting ─────────────────────────────────────────────────────────────────────────────── */

/* Milliseconds until the next drain, the session's end, or whatever else is due first. */
static int time_to_wait(const struct loop *l, uint64_t now)
{
	const struct session *s = l->s;
	const uint64_t dues[] = {l->end_ns,
				 member__next_due(s),
				 follow__next_due(s),
				 mapped__next_due(s),
				 windows__next_due(s),
				 push__next_due(s->push),
				 living__next_due(s, now)};
	uint64_t first =
		now + (kernel__is_sparse(s->kernel) ? DRAIN_SPARSE_EVERY_NS : DRAIN_EVERY_NS);

	for (size_t i = 0; i < ARRAY_SIZE(dues); i++)
		if (dues[i] && dues[i] < first)
			first = dues[i];
	return first <= now ? 0 : (int)((first - now + 999999) / 1000000);
}

/* Waits for records, a signal, or the end of something. */
static void wait_for_something(const struct loop *l, uint64_t now)
{
	const struct session *s = l->s;
	const int fixed[] = {s->signal_fd,
			     s->write_fd,
			     kernel__poll_fd(s->kernel),
			     command__pidfd(s->command),
			     mapped__fd(s),
			     debuginfod__fd(s->debuginfod),
			     kernel__watch_fd(s->kernel),
			     members__ends_fd(s->members)};
	struct pollfd fds[MAX_FDS];
	nfds_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		fds[n++] = (struct pollfd){.fd = fixed[i], .events = POLLIN};
	for (size_t i = 0; i < push__count(s->push); i++)
		fds[n++] = (struct pollfd){.fd = push__fd(s->push, i), .events = POLLIN};
	for (size_t i = 0; i < looks__count(s->looks); i++)
		fds[n++] = (struct pollfd){.fd = looks__fd(s->looks, i), .events = POLLIN};
	poll(fds, n, time_to_wait(l, now));
}

/* ── what came ───────────────────────────────────────────────────────────────────────────── */

/* Ends members whose processes have exited. */
static void end_members(struct session *s)
{
	struct member *exited[ENDS_AT_ONCE];
	size_t n = members__exited(s->members, exited, ARRAY_SIZE(exited));

	/* takes their last records first; this may add members, and end some */
	if (n)
		records__drain(s);
	for (size_t i = 0; i < n; i++)
		member__exited(s, exited[i]);
}

/*
 * The end of a command often ends its processes as well, or it has just ended them itself, so their
 * ends may not have been noticed yet. Other processes of it may live on.
 */
static void wait_for_last_ends(struct session *s)
{
	uint64_t now = time__monotonic_ns(), until = now + LAST_ENDS_NS;
	struct pollfd ends = {.fd = members__ends_fd(s->members), .events = POLLIN};

	while (now < until && members__count_live(s->members)) {
		poll(&ends, 1, (int)((until - now + 999999) / 1000000));
		end_members(s);
		now = time__monotonic_ns();
	}
}

/* ── looking after ───────────────────────────────────────────────────────────────────────── */

static bool is_over(const struct loop *l, uint64_t now)
{
	const struct session *s = l->s;
	bool ended = false;

	switch (s->opts->kind) {
	case SESSION_COMMAND:
		ended = command__ended(s->command);
		break;
	case SESSION_PIDS:
		ended = !members__count_live(s->members);
		break;
	case SESSION_SYSTEM:
		break;
	}
	return ended || s->stopped || (l->end_ns && now >= l->end_ns);
}

static void look_after_members(struct loop *l, uint64_t now)
{
	struct session *s = l->s;
	struct member *m = NULL;

	member__start_looks(s, now);
	member__more_rows(s);
	follow__look(s, now, mapped__works(s));
	/* members that ended just now are left to the end of the session, which does more than a
	 * sweep */
	if (now - l->swept_ns < SWEEP_EVERY_NS || is_over(l, now))
		return;
	l->swept_ns = now;
	member__sweep(s);
	member__retire(s);
	target_cache__turn(s->cache, now);
	while ((m = members__next_live(s->members, m)))
		if (m->ready)
			logs__look(s, m);
}

static void look_after_capture(struct loop *l, uint64_t now)
{
	struct session *s = l->s;

	if (!s->capture || now - l->flushed_ns < FLUSH_EVERY_NS)
		return;
	if (now - l->counted_ns >= COUNT_EVERY_NS) {
		kernel__sites(s->kernel, feed__site, s->feed);
		l->counted_ns = now;
	}
	capture__flush(s->capture);
	l->flushed_ns = now;
}

/* Reports to the keeper that the loop is alive. If that fails, the session ends with what the
 * kernel side still has. */
static void keep_beating(struct loop *l)
{
	struct session *s = l->s;

	if (kernel__beat(s->kernel) == 0 || s->cut_short)
		return;
	s->renewed = renewal__may_be(s, time__monotonic_ns());
	log_error("the kernel side was removed: safescoped did not run for more than ten seconds, "
		  "or its keeper process was killed; the session %s",
		  s->renewed ? "restarts" : "ends");
	s->cut_short = s->stopped = true;
}

static void look_after_windows(struct loop *l, uint64_t now)
{
	struct session *s = l->s;
	int err;

	windows__collect(s);
	/* if this turn has been held up since it started, that belongs to this window */
	if (s->windows && (l->write_now || now >= windows__next_due(s)))
		keep_beating(l);
	err = windows__cut(s, now, l->write_now);
	l->write_now = false;
	if (err) {
		feed__failed(s->feed);
		s->stopped = true;
	}
}

static void show_progress(struct loop *l, uint64_t now)
{
	struct kernel *kernel = l->s->kernel;

	if (!progress__due(&l->progress, now))
		return;
	progress__update(&l->progress, now, now - l->began_ns, l->s->opts->duration_ns,
			 kernel__counter(kernel, WIRE_CNT_SAMPLES),
			 kernel__counter(kernel, WIRE_CNT_PROBE_HITS),
			 kernel__lost_records(kernel));
}

void loop__run(struct session *s)
{
	uint64_t now = s->began_ns = time__monotonic_ns();
	struct loop l = {
		.s = s,
		.began_ns = now,
		.end_ns = s->opts->duration_ns ? now + s->opts->duration_ns : 0,
	};

	progress__init(&l.progress, s->opts->quiet);
	while (!is_over(&l, now)) {
		wait_for_something(&l, now);
		confine__new_turn();
		keep_beating(&l);
		alive__report(s, time__monotonic_ns());
		/* anything that may take long comes after this */
		if (switched__off(s, time__monotonic_ns()))
			break;
		signalled__take(s);
		if (signals__came(&s->write_fd)) {
			l.write_now = true;
			censuses__want_all(s);
		}
		member__take_looks(s, time__monotonic_ns());
		/* before the records of what was mapped */
		mapped__drain(s, time__monotonic_ns());
		records__drain(s);
		symbols__turn(s);
		records__gc_off(s);
		end_members(s);
		unseen__turn(s, time__monotonic_ns());
		now = time__monotonic_ns();
		look_after_members(&l, now);
		censuses__turn(s, now);
		living__turn(s, now);
		look_after_capture(&l, now);
		look_after_windows(&l, now);
		push__turn(s->push, now);
		scrape__turn(s, now);
		if (renewal__is_due(s, now))
			break;
		kernel__budget(s->kernel, now);
		kernel__turn_sampling(s->kernel, now);
		sparing__turn(s, now);
		show_progress(&l, now);
	}
	confine__last_turn();
	/* a command's last records, and its end, may have arrived after the last turn */
	records__drain(s);
	if (command__ended(s->command))
		wait_for_last_ends(s);
	progress__end(&l.progress);
}

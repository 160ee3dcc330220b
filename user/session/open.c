/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open: the kernel side, the timeline and the outputs, and the first members of each kind. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/limit.h"
#include "confine/confine.h"
#include "session_priv.h"

/* How often a process of --pid is checked while its runtime is not initialised. */
#define READY_RETRY_MS 20
/* Members that are not checked by then do not delay the session's start: the machine may be busy.
 * Hanging reads are given up earlier. */
#define FIRST_LOOKS_NS 5000000000ULL

/* Limit on slices in a window before short ones are merged: about 6 MB. */
#define WINDOW_SLICES ((size_t)1 << 17)

static int open_timeline(struct session *s)
{
	const struct session_opts *o = s->opts;
	const struct timeline_opts opts = {
		.frequency_hz = o->frequency_hz,
		.stacks = o->stacks,
		.haskell_lanes = o->output->lanes & EXPORT_LANES_HASKELL,
		.plumbing = o->plumbing,
		.max_slices = o->window_ns ? WINDOW_SLICES : 0,
		.start_ns = time__monotonic_ns(),
		.start_unix_ns = time__realtime_ns(),
	};
	uid_t owner;
	gid_t group;
	int err = timeline__new(&opts, SAFESCOPED_VERSION, o->mode, &s->tl);

	if (!err) {
		s->in = timeline__intake(s->tl);
		err = feed__new(s->in, &s->feed);
	}
	if (err) {
		log_error("no memory for the timeline");
		return err;
	}
	if (!o->save)
		return 0;
	err = output__owner(&owner, &group);
	if (!err)
		err = output__may_replace(o->save, NULL);
	if (!err)
		err = capture__create(o->save, owner, group, &opts, SAFESCOPED_VERSION, o->mode,
				      &s->capture);
	if (!err)
		intake__set_tap(s->in, capture__take, s->capture);
	return err;
}

static int open_kernel(struct session *s)
{
	const struct session_opts *o = s->opts;
	const struct kernel_opts opts = {
		.frequency_hz = o->frequency_hz,
		.max_overhead_percent = o->max_overhead_percent,
		.features = &s->features,
		.all = o->kind == SESSION_SYSTEM,
		.tsos = o->output->lanes & EXPORT_LANES_HASKELL,
		.kernel_stacks = o->kernel_stacks,
	};
	unsigned traces = (s->opts->freeze_ms ? RIGHTS_STOP : 0) |
			  (o->kind == SESSION_COMMAND ? RIGHTS_COMMAND : 0);
	int err = kernel__open(&opts, &s->kernel);

	if (!err)
		err = rights__give_up(&s->features, traces);
	return err ? err : open_timeline(s);
}

/* ── the three kinds ─────────────────────────────────────────────────────────────────────── */

/* Waits a while for a runtime that is not initialised yet. */
static int open_pid(struct session *s, pid_t pid)
{
	const struct target_opts opts = {
		.symbols_path = s->opts->symbols,
		.force = s->opts->force,
		.cache = s->cache,
		.sample = true,
	};
	uint64_t deadline = time__monotonic_ns() + READY_TIMEOUT_NS;
	enum target_verdict verdict;
	struct target *target;
	struct member *m;
	int err;

	for (;;) {
		struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};

		err = target__open(pid, &opts, &target, &verdict);
		if (err)
			return err;
		if (verdict == TARGET_OK || verdict == TARGET_SAMPLED)
			break;
		target__free(target);
		if (time__monotonic_ns() > deadline) {
			log_error("pid %d: its GHC runtime is not initialised, or not in use; try "
				  "again when it runs Haskell code",
				  pid);
			return -ETIMEDOUT;
		}
		if (poll(&p, 1, READY_RETRY_MS) > 0)
			return -ECANCELED;
	}
	/* runs while the verifier is at work */
	target__prepare_names(target);
	err = members__add(s->members, target, pid, target__account(target), true, &m);
	if (err)
		log_error("pid %d: left out: %s", pid, strerror(-err));
	return err;
}

/* Before the loop starts, probes are on, and the keeper waits for a beat as well. */
static void turn(struct session *s)
{
	kernel__beat(s->kernel);
	confine__new_turn();
}

/* Waits for the looks that were started, so that the session is complete when it is reported to
 * have started. */
static void first_looks(struct session *s)
{
	uint64_t now = time__monotonic_ns(), until = now + FIRST_LOOKS_NS;

	/* a signal is left to the loop */
	while ((follow__looks(s) || s->n_snapshots) && now < until && !s->stopped &&
	       !looks__wait(s->looks, s->signal_fd, 2)) {
		turn(s);
		now = time__monotonic_ns();
		if (switched__off(s, now))
			return;
		member__take_looks(s, now);
		member__start_looks(s, now);
		follow__check(s, now);
		records__drain(s);
	}
}

/* If the process ends meanwhile, the others do not fail. */
static int attach_one(struct session *s, struct member *m)
{
	int err = member__attach(s, m, false);

	if (target__alive(m->target))
		return err;
	log_warn("pid %d: ended while it was being attached", m->pid);
	return 0;
}

static int open_pids(struct session *s)
{
	const struct session_opts *o = s->opts;
	bool one = o->n_pids == 1;
	int err = 0;

	for (size_t i = 0; !err && i < o->n_pids; i++) {
		progress__task(o->quiet, "looking at pid %d …", o->pids[i]);
		err = open_pid(s, o->pids[i]);
	}
	if (!err && one)
		err = outputs__plan(o->output,
				    target__info(members__at(s->members, 0)->target)->comm,
				    o->pids[0], &s->outputs);
	else if (!err)
		err = outputs__plan(o->output, "", 0, &s->outputs);
	if (!err)
		err = open_kernel(s);
	/* the main loop checks this only after all are attached */
	if (!err && switched__off(s, time__monotonic_ns()))
		return 0;
	for (size_t i = 0; !err && i < members__count(s->members); i++) {
		struct member *m = members__at(s->members, i);

		progress__task(o->quiet, "attaching to pid %d …", m->pid);
		err = attach_one(s, m);
		turn(s);
	}
	progress__task(o->quiet, NULL);
	if (!err && !members__count_live(s->members)) {
		log_error("nothing to profile: all processes ended while they were being attached");
		err = -ESRCH;
	}
	if (!err)
		first_looks(s);
	return err;
}

static int open_system(struct session *s)
{
	int err = outputs__plan(s->opts->output, "", 0, &s->outputs);

	if (!err)
		err = open_kernel(s);
	if (err)
		return err;
	progress__task(s->opts->quiet, "looking for GHC programs …");
	/* the kernel reports execs from now on, including those that this scan misses */
	err = records__scan(s);
	progress__task(s->opts->quiet, NULL);
	if (err == -ECANCELED) {
		s->not_scanned = true;
		return 0;
	}
	if (err) {
		log_error("/proc: %s", strerror(-err));
		return err;
	}
	first_looks(s);
	log_verbose("attached: %zu processes", members__count_live(s->members));
	return 0;
}

static int open_command(struct session *s)
{
	char *const *argv = s->opts->command;
	int err = command__start(argv, &s->command);

	if (!err)
		err = outputs__plan(s->opts->output, path__base(argv[0]), command__pid(s->command),
				    &s->outputs);
	if (!err)
		err = open_kernel(s);
	if (err)
		return err;
	/* while it is switched off the command gets no probes either */
	if (!switched__off(s, time__monotonic_ns()))
		follow__arm(s);
	return command__go(s->command);
}

static int open_archives(struct session *s)
{
	const struct session_opts *o = s->opts;
	int err = target_cache__open_archives(s->cache, o->archives, o->n_archives);

	if (!err || err == -ENOMEM || !o->archives_may_lack)
		return err;
	log_warn("the session continues without archives");
	s->no_archives = true;
	return 0;
}

int open__all(struct session *s)
{
	int err = target_cache__new(&s->cache);

	spare_fds__open(s);
	if (!err)
		err = members__new(&s->members);
	if (!err)
		err = looks__new(&s->looks);
	if (!err)
		err = served__new(&s->served);
	if (!err)
		err = candidates__new(&s->candidates);
	if (!err)
		err = follow__new(&s->follow);
	if (!err)
		err = mapped__new(&s->mapped);
	if (err) {
		log_error("the session cannot begin: %s%s", strerror(-err), limit__why(err).text);
		return err;
	}
	err = open_archives(s);
	if (err)
		return err;
	target_cache__ask(s->cache, s->debuginfod);
	switch (s->opts->kind) {
	case SESSION_COMMAND:
		return open_command(s);
	case SESSION_SYSTEM:
		return open_system(s);
	case SESSION_PIDS:
		break;
	}
	return open_pids(s);
}

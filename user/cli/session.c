/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One profiling session: open the targets, load, attach, take the snapshot, drain until the end,
 * read what the kernel kept, make the picture, write it.
 */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "session_priv.h"

#define SWEEP_EVERY_NS 2000000000ULL
#define FLUSH_EVERY_NS 1000000000ULL
#define COUNT_EVERY_NS 5000000000ULL
/* Descriptors of a wait before those of the members. */
#define FIXED_FDS 4

/* ── signals ─────────────────────────────────────────────────────────────────────────────── */

static int open_signals(struct session *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	/* a reader of our output that goes away is an error of a write, not our end */
	signal(SIGPIPE, SIG_IGN);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

bool session__signal_came(void *ctx)
{
	struct session *s = ctx;
	struct signalfd_siginfo info;

	return read(s->signal_fd, &info, sizeof(info)) == sizeof(info);
}

/*
 * A command gets the terminal's own signals itself; those that were sent to us it gets from us. The
 * first one is the command's, and we go on to its end; a second one ends the session.
 */
static void take_signal(struct session *s)
{
	struct signalfd_siginfo info;

	if (read(s->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (s->options->mode != MODE_COMMAND || s->signals++) {
		s->stopped = true;
		return;
	}
	if (info.ssi_code != SI_KERNEL && !command__ended(&s->command))
		kill(s->command.pid, (int)info.ssi_signo);
}

/* ── opening ─────────────────────────────────────────────────────────────────────────────── */

static int open_kernel(struct session *s)
{
	const struct kernel_opts opts = {
		.frequency_hz = s->options->frequency_hz,
		.max_overhead_percent = s->options->max_overhead_percent,
		.features = &s->features,
		.all = s->options->mode == MODE_SYSTEM,
		.tsos = s->options->lanes & EXPORT_LANES_HASKELL,
		.kernel_stacks = s->options->kernel_stacks,
	};
	const struct timeline_opts topts = {
		.frequency_hz = s->options->frequency_hz,
		.stacks = s->options->stacks,
		.haskell_lanes = s->options->lanes & EXPORT_LANES_HASKELL,
		.plumbing = s->options->verbose > 0,
		.start_ns = time__monotonic_ns(),
		.start_unix_ns = time__realtime_ns(),
	};
	const char *mode = options__mode(s->options->mode);
	int err = kernel__open(&opts, &s->kernel);

	if (err)
		return err;
	err = timeline__new(&topts, SAFESCOPED_VERSION, mode, &s->tl);
	if (err) {
		log_error("no memory for the timeline");
		return err;
	}
	if (!s->options->save)
		return 0;
	err = capture__create(s->options->save, s->outputs.owner, s->outputs.group, &topts,
			      SAFESCOPED_VERSION, mode, &s->capture);
	if (!err)
		timeline__set_tap(s->tl, capture__take, s->capture);
	return err;
}

static int open_pids(struct session *s)
{
	const struct options *o = s->options;
	int err;

	for (size_t i = 0; i < o->n_pids; i++) {
		err = members__open_pid(s, o->pids[i]);
		if (err)
			return err;
	}
	err = outputs__plan(o, target__info(s->members[0].target)->comm,
			    o->n_pids == 1 ? o->pids[0] : 0, &s->outputs);
	if (!err)
		err = open_kernel(s);
	for (size_t i = 0; !err && i < s->n_members; i++)
		err = members__attach(s, &s->members[i], false);
	return err;
}

static int open_system(struct session *s)
{
	int err = outputs__plan(s->options, "", 0, &s->outputs);

	if (!err)
		err = open_kernel(s);
	if (err)
		return err;
	/* the kernel tells of execs from now on: what this look misses comes by them */
	err = follow__all_now(s);
	if (err == -ECANCELED)
		return 0;
	if (err)
		log_error("/proc: %s", strerror(-err));
	else
		log_verbose("attached: %zu processes", s->n_live);
	return err;
}

/* What the file tells before anybody runs it: the program's first safe call is counted. */
static void arm(struct session *s)
{
	struct command *c = &s->command;
	const struct target_opts opts = {
		.symbols_path = s->options->symbols,
		.force = s->options->force,
		.cache = s->cache,
		.reason = s->why,
		.reason_size = sizeof(s->why),
	};
	struct target_info info;
	struct target *file;

	kernel__follow(s->kernel, c->pid);
	if (c->file_fd < 0 || target__open_file(c->file_fd, c->path, &opts, &file))
		return;
	info = *target__info(file);
	info.pid = c->pid;
	c->armed = kernel__arm(s->kernel, &info) == 0;
	c->suspend = info.suspend;
	/* the analysis stays in the cache */
	target__free(file);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int open_command(struct session *s)
{
	const char *name = s->options->command[0];
	int err = command__start(s->options->command, &s->command);

	if (!err)
		err = outputs__plan(s->options, base_name(name), s->command.pid, &s->outputs);
	if (!err)
		err = open_kernel(s);
	if (err)
		return err;
	arm(s);
	return command__go(&s->command, name);
}

static int open_all(struct session *s)
{
	int err = target_cache__new(&s->cache);

	if (!err)
		err = mapped__new(&s->mapped);
	if (err) {
		log_error("no memory");
		return err;
	}
	switch (s->options->mode) {
	case MODE_COMMAND:
		return open_command(s);
	case MODE_SYSTEM:
		return open_system(s);
	default:
		return open_pids(s);
	}
}

/* ── running ─────────────────────────────────────────────────────────────────────────────── */

void session__take_record(struct session *s, const void *record, size_t size)
{
	int err = timeline__record(s->tl, record, size);

	if (err == -EBADMSG)
		s->bad_records++;
	else if (err == -ENOMEM && !s->record_err)
		s->record_err = err;
}

int session__on_record(void *ctx, const void *record, size_t size)
{
	const struct wire_hdr *h = record;
	struct session *s = ctx;
	struct member *m;

	if (h->type == WIRE_PROC_NEW) {
		if (size >= sizeof(struct wire_proc_new))
			follow__on_new(s, record);
		return 0;
	}
	if (h->type == WIRE_READY) {
		m = members__find_live(s, (pid_t)h->tgid);
		if (m)
			m->retry_ns = 0;
		return 0;
	}
	if (held__take(s, record, size))
		return 0;
	if (h->type == WIRE_EXEC) {
		m = members__find_live(s, (pid_t)h->tgid);
		if (m && members__forget(s, m))
			return 0;
		if (m)
			held__give(s, m);
	}
	session__take_record(s, record, size);
	if (h->type == WIRE_EXEC) {
		m = members__find_live(s, (pid_t)h->tgid);
		if (m && s->options->mode == MODE_PID)
			log_info("pid %u: runs another program now; its profile ends here",
				 h->tgid);
		if (m)
			members__end(s, m, "exec", h->ns);
	}
	return 0;
}

/* After a drain: what the probes told before they came off is known. */
void session__gc_off(struct session *s)
{
	for (pid_t pid = kernel__next_gc_off(s->kernel); pid;
	     pid = kernel__next_gc_off(s->kernel)) {
		struct wire_gc rec = {.point = WIRE_GC_OFF, .number = WIRE_GC_NO_NUMBER};

		rec.h.type = WIRE_GC;
		rec.h.size = sizeof(rec);
		rec.h.tgid = rec.h.tid = (__u32)pid;
		rec.h.ns = time__monotonic_ns();
		session__on_record(s, &rec, sizeof(rec));
		timeline__add_missing(s->tl, pid,
				      "no exact GC pauses: the collections were so many that the "
				      "probes on them cost too much and came off; a larger "
				      "--max-overhead keeps them on");
	}
}

/* Those whose pidfd says that they are gone. */
static void drop_ended(struct session *s, size_t n_fds)
{
	bool any = false;
	size_t at = FIXED_FDS;

	for (size_t i = FIXED_FDS; i < n_fds; i++)
		any = any || (s->fds[i].revents & POLLIN);
	if (!any)
		return;
	/* what they did last; this may bring new members */
	kernel__drain(s->kernel, 0, session__on_record, s);
	for (size_t i = 0; i < s->n_members && at < n_fds; i++) {
		struct member *m = &s->members[i];

		if (target__pidfd(m->target) != s->fds[at].fd)
			continue;
		if (s->fds[at++].revents & POLLIN)
			members__end(s, m, "exited", time__monotonic_ns());
	}
}

/* The earliest of now + DRAIN_EVERY_MS, the session's end, and what else is due; in ms from now. */
static int time_to_wait(const struct session *s, uint64_t now, uint64_t end)
{
	const uint64_t dues[] = {end, members__next_due(s), follow__next_due(s),
				 mapped__next_due(s)};
	uint64_t first = now + DRAIN_EVERY_MS * 1000000ULL;

	for (size_t i = 0; i < ARRAY_SIZE(dues); i++)
		if (dues[i] && dues[i] < first)
			first = dues[i];
	return first <= now ? 0 : (int)((first - now + 999999) / 1000000);
}

/* Waits for records, a signal, an end; returns how many descriptors were waited for. */
static size_t wait_for_something(struct session *s, uint64_t now, uint64_t end)
{
	size_t n = 0;

	if (array__reserve((void **)&s->fds, &s->cap_fds, FIXED_FDS + s->n_live,
			   FIXED_FDS + SESSION_MAX_MEMBERS, sizeof(*s->fds)))
		return 0;
	s->fds[n++] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
	s->fds[n++] = (struct pollfd){.fd = kernel__poll_fd(s->kernel), .events = POLLIN};
	s->fds[n++] = (struct pollfd){.fd = s->command.pidfd, .events = POLLIN};
	s->fds[n++] = (struct pollfd){.fd = mapped__fd(s), .events = POLLIN};
	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].live)
			s->fds[n++] = (struct pollfd){.fd = target__pidfd(s->members[i].target),
						      .events = POLLIN};
	poll(s->fds, n, time_to_wait(s, now, end));
	return n;
}

static void show_progress(struct session *s, uint64_t now, uint64_t began)
{
	if (!progress__due(&s->progress, now))
		return;
	progress__update(&s->progress, now, now - began, s->options->duration_ns,
			 kernel__counter(s->kernel, WIRE_CNT_SAMPLES),
			 kernel__counter(s->kernel, WIRE_CNT_PROBE_HITS), session__lost_records(s));
}

static bool is_over(struct session *s)
{
	switch (s->options->mode) {
	case MODE_COMMAND:
		return command__ended(&s->command);
	case MODE_SYSTEM:
		return false;
	default:
		return !s->n_live;
	}
}

static void look_after_members(struct session *s, uint64_t now)
{
	members__complete(s, now);
	follow__look(s, now);
	if (now - s->swept_ns >= SWEEP_EVERY_NS) {
		members__sweep(s);
		for (size_t i = 0; i < s->n_members; i++)
			if (s->members[i].ready)
				logs__look(s, &s->members[i]);
		s->swept_ns = now;
	}
}

/* What a daemon that is killed leaves is not much older than that. */
static void look_after_capture(struct session *s, uint64_t now)
{
	if (!s->capture || now - s->flushed_ns < FLUSH_EVERY_NS)
		return;
	if (now - s->counted_ns >= COUNT_EVERY_NS) {
		kernel__sites(s->kernel, session__on_site, s);
		s->counted_ns = now;
	}
	capture__flush(s->capture);
	s->flushed_ns = now;
}

static void run(struct session *s)
{
	uint64_t began = time__monotonic_ns(), now = began;
	uint64_t end = s->options->duration_ns ? began + s->options->duration_ns : 0;

	while (!is_over(s) && !(end && now >= end) && !s->stopped) {
		size_t n_fds = wait_for_something(s, now, end);

		take_signal(s);
		/* before the records of what was mapped */
		mapped__drain(s, time__monotonic_ns());
		kernel__drain(s->kernel, 0, session__on_record, s);
		session__gc_off(s);
		drop_ended(s, n_fds);
		now = time__monotonic_ns();
		look_after_members(s, now);
		look_after_capture(s, now);
		kernel__budget(s->kernel, now);
		show_progress(s, now, began);
	}
	/* what a command did last may have come after the last look */
	kernel__drain(s->kernel, 0, session__on_record, s);
	progress__end(&s->progress);
}

/* ── the whole ───────────────────────────────────────────────────────────────────────────── */

/* A command that was no Haskell program is a failure, and how it ended is told. */
static int judge_command(struct session *s)
{
	const struct command *c = &s->command;
	const char *name = s->options->command[0];

	if (c->ended && WIFSIGNALED(c->status))
		log_info("%s: ended by signal %d", name, WTERMSIG(c->status));
	else if (c->ended && WEXITSTATUS(c->status))
		log_info("%s: ended with %d", name, WEXITSTATUS(c->status));
	if (s->n_members)
		return 0;
	log_error("%s: nothing to show: %s", name,
		  s->why[0] ? s->why : "it ended before its GHC runtime was initialised");
	return -ENOEXEC;
}

static void close_all(struct session *s)
{
	command__close(&s->command);
	/* of a session that failed: what there is, if anything was attached */
	capture__abort(s->capture, s->n_members > 0);
	kernel__close(s->kernel);
	logs__free(s);
	timeline__free(s->tl);
	for (size_t i = 0; i < s->n_members; i++) {
		buf__free(&s->members[i].held);
		target__free(s->members[i].target);
	}
	free(s->members);
	free(s->candidates);
	free(s->gone);
	free(s->fds);
	mapped__free(s->mapped);
	target_cache__free(s->cache);
	fd__close(&s->signal_fd);
}

/* One that could not be had is told in the outputs, which follow. */
static void finish_capture(struct session *s)
{
	if (!s->capture)
		return;
	timeline__set_tap(s->tl, NULL, NULL);
	if (capture__finish(s->capture))
		timeline__set_exit_code(s->tl, EXIT_PARTIAL);
	s->capture = NULL;
}

static int run_to_end(struct session *s)
{
	int err;

	err = open_signals(s);
	if (err) {
		log_error("signals: %s", strerror(-err));
		return EXIT_FAILED;
	}
	kernel__features(&s->features);
	if (kernel__require(&s->features) || open_all(s))
		return EXIT_FAILED;
	run(s);
	if (s->options->mode == MODE_COMMAND && judge_command(s))
		return EXIT_FAILED;
	if (session__finish(s))
		return EXIT_FAILED;
	finish_capture(s);
	err = outputs__write(&s->outputs, s->options, s->tl, session__signal_came, s);
	if (err == -ECANCELED)
		log_error("interrupted: the rest of the output was dropped");
	return err ? EXIT_FAILED : timeline__session(s->tl)->exit_code;
}

/* A host has more processes, and files, than the usual limit lets a program open. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int session__run(const struct options *options)
{
	struct session *s = calloc(1, sizeof(*s));
	int code;

	if (!s) {
		log_error("no memory");
		return EXIT_FAILED;
	}
	s->options = options;
	s->signal_fd = -1;
	command__init(&s->command);
	s->start_ns = time__monotonic_ns();
	progress__init(&s->progress, options->quiet);
	if (options->mode == MODE_SYSTEM)
		raise_limit();
	code = run_to_end(s);
	close_all(s);
	free(s);
	return code;
}

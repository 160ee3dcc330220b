/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One profiling session: open the targets, load, attach, take the snapshot, drain until the end,
 * read what the kernel kept, make the picture, write it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/base.h"
#include "kernel/kernel.h"
#include "output.h"
#include "progress.h"
#include "session.h"
#include "target/target.h"
#include "timeline/timeline.h"

#define SNAPSHOT_TIMEOUT_MS 2000
#define DRAIN_EVERY_MS	    50
/* A process that has just been exec'd has no capabilities before hs_init. */
#define READY_TIMEOUT_NS 10000000000ULL
#define READY_RETRY_MS	 20

struct member {
	struct target *target;
	uint64_t attach_ns;
	bool live; /* attached, and not seen to end */
};

struct session {
	const struct options *options;
	struct kernel_features features;
	struct kernel *kernel;
	struct timeline *tl;
	struct member members[OPTIONS_MAX_PIDS];
	size_t n_members, n_live;
	struct outputs outputs;
	struct progress progress;
	uint64_t start_ns;
	int signal_fd;
	bool stopped;	      /* by a signal */
	int record_err;	      /* the first record that the timeline refused for want of memory */
	uint64_t bad_records; /* records that contradicted themselves */
};

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

static bool signal_came(void *ctx)
{
	struct session *s = ctx;
	struct signalfd_siginfo info;

	return read(s->signal_fd, &info, sizeof(info)) == sizeof(info);
}

/* ── opening ─────────────────────────────────────────────────────────────────────────────── */

/* Opens one target; waits a while for a runtime that is not initialised yet. */
static int open_target(struct session *s, pid_t pid)
{
	const struct target_opts opts = {.symbols_path = s->options->symbols,
					 .force = s->options->force};
	uint64_t deadline = time__monotonic_ns() + READY_TIMEOUT_NS;
	enum target_verdict verdict;
	struct target *target;

	for (;;) {
		struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};
		int err = target__open(pid, &opts, &target, &verdict);

		if (err)
			return err;
		if (verdict == TARGET_OK)
			break;
		target__free(target);
		if (time__monotonic_ns() > deadline) {
			log_error("pid %d: its GHC runtime is not initialised; try again when it "
				  "runs Haskell code",
				  pid);
			return -ETIMEDOUT;
		}
		if (poll(&p, 1, READY_RETRY_MS) > 0)
			return -ECANCELED;
	}
	s->members[s->n_members++].target = target;
	return 0;
}

static void namer_name(void *ctx, uint64_t frame, struct code_name *ret_name)
{
	target__name(ctx, frame, ret_name);
}

static int namer_site(void *ctx, uint64_t ret_addr, struct target_site *ret_site)
{
	return target__site(ctx, ret_addr, ret_site);
}

/* What was going on before the probes: threads asleep in calls produce no event of their own. */
static void take_snapshot(struct session *s, struct member *m, bool at_end)
{
	const struct target_info *info = target__info(m->target);
	struct snapshot snapshot;
	uint64_t now = time__monotonic_ns();
	int err = target__snapshot(m->target, SNAPSHOT_TIMEOUT_MS, &snapshot);

	if (err) {
		if (target__alive(m->target)) {
			log_warn("pid %d: no snapshot of its threads: %s", info->pid,
				 strerror(-err));
			timeline__add_missing(s->tl, info->pid,
					      "the snapshot of sleeping threads failed: their "
					      "states before their first event are unknown");
		}
		return;
	}
	for (size_t i = 0; !at_end && i < snapshot.n; i++) {
		const struct snap_thread *t = &snapshot.threads[i];

		if (t->rts.where == WIRE_WHERE_SAFE_CALL)
			kernel__open_call(s->kernel, t->tid, m->attach_ns, t->site, t->incall);
	}
	err = timeline__snapshot(s->tl, info->pid, &snapshot, now, at_end);
	if (err)
		log_warn("pid %d: the snapshot is left out: %s", info->pid, strerror(-err));
	snapshot__free(&snapshot);
}

static void note_missing(struct session *s, const struct target_info *info)
{
	static const struct {
		size_t at;
		const char *text;
	} needs[] = {
		{offsetof(struct target_info, suspend), "safe calls are not counted: suspendThread "
							"was not found; symbols would bring them"},
		{offsetof(struct target_info, resume), "safe calls are not counted: resumeThread "
						       "was not found; symbols would bring them"},
		{offsetof(struct target_info, tick),
		 "no ticks: the RTS's timer was not found; symbols would bring them"},
		{offsetof(struct target_info, gc_start),
		 "no exact GC pauses: the collector's begin was not found; symbols would bring "
		 "them"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct target_probe *p =
			(const struct target_probe *)((const char *)info + needs[i].at);

		if (p->found == FOUND_NONE)
			timeline__add_missing(s->tl, info->pid, needs[i].text);
	}
}

static int attach_member(struct session *s, struct member *m)
{
	const struct target_info *info = target__info(m->target);
	const struct tl_namer namer = {m->target, namer_name, namer_site};
	uint64_t now;
	int err;

	/* before the probes: no record shall find the timeline without its target */
	now = time__monotonic_ns();
	err = timeline__add_target(s->tl, info, &namer, now, now - s->start_ns);
	if (err) {
		log_error("pid %d: %s", info->pid, strerror(-err));
		return err;
	}
	m->attach_ns = now;
	if (kernel__unwind(s->kernel, m->target))
		timeline__add_missing(s->tl, info->pid, "C frames: unwind rows could not be had");
	err = kernel__attach(s->kernel, info);
	if (err)
		return err;
	m->live = true;
	s->n_live++;
	take_snapshot(s, m, false);
	note_missing(s, info);
	log_verbose("attached: pid %d, GHC %s %s, %u capabilities", info->pid, info->ghc_version,
		    info->way, info->capabilities);
	return 0;
}

static int open_all(struct session *s)
{
	const struct options *o = s->options;
	const struct kernel_opts kopts = {
		.frequency_hz = o->frequency_hz,
		.max_overhead_percent = o->max_overhead_percent,
		.features = &s->features,
	};
	const struct timeline_opts topts = {.frequency_hz = o->frequency_hz};
	int err;

	for (size_t i = 0; i < o->n_pids; i++) {
		err = open_target(s, o->pids[i]);
		if (err)
			return err;
	}
	err = outputs__plan(o, target__info(s->members[0].target)->comm,
			    o->n_pids == 1 ? o->pids[0] : 0, &s->outputs);
	if (err)
		return err;
	err = kernel__open(&kopts, &s->kernel);
	if (err)
		return err;
	err = timeline__new(&topts, SAFESCOPED_VERSION, "pid", &s->tl);
	if (err) {
		log_error("no memory for the timeline");
		return err;
	}
	for (size_t i = 0; i < s->n_members; i++) {
		err = attach_member(s, &s->members[i]);
		if (err)
			return err;
	}
	return 0;
}

/* ── running ─────────────────────────────────────────────────────────────────────────────── */

static struct member *member_of(struct session *s, uint32_t pid)
{
	for (size_t i = 0; i < s->n_members; i++)
		if (target__info(s->members[i].target)->pid == (pid_t)pid)
			return &s->members[i];
	return NULL;
}

static int on_record(void *ctx, const void *record, size_t size)
{
	const struct wire_hdr *h = record;
	struct session *s = ctx;
	struct member *m;
	int err = timeline__record(s->tl, record, size);

	if (err == -EBADMSG)
		s->bad_records++;
	else if (err == -ENOMEM && !s->record_err)
		s->record_err = err;
	if (h->type == WIRE_EXEC) {
		m = member_of(s, h->tgid);
		timeline__end_target(s->tl, (pid_t)h->tgid, "exec", h->ns);
		if (m && m->live) {
			m->live = false;
			s->n_live--;
			log_info("pid %u: runs another program now; its profile ends here",
				 h->tgid);
		}
	}
	return 0;
}

static int on_site(void *ctx, const struct wire_site_key *key, const struct wire_site *site)
{
	struct session *s = ctx;
	int err = timeline__site_counters(s->tl, key, site);

	return err == -ENOMEM ? err : 0;
}

static int on_thread(void *ctx, pid_t tid, const struct wire_thread *thread)
{
	struct session *s = ctx;
	struct wire_off_stack stack;

	if (timeline__thread_state(s->tl, tid, thread) == 0 && thread->off_since_ns &&
	    thread->has_stack && kernel__off_stack(s->kernel, tid, &stack) == 0)
		timeline__thread_off_stack(s->tl, (pid_t)thread->tgid, tid, &stack);
	return 0;
}

static uint64_t lost_records(struct session *s)
{
	uint64_t lost = 0;

	for (int i = 0; i < WIRE_CNT_MAX; i++)
		if (kernel__loss_name((enum wire_counter)i))
			lost += kernel__counter(s->kernel, (enum wire_counter)i);
	return lost;
}

/* A target whose pidfd says that it is gone. */
static void drop_ended(struct session *s)
{
	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = &s->members[i];

		if (!m->live || target__alive(m->target))
			continue;
		m->live = false;
		s->n_live--;
		kernel__drain(s->kernel, 0, on_record, s);
		timeline__end_target(s->tl, target__info(m->target)->pid, "exited",
				     time__monotonic_ns());
	}
}

/* Waits for records, a signal, or a target's end; at most as long as until the session's end. */
static void wait_for_something(struct session *s, uint64_t now, uint64_t end)
{
	struct pollfd fds[OPTIONS_MAX_PIDS + 2];
	nfds_t n = 0;
	int timeout = DRAIN_EVERY_MS;

	fds[n++] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
	fds[n++] = (struct pollfd){.fd = kernel__poll_fd(s->kernel), .events = POLLIN};
	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].live)
			fds[n++] = (struct pollfd){.fd = target__pidfd(s->members[i].target),
						   .events = POLLIN};
	if (end && end > now)
		timeout = (int)MIN((end - now) / 1000000 + 1, (uint64_t)DRAIN_EVERY_MS);
	poll(fds, n, timeout);
}

static void show_progress(struct session *s, uint64_t now, uint64_t began)
{
	if (!progress__due(&s->progress, now))
		return;
	progress__update(&s->progress, now, now - began, s->options->duration_ns,
			 kernel__counter(s->kernel, WIRE_CNT_SAMPLES),
			 kernel__counter(s->kernel, WIRE_CNT_PROBE_HITS), lost_records(s));
}

static void run(struct session *s)
{
	uint64_t began = time__monotonic_ns(), now = began;
	uint64_t end = s->options->duration_ns ? began + s->options->duration_ns : 0;

	while (s->n_live && !(end && now >= end) && !s->stopped) {
		wait_for_something(s, now, end);
		s->stopped = signal_came(s);
		kernel__drain(s->kernel, 0, on_record, s);
		drop_ended(s);
		now = time__monotonic_ns();
		kernel__budget(s->kernel, now);
		show_progress(s, now, began);
	}
	progress__end(&s->progress);
}

/* ── ending ──────────────────────────────────────────────────────────────────────────────── */

static void tell_losses(struct session *s)
{
	uint64_t lost = lost_records(s), sent = kernel__counter(s->kernel, WIRE_CNT_RECORDS);
	double share = lost ? (double)lost / (double)(lost + sent) : 0;

	for (size_t k = 0; k < s->n_members; k++) {
		pid_t pid = target__info(s->members[k].target)->pid;

		for (int i = 0; i < WIRE_CNT_MAX; i++) {
			const char *name = kernel__loss_name((enum wire_counter)i);
			uint64_t n = name ? kernel__counter(s->kernel, (enum wire_counter)i) : 0;

			if (n)
				timeline__set_lost(s->tl, pid, name, n);
		}
		if (s->bad_records)
			timeline__set_lost(s->tl, pid, "bad_record", s->bad_records);
		timeline__set_lost_share(s->tl, pid, share);
	}
	if (kernel__counter(s->kernel, WIRE_CNT_UNWIND_DIFFERS))
		log_verbose(
			"%llu samples: unwind rows and StgRun's place in the C stack disagree",
			(unsigned long long)kernel__counter(s->kernel, WIRE_CNT_UNWIND_DIFFERS));
	if (lost || s->bad_records || s->record_err)
		timeline__set_exit_code(s->tl, EXIT_PARTIAL);
}

/* Nothing is lost by it, but times next to it are inferred. */
static void tell_inferred(struct session *s)
{
	uint64_t n = kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_IN) +
		     kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_OUT);
	char text[160];

	if (!n)
		return;
	snprintf(text, sizeof(text),
		 "%llu context switches were not reported by the kernel; their times were inferred "
		 "from wake-ups",
		 (unsigned long long)n);
	for (size_t i = 0; i < s->n_members; i++)
		timeline__add_missing(s->tl, target__info(s->members[i].target)->pid, text);
}

static void tell_cost(struct session *s, uint64_t now)
{
	struct rusage self = {}, children = {};

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	for (size_t i = 0; i < s->n_members; i++) {
		pid_t pid = target__info(s->members[i].target)->pid;
		struct kernel_cost k;
		struct tl_cost cost;

		kernel__cost(s->kernel, pid, now, &k);
		cost = (struct tl_cost){
			.probe_hits = k.probe_hits,
			.bpf_ns = k.bpf_ns,
			.bpf_ns_known = k.bpf_known,
			.trap_ns_estimated = k.trap_ns,
			.probes_paused_ns = k.paused_ns,
			.max_rss_bytes = (uint64_t)self.ru_maxrss * 1024,
		};
		cost.user_cpu_ns =
			(uint64_t)(self.ru_utime.tv_sec + self.ru_stime.tv_sec +
				   children.ru_utime.tv_sec + children.ru_stime.tv_sec) *
				1000000000ULL +
			(uint64_t)(self.ru_utime.tv_usec + self.ru_stime.tv_usec +
				   children.ru_utime.tv_usec + children.ru_stime.tv_usec) *
				1000ULL;
		timeline__set_cost(s->tl, pid, &cost);
	}
}

/* Everything that is left in the kernel, then the picture. */
static int finish(struct session *s)
{
	uint64_t end;
	int err;

	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].live)
			take_snapshot(s, &s->members[i], true);
	end = time__monotonic_ns();
	kernel__drain(s->kernel, 0, on_record, s);
	err = kernel__sites(s->kernel, on_site, s);
	if (!err)
		err = kernel__threads(s->kernel, on_thread, s);
	tell_cost(s, end);
	tell_losses(s);
	tell_inferred(s);
	for (size_t i = 0; i < s->n_members; i++)
		kernel__detach(s->kernel, target__info(s->members[i].target)->pid);
	if (!err)
		err = timeline__finish(s->tl, end);
	if (err)
		log_error("the profile cannot be made: %s", strerror(-err));
	return err;
}

static void close_all(struct session *s)
{
	kernel__close(s->kernel);
	timeline__free(s->tl);
	for (size_t i = 0; i < s->n_members; i++)
		target__free(s->members[i].target);
	fd__close(&s->signal_fd);
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
	if (finish(s))
		return EXIT_FAILED;
	err = outputs__write(&s->outputs, s->options, s->tl, signal_came, s);
	if (err == -ECANCELED)
		log_error("interrupted: the rest of the output was dropped");
	return err ? EXIT_FAILED : timeline__session(s->tl)->exit_code;
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
	s->start_ns = time__monotonic_ns();
	progress__init(&s->progress, options->quiet);
	code = run_to_end(s);
	close_all(s);
	free(s);
	return code;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of a session: they join, become ready, and end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "session_priv.h"

/* A process that has just been exec'd has no capabilities before hs_init. */
#define READY_TIMEOUT_NS 10000000000ULL
#define READY_RETRY_MS	 20
/* How often one that began in the session is looked at: at once, then less and less. */
#define COMPLETE_FIRST_NS   1000000ULL
#define COMPLETE_LONGEST_NS 200000000ULL

/* ── joining ─────────────────────────────────────────────────────────────────────────────── */

int members__open_pid(struct session *s, pid_t pid)
{
	const struct target_opts opts = {
		.symbols_path = s->options->symbols,
		.force = s->options->force,
		.cache = s->cache,
		.sample = true,
	};
	uint64_t deadline = time__monotonic_ns() + READY_TIMEOUT_NS;
	enum target_verdict verdict;
	struct target *target;

	for (;;) {
		struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};
		struct member *m;
		int err = target__open(pid, &opts, &target, &verdict);

		if (err)
			return err;
		if (verdict == TARGET_OK || verdict == TARGET_SAMPLED)
			return members__add(s, target, true, &m);
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
}

int members__add(struct session *s, struct target *target, bool ready, struct member **ret_member)
{
	int err = array__reserve((void **)&s->members, &s->cap_members, s->n_members + 1,
				 SESSION_MAX_MEMBERS, sizeof(*s->members));
	struct member *m;

	if (err) {
		log_error("pid %d: left out: %s", target__info(target)->pid, strerror(-err));
		target__free(target);
		return err;
	}
	m = &s->members[s->n_members++];
	*m = (struct member){.target = target, .pid = target__info(target)->pid, .ready = ready};
	*ret_member = m;
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

static int namer_read_ccs(void *ctx, const uint64_t *addrs, size_t n)
{
	return target__read_ccs(ctx, addrs, n);
}

static int namer_ccs(void *ctx, uint64_t addr, struct target_ccs *ret_ccs)
{
	return target__ccs(ctx, addr, ret_ccs);
}

/* What was going on before the probes: threads asleep in calls produce no event of their own. */
void members__snapshot(struct session *s, struct member *m, bool at_end)
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
			kernel__open_call(s->kernel, info->pid, t->tid, m->attach_ns, t->site,
					  t->incall);
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

	if (info->no_probes) {
		char text[400];

		snprintf(text, sizeof(text),
			 "no probes: %s; safe calls are not counted, and collections and ticks "
			 "not seen",
			 info->no_probes);
		timeline__add_missing(s->tl, info->pid, text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct target_probe *p =
			(const struct target_probe *)((const char *)info + needs[i].at);

		if (p->found == FOUND_NONE)
			timeline__add_missing(s->tl, info->pid, needs[i].text);
	}
}

/* With an unstripped twin the symbols are there, though not in the process. */
static void note_symbols(struct session *s, const struct member *m)
{
	const char *have = target__symbols(m->target);

	if (s->options->symbols)
		return;
	if (!strcmp(have, "none"))
		timeline__add_missing(
			s->tl, m->pid,
			"no symbols: what else has no name is shown by its place in the "
			"file; --symbols FILE, or a debug file in /usr/lib/debug, "
			"would bring them");
	else if (!strcmp(have, "dynamic only"))
		timeline__add_missing(
			s->tl, m->pid,
			"only dynamic symbols: functions that are not exported have no "
			"name, or that of a neighbour (~); --symbols FILE, or a debug "
			"file in /usr/lib/debug, would bring them");
}

/* --stacks asks for what only a profiled program has. In system mode it is asked of those that are.
 */
static void note_stacks(struct session *s, const struct target_info *info)
{
	bool asked = s->options->stacks == TL_STACKS_CCS || s->options->stacks == TL_STACKS_BOTH;

	if (!asked || info->profiled)
		return;
	timeline__add_missing(s->tl, info->pid,
			      "no cost centres: the program was not compiled for profiling; ghc "
			      "-prof would bring them");
	if (s->options->mode != MODE_SYSTEM)
		timeline__set_exit_code(s->tl, EXIT_PARTIAL);
}

static void note_kernel(struct session *s, const struct target_info *info)
{
	if (s->options->kernel_stacks && !target_cache__knows_kernel(s->cache))
		timeline__add_missing(s->tl, info->pid,
				      "kernel frames have no names: /proc/kallsyms shows no "
				      "addresses; kernel.kptr_restrict at 1 or below brings them");
}

/* The unwind rows of what it maps: all of its libraries are there once the runtime is. */
static void bring_rows(struct session *s, struct member *m)
{
	if (kernel__unwind(s->kernel, m->target))
		timeline__add_missing(s->tl, m->pid, "C frames: unwind rows could not be had");
}

void members__read_maps(struct session *s, struct member *m)
{
	int err = target__refresh_maps(m->target);

	if (err)
		log_debug("pid %d: its mappings cannot be read again: %s", m->pid, strerror(-err));
	else
		bring_rows(s, m);
}

/* What waits until the runtime is initialised. */
static void on_ready(struct session *s, struct member *m)
{
	const struct target_info *info = target__info(m->target);

	m->ready = true;
	if (info->only_sampled) {
		log_warn("pid %d: only sampled: %s", info->pid, info->only_sampled);
		timeline__add_missing(s->tl, info->pid, info->only_sampled);
		return;
	}
	/* what was mapped between the look at it and now */
	m->maps_due_ns = time__monotonic_ns();
	logs__look(s, m);
	members__snapshot(s, m, false);
	note_missing(s, info);
	note_symbols(s, m);
	note_stacks(s, info);
	note_kernel(s, info);
	kernel__learn(s->kernel, &m->program, info);
	log_verbose("attached: pid %d, GHC %s %s, %u capabilities", info->pid, info->ghc_version,
		    info->way, info->capabilities);
}

int members__attach(struct session *s, struct member *m, bool armed)
{
	const struct target_info *info = target__info(m->target);
	const struct tl_namer namer = {
		.ctx = m->target,
		.name = namer_name,
		.site = namer_site,
		.read_ccs = namer_read_ccs,
		.ccs = namer_ccs,
	};
	uint64_t now, took;
	int err;

	members__sweep(s);
	/* before the probes: no record shall find the timeline without its target */
	now = time__monotonic_ns();
	took = now - (m->program.h.ns ? m->program.h.ns : s->start_ns);
	/* its probes were there before its first instruction */
	if (m->program.flags & WIRE_PROC_TARGET) {
		now = m->program.h.ns;
		took = 0;
	}
	err = timeline__add_target(s->tl, info, &namer, now, took);
	if (err) {
		log_error("pid %d: %s", info->pid, strerror(-err));
		return err;
	}
	m->attach_ns = now;
	/* of one that begins: those of its executable and of the dynamic linker */
	bring_rows(s, m);
	/* the entry of an armed child is of the file: this one is of the process */
	err = armed ? kernel__update(s->kernel, info) : kernel__attach(s->kernel, info);
	if (err) {
		timeline__end_target(s->tl, m->pid, "left", now);
		return err;
	}
	m->probed_ns = time__monotonic_ns();
	m->live = true;
	s->n_live++;
	s->n_starting += !m->ready;
	/* not only when it is ready: the next one may begin before that */
	if (!(m->program.flags & WIRE_PROC_TARGET))
		kernel__learn(s->kernel, &m->program, info);
	if (m->ready) {
		on_ready(s, m);
	} else {
		m->retry_ns = time__monotonic_ns() + COMPLETE_FIRST_NS;
		m->give_up_ns = m->retry_ns + READY_TIMEOUT_NS;
	}
	return 0;
}

struct member *members__find_live(struct session *s, pid_t pid)
{
	for (size_t i = s->n_members; i-- > 0;)
		if (s->members[i].live && s->members[i].pid == pid)
			return &s->members[i];
	return NULL;
}

/* ── becoming ready ──────────────────────────────────────────────────────────────────────── */

static void complete(struct session *s, struct member *m, uint64_t now)
{
	const struct target_info *info = target__info(m->target);
	uint64_t wait = COMPLETE_FIRST_NS << MIN(m->tries, 10U);
	enum target_verdict verdict = TARGET_NOT_READY;
	int err = target__complete(m->target, now >= m->give_up_ns, &verdict);

	/* A machine that is busy, not a runtime that is wrong; or a process that is about to end:
	 * its memory goes before its pidfd tells.
	 */
	if ((err == -ETIMEDOUT || err == -ESRCH) && now < m->give_up_ns)
		err = 0;
	if (err || (verdict != TARGET_OK && now >= m->give_up_ns)) {
		/* one that has ended is told by its pidfd */
		if (!target__alive(m->target)) {
			m->retry_ns = UINT64_MAX;
			return;
		}
		/* a library may be loaded long before hs_init is called */
		if (!err) {
			m->give_up_ns = now + READY_TIMEOUT_NS;
			m->retry_ns = now + COMPLETE_LONGEST_NS;
			return;
		}
		kernel__unlearn(s->kernel, &m->program);
		members__end(s, m, "left", now);
		return;
	}
	if (verdict != TARGET_OK) {
		m->tries++;
		m->retry_ns = time__monotonic_ns() + MIN(wait, COMPLETE_LONGEST_NS);
		return;
	}
	err = kernel__update(s->kernel, info);
	/* What was confirmed is the program of an exec that took its entry away: that is told next.
	 */
	if (err == -ENOENT && now < m->give_up_ns && target__alive(m->target)) {
		m->retry_ns = time__monotonic_ns() + COMPLETE_FIRST_NS;
		return;
	}
	if (err)
		log_debug("pid %d: gone while it became ready: %s", m->pid, strerror(-err));
	timeline__update_target(s->tl, info);
	bring_rows(s, m);
	s->n_starting--;
	held__give(s, m);
	on_ready(s, m);
}

void members__complete(struct session *s, uint64_t now)
{
	for (size_t i = 0; i < s->n_members; i++) {
		struct member *m = &s->members[i];

		if (m->live && !m->ready && now >= m->retry_ns)
			complete(s, m, now);
	}
}

uint64_t members__next_due(const struct session *s)
{
	uint64_t due = 0;

	for (size_t i = 0; i < s->n_members; i++) {
		const struct member *m = &s->members[i];

		if (m->live && !m->ready && m->retry_ns != UINT64_MAX &&
		    (!due || m->retry_ns < due))
			due = m->retry_ns;
	}
	return due;
}

/* ── ending ──────────────────────────────────────────────────────────────────────────────── */

/* Nothing more comes of it; the kernel's part of it goes. */
static void leave(struct session *s, struct member *m, uint64_t at_ns)
{
	m->live = false;
	s->n_live--;
	s->n_starting -= !m->ready;
	if (s->options->mode == MODE_PID)
		return;
	/* its pid may come again: nothing of it stays in the kernel but the sites' counters */
	kernel__cost(s->kernel, m->pid, at_ns, &m->cost);
	kernel__detach(s->kernel, m->pid);
	if (array__reserve((void **)&s->gone, &s->cap_gone, s->n_gone + 1, SESSION_MAX_MEMBERS,
			   sizeof(*s->gone)) == 0)
		s->gone[s->n_gone++] = m->pid;
	else if (!s->record_err)
		s->record_err = -ENOMEM;
}

void members__end(struct session *s, struct member *m, const char *how, uint64_t at_ns)
{
	if (!m->live)
		return;
	held__give(s, m);
	timeline__end_target(s->tl, m->pid, how, at_ns);
	leave(s, m, at_ns);
}

/*
 * An exec changes what /proc shows some time before the kernel tells of it (fs/exec.c,
 * begin_new_exec() and exec_binprm()): who looks in between has found the new program, and then
 * learns that the process runs another one. No instruction of that program has run by then, so that
 * its runtime was not initialised, and no probe was hit.
 */
bool members__forget(struct session *s, struct member *m)
{
	uint64_t now = time__monotonic_ns();
	struct kernel_cost cost;

	if (m->ready || m->held_over)
		return false;
	kernel__cost(s->kernel, m->pid, now, &cost);
	if (cost.probe_hits || timeline__forget_target(s->tl, m->pid))
		return false;
	log_debug("pid %d: was looked at in the midst of its exec", m->pid);
	held__drop(m);
	m->forgotten = true;
	leave(s, m, now);
	return true;
}

static bool is_gone(void *ctx, uint32_t tgid)
{
	const struct session *s = ctx;

	for (size_t i = 0; i < s->n_gone; i++)
		if (s->gone[i] == (pid_t)tgid)
			return true;
	return false;
}

void members__sweep(struct session *s)
{
	int err;

	if (!s->n_gone)
		return;
	err = kernel__sweep_sites(s->kernel, is_gone, session__on_site, s);
	if (err && !s->record_err)
		s->record_err = err;
	s->n_gone = 0;
}

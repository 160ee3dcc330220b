/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that begin while the session runs: the kernel tells of each exec, and each is looked at
 * once its files tell what it is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "session_priv.h"

#define CANDIDATES_MAX 65536
/* Most forks exec within milliseconds: the exec is what to look at then. */
#define FORK_WAIT_NS 100000000ULL
/* A runtime in a library is mapped by the dynamic linker, some milliseconds after the exec… */
#define LIBRARY_WAIT_NS	   2000000ULL
#define LIBRARY_GIVE_UP_NS 5000000000ULL
/* … or by dlopen(), when a program that is not Haskell's loads what it needs. */
#define DLOPEN_WAIT_NS 1000000000ULL

static void add_candidate(struct session *s, const struct wire_proc_new *rec, uint64_t due,
			  uint64_t give_up)
{
	struct candidate *c = NULL;

	for (size_t i = 0; i < s->n_candidates && !c; i++)
		if (s->candidates[i].pid == (pid_t)rec->h.tgid)
			c = &s->candidates[i];
	if (!c && array__reserve((void **)&s->candidates, &s->cap_candidates, s->n_candidates + 1,
				 CANDIDATES_MAX, sizeof(*s->candidates))) {
		log_warn("pid %u: not looked at: too many processes begin", rec->h.tgid);
		return;
	}
	if (!c)
		c = &s->candidates[s->n_candidates++];
	*c = (struct candidate){
		.pid = (pid_t)rec->h.tgid, .due_ns = due, .give_up_ns = give_up, .program = *rec};
}

/* What is no target, and why: in a host's session that is nothing to stop for. */
static void refuse(struct session *s, pid_t pid, bool ghc, const char *why)
{
	if (s->options->mode == MODE_COMMAND && pid == s->command.pid)
		memcpy(s->why, why, sizeof(s->why));
	if (!ghc)
		log_debug("pid %d: %s", pid, why);
	else
		log_warn("pid %d: left out: %s", pid, why);
}

/* The armed child has become another program than the one that was looked at. */
static bool is_other(const struct target_info *info, const struct command *c)
{
	return !c->armed || info->suspend.dev != c->suspend.dev ||
	       info->suspend.ino != c->suspend.ino || info->suspend.offset != c->suspend.offset;
}

/*
 * The executable of a process that nobody told, as the kernel would: who runs it next is a target
 * at once. Where stat() and the kernel tell of different devices (btrfs, overlayfs) nothing
 * matches.
 */
static void name_program(pid_t pid, struct wire_proc_new *program)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &st))
		return;
	program->ino = st.st_ino;
	/* include/linux/kdev_t.h, MKDEV */
	program->dev = major(st.st_dev) << 20 | minor(st.st_dev);
}

/*
 * Whether what was looked at is the program that the record tells of: an exec may have come in
 * between, and what the one program has says nothing of the other. Asked after the look.
 */
static bool is_program(pid_t pid, const struct wire_proc_new *rec)
{
	char path[64], comm[sizeof(rec->comm) + 1] = "";
	struct wire_proc_new now = {};
	FILE *in;

	name_program(pid, &now);
	if (now.dev == rec->dev)
		return now.ino == rec->ino;
	/* stat() and the kernel may tell of different devices */
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	in = fopen(path, "re");
	if (!in)
		return false;
	if (fgets(comm, sizeof(comm), in))
		comm[strcspn(comm, "\n")] = '\0';
	fclose(in);
	return strncmp(comm, rec->comm, sizeof(rec->comm)) == 0;
}

/* Attaches the process if it is one to be profiled. -EAGAIN: too early to tell. */
static int look_at(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool starting)
{
	bool taken = rec && (rec->flags & WIRE_PROC_TARGET);
	bool armed = taken && s->options->mode == MODE_COMMAND && pid == s->command.pid;
	char why[sizeof(s->why)] = "";
	const struct target_opts opts = {
		.symbols_path = s->options->symbols,
		.force = s->options->force,
		.cache = s->cache,
		.reason = why,
		.reason_size = sizeof(why),
		.starting = starting,
	};
	enum target_verdict verdict = TARGET_OK;
	struct target *target;
	struct member *m;
	int err;

	m = members__find_live(s, pid);
	if (m && target__alive(m->target))
		return 0;
	/* another process has its pid, and its end is yet to be noticed */
	if (m)
		members__end(s, m, "exited", time__monotonic_ns());
	err = target__open(pid, &opts, &target, &verdict);
	if (!err && verdict == TARGET_REFUSED) {
		target__free(target);
		err = -ENOTSUP;
	}
	/* without a layout there is nothing to attach with before it is confirmed */
	if (!err && verdict == TARGET_NOT_READY && !target__info(target)->wire.flags) {
		target__free(target);
		err = -EAGAIN;
	}
	if (err == -EAGAIN)
		return err;
	/* a child that does not exec has its parent's runtime, which works already */
	if (!err && verdict == TARGET_NOT_READY && rec && (rec->flags & WIRE_PROC_FORK) &&
	    target__complete(target, false, &verdict))
		verdict = TARGET_NOT_READY;
	if (taken && (err || (armed && is_other(target__info(target), &s->command)))) {
		kernel__detach(s->kernel, pid);
		armed = taken = false;
	}
	if (err) {
		refuse(s, pid, verdict == TARGET_REFUSED, why);
		return err;
	}
	err = members__add(s, target, verdict == TARGET_OK, &m);
	if (err)
		return err;
	if (rec) {
		m->program = *rec;
		/* its probes are still to come */
		if (!taken)
			m->program.flags &= ~WIRE_PROC_TARGET;
		if (!is_program(pid, rec))
			m->program.ino = 0;
	} else if (!target__info(target)->dynamic_rts) {
		name_program(pid, &m->program);
	}
	return members__attach(s, m, armed);
}

static int look_at_running(void *ctx, pid_t pid)
{
	struct session *s = ctx;

	look_at(s, pid, NULL, false);
	/* what began meanwhile has its records in the ring */
	kernel__drain(s->kernel, 0, session__on_record, s);
	/* it is taken by that: nobody else is told */
	s->stopped = session__signal_came(s);
	return s->stopped ? -ECANCELED : 0;
}

int follow__all_now(struct session *s)
{
	return discover__all(s->cache, look_at_running, s);
}

void follow__on_new(struct session *s, const struct wire_proc_new *rec)
{
	uint64_t now = time__monotonic_ns();
	int err = -EAGAIN;

	/* its records follow this one: it has to be in the timeline before them */
	if (rec->flags & WIRE_PROC_TARGET)
		err = look_at(s, (pid_t)rec->h.tgid, rec, true);
	if (err == -EAGAIN)
		add_candidate(s, rec, rec->flags & WIRE_PROC_FORK ? now + FORK_WAIT_NS : now,
			      now + LIBRARY_GIVE_UP_NS);
}

bool follow__wants(const struct session *s, pid_t pid)
{
	return s->options->mode != MODE_PID && kernel__follows(s->kernel, pid);
}

void follow__on_mapped(struct session *s, pid_t pid)
{
	const struct wire_proc_new rec = {
		.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid, .ns = time__monotonic_ns()}};

	for (size_t i = 0; i < s->n_candidates; i++)
		if (s->candidates[i].pid == pid)
			return;
	add_candidate(s, &rec, rec.h.ns, rec.h.ns + LIBRARY_GIVE_UP_NS);
}

/* True if the candidate is to be kept, for another look. */
static bool look_again(struct session *s, struct candidate *c, uint64_t now)
{
	struct wire_proc_new rec = c->program;
	pid_t pid = c->pid;
	bool first = !c->tries++;
	int err;

	if (!first && c->give_up_ns == 0) {
		/* the late look for what dlopen() has brought; most processes are gone by then */
		if (discover__process(s->cache, pid))
			look_at(s, pid, NULL, false);
		return false;
	}
	err = look_at(s, pid, &rec, true);
	if (err == -EAGAIN && now < c->give_up_ns) {
		c->due_ns = now + LIBRARY_WAIT_NS * MIN(c->tries, 50U);
		return true;
	}
	if (err == -EAGAIN)
		kernel__detach(s->kernel, pid);
	/* a library that is loaded later is told when it is mapped */
	if (err != -ENOEXEC || mapped__works(s))
		return false;
	c->due_ns = now + DLOPEN_WAIT_NS;
	c->give_up_ns = 0;
	return true;
}

void follow__look(struct session *s, uint64_t now)
{
	for (size_t i = 0; i < s->n_candidates;) {
		struct candidate *c = &s->candidates[i];

		if (now < c->due_ns || look_again(s, c, now))
			i++;
		else
			s->candidates[i] = s->candidates[--s->n_candidates];
	}
}

uint64_t follow__next_due(const struct session *s)
{
	uint64_t due = 0;

	for (size_t i = 0; i < s->n_candidates; i++)
		if (!due || s->candidates[i].due_ns < due)
			due = s->candidates[i].due_ns;
	return due;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * follow: processes that start while the session runs. The kernel reports each exec, and each
 * process is looked at as soon as its files show what it is.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "follow_priv.h"
#include "session_priv.h"

/* Most forks exec within milliseconds, and then only the exec is of interest. */
#define FORK_WAIT_NS 100000000ULL
/* A runtime in a library is mapped by the dynamic linker some milliseconds after the exec, … */
#define LIBRARY_WAIT_NS	   2000000ULL
#define LIBRARY_GIVE_UP_NS 5000000000ULL
/* … hung memory may respond again, … */
#define HUNG_WAIT_NS 1000000000ULL
/* … there may be room for another look, … */
#define ROOM_WAIT_NS 2000000ULL
/* … or a program in another language may load a runtime by dlopen(). */
#define DLOPEN_WAIT_NS 1000000000ULL

/* Limit on making unwind rows for a program that is stopped meanwhile. */
#define HELD_ROWS_NS 1000000000ULL

int follow__new(struct follow **ret_follow)
{
	struct follow *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	*ret_follow = f;
	return 0;
}

void follow__free(struct follow *f)
{
	free(f);
}

/* Cancels the candidate's check. Returns the target, now owned by the caller. */
static struct target *take_target(struct session *s, struct candidate *c)
{
	if (c->target)
		looks__cancel(s->looks, c->target);
	return candidates__take_target(s->candidates, c);
}

/* Stops following a process that the kernel side had made a target by itself. */
static void let_go(struct session *s, pid_t pid)
{
	kernel__detach(s->kernel, pid);
	members__leave_gone(s->members, pid);
}

static void drop(struct session *s, struct candidate *c)
{
	target__free(take_target(s, c));
	candidates__drop(s->candidates, c);
}

/* ── looking at a process ────────────────────────────────────────────────────────────────── */

/*
 * Reports what is not profiled, and why; the session of a host goes on. For a command the reason is
 * kept, unless it is only that the command has ended: what its file lacks explains more.
 */
static void refuse(struct session *s, pid_t pid, bool ghc, const char *why, int err)
{
	if (s->opts->kind == SESSION_COMMAND && pid == command__pid(s->command) && err != -ESRCH)
		snprintf(s->follow->why, sizeof(s->follow->why), "%s", why);
	if (!ghc) {
		log_debug("pid %d: %s", pid, why);
		return;
	}
	s->n_left_out++;
	hourly__report(s, pid, "left out", why);
}

/* The member that this process already is; NULL: none. */
static const struct member *member_of(struct session *s, pid_t pid)
{
	struct member *m = members__find_live(s->members, pid);

	if (!m || target__alive(m->target))
		return m;
	/* its pid has been reused, and its end has not been noticed yet */
	member__exited(s, m);
	return NULL;
}

/* True if it has been counted as left out for lack of room. */
static bool was_refused(const struct candidate *c)
{
	return c && c->refused;
}

/* The process joins. rec NULL: not reported by the kernel. Takes the target over. */
static int join(struct session *s, struct target *target, bool ready,
		const struct wire_proc_new *rec, bool taken, bool armed)
{
	pid_t pid = target__info(target)->pid;
	const struct candidate *c = candidates__find(s->candidates, pid);
	bool dynamic = target__info(target)->dynamic_rts;
	struct member *m;
	uint64_t ino;
	uint32_t dev;
	int err;

	if (!fd__has_room(ROOM_JOIN_FDS))
		err = -EMFILE;
	else if (was_refused(c) && !members__has_room(s->members, target__account(target)))
		err = -EDQUOT; /* so that it waits again */
	else
		err = 0;
	if (err)
		target__free(target);
	else
		err = members__add(s->members, target, pid, target__account(target), ready, &m);
	if (err) {
		if (taken)
			let_go(s, pid);
		if (err != -EDQUOT && err != -EMFILE)
			log_error("pid %d: left out: %s", pid, strerror(-err));
		return err;
	}
	if (c)
		m->waited = c->again;
	if (rec) {
		m->program = *rec;
		/* its probes are yet to be set */
		if (!taken)
			m->program.flags &= ~WIRE_PROC_TARGET;
		if (!program__is(pid, rec))
			m->program.ino = 0;
	} else if (!dynamic && program__exe(pid, &ino, &dev)) {
		/* in the kernel's encoding: the next process to run the program is a target at
		 * once */
		m->program.ino = ino;
		m->program.dev = dev;
	}
	return member__attach(s, m, armed);
}

/* Makes a process that was looked at a member. Takes the target over. */
static int decide(struct session *s, pid_t pid, const struct wire_proc_new *rec,
		  struct target *target, enum target_verdict verdict)
{
	bool taken = rec && (rec->flags & WIRE_PROC_TARGET);
	bool armed = taken && s->opts->kind == SESSION_COMMAND && pid == command__pid(s->command);

	if (armed && follow__is_other(s->follow, target__info(target))) {
		kernel__detach(s->kernel, pid);
		armed = taken = false;
	}
	return join(s, target, verdict == TARGET_OK, rec, taken, armed);
}

/* Handles a process that is not to be profiled, for the reason `err`, which is returned. */
static int leave_out(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool ghc,
		     const char *why, int err)
{
	if (rec && (rec->flags & WIRE_PROC_TARGET)) {
		let_go(s, pid);
		/* what is left of an ending process does not look like a GHC program */
		if (err == -ESRCH || program__has_ended(pid))
			early__missed(s, rec);
		else
			/* a different file has the number of a known one */
			kernel__unlearn(s->kernel, rec);
	} else if (rec && s->opts->kind == SESSION_COMMAND) {
		s->n_unseen += err == -ESRCH || program__has_ended(pid);
	} else if (rec && (err == -ESRCH || program__has_ended(pid))) {
		early__missed(s, rec);
	}
	refuse(s, pid, ghc, why, err);
	return err;
}

/* A process that already runs joins only once its memory has shown that there is a runtime. Takes
 * the target over. */
static int await_check(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool running,
		       struct target *target)
{
	struct wire_proc_new none = {.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid}};
	uint64_t now = time__monotonic_ns();
	struct candidates *all = s->candidates;
	struct candidate *c = candidates__find(all, pid);

	if (!c)
		c = candidates__add(all, rec ? rec : &none, now, now + LIBRARY_GIVE_UP_NS);
	if (!c) {
		s->unseen.processes = true;
		target__free(target);
		return -ENOMEM;
	}
	target__free(take_target(s, c));
	c->reported = rec != NULL;
	c->running = running;
	c->due_ns = now;
	candidates__set_target(all, c, target);
	return -EINPROGRESS;
}

/*
 * True if there are enough descriptors. Without them, a process looks as if it had ended or were
 * not a GHC program. If the kernel side has made it a target, it is let go.
 */
static bool has_descriptors(struct session *s, const struct wire_proc_new *rec, pid_t pid,
			    unsigned n)
{
	if (fd__has_room(n))
		return true;
	if (rec && (rec->flags & WIRE_PROC_TARGET))
		let_go(s, pid);
	return false;
}

/*
 * Attaches to the process if it is one to be profiled. -EAGAIN: too early to decide; -EBUSY: its
 * memory hangs, or there is no memory to look at it; -EINPROGRESS: it is a candidate whose runtime
 * is being checked; -EDQUOT and the errors of retry__is_worth_it(): no room for it to join, or no
 * descriptors or memory.
 */
static int look_at(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool starting)
{
	char why[sizeof(s->follow->why)] = "";
	const struct target_opts opts = {
		.symbols_path = s->opts->symbols,
		.force = s->opts->force,
		.cache = s->cache,
		.reason = why,
		.reason_size = sizeof(why),
		.starting = starting,
		.unchecked = true,
	};
	enum target_verdict verdict = TARGET_OK;
	struct target *target;
	int err;

	if (member_of(s, pid))
		return 0;
	if (!has_descriptors(s, rec, pid, ROOM_SELECT_FDS))
		return -EMFILE;
	err = s->opts->select ? select__wants(s->opts->select, pid) : 1;
	if (retry__shows_nothing(err))
		return -EBUSY;
	if (!err) {
		if (rec && program__has_ended(pid))
			early__missed(s, rec);
		if (rec && (rec->flags & WIRE_PROC_TARGET))
			let_go(s, pid);
		return -EPERM;
	}
	if (!has_descriptors(s, rec, pid, ROOM_LOOK_FDS))
		return -EMFILE;
	err = target__open(pid, &opts, &target, &verdict);
	if (err == -EMFILE && rec && (rec->flags & WIRE_PROC_TARGET))
		let_go(s, pid);
	if (!err && verdict == TARGET_REFUSED) {
		target__free(target);
		err = -ENOTSUP;
	}
	/* without a layout nothing can be attached before it is confirmed */
	if (!err && starting && !target__info(target)->wire.flags) {
		target__free(target);
		err = -EAGAIN;
	}
	/* memory or a file that was unavailable may be available soon */
	if (retry__is_worth_it(err) && err != -EMFILE)
		err = -EBUSY;
	if (err == -EAGAIN || err == -EBUSY || err == -EMFILE)
		return err;
	if (err)
		return leave_out(s, pid, rec, verdict == TARGET_REFUSED || err == -EOWNERDEAD, why,
				 err);
	/* a child without an exec has its parent's runtime, which is already initialised */
	if (!starting || (rec && (rec->flags & WIRE_PROC_FORK)))
		return await_check(s, pid, rec, !starting, target);
	return decide(s, pid, rec, target, verdict);
}

/* Starts or takes the candidate's check. Errors like look_at(); others of retry__is_worth_it(): the
 * check was not possible. */
static int check_candidate(struct session *s, struct candidate *c, uint64_t now)
{
	bool fork = c->reported && (c->program.flags & WIRE_PROC_FORK);
	const struct wire_proc_new program = c->program, *rec = c->reported ? &program : NULL;
	enum target_verdict verdict = TARGET_NOT_READY;
	char why[sizeof(s->follow->why)] = "";
	bool looked = target__looks(c->target);
	pid_t pid = c->pid;
	int err;

	if (!looked) {
		err = fd__has_room(ROOM_CHECK_FDS)
			      ? looks__check(s->looks, c->target, !fork, why, sizeof(why))
			      : -EMFILE;
		if (!err)
			return -EINPROGRESS;
		if (err == -EDQUOT) {
			c->due_ns = now + ROOM_WAIT_NS;
			return -EINPROGRESS;
		}
	} else {
		err = looks__checked(s->looks, c->target, why, sizeof(why), &verdict);
	}
	if (err == -EINPROGRESS)
		return err;
	if (err == -ETIMEDOUT)
		err = -EBUSY;
	if (err && err != -EMFILE && fork) {
		err = 0;
		verdict = TARGET_NOT_READY;
	}
	if (!err && verdict == TARGET_NOT_READY && !target__info(c->target)->wire.flags)
		err = -EAGAIN;
	if (!err)
		return member_of(s, pid) ? 0 : decide(s, pid, rec, take_target(s, c), verdict);
	target__free(take_target(s, c));
	if (retry__is_worth_it(err) && rec && (rec->flags & WIRE_PROC_TARGET))
		let_go(s, pid);
	if (err == -ENOTSUP && looked && !rec) {
		if (!c->unconfirmed)
			refuse(s, pid, true, why, err);
		return room__wait_unconfirmed(s, c) ? -EINPROGRESS : err;
	}
	return err == -EAGAIN || retry__shows_nothing(err)
		       ? err
		       : leave_out(s, pid, rec, err != -ESRCH, why, err);
}

static void await_look(struct session *s, const struct wire_proc_new *rec, uint64_t now,
		       uint64_t due_ns, bool mapped)
{
	struct candidate *c = candidates__add(s->candidates, rec, due_ns, now + LIBRARY_GIVE_UP_NS);

	if (c)
		c->mapped = mapped;
	else
		s->unseen.processes = true;
}

void follow__on_mapped(struct session *s, pid_t pid)
{
	const struct wire_proc_new rec = {
		.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid, .ns = time__monotonic_ns()}};
	struct candidate *c = candidates__find(s->candidates, pid);

	if (!c) {
		await_look(s, &rec, rec.h.ns, rec.h.ns, true);
		return;
	}
	c->mapped = true;
	if (c->waits == WAITS_FOR_TIME)
		c->due_ns = rec.h.ns;
}

void follow__running(struct session *s, pid_t pid)
{
	struct candidates *all = s->candidates;
	struct candidate *c = candidates__find(all, pid);
	int err;

	/* its check is in progress, or it will be looked at when there is room */
	if (c && (c->target || c->waits))
		return;
	err = look_at(s, pid, NULL, false);
	if (err == -EBUSY || err == -EMFILE)
		follow__on_mapped(s, pid);
	c = err == -EMFILE ? candidates__find(all, pid) : NULL;
	if (c && !room__wait(s, c, time__monotonic_ns(), err))
		candidates__drop(all, c);
}

/* ── what the kernel reports ─────────────────────────────────────────────────────────────── */

/*
 * Releases the command's program, which is stopped at its exec; if it can be stopped at its entry,
 * once all of its libraries are known. `err`: result of the look at its exec, when a runtime in a
 * library was not mapped yet.
 */
static int start_loaded(struct session *s, const struct wire_proc_new *rec, int err)
{
	struct member *m;

	/* each of these may take a second, and the keeper waits for a beat */
	kernel__beat(s->kernel);
	if (command__load(s->command)) {
		kernel__beat(s->kernel);
		s->rows_until_ns = time__monotonic_ns() + HELD_ROWS_NS;
		if (err == -EAGAIN || err == -ENOEXEC)
			err = look_at(s, (pid_t)rec->h.tgid, rec, true);
		m = members__find_live(s->members, (pid_t)rec->h.tgid);
		if (m)
			member__read_maps(s, m);
		kernel__beat(s->kernel);
	}
	command__let_go(s->command);
	return err;
}

void follow__on_exec(struct session *s, pid_t pid)
{
	s->follow->became = pid;
}

void follow__on_new(struct session *s, const struct wire_proc_new *rec)
{
	uint64_t now = time__monotonic_ns();
	bool held = (pid_t)rec->h.tgid == command__pid(s->command) && command__holds(s->command);
	struct candidates *all = s->candidates;
	struct candidate *before = candidates__find(all, (pid_t)rec->h.tgid);
	/* mappings of the new program may be reported before its exec, as those of a member */
	bool mapped = (before && before->mapped) || s->follow->became == (pid_t)rec->h.tgid;
	int err = -EAGAIN;

	/* the candidate was for another program or another process */
	if (before) {
		/* unless the new program was made a target itself, the entry belongs to the old
		 * one */
		if (before->program.flags & WIRE_PROC_TARGET && !(rec->flags & WIRE_PROC_TARGET))
			let_go(s, (pid_t)rec->h.tgid);
		drop(s, before);
	}
	member__exec_unseen(s, rec);
	if (s->switched_off) {
		if (held)
			command__let_go(s->command);
		return;
	}
	/* only this program is stopped until its rows are made */
	if (held)
		s->rows_until_ns = now + HELD_ROWS_NS;
	/* its records follow this one, so it has to be in the timeline first */
	if (held || (rec->flags & WIRE_PROC_TARGET))
		err = look_at(s, (pid_t)rec->h.tgid, rec, true);
	if (held)
		err = start_loaded(s, rec, err);
	/* it may load a runtime later: look_again() knows whether that will be reported */
	if (err == -EAGAIN || err == -EBUSY || (held && err == -ENOEXEC))
		await_look(s, rec, now, rec->flags & WIRE_PROC_FORK ? now + FORK_WAIT_NS : now,
			   mapped);
	if (err == -EDQUOT || retry__is_worth_it(err)) {
		before = candidates__add(all, rec, now, 0);
		s->unseen.processes |= !before;
		if (before && !room__wait(s, before, now, err))
			candidates__drop(all, before);
	}
}

bool follow__wants(const struct session *s, pid_t pid)
{
	return s->opts->kind != SESSION_PIDS && kernel__follows(s->kernel, pid);
}

/* Puts off a candidate that could not be decided (-EAGAIN) or whose memory hangs (-EBUSY). Returns
 * like look_again(). */
static bool put_off(struct session *s, struct candidate *c, uint64_t now, int err)
{
	/* after a pause without a result it is tried less often */
	bool rarely = err == -EAGAIN && retry__has_begun(&c->again);

	if (now < c->give_up_ns && !rarely) {
		c->due_ns =
			now + (err == -EBUSY ? HUNG_WAIT_NS : LIBRARY_WAIT_NS * MIN(c->tries, 50U));
		return true;
	}
	let_go(s, c->pid);
	if (err == -EBUSY)
		return room__wait_for_time(s, c);
	if (c->running)
		return candidates__wait_for_time(s->candidates, c, now);
	/* an unknown runtime is confirmed like that of a process that has run for long */
	candidates__go_on(s->candidates, c, now + LIBRARY_GIVE_UP_NS);
	c->running = true;
	c->reported = false;
	c->due_ns = now;
	return true;
}

/*
 * A candidate is given up. If the kernel reported its start, and its program ended while it was put
 * off or waited for time, nobody has counted it yet.
 */
static void count_missed(struct session *s, const struct candidate *c)
{
	if (!c->reported && !c->refused && !c->missed && program__has_ended(c->pid))
		early__missed(s, &c->program);
}

/* True if the candidate is to be kept for another look. */
static bool look_again(struct session *s, struct candidate *c, uint64_t now, bool maps_reported)
{
	struct wire_proc_new rec = c->program;
	pid_t pid = c->pid;
	bool first, late;
	int err = c->waits ? room__await(s, c, now, now + LIBRARY_GIVE_UP_NS) : 0;

	if (err == -EDQUOT)
		return true;
	if (err) {
		count_missed(s, c);
		return false;
	}
	if (c->target) {
		err = check_candidate(s, c, now);
	} else {
		first = !c->tries++;
		late = !first && c->give_up_ns == 0;
		if (first && mapped__would_show(s, c))
			return false;
		/* many have ended by now; a look would only find that out */
		if (first && c->reported && kill(pid, 0) && errno == ESRCH) {
			leave_out(s, pid, &rec, false, "has ended", -ESRCH);
			return false;
		}
		/* the late look; most processes have ended by then */
		if (late && !discover__process(s->cache, pid))
			return false;
		err = look_at(s, pid, late || !c->reported ? NULL : &rec, !late && !c->running);
		if (late && err != -EINPROGRESS && !retry__shows_nothing(err))
			return false;
	}
	if (err == -EINPROGRESS)
		return true;
	if (err == -EDQUOT || retry__is_worth_it(err))
		return room__wait(s, c, now, err);
	if (!c->give_up_ns)
		c->give_up_ns = now + LIBRARY_GIVE_UP_NS;
	if (err == -EAGAIN || err == -EBUSY)
		return put_off(s, c, now, err);
	/* a library that is loaded later is reported when it is mapped */
	if (err != -ENOEXEC || maps_reported) {
		if (err)
			count_missed(s, c);
		return false;
	}
	c->due_ns = now + DLOPEN_WAIT_NS;
	c->give_up_ns = 0;
	return true;
}

void follow__check(struct session *s, uint64_t now)
{
	struct candidates *all = s->candidates;
	struct candidate *c, *next;

	for (c = candidates__n_checked(all) ? candidates__next(all, NULL) : NULL; c; c = next) {
		next = candidates__next(all, c);
		if (c->target && candidate__is_due(c, now) && !look_again(s, c, now, true))
			drop(s, c);
	}
}

void follow__look(struct session *s, uint64_t now, bool maps_reported)
{
	struct candidates *all = s->candidates;
	uint64_t began = now, after;
	struct candidate *c;

	candidates__new_turn(all);
	while ((c = candidates__next_due(all, s->served, now))) {
		bool has_user = c->has_user;
		uid_t user = c->user;

		if (!look_again(s, c, now, maps_reported))
			drop(s, c);
		after = time__monotonic_ns();
		/* a user who is alone takes no time from others */
		if (has_user)
			served__add(s->served, user, after - began);
		if (after - now > TURN_NS)
			return;
		began = after;
	}
}

bool follow__looks(const struct session *s)
{
	return candidates__n_checked(s->candidates);
}

uint64_t follow__next_due(const struct session *s)
{
	const struct candidate *c = NULL;
	uint64_t due = 0;

	while ((c = candidates__next(s->candidates, c)))
		if (!(c->target && target__looks(c->target)) && (!due || c->due_ns < due))
			due = c->due_ns;
	return due;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * follow: processes that begin while the session runs. The kernel reports each exec, and each
 * process is looked at once its files show what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "process/proc.h"
#include "session_priv.h"

#define CANDIDATES_MAX 65536
/* Most forks exec within milliseconds: the exec is what to look at then. */
#define FORK_WAIT_NS 100000000ULL
/* A runtime in a library is mapped by the dynamic linker, some milliseconds after the exec… */
#define LIBRARY_WAIT_NS	   2000000ULL
#define LIBRARY_GIVE_UP_NS 5000000000ULL
/* … and memory that hung may be well again. */
#define HUNG_WAIT_NS 1000000000ULL
/* … and among the looks there may be room again. */
#define ROOM_WAIT_NS 2000000ULL
/* … or by dlopen(), when a program in another language loads what it needs. */
#define DLOPEN_WAIT_NS 1000000000ULL

/* The unwind rows of a program that is stopped for it are made for so long at most. */
#define HELD_ROWS_NS 1000000000ULL

/* A process that is to be looked at. */
struct candidate {
	pid_t pid;
	uint64_t due_ns;
	uint64_t give_up_ns; /* 0: the next look is the late one, for what dlopen() has loaded */
	unsigned tries;
	bool reported; /* by the kernel: `program` */
	bool running;  /* it ran before it was seen: it joins when its runtime was checked */
	struct wire_proc_new program;
	struct target *target; /* its runtime is to be checked before it joins; NULL: not yet */
	uid_t user;	       /* while has_user: on whose account it is looked at */
	bool has_user;
	uint64_t turn; /* in which it was looked at last */
	UT_hash_handle hh;
};

struct follow {
	struct candidate *candidates; /* by pid */
	size_t n_checked;	      /* that have a target */
	uint64_t turn;
	/* the command's child has its probes already, this one among them */
	bool armed;
	struct target_probe suspend;
	char why[512];
};

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
	struct candidate *c = f ? f->candidates : NULL, *next;

	if (!f)
		return;
	/* the list of them stays */
	HASH_CLEAR(hh, f->candidates);
	for (; c; c = next) {
		next = c->hh.next;
		target__free(c->target);
		free(c);
	}
	free(f);
}

const char *follow__why(const struct session *s)
{
	return s->follow->why;
}

/* ── the set of candidates ───────────────────────────────────────────────────────────────── */

static struct candidate *find(const struct follow *f, pid_t pid)
{
	struct candidate *c;

	HASH_FIND(hh, f->candidates, &pid, sizeof(pid), c);
	return c;
}

static struct candidate *add(struct follow *f, pid_t pid)
{
	struct candidate *c =
		HASH_COUNT(f->candidates) < CANDIDATES_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->pid = pid;
	HASH_ADD(hh, f->candidates, pid, sizeof(c->pid), c);
	if (!c->hh.tbl) { /* uthash found no memory */
		free(c);
		return NULL;
	}
	return c;
}

/* Its check is not waited for any more. The target, which is the caller's then. */
static struct target *take_target(struct session *s, struct candidate *c)
{
	struct target *target = c->target;

	if (!target)
		return NULL;
	looks__cancel(s->looks, target);
	s->follow->n_checked--;
	c->target = NULL;
	return target;
}

static void drop(struct session *s, struct candidate *c)
{
	target__free(take_target(s, c));
	HASH_DEL(s->follow->candidates, c);
	free(c);
}

/* Behind those that wait already. */
static void move_last(struct session *s, struct candidate *c)
{
	struct follow *f = s->follow;

	HASH_DEL(f->candidates, c);
	HASH_ADD(hh, f->candidates, pid, sizeof(c->pid), c);
	if (c->hh.tbl)
		return;
	/* uthash found no memory */
	target__free(take_target(s, c));
	free(c);
}

/* In place of an earlier one of the process. NULL: there is no room for it. */
static struct candidate *add_candidate(struct session *s, const struct wire_proc_new *rec,
				       uint64_t due, uint64_t give_up)
{
	struct follow *f = s->follow;
	pid_t pid = (pid_t)rec->h.tgid;
	struct candidate *c = find(f, pid);

	if (c)
		target__free(take_target(s, c));
	else
		c = add(f, pid);
	if (!c) {
		log_warn("pid %d: not looked at: too many processes begin", pid);
		return NULL;
	}
	c->due_ns = due;
	c->give_up_ns = give_up;
	c->tries = 0;
	c->program = *rec;
	c->reported = true;
	c->running = c->has_user = false;
	return c;
}

/* ── the command's program ───────────────────────────────────────────────────────────────── */

void follow__arm(struct session *s)
{
	struct follow *f = s->follow;
	const struct target_opts opts = {
		.symbols_path = s->opts->symbols,
		.force = s->opts->force,
		.cache = s->cache,
		.reason = f->why,
		.reason_size = sizeof(f->why),
	};
	const char *path = NULL;
	int fd = command__file(s->command, &path);
	struct target_info info;
	struct target *file;

	kernel__follow(s->kernel, command__pid(s->command));
	if (fd < 0 || target__open_file(fd, path, &opts, &file))
		return;
	info = *target__info(file);
	info.pid = command__pid(s->command);
	f->armed = kernel__arm(s->kernel, &info, target__account(file)) == 0;
	f->suspend = info.suspend;
	/* the analysis stays in the cache */
	target__free(file);
}

/* The armed child has become another program than the one whose file was looked at. */
static bool is_other(const struct follow *f, const struct target_info *info)
{
	return !f->armed || info->suspend.dev != f->suspend.dev ||
	       info->suspend.ino != f->suspend.ino || info->suspend.offset != f->suspend.offset;
}

/* ── looking at a process ────────────────────────────────────────────────────────────────── */

bool follow__exe(pid_t pid, uint64_t *ret_ino, uint32_t *ret_dev)
{
	char path[64];
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	/* nobody's server is asked */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st))
		return false;
	*ret_ino = st.stx_ino;
	/* include/linux/kdev_t.h, MKDEV */
	*ret_dev = st.stx_dev_major << 20 | st.stx_dev_minor;
	return true;
}

/*
 * Whether what was looked at is the program of the record: an exec may have come in between, and
 * what is known of the one program does not hold for the other. To be asked after the look.
 */
static bool is_program(pid_t pid, const struct wire_proc_new *rec)
{
	struct proc_stat stat;
	uint64_t ino;
	uint32_t dev;

	if (follow__exe(pid, &ino, &dev) && dev == rec->dev)
		return ino == rec->ino;
	/* the two disagree on the device: btrfs, overlayfs */
	return proc__stat(pid, 0, &stat) == 0 &&
	       strncmp(stat.comm, rec->comm, sizeof(rec->comm)) == 0;
}

/* What is no target, and why: in a host's session that is nothing to stop for. */
static void refuse(struct session *s, pid_t pid, bool ghc, const char *why)
{
	if (s->opts->kind == SESSION_COMMAND && pid == command__pid(s->command))
		snprintf(s->follow->why, sizeof(s->follow->why), "%s", why);
	if (!ghc) {
		log_debug("pid %d: %s", pid, why);
		return;
	}
	s->n_left_out++;
	log_warn("pid %d: left out: %s", pid, why);
}

/* The member that the process is already. NULL: it is none. */
static const struct member *member_of(struct session *s, pid_t pid)
{
	struct member *m = members__find_live(s->members, pid);

	if (!m || target__alive(m->target))
		return m;
	/* another process has its pid now, and its end has not been noticed yet */
	member__exited(s, m);
	return NULL;
}

/* The process joins. rec NULL: the kernel has not reported it. Takes the target over. */
static int join(struct session *s, struct target *target, bool ready,
		const struct wire_proc_new *rec, bool taken, bool armed)
{
	pid_t pid = target__info(target)->pid;
	bool dynamic = target__info(target)->dynamic_rts;
	struct member *m;
	uint64_t ino;
	uint32_t dev;
	int err = members__add(s->members, target, pid, target__account(target), ready, &m);

	if (err) {
		if (taken) {
			kernel__detach(s->kernel, pid);
			members__leave_gone(s->members, pid);
		}
		if (err != -EDQUOT)
			log_error("pid %d: left out: %s", pid, strerror(-err));
		return err;
	}
	if (rec) {
		m->program = *rec;
		/* its probes are still to come */
		if (!taken)
			m->program.flags &= ~WIRE_PROC_TARGET;
		if (!is_program(pid, rec))
			m->program.ino = 0;
	} else if (!dynamic && follow__exe(pid, &ino, &dev)) {
		/* as the kernel would report it: who runs the program next is a target at once */
		m->program.ino = ino;
		m->program.dev = dev;
	}
	return member__attach(s, m, armed);
}

/* What a process that was looked at becomes: a member, or nothing. Takes the target over. */
static int decide(struct session *s, pid_t pid, const struct wire_proc_new *rec,
		  struct target *target, enum target_verdict verdict)
{
	bool taken = rec && (rec->flags & WIRE_PROC_TARGET);
	bool armed = taken && s->opts->kind == SESSION_COMMAND && pid == command__pid(s->command);

	if (armed && is_other(s->follow, target__info(target))) {
		kernel__detach(s->kernel, pid);
		armed = taken = false;
	}
	return join(s, target, verdict == TARGET_OK, rec, taken, armed);
}

/* It is none to be profiled, by this error. */
static int leave_out(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool ghc,
		     const char *why, int err)
{
	if (rec && (rec->flags & WIRE_PROC_TARGET)) {
		kernel__detach(s->kernel, pid);
		members__leave_gone(s->members, pid);
		s->n_too_short += err == -ESRCH;
	}
	refuse(s, pid, ghc, why);
	return err;
}

/* A process that runs already shows that its runtime is one before it joins. Takes the target over.
 */
static int await_check(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool running,
		       struct target *target)
{
	struct wire_proc_new none = {.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid}};
	uint64_t now = time__monotonic_ns();
	struct candidate *c = find(s->follow, pid);

	if (!c)
		c = add_candidate(s, rec ? rec : &none, now, now + LIBRARY_GIVE_UP_NS);
	if (!c) {
		target__free(target);
		return -ENOMEM;
	}
	target__free(take_target(s, c));
	c->reported = rec != NULL;
	c->running = running;
	c->target = target;
	c->due_ns = now;
	s->follow->n_checked++;
	return -EINPROGRESS;
}

/*
 * Attaches the process if it is one to be profiled. -EAGAIN: too early to decide; -EBUSY: its
 * memory hangs; -EINPROGRESS: it is a candidate whose runtime is being checked.
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
	if (s->opts->select && !select__wants(s->opts->select, pid)) {
		if (rec && (rec->flags & WIRE_PROC_TARGET)) {
			kernel__detach(s->kernel, pid);
			members__leave_gone(s->members, pid);
		}
		return -EPERM;
	}
	err = target__open(pid, &opts, &target, &verdict);
	if (!err && verdict == TARGET_REFUSED) {
		target__free(target);
		err = -ENOTSUP;
	}
	/* without a layout there is nothing to attach with before it is confirmed */
	if (!err && starting && !target__info(target)->wire.flags) {
		target__free(target);
		err = -EAGAIN;
	}
	if (err == -EAGAIN || err == -EBUSY)
		return err;
	if (err)
		return leave_out(s, pid, rec, verdict == TARGET_REFUSED, why, err);
	/* a child that does not exec has its parent's runtime, which works already */
	if (!starting || (rec && (rec->flags & WIRE_PROC_FORK)))
		return await_check(s, pid, rec, !starting, target);
	return decide(s, pid, rec, target, verdict);
}

/* The candidate's check, begun or taken. Errors as look_at(). */
static int check_candidate(struct session *s, struct candidate *c, uint64_t now)
{
	bool fork = c->reported && (c->program.flags & WIRE_PROC_FORK);
	const struct wire_proc_new program = c->program, *rec = c->reported ? &program : NULL;
	enum target_verdict verdict = TARGET_NOT_READY;
	char why[sizeof(s->follow->why)] = "";
	pid_t pid = c->pid;
	int err;

	if (!target__looks(c->target)) {
		err = looks__check(s->looks, c->target, !fork, why, sizeof(why));
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
	if (err && fork) {
		err = 0;
		verdict = TARGET_NOT_READY;
	}
	if (!err && verdict == TARGET_NOT_READY && !target__info(c->target)->wire.flags)
		err = -EAGAIN;
	if (!err)
		return member_of(s, pid) ? 0 : decide(s, pid, rec, take_target(s, c), verdict);
	target__free(take_target(s, c));
	return err == -EAGAIN || err == -EBUSY
		       ? err
		       : leave_out(s, pid, rec, err != -ESRCH && err != -ENOMEM, why, err);
}

void follow__on_mapped(struct session *s, pid_t pid)
{
	const struct wire_proc_new rec = {
		.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid, .ns = time__monotonic_ns()}};

	if (!find(s->follow, pid))
		add_candidate(s, &rec, rec.h.ns, rec.h.ns + LIBRARY_GIVE_UP_NS);
}

void follow__running(struct session *s, pid_t pid)
{
	struct candidate *c = find(s->follow, pid);

	/* its check goes on */
	if (c && c->target)
		return;
	if (look_at(s, pid, NULL, false) == -EBUSY)
		follow__on_mapped(s, pid);
}

/* ── what the kernel reports ─────────────────────────────────────────────────────────────── */

void follow__on_new(struct session *s, const struct wire_proc_new *rec)
{
	uint64_t now = time__monotonic_ns();
	bool held = (pid_t)rec->h.tgid == command__pid(s->command) && command__holds(s->command);
	struct candidate *before = find(s->follow, (pid_t)rec->h.tgid);
	int err = -EAGAIN;

	/* what was looked at is another program, or another process */
	if (before)
		drop(s, before);
	if (s->switched_off) {
		if (held)
			command__let_go(s->command);
		return;
	}
	/* nobody waits but the program itself */
	if (held)
		s->rows_until_ns = now + HELD_ROWS_NS;
	/* its records follow this one: it has to be in the timeline before them */
	if (held || (rec->flags & WIRE_PROC_TARGET))
		err = look_at(s, (pid_t)rec->h.tgid, rec, true);
	if (held)
		command__let_go(s->command);
	/* what holds no runtime may load one later: look_again() knows whether that is reported */
	if (err == -EAGAIN || err == -EBUSY || (held && err == -ENOEXEC))
		add_candidate(s, rec, rec->flags & WIRE_PROC_FORK ? now + FORK_WAIT_NS : now,
			      now + LIBRARY_GIVE_UP_NS);
}

bool follow__wants(const struct session *s, pid_t pid)
{
	return s->opts->kind != SESSION_PIDS && kernel__follows(s->kernel, pid);
}

/* True if the candidate is to be kept, for another look. */
static bool look_again(struct session *s, struct candidate *c, uint64_t now, bool maps_reported)
{
	struct wire_proc_new rec = c->program;
	pid_t pid = c->pid;
	bool first, late;
	int err;

	if (c->target) {
		err = check_candidate(s, c, now);
	} else {
		first = !c->tries++;
		late = !first && c->give_up_ns == 0;
		/* the late look; most processes are gone by then */
		if (late && !discover__process(s->cache, pid))
			return false;
		err = look_at(s, pid, late || !c->reported ? NULL : &rec, !late && !c->running);
		if (late && err != -EINPROGRESS && err != -EBUSY)
			return false;
	}
	if (err == -EINPROGRESS)
		return true;
	if (!c->give_up_ns)
		c->give_up_ns = now + LIBRARY_GIVE_UP_NS;
	if ((err == -EAGAIN || err == -EBUSY) && now < c->give_up_ns) {
		c->due_ns =
			now + (err == -EBUSY ? HUNG_WAIT_NS : LIBRARY_WAIT_NS * MIN(c->tries, 50U));
		return true;
	}
	if (err == -EAGAIN || err == -EBUSY)
		kernel__detach(s->kernel, pid);
	if (err == -EBUSY)
		log_warn("pid %d: left out: its runtime could not be checked in time", pid);
	/* a library that is loaded later is reported when it is mapped */
	if (err != -ENOEXEC || maps_reported)
		return false;
	c->due_ns = now + DLOPEN_WAIT_NS;
	c->give_up_ns = 0;
	return true;
}

/* When there may be something to do for it; its check wakes the loop by itself. */
static bool is_due(const struct candidate *c, uint64_t now)
{
	return (c->target && target__looks(c->target)) || now >= c->due_ns;
}

static uint64_t served_of(const struct session *s, struct candidate *c)
{
	if (!c->has_user && proc__account(c->pid, &c->user))
		c->user = 0;
	c->has_user = true;
	return served__of(s->served, c->user);
}

/* Of those that are due and whose turn it is, the one whose user has had least. NULL: no more. */
static struct candidate *next_due(const struct session *s, uint64_t now)
{
	struct candidate *c, *best = NULL;

	for (c = s->follow->candidates; c; c = c->hh.next) {
		if (c->turn == s->follow->turn || !is_due(c, now))
			continue;
		if (!best || served_of(s, c) < served_of(s, best))
			best = c;
	}
	return best;
}

void follow__check(struct session *s, uint64_t now)
{
	struct candidate *c, *next;

	for (c = s->follow->n_checked ? s->follow->candidates : NULL; c; c = next) {
		next = c->hh.next;
		if (c->target && is_due(c, now) && !look_again(s, c, now, true))
			drop(s, c);
	}
}

void follow__look(struct session *s, uint64_t now, bool maps_reported)
{
	struct candidate *c;
	uint64_t began = now, after;

	s->follow->turn++;
	while ((c = next_due(s, now))) {
		bool has_user = c->has_user;
		uid_t user = c->user;

		c->turn = s->follow->turn;
		if (!look_again(s, c, now, maps_reported))
			drop(s, c);
		else
			move_last(s, c);
		after = time__monotonic_ns();
		/* whoever is alone takes nothing from others */
		if (has_user)
			served__add(s->served, user, after - began);
		if (after - now > TURN_NS)
			return;
		began = after;
	}
}

bool follow__looks(const struct session *s)
{
	return s->follow->n_checked;
}

uint64_t follow__next_due(const struct session *s)
{
	const struct candidate *c;
	uint64_t due = 0;

	for (c = s->follow->candidates; c; c = c->hh.next)
		if (!(c->target && target__looks(c->target)) && (!due || c->due_ns < due))
			due = c->due_ns;
	return due;
}

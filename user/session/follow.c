/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * follow: processes that begin while the session runs. The kernel reports each exec, and each
 * process is looked at once its files show what it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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
/* … or by dlopen(), when a program in another language loads what it needs. */
#define DLOPEN_WAIT_NS 1000000000ULL

/* A process that is to be looked at. */
struct candidate {
	pid_t pid;
	uint64_t due_ns;
	uint64_t give_up_ns; /* 0: the next look is the late one, for what dlopen() has loaded */
	unsigned tries;
	struct wire_proc_new program;
	UT_hash_handle hh;
};

struct follow {
	struct candidate *candidates; /* by pid */
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

static void drop(struct follow *f, struct candidate *c)
{
	HASH_DEL(f->candidates, c);
	free(c);
}

/* Behind those that wait already. */
static void move_last(struct follow *f, struct candidate *c)
{
	HASH_DEL(f->candidates, c);
	HASH_ADD(hh, f->candidates, pid, sizeof(c->pid), c);
	if (!c->hh.tbl) /* uthash found no memory */
		free(c);
}

/* In place of an earlier one of the process. */
static void add_candidate(struct follow *f, const struct wire_proc_new *rec, uint64_t due,
			  uint64_t give_up)
{
	pid_t pid = (pid_t)rec->h.tgid;
	struct candidate *c = find(f, pid);

	if (!c)
		c = add(f, pid);
	if (!c) {
		log_warn("pid %d: not looked at: too many processes begin", pid);
		return;
	}
	c->due_ns = due;
	c->give_up_ns = give_up;
	c->tries = 0;
	c->program = *rec;
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
	f->armed = kernel__arm(s->kernel, &info) == 0;
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
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &st))
		return false;
	*ret_ino = st.st_ino;
	/* include/linux/kdev_t.h, MKDEV */
	*ret_dev = major(st.st_dev) << 20 | minor(st.st_dev);
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
	if (!ghc)
		log_debug("pid %d: %s", pid, why);
	else
		log_warn("pid %d: left out: %s", pid, why);
}

/* The member that the process is already. NULL: it is none. */
static const struct member *member_of(struct session *s, pid_t pid)
{
	struct member *m = members__find_live(s->members, pid);

	if (!m || target__alive(m->target))
		return m;
	/* another process has its pid now, and its end has not been noticed yet */
	member__end(s, m, "exited", time__monotonic_ns());
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

/* Attaches the process if it is one to be profiled. -EAGAIN: too early to decide; -EBUSY: its
 * memory hangs. */
static int look_at(struct session *s, pid_t pid, const struct wire_proc_new *rec, bool starting)
{
	bool taken = rec && (rec->flags & WIRE_PROC_TARGET);
	bool armed = taken && s->opts->kind == SESSION_COMMAND && pid == command__pid(s->command);
	char why[sizeof(s->follow->why)] = "";
	const struct target_opts opts = {
		.symbols_path = s->opts->symbols,
		.force = s->opts->force,
		.cache = s->cache,
		.reason = why,
		.reason_size = sizeof(why),
		.starting = starting,
	};
	enum target_verdict verdict = TARGET_OK;
	struct target *target;
	int err;

	if (member_of(s, pid))
		return 0;
	if (s->opts->select && !select__wants(s->opts->select, pid)) {
		if (taken) {
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
	if (!err && verdict == TARGET_NOT_READY && !target__info(target)->wire.flags) {
		target__free(target);
		err = -EAGAIN;
	}
	if (err == -EAGAIN || err == -EBUSY)
		return err;
	if (err == -ETIMEDOUT)
		return -EBUSY;
	/* a child that does not exec has its parent's runtime, which works already */
	if (!err && verdict == TARGET_NOT_READY && rec && (rec->flags & WIRE_PROC_FORK) &&
	    target__complete(target, false, &verdict))
		verdict = TARGET_NOT_READY;
	if (taken && (err || (armed && is_other(s->follow, target__info(target))))) {
		kernel__detach(s->kernel, pid);
		if (err)
			members__leave_gone(s->members, pid);
		s->n_too_short += err == -ESRCH;
		armed = taken = false;
	}
	if (err) {
		refuse(s, pid, verdict == TARGET_REFUSED, why);
		return err;
	}
	return join(s, target, verdict == TARGET_OK, rec, taken, armed);
}

void follow__on_mapped(struct session *s, pid_t pid)
{
	const struct wire_proc_new rec = {
		.h = {.tgid = (uint32_t)pid, .tid = (uint32_t)pid, .ns = time__monotonic_ns()}};

	if (!find(s->follow, pid))
		add_candidate(s->follow, &rec, rec.h.ns, rec.h.ns + LIBRARY_GIVE_UP_NS);
}

void follow__running(struct session *s, pid_t pid)
{
	if (look_at(s, pid, NULL, false) == -EBUSY)
		follow__on_mapped(s, pid);
}

/* ── what the kernel reports ─────────────────────────────────────────────────────────────── */

void follow__on_new(struct session *s, const struct wire_proc_new *rec)
{
	uint64_t now = time__monotonic_ns();
	int err = -EAGAIN;

	/* its records follow this one: it has to be in the timeline before them */
	if (rec->flags & WIRE_PROC_TARGET)
		err = look_at(s, (pid_t)rec->h.tgid, rec, true);
	if (err == -EAGAIN || err == -EBUSY)
		add_candidate(s->follow, rec,
			      rec->flags & WIRE_PROC_FORK ? now + FORK_WAIT_NS : now,
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
	bool first = !c->tries++;
	int err;

	if (!first && c->give_up_ns == 0) {
		/* the late look; most processes are gone by then */
		if (discover__process(s->cache, pid))
			follow__running(s, pid);
		return false;
	}
	err = look_at(s, pid, &rec, true);
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

void follow__look(struct session *s, uint64_t now, bool maps_reported)
{
	struct candidate *c, *next;

	for (c = s->follow->candidates; c; c = next) {
		next = c->hh.next;
		if (now < c->due_ns)
			continue;
		if (!look_again(s, c, now, maps_reported)) {
			drop(s->follow, c);
		} else {
			move_last(s->follow, c);
		}
		if (time__monotonic_ns() - now > TURN_NS)
			return;
	}
}

uint64_t follow__next_due(const struct session *s)
{
	const struct candidate *c;
	uint64_t due = 0;

	for (c = s->follow->candidates; c; c = c->hh.next)
		if (!due || c->due_ns < due)
			due = c->due_ns;
	return due;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a child does before it looks at any data: it gives up its rights. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/read.h"
#include "caps.h"
#include "confine_priv.h"

#define DEFAULT_MEMORY (256ULL << 20)
#define DEFAULT_CPU_S  20
/* Only for a child with a user of its own, since the kernel counts per user: another one's
 * processes and threads may be more already. */
#define NETWORK_THREADS 64
/* Larger than the maps of any program of ours. */
#define MAX_MAPS_TEXT (8U << 20)

/*
 * Each child gets an id of its own: this number + its pid. Nobody assigns ids from here on
 * (systemd's table of ids, docs/UIDS-GIDS.md, calls 1879048192 to 2147352575 unused), so no other
 * process, and no other child of ours, can send it signals or share its limits.
 */
#define FIRST_ID 1900000000U
/* Used if the user namespace does not map that id: its "nobody". */
#define NOBODY_ID 65534U

#ifndef SANITIZED
#define SANITIZED 0
#endif

/* ── signals and descriptors ─────────────────────────────────────────────────────────────── */

/* Must be repeated after each change of user, which clears it (kernel/cred.c, commit_creds()). */
static int die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/*
 * Resets the daemon's handlers. Signals that a terminal sends to a process group, or a service
 * manager to a whole service, are meant for the daemon, which kills its children by SIGKILL when it
 * is done with them. SIGBUS keeps the handler of elf_map.c.
 */
static void default_signals(void)
{
	struct sigaction ign = {.sa_handler = SIG_IGN}, dfl = {.sa_handler = SIG_DFL};
	sigset_t none;

	sigaction(SIGINT, &ign, NULL);
	sigaction(SIGTERM, &ign, NULL);
	sigaction(SIGHUP, &ign, NULL);
	sigaction(SIGPIPE, &dfl, NULL);
	sigaction(SIGALRM, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int by_number(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void close_from(unsigned int first, unsigned int last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	/* Linux before 5.9 */
	for (long max = sysconf(_SC_OPEN_MAX); first <= last && (long)first < max; first++)
		close((int)first);
}

/* Closes all but those listed. *ret_top: the highest that stays open. */
static void close_others(const struct confine *how, struct confine_ends ends, int *ret_top)
{
	int stay[CONFINE_MAX_FDS + 3];
	unsigned int next = 0;
	size_t n = 0;

	for (size_t i = 0; i < how->n_fds; i++)
		stay[n++] = how->fds[i];
	stay[n++] = ends.in;
	stay[n++] = ends.out;
	stay[n++] = SANITIZED ? STDERR_FILENO : -1;
	qsort(stay, n, sizeof(*stay), by_number);
	*ret_top = -1;
	for (size_t i = 0; i < n; i++) {
		if (stay[i] < 0)
			continue;
		if (stay[i] > 0)
			close_from(next, (unsigned int)stay[i] - 1);
		next = (unsigned int)stay[i] + 1;
		*ret_top = stay[i];
	}
	close_from(next, ~0U);
}

/* ── memory ──────────────────────────────────────────────────────────────────────────────── */

/* Reads a file of /proc. NULL: not readable. The caller frees. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	char *text = NULL;
	size_t len;

	err = fd < 0 ? -errno : read__all(fd, MAX_MAPS_TEXT, &text, &len);
	fd__close(&fd);
	return err ? NULL : text;
}

/*
 * Unmaps writable memory shared with the daemon, through which whoever takes over the child could
 * change it there. `all`: read-only shared mappings as well. Format of a line: "7f00-7f01 rw-s …".
 */
static int unmap_shared(struct confine_memory own, bool all)
{
	char *text = read_text("/proc/self/maps"), *line = text, *next;
	uintptr_t own_start = (uintptr_t)own.start;
	int err = text ? 0 : -EIO;

	for (; line && *line && !err; line = next) {
		char *at;
		uintptr_t start = strtoull(line, &at, 16), end;

		next = strchrnul(line, '\n');
		next += *next == '\n';
		if (*at != '-')
			continue;
		end = strtoull(at + 1, &at, 16);
		if (at[0] != ' ' || (at[2] != 'w' && !all) || at[4] != 's')
			continue;
		/* the kernel merges adjacent mappings; own is whole pages */
		if (!own.size || end <= own_start || start >= own_start + own.size) {
			err = munmap((void *)start, end - start) ? -errno : 0;
			continue;
		}
		if (start < own_start && munmap((void *)start, own_start - start))
			err = -errno;
		if (end > own_start + own.size &&
		    munmap((void *)(own_start + own.size), end - own_start - own.size))
			err = -errno;
	}
	free(text);
	return err;
}

static uint64_t mapped_now(void)
{
	char *text = read_text("/proc/self/statm");
	uint64_t pages = text ? strtoull(text, NULL, 10) : 0;

	free(text);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ── limits ──────────────────────────────────────────────────────────────────────────────── */

static int limit(int what, uint64_t value)
{
	struct rlimit l;

	/* no higher than the daemon's own */
	if (getrlimit((__rlimit_resource_t)what, &l))
		return -errno;
	l.rlim_cur = l.rlim_max = MIN((uint64_t)l.rlim_max, value);
	return setrlimit((__rlimit_resource_t)what, &l) ? -errno : 0;
}

/* `own_user`: nobody else has this child's user. */
static int set_limits(const struct confine *how, uint64_t mapped, int top, bool own_user)
{
	uint64_t memory = mapped + (how->memory ? how->memory : DEFAULT_MEMORY);
	/* reading /proc takes one or two descriptors at a time */
	unsigned int fds =
		(unsigned int)(top + 1) + (how->keep & (CONFINE_PROC | CONFINE_FILES) ? 16 : 0);
	uint64_t cpu_s = how->cpu_s ? how->cpu_s : DEFAULT_CPU_S;
	int err;

	if (how->keep & (CONFINE_LISTEN | CONFINE_NETWORK))
		fds += how->more_fds;

	err = limit(RLIMIT_CORE, 0);
	if (!err)
		err = limit(RLIMIT_CPU, cpu_s == CONFINE_NO_END ? RLIM_INFINITY : cpu_s);
	if (!err && !(how->keep & CONFINE_NETWORK))
		err = limit(RLIMIT_NPROC, 0);
	else if (!err && own_user)
		err = limit(RLIMIT_NPROC, NETWORK_THREADS);
	if (!err)
		err = limit(RLIMIT_FSIZE, how->file_size);
	if (!err && !SANITIZED)
		err = limit(RLIMIT_NOFILE, fds);
	if (!err && !SANITIZED)
		err = limit(RLIMIT_AS, memory);
	return err;
}

/* ── rights ──────────────────────────────────────────────────────────────────────────────── */

static int become(uint32_t id)
{
	if (setresgid(id, id, id) || setresuid(id, id, id))
		return -errno;
	return 0;
}

static int drop_rights(const struct confine *how, bool *ret_own_user)
{
	uint64_t have = 0, keep = 0;
	bool own_user = false;
	int err = caps__permitted(&have);

	if (err)
		return err;
	if (how->keep & (CONFINE_MEMORY | CONFINE_PROC))
		keep |= CAP_BIT_OF(CAP_SYS_PTRACE);
	if (how->keep & (CONFINE_PROC | CONFINE_FILES))
		keep |= CAP_BIT_OF(CAP_DAC_READ_SEARCH);
	keep &= have;
	if (have & CAP_BIT_OF(CAP_SETUID) && have & CAP_BIT_OF(CAP_SETGID)) {
		/* keeps permitted capabilities across the change of user, for caps__reduce_to()
		 * below */
		if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
			return -errno;
		/* EPERM in spite of the capability: a user namespace that denies it to all */
		if (setgroups(0, NULL) && errno != EPERM)
			return -errno;
		err = become(FIRST_ID + (uint32_t)getpid());
		own_user = !err;
		if (err == -EINVAL)
			err = become(NOBODY_ID);
		/* a user namespace that maps neither id */
		if (err == -EINVAL)
			err = 0;
	}
	if (!err)
		err = caps__reduce_to(keep);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		err = -errno;
	if (!err)
		*ret_own_user = own_user;
	return err;
}

#define LANDLOCK_READ ((uint64_t)(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR))

/* A missing path is ignored. */
static int may_read_beneath(int ruleset, const char *path)
{
	struct landlock_path_beneath_attr attr = {
		.allowed_access = LANDLOCK_READ,
		.parent_fd = open(path, O_PATH | O_CLOEXEC),
	};
	struct stat st;
	int err = 0;

	if (attr.parent_fd < 0)
		return 0;
	if (fstat(attr.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		attr.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0))
		err = -errno;
	close(attr.parent_fd);
	return err;
}

/* Landlock forbids the accesses that it handles, except where a rule allows them. `may_read`: does
 * not restrict reading. */
static int no_files(bool may_read, const char *const *reads)
{
	/* the access rights of the first version, 5.13, which every later kernel knows */
	uint64_t all = (1ULL << 13) - 1;
	struct landlock_ruleset_attr attr = {.handled_access_fs =
						     may_read ? all & ~LANDLOCK_READ : all};
	int fd =
		(int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr.handled_access_fs), 0);
	int err = 0;

	/* a kernel without Landlock */
	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	for (; !err && reads && *reads; reads++)
		err = may_read_beneath(fd, *reads);
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0))
		err = -errno;
	fd__close(&fd);
	return err;
}

static int set_filter(uint32_t keep)
{
	const struct sock_fprog *program;
	int err = confine_filter__get(keep, &program);

	if (err)
		return err;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) ? -errno : 0;
}

/* Process-wide: it gives up its rights for good, and any function called in it must know. */
static bool inside;
static uint32_t kept; /* the enum confine_keep of this process */

void confine__run_inside(void)
{
	inside = true;
}

bool confine_child__inside(void)
{
	return inside;
}

/* The daemon may run at a raised priority, so that it loses no record on a busy machine. A helper
 * may take long, and must yield. */
static void give_way(int nice)
{
	errno = 0;
	nice = MAX(nice, getpriority(PRIO_PROCESS, 0));
	if (!errno)
		setpriority(PRIO_PROCESS, 0, nice);
}

int confine_child__enter(const struct confine *how, pid_t parent, struct confine_ends ends,
			 struct confine_memory own)
{
	int err = die_with(parent), top = -1;
	bool own_user = false;
	uint64_t mapped;

	if (err)
		return err;
	confine__run_inside();
	/* first of all: from here on a hang holds no descriptor */
	close_others(how, ends, &top);
	default_signals();
	give_way(how->nice);
	prctl(PR_SET_NAME, how->name ? how->name : "safescoped:aside");
	err = unmap_shared(own, how->no_files);
	/* while it can still open a file */
	mapped = mapped_now();
	if (!err && !mapped)
		err = -EIO;
	if (!err)
		err = drop_rights(how, &own_user);
	if (!err)
		err = die_with(parent);
	if (!err && !(how->keep & (CONFINE_MEMORY | CONFINE_PROC)))
		err = no_files(how->keep & CONFINE_FILES,
			       how->keep & CONFINE_NETWORK ? how->reads : NULL);
	if (!err)
		err = set_limits(how, mapped, top, own_user);
	if (!err && !SANITIZED)
		err = set_filter(how->keep);
	kept = how->keep;
	return err;
}

int confine__fork(pid_t *ret_pid)
{
	pid_t own = getpid(), pid = confine_fork();
	int err;

	if (pid < 0)
		return pid;
	*ret_pid = pid;
	if (pid)
		return 0;
	err = die_with(own);
	kept &= ~(uint32_t)CONFINE_FORK;
	if (!err && !SANITIZED)
		err = set_filter(kept);
	if (err)
		_exit(2);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries about a process that has ended, or that may not be looked into. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "proc.h"

/* include/linux/proc_ns.h, PROC_USER_INIT_INO: the host's user namespace */
#define HOST_USERS_INO 0xEFFFFFFDU

/* ── how it ended ────────────────────────────────────────────────────────────────────────── */

/* linux/pidfd.h of 6.15, which older headers lack. */
struct pidfd_info_v0 {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
#define PIDFD_INFO_EXIT_MASK (UINT64_C(1) << 3)
#define PIDFD_INFO_IOCTL     _IOWR(0xff, 11, struct pidfd_info_v0)

static bool is_zombie_of(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0;
}

static int status_of_zombie(pid_t pid, int pidfd, int *ret_status)
{
	struct proc_stat st = {0};
	char path[64], *text = NULL;
	size_t len;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = proc__text(path, 1 << 16, &text, &len);
	if (!err)
		err = proc__parse_stat(text, len, &st);
	if (!err)
		err = st.state == 'Z' ? proc__parse_exit(text, len, ret_status) : -ESRCH;
	/* the pid may have been reused by then */
	if (!err && !is_zombie_of(pidfd))
		err = -ESRCH;
	free(text);
	return err;
}

int proc__exit_status(pid_t pid, int pidfd, int *ret_status)
{
	struct pidfd_info_v0 info = {.mask = PIDFD_INFO_EXIT_MASK};

	if (!status_of_zombie(pid, pidfd, ret_status))
		return 0;
	if (ioctl(pidfd, PIDFD_INFO_IOCTL, &info) || !(info.mask & PIDFD_INFO_EXIT_MASK))
		return -ESRCH;
	*ret_status = info.exit_code;
	return 0;
}

/* ── why not ─────────────────────────────────────────────────────────────────────────────── */

static bool has_cap(int cap)
{
	char *text = NULL, *line;
	size_t len;
	bool has = true;

	if (proc__text("/proc/self/status", 1 << 16, &text, &len))
		return true;
	line = strstr(text, "\nCapEff:");
	if (line)
		has = strtoull(line + 8, NULL, 16) >> cap & 1;
	free(text);
	return has;
}

/* Whether mode and owner of its files in /proc keep us from opening them. */
static bool is_other_users(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return !stat(path, &st) && st.st_uid != geteuid();
}

bool proc__has_host_users(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) != 0 || st.st_ino == HOST_USERS_INO;
}

/* Whether it is in another user namespace. If its namespace cannot be read: whether ours is not the
 * initial one. */
static bool in_other_user_namespace(pid_t pid)
{
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	if (!stat(path, &its) && !stat("/proc/self/ns/user", &ours))
		return its.st_ino != ours.st_ino;
	return !proc__has_host_users();
}

struct proc_denied proc__why_denied(pid_t pid)
{
	struct proc_denied why = {""};
	char *modules = NULL;
	size_t len;

	if (!has_cap(CAP_SYS_PTRACE)) {
		snprintf(why.s, sizeof(why.s), "%s",
			 geteuid() ? "run as root (CAP_SYS_PTRACE)"
				   : "root has no CAP_SYS_PTRACE here (in a container?): add it "
				     "(docker run --cap-add SYS_PTRACE)");
	} else if (!has_cap(CAP_DAC_READ_SEARCH) && !has_cap(CAP_DAC_OVERRIDE) &&
		   is_other_users(pid)) {
		snprintf(why.s, sizeof(why.s),
			 "it belongs to another user: run as root, or with CAP_DAC_READ_SEARCH as "
			 "well");
	} else if (in_other_user_namespace(pid)) {
		snprintf(why.s, sizeof(why.s),
			 "it is in a user namespace over which this CAP_SYS_PTRACE has no power: "
			 "run "
			 "on the host itself");
	} else if (!proc__text("/sys/kernel/security/lsm", 1 << 12, &modules, &len)) {
		snprintf(why.s, sizeof(why.s),
			 "CAP_SYS_PTRACE is there, but a security module forbids it (one of: "
			 "%.100s)",
			 modules);
	} else {
		snprintf(why.s, sizeof(why.s),
			 "CAP_SYS_PTRACE is there, but a security module or the sandbox that this "
			 "runs in forbids it");
	}
	free(modules);
	return why;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists a process's descriptors, and opens files that are its own. */
#include "openfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "origin.h"
#include "proc.h"

#define MAX_FDINFO 65536

int open_files__each(pid_t pid, unsigned max, int (*fn)(void *ctx, int number, const char *path),
		     void *ctx)
{
	char dir_path[64], path[PATH_MAX];
	struct dirent *ent;
	unsigned seen = 0;
	DIR *dir;
	int ret = 0;

	snprintf(dir_path, sizeof(dir_path), "/proc/%d/fd", pid);
	dir = opendir(dir_path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!ret && seen++ < max && (ent = readdir(dir))) {
		ssize_t len;

		if (ent->d_name[0] < '0' || ent->d_name[0] > '9')
			continue;
		len = readlinkat(dirfd(dir), ent->d_name, path, sizeof(path) - 1);
		if (len <= 0 || path[0] != '/')
			continue;
		path[len] = '\0';
		ret = fn(ctx, (int)strtol(ent->d_name, NULL, 10), path);
	}
	closedir(dir);
	return ret;
}

/* ── whose a file is ─────────────────────────────────────────────────────────────────────── */

/* The fields of a descriptor's fdinfo (fs/proc/fd.c, seq_show). */
struct fdinfo {
	uint64_t flags, mount, ino;
};

static bool field(const char *text, const char *key, int base, uint64_t *ret_value)
{
	const char *at = strstr(text, key);

	if (!at || (at > text && at[-1] != '\n'))
		return false;
	*ret_value = strtoull(at + strlen(key), NULL, base);
	return true;
}

static int read_fdinfo(const char *path, struct fdinfo *ret_info)
{
	struct fdinfo info = {0};
	char *text = NULL;
	size_t len = 0;
	int err = proc__text(path, MAX_FDINFO, &text, &len);

	if (err)
		return err;
	if (!field(text, "flags:", 8, &info.flags) || !field(text, "mnt_id:", 10, &info.mount) ||
	    !field(text, "ino:", 10, &info.ino))
		err = -ENODATA;
	free(text);
	if (!err)
		*ret_info = info;
	return err;
}

/*
 * Checks that the process's descriptor is open for writing, and refers to the same file as `at`:
 * the process may have replaced it meanwhile.
 */
static int check_descriptor(pid_t pid, int number, int at)
{
	struct fdinfo ours, theirs;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, number);
	err = read_fdinfo(path, &theirs);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", at);
	err = read_fdinfo(path, &ours);
	if (err)
		return err;
	if (ours.mount != theirs.mount || ours.ino != theirs.ino)
		return -EPERM;
	return theirs.flags & O_PATH || (theirs.flags & O_ACCMODE) == O_RDONLY ? -EPERM : 0;
}

/*
 * The owner must be one of the user ids that the process can act as, unless the process is root's.
 */
static int check_owner(pid_t pid, uid_t owner)
{
	uid_t uids[PROC_UIDS];
	int err = proc__uids(pid, uids);

	if (err)
		return err;
	for (size_t i = 0; i < PROC_UIDS; i++)
		if (uids[i] == 0 || uids[i] == owner)
			return 0;
	return -EPERM;
}

/* AT_STATX_DONT_SYNC: no server must be asked before the file's origin is known. */
static int check_file(pid_t pid, int at)
{
	struct origin origin;
	struct statx st;
	int err;

	if (statx(at, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_UID, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -EINVAL;
	err = check_owner(pid, st.stx_uid);
	if (err)
		return err;
	origin__of(pid, at, (uid_t)-1, &origin);
	return origin.reach == ORIGIN_FOREIGN ? -EREMOTE : 0;
}

int open_file__own(pid_t pid, int number, int *ret_fd)
{
	char path[64];
	int at, fd = -1, err;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	/* opens no device and waits for nobody; pins the file, so that it cannot be swapped from
	 * here on */
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -errno;
	err = check_descriptor(pid, number, at);
	if (!err)
		err = check_file(pid, at);
	if (!err) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		err = fd < 0 ? -errno : 0;
	}
	fd__close(&at);
	if (!err)
		*ret_fd = fd;
	return err;
}

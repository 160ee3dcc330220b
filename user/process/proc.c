/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a process's files in /proc. proc_parse.c parses their texts. */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "base/retry.h"
#include "fetch.h"

int proc__stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat)
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, tid, "stat", &text, &len);

	if (!err)
		err = proc__parse_stat(text, len, ret_stat);
	free(text);
	return err;
}

uint64_t proc__ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t ns = 1000000000ULL / (uint64_t)(hz > 0 ? hz : 100);

	return ticks > UINT64_MAX / ns ? UINT64_MAX : ticks * ns;
}

int proc__ns_pid(pid_t pid, pid_t tid, pid_t *ret_pid)
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, tid, "status", &text, &len);

	if (!err)
		err = proc__parse_ns_pid(text, len, ret_pid);
	free(text);
	return err;
}

int proc__uids(pid_t pid, uid_t ret_uids[PROC_UIDS])
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, 0, "status", &text, &len);

	if (err)
		return err;
	err = proc__parse_uids(text, len, ret_uids);
	free(text);
	return err;
}

int proc__maps(pid_t pid, struct proc_maps *ret_maps)
{
	char path[64];
	char *text = NULL;
	size_t len = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	err = proc__text(path, PROC_MAX_TEXT, &text, &len);
	if (err)
		return err;
	return proc__parse_maps(text, len, ret_maps);
}

int proc__syscall(pid_t pid, pid_t tid, struct proc_syscall *ret_syscall)
{
	char path[64];
	char *text = NULL;
	size_t len = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	err = proc__text(path, 65536, &text, &len);
	if (err)
		return err;
	err = proc__parse_syscall(text, len, ret_syscall);
	free(text);
	return err;
}

/* Gets an O_PATH descriptor: opens no device, and asks no server. */
static int place_of(const char *path, int *ret_fd, struct stat *ret_st)
{
	int err, fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	err = fetch__stat(fd, ret_st);
	if (!err && !S_ISREG(ret_st->st_mode))
		err = -EINVAL;
	if (err) {
		fd__close(&fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static bool is_map_file(const struct stat *st, const struct proc_map *map)
{
	return st->st_ino == map->ino && major(st->st_dev) == map->dev_major &&
	       minor(st->st_dev) == map->dev_minor;
}

/*
 * Finds the file by its path, in a child: the process chose the path, and so the file systems it
 * crosses, whose servers may not answer.
 */
static int find_map(pid_t pid, const struct proc_map *map, int *ret_fd, struct stat *ret_st)
{
	char path[PROC_PATH_LEN];
	int root, fd, err;
	uid_t user = (uid_t)-1;

	err = proc__account(pid, &user);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	err = fetch__find(root, map->path, user, &fd);
	fd__close(&root);
	if (err)
		return err;
	err = fetch__stat(fd, ret_st);
	if (!err && (!S_ISREG(ret_st->st_mode) || !is_map_file(ret_st, map)))
		err = -ESTALE;
	if (err)
		fd__close(&fd);
	else
		*ret_fd = fd;
	return err;
}

int proc__open_map(pid_t pid, const struct proc_map *map, char ret_path[PROC_PATH_LEN], int *ret_fd,
		   uint64_t *ret_dev, uint64_t *ret_ino)
{
	char link[PROC_PATH_LEN];
	struct stat st = {0};
	int fd = -1, err;

	/*
	 * A map_files link leads to the mapped inode itself, whatever has become of its name, so
	 * device and inode need not be compared; on btrfs and overlayfs stat() reports another
	 * device than maps does, and comparing would reject good files.
	 */
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	err = place_of(link, &fd, &st);
	/* a temporary failure must not lead to another file of the same name */
	if (err == -EINVAL || retry__shows_nothing(err))
		return err;
	if (err) {
		snprintf(link, sizeof(link), "/proc/%d/exe", pid);
		err = place_of(link, &fd, &st);
		if (err == 0 && !is_map_file(&st, map)) {
			fd__close(&fd);
			err = -ESTALE;
		}
	}
	if (err) {
		if (map->path[0] != '/' || map->deleted)
			return err;
		err = find_map(pid, map, &fd, &st);
		if (err)
			return err;
		/* The path may be too long to keep; the descriptor leads to the same file. */
		snprintf(link, sizeof(link), "/proc/%d/fd/%d", getpid(), fd);
	}
	memcpy(ret_path, link, sizeof(link));
	*ret_fd = fd;
	*ret_dev = st.st_dev;
	*ret_ino = st.st_ino;
	return 0;
}

/*
 * Whether a path leads from that root to the file. RESOLVE_CACHED looks only at what the kernel has
 * in memory, which includes each directory on a running program's path: no server is asked.
 */
static bool leads_to(const char *root, const char *path, const struct stat *file)
{
	int tries = 3, fd = -1, err, at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	bool same;

	/* EAGAIN: a concurrent rename */
	do
		err = at < 0 ? -errno : fetch__find_here(at, path, O_NOFOLLOW, RESOLVE_CACHED, &fd);
	while (err == -EAGAIN && --tries);
	same = !err && fetch__stat(fd, &st) == 0 && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
	fd__close(&fd);
	fd__close(&at);
	return same;
}

/* Removes the suffix that the kernel adds when the name was removed or reused (Linux, fs/d_path.c),
 * unless it is part of the file's name. */
static void cut_deleted(pid_t pid, const char *link, char *path, size_t len)
{
	static const char gone[] = " (deleted)";
	const size_t cut = sizeof(gone) - 1;
	char root[64];
	struct stat st;

	if (len <= cut || strcmp(path + len - cut, gone) != 0)
		return;
	/* the path starts at our root or, if the file is unreachable from there, at the root of its
	 * mounts */
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	if (fetch__stat_path(link, &st) == 0 &&
	    (leads_to("/", path, &st) || leads_to(root, path, &st)))
		return;
	path[len - cut] = '\0';
}

int proc__exe(pid_t pid, char *buf, size_t size)
{
	char link[64];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	len = readlink(link, buf, size - 1);
	if (len < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	buf[len] = '\0';
	cut_deleted(pid, link, buf, (size_t)len);
	return 0;
}

/* Room for "time:[4026531834]". */
#define NS_NAME 64

static int namespace_of(pid_t pid, const char *which, char ret_name[NS_NAME])
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
	len = readlink(path, ret_name, NS_NAME - 1);
	if (len < 0)
		return -errno;
	ret_name[len] = '\0';
	return 0;
}

/* The offsets in timens_offsets are those of the namespace for children. */
static int clock_of_children(pid_t pid, int64_t *ret_ns)
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, 0, "timens_offsets", &text, &len);

	if (!err)
		err = proc__parse_clock(text, len, ret_ns);
	free(text);
	return err;
}

int proc__clock_ahead(pid_t pid, int64_t *ret_ns)
{
	const pid_t self = getpid();
	char own[NS_NAME], children[NS_NAME], ours[NS_NAME], ours_children[NS_NAME];
	int err = namespace_of(self, "time", ours);

	/* no time namespaces in this kernel */
	if (err == -ENOENT) {
		*ret_ns = 0;
		return 0;
	}
	if (!err)
		err = namespace_of(pid, "time", own);
	if (!err)
		err = namespace_of(pid, "time_for_children", children);
	if (!err && strcmp(own, children) == 0)
		return clock_of_children(pid, ret_ns);
	/* its children get another namespace, whose offsets do not matter */
	if (!err)
		err = namespace_of(self, "time_for_children", ours_children);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	if (strcmp(own, ours) != 0 || strcmp(ours, ours_children) != 0)
		return -ENOTSUP;
	return clock_of_children(self, ret_ns);
}

int proc__threads(pid_t pid, pid_t **ret_tids, size_t *ret_n)
{
	char path[64];
	pid_t *tids = NULL;
	size_t n = 0, cap = 0;
	struct dirent *ent;
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((ent = readdir(dir))) {
		long tid = strtol(ent->d_name, NULL, 10);

		if (tid <= 0 || tid > INT32_MAX)
			continue;
		err = ARRAY_RESERVE(tids, cap, n + 1, PROC_MAX_THREADS);
		if (err)
			break;
		tids[n++] = (pid_t)tid;
	}
	closedir(dir);
	if (err) {
		free(tids);
		return err;
	}
	*ret_tids = tids;
	*ret_n = n;
	return 0;
}

/* 1: ended; 0: not; or a negative errno. */
static int is_over(pid_t pid, pid_t tid)
{
	struct proc_stat st;
	int err = proc__stat(pid, tid, &st);

	if (retry__shows_nothing(err))
		return err;
	return err || st.state == 'Z' || st.state == 'X';
}

int proc__living_thread(pid_t pid, pid_t *ret_tid)
{
	pid_t *tids, tid = 0;
	size_t n;
	int err, over = is_over(pid, 0);

	if (over <= 0)
		return over ? over : -ESRCH;
	err = proc__threads(pid, &tids, &n);
	if (err)
		return err;
	for (size_t i = 0; i < n && !tid && over > 0; i++) {
		over = tids[i] == pid ? 1 : is_over(pid, tids[i]);
		tid = over ? 0 : tids[i];
	}
	free(tids);
	if (over < 0)
		return over;
	if (!tid)
		return -ESRCH;
	*ret_tid = tid;
	return 0;
}

int proc__pidfd(pid_t pid, int *ret_fd)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

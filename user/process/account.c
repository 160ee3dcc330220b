/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On whose account a process runs. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/retry.h"
#include "proc.h"

/* user_namespaces(7): they nest this deep at most. */
#define USER_NS_MAX_DEPTH 33
/* How many of a process's parents are looked at. */
#define PARENTS_MAX 32
/*
 * All processes in namespaces that root made, of which it is not known what is mapped there. No
 * user's: most of what is nobody's in particular has 65534.
 */
#define UNKNOWN_CONTAINER ((uid_t)-2)

/* The outermost user namespace, of those around a process, that is not ours. */
struct outer_ns {
	dev_t dev;
	ino_t ino;
	uid_t owner; /* who made it */
};

static bool is_own_ns(const struct stat *its)
{
	struct stat own;

	return stat("/proc/self/ns/user", &own) == 0 && own.st_dev == its->st_dev &&
	       own.st_ino == its->st_ino;
}

/* -ENOENT: the process is in none but ours. */
static int find_outer_ns(pid_t pid, struct outer_ns *ret_ns)
{
	int fd, err = -ENOENT, up_err = 0;
	char path[64];
	struct stat st;
	uid_t uid;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (int depth = 0; depth < USER_NS_MAX_DEPTH && fd >= 0; depth++) {
		int parent;

		if (fstat(fd, &st) || is_own_ns(&st))
			break;
		/* ioctl_ns(2) */
		parent = ioctl(fd, NS_GET_PARENT);
		up_err = parent < 0 ? -errno : 0;
		if (ioctl(fd, NS_GET_OWNER_UID, &uid) == 0) {
			*ret_ns = (struct outer_ns){st.st_dev, st.st_ino, uid};
			err = 0;
		}
		fd__close(&fd);
		fd = parent;
	}
	fd__close(&fd);
	/* which one is the outermost is not known then */
	return retry__shows_nothing(up_err) ? up_err : err;
}

static bool is_in(pid_t pid, const struct outer_ns *ns)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return stat(path, &st) == 0 && st.st_dev == ns->dev && st.st_ino == ns->ino;
}

static int first_mapped(pid_t pid, uid_t *ret_uid)
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, 0, "uid_map", &text, &len);

	if (!err)
		err = proc__parse_uid_map(text, len, ret_uid);
	free(text);
	return err;
}

static int parent_of(pid_t pid, pid_t *ret_parent)
{
	char *text = NULL;
	size_t len = 0;
	int err = proc__text_of(pid, 0, "status", &text, &len);

	if (!err)
		err = proc__parse_parent(text, len, ret_parent);
	free(text);
	return err;
}

/*
 * What the namespace has as its first id is by our count. /proc has that of a process which is in
 * it, and in none within it: this one, or of its parents the first that is. -ENODATA: nothing is
 * mapped there yet; -ENOENT: there is no such process.
 */
static int first_id(pid_t pid, const struct outer_ns *ns, uid_t *ret_uid)
{
	int err = 0;

	for (int i = 0; !err && i < PARENTS_MAX && pid > 0; i++) {
		if (is_in(pid, ns)) {
			err = first_mapped(pid, ret_uid);
			/* unless it has gone into another one meanwhile: there is no way back */
			return err || is_in(pid, ns) ? err : -ENOENT;
		}
		err = parent_of(pid, &pid);
	}
	return -ENOENT;
}

/* Where it is root's a container may be anybody's, whose first id stands for all that he has. */
static int of_container(pid_t pid, const struct outer_ns *ns, uid_t real, uid_t *ret_uid)
{
	uid_t first = 0;
	int err = first_id(pid, ns, &first);

	if (retry__shows_nothing(err))
		return err;
	/* where root is root the others are who they are, too; and where nothing is mapped yet
	 * nobody can have changed his id */
	if (!err || err == -ENODATA)
		*ret_uid = first ? first : real;
	else
		*ret_uid = UNKNOWN_CONTAINER;
	return 0;
}

int proc__account(pid_t pid, uid_t *ret_uid)
{
	struct outer_ns ns = {0};
	uid_t uids[PROC_UIDS];
	int none = find_outer_ns(pid, &ns), err;

	if (!none && ns.owner) {
		*ret_uid = ns.owner;
		return 0;
	}
	/* a look that shows nothing makes it nobody's */
	if (retry__shows_nothing(none))
		return none;
	err = proc__uids(pid, uids);
	if (!err && none)
		*ret_uid = uids[0];
	else if (!err)
		err = of_container(pid, &ns, uids[0], ret_uid);
	return err;
}

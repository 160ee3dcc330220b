/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the user that a process is charged to. */
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

/* user_namespaces(7): the maximum nesting depth. */
#define USER_NS_MAX_DEPTH 33
/* How many ancestors of a process are examined. */
#define PARENTS_MAX 32
/*
 * Stands for all processes in namespaces made by root whose mappings are not known. It is not a
 * real user's id: 65534 is taken by most of what belongs to nobody in particular.
 */
#define UNKNOWN_CONTAINER ((uid_t)-2)

/* The outermost user namespace around a process that is not ours. */
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

/* -ENOENT: the process is in our namespace. */
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
	/* then it is not known which namespace is the outermost */
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
 * The id outside of the first id in the namespace. /proc shows it for a process that is in this
 * namespace and not in an inner one: the process itself, or the first of its ancestors that is.
 * -ENODATA: nothing is mapped there yet; -ENOENT: no such process.
 */
static int first_id(pid_t pid, const struct outer_ns *ns, uid_t *ret_uid)
{
	int err = 0;

	for (int i = 0; !err && i < PARENTS_MAX && pid > 0; i++) {
		if (is_in(pid, ns)) {
			err = first_mapped(pid, ret_uid);
			/* unless it entered another one meanwhile: there is no way back */
			return err || is_in(pid, ns) ? err : -ENOENT;
		}
		err = parent_of(pid, &pid);
	}
	return -ENOENT;
}

/* If root made the namespace, the container may be anybody's, and its first id stands for all its
 * ids. */
static int of_container(pid_t pid, const struct outer_ns *ns, uid_t real, uid_t *ret_uid)
{
	uid_t first = 0;
	int err = first_id(pid, ns, &first);

	if (retry__shows_nothing(err))
		return err;
	/* If root is mapped to root, the other ids are genuine too; and if nothing is mapped yet,
	 * nobody can have changed his id. */
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
	/* else a temporary failure would make it nobody's */
	if (retry__shows_nothing(none))
		return none;
	err = proc__uids(pid, uids);
	if (!err && none)
		*ret_uid = uids[0];
	else if (!err)
		err = of_container(pid, &ns, uids[0], ret_uid);
	return err;
}

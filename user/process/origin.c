/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the origin of a file by its mount and the host's list of mounts. */
#include "origin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proc.h"

#define MAX_MOUNTINFO (16U << 20)
/* Nesting of overlays. The kernel allows two levels (FILESYSTEM_MAX_STACK_DEPTH). */
#define MAX_DEPTH 3
/* include/uapi/linux/major.h, LOOP_MAJOR */
#define LOOP_MAJOR "7:"

/*
 * File systems served by the kernel and its block devices only: not FUSE, no network. Of these only
 * tmpfs and ramfs can be mounted without privileges in the host (FS_USERNS_MOUNT).
 */
static const char *const local_types[] = {
	"ext4",	 "ext3",   "ext2",  "xfs",   "btrfs", "f2fs",	"zfs",	    "bcachefs",
	"jfs",	 "nilfs2", "vfat",  "exfat", "ntfs3", "udf",	"iso9660",  "squashfs",
	"erofs", "cramfs", "romfs", "tmpfs", "ramfs", "rootfs", "devtmpfs",
};

/* One line of a mountinfo file; the strings are not NUL-terminated. */
struct mount {
	uint64_t id;
	const char *dev;     /* MAJOR:MINOR of the file system */
	const char *point;   /* mount point */
	const char *flags;   /* of the mount: "rw,nosuid" */
	const char *type;    /* of the file system */
	const char *options; /* of the file system */
	size_t dev_len, point_len, flags_len, type_len, options_len;
};

static bool is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool has_local_type(const struct mount *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(local_types); i++)
		if (is(m->type, m->type_len, local_types[i]))
			return true;
	return false;
}

/* Takes the next field of the line; false at its end. */
static bool field(const char **at, const char *end, const char **ret_field, size_t *ret_len)
{
	const char *p = *at;

	while (p < end && *p == ' ')
		p++;
	*ret_field = p;
	while (p < end && *p != ' ')
		p++;
	*ret_len = (size_t)(p - *ret_field);
	*at = p;
	return *ret_len > 0;
}

/*
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue": the number of
 * fields before the dash varies.
 */
static bool parse(const char *line, const char *end, struct mount *ret_mount)
{
	struct mount m = {0};
	const char *text;
	size_t len;

	if (!field(&line, end, &text, &len))
		return false;
	m.id = strtoull(text, NULL, 10);
	if (!field(&line, end, &text, &len) || !field(&line, end, &m.dev, &m.dev_len) ||
	    !field(&line, end, &text, &len) || !field(&line, end, &m.point, &m.point_len) ||
	    !field(&line, end, &m.flags, &m.flags_len))
		return false;
	do {
		if (!field(&line, end, &text, &len))
			return false;
	} while (!is(text, len, "-"));
	if (!field(&line, end, &m.type, &m.type_len) || !field(&line, end, &text, &len))
		return false;
	/* may be absent */
	field(&line, end, &m.options, &m.options_len);
	*ret_mount = m;
	return true;
}

/* Calls fn for each mount until it returns true; returns whether it did. */
static bool each(const char *mounts, bool (*fn)(void *ctx, const struct mount *m), void *ctx)
{
	while (*mounts) {
		const char *end = strchrnul(mounts, '\n');
		struct mount m;

		if (parse(mounts, end, &m) && fn(ctx, &m))
			return true;
		mounts = *end ? end + 1 : end;
	}
	return false;
}

struct search {
	uint64_t id;		  /* for by_id() */
	const struct mount *like; /* for same_dev() */
	const char *path;	  /* for covers() */
	size_t path_len;
	struct mount found;
};

static bool by_id(void *ctx, const struct mount *m)
{
	struct search *s = ctx;

	s->found = *m;
	return m->id == s->id;
}

static bool has_flag(const struct mount *m, const char *flag)
{
	const char *p = m->flags, *end = p + m->flags_len;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t n = comma ? (size_t)(comma - p) : (size_t)(end - p);

		if (is(p, n, flag))
			return true;
		p += n + 1;
	}
	return false;
}

/* Finds a mount of the same device, preferably one without nosuid, as only the host's owner mounts
 * it. */
static bool same_dev(void *ctx, const struct mount *m)
{
	struct search *s = ctx;

	if (m->dev_len != s->like->dev_len || memcmp(m->dev, s->like->dev, m->dev_len) != 0)
		return false;
	s->found = *m;
	return !has_flag(m, "nosuid");
}

/* Keeps the innermost mount that contains the path; the later of two at the same mount point is on
 * top. */
static bool covers(void *ctx, const struct mount *m)
{
	struct search *s = ctx;
	size_t n = m->point_len;

	if (n > s->path_len || memcmp(m->point, s->path, n) != 0 || n < s->found.point_len)
		return false;
	if (is(m->point, n, "/") || n == s->path_len || s->path[n] == '/')
		s->found = *m;
	return false;
}

static bool is_local(const struct mount *m, const char *host, int depth);

/* Whether a path of the host is on a local file system, judged by the text alone: nothing is looked
 * up. */
static bool path_is_local(const char *path, size_t len, const char *host, int depth)
{
	struct search s = {.path = path, .path_len = len};

	/* the target of a relative path, or of one with escaped characters, is not known */
	if (!len || path[0] != '/' || memchr(path, '\\', len))
		return false;
	each(host, covers, &s);
	return s.found.point_len && depth < MAX_DEPTH && is_local(&s.found, host, depth + 1);
}

/*
 * A loop device is as local as its backing file (drivers/block/loop.c, loop/backing_file): a
 * desktop lets its users mount images of their own.
 */
static bool loop_is_local(const struct mount *m, const char *host, int depth)
{
	char path[96], *text = NULL;
	size_t len = 0;
	bool local;

	snprintf(path, sizeof(path), "/sys/dev/block/%.*s/loop/backing_file",
		 (int)MIN(m->dev_len, 32U), m->dev);
	if (proc__text(path, 65536, &text, &len))
		return false;
	local = path_is_local(text, strcspn(text, "\n"), host, depth);
	free(text);
	return local;
}

static bool list_is_local(const char *list, size_t len, const char *host, int depth)
{
	const char *end = list + len;

	while (list < end) {
		const char *colon = memchr(list, ':', (size_t)(end - list));
		size_t n = colon ? (size_t)(colon - list) : (size_t)(end - list);

		/* "::" separates data-only layers (Documentation/filesystems/overlayfs.rst) */
		if (n && !path_is_local(list, n, host, depth))
			return false;
		list += n + 1;
	}
	return true;
}

static bool layers_are_local(const struct mount *overlay, const char *host, int depth)
{
	static const char *const keys[] = {"lowerdir=", "lowerdir+=", "datadir+=", "upperdir="};
	const char *p = overlay->options, *end = p + overlay->options_len;
	bool any = false;

	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t n = comma ? (size_t)(comma - p) : (size_t)(end - p);

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			size_t key = strlen(keys[i]);

			if (n <= key || memcmp(p, keys[i], key) != 0)
				continue;
			if (!list_is_local(p + key, n - key, host, depth))
				return false;
			any = true;
		}
		p += n + 1;
	}
	return any;
}

static bool is_overlay(const struct mount *m)
{
	return is(m->type, m->type_len, "overlay");
}

static bool is_local(const struct mount *m, const char *host, int depth)
{
	if (is_overlay(m))
		return layers_are_local(m, host, depth);
	if (!has_local_type(m))
		return false;
	return strncmp(m->dev, LOOP_MAJOR, strlen(LOOP_MAJOR)) != 0 ||
	       loop_is_local(m, host, depth);
}

void origin__of_mount(const char *mounts, uint64_t id, const char *host, struct origin *ret_origin)
{
	struct origin origin = {.reach = ORIGIN_FOREIGN};
	struct search s = {.id = id};

	if (each(mounts, by_id, &s)) {
		struct search at_host = {.like = &s.found};
		bool owned = each(host, same_dev, &at_host);
		bool mounted = at_host.found.dev != NULL;

		snprintf(origin.fs, sizeof(origin.fs), "%.*s", (int)MIN(s.found.type_len, 31U),
			 s.found.type);
		origin.overlay = is_overlay(&s.found);
		/* an overlay's layers are paths in the mount namespace of whoever mounted it */
		if ((mounted || !is_overlay(&s.found)) && is_local(&s.found, host, 0))
			origin.reach = owned ? ORIGIN_OWNED : ORIGIN_LOCAL;
	}
	*ret_origin = origin;
}

/* The id of the mount through which the file was opened; reading /proc/self/fdinfo does not access
 * the file. */
static int mount_id(int fd, uint64_t *ret_id)
{
	char path[64], *text = NULL;
	const char *line;
	size_t len = 0;
	int err;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	err = proc__text(path, 65536, &text, &len);
	if (err)
		return err;
	line = strstr(text, "mnt_id:");
	if (line)
		*ret_id = strtoull(line + strlen("mnt_id:"), NULL, 10);
	free(text);
	return line ? 0 : -ENODATA;
}

/* NULL: not readable. The caller frees. */
static char *mountinfo(const char *pid)
{
	char path[64], *text = NULL;
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", pid);
	return proc__text(path, MAX_MOUNTINFO, &text, &len) ? NULL : text;
}

void origin__of(pid_t pid, int fd, uid_t uid, struct origin *ret_origin)
{
	struct origin origin = {.reach = ORIGIN_FOREIGN};
	char of[16], *mounts, *host = mountinfo("1");
	struct stat st;
	uint64_t id;

	snprintf(of, sizeof(of), pid ? "%d" : "self", pid);
	mounts = mountinfo(of);
	/* without access to process 1, our own mounts stand for the host's */
	if (!host)
		host = mountinfo("self");
	if (mounts && host && mount_id(fd, &id) == 0)
		origin__of_mount(mounts, id, host, &origin);
	free(mounts);
	free(host);
	if (origin.reach == ORIGIN_OWNED &&
	    (fstat(fd, &st) || (st.st_uid != 0 && st.st_uid != uid) ||
	     (st.st_mode & (S_IWGRP | S_IWOTH))))
		origin.reach = ORIGIN_LOCAL;
	*ret_origin = origin;
}

bool origin__is_roots(pid_t pid, int fd)
{
	struct origin origin;

	origin__of(pid, fd, 0, &origin);
	return origin.reach == ORIGIN_OWNED;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keep: turns a download into a file in the cache, if it is the one that was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "debuginfod_priv.h"
#include "elf/elf.h"

#define COPY_SIZE 65536
/* Copied at once: the session goes on meanwhile. */
#define STEP_SIZE (32ULL << 20)
/* Linux's id for users that cannot be represented (fs.overflowuid). */
#define NOBODY 65534

static int make_directory(const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part))
		return -ENAMETOOLONG;
	for (const char *end = path + strspn(path, "/"); *end;) {
		end += strcspn(end, "/");
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		end += strspn(end, "/");
	}
	return 0;
}

int keep__open_cache(const char *path, int *ret_cache)
{
	int err, fd;

	/* root can write anywhere: nobody may redirect it, or find root's files in his home
	 * directory */
	if (!geteuid())
		return dir__open_own(path, ret_cache);
	err = make_directory(path);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_cache = fd;
	return 0;
}

int keep__open_one(int cache, const char *build_id, int *ret_dir)
{
	int fd = openat(cache, build_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if ((st.st_uid && st.st_uid != geteuid()) || (!geteuid() && st.st_mode & 022))
		err = -EPERM;
	if (err)
		fd__close(&fd);
	else
		*ret_dir = fd;
	return err;
}

int keep__make_file(int cache, int *ret_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.download-XXXXXX", cache);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	*ret_fd = fd;
	return 0;
}

struct keeping {
	const char *name;   /* in `dir` … */
	char temporary[32]; /* … and its name until it is complete */
	int dir;	    /* of the build-id */
	int from, to;
	uint64_t done, size;
	bool kept;
};

/* Copies the next part. -EAGAIN: there is more. */
static int copy(struct keeping *k)
{
	uint64_t until = MIN(k->size, k->done + STEP_SIZE);
	char *buf = malloc(COPY_SIZE);
	int err = buf ? 0 : -ENOMEM;

	while (!err && k->done < until) {
		ssize_t n = pread(k->from, buf, MIN(until - k->done, (uint64_t)COPY_SIZE),
				  (off_t)k->done);

		if (n <= 0)
			err = n < 0 ? -errno : -EIO;
		else if (write(k->to, buf, (size_t)n) != n)
			err = -EIO;
		k->done += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	if (err || k->done < k->size)
		return err ? err : -EAGAIN;
	/* a server wrote it, so it must be read on its owner's account (elf.h), not on root's */
	return geteuid() == 0 && fchown(k->to, NOBODY, NOBODY) < 0 ? -errno : 0;
}

/* Takes over fd. */
static int check(int fd, const char *name, const char *build_id)
{
	struct elf_file *elf = NULL;
	char id[41];
	int err = elf__open_fd(fd, name, &elf);

	if (err)
		return err;
	if (!elf__build_id(elf, id) || strcmp(id, build_id) != 0)
		err = -EBADMSG;
	else if (elf__is_cut(elf))
		err = -EMSGSIZE;
	else if (elf__n_symbols(elf, ELF_SYMTAB) <= 1)
		err = -ENODATA;
	elf__free(elf);
	return err;
}

const char *keep__why_not(int err)
{
	if (err == -EBADMSG)
		return "the file received has another build-id";
	if (err == -EMSGSIZE)
		return "the file received is cut off: its section table is missing";
	if (err == -ENOEXEC || err == -EMEDIUMTYPE)
		return "what was received is not an ELF file for this processor";
	return strerror(-err);
}

int keep__check(int cache, const char *build_id, const char *name)
{
	int dir = -1, fd, err = keep__open_one(cache, build_id, &dir);

	if (err)
		return err;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	err = fd < 0 ? -errno : check(fd, name, build_id);
	fd__close(&dir);
	return err;
}

static int open_temporary(struct keeping *k, int cache, const char *build_id)
{
	int err;

	if (mkdirat(cache, build_id, 0700) < 0 && errno != EEXIST)
		return -errno;
	err = keep__open_one(cache, build_id, &k->dir);
	if (err)
		return err;
	snprintf(k->temporary, sizeof(k->temporary), "%s.%d", k->name, getpid());
	for (int i = 0; i < 2 && k->to < 0; i++) {
		/* left by a process with our pid that has ended: in a container each run may have
		 * the same pid */
		if (i)
			unlinkat(k->dir, k->temporary, 0);
		k->to = openat(k->dir, k->temporary,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (k->to < 0 && errno != EEXIST)
			break;
	}
	return k->to < 0 ? -errno : 0;
}

int keep__begin(int file, uint64_t size, int cache, const char *build_id, const char *name,
		struct keeping **ret_keeping)
{
	struct keeping *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->from = file;
	k->size = size;
	k->to = k->dir = -1;
	k->name = name;
	err = open_temporary(k, cache, build_id);
	if (err)
		keep__free(k);
	else
		*ret_keeping = k;
	return err;
}

int keep__go_on(struct keeping *k, const char *build_id)
{
	int err = k->done < k->size || !k->size ? copy(k) : 0, fd;

	if (err)
		return err;
	fd = fcntl(k->to, F_DUPFD_CLOEXEC, 0);
	err = fd < 0 ? -errno : check(fd, "debuginfod", build_id);
	if (!err && renameat(k->dir, k->temporary, k->dir, k->name) < 0)
		err = -errno;
	k->kept = !err;
	return err;
}

void keep__free(struct keeping *k)
{
	if (!k)
		return;
	if (k->to >= 0 && !k->kept)
		unlinkat(k->dir, k->temporary, 0);
	fd__close(&k->to);
	fd__close(&k->dir);
	free(k);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keep: what was downloaded becomes a file of the directory, if it is what was asked for. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "debuginfod_priv.h"
#include "elf/elf.h"

#define COPY_SIZE 65536
/* Linux's, for whoever is nobody else (fs.overflowuid). */
#define NOBODY 65534

int keep__make_directory(const char *path)
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

int keep__make_file(const char *dir, int *ret_fd)
{
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/.download-XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	*ret_fd = fd;
	return 0;
}

static int copy(int from, int to, uint64_t size)
{
	char *buf = malloc(COPY_SIZE);
	int err = buf ? 0 : -ENOMEM;

	for (uint64_t at = 0; !err && at < size;) {
		ssize_t n = pread(from, buf, MIN(size - at, (uint64_t)COPY_SIZE), (off_t)at);

		if (n <= 0)
			err = n < 0 ? -errno : -EIO;
		else if (write(to, buf, (size_t)n) != n)
			err = -EIO;
		at += n > 0 ? (uint64_t)n : 0;
	}
	free(buf);
	return err;
}

/* The descriptor is taken. */
static int check(int fd, const char *name, const char *build_id)
{
	struct elf_file *elf = NULL;
	char id[41];
	int err = elf__open_fd(fd, name, &elf);

	if (err)
		return err;
	if (!elf__build_id(elf, id) || strcmp(id, build_id) != 0)
		err = -EBADMSG;
	else if (elf__n_symbols(elf, ELF_SYMTAB) <= 1)
		err = -ENODATA;
	elf__free(elf);
	return err;
}

int keep__check(const char *path, const char *build_id)
{
	int fd = -1, err = fd__open_regular(path, &fd);

	return err ? err : check(fd, path, build_id);
}

/* A copy, since the process that downloads can still write to what it has. */
int keep__file(int file, uint64_t size, const char *build_id, const char *path)
{
	char temporary[PATH_MAX], *slash;
	int fd, err;

	if (snprintf(temporary, sizeof(temporary), "%s.%d", path, getpid()) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	slash = strrchr(temporary, '/');
	*slash = '\0';
	err = keep__make_directory(temporary);
	*slash = '/';
	if (err)
		return err;
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = copy(file, fd, size);
	/* a server wrote it: by its owner it is one of those that are read aside (elf.h) */
	if (!err && geteuid() == 0 && fchown(fd, NOBODY, NOBODY) < 0)
		err = -errno;
	if (err)
		fd__close(&fd);
	else
		err = check(fd, "debuginfod", build_id);
	if (!err && rename(temporary, path) < 0)
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

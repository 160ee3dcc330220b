/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output files that appear whole or not at all. The daemon writes as root into directories that
 * belong to others, so everything goes through one open directory, no link is followed and the
 * temporary file's name cannot be guessed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "export.h"

#define TEMP_ATTEMPTS 16
#define BUFFER_SIZE   ((size_t)256 << 10) /* files of a gigabyte are not rare */

struct outfile {
	FILE *stream;
	char *path;    /* as the user gave it, for messages */
	char *base;    /* the destination's name in the directory */
	char temp[48]; /* the temporary file's name; "" if there is none */
	char *buffer;  /* the stream's: glibc ignores a size that comes without memory */
	int dir;
	int fd;
	int err; /* the first failure of a write: a stream only remembers that there was one */
	uid_t owner;
	gid_t group;
};

void outfile__abort(struct outfile *out)
{
	if (!out)
		return;
	if (out->stream)
		fclose(out->stream);
	if (out->temp[0])
		unlinkat(out->dir, out->temp, 0);
	fd__close(&out->fd);
	fd__close(&out->dir);
	free(out->buffer);
	free(out->path);
	free(out->base);
	free(out);
}

static ssize_t write_all(void *cookie, const char *data, size_t len)
{
	struct outfile *out = cookie;
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(out->fd, data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (!out->err)
				out->err = n < 0 && errno ? -errno : -EIO;
			return 0;
		}
		done += (size_t)n;
	}
	return (ssize_t)len;
}

/* Parts path into an open directory and a name in it. */
static int open_dir(struct outfile *out, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	char *dir = NULL;

	if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return -EISDIR;
	if (slash)
		dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	else
		dir = strdup(".");
	out->path = strdup(path);
	out->base = strdup(base);
	if (!dir || !out->path || !out->base) {
		free(dir);
		return -ENOMEM;
	}
	out->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	return out->dir < 0 ? -errno : 0;
}

static int open_temp(struct outfile *out, int *ret_fd)
{
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		unsigned long long noise[2];
		int fd;

		if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
			return -EIO;
		snprintf(out->temp, sizeof(out->temp), ".safescoped-%016llx%016llx", noise[0],
			 noise[1]);
		fd = openat(out->dir, out->temp,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		/* Nothing was made, so there is nothing to remove. */
		out->temp[0] = '\0';
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* /dev/null and its kind: nothing to rename, nothing to hand over. */
static int open_device(struct outfile *out, int *ret_fd)
{
	struct stat st;
	int fd = openat(out->dir, out->base, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISCHR(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*ret_fd = fd;
	return 0;
}

static int open_destination(struct outfile *out, const char *path, int *ret_fd,
			    const char **ret_advice)
{
	struct stat st;
	int err = open_dir(out, path);

	if (err)
		return err;
	if (fstatat(out->dir, out->base, &st, AT_SYMLINK_NOFOLLOW)) {
		if (errno != ENOENT)
			return -errno;
		return open_temp(out, ret_fd);
	}
	if (S_ISREG(st.st_mode))
		return open_temp(out, ret_fd);
	if (S_ISCHR(st.st_mode))
		return open_device(out, ret_fd);
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* Renaming over /dev/stdout would replace the link itself, for everybody. */
	if (S_ISLNK(st.st_mode)) {
		*ret_advice = "it is a link: name the file itself, or `-` for standard output";
		return -ELOOP;
	}
	*ret_advice = "it is no regular file: use `-` and a pipe or a redirection";
	return -EINVAL;
}

int outfile__open(const char *path, uid_t owner, gid_t group, struct outfile **ret_out)
{
	const char *advice = "choose another place with --output";
	struct outfile *out = calloc(1, sizeof(*out));
	int err;

	if (!out) {
		log_error("%s: cannot be written: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	out->dir = out->fd = -1;
	out->owner = owner;
	out->group = group;
	out->buffer = malloc(BUFFER_SIZE);
	err = out->buffer ? open_destination(out, path, &out->fd, &advice) : -ENOMEM;
	if (!err) {
		out->stream = fopencookie(out, "w", (cookie_io_functions_t){.write = write_all});
		err = out->stream ? 0 : -ENOMEM;
	}
	if (err) {
		log_error("%s: cannot be written: %s; %s", path, strerror(-err), advice);
		outfile__abort(out);
		return err;
	}
	setvbuf(out->stream, out->buffer, _IOFBF, BUFFER_SIZE);
	*ret_out = out;
	return 0;
}

FILE *outfile__stream(struct outfile *out)
{
	return out->stream;
}

int outfile__error(const struct outfile *out)
{
	return out->err;
}

/* Everything on the disk: a full one may show only here (delayed allocation). */
static int flush(struct outfile *out)
{
	if (fflush(out->stream) || out->err)
		return out->err ? out->err : -EIO;
	/* Devices know no fsync (EINVAL) and need none. */
	if (fsync(out->fd) && (errno != EINVAL || out->temp[0]))
		return -errno;
	return 0;
}

static int close_stream(struct outfile *out)
{
	FILE *stream = out->stream;
	int fd = out->fd;

	out->stream = NULL;
	out->fd = -1;
	fclose(stream);
	return close(fd) ? -errno : out->err;
}

int outfile__commit(struct outfile *out)
{
	int err = flush(out);

	if (!err && out->temp[0] && (out->owner != (uid_t)-1 || out->group != (gid_t)-1) &&
	    fchown(out->fd, out->owner, out->group))
		log_warn("%s: stays with its present owner: %s", out->path, strerror(errno));
	if (!err)
		err = close_stream(out);
	if (!err && out->temp[0]) {
		if (renameat(out->dir, out->temp, out->dir, out->base))
			err = -errno;
		else
			out->temp[0] = '\0';
		/* The file is whole and in its place; a directory that cannot sync changes neither.
		 */
		if (!err && fsync(out->dir) && errno != EINVAL)
			log_warn("%s: written, but its directory could not be synced: %s",
				 out->path, strerror(errno));
	}
	if (err)
		log_error("%s: not written: %s; nothing was left there", out->path, strerror(-err));
	outfile__abort(out);
	return err;
}

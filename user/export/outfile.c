/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output files that appear complete or not at all. The daemon writes as root into other users'
 * directories, so everything goes through one open directory, reached without following anyone
 * else's link. The file has no name until it is complete: whatever ends the program, nothing is
 * left. Where the file system has no unnamed files, the file gets a name that cannot be guessed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limit.h"
#include "export.h"

#define TEMP_ATTEMPTS 16
#define TEMP_PREFIX   ".safescoped-" /* 32 hexadecimal digits follow */
#define TEMP_DIGITS   32
/* A temporary file not written to for this long has no writer left. */
#define LEFT_S	    3600
#define BUFFER_SIZE ((size_t)256 << 10) /* files of a gigabyte are common */

struct outfile {
	FILE *stream;
	char *path;	  /* as the user gave it, for messages */
	const char *base; /* points into path: the destination's name in the directory */
	char temp[48];	  /* the temporary file's name; "" if it has none */
	bool device;	  /* nothing to rename or to chown */
	char *buffer;	  /* the stream's: glibc ignores a buffer size without a buffer */
	int dir;
	int fd;
	int err; /* the first write error: a stream only records that there was one */
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

static int name_temp(struct outfile *out)
{
	unsigned long long noise[2];

	if (getrandom(noise, sizeof(noise), 0) != (ssize_t)sizeof(noise))
		return -EIO;
	snprintf(out->temp, sizeof(out->temp), TEMP_PREFIX "%016llx%016llx", noise[0], noise[1]);
	return 0;
}

static bool is_left_over(int dir, const char *name, uid_t owner)
{
	const char *digits = name + strlen(TEMP_PREFIX);
	struct stat st;

	return !strncmp(name, TEMP_PREFIX, strlen(TEMP_PREFIX)) &&
	       strspn(digits, "0123456789abcdef") == TEMP_DIGITS && !digits[TEMP_DIGITS] &&
	       !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == owner) &&
	       st.st_mtime < (time_t)(time__realtime_ns() / 1000000000) - LEFT_S;
}

void outfile__sweep(int dir, uid_t owner)
{
	struct dirent *e;
	DIR *d;

	/* errors are reported when a file is written there */
	if (dir__stream(dir, &d))
		return;
	while ((e = readdir(d)))
		if (is_left_over(dir, e->d_name, owner))
			unlinkat(dir, e->d_name, 0);
	closedir(d);
}

/* Opens a temporary file with a name, where unnamed files are not supported. */
static int open_named(struct outfile *out, int *ret_fd)
{
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		int fd, err = name_temp(out);

		if (err)
			return err;
		fd = openat(out->dir, out->temp,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0) {
			*ret_fd = fd;
			return 0;
		}
		/* Nothing was created, so there is nothing to remove. */
		out->temp[0] = '\0';
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static void self_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

static int open_temp(struct outfile *out, int *ret_fd)
{
	char self[32];
	int fd;

	/* the name is only used at the end: check it now */
	if (strlen(out->base) > NAME_MAX)
		return -ENAMETOOLONG;
	fd = openat(out->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR ? open_named(out, ret_fd) : -errno;
	/* linking the file to a name needs /proc */
	self_path(fd, self);
	if (access(self, F_OK)) {
		close(fd);
		return open_named(out, ret_fd);
	}
	*ret_fd = fd;
	return 0;
}

/* Links the file to a temporary name, which can then be renamed over another file. */
static int give_name(struct outfile *out)
{
	char self[32];

	self_path(out->fd, self);
	for (int i = 0; i < TEMP_ATTEMPTS; i++) {
		int err = name_temp(out);

		if (err)
			return err;
		if (!linkat(AT_FDCWD, self, out->dir, out->temp, AT_SYMLINK_FOLLOW))
			return 0;
		out->temp[0] = '\0';
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Opens a character device such as /dev/null. Its type is checked first, since opening a FIFO would
 * wait for a reader. */
static int open_device(struct outfile *out, int *ret_fd)
{
	int at = openat(out->dir, out->base, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1, err = 0;
	char self[32];
	struct stat st;

	if (at < 0)
		return -errno;
	if (fstat(at, &st) || !S_ISCHR(st.st_mode)) {
		err = -EINVAL;
	} else {
		self_path(at, self);
		fd = open(self, O_WRONLY | O_NOCTTY | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
	}
	fd__close(&at);
	if (err)
		return err;
	out->device = true;
	*ret_fd = fd;
	return 0;
}

static int open_destination(struct outfile *out, const char *path, int *ret_fd,
			    const char **ret_advice)
{
	struct stat st;
	int err;

	out->path = strdup(path);
	if (!out->path)
		return -ENOMEM;
	err = dir__open_of(out->path, out->owner, &out->dir, &out->base);
	if (err == -EPERM)
		*ret_advice =
			"a link in the path belongs to another user: name the directory itself";
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
	/* Renaming over a link such as /dev/stdout would replace the link, for everybody. */
	if (S_ISLNK(st.st_mode)) {
		*ret_advice = "it is a link: name the file itself, or `-` for standard output";
		return -ELOOP;
	}
	*ret_advice = "it is not a regular file: use `-` and a pipe or a redirection";
	return -EINVAL;
}

/* Shortages of this process are not specific to the path: the advice is left out for them. */
static void report_failure(const char *path, int err, const char *advice)
{
	bool lacks = err == -ENOMEM || err == -EMFILE || err == -ENFILE;

	log_error("%s: cannot be written: %s%s%s", path, strerror(-err),
		  lacks ? limit__why(err).text : "; ", lacks ? "" : advice);
}

int outfile__open(const char *path, uid_t owner, gid_t group, struct outfile **ret_out)
{
	const char *advice = "choose another place";
	struct outfile *out = calloc(1, sizeof(*out));
	int err;

	if (!out) {
		report_failure(path, -ENOMEM, advice);
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
		report_failure(path, err, advice);
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

/* Writes everything to the disk: because of delayed allocation ENOSPC may only show here. */
static int flush(struct outfile *out)
{
	if (fflush(out->stream) || out->err)
		return out->err ? out->err : -EIO;
	/* Devices do not support fsync (EINVAL) and need none. */
	if (fsync(out->fd) && (errno != EINVAL || !out->device))
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

/* Renames the file to its final name, replacing what is there. */
static int put_in_place(struct outfile *out)
{
	int err = out->temp[0] ? 0 : give_name(out);

	if (err)
		return err;
	if ((out->owner != (uid_t)-1 || out->group != (gid_t)-1) &&
	    fchown(out->fd, out->owner, out->group))
		log_warn("%s: cannot change its owner: %s", out->path, strerror(errno));
	err = close_stream(out);
	if (err)
		return err;
	if (renameat(out->dir, out->temp, out->dir, out->base))
		return -errno;
	out->temp[0] = '\0';
	/* The file is complete and in place; failing to sync the directory changes neither. */
	if (fsync(out->dir) && errno != EINVAL)
		log_warn("%s: written, but its directory could not be synced: %s", out->path,
			 strerror(errno));
	return 0;
}

int outfile__commit(struct outfile *out)
{
	int err = flush(out);

	if (!err)
		err = out->device ? close_stream(out) : put_in_place(out);
	if (err)
		log_error("%s: not written: %s; no file was left", out->path, strerror(-err));
	outfile__abort(out);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A FUSE file system with one file, "program", whose server can hold back the file's pages.
 *
 *   slow_fs FILE MOUNTPOINT [OPTIONS]    serves FILE; reads wait while MOUNTPOINT.stall exists
 *
 * OPTIONS are for mounting: without allow_other only the user who mounted it may access it, not
 * even root.
 *
 * The kernel caches a page for a millisecond at most, so that reads reach the server.
 */
#define FUSE_USE_VERSION 34
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM 2

static int file;
static char stall[4096];
static struct fuse_session *session;

static void on_init(void *ctx, struct fuse_conn_info *conn)
{
	(void)ctx;
	conn->max_readahead = 0;
}

static int attributes(fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	if (ino == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0755;
		st->st_nlink = 2;
	} else if (ino == PROGRAM) {
		fstat(file, st);
		st->st_mode = S_IFREG | 0755;
		st->st_uid = st->st_gid = 0;
	} else {
		return ENOENT;
	}
	st->st_ino = ino;
	return 0;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {.ino = PROGRAM, .attr_timeout = 60, .entry_timeout = 60};

	if (parent != FUSE_ROOT_ID || strcmp(name, "program") != 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	attributes(PROGRAM, &e.attr);
	fuse_reply_entry(req, &e);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;
	int err = attributes(ino, &st);

	(void)fi;
	if (err)
		fuse_reply_err(req, err);
	else
		fuse_reply_attr(req, &st, 60);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	char *buf = malloc(size);
	ssize_t got;

	(void)ino;
	(void)fi;
	while (access(stall, F_OK) == 0)
		usleep(10000);
	got = buf ? pread(file, buf, size, off) : -1;
	if (got < 0)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_buf(req, buf, (size_t)got);
	free(buf);
}

static void *forget_pages(void *ctx)
{
	(void)ctx;
	for (;;) {
		usleep(1000);
		fuse_lowlevel_notify_inval_inode(session, PROGRAM, 0, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_lowlevel_ops ops = {
		.init = on_init,
		.lookup = on_lookup,
		.getattr = on_getattr,
		.read = on_read,
	};
	char *options[] = {"slow_fs", "-o", "allow_other,default_permissions,fsname=slow", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, options);
	struct fuse_loop_config config = {.max_idle_threads = 10};
	pthread_t thread;

	if (argc < 3 || argc > 4)
		return 2;
	if (argc == 4)
		options[2] = argv[3];
	file = open(argv[1], O_RDONLY);
	snprintf(stall, sizeof(stall), "%s.stall", argv[2]);
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (file < 0 || !session || fuse_session_mount(session, argv[2]))
		return 3;
	pthread_create(&thread, NULL, forget_pages, NULL);
	puts("ready");
	fflush(stdout);
	return fuse_session_loop_mt(session, &config);
}

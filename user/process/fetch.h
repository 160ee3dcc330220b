/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a file that a process maps, so that reading it cannot hold up the daemon. A file on a local
 * file system is opened as it is. A file that a server may hold back (origin.h, ORIGIN_FOREIGN) is
 * copied into memory by a confined child with a deadline; the daemon itself never opens, reads or
 * maps it, since even closing a file of FUSE's waits for its server.
 */
#ifndef SAFESCOPED_PROCESS_FETCH_H
#define SAFESCOPED_PROCESS_FETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Limits of one copy, and of all together, which users share (base/shares.h). */
#define FETCH_MAX_FILE	(256ULL << 20)
#define FETCH_MAX_BYTES (512ULL << 20)

/* All existing copies, shared by all processes that are looked at. */
struct copies;
int copies__new(struct copies **ret_copies);
void copies__free(struct copies *copies);

/*
 * Like fstat(), but without asking the file system's server: sizes and times may be slightly out of
 * date. O_PATH is enough. fetch__stat_path() does the same by name, following a symlink.
 */
int fetch__stat(int fd, struct stat *ret_st);
int fetch__stat_path(const char *path, struct stat *ret_st);

/*
 * Looks up a path below `root`, which serves as its root directory, in a confined child: the path
 * may cross a file system whose server does not answer. *ret_fd is an O_PATH descriptor of whatever
 * is there; the caller closes it. `user`: whose budget the wait is charged to. -EREMOTEIO: not
 * looked up in time.
 */
int fetch__find(int root, const char *path, uid_t user, int *ret_fd);
/* The same in this process, for paths that cannot hang. `flags`, `resolve`: more flags for
 * openat2(2). */
int fetch__find_here(int root, const char *path, uint64_t flags, uint64_t resolve, int *ret_fd);

struct fetched {
	int fd;	       /* to read from; the caller closes it */
	bool is_copy;  /* in memory: fetch__release() when it is not used any more */
	bool is_roots; /* on a file system of the host's, and only root can have written it */
	uint64_t copy; /* number of the copy */
	uid_t user;
};

/*
 * Opens path_fd for reading (O_PATH is enough; it stays the caller's), which was opened through the
 * mounts of process pid (0: our own); `st` comes from fetch__stat(). `user`: whom the copy is
 * charged to; copies NULL: nobody, for a single file. -ETIME: it could not be copied in time, or
 * the child was killed, which shows nothing about the file; -EREMOTEIO: it is too large, its server
 * refuses it, or there is no room for a copy; -EMFILE, -ENFILE, -ENOMEM; -EINVAL: not a regular
 * file.
 */
int fetch__open(struct copies *copies, pid_t pid, int path_fd, const struct stat *st, uid_t user,
		struct fetched *ret_fetched);
/* Releases the room that a copy takes up. Does not close it. */
void fetch__release(struct copies *copies, const struct fetched *fetched);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a file that somebody maps, so that reading it cannot hold up the daemon. One on a local
 * file system is opened as it is. One that a server may hold back (origin.h, ORIGIN_FOREIGN) is
 * copied into memory by a confined child with a deadline, and never opened, read or mapped by the
 * daemon: even closing a file of FUSE's waits for its server.
 */
#ifndef SAFESCOPED_PROCESS_FETCH_H
#define SAFESCOPED_PROCESS_FETCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Copies: of one file, and of all together, shared between users (base/shares.h). */
#define FETCH_MAX_FILE	(256ULL << 20)
#define FETCH_MAX_BYTES (512ULL << 20)

/* The copies that there are, of all files that are looked at together. */
struct copies;
int copies__new(struct copies **ret_copies);
void copies__free(struct copies *copies);

/*
 * What fstat() has, without asking the file system's server: sizes and times may be a little old.
 * O_PATH is enough. The same by name, with its link followed.
 */
int fetch__stat(int fd, struct stat *ret_st);
int fetch__stat_path(const char *path, struct stat *ret_st);

/*
 * Looks a path up below the directory `root`, which is its root, in a confined child: on its way
 * there may be a file system whose server does not answer. *ret_fd: O_PATH, of whatever is there,
 * the caller's. `user`: on whose account it is waited for. -EREMOTEIO: it could not be read in
 * time.
 */
int fetch__find(int root, const char *path, uid_t user, int *ret_fd);
/* The same here, where nothing on the way can hang. `flags`, `resolve`: more of openat2(2)'s. */
int fetch__find_here(int root, const char *path, uint64_t flags, uint64_t resolve, int *ret_fd);

struct fetched {
	int fd;	       /* to be read; the caller's */
	bool is_copy;  /* in memory: fetch__release() when it is not used any more */
	bool is_roots; /* of a file system of the host's, and only root can have written it */
	uint64_t copy; /* its number */
	uid_t user;
};

/*
 * path_fd (O_PATH is enough; stays the caller's) was opened through the mounts of process pid (0:
 * our own), and `st` is what fetch__stat() has of it. `user`: on whose account it is copied;
 * copies NULL: on nobody's, for the one file that is looked at. -ETIME: it could not be copied in
 * time, or what copies it was killed, which shows nothing of it; -EREMOTEIO: it is too large, or
 * its server refuses it, or there is no room for a copy; -EMFILE, -ENFILE, -ENOMEM; -EINVAL: not a
 * regular file.
 */
int fetch__open(struct copies *copies, pid_t pid, int path_fd, const struct stat *st, uid_t user,
		struct fetched *ret_fetched);
/* There is room for another copy again. Closes nothing. */
void fetch__release(struct copies *copies, const struct fetched *fetched);

#endif

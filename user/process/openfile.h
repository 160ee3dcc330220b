/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that a process has open. By /proc/PID/fd root opens whatever such a descriptor refers
 * to, with root's rights and not with those that the descriptor has: an O_PATH descriptor, which
 * anybody can have of anybody's file, would bring its content. So only the process's own files are
 * opened here.
 */
#ifndef SAFESCOPED_PROCESS_OPENFILE_H
#define SAFESCOPED_PROCESS_OPENFILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Calls fn with the number of each of the first `max` descriptors and the path that its link has,
 * until fn returns something but 0, which is returned then; 0 after the last one. -ESRCH: there is
 * no such process. Never blocks: nothing is asked of the files.
 */
int open_files__each(pid_t pid, unsigned max, int (*fn)(void *ctx, int number, const char *path),
		     void *ctx);

/*
 * Opens for reading the regular file that the process has open for writing as descriptor `number`,
 * if it belongs to one of the process's users (or the process to root) and lies on a local file
 * system: what the process could have read and written without us, and nobody serves. The caller
 * closes *ret_fd, which never blocks. Reads the process's list of mounts, which may be long.
 * -EPERM: it is not the process's own; -EREMOTE: not on a local file system; -EINVAL: not regular;
 * -ENOENT, -ESRCH: it is gone.
 */
int open_file__own(pid_t pid, int number, int *ret_fd);

#endif

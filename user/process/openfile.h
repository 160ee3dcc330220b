/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that a process has open. Opening /proc/PID/fd/N as root uses root's rights, not those
 * of the descriptor: an O_PATH descriptor, which anybody can have of anybody's file, would then
 * give access to its content. So only the process's own files are opened here.
 */
#ifndef SAFESCOPED_PROCESS_OPENFILE_H
#define SAFESCOPED_PROCESS_OPENFILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Calls fn with the number and the link's path of each of the first `max` descriptors, until fn
 * returns non-zero, which is returned; 0 after the last one. -ESRCH: no such process. Never blocks:
 * the files themselves are not touched.
 */
int open_files__each(pid_t pid, unsigned max, int (*fn)(void *ctx, int number, const char *path),
		     void *ctx);

/*
 * Opens for reading the regular file that the process has open for writing as descriptor `number`,
 * if it belongs to one of the process's users (or the process is root's) and lies on a local file
 * system: the process could have read and written it by itself, and no server is involved. The
 * caller closes *ret_fd, which never blocks. Reads the process's list of mounts, which may be long.
 * -EPERM: not the process's own; -EREMOTE: not on a local file system; -EINVAL: not a regular file;
 * -ENOENT, -ESRCH: it is gone.
 */
int open_file__own(pid_t pid, int number, int *ret_fd);

#endif

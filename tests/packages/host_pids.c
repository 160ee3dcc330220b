/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_pids.so, to be preloaded: the program takes its PID namespace for the host's. systemd boots
 * only as process 1 of a namespace, and the daemon refuses to work in any but the host's.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* include/linux/proc_ns.h, PROC_PID_INIT_INO */
#define HOST_PIDS_INO 0xEFFFFFFCU

int stat(const char *restrict path, struct stat *restrict ret_st)
{
	int result = fstatat(AT_FDCWD, path, ret_st, 0);

	if (!result && !strcmp(path, "/proc/self/ns/pid"))
		ret_st->st_ino = HOST_PIDS_INO;
	return result;
}

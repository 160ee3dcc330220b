/* SPDX-License-Identifier: GPL-2.0-or-later */
/* program: which program a process runs, and whether it still runs. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/retry.h"
#include "process/proc.h"
#include "session_priv.h"

bool program__exe(pid_t pid, uint64_t *ret_ino, uint32_t *ret_dev)
{
	char path[64];
	struct statx st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	/* does not ask a file server */
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st))
		return false;
	*ret_ino = st.stx_ino;
	/* include/linux/kdev_t.h, MKDEV */
	*ret_dev = st.stx_dev_major << 20 | st.stx_dev_minor;
	return true;
}

bool program__is(pid_t pid, const struct wire_proc_new *rec)
{
	struct proc_stat stat;
	uint64_t ino;
	uint32_t dev;

	if (program__exe(pid, &ino, &dev) && dev == rec->dev)
		return ino == rec->ino;
	/* /proc and the kernel may disagree on the device: btrfs, overlayfs */
	return proc__stat(pid, 0, &stat) == 0 &&
	       strncmp(stat.comm, rec->comm, sizeof(rec->comm)) == 0;
}

bool program__has_ended(pid_t pid)
{
	struct proc_stat stat;
	uint64_t ino;
	uint32_t dev;
	int err = proc__stat(pid, 0, &stat);

	if (retry__shows_nothing(err))
		return false;
	return err || stat.state == 'Z' || stat.state == 'X' || !program__exe(pid, &ino, &dev);
}

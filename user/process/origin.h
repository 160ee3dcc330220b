/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a file comes from: whether reading a page of it can be held up by somebody, and who can
 * have made what is in it. A uprobe acts on every process that maps the file, and while one is
 * registered the kernel reads the file's page with all forks of the host waiting
 * (kernel/events/uprobes.c, register_for_each_vma() holds dup_mmap_sem).
 */
#ifndef SAFESCOPED_PROCESS_ORIGIN_H
#define SAFESCOPED_PROCESS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum origin_reach {
	ORIGIN_FOREIGN = 0, /* a server, or nobody knows: no probe */
	ORIGIN_LOCAL,	    /* a local file system: probes for one process */
	ORIGIN_OWNED, /* mounted by the host, and only root or the asker can have written it: probes
			 for all processes that map it */
};

struct origin {
	enum origin_reach reach;
	bool overlay; /* of layers, which other overlays may have, too */
	char fs[32];  /* type of the file system: "ext4"; "" if it is not known */
};

/*
 * The file that `fd` refers to (O_PATH is enough), which was opened through the mounts of process
 * pid (0: our own). `uid`: the one user besides root who may have written an ORIGIN_OWNED file.
 * Nothing of the file system itself is asked before it is known to be a local one. Never fails:
 * what cannot be found out is ORIGIN_FOREIGN.
 */
void origin__of(pid_t pid, int fd, uid_t uid, struct origin *ret_origin);

/* Whether the host mounted its file system, and only root can have written it. As above. */
bool origin__is_roots(pid_t pid, int fd);

/* ── the parts that take text, for tests ─────────────────────────────────────────────────── */

/*
 * The mount `id` in `mounts`, the text of a mountinfo file (Documentation/filesystems/proc.rst,
 * 3.5); `host` is the text of the host's. ORIGIN_OWNED: the host has the same file system mounted,
 * and not nosuid, as a desktop mounts what its users bring. An overlay is what its layers are, and
 * ORIGIN_FOREIGN if the host has not mounted it: an unprivileged user can mount one over FUSE.
 */
void origin__of_mount(const char *mounts, uint64_t id, const char *host, struct origin *ret_origin);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The origin of a file: whether somebody can delay reading a page of it, and who can have written
 * its contents. A uprobe acts on every process that maps the file, and while one is registered the
 * kernel reads the file's page with all forks of the host waiting (kernel/events/uprobes.c,
 * register_for_each_vma() holds dup_mmap_sem).
 */
#ifndef SAFESCOPED_PROCESS_ORIGIN_H
#define SAFESCOPED_PROCESS_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum origin_reach {
	ORIGIN_FOREIGN = 0, /* served by somebody, or unknown: no probe */
	ORIGIN_LOCAL,	    /* a local file system: probes for one process */
	ORIGIN_OWNED, /* mounted by the host, and only root or the asker can have written it: probes
			 for all processes that map it */
};

struct origin {
	enum origin_reach reach;
	bool overlay; /* its layers may belong to other overlays too */
	char fs[32];  /* type of the file system: "ext4"; "" if unknown */
};

/*
 * Finds the origin of the file that `fd` refers to (O_PATH is enough), which was opened through the
 * mounts of process pid (0: our own). `uid`: the one user besides root who may have written an
 * ORIGIN_OWNED file. The file system is not accessed until it is known to be local. Never fails:
 * whatever cannot be determined is ORIGIN_FOREIGN.
 */
void origin__of(pid_t pid, int fd, uid_t uid, struct origin *ret_origin);

/* Whether the host mounted its file system, and only root can have written it. Otherwise as
 * origin__of(). */
bool origin__is_roots(pid_t pid, int fd);

/* ── the parts that take text, for tests ─────────────────────────────────────────────────── */

/*
 * The origin of mount `id` in `mounts`, the text of a mountinfo file
 * (Documentation/filesystems/proc.rst, 3.5); `host` is the text of the host's. ORIGIN_OWNED: the
 * host has the same file system mounted, and without nosuid, which a desktop sets on what its users
 * bring. An overlay has the origin of its layers, and is ORIGIN_FOREIGN if the host has not mounted
 * it: an unprivileged user can mount one over FUSE.
 */
void origin__of_mount(const char *mounts, uint64_t id, const char *host, struct origin *ret_origin);

#endif

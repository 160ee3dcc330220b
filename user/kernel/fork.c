/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Children are forked to read a target's memory, and each fork copies the page tables of the rings:
 * their 32 MB are most of what a fork costs. No child needs them.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "process/proc.h"

void kernel__keep_from_children(void)
{
	struct proc_maps maps;
	char *text;
	size_t len;

	if (proc__text("/proc/self/maps", PROC_MAX_TEXT, &text, &len) ||
	    proc__parse_maps(text, len, &maps))
		return;
	for (size_t i = 0; i < maps.n; i++) {
		const struct proc_map *m = &maps.maps[i];

		if (!strstr(m->path, "anon_inode:bpf-map") &&
		    !strstr(m->path, "anon_inode:[perf_event]"))
			continue;
		if (madvise((void *)m->start, m->end - m->start, MADV_DONTFORK))
			log_debug("a ring is copied by each fork: %s", strerror(errno));
	}
	proc_maps__free(&maps);
}

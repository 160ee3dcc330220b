/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A target's memory is read by children that are forked for it, and a fork copies the page tables
 * of the rings: 32 MB of them are most of what it costs. No child needs them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "kernel_priv.h"

void kernel__keep_from_children(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;

	while (maps && getline(&line, &room, maps) > 0) {
		unsigned long start, end = 0;
		char *dash;

		if (!strstr(line, "anon_inode:bpf-map") && !strstr(line, "anon_inode:[perf_event]"))
			continue;
		start = strtoul(line, &dash, 16);
		if (*dash == '-')
			end = strtoul(dash + 1, NULL, 16);
		if (end > start && madvise((void *)start, end - start, MADV_DONTFORK))
			log_debug("a ring is copied by each fork: %s", strerror(errno));
	}
	free(line);
	if (maps)
		fclose(maps);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as those files of /proc that a process can influence: its name, the paths that it maps,
 * its mounts. The first byte selects the file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/origin.h"
#include "process/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void maps(const char *text, size_t len)
{
	char *copy = malloc(len + 1);
	struct proc_maps got;

	if (!copy)
		return;
	memcpy(copy, text, len + 1);
	if (proc__parse_maps(copy, len, &got))
		return;
	for (size_t i = 0; i < got.n; i++) {
		const struct proc_map *m = &got.maps[i];

		if (m->start >= m->end || (i && m->start < got.maps[i - 1].end))
			abort();
		if (m->path < got.text || m->path + strlen(m->path) > got.text + len)
			if (m->path[0])
				abort();
		if (proc_maps__at(&got, m->start) != m || proc_maps__at(&got, m->end - 1) != m)
			abort();
	}
	proc_maps__free(&got);
}

/* Looks up a file on each of the first mounts; the text is both the target's and the host's. */
static void mounts(const char *text)
{
	struct origin got;

	for (uint64_t id = 0; id < 8; id++) {
		memset(&got, 0xff, sizeof(got));
		origin__of_mount(text, id, text, &got);
		if (strnlen(got.fs, sizeof(got.fs)) == sizeof(got.fs))
			abort();
		if (got.reach > ORIGIN_OWNED)
			abort();
	}
}

static void short_files(const char *text, size_t len)
{
	struct proc_syscall call;
	struct proc_stat stat;
	int64_t clock;
	pid_t pid;

	if (proc__parse_stat(text, len, &stat) == 0 &&
	    strnlen(stat.comm, sizeof(stat.comm)) == sizeof(stat.comm))
		abort();
	if (proc__parse_ns_pid(text, len, &pid) == 0 && pid <= 0)
		abort();
	proc__parse_syscall(text, len, &call);
	proc__parse_clock(text, len, &clock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size || !(text = malloc(size)))
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 3 == 0)
		maps(text, size - 1);
	else if (data[0] % 3 == 1)
		mounts(text);
	else
		short_files(text, size - 1);
	free(text);
	return 0;
}

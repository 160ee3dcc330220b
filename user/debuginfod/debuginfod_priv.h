/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon and the process that downloads send each other. */
#ifndef SAFESCOPED_DEBUGINFOD_PRIV_H
#define SAFESCOPED_DEBUGINFOD_PRIV_H

#include <stdint.h>

#include "debuginfod.h"

#define BUILD_ID_MAX 64

struct download_task {
	char build_id[BUILD_ID_MAX];
	uint32_t kind; /* enum debuginfod_kind */
};

struct download_news {
	int32_t done; /* it is over */
	int32_t err;  /* of one that is over */
	uint64_t bytes, total;
	char text[160]; /* what is wrong */
};

/* As it is called in URLs, and in the directory. */
static inline const char *debuginfod_kind__name(enum debuginfod_kind kind)
{
	return kind == DEBUGINFOD_EXECUTABLE ? "executable" : "debuginfo";
}

/*
 * Downloads what comes as tasks from `channel` into `file`, from its beginning, and sends news;
 * returns when there is nobody any more who asks. In the confined process.
 */
void download__run(const struct debuginfod_opts *opts, int channel, int file);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to retry a slow operation that failed: the failure may be due to a busy machine, and a
 * process may run for months. Repeated failures are retried less and less often, so that a damaged
 * file costs next to nothing.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_PAUSE_PRIV_H
#define SAFESCOPED_NAMES_PAUSE_PRIV_H

#include <stdint.h>

#include "base/retry.h"

/* The first pause, and the longest; each one is twice as long as the last. */
#define NAMES_PAUSE_NS	   60000000000ULL
#define NAMES_PAUSE_MAX_NS 3600000000000ULL
/* After this many failures in close succession, success is not expected any more. */
#define NAMES_PAUSE_LASTING 3

/* No pause if zeroed. */
struct names_pause {
	struct retry retry;
	uint32_t n; /* failures in close succession */
	int err;
};

/* `err`: the current failure. */
void names_pause__begin(struct names_pause *pause, uint64_t now, int err);
/* It succeeded: forget earlier failures. */
void names_pause__end(struct names_pause *pause);
/* 0: it may be tried. -EBUSY: later there may be an answer. Any other error: there is likely to be
 * none. */
int names_pause__now(const struct names_pause *pause, uint64_t now);

#endif

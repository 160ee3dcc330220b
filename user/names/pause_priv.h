/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When to try again what failed and took long: it may have been the machine's fault, and a process
 * may run for months. What goes on to fail is tried less and less often, so that a file that
 * somebody damaged costs next to nothing.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_PAUSE_PRIV_H
#define SAFESCOPED_NAMES_PAUSE_PRIV_H

#include <stdint.h>

#include "base/retry.h"

/* The first pause; each one is twice as long as the last, up to this. */
#define NAMES_PAUSE_NS	   60000000000ULL
#define NAMES_PAUSE_MAX_NS 3600000000000ULL
/* With so many failures soon after each other there is no reason to expect anything better. */
#define NAMES_PAUSE_LASTING 3

/* Zeroed there is none. */
struct names_pause {
	struct retry retry;
	uint32_t n; /* how many there were soon after each other */
	int err;
};

/* `err`: of what failed now. */
void names_pause__begin(struct names_pause *pause, uint64_t now, int err);
/* There was an answer: what failed before counts no more. */
void names_pause__end(struct names_pause *pause);
/* 0: it is over. -EBUSY: later there may be an answer. Any other: there is likely to be none. */
int names_pause__now(const struct names_pause *pause, uint64_t now);

#endif

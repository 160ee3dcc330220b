/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line that tells on a terminal how the session goes. Private to the cli room. */
#ifndef SAFESCOPED_CLI_PROGRESS_H
#define SAFESCOPED_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown;	/* standard error is a terminal and nobody said -q */
	bool on_screen; /* there is a line to wipe */
	uint64_t last_ns;
};

void progress__init(struct progress *p, bool quiet);
/* Draws at most twice a second. duration_ns 0: no end is set. */
void progress__update(struct progress *p, uint64_t now_ns, uint64_t elapsed_ns,
		      uint64_t duration_ns, uint64_t samples, uint64_t probe_hits, uint64_t lost);
/* The same for a log that is read: bytes so far, and of what there is so far. */
void progress__bytes(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total);
/* True if an update now would draw: what it shows need not be read otherwise. */
bool progress__due(const struct progress *p, uint64_t now_ns);
void progress__end(struct progress *p);

#endif

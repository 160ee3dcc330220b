/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member's profile lacks. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_MISSING_PRIV_H
#define SAFESCOPED_SESSION_MISSING_PRIV_H

#include <stdbool.h>

#include "kernel/kernel.h"
#include "target/target.h"

struct member;
struct session;

/* What there was no room for: what its user was refused, mappings without unwind rows, mappings
 * without names. */
struct missing_room {
	struct kernel_refused user;
	struct kernel_left_out rows;
	struct target_left_out files;
};

/* Notes in the timeline which probes, names and stacks the process's profile lacks, and why. */
void missing__note(struct session *s, const struct member *m);
/* Of one that is ready, or has ended before that: whether calls may be missing at its start. */
void missing__note_start(struct session *s, struct member *m);
/* Whether they may be, at a cut: of one that is not ready nobody knows it yet. */
bool missing__calls(const struct member *m);
/*
 * The same of what there was no room for: mappings lack their names and rows in each window,
 * threads and calls were refused since the last cut, or since it joined. At a cut, of the window
 * that ends; `whole`: once the member has ended, or the session, before it is detached.
 */
void missing__note_refused(struct session *s, struct member *m, bool whole);
/* Its part that needs no kernel. */
void missing__note_room(struct session *s, struct member *m, const struct missing_room *now,
			bool whole);

#endif

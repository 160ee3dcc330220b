/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member's profile lacks. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_MISSING_PRIV_H
#define SAFESCOPED_SESSION_MISSING_PRIV_H

#include <stdbool.h>

#include "kernel/kernel.h"
#include "target/target.h"

struct member;
struct session;

/* What was left out for lack of room: threads and calls refused to its user, mappings without
 * unwind rows, mappings without names. */
struct missing_room {
	struct kernel_refused user;
	struct kernel_left_out rows;
	struct target_left_out files;
};

/* Records in the timeline which probes, names and stacks the process's profile lacks, and why. */
void missing__note(struct session *s, const struct member *m);
/* For a member that is ready, or has ended before: records whether calls may be missing at its
 * start. */
void missing__note_start(struct session *s, struct member *m);
/* True if calls may be missing, at a cut; for a member that is not ready this is not known yet. */
bool missing__calls(const struct member *m);
/*
 * Records what was left out for lack of room: in each window, mappings without names and rows, and
 * threads and calls refused since the last cut or since it joined. Called at a cut for the window
 * that ends; with `whole` once the member or the session has ended, before it is detached.
 */
void missing__note_refused(struct session *s, struct member *m, bool whole);
/*
 * Records why the symbols of a member's executable could not be downloaded: for the window that
 * ends, or with `whole` once the member or the session has ended.
 */
void missing__note_download(struct session *s, const struct member *m, bool whole);
/* The same for all members; with `whole` after the last wait for downloads. */
void missing__note_downloads(struct session *s, bool whole);
/* The part of missing__note_refused() that needs no kernel. */
void missing__note_room(struct session *s, struct member *m, const struct missing_room *now,
			bool whole);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_snaps: the snapshots of processes as they joined. A session reads them some time after the
 * records that are taken next, so a cut may come in between at which some of the threads did not
 * exist yet. Shared by the files of this room only.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_SNAPS_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_SNAPS_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "intake/tap.h"

struct ahead_room;
struct intake;

/* The threads of a process as it joined; it came after this many records and targets. */
struct snap {
	pid_t pid;
	uint64_t at_ns, n_records, n_targets;
	struct snapshot threads;
	uint64_t *born_ns; /* by thread; 0: before all records */
};

struct ahead_snaps {
	struct snap *v;
	size_t n, cap, taken;
};

void ahead_snaps__free(struct ahead_snaps *snaps);
/* Keeps a snapshot; the caller fills in born_ns. *ret_snap NULL: it is not kept. -ENOMEM. */
int ahead_snaps__add(struct ahead_snaps *snaps, struct ahead_room *room,
		     const struct intake_input *input, struct snap **ret_snap);
/* Takes the record of a thread's start, which an already read snapshot may have seen. */
void ahead_snaps__birth(struct ahead_snaps *snaps, const struct wire_hdr *h);

/* Sets a thread's final name from the start, if the thread existed before all records. */
void ahead_snaps__name(struct ahead_snaps *snaps, pid_t pid, pid_t tid, const char comm[16]);

/* Gives the intake the snapshots after record n_records of the newest target, since the first look
 * at a process must be known from its first window on. -ENOMEM. */
int ahead_snaps__give(const struct ahead_snaps *snaps, struct intake *in, uint64_t cut_ns,
		      uint64_t n_records, uint64_t n_targets);
/* Takes the next snapshot for the intake, without the threads that began after the cut at cut_ns.
 * -ENOENT: it was not kept; -ENOMEM. */
int ahead_snaps__take(struct ahead_snaps *snaps, struct intake *in,
		      const struct intake_input *input, uint64_t cut_ns);
/* Those threads are taken with the records of their starts. -ENOMEM. */
int ahead_snaps__take_born(const struct ahead_snaps *snaps, struct intake *in,
			   const struct wire_hdr *h);

#endif

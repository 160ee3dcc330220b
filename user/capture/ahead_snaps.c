/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ahead_snaps_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_room_priv.h"
#include "intake/intake.h"

#define MAX_SNAPSHOTS ((size_t)1 << 16)

static void snap_free(struct snap *snap)
{
	free(snap->threads.threads);
	free(snap->born_ns);
}

void ahead_snaps__free(struct ahead_snaps *snaps)
{
	for (size_t i = 0; i < snaps->n; i++)
		snap_free(&snaps->v[i]);
	free(snaps->v);
	*snaps = (struct ahead_snaps){0};
}

int ahead_snaps__add(struct ahead_snaps *snaps, struct ahead_room *room,
		     const struct intake_input *input, struct snap **ret_snap)
{
	size_t n = input->snapshot->n;
	struct snap snap = {.pid = input->pid, .at_ns = input->a, .threads.n = n};
	int err =
		AHEAD_RESERVE(room, AHEAD_CUTS, snaps->v, snaps->cap, snaps->n + 1, MAX_SNAPSHOTS);

	*ret_snap = NULL;
	if (err)
		return err == -E2BIG ? 0 : err;
	snap.threads.threads = calloc(n, sizeof(*snap.threads.threads));
	snap.born_ns = calloc(n, sizeof(*snap.born_ns));
	if (!snap.threads.threads || !snap.born_ns) {
		snap_free(&snap);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		snap.threads.threads[i] = input->snapshot->threads[i];
	snaps->v[snaps->n] = snap;
	*ret_snap = &snaps->v[snaps->n++];
	return 0;
}

/* The thread's index; SIZE_MAX: not found. */
static size_t find(const struct snap *snap, pid_t tid)
{
	for (size_t i = 0; i < snap->threads.n; i++)
		if (snap->threads.threads[i].tid == tid)
			return i;
	return SIZE_MAX;
}

/* The last snapshot of the process that was read after h's time; SIZE_MAX: none. */
static size_t after(const struct ahead_snaps *snaps, size_t n, const struct wire_hdr *h)
{
	while (n-- > 0)
		if (snaps->v[n].pid == (pid_t)h->tgid && snaps->v[n].at_ns >= h->ns)
			return n;
	return SIZE_MAX;
}

void ahead_snaps__birth(struct ahead_snaps *snaps, const struct wire_hdr *h)
{
	size_t at = after(snaps, snaps->n, h);
	size_t i = at == SIZE_MAX ? SIZE_MAX : find(&snaps->v[at], (pid_t)h->tid);

	if (i != SIZE_MAX)
		snaps->v[at].born_ns[i] = h->ns;
}

void ahead_snaps__name(struct ahead_snaps *snaps, pid_t pid, pid_t tid, const char comm[16])
{
	size_t n = snaps->n, i;
	struct snap *snap;

	while (n > 0 && snaps->v[n - 1].pid != pid)
		n--;
	if (!n || !comm[0])
		return;
	snap = &snaps->v[n - 1];
	i = find(snap, tid);
	if (i != SIZE_MAX && !snap->born_ns[i])
		memcpy(snap->threads.threads[i].comm, comm, sizeof(snap->threads.threads[i].comm));
}

static int give_thread(const struct snap *snap, size_t i, struct intake *in)
{
	const struct snapshot one = {&snap->threads.threads[i], 1};
	int err = intake__snapshot(in, snap->pid, &one, snap->at_ns, false);

	return err == -ENOMEM ? err : 0;
}

static int give(const struct snap *snap, struct intake *in, uint64_t cut_ns)
{
	const struct snapshot none = {0};
	int err = intake__snapshot(in, snap->pid, &none, snap->at_ns, false);

	if (err)
		return err == -ENOMEM ? err : 0;
	for (size_t i = 0; !err && i < snap->threads.n; i++)
		if (snap->born_ns[i] <= cut_ns)
			err = give_thread(snap, i, in);
	return err;
}

int ahead_snaps__give(const struct ahead_snaps *snaps, struct intake *in, uint64_t cut_ns,
		      uint64_t n_records, uint64_t n_targets)
{
	int err = 0;

	for (size_t i = 0; !err && i < snaps->n; i++)
		if (snaps->v[i].n_records >= n_records && snaps->v[i].n_targets == n_targets)
			err = give(&snaps->v[i], in, cut_ns);
	return err;
}

int ahead_snaps__take(struct ahead_snaps *snaps, struct intake *in,
		      const struct intake_input *input, uint64_t cut_ns)
{
	const struct snap *snap;

	if (input->n || snaps->taken == snaps->n)
		return -ENOENT;
	snap = &snaps->v[snaps->taken];
	if (snap->pid != input->pid || snap->at_ns != input->a ||
	    snap->threads.n != input->snapshot->n)
		return -ENOENT;
	snaps->taken++;
	return give(snap, in, cut_ns);
}

int ahead_snaps__take_born(const struct ahead_snaps *snaps, struct intake *in,
			   const struct wire_hdr *h)
{
	size_t at = after(snaps, snaps->taken, h);
	size_t i = at == SIZE_MAX ? SIZE_MAX : find(&snaps->v[at], (pid_t)h->tid);

	return i != SIZE_MAX && snaps->v[at].born_ns[i] == h->ns ? give_thread(&snaps->v[at], i, in)
								 : 0;
}

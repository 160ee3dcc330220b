/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_gaps: what a damaged capture lacks of each thread. A thread runs from one off-CPU interval
 * to the next: without the records of a block it would seem to have run all the time. As nothing is
 * known of that time, it becomes an off-CPU interval of which nothing else is known, as on the
 * kernel side when the ring is full (lost.bpf.h). It begins with the thread's last record before
 * the block: an interval is recorded at its end, so one that ends in the block may begin anywhere
 * after that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "replay_priv.h"

#define MAX_THREADS 65536

struct gap_thread {
	UT_hash_handle hh;
	pid_t tid;
	uint64_t n_gaps;  /* gaps in the capture before the thread's latest record */
	uint64_t last_ns; /* the time of that record; at first the session's start */
};

static int find(struct replay *r, pid_t tid, struct gap_thread **ret_thread)
{
	struct gap_thread *th;

	HASH_FIND(hh, r->gaps.threads, &tid, sizeof(tid), th);
	*ret_thread = th;
	if (th || HASH_COUNT(r->gaps.threads) >= MAX_THREADS)
		return 0;
	th = calloc(1, sizeof(*th));
	if (!th)
		return -ENOMEM;
	th->tid = tid;
	th->last_ns = r->header.opts.start_ns;
	*ret_thread = th;
	return HASH_INSERT(r->gaps.threads, tid, sizeof(th->tid), th);
}

/* The first time at which the record shows the thread on the CPU; 0: it does not show it there. */
static uint64_t running_at(const struct intake_input *in)
{
	const struct wire_hdr *h = in->data;
	struct wire_off off;

	if (h->type == WIRE_SAMPLE || h->type == WIRE_THREAD_EXIT || h->type == WIRE_EXEC)
		return h->ns;
	if (h->type != WIRE_OFF || in->size < sizeof(off))
		return 0;
	memcpy(&off, in->data, sizeof(off));
	return off.out_ns;
}

static int fill(struct replay *r, const struct wire_hdr *h, uint64_t from, uint64_t to)
{
	struct wire_off off = {.h = *h};

	off.h.type = WIRE_OFF;
	off.h.size = sizeof(off);
	off.h.ns = to;
	off.out_ns = from;
	off.prev_state = 1; /* TASK_INTERRUPTIBLE */
	off.syscall = WIRE_NO_SYSCALL;
	off.rts.where = WIRE_WHERE_UNKNOWN;
	/* its state must not be guessed from those of its neighbours */
	off.rts.flags = WIRE_RTS_NO_ENTRY;
	return intake__record(r->in, &off, sizeof(off));
}

void replay__note_lost(struct replay *r, uint64_t blocks)
{
	if (blocks <= r->gaps.blocks)
		return;
	r->gaps.blocks = blocks;
	r->gaps.n++;
}

/* Takes a record that shows the thread running at `to`, and for all it knows until h->ns. */
static int runs(struct replay *r, struct gap_thread *th, const struct wire_hdr *h, uint64_t to)
{
	bool after_gap = th->n_gaps != r->gaps.n;
	uint64_t from = th->last_ns;
	int err;

	th->n_gaps = r->gaps.n;
	th->last_ns = MAX(th->last_ns, h->ns);
	if (!after_gap || to <= from)
		return 0;
	/* a record that the intake refuses leaves the thread as it was */
	err = fill(r, h, from, to);
	return err == -ENOMEM ? err : 0;
}

int replay__fill_gap(struct replay *r, const struct intake_input *in)
{
	const struct wire_hdr *h = in->data;
	uint64_t to = running_at(in);
	struct gap_thread *th;
	int err = find(r, (pid_t)h->tid, &th);

	if (err || !th)
		return err;
	if (h->type == WIRE_THREAD_NEW) {
		th->n_gaps = r->gaps.n;
		th->last_ns = h->ns;
		return 0;
	}
	if (to)
		return runs(r, th, h, to);
	if (th->n_gaps == r->gaps.n)
		th->last_ns = MAX(th->last_ns, h->ns);
	return 0;
}

int replay__fill_gap_until_off(struct replay *r, const struct intake_input *in)
{
	struct wire_thread thread;
	struct gap_thread *th;
	struct wire_hdr h;
	int err;

	memcpy(&thread, in->data, sizeof(thread));
	if (!r->gaps.n || !thread.off_since_ns || thread.off_since_ns > MAX_TIME)
		return 0;
	h = (struct wire_hdr){
		.ns = thread.off_since_ns, .tgid = thread.tgid, .tid = (uint32_t)in->tid};
	err = find(r, in->tid, &th);
	return err || !th ? err : runs(r, th, &h, h.ns);
}

void replay__free_gaps(struct replay *r)
{
	HASH_FREE(r->gaps.threads);
}

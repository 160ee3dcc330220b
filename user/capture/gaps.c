/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gaps_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "intake/tap.h"

#define MAX_THREADS 65536

struct gap_thread {
	UT_hash_handle hh;
	pid_t tid;
	uint64_t n_gaps;  /* gaps in the capture before the thread's latest record */
	uint64_t last_ns; /* the time of that record; at first the session's start */
};

void gaps__free(struct gaps *gaps)
{
	HASH_FREE(gaps->threads);
}

void gaps__lost(struct gaps *gaps, uint64_t blocks)
{
	if (blocks <= gaps->blocks)
		return;
	gaps->blocks = blocks;
	gaps->n++;
}

static int find(struct gaps *gaps, pid_t tid, struct gap_thread **ret_thread)
{
	struct gap_thread *th;

	HASH_FIND(hh, gaps->threads, &tid, sizeof(tid), th);
	*ret_thread = th;
	if (th || HASH_COUNT(gaps->threads) >= MAX_THREADS)
		return 0;
	th = calloc(1, sizeof(*th));
	if (!th)
		return -ENOMEM;
	th->tid = tid;
	th->last_ns = gaps->start_ns;
	*ret_thread = th;
	return HASH_INSERT(gaps->threads, tid, sizeof(th->tid), th);
}

/* The first time at which the record shows the thread on the CPU; 0: it does not show it there. */
static uint64_t running_at(const struct intake_input *input)
{
	const struct wire_hdr *h = input->data;
	struct wire_off off;

	if (h->type == WIRE_SAMPLE || h->type == WIRE_THREAD_EXIT || h->type == WIRE_EXEC)
		return h->ns;
	if (h->type != WIRE_OFF || input->size < sizeof(off))
		return 0;
	memcpy(&off, input->data, sizeof(off));
	return off.out_ns;
}

static void fill(const struct wire_hdr *h, uint64_t from, uint64_t to, struct wire_off *ret_off)
{
	*ret_off = (struct wire_off){.h = *h};
	ret_off->h.type = WIRE_OFF;
	ret_off->h.size = sizeof(*ret_off);
	ret_off->h.ns = to;
	ret_off->out_ns = from;
	ret_off->prev_state = 1; /* TASK_INTERRUPTIBLE */
	ret_off->syscall = WIRE_NO_SYSCALL;
	ret_off->rts.where = WIRE_WHERE_UNKNOWN;
	/* its state must not be guessed from those of its neighbours */
	ret_off->rts.flags = WIRE_RTS_NO_ENTRY;
}

/* Takes a record that shows the thread running at `to`, and for all it knows until h->ns. */
static int runs(struct gaps *gaps, struct gap_thread *th, const struct wire_hdr *h, uint64_t to,
		struct wire_off *ret_off)
{
	bool after_gap = th->n_gaps != gaps->n;
	uint64_t from = th->last_ns;

	th->n_gaps = gaps->n;
	th->last_ns = MAX(th->last_ns, h->ns);
	if (!after_gap || to <= from)
		return 0;
	fill(h, from, to, ret_off);
	return 1;
}

int gaps__record(struct gaps *gaps, const struct intake_input *input, struct wire_off *ret_off)
{
	const struct wire_hdr *h = input->data;
	uint64_t to = running_at(input);
	struct gap_thread *th;
	int err = find(gaps, (pid_t)h->tid, &th);

	if (err || !th)
		return err;
	if (h->type == WIRE_THREAD_NEW) {
		th->n_gaps = gaps->n;
		th->last_ns = h->ns;
		return 0;
	}
	if (to)
		return runs(gaps, th, h, to, ret_off);
	if (th->n_gaps == gaps->n)
		th->last_ns = MAX(th->last_ns, h->ns);
	return 0;
}

int gaps__state(struct gaps *gaps, pid_t tid, const struct wire_thread *thread,
		struct wire_off *ret_off)
{
	const struct wire_hdr h = {
		.ns = thread->off_since_ns, .tgid = thread->tgid, .tid = (uint32_t)tid};
	struct gap_thread *th;
	int err;

	if (!gaps->n || !thread->off_since_ns || thread->off_since_ns > MAX_TIME)
		return 0;
	err = find(gaps, tid, &th);
	return err || !th ? err : runs(gaps, th, &h, h.ns, ret_off);
}

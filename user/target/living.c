/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * living: which Haskell threads the process has, read from its generations' lists in a killable
 * child. A thread that has ended stays in them until the collector finds that nobody holds it, and
 * its what_next shows that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "process/mem.h"
#include "target_priv.h"

#include "mem.bpf.h"
#include "stg.bpf.h"
#include "rts.bpf.h"
#include "heap.bpf.h"

/* More are not created but by `+RTS -G`. */
#define MAX_GENERATIONS 8
/* The program runs on: the collector moves threads, and a list that is read meanwhile breaks off. A
 * thread that one reading has missed, since it went to another list, is in the next one. */
#define READINGS      2
#define MOST_READINGS 8
#define PAUSE_NS      2000000
/* The members that are read lie in front of this (scripts/ghc-layouts.json), profiled or not. */
#define TSO_HEAD 96
/* ThreadComplete, ThreadKilled: rts/include/rts/Constants.h, 9.0 to 9.14 */
#define WHAT_NEXT_KILLED   3
#define WHAT_NEXT_COMPLETE 4

struct living_mem {
	struct mem mem; /* first: the walker's handle */
	pid_t pid;
};

struct living_job {
	struct living_mem mem;
	struct wire_layout layout;
	uint64_t cap;
	uint64_t info; /* of TSOs; 0: none has been seen */
};

#define OUT_SIZE                                                                                   \
	(sizeof(struct target_living) + TARGET_LIVING_MAX * sizeof(struct target_living_thread))

static int read_mem(struct mem *mem, void *dst, u32 size, u64 addr)
{
	return mem__read(((struct living_mem *)mem)->pid, addr, dst, size);
}

/* ── in the child ────────────────────────────────────────────────────────────────────────── */

static uint64_t get(const unsigned char *tso, size_t at, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, tso + at, size);
	return v;
}

static bool is_tso(struct living_job *job, uint64_t at, uint64_t info)
{
	if (info != job->info && stg_object_type(&job->mem.mem, at) == STG_TSO)
		job->info = info;
	return info == job->info;
}

/* *ret_end: the closure that ends the list, which is the same for all of them. */
static int read_list(struct living_job *job, uint64_t at, struct target_living *out,
		     uint64_t *ret_end)
{
	const struct wire_layout *l = &job->layout;
	unsigned char tso[TSO_HEAD] = {0};

	for (;;) {
		bool short_read = mem__read(job->mem.pid, at, tso, sizeof(tso)) < 0;
		uint64_t what_next;

		/* what ends the list is smaller, and may be the last of its mapping */
		if (short_read && mem__read(job->mem.pid, at, tso, 8) < 0)
			return -EAGAIN;
		if (!is_tso(job, at, get(tso, 0, 8)))
			break;
		if (short_read)
			return -EAGAIN;
		out->n_read++;
		what_next = get(tso, l->tso_stackobj + 8U, 2);
		if (what_next != WHAT_NEXT_KILLED && what_next != WHAT_NEXT_COMPLETE) {
			if (out->n == TARGET_LIVING_MAX)
				return -E2BIG;
			out->v[out->n++] = (struct target_living_thread){
				.id = get(tso, l->tso_id, l->tso_id_size),
				.why_blocked = (uint16_t)get(tso, l->tso_why_blocked, 2)};
		}
		at = get(tso, l->tso_stackobj - 8U, 8);
	}
	*ret_end = at;
	return 0;
}

/* From the youngest on: a thread that the collector moves meanwhile goes to an older one. */
static int read_all(struct living_job *job, struct target_living *out)
{
	uint64_t gen = heap_youngest(&job->mem.mem, &job->layout, job->cap), end = 0;

	for (int i = 0; gen && i < MAX_GENERATIONS; i++) {
		uint64_t at, to, list_end;
		int err;

		if (mem__read_u64(job->mem.pid, gen + HEAP_GEN_THREADS, &at) < 0)
			return -EAGAIN;
		err = read_list(job, at, out, &list_end);
		if (err)
			return err;
		if (end && list_end != end)
			return -EAGAIN;
		end = list_end;
		if (mem__read_u64(job->mem.pid, gen + HEAP_GEN_TO, &to) < 0)
			return -EAGAIN;
		if (to == gen)
			return 0;
		gen = to;
	}
	return -EFAULT;
}

static int run(void *ctx, void *shared)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct living_job *job = ctx;
	struct target_living *out = shared;
	int whole = 0, err = 0;

	out->began_ns = time__monotonic_ns();
	for (int i = 0; whole < READINGS && i < MOST_READINGS; i++) {
		uint64_t before = out->n;

		if (i)
			nanosleep(&pause, NULL);
		err = read_all(job, out);
		if (err == -E2BIG)
			return err;
		if (err)
			out->n = before;
		else
			whole++;
	}
	out->ended_ns = time__monotonic_ns();
	return whole == READINGS ? 0 : err ? err : -EAGAIN;
}

/* ── outside ─────────────────────────────────────────────────────────────────────────────── */

static bool fits(const struct wire_layout *l)
{
	return l->tso_stackobj >= 8 && l->tso_stackobj + 10U <= TSO_HEAD &&
	       l->tso_why_blocked + 2U <= TSO_HEAD && l->tso_id_size <= 8 &&
	       l->tso_id + (unsigned)l->tso_id_size <= TSO_HEAD;
}

int target__start_living(struct target *t, int timeout_ms)
{
	struct living_job job = {
		.mem = {.mem = {.read = read_mem}, .pid = t->info.pid},
		.layout = t->info.wire.layout,
		.cap = t->check.caps[0],
	};

	if (!t->info.layout_checked)
		return -EAGAIN;
	if (!heap_known(&job.layout) || !t->check.n_caps || !fits(&job.layout))
		return -ENOTSUP;
	target__cancel(t);
	return guard__start(t->info.pid, GUARD_MEMORY, timeout_ms, run, &job, OUT_SIZE, &t->living);
}

static int by_id(const void *pa, const void *pb)
{
	const struct target_living_thread *a = pa, *b = pb;

	return CMP(a->id, b->id);
}

/* The child read hostile memory: what it wrote is bounded once more. */
static int copy_out(const struct target_living *out, struct target_living **ret_living)
{
	size_t n = MIN(out->n, (uint64_t)TARGET_LIVING_MAX), kept = 0;
	struct target_living *living = malloc(sizeof(*living) + n * sizeof(living->v[0]));

	if (!living)
		return -ENOMEM;
	living->began_ns = out->began_ns;
	living->n_read = out->n_read;
	living->ended_ns = MAX(out->began_ns, out->ended_ns);
	memcpy(living->v, out->v, n * sizeof(living->v[0]));
	array__sort(living->v, n, sizeof(living->v[0]), by_id);
	for (size_t i = 0; i < n; i++) {
		kept -= kept && living->v[i].id == living->v[kept - 1].id;
		living->v[kept++] = living->v[i];
	}
	living->n = kept;
	*ret_living = living;
	return 0;
}

int target__take_living(struct target *t, struct target_living **ret_living)
{
	void *out;
	int err;

	if (!t->living)
		return -EINVAL;
	err = guard__take(t->living, &out);
	if (err == -EINPROGRESS)
		return err;
	t->living = NULL;
	if (err)
		return err;
	err = copy_out(out, ret_living);
	mem__guard_free(out, OUT_SIZE);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * living: which Haskell threads the process has, read from its generations' lists in a killable
 * child. A thread that has ended stays in a list until the collector finds it unreachable; its
 * what_next shows that it has ended.
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

/* Only `+RTS -G` creates more. */
#define MAX_GENERATIONS 8
/* A reading torn by a collection is repeated, up to this many times, after this pause. */
#define MOST_READINGS 16
#define PAUSE_NS      2000000
/* A reading that was not torn may still have been made while a collection was resurrecting threads,
 * so the youngest generation's are read some more times, unless there are too many. */
#define PAUSE_QUIET_NS 300000
#define MOST_AGAIN     4096
/* Fraction of the time limit available for readings: a child that is killed counts as hung. */
#define TIME_PART 2
/* The clock is read once per this many threads. */
#define CLOCK_EVERY 1024
/* Limit on waits for a running collection, during which nothing is read. */
#define MOST_WAITS 32
/* The fields that are read are in the first bytes of a TSO (scripts/ghc-layouts.json), profiled or
 * not. */
#define TSO_HEAD 96
/* TSOs in the same aligned block of this size are read at once. */
#define AT_ONCE 16384
/*
 * rts/include/rts/storage/GC.h, generation: offset of the number of finished collections and, from
 * its end, of old_blocks and old_threads. The size depends on the runtime's way and release;
 * scripts/ghc-layout.c compares it.
 */
#define GEN_COLLECTIONS	     128
#define GEN_OLD_BLOCKS_BACK  80
#define GEN_OLD_THREADS_BACK 16
#define GEN_SIZE	     232
#define GEN_SIZE_THR	     384 /* up to 9.4 */
#define GEN_SIZE_THR_LATER   368
#define GEN_SIZE_MOST	     512

struct living_mem {
	struct mem mem; /* first: the walker's handle */
	pid_t pid;
};

struct living_job {
	struct living_mem mem;
	struct wire_layout layout;
	bool threaded;
	uint64_t cap;
	uint64_t gens[MAX_GENERATIONS]; /* youngest first */
	unsigned n_gens;
	uint64_t gen_size;
	/* per list: its head, from which on it was read, and the number of finished collections
	 * then */
	uint64_t heads[MAX_GENERATIONS];
	uint32_t over[MAX_GENERATIONS];
	uint64_t info; /* info pointer of TSOs; 0: none has been seen */
	uint64_t end;  /* the closure that ends all lists; 0: no list has been read to its end */
	uint64_t until_ns;     /* no reading continues after this time */
	uint64_t n_read;       /* threads read so far, in all readings */
	uint64_t side_by_side; /* address of the contents of bytes[]; 0: empty */
	unsigned char bytes[AT_ONCE];
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

/* The closure that ends a list is smaller than a TSO and may be the last one in its mapping:
 * *ret_short is then set, and only its first word is read. */
static int read_tso(struct living_job *job, uint64_t at, unsigned char *ret_tso, bool *ret_short)
{
	uint64_t from = at - at % AT_ONCE;

	*ret_short = false;
	if (at - from <= AT_ONCE - TSO_HEAD) {
		if (job->side_by_side != from) {
			job->side_by_side = 0;
			if (!mem__read(job->mem.pid, from, job->bytes, AT_ONCE))
				job->side_by_side = from;
		}
		if (job->side_by_side) {
			memcpy(ret_tso, job->bytes + (at - from), TSO_HEAD);
			return 0;
		}
	}
	*ret_short = mem__read(job->mem.pid, at, ret_tso, TSO_HEAD) < 0;
	return *ret_short ? mem__read(job->mem.pid, at, ret_tso, 8) : 0;
}

/* Reads up to the end of the list (until 0) or up to `until`; -EAGAIN if that is not in the
 * list. */
static int read_list(struct living_job *job, uint64_t at, uint64_t until, struct target_living *out)
{
	const struct wire_layout *l = &job->layout;
	unsigned char tso[TSO_HEAD] = {0};
	uint64_t seen = 0;

	job->side_by_side = 0;
	for (uint64_t n = 1; !until || at != until; n++) {
		bool short_read;

		if (read_tso(job, at, tso, &short_read) < 0)
			return -EAGAIN;
		if (!is_tso(job, at, get(tso, 0, 8)))
			break;
		if (short_read)
			return -EAGAIN;
		job->n_read++;
		if (!wire_tso_has_ended(get(tso, l->tso_stackobj + 8U, 2))) {
			if (out->n == TARGET_LIVING_MAX)
				return -E2BIG;
			out->v[out->n++] = (struct target_living_thread){
				.id = get(tso, l->tso_id, l->tso_id_size),
				.why_blocked = (uint16_t)get(tso, l->tso_why_blocked, 2)};
		}
		if (n % CLOCK_EVERY == 0 && time__monotonic_ns() > job->until_ns)
			return -EBUSY;
		/* a torn list may be circular: the threads whose number is a power of two are
		 * remembered, one at a time */
		if (!(n & (n - 1)))
			seen = at;
		at = get(tso, l->tso_stackobj - 8U, 8);
		if (at == seen)
			return -EAGAIN;
	}
	if (until)
		return at == until ? 0 : -EAGAIN;
	if (job->end && at != job->end)
		return -EAGAIN;
	job->end = at;
	return 0;
}

static uint64_t gen_size(const struct living_job *job)
{
	if (job->n_gens > 1)
		return job->gens[1] - job->gens[0];
	if (!job->threaded)
		return GEN_SIZE;
	/* releases with labels in TSOs have the smaller spin lock */
	return job->layout.tso_label ? GEN_SIZE_THR_LATER : GEN_SIZE_THR;
}

/* The generations are an array. */
static int find_generations(struct living_job *job)
{
	uint64_t gen = heap_youngest(&job->mem.mem, &job->layout, job->cap), to;

	for (job->n_gens = 0; gen && job->n_gens < MAX_GENERATIONS; gen = to) {
		job->gens[job->n_gens++] = gen;
		if (mem__read_u64(job->mem.pid, gen + HEAP_GEN_TO, &to) < 0)
			return -EFAULT;
		if (to != gen)
			continue;
		job->gen_size = gen_size(job);
		for (unsigned i = 1; i < job->n_gens; i++)
			if (job->gens[i] != job->gens[i - 1] + job->gen_size)
				return -EFAULT;
		return job->gen_size < GEN_SIZE || job->gen_size > GEN_SIZE_MOST ? -EFAULT : 0;
	}
	return -EFAULT;
}

/*
 * Counts the finished collections of a generation, which include those of older ones. A collection
 * takes away the blocks and thread lists of its generations when it starts (rts/sm/GC.c,
 * prepare_collected_gen). The blocks stay in old_blocks until all live threads are back in a list,
 * and only then is the collection counted (GarbageCollect). -EAGAIN: one is running; otherwise
 * *ret_over changes with each collection.
 */
static int count_collections(const struct living_job *job, unsigned no, uint32_t *ret_over)
{
	uint32_t over = 0, n;

	for (unsigned i = no; i < job->n_gens; i++) {
		uint64_t gen = job->gens[i], old;

		if (mem__read_u64(job->mem.pid, gen + job->gen_size - GEN_OLD_BLOCKS_BACK, &old) <
			    0 ||
		    mem__read_u32(job->mem.pid, gen + GEN_COLLECTIONS, &n) < 0 || old)
			return -EAGAIN;
		over += n;
	}
	*ret_over = over;
	return 0;
}

/* True if the first collection is running: it finds no blocks, but threads. */
static bool is_first(const struct living_job *job)
{
	uint64_t old;

	return mem__read_u64(job->mem.pid, job->gens[0] + job->gen_size - GEN_OLD_THREADS_BACK,
			     &old) < 0 ||
	       old != job->end;
}

/* Reads what was added to the list since the last reading; at first, all of it. */
static int read_older(struct living_job *job, unsigned no, struct target_living *out)
{
	uint64_t head, n = out->n;
	int err = mem__read_u64(job->mem.pid, job->gens[no] + HEAP_GEN_THREADS, &head) < 0
			  ? -EAGAIN
			  : read_list(job, head, job->heads[no], out);

	if (err)
		out->n = n;
	else
		job->heads[no] = head;
	return err;
}

/* True if threads of the older generations may have moved since they were read. */
static bool is_torn(const struct living_job *job)
{
	uint32_t over;

	for (unsigned no = 1; no < job->n_gens; no++)
		if (count_collections(job, no, &over) < 0 || over != job->over[no])
			return true;
	return false;
}

/* Reads what was added to the older generations' lists, and the youngest's list, while no
 * collection moves any threads. */
static int read_youngest(struct living_job *job, struct target_living *out)
{
	struct target_living_quiet quiet = {.start_ns = time__monotonic_ns()};
	uint32_t before, after;
	uint64_t head, n;
	int err = count_collections(job, 0, &before);

	for (unsigned no = job->n_gens; !err && --no;)
		err = read_older(job, no, out);
	n = out->n;
	if (!err)
		err = mem__read_u64(job->mem.pid, job->gens[0] + HEAP_GEN_THREADS, &head) < 0
			      ? -EAGAIN
			      : read_list(job, head, 0, out);
	if (!err)
		err = count_collections(job, 0, &after);
	if (!err && (before != after || (!after && is_first(job)) || is_torn(job)))
		err = -EAGAIN;
	quiet.end_ns = time__monotonic_ns();
	if (err)
		out->n = n;
	else
		out->quiet[out->n_quiet++] = quiet;
	return err;
}

/*
 * Reads the older generations' lists. Threads that survive a collection of the youngest generation
 * are prepended to an older one's list (rts/sm/MarkWeak.c, tidyThreadList), whose rest does not
 * change: with tens of thousands of threads, that rest is not read again after each such
 * collection.
 */
static int read_all_older(struct living_job *job, struct target_living *out)
{
	int err = 0;

	out->began_ns = time__monotonic_ns();
	out->n = 0;
	job->end = 0;
	memset(job->heads, 0, sizeof(job->heads));
	for (unsigned no = job->n_gens; !err && --no;) {
		err = count_collections(job, no, &job->over[no]);
		if (!err)
			err = read_older(job, no, out);
	}
	return err;
}

/* -EAGAIN unless all were read at least once while no collection moved any threads. */
static int read_all(struct living_job *job, struct target_living *out)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS}, quiet = {.tv_nsec = PAUSE_QUIET_NS};
	int readings = 0, err = -EAGAIN;
	bool torn = true;

	for (int i = 0; i < MOST_WAITS && readings < MOST_READINGS; i++) {
		uint64_t before = job->n_read;

		if (i)
			nanosleep(&pause, NULL);
		err = torn ? read_all_older(job, out) : 0;
		if (!err)
			err = read_youngest(job, out);
		if (err != -EAGAIN || time__monotonic_ns() > job->until_ns)
			break;
		torn = is_torn(job);
		readings += job->n_read != before;
	}
	for (int i = 1; !err && i < TARGET_LIVING_QUIETS; i++) {
		uint64_t before = job->n_read, n = out->n;

		nanosleep(&quiet, NULL);
		torn = read_youngest(job, out) < 0 && is_torn(job);
		if (torn)
			out->n = n;
		if (torn || job->n_read - before > MOST_AGAIN)
			break;
	}
	return err;
}

static int run(void *ctx, void *shared)
{
	struct living_job *job = ctx;
	struct target_living *out = shared;
	int err = find_generations(job);

	if (err)
		return err;
	err = read_all(job, out);
	out->ended_ns = time__monotonic_ns();
	out->cpu_ns = time__cpu_ns();
	return err == -EAGAIN || err == -EBUSY ? 0 : err;
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
		.threaded = t->info.threaded,
		.cap = t->check.caps[0],
		.until_ns = time__monotonic_ns() + (uint64_t)timeout_ms * 1000000 / TIME_PART,
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

	return CMP(a->id, b->id) ?: CMP(a->why_blocked, b->why_blocked);
}

/* The child has read hostile memory, so its result is bounded once more. */
static int copy_out(const struct target_living *out, struct target_living **ret_living)
{
	size_t n = out->n_quiet ? MIN(out->n, (uint64_t)TARGET_LIVING_MAX) : 0, kept = 0;
	struct target_living *living = malloc(sizeof(*living) + n * sizeof(living->v[0]));

	if (!living)
		return -ENOMEM;
	living->began_ns = out->began_ns;
	living->ended_ns = MAX(out->began_ns, out->ended_ns);
	living->n_quiet = MIN(out->n_quiet, (uint64_t)TARGET_LIVING_QUIETS);
	memcpy(living->quiet, out->quiet, sizeof(living->quiet));
	living->cpu_ns = MIN(out->cpu_ns, living->ended_ns - living->began_ns);
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

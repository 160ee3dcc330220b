/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ahead: finds what is going on at the cuts of a replay in windows, and what comes after them. */
#include "ahead_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_known_priv.h"
#include "ahead_living_priv.h"
#include "ahead_room_priv.h"
#include "ahead_snaps_priv.h"
#include "ahead_states_priv.h"
#include "base/base.h"
#include "base/hash.h"
#include "gaps_priv.h"
#include "intake/tap.h"

/* Limits of what is kept; anything beyond is unknown, and counted. */
#define MAX_NEXT  ((size_t)1 << 20)
#define MAX_CUTS  ((size_t)1 << 22)
#define MAX_NAMES ((size_t)1 << 20)
#define MAX_LAST  ((size_t)1 << 20)

/* A record that cuts need: those at `from` or later and before `until`, its own time. */
struct next {
	uint64_t from, until, number;
	size_t size;
	unsigned char rec[];
};

/* The end of a thread's last record of each kind. */
struct track {
	UT_hash_handle hh;
	struct track_key {
		uint32_t tgid, tid; /* tid 0: the process */
	} key;
	uint64_t began_ns, off_ns, sample_ns;
	uint64_t tick_ns, gc_ns; /* of a process; gc_ns: when the last collection began to work */
	size_t n_targets;	 /* of a process: number of the last target with its pid */
	bool born;		 /* at began_ns */
	size_t name;		 /* of a thread that was born: index from 1 in `names`; 0: none */
	size_t last;		 /* as `name`, in `last` */
	bool called;
};

struct ahead {
	uint64_t first_ns, every_ns, end_ns;
	uint64_t n_records, n_targets, latest_ns;
	struct track *tracks;
	struct next **v; /* by `from` */
	size_t n, cap, given;
	struct next **open; /* those of v[…given) that are not over yet */
	size_t n_open;
	struct ahead_states states;
	struct ahead_snaps snaps;
	char (*names)[16]; /* of the threads that are born, in order */
	size_t n_names, names_cap, names_taken;
	struct wire_off_stack *last; /* of threads in safe calls, from the last snapshot */
	size_t n_last, last_cap;
	struct ahead_known known;
	struct ahead_room room;
	bool haskell;
	struct ahead_living living;
	struct gaps gaps;
	/* by cut: the number of the last record from before it that came after a record from beyond
	 * it, or after which counters from before it came; 0: none */
	uint64_t *late;
	size_t n_late, late_cap, late_at;
	uint64_t last_late;
};

int ahead__new(uint64_t first_ns, uint64_t every_ns, bool haskell, size_t max,
	       struct ahead **ret_ahead)
{
	struct ahead *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->first_ns = first_ns;
	a->gaps.start_ns = first_ns - every_ns;
	a->every_ns = every_ns;
	a->living.first_ns = first_ns;
	a->living.every_ns = every_ns;
	a->haskell = haskell;
	a->room.max = max;
	*ret_ahead = a;
	return 0;
}

void ahead__free(struct ahead *ahead)
{
	if (!ahead)
		return;
	for (size_t i = 0; i < ahead->n; i++)
		free(ahead->v[i]);
	free(ahead->v);
	free(ahead->open);
	ahead_states__free(&ahead->states);
	ahead_snaps__free(&ahead->snaps);
	free(ahead->names);
	free(ahead->last);
	free(ahead->late);
	ahead_known__free(&ahead->known);
	ahead_living__free(&ahead->living);
	HASH_FREE(ahead->tracks);
	gaps__free(&ahead->gaps);
	free(ahead);
}

uint64_t ahead__end(const struct ahead *ahead)
{
	return ahead->end_ns;
}

const struct ahead_room *ahead__room(const struct ahead *ahead)
{
	return &ahead->room;
}

/* The number of the first cut at t or later. */
static size_t cut_at(const struct ahead *a, uint64_t t)
{
	return ahead__cut_at(a->first_ns, a->every_ns, t);
}

/* ── the first pass ──────────────────────────────────────────────────────────────────────── */

static int track_of(struct ahead *a, uint32_t tgid, uint32_t tid, struct track **ret_track)
{
	const struct track_key key = {tgid, tid};
	struct track *track;

	HASH_FIND(hh, a->tracks, &key, sizeof(key), track);
	*ret_track = track;
	if (track)
		return 0;
	track = calloc(1, sizeof(*track));
	if (!track)
		return -ENOMEM;
	track->key = key;
	*ret_track = track;
	return HASH_INSERT(a->tracks, key, sizeof(track->key), track);
}

static int add_next(struct ahead *a, uint64_t from, uint64_t until,
		    const struct intake_input *input)
{
	struct next *next;
	int err;

	if (cut_at(a, from) == cut_at(a, until) || !ahead_room__takes_bytes(&a->room, AHEAD_CUTS))
		return 0;
	err = AHEAD_RESERVE(&a->room, AHEAD_CUTS, a->v, a->cap, a->n + 1, MAX_NEXT);
	if (err)
		return err == -E2BIG ? 0 : err;
	next = malloc(sizeof(*next) + input->size);
	if (!next)
		return -ENOMEM;
	*next = (struct next){
		.from = from, .until = until, .number = a->n_records, .size = input->size};
	memcpy(next->rec, input->data, input->size);
	a->v[a->n++] = next;
	a->room.bytes += sizeof(*next) + input->size;
	return 0;
}

static int note_late(struct ahead *a, uint64_t ns)
{
	size_t cut = cut_at(a, ns);
	int err;

	if (cut == cut_at(a, a->latest_ns))
		return 0;
	err = AHEAD_RESERVE(&a->room, AHEAD_CUTS, a->late, a->late_cap, cut + 1, MAX_CUTS);
	if (err)
		return err == -E2BIG ? 0 : err;
	while (a->n_late <= cut)
		a->late[a->n_late++] = 0;
	a->late[cut] = a->n_records;
	return 0;
}

static int look_at_call(struct ahead *a, struct track *thread, const struct intake_input *input)
{
	struct wire_call rec;
	uint64_t from;

	if (input->size < sizeof(rec))
		return 0;
	memcpy(&rec, input->data, sizeof(rec));
	/* until its first call the thread may have been in a call whose start nobody saw */
	from = thread->called ? MAX(rec.start_ns, thread->began_ns) : thread->began_ns;
	thread->called = true;
	return from < rec.h.ns ? add_next(a, from, rec.h.ns, input) : 0;
}

/* A collection's end shows, by the runtime's own clock, when it was requested and began to work. */
static int look_at_gc(struct ahead *a, struct track *process, const struct intake_input *input)
{
	struct wire_gc rec;
	uint64_t from;

	if (input->size < sizeof(rec))
		return 0;
	memcpy(&rec, input->data, sizeof(rec));
	if (rec.point == WIRE_GC_START)
		process->gc_ns = rec.h.ns;
	if (rec.point != WIRE_GC_END)
		return 0;
	from = process->gc_ns ?: rec.sync_ns ?: rec.start_ns;
	from = rec.start_ns ? MIN(from, rec.start_ns) : from;
	process->gc_ns = 0;
	return from && from < rec.h.ns ? add_next(a, from, rec.h.ns, input) : 0;
}

static int look_at_birth(struct ahead *a, struct track *thread, const struct wire_hdr *h)
{
	int err = AHEAD_RESERVE(&a->room, AHEAD_NAMES, a->names, a->names_cap, a->n_names + 1,
				MAX_NAMES);

	ahead_snaps__birth(&a->snaps, h);
	thread->name = 0;
	if (err)
		return err == -E2BIG ? 0 : err;
	memset(a->names[a->n_names], 0, sizeof(*a->names));
	thread->name = ++a->n_names;
	return 0;
}

/* A thread's final name is used from its start. */
static void look_at_name(struct ahead *a, const struct track *thread, const char comm[16])
{
	if (thread->born && thread->name && comm[0])
		memcpy(a->names[thread->name - 1], comm, sizeof(*a->names));
	else if (!thread->born)
		ahead_snaps__name(&a->snaps, (pid_t)thread->key.tgid, (pid_t)thread->key.tid, comm);
}

static int look_at_life(struct ahead *a, struct track *thread, const struct intake_input *input)
{
	struct wire_thread_event rec;
	uint64_t from;

	if (input->size != sizeof(rec))
		return 0;
	memcpy(&rec, input->data, sizeof(rec));
	if (rec.h.type == WIRE_THREAD_EXIT)
		look_at_name(a, thread, rec.comm);
	from = MAX(thread->began_ns, MAX(thread->off_ns, thread->sample_ns));
	thread->began_ns = rec.h.ns;
	thread->called = false;
	thread->born = rec.h.type == WIRE_THREAD_NEW;
	return thread->born	 ? look_at_birth(a, thread, &rec.h)
	       : from < rec.h.ns ? add_next(a, from, rec.h.ns, input)
				 : 0;
}

static int look_at_one(struct ahead *a, const struct intake_input *input)
{
	struct track *process, *thread;
	struct wire_hdr h;
	uint64_t *before;
	int err;

	a->n_records++;
	memcpy(&h, input->data, sizeof(h));
	if (h.ns > MAX_TIME)
		return 0;
	err = h.ns < a->latest_ns ? note_late(a, h.ns) : 0;
	a->latest_ns = MAX(a->latest_ns, h.ns);
	if (!err)
		err = track_of(a, h.tgid, 0, &process);
	if (!err)
		err = track_of(a, h.tgid, h.tid, &thread);
	if (!err && process->n_targets)
		err = ahead_known__look(&a->known, process->n_targets - 1, input);
	if (!err && a->haskell && process->n_targets)
		err = ahead_living__record(&a->living, &a->room, process->n_targets - 1, input);
	if (err)
		return err;
	switch (h.type) {
	case WIRE_CALL:
		return look_at_call(a, thread, input);
	case WIRE_GC:
		return look_at_gc(a, process, input);
	case WIRE_OFF:
	case WIRE_SAMPLE:
		before = h.type == WIRE_OFF ? &thread->off_ns : &thread->sample_ns;
		err = add_next(a, MAX(*before, MAX(thread->began_ns, process->began_ns)), h.ns,
			       input);
		*before = MAX(*before, h.ns);
		return err;
	case WIRE_TICK:
		/* the first one of the process */
		err = process->tick_ns ? 0 : add_next(a, process->began_ns, h.ns, input);
		process->tick_ns = h.ns;
		return err;
	case WIRE_THREAD_NEW:
	case WIRE_THREAD_EXIT:
		return look_at_life(a, thread, input);
	case WIRE_EXEC:
	case WIRE_PROC_EXIT:
		process->began_ns = h.ns;
		return 0;
	default:
		return 0;
	}
}

static int look_at_record(struct ahead *a, const struct intake_input *input)
{
	const struct wire_hdr *h = input->data;
	struct intake_input before = *input;
	struct wire_off off;
	int err;

	if (input->size < sizeof(*h))
		return 0;
	err = h->ns <= MAX_TIME ? gaps__record(&a->gaps, input, &off) : 0;
	if (err > 0) {
		before.data = &off;
		before.size = sizeof(off);
		err = look_at_one(a, &before);
	}
	return err ? err : look_at_one(a, input);
}

static int keep_last(struct ahead *a, struct track *track, const struct snap_thread *thread)
{
	int err;

	if (thread->rts.where != WIRE_WHERE_SAFE_CALL || !thread->stack.nframes ||
	    !ahead_room__takes_bytes(&a->room, AHEAD_CUTS))
		return 0;
	err = AHEAD_RESERVE(&a->room, AHEAD_CUTS, a->last, a->last_cap, a->n_last + 1, MAX_LAST);
	if (err)
		return err == -E2BIG ? 0 : err;
	a->last[a->n_last].stack = thread->stack;
	memcpy(a->last[a->n_last].frames, thread->frames, sizeof(thread->frames));
	track->last = ++a->n_last;
	a->room.bytes += sizeof(*a->last);
	return 0;
}

/* The last snapshot is given as threads' states, except for the names, and the stacks that the
 * states lack. */
static int look_at_last(struct ahead *a, const struct intake_input *input)
{
	struct track *track;
	int err = 0;

	for (size_t i = 0; !err && i < input->snapshot->n; i++) {
		const struct snap_thread *thread = &input->snapshot->threads[i];

		err = track_of(a, (uint32_t)input->pid, (uint32_t)thread->tid, &track);
		if (!err)
			look_at_name(a, track, thread->comm);
		if (!err)
			err = keep_last(a, track, thread);
	}
	return err;
}

static int look_at_snapshot(struct ahead *a, const struct intake_input *input)
{
	struct track *track;
	struct snap *snap;
	int err;

	if (input->n && input->snapshot)
		return look_at_last(a, input);
	if (input->n || !input->snapshot || !input->snapshot->n ||
	    !ahead_room__takes_bytes(&a->room, AHEAD_CUTS))
		return 0;
	err = ahead_snaps__add(&a->snaps, &a->room, input, &snap);
	if (err || !snap)
		return err;
	snap->n_records = a->n_records;
	snap->n_targets = a->n_targets;
	a->room.bytes += snap->threads.n * sizeof(*snap->threads.threads);
	for (size_t i = 0; !err && i < snap->threads.n; i++) {
		err = track_of(a, (uint32_t)input->pid, (uint32_t)snap->threads.threads[i].tid,
			       &track);
		if (!err && track->born)
			snap->born_ns[i] = track->began_ns;
	}
	return err;
}

/* The counters of a process that has ended are read later than its end: its last window waits. */
static int look_at_counters(struct ahead *a, const struct intake_input *input)
{
	struct track_key key = {0};
	struct wire_site_key site;
	const struct track *track;

	if (input->size < sizeof(site))
		return 0;
	memcpy(&site, input->data, sizeof(site));
	key.tgid = site.tgid;
	HASH_FIND(hh, a->tracks, &key, sizeof(key), track);
	return track && track->began_ns ? note_late(a, track->began_ns) : 0;
}

static int look_at_target(struct ahead *a, const struct intake_input *input)
{
	struct track *process;
	int err = track_of(a, (uint32_t)input->pid, 0, &process);

	if (!err)
		process->n_targets = ++a->n_targets;
	return err;
}

/* For the last target with the pid. */
static int look_at_process(struct ahead *a, const struct intake_input *input)
{
	const struct track_key key = {(uint32_t)input->pid, 0};
	const struct track *process;

	HASH_FIND(hh, a->tracks, &key, sizeof(key), process);
	return process && process->n_targets
		       ? ahead_known__look(&a->known, process->n_targets - 1, input)
		       : 0;
}

static int look_at_living(struct ahead *a, const struct intake_input *input)
{
	const struct track_key key = {(uint32_t)input->pid, 0};
	const struct track *process;
	int err;

	HASH_FIND(hh, a->tracks, &key, sizeof(key), process);
	if (!process || !process->n_targets || !ahead_room__takes_bytes(&a->room, AHEAD_HASKELL))
		return 0;
	err = ahead_living__add(&a->living, &a->room, process->n_targets - 1, input);
	if (!err)
		a->room.bytes += input->size;
	return err == -E2BIG ? 0 : err;
}

int ahead__look(struct ahead *ahead, const struct intake_input *input, uint64_t lost)
{
	gaps__lost(&ahead->gaps, lost);
	switch (input->kind) {
	case TI_TARGET:
		return look_at_target(ahead, input);
	case TI_UPDATE_TARGET:
	case TI_COST:
		return look_at_process(ahead, input);
	case TI_CUT:
		/* they are from a cut of the live session; the records show how it went on */
		ahead_states__forget(&ahead->states, &ahead->room);
		return 0;
	case TI_LIVING:
		return look_at_living(ahead, input);
	case TI_FINISH:
		ahead->end_ns = input->a;
		return 0;
	case TI_RECORD:
		return look_at_record(ahead, input);
	case TI_SITE_COUNTERS:
		return look_at_counters(ahead, input);
	case TI_THREAD_STATE:
		return ahead_states__look(&ahead->states, &ahead->room, input);
	case TI_OFF_STACK:
		ahead_states__look_stack(&ahead->states, input);
		return 0;
	case TI_SNAPSHOT:
		return look_at_snapshot(ahead, input);
	default:
		return 0;
	}
}

static int by_from(const void *pa, const void *pb)
{
	const struct next *a = *(struct next *const *)pa, *b = *(struct next *const *)pb;

	return CMP(a->from, b->from) ?: CMP(a->number, b->number);
}

int ahead__joined(struct ahead *ahead, struct intake *in, pid_t pid)
{
	size_t no = ahead->n_targets++;

	ahead_known__give(&ahead->known, no, in, pid, ahead->end_ns ?: ahead->latest_ns);
	return ahead_living__give(&ahead->living, &ahead->room, no, in, pid);
}

static int look_at_gap(struct ahead *a, struct ahead_state *s)
{
	int err = gaps__state(&a->gaps, s->tid, &s->thread, &s->gap);

	s->has_gap = err > 0;
	return MIN(err, 0);
}

int ahead__looked(struct ahead *ahead)
{
	int err = 0;

	if (ahead->n)
		qsort(ahead->v, ahead->n, sizeof(struct next *), by_from);
	for (size_t i = 0; !err && i < ahead->states.n; i++)
		err = look_at_gap(ahead, ahead->states.v[i]);
	for (size_t i = 0; i < ahead->states.n; i++) {
		struct ahead_state *s = ahead->states.v[i];
		const struct track_key key = {s->thread.tgid, (uint32_t)s->tid};
		const struct track *track;

		HASH_FIND(hh, ahead->tracks, &key, sizeof(key), track);
		if (track && track->began_ns)
			s->born_ns = track->born ? track->began_ns : UINT64_MAX;
		if (!track || !track->last || s->has_stack ||
		    s->thread.off_rts.where != WIRE_WHERE_SAFE_CALL)
			continue;
		s->stack = ahead->last[track->last - 1];
		s->has_stack = true;
	}
	HASH_FREE(ahead->tracks);
	free(ahead->last);
	ahead->last = NULL;
	ahead->n_records = ahead->n_targets = 0;
	return err ? err : ahead_living__looked(&ahead->living);
}

/* ── at a cut ────────────────────────────────────────────────────────────────────────────── */

uint64_t ahead__last_before(struct ahead *ahead, uint64_t cut_ns)
{
	size_t cut = cut_at(ahead, cut_ns);

	for (; ahead->late_at < ahead->n_late && ahead->late_at <= cut; ahead->late_at++)
		ahead->last_late = MAX(ahead->last_late, ahead->late[ahead->late_at]);
	return ahead->last_late;
}

static int give_next(struct ahead *a, struct intake *in, uint64_t cut_ns, uint64_t n_records)
{
	size_t kept = 0;

	if (!a->open) {
		a->n_open = 0;
		a->open = calloc(a->n + 1, sizeof(struct next *));
	}
	if (!a->open)
		return -ENOMEM;
	for (; a->given < a->n && a->v[a->given]->from <= cut_ns; a->given++)
		a->open[a->n_open++] = a->v[a->given];
	for (size_t i = 0; i < a->n_open; i++) {
		struct next *next = a->open[i];

		if (next->until <= cut_ns || next->number < n_records)
			continue;
		a->open[kept++] = next;
		/* what is refused stays unknown, as if it were not there */
		if (intake__ahead(in, next->rec, next->size) == -ENOMEM)
			return -ENOMEM;
	}
	a->n_open = kept;
	return 0;
}

int ahead__snapshot(struct ahead *ahead, struct intake *in, const struct intake_input *input,
		    uint64_t cut_ns)
{
	return ahead_snaps__take(&ahead->snaps, in, input, cut_ns);
}

int ahead__begin(struct ahead *ahead, struct intake *in, struct wire_thread_event *rec)
{
	if (ahead->names_taken < ahead->n_names) {
		const char *name = ahead->names[ahead->names_taken++];

		if (name[0])
			memcpy(rec->comm, name, sizeof(rec->comm));
	}
	return ahead_snaps__take_born(&ahead->snaps, in, &rec->h);
}

int ahead__give(struct ahead *ahead, struct intake *in, uint64_t cut_ns, uint64_t n_records)
{
	int err = ahead_snaps__give(&ahead->snaps, in, cut_ns, n_records, ahead->n_targets);

	if (!err)
		err = ahead_states__give(&ahead->states, in, cut_ns);
	return err ? err : give_next(ahead, in, cut_ns, n_records);
}

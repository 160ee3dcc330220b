/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overlay: the log knows to the microsecond which Haskell thread ran when on a capability; the
 * records know it only at samples and calls. Puts the log's runs into the slices in which an OS
 * thread holds the capability. The kind of work, and whether the thread had a CPU, stay as the
 * records have them.
 */
#include "join_priv.h"

struct overlay {
	struct join *j;
	struct slices slices;
	size_t max;
	const uint32_t *stacks; /* by state */
};

/* The largest part of a lane, in percent, that a log may lack for its sums to be used. */
#define UNCOVERED_PERCENT 1

static bool held(const struct pic_slice *s)
{
	return s->state == CS_HASKELL || s->state == CS_UNSAFE_CALL || s->state == CS_PREEMPTED ||
	       s->state == CS_RTS;
}

static bool covered(const struct join *j, const struct pic_slice *s)
{
	return s->start_ns >= j->b->from_ns && s->end_ns <= j->b->to_ns;
}

/* Puts a part of a slice: in the log's `run`, or (`runs` is false) between it and the next. */
static int put_part(struct overlay *o, const struct pic_slice *whole, uint64_t start, uint64_t end,
		    const struct pic_slice *run, bool runs)
{
	struct pic_slice s = *whole;

	if (end <= start)
		return 0;
	s.start_ns = start;
	s.end_ns = end;
	/* the samples go with the start of the slice */
	if (start != whole->start_ns)
		s.samples = 0;
	s.tso = runs ? run->tso : 0;
	if (!runs && s.state == CS_HASKELL) {
		/*
		 * During a safe call too short for a record nobody held it; otherwise the scheduler
		 * ran between two threads.
		 */
		bool call = run && run->stack == EL_STOP_FOREIGN_CALL;

		s.state = call ? CS_IDLE : CS_RTS;
		s.stack = o->stacks[s.state];
		if (call)
			s.tid = 0;
	}
	return slices__put(&o->slices, LANE_CAPABILITY, &s, o->max);
}

/* Cuts one slice at the log's boundaries. *at: the log's first slice that may extend into it. */
static int cut(struct overlay *o, const struct pic_slice *s, const struct slices *log, size_t *at)
{
	const struct log_build *b = o->j->b;
	const struct pic_slice *last = NULL;
	uint64_t pos = s->start_ns;
	int err = 0;

	while (*at < log->n && elog__time(b, log->v[*at].end_ns) <= s->start_ns)
		++*at;
	for (size_t i = *at; !last && i-- > 0;)
		last = log->v[i].state == CS_HASKELL ? &log->v[i] : NULL;
	for (size_t i = *at; !err && i < log->n && pos < s->end_ns; i++) {
		const struct pic_slice *p = &log->v[i];
		uint64_t start = elog__time(b, p->start_ns);
		uint64_t end = MIN(elog__time(b, p->end_ns), s->end_ns);

		if (p->state != CS_HASKELL || end <= pos)
			continue;
		if (start >= s->end_ns)
			break;
		start = MAX(start, pos);
		err = put_part(o, s, pos, start, last, false);
		if (!err)
			err = put_part(o, s, start, end, p, true);
		pos = end;
		last = p;
	}
	return err ? err : put_part(o, s, pos, s->end_ns, last, false);
}

/*
 * Corrects sums: for as long as the log's runs, Haskell code or an unsafe call ran, or the thread
 * had no CPU within the run. Time that the records have as Haskell code beyond that, between two
 * samples, was the runtime's. (Safe calls too short for a record already count as idle, as the
 * kernel side counted them.)
 */
static void move_sums(const struct join *j, struct pic_lane *lane, const struct slices *log)
{
	uint64_t *ns = lane->states_ns, covered = 0, runs = 0, other, want;
	uint64_t start = lane->start_ns, end = lane->end_ns;

	if (elog__clip(j->b, &start, &end))
		covered = end - start;
	if ((lane->end_ns - lane->start_ns - covered) * 100 >
	    (lane->end_ns - lane->start_ns) * UNCOVERED_PERCENT)
		return;
	for (size_t i = 0; i < log->n; i++) {
		uint64_t from = MAX(elog__time(j->b, log->v[i].start_ns), start);
		uint64_t to = MIN(elog__time(j->b, log->v[i].end_ns), end);

		runs += log->v[i].state == CS_HASKELL && to > from ? to - from : 0;
	}
	other = ns[CS_UNSAFE_CALL] + lane->preempted_run_ns;
	want = runs - MIN(runs, other);
	if (ns[CS_HASKELL] > want) {
		ns[CS_RTS] += ns[CS_HASKELL] - want;
		ns[CS_HASKELL] = want;
	}
}

static int draw(struct join *j, struct pic_lane *lane, const struct slices *log,
		const uint32_t *stacks)
{
	struct overlay o = {.j = j, .stacks = stacks, .max = lane->n_slices + 2 * log->n + 1};
	size_t at = 0;
	int err = 0;

	for (size_t i = 0; !err && i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];

		err = held(s) && covered(j, s) ? cut(&o, s, log, &at)
					       : slices__put(&o.slices, LANE_CAPABILITY, s, o.max);
	}
	if (!err)
		err = slices__give(&o.slices, j->b->pic, lane);
	slices__free(&o.slices);
	return err;
}

int join__caps(struct join *j)
{
	const struct pic_lanes *lanes = &j->b->pub->lanes[LANE_CAPABILITY];
	uint32_t rts = picture__mark(j->b->pic, MARK_RTS), stacks[LANE_STATES] = {0};
	int err;

	if (j->b->pub->eventlog.offset_error_ns == UINT64_MAX)
		return 0;
	err = picture__add_stack(j->b->pic, &rts, 1, &stacks[CS_RTS]);
	for (size_t i = 0; !err && i < lanes->n; i++) {
		struct pic_lane *lane = (struct pic_lane *)&lanes->v[i]; /* may be changed */
		const struct el_cap *cap = elog__cap(j->b, lane->cap);

		if (!cap || !cap->runs || cap->lane->merged_ns)
			continue;
		move_sums(j, lane, cap->lane);
		err = elog__fit_rows(j->b, lane->rows, lane->n_rows, stacks, lane);
		/* a merged lane has no boundaries */
		if (!err && !lane->merged_ns)
			err = draw(j, lane, cap->lane, stacks);
	}
	return err;
}

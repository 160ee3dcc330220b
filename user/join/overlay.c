/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overlay: the log knows to the microsecond when which Haskell thread ran on a capability; the
 * records know it at samples and at calls. Within a slice in which an OS thread holds the
 * capability the log's runs are put in. What kind of work it was, and on which CPU or not, stays as
 * the records have it.
 */
#include "join_priv.h"

struct overlay {
	struct join *j;
	struct slices slices;
	size_t max;
	uint32_t stacks[LANE_STATES];
	bool all;			/* the log has all of the lane */
	uint64_t idle_ns;		/* what the records' slices show as idle */
	uint64_t moved_ns[LANE_STATES]; /* was Haskell there, and is that now */
};

static bool held(const struct pic_slice *s)
{
	return s->state == CS_HASKELL || s->state == CS_UNSAFE_CALL || s->state == CS_PREEMPTED ||
	       s->state == CS_RTS;
}

static bool covered(const struct join *j, const struct pic_slice *s)
{
	return s->start_ns >= j->b->from_ns && s->end_ns <= j->b->to_ns;
}

/* A part of a slice: in the log's `run`, or (`runs` is false) after it, before the next. */
static int put_part(struct overlay *o, const struct pic_slice *whole, uint64_t start, uint64_t end,
		    const struct pic_slice *run, bool runs)
{
	struct pic_slice s = *whole;

	if (end <= start)
		return 0;
	s.start_ns = start;
	s.end_ns = end;
	/* its samples go where its beginning goes */
	if (start != whole->start_ns)
		s.samples = 0;
	s.tso = runs ? run->tso : 0;
	if (!runs && s.state == CS_HASKELL) {
		/*
		 * In a safe call too short for a record nobody held it; else it is the scheduler's
		 * between two threads.
		 */
		bool call = run && run->stack == EL_STOP_FOREIGN_CALL;

		s.state = call ? CS_IDLE : CS_RTS;
		s.stack = o->stacks[s.state];
		if (call)
			s.tid = 0;
		o->moved_ns[s.state] += end - start;
	}
	return slices__put(&o->slices, LANE_CAPABILITY, &s, o->max);
}

/* Cuts one slice at the log's boundaries. *at: the first of the log's that may reach into it. */
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

static void move(struct pic_lane *lane, enum cap_state from, enum cap_state to, uint64_t ns)
{
	ns = MIN(ns, lane->states_ns[from]);
	lane->states_ns[from] -= ns;
	lane->states_ns[to] += ns;
}

/*
 * The sums move by what the log changed. But the safe calls too short for a record are idleness in
 * them already, as the kernel counted them, while the slices (none of which were merged) show what
 * sampling found of them. If the log has all of the lane, it has each of these calls; else what the
 * kernel counted stands, and does not move again.
 */
static void move_sums(const struct overlay *o, struct pic_lane *lane)
{
	uint64_t idle = lane->states_ns[CS_IDLE], moved = o->moved_ns[CS_IDLE];
	uint64_t want = o->all ? o->idle_ns + moved : MAX(idle, MIN(idle, o->idle_ns) + moved);

	if (want > idle)
		move(lane, CS_HASKELL, CS_IDLE, want - idle);
	else
		move(lane, CS_IDLE, CS_HASKELL, idle - want);
	move(lane, CS_HASKELL, CS_RTS, o->moved_ns[CS_RTS]);
}

static int overlay_lane(struct join *j, struct pic_lane *lane, const struct slices *log,
			uint32_t rts_stack)
{
	struct overlay o = {.j = j, .all = true, .max = lane->n_slices + 2 * log->n + 1};
	size_t at = 0;
	int err = 0;

	o.stacks[CS_RTS] = rts_stack;
	for (size_t i = 0; !err && i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];

		if (s->state == CS_IDLE)
			o.idle_ns += s->end_ns - s->start_ns;
		o.all = o.all && (!held(s) || covered(j, s));
		err = held(s) && covered(j, s) ? cut(&o, s, log, &at)
					       : slices__put(&o.slices, LANE_CAPABILITY, s, o.max);
	}
	if (!err) {
		move_sums(&o, lane);
		err = elog__fit_rows(j->b, lane->rows, lane->n_rows, o.stacks, lane);
	}
	if (!err)
		err = elog__take_slices(j->b, &o.slices, lane);
	slices__free(&o.slices);
	return err;
}

int join__caps(struct join *j)
{
	const struct pic_lanes *lanes = &j->b->pub->lanes[LANE_CAPABILITY];
	uint32_t rts = picture__mark(j->b->pic, MARK_RTS), rts_stack;
	int err;

	if (j->b->pub->eventlog.offset_error_ns == UINT64_MAX)
		return 0;
	err = picture__add_stack(j->b->pic, &rts, 1, &rts_stack);
	for (size_t i = 0; !err && i < lanes->n; i++) {
		struct pic_lane *lane = (struct pic_lane *)&lanes->v[i]; /* the picture's own */
		const struct el_cap *cap = elog__cap(j->b, lane->cap);

		/* a lane that was merged has no boundaries */
		if (cap && cap->runs && !cap->lane->merged_ns && !lane->merged_ns)
			err = overlay_lane(j, lane, cap->lane, rts_stack);
	}
	return err;
}

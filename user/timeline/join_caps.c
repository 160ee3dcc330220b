/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * join_caps: the log knows to the microsecond when which Haskell thread ran on a capability; the
 * records know it at samples and at calls. Within a stretch in which an OS thread holds the
 * capability the log's runs are put in. What kind of work it was, and on which CPU or not, stays as
 * the records have it.
 */
#include "log_priv.h"

struct overlay {
	struct tl_cap_stretch *v;
	size_t n, cap, max;
};

static bool held(const struct tl_cap_stretch *s)
{
	return s->state == CS_HASKELL || s->state == CS_UNSAFE_CALL || s->state == CS_PREEMPTED ||
	       s->state == CS_RTS;
}

static bool covered(const struct join *j, const struct tl_cap_stretch *s)
{
	return s->start_ns >= j->b->from_ns && s->end_ns <= j->b->to_ns;
}

static int put(struct overlay *o, const struct tl_cap_stretch *s)
{
	struct tl_cap_stretch *last = o->n ? &o->v[o->n - 1] : NULL;
	int err;

	if (s->end_ns <= s->start_ns)
		return 0;
	if (last && last->state == s->state && last->tso == s->tso && last->tid == s->tid &&
	    last->stack == s->stack) {
		last->end_ns = s->end_ns;
		last->samples += s->samples;
		return 0;
	}
	err = TL_RESERVE(o->v, o->cap, o->n + 1, o->max);
	if (!err)
		o->v[o->n++] = *s;
	return err;
}

/* A part of a stretch: in the log's `run`, or (`runs` is false) after it, before the next. */
static int put_part(struct overlay *o, const struct tl_cap_stretch *whole, uint64_t start,
		    uint64_t end, const struct el_stretch *run, bool runs, uint32_t rts_stack)
{
	struct tl_cap_stretch s = *whole;

	s.start_ns = start;
	s.end_ns = end;
	/* its samples go where its beginning goes */
	if (start != whole->start_ns)
		s.samples = 0;
	s.tso = runs && run ? run->what : 0;
	if (!runs && s.state == CS_HASKELL && run && run->aux == EL_STOP_FOREIGN_CALL) {
		/* In a safe call too short for a record: nobody held it. */
		s.state = CS_IDLE;
		s.stack = 0;
		s.tid = 0;
	} else if (!runs && s.state == CS_HASKELL) {
		/* Between two threads it is the scheduler's. */
		s.state = CS_RTS;
		s.stack = rts_stack;
	}
	return put(o, &s);
}

/* Cuts one stretch at the log's boundaries. *at: the first of the log's that may reach into it. */
static int cut(struct join *j, struct overlay *o, const struct tl_cap_stretch *s,
	       const struct el_lane *log, size_t *at, uint32_t rts_stack)
{
	const struct el_stretch *last = NULL;
	uint64_t pos = s->start_ns;
	int err = 0;

	while (*at < log->n && elog__time(j->b, log->s[*at].end) <= s->start_ns)
		++*at;
	for (size_t i = *at; !last && i-- > 0;)
		last = log->s[i].kind == ECS_RUN ? &log->s[i] : NULL;
	for (size_t i = *at; !err && i < log->n && pos < s->end_ns; i++) {
		const struct el_stretch *p = &log->s[i];
		uint64_t start = elog__time(j->b, p->start), end = elog__time(j->b, p->end);

		if (p->kind != ECS_RUN || end <= pos)
			continue;
		if (start >= s->end_ns)
			break;
		if (start > pos) {
			err = put_part(o, s, pos, start, last, false, rts_stack);
			pos = start;
		}
		end = MIN(end, s->end_ns);
		if (!err)
			err = put_part(o, s, pos, end, p, true, rts_stack);
		pos = end;
		last = p;
	}
	if (!err && pos < s->end_ns)
		err = put_part(o, s, pos, s->end_ns, last, false, rts_stack);
	return err;
}

/*
 * The sums were put right by what the kernel counted of short calls. The log has each of them: if
 * it tells of the whole lane its boundaries stand, else only what they changed is added.
 */
static void sum_up(const struct join *j, struct tl_cap_lane *lane, const struct tl_cap_stretch *v,
		   size_t n)
{
	uint64_t before[CS_MAX] = {0}, after[CS_MAX] = {0}, move;
	bool all = true;

	for (size_t i = 0; i < lane->n_stretches; i++) {
		const struct tl_cap_stretch *s = &lane->stretches[i];

		before[s->state] += s->end_ns - s->start_ns;
		all = all && (!held(s) || covered(j, s));
	}
	for (size_t i = 0; i < n; i++)
		after[v[i].state] += v[i].end_ns - v[i].start_ns;
	if (all) {
		memcpy(lane->states_ns, after, sizeof(after));
		return;
	}
	for (int state = 0; state < CS_MAX; state++) {
		if (after[state] <= before[state])
			continue;
		move = MIN(after[state] - before[state], lane->states_ns[CS_HASKELL]);
		lane->states_ns[CS_HASKELL] -= move;
		lane->states_ns[state] += move;
	}
}

static int fit_rows(struct join *j, struct tl_cap_lane *lane)
{
	struct ledger_account account = {.rows = (struct ledger_row *)lane->rows,
					 .n = lane->n_rows};

	return elog__fit_rows(j->b, &account, lane);
}

static int overlay_lane(struct join *j, struct tl_cap_lane *lane, const struct el_lane *log,
			uint32_t rts_stack)
{
	struct overlay o = {.max = lane->n_stretches + 2 * log->n + 1};
	size_t at = 0;
	int err = 0;

	for (size_t i = 0; !err && i < lane->n_stretches; i++) {
		const struct tl_cap_stretch *s = &lane->stretches[i];

		if (held(s) && covered(j, s))
			err = cut(j, &o, s, log, &at, rts_stack);
		else
			err = put(&o, s);
	}
	if (err) {
		free(o.v);
		return err;
	}
	sum_up(j, lane, o.v, o.n);
	free((void *)lane->stretches);
	lane->stretches = o.v;
	lane->n_stretches = o.n;
	return fit_rows(j, lane);
}

int join__caps(struct join *j)
{
	size_t n = j->b->in.sched ? el_sched__info(j->b->in.sched).n_caps : 0;
	uint32_t rts_stack;
	int err;

	if (j->tg->pub.eventlog.offset_error_ns == UINT64_MAX || !n)
		return 0;
	err = stacks__add(&j->tl->stacks, &j->tl->marks[MARK_RTS], 1, &rts_stack);
	for (size_t i = 0; !err && i < j->tg->pub.n_cap_lanes; i++)
		for (size_t k = 0; !err && k < n; k++) {
			const struct el_cap *cap = el_sched__cap(j->b->in.sched, k);

			/* a lane that was merged tells of no boundary */
			if (cap->cap == j->tg->cap_lanes[i].no && cap->runs &&
			    !cap->lane.merged_ns && !j->tg->cap_lanes[i].coarse)
				err = overlay_lane(j, &j->tg->cap_lanes[i], &cap->lane, rts_stack);
		}
	return err;
}

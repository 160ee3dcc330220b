/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log_caps: capability lanes of a log. The scheduler's events show exactly what a capability did;
 * the cost-centre ticks within a run show its stack. Without scheduler events the lane is made from
 * ticks alone, each of which stands for the time since the previous one.
 */
#include <stdio.h>

#include "join_priv.h"

#define SLICES_MAX   (1u << 17) /* per lane */
#define LANES_BUDGET (1u << 18) /* all lanes; files beyond it are too big to open well */
#define LANE_LEAST   256
#define LANES_MAX    1024 /* no model has a capability number beyond */

/* A lane while it is being made. */
struct cap_builder {
	struct log_build *b;
	struct pic_lane *lane;
	uint32_t owner; /* of the account in the ledger: the lane's index */
	bool ticked;	/* there are ticks, which show what ran */
	struct slices slices;
	size_t max;
	uint64_t at; /* end of the last slice */
	uint32_t no_sample, unsampled, gc_stack, rts_stack;
	struct {
		uint32_t thread, stack;
	} threads[256]; /* stacks of threads seen recently */
};

/* ── putting it down ─────────────────────────────────────────────────────────────────────── */

/*
 * If there are ticks, a run's time is divided among them; otherwise what ran is known only from the
 * scheduler's events.
 */
static int book(struct cap_builder *c, const struct pic_slice *s)
{
	struct ledger_place place = {.owner = c->owner, .class = LEDGER_RUN, .detail = s->state};
	struct ledger *ledger = c->b->ledger[LANE_CAPABILITY];
	int64_t ns = (int64_t)(s->end_ns - s->start_ns);
	int err;

	c->lane->states_ns[s->state] += (uint64_t)ns;
	if (!state__on_cpu(LANE_CAPABILITY, s->state))
		return ledger__off(ledger, c->owner, s->state, s->stack, ns);
	if (s->state != CS_HASKELL || !c->ticked)
		return ledger__on(ledger, c->owner, s->state, s->stack, ns);
	err = ledger__guessed_time(ledger, &place, s->state, c->unsampled, ns);
	return err || !s->samples ? err
				  : ledger__sample(ledger, &place, s->state, s->stack, s->samples);
}

static int put(struct cap_builder *c, struct pic_slice s)
{
	int err;

	s.cap = (uint16_t)c->lane->cap;
	s.start_ns = MAX(s.start_ns, c->at);
	if (s.end_ns <= s.start_ns) {
		if (c->slices.n)
			c->slices.v[c->slices.n - 1].samples += s.samples;
		return 0;
	}
	err = book(c, &s);
	if (err)
		return err;
	c->at = s.end_ns;
	if (!s.exact)
		c->lane->sampled_states |= 1u << s.state;
	return slices__put(&c->slices, LANE_CAPABILITY, &s, c->max);
}

/* Puts unknown time up to `until`. */
static int put_unknown(struct cap_builder *c, uint64_t until)
{
	return put(c, (struct pic_slice){.start_ns = c->at, .end_ns = until, .state = CS_UNKNOWN});
}

/* Converts the slice's times to the picture's, and puts the unknown time before it. Returns 1 if no
 * part of it is wanted. */
static int begin(struct cap_builder *c, struct pic_slice *s)
{
	s->start_ns = elog__time(c->b, s->start_ns);
	s->end_ns = elog__time(c->b, s->end_ns);
	if (!elog__clip(c->b, &s->start_ns, &s->end_ns))
		return 1;
	return s->start_ns > c->at ? put_unknown(c, s->start_ns) : 0;
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

/* Without cost centres, only the thread of a run is known. */
static int thread_stack(struct cap_builder *c, uint32_t tid, uint32_t *ret_stack)
{
	unsigned slot = tid % ARRAY_SIZE(c->threads);
	const struct el_thread *t;
	char name[256];
	struct pic_frame frame = {.name = name, .file = "thread", .kind = TF_STATE};
	uint32_t id;
	int err;

	if (c->threads[slot].thread == tid && tid) {
		*ret_stack = c->threads[slot].stack;
		return 0;
	}
	t = el_sched__find_thread(c->b->in.sched, tid);
	if (t && t->label && *t->label)
		snprintf(name, sizeof(name), "Haskell thread %u (%.200s)", tid, t->label);
	else
		snprintf(name, sizeof(name), "Haskell thread %u", tid);
	err = picture__add_frame(c->b->pic, &frame, &id);
	if (!err)
		err = picture__add_stack(c->b->pic, &id, 1, ret_stack);
	if (err)
		return err;
	c->threads[slot].thread = tid;
	c->threads[slot].stack = *ret_stack;
	return 0;
}

static int mark_stack(struct log_build *b, enum pic_fixed_frame mark, uint32_t *ret_stack)
{
	uint32_t frame = picture__mark(b->pic, mark);

	return picture__add_stack(b->pic, &frame, 1, ret_stack);
}

static int make_stacks(struct cap_builder *c)
{
	int err = mark_stack(c->b, MARK_NO_SAMPLE, &c->no_sample);

	if (!err)
		err = mark_stack(c->b, MARK_GC, &c->gc_stack);
	if (!err)
		err = mark_stack(c->b, MARK_RTS, &c->rts_stack);
	return err ? err
		   : picture__unsampled(c->b->pic, state__title(LANE_CAPABILITY, CS_HASKELL),
					&c->unsampled);
}

/* ── from ticks alone ────────────────────────────────────────────────────────────────────── */

static int put_tick(struct cap_builder *c, const struct pic_slice *p)
{
	struct pic_slice s = *p;
	int err = begin(c, &s);

	if (err)
		return MIN(err, 0);
	err = elog__node_stack(c->b, p->stack, &s.stack);
	return err ? err : put(c, s);
}

static int lane_of_ticks(struct cap_builder *c, const struct slices *ticks)
{
	int err = 0;

	for (size_t i = 0; i < ticks->n && !err; i++)
		err = put_tick(c, &ticks->v[i]);
	return err;
}

/* ── from the scheduler's events, and ticks ──────────────────────────────────────────────── */

struct cursor {
	const struct slices *ticks; /* NULL: none */
	size_t i;		    /* the first that may extend into what comes next */
	uint64_t step;		    /* between ticks */
	uint32_t left;		    /* ticks of ticks->v[i] that are not in a slice yet */
	/* the last run with a tick */
	uint64_t ticked_at;
	uint32_t ticked_thread, ticked_stack;
};

/* A run too short for a tick gets its thread's last stack, for at most this many steps. */
#define LAST_STACK_STEPS 20

/* Whether a tick of *p is in [start, end). Its last tick is at its end, one more a step before. */
static bool ticked_inside(const struct pic_slice *p, uint64_t start, uint64_t end, uint64_t step)
{
	if (p->state != CS_HASKELL)
		return false;
	if (p->end_ns <= end)
		return p->end_ns > start;
	return p->samples > 1 && p->end_ns - MIN(step, p->end_ns) > MAX(start, p->start_ns);
}

/* Returns the ticks left at the cursor, and sets those of the next slice. */
static uint32_t next_ticks(struct cursor *cur)
{
	uint32_t left = cur->left;

	cur->left = cur->i + 1 < cur->ticks->n ? cur->ticks->v[cur->i + 1].samples : 0;
	return left;
}

/* Puts one run of a thread: the stacks that ticked in it, each up to the start of the next. */
static int put_run(struct cap_builder *c, struct cursor *cur, const struct pic_slice *run)
{
	struct pic_slice s = *run;
	uint64_t end = elog__time(c->b, run->end_ns), from;
	bool found = false;
	uint32_t stack;
	int err = 0;

	s.start_ns = elog__time(c->b, run->start_ns);
	for (; cur->i < cur->ticks->n; cur->i++) {
		const struct pic_slice *p = &cur->ticks->v[cur->i];

		if (p->start_ns >= run->end_ns)
			break;
		if (ticked_inside(p, run->start_ns, run->end_ns, cur->step)) {
			err = elog__node_stack(c->b, p->stack, &stack);
			if (err)
				return err;
			/* Time before the run's first tick gets that tick's stack. */
			from = MAX(elog__time(c->b, p->start_ns), s.start_ns);
			if (found && from > s.start_ns) {
				s.end_ns = from;
				err = put(c, s);
				if (err)
					return err;
				s.start_ns = from;
				s.samples = 0;
			}
			s.stack = stack;
			s.samples += cur->left;
			cur->left = 0;
			found = true;
		}
		if (p->end_ns > run->end_ns)
			break;
		s.samples += next_ticks(cur);
	}
	if (found) {
		cur->ticked_at = run->end_ns;
		cur->ticked_thread = (uint32_t)run->tso;
		cur->ticked_stack = s.stack;
	} else if (cur->ticked_thread == run->tso &&
		   run->start_ns - cur->ticked_at <= LAST_STACK_STEPS * cur->step) {
		s.stack = cur->ticked_stack;
	} else {
		s.stack = c->no_sample;
	}
	s.end_ns = end;
	return put(c, s);
}

/* Ticks that ended outside of runs: they count, but change nothing. */
static uint32_t skip_ticks(struct cursor *cur, uint64_t end)
{
	uint32_t n = 0;

	for (; cur->ticks && cur->i < cur->ticks->n; cur->i++) {
		if (cur->ticks->v[cur->i].end_ns > end)
			break;
		n += next_ticks(cur);
	}
	return n;
}

static int put_sched(struct cap_builder *c, struct cursor *cur, const struct pic_slice *p)
{
	struct pic_slice s = *p;
	int err = begin(c, &s);

	if (err)
		return MIN(err, 0);
	if (p->state == CS_HASKELL && cur->ticks)
		return put_run(c, cur, p);
	s.samples = skip_ticks(cur, p->end_ns);
	s.stack = p->state == CS_GC ? c->gc_stack : p->state == CS_RTS ? c->rts_stack : 0;
	if (p->state == CS_HASKELL)
		err = thread_stack(c, (uint32_t)p->tso, &s.stack);
	return err ? err : put(c, s);
}

static int lane_of_sched(struct cap_builder *c, const struct slices *sched,
			 const struct slices *ticks)
{
	struct cursor cur = {.ticks = ticks && ticks->n ? ticks : NULL,
			     .step = c->b->in.interval_ns ? c->b->in.interval_ns : 1000000};
	int err = 0;

	if (cur.ticks)
		cur.left = cur.ticks->v[0].samples;
	for (size_t i = 0; i < sched->n && !err; i++)
		err = put_sched(c, &cur, &sched->v[i]);
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static const struct slices *ticks_of(const struct log_build *b, uint32_t no)
{
	size_t n = b->in.profile ? el_profile__info(b->in.profile).n_lanes : 0;

	for (size_t i = 0; i < n; i++)
		if (el_profile__lane(b->in.profile, i)->cap == no)
			return el_profile__lane(b->in.profile, i)->lane;
	return NULL;
}

const struct el_cap *elog__cap(const struct log_build *b, uint32_t no)
{
	size_t n = b->in.sched ? el_sched__info(b->in.sched).n_caps : 0;

	for (size_t i = 0; i < n; i++)
		if (el_sched__cap(b->in.sched, i)->cap == no)
			return el_sched__cap(b->in.sched, i);
	return NULL;
}

/* A log lists capabilities as they are made; one that only has ticks counts, too. */
static size_t number_caps(const struct log_build *b, uint16_t *ret_nos)
{
	size_t n = 0;

	for (uint32_t no = 0; no < LANES_MAX; no++)
		if (elog__cap(b, no) || ticks_of(b, no))
			ret_nos[n++] = (uint16_t)no;
	return n;
}

/* Merged slices show what took most of their time; the model's sums have everything. */
static void true_sums(struct pic_lane *lane, const struct el_cap *cap)
{
	uint64_t sum = 0, wall = lane->end_ns - lane->start_ns;

	if (!cap->lane->merged_ns)
		return;
	for (int i = 0; i < CS_MAX; i++)
		sum += cap->state_ns[i];
	if (sum > wall)
		return;
	memcpy(lane->states_ns, cap->state_ns, sizeof(cap->state_ns));
	lane->states_ns[CS_UNKNOWN] += wall - sum;
}

static int make_lane(struct log_build *b, uint16_t no, size_t max, uint32_t owner,
		     struct pic_lane *lane)
{
	const struct el_cap *cap = elog__cap(b, no);
	const struct slices *ticks = ticks_of(b, no), *sched;
	struct cap_builder *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	/* Without -l, the log has nothing on a capability but its creation. */
	if (cap && !cap->runs && !cap->gcs)
		cap = NULL;
	sched = cap ? cap->lane : NULL;
	c->b = b;
	c->lane = lane;
	c->owner = owner;
	c->ticked = ticks && ticks->n;
	c->max = max;
	c->at = b->from_ns;
	*lane = (struct pic_lane){
		.kind = LANE_CAPABILITY,
		.cap = no,
		.name = "",
		.threads = 1,
		.start_ns = b->from_ns,
		.end_ns = b->to_ns,
		.merged_ns = MAX(sched ? sched->merged_ns : 0, ticks ? ticks->merged_ns : 0),
	};
	err = make_stacks(c);
	if (!err && sched)
		err = lane_of_sched(c, sched, ticks);
	else if (!err && ticks)
		err = lane_of_ticks(c, ticks);
	if (!err)
		err = put_unknown(c, b->to_ns);
	if (!err && cap)
		true_sums(lane, cap);
	if (!err)
		err = slices__give(&c->slices, b->pic, lane);
	b->merged_ns = MAX(b->merged_ns, lane->merged_ns);
	slices__free(&c->slices);
	free(c);
	return err;
}

int elog__caps(struct log_build *b)
{
	uint16_t nos[LANES_MAX];
	size_t n = number_caps(b, nos);
	size_t max =
		MAX(MIN(LANES_BUDGET / MAX(n, (size_t)1), (size_t)SLICES_MAX), (size_t)LANE_LEAST);
	struct pic_lane *lanes;
	int err = 0;

	b->pub->capabilities = b->in.capabilities ? b->in.capabilities : (uint32_t)n;
	if (!n || b->to_ns <= b->from_ns)
		return 0;
	lanes = picture__alloc(b->pic, n, sizeof(*lanes));
	if (!lanes)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = make_lane(b, nos[i], max, (uint32_t)i, &lanes[i]);
	/* scaled to the lanes' sums, which may be more accurate */
	if (!err)
		err = elog__fill_rows(b, LANE_CAPABILITY, lanes, n);
	b->pub->lanes[LANE_CAPABILITY] = (struct pic_lanes){.v = lanes, .n = n};
	if (err || !b->merged_ns)
		return err;
	return picture__add_missing(
		b->pic, b->pub,
		"slices under %s in the lanes: a log of this length has more than can be opened; "
		"the sums include them, and --from and --to show a part",
		human__duration(b->merged_ns).s);
}

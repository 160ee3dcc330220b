/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log_caps: capability lanes of a log. The scheduler's events say exactly what a capability did;
 * the cost-centre ticks that fell into a run say with which stack. Without scheduler events the
 * ticks alone make the lane, each for the time since the one before it.
 */
#include <stdio.h>

#include "log_priv.h"

#define STRETCHES_MAX (1u << 17) /* of one lane */
#define LANES_BUDGET  (1u << 18) /* all lanes; beyond it the files are too big to open well */
#define LANE_LEAST    4096
#define LANES_MAX     1024
#define PARTS	      8

/* A lane in the making; past `max` stretches neighbours are merged, in steps of four. */
struct cap_builder {
	struct timeline *tl;
	struct log_build *b;
	struct target_state *tg;
	struct tl_cap_lane *lane;
	uint32_t owner; /* of the account in cap_ledger: the lane's index */
	bool ticked;	/* there are ticks: they say what ran */
	struct tl_cap_stretch *v;
	size_t n, cap, max;
	uint64_t quantum; /* groups of neighbours that span less become one; 0: none */
	uint64_t at;	  /* end of the last one */
	uint32_t no_sample;
	struct {
		uint32_t thread, stack;
	} threads[256]; /* stacks of threads seen lately */
};

/* ── a lane that merges ──────────────────────────────────────────────────────────────────── */

static bool alike(const struct tl_cap_stretch *a, const struct tl_cap_stretch *b)
{
	return a->state == b->state && a->stack == b->stack && a->tso == b->tso;
}

/* What took most of v[0..n), told by the first few different ones. */
static size_t heaviest(const struct tl_cap_stretch *v, size_t n)
{
	size_t which[PARTS] = {0}, n_which = 0, best = 0;
	uint64_t ns[PARTS] = {0};

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < n_which && !alike(&v[which[k]], &v[i]))
			k++;
		if (k == PARTS)
			continue;
		if (k == n_which)
			which[n_which++] = i;
		ns[k] += v[i].end_ns - v[i].start_ns;
	}
	for (size_t k = 1; k < n_which; k++)
		if (ns[k] > ns[best])
			best = k;
	return which[best];
}

static void merge(struct cap_builder *c)
{
	size_t out = 0, k;

	for (size_t i = 0; i < c->n; i = k) {
		struct tl_cap_stretch s;
		uint32_t samples = 0;

		for (k = i + 1; k < c->n && c->v[k].end_ns - c->v[i].start_ns < c->quantum; k++)
			;
		s = c->v[i + heaviest(&c->v[i], k - i)];
		for (size_t m = i; m < k; m++)
			samples += c->v[m].samples;
		if (k > i + 1)
			s.exact = 0;
		s.samples = samples;
		s.start_ns = c->v[i].start_ns;
		s.end_ns = c->v[k - 1].end_ns;
		if (out && alike(&c->v[out - 1], &s)) {
			c->v[out - 1].end_ns = s.end_ns;
			c->v[out - 1].samples += s.samples;
		} else {
			c->v[out++] = s;
		}
	}
	c->n = out;
}

/* Neighbours touch always: merging far enough makes room without fail. */
static void make_room(struct cap_builder *c)
{
	uint64_t span = c->v[c->n - 1].end_ns - c->v[0].start_ns;

	if (!c->quantum)
		c->quantum = MAX(span / MAX(c->max, (size_t)1), 2u);
	while (c->n > c->max / 2) {
		c->quantum *= 4;
		merge(c);
	}
	c->lane->coarse = true;
}

/*
 * Where there are ticks, a run's time is divided among them; else what ran is known by the
 * scheduler's events alone.
 */
static int book(struct cap_builder *c, const struct tl_cap_stretch *s)
{
	struct ledger_place place = {.owner = c->owner, .class = LEDGER_RUN, .detail = s->state};
	struct ledger *ledger = c->tg->cap_ledger;
	int64_t ns = (int64_t)(s->end_ns - s->start_ns);
	uint32_t unsampled;
	int err;

	c->lane->states_ns[s->state] += (uint64_t)ns;
	switch ((enum tl_cap_state)s->state) {
	case CS_HASKELL:
	case CS_GC:
	case CS_RTS:
		break;
	default:
		return ledger__off(ledger, c->owner, s->state, s->stack, ns);
	}
	if (s->state != CS_HASKELL || !c->ticked)
		return ledger__on(ledger, c->owner, s->state, s->stack, ns);
	err = ledger__time(ledger, &place, ns);
	if (!err)
		err = stack__unsampled(c->tl, cap_state__title(CS_HASKELL), &unsampled);
	if (!err)
		err = ledger__guess(ledger, &place, s->state, unsampled, ns);
	return err || !s->samples ? err
				  : ledger__sample(ledger, &place, s->state, s->stack, s->samples);
}

static int put(struct cap_builder *c, struct tl_cap_stretch s)
{
	int err;

	s.start_ns = MAX(s.start_ns, c->at);
	if (s.end_ns <= s.start_ns) {
		if (c->n)
			c->v[c->n - 1].samples += s.samples;
		return 0;
	}
	err = book(c, &s);
	if (err)
		return err;
	c->at = s.end_ns;
	if (!s.exact)
		c->lane->sampled_states |= 1u << s.state;
	if (c->n && alike(&c->v[c->n - 1], &s)) {
		c->v[c->n - 1].end_ns = s.end_ns;
		c->v[c->n - 1].samples += s.samples;
		c->v[c->n - 1].exact &= s.exact;
		return 0;
	}
	if (c->n == c->max)
		make_room(c);
	err = TL_RESERVE(c->v, c->cap, c->n + 1, c->max);
	if (!err)
		c->v[c->n++] = s;
	return err;
}

/* What nothing is known of, up to `until`. */
static int put_unknown(struct cap_builder *c, uint64_t until)
{
	return put(c, (struct tl_cap_stretch){
			      .start_ns = c->at, .end_ns = until, .state = CS_UNKNOWN});
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

/* Without cost centres it is the thread that is told of. */
static int thread_stack(struct cap_builder *c, uint32_t tid, uint32_t *ret_stack)
{
	unsigned slot = tid % ARRAY_SIZE(c->threads);
	const struct el_thread *t;
	char name[256];
	struct tl_frame frame = {.name = name, .file = "thread", .kind = TF_STATE};
	uint32_t id;
	int err;

	if (c->threads[slot].thread == tid && tid) {
		*ret_stack = c->threads[slot].stack;
		return 0;
	}
	t = el_sched__find_thread(c->b->in.sched, tid);
	if (t && t->label && *t->label)
		snprintf(name, sizeof(name), "thread %u (%.200s)", tid, t->label);
	else
		snprintf(name, sizeof(name), "thread %u", tid);
	err = frames__add(&c->tl->frames, &frame, &id);
	if (!err)
		err = stacks__add(&c->tl->stacks, &id, 1, ret_stack);
	if (err)
		return err;
	c->threads[slot].thread = tid;
	c->threads[slot].stack = *ret_stack;
	return 0;
}

static int mark_stack(struct cap_builder *c, enum mark mark, uint32_t *ret_stack)
{
	return stacks__add(&c->tl->stacks, &c->tl->marks[mark], 1, ret_stack);
}

/* ── from ticks alone ────────────────────────────────────────────────────────────────────── */

static enum tl_cap_state state_of_kind(unsigned kind)
{
	switch (kind) {
	case CCK_IDLE:
		return CS_IDLE;
	case CCK_GC:
		return CS_GC;
	case CCK_SYSTEM:
	case CCK_OVERHEAD:
		return CS_RTS;
	default:
		return CS_HASKELL;
	}
}

static int put_tick(struct cap_builder *c, const struct el_stretch *p)
{
	struct tl_cap_stretch s = {
		.start_ns = elog__time(c->b, p->start),
		.end_ns = elog__time(c->b, p->end),
		.samples = p->n,
		.state = (uint8_t)state_of_kind(p->kind),
	};
	int err = 0;

	if (!elog__clip(c->b, &s.start_ns, &s.end_ns))
		return 0;
	if (s.start_ns > c->at)
		err = put_unknown(c, s.start_ns);
	if (!err)
		err = elog__node_stack(c->tl, c->b, p->what, &s.stack);
	return err ? err : put(c, s);
}

static int lane_of_ticks(struct cap_builder *c, const struct el_lane *ticks)
{
	int err = 0;

	for (size_t i = 0; i < ticks->n && !err; i++)
		err = put_tick(c, &ticks->s[i]);
	return err;
}

/* ── from the scheduler's events, and ticks ──────────────────────────────────────────────── */

struct cursor {
	const struct el_lane *ticks; /* NULL: none */
	size_t i;		     /* the first that may reach into what comes */
	uint64_t step;		     /* between ticks */
	uint32_t left;		     /* ticks of ticks->s[i] that are in no stretch yet */
	/* the last run that was ticked */
	uint64_t ticked_at;
	uint32_t ticked_thread, ticked_stack;
};

/* A run too short to be ticked has its thread's last stack, up to so many ticks later. */
#define LAST_STACK_STEPS 20

/* Does a tick of *p lie in [start, end)? Its last one is at its end, one more a step before. */
static bool ticked_inside(const struct el_stretch *p, uint64_t start, uint64_t end, uint64_t step)
{
	if (state_of_kind(p->kind) != CS_HASKELL)
		return false;
	if (p->end <= end)
		return p->end > start;
	return p->n > 1 && p->end - MIN(step, p->end) > MAX(start, p->start);
}

/* One run of a thread: the stacks that ticked in it, each up to the next one's begin. */
static int put_run(struct cap_builder *c, struct cursor *cur, const struct el_stretch *run)
{
	struct tl_cap_stretch s = {.start_ns = elog__time(c->b, run->start),
				   .tso = run->what,
				   .state = CS_HASKELL,
				   .exact = 1};
	uint64_t end = elog__time(c->b, run->end), from;
	bool found = false;
	uint32_t stack;
	int err = 0;

	for (; cur->i < cur->ticks->n; cur->i++) {
		const struct el_stretch *p = &cur->ticks->s[cur->i];

		if (p->start >= run->end)
			break;
		if (ticked_inside(p, run->start, run->end, cur->step)) {
			err = elog__node_stack(c->tl, c->b, p->what, &stack);
			if (err)
				return err;
			/* Time before the run's first tick has that tick's stack. */
			from = MAX(elog__time(c->b, p->start), s.start_ns);
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
		if (p->end > run->end)
			break;
		s.samples += cur->left;
		cur->left = cur->i + 1 < cur->ticks->n ? cur->ticks->s[cur->i + 1].n : 0;
	}
	if (found) {
		cur->ticked_at = run->end;
		cur->ticked_thread = run->what;
		cur->ticked_stack = s.stack;
	} else if (cur->ticked_thread == run->what &&
		   run->start - cur->ticked_at <= LAST_STACK_STEPS * cur->step) {
		s.stack = cur->ticked_stack;
	} else {
		s.stack = c->no_sample;
	}
	s.end_ns = end;
	return put(c, s);
}

/* Ticks that ended in a stretch which is no run: they count, but change nothing. */
static uint32_t skip_ticks(struct cursor *cur, uint64_t end)
{
	uint32_t n = 0;

	for (; cur->ticks && cur->i < cur->ticks->n; cur->i++) {
		if (cur->ticks->s[cur->i].end > end)
			break;
		n += cur->left;
		cur->left = cur->i + 1 < cur->ticks->n ? cur->ticks->s[cur->i + 1].n : 0;
	}
	return n;
}

static int put_sched(struct cap_builder *c, struct cursor *cur, const struct el_stretch *p)
{
	struct tl_cap_stretch s = {.start_ns = elog__time(c->b, p->start),
				   .end_ns = elog__time(c->b, p->end),
				   .exact = 1};
	int err = 0;

	if (!elog__clip(c->b, &s.start_ns, &s.end_ns))
		return 0;
	if (s.start_ns > c->at)
		err = put_unknown(c, s.start_ns);
	if (err)
		return err;
	if (p->kind == ECS_RUN && cur->ticks)
		return put_run(c, cur, p);
	s.samples = skip_ticks(cur, p->end);
	switch (p->kind) {
	case ECS_RUN:
		s.state = CS_HASKELL;
		s.tso = p->what;
		err = thread_stack(c, p->what, &s.stack);
		break;
	case ECS_GC:
		s.state = CS_GC;
		err = mark_stack(c, MARK_GC, &s.stack);
		break;
	case ECS_DISABLED:
		s.state = CS_DISABLED;
		break;
	case ECS_RTS:
		s.state = CS_RTS;
		err = mark_stack(c, MARK_RTS, &s.stack);
		break;
	default:
		s.state = CS_IDLE;
		break;
	}
	return err ? err : put(c, s);
}

static int lane_of_sched(struct cap_builder *c, const struct el_lane *sched,
			 const struct el_lane *ticks)
{
	struct cursor cur = {.ticks = ticks && ticks->n ? ticks : NULL,
			     .step = c->b->in.interval_ns ? c->b->in.interval_ns : 1000000};
	int err = 0;

	if (cur.ticks)
		cur.left = cur.ticks->s[0].n;
	for (size_t i = 0; i < sched->n && !err; i++)
		err = put_sched(c, &cur, &sched->s[i]);
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static const struct el_lane *ticks_of(const struct log_build *b, uint16_t no)
{
	size_t n = b->in.profile ? el_profile__info(b->in.profile).n_lanes : 0;

	for (size_t i = 0; i < n; i++)
		if (el_profile__lane(b->in.profile, i)->cap == no)
			return &el_profile__lane(b->in.profile, i)->lane;
	return NULL;
}

static const struct el_cap *cap_of(const struct log_build *b, uint16_t no)
{
	size_t n = b->in.sched ? el_sched__info(b->in.sched).n_caps : 0;

	for (size_t i = 0; i < n; i++) {
		const struct el_cap *cap = el_sched__cap(b->in.sched, i);

		/* Without -l a capability's creation is all that is told of it. */
		if (cap->cap == no)
			return cap->runs || cap->gcs ? cap : NULL;
	}
	return NULL;
}

/* A log of GHC's lists capabilities when they are made; one that only ticks counts too. */
static size_t number_caps(const struct log_build *b, uint16_t *ret_nos)
{
	size_t n = 0, n_sched = b->in.sched ? el_sched__info(b->in.sched).n_caps : 0;
	size_t n_ticks = b->in.profile ? el_profile__info(b->in.profile).n_lanes : 0;
	uint8_t seen[65536 / 8] = {0};

	for (size_t i = 0; i < n_sched; i++)
		seen[el_sched__cap(b->in.sched, i)->cap / 8] |=
			(uint8_t)(1u << el_sched__cap(b->in.sched, i)->cap % 8);
	for (size_t i = 0; i < n_ticks; i++)
		seen[el_profile__lane(b->in.profile, i)->cap / 8] |=
			(uint8_t)(1u << el_profile__lane(b->in.profile, i)->cap % 8);
	for (uint32_t no = 0; no < 65536 && n < LANES_MAX; no++)
		if (seen[no / 8] >> no % 8 & 1)
			ret_nos[n++] = (uint16_t)no;
	return n;
}

/* Stretches that were merged tell what took most of them; the model's sums have all. */
static void true_sums(struct tl_cap_lane *lane, const struct el_cap *cap)
{
	static const uint8_t states[ECS_MAX] = {[ECS_IDLE] = CS_IDLE,
						[ECS_RUN] = CS_HASKELL,
						[ECS_GC] = CS_GC,
						[ECS_RTS] = CS_RTS,
						[ECS_DISABLED] = CS_DISABLED};
	uint64_t sum = 0, wall = lane->end_ns - lane->start_ns;

	if (!cap->lane.merged_ns)
		return;
	for (int i = 0; i < ECS_MAX; i++)
		sum += cap->state_ns[i];
	if (sum > wall)
		return;
	memset(lane->states_ns, 0, sizeof(lane->states_ns));
	for (int i = 0; i < ECS_MAX; i++)
		lane->states_ns[states[i]] = cap->state_ns[i];
	lane->states_ns[CS_UNKNOWN] = wall - sum;
}

static int make_lane(struct timeline *tl, struct target_state *tg, uint16_t no, size_t max,
		     uint32_t owner, struct tl_cap_lane *lane)
{
	struct log_build *b = tg->log;
	const struct el_cap *cap = cap_of(b, no);
	const struct el_lane *sched = cap ? &cap->lane : NULL, *ticks = ticks_of(b, no);
	struct cap_builder *c = calloc(1, sizeof(*c));
	struct tl_cap_stretch *kept;
	int err;

	if (!c)
		return -ENOMEM;
	*c = (struct cap_builder){.tl = tl,
				  .tg = tg,
				  .b = b,
				  .lane = lane,
				  .owner = owner,
				  .ticked = ticks && ticks->n,
				  .max = max,
				  .at = b->from_ns};
	lane->no = no;
	lane->start_ns = b->from_ns;
	lane->end_ns = b->to_ns;
	lane->coarse = (sched && sched->merged_ns) || (ticks && ticks->merged_ns);
	err = mark_stack(c, MARK_NO_SAMPLE, &c->no_sample);
	if (!err && sched)
		err = lane_of_sched(c, sched, ticks);
	else if (!err && ticks)
		err = lane_of_ticks(c, ticks);
	if (!err && c->at < b->to_ns)
		err = put_unknown(c, b->to_ns);
	if (!err && cap)
		true_sums(lane, cap);
	if (lane->coarse) {
		c->quantum = MAX(c->quantum, sched ? sched->merged_ns : 0);
		c->quantum = MAX(c->quantum, ticks ? ticks->merged_ns : 0);
		b->merged_ns = MAX(b->merged_ns, c->quantum);
	}
	kept = err ? NULL : elog__keep(b, c->v, c->n, sizeof(*kept));
	if (kept) {
		c->v = NULL;
		lane->stretches = kept;
		lane->n_stretches = c->n;
	} else if (!err) {
		err = -ENOMEM;
	}
	free(c->v);
	free(c);
	return err;
}

/* The accounts, brought to the lanes' sums where those are truer. */
static int fill_rows(struct target_state *tg, struct tl_cap_lane *lanes, size_t n)
{
	struct log_build *b = tg->log;
	int err = ledger__accounts(tg->cap_ledger, (uint32_t)n, &tg->cap_accounts);

	if (err)
		return err;
	tg->n_cap_accounts = (uint32_t)n;
	for (size_t i = 0; i < n && !err; i++)
		err = elog__fit_rows(b, &tg->cap_accounts[i], &lanes[i]);
	return err;
}

int elog__caps(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	uint16_t nos[LANES_MAX];
	size_t n = number_caps(b, nos);
	size_t max = MAX(MIN(LANES_BUDGET / MAX(n, (size_t)1), (size_t)STRETCHES_MAX),
			 (size_t)LANE_LEAST);
	struct tl_cap_lane *lanes;
	char text[32];
	int err = 0;

	tg->pub.capabilities = b->in.capabilities ? b->in.capabilities : (uint32_t)n;
	if (!n || b->to_ns <= b->from_ns)
		return 0;
	lanes = elog__alloc(b, n, sizeof(*lanes));
	if (!lanes)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++)
		err = make_lane(tl, tg, nos[i], max, (uint32_t)i, &lanes[i]);
	if (!err)
		err = fill_rows(tg, lanes, n);
	tg->pub.cap_lanes = lanes;
	tg->pub.n_cap_lanes = n;
	if (!err && b->merged_ns) {
		human__duration(text, sizeof(text), b->merged_ns);
		err = elog__missing(
			tl, tg,
			"stretches under %s in the lanes: so long a log has more than "
			"can be opened; the sums have all, and --from and --to show a part",
			text);
	}
	return err;
}

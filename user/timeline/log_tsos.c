/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_tsos: Haskell thread lanes of a log. */
#include <stdio.h>

#include "log_priv.h"

#define LANES_MAX 4096 /* threads in the picture: those that ran longest */

static enum tl_tso_state state_of(unsigned state)
{
	static const uint8_t states[ETS_MAX] = {
		[ETS_UNKNOWN] = HS_UNKNOWN,
		[ETS_RUNNABLE] = HS_RUNNABLE,
		[ETS_RUNNING] = HS_RUNNING,
		[ETS_SAFE_CALL] = HS_SAFE_CALL,
		[ETS_BLOCKED_MVAR] = HS_BLOCKED_MVAR,
		[ETS_BLOCKED_STM] = HS_BLOCKED_STM,
		[ETS_BLOCKED_BLACKHOLE] = HS_BLOCKED_BLACKHOLE,
		[ETS_BLOCKED_IO] = HS_BLOCKED_IO,
		[ETS_BLOCKED_DELAY] = HS_BLOCKED_DELAY,
		[ETS_BLOCKED_OTHER] = HS_BLOCKED_OTHER,
		[ETS_GC] = HS_GC,
		[ETS_FINISHED] = HS_UNKNOWN,
	};

	return (enum tl_tso_state)(state < ETS_MAX ? states[state] : HS_UNKNOWN);
}

static int state_stack(struct timeline *tl, enum tl_tso_state state, uint32_t *ret_stack)
{
	char name[64];
	uint32_t frame;
	int err;

	snprintf(name, sizeof(name), "[%s]", tso_state__title(state));
	err = frames__add_text(&tl->frames, TF_STATE, name, &frame);
	return err ? err : stacks__add(&tl->stacks, &frame, 1, ret_stack);
}

/* The lane's stretches, without a hole from `at` to the lane's end. */
static int fill_stretches(struct log_build *b, const struct el_thread *t, struct tl_tso_lane *lane,
			  const uint32_t stacks[HS_MAX])
{
	struct tl_tso_stretch *v;
	uint64_t at = lane->start_ns;
	size_t n = 0;

	if (!t->lane || !t->lane->n)
		return 0;
	v = elog__alloc(b, 2 * t->lane->n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i <= t->lane->n; i++) {
		const struct el_stretch *p = i < t->lane->n ? &t->lane->s[i] : NULL;
		uint64_t start = p ? MAX(elog__time(b, p->start), at) : lane->end_ns;
		uint64_t end = p ? MIN(elog__time(b, p->end), lane->end_ns) : lane->end_ns;
		enum tl_tso_state state;

		start = MIN(start, lane->end_ns);
		if (start > at)
			v[n++] = (struct tl_tso_stretch){.start_ns = at,
							 .end_ns = start,
							 .stack = stacks[HS_UNKNOWN],
							 .cap = UINT32_MAX,
							 .state = HS_UNKNOWN};
		at = MAX(at, start);
		if (!p || end <= start)
			continue;
		state = state_of(p->kind);
		v[n++] = (struct tl_tso_stretch){
			.start_ns = start,
			.end_ns = end,
			.stack = stacks[state],
			.cap = state == HS_RUNNING ? p->what : UINT32_MAX,
			.state = (uint8_t)state,
			.exact = !t->lane->merged_ns,
		};
		at = end;
	}
	lane->stretches = v;
	lane->n_stretches = n;
	lane->coarse = t->lane->merged_ns != 0;
	return 0;
}

static int fill_lane(struct timeline *tl, struct target_state *tg, const struct el_thread *t,
		     uint32_t owner, struct tl_tso_lane *lane, const uint32_t stacks[HS_MAX])
{
	struct log_build *b = tg->log;
	uint64_t start = elog__time(b, t->start), end = elog__time(b, t->end), sum = 0;
	int err = 0;

	if (!elog__clip(b, &start, &end))
		end = start;
	lane->tso = t->tid;
	lane->label = t->label ? tl__string(tl, t->label) : "";
	lane->start_ns = start;
	lane->end_ns = end;
	for (unsigned i = 0; i < ETS_MAX; i++) {
		lane->states_ns[state_of(i)] += t->state_ns[i];
		sum += t->state_ns[i];
	}
	/* What the log contradicts itself about. */
	if (sum < end - start)
		lane->states_ns[HS_UNKNOWN] += end - start - sum;
	else
		lane->end_ns = start + sum;
	for (unsigned s = 0; s < HS_MAX && !err; s++)
		err = s == HS_RUNNING ? ledger__on(tg->tso_ledger, owner, s, stacks[s],
						   (int64_t)lane->states_ns[s])
				      : ledger__off(tg->tso_ledger, owner, s, stacks[s],
						    (int64_t)lane->states_ns[s]);
	return err ? err : fill_stretches(b, t, lane, stacks);
}

static int by_running(const void *pa, const void *pb)
{
	const struct el_thread *a = *(const struct el_thread *const *)pa;
	const struct el_thread *b = *(const struct el_thread *const *)pb;

	if (a->state_ns[ETS_RUNNING] != b->state_ns[ETS_RUNNING])
		return a->state_ns[ETS_RUNNING] < b->state_ns[ETS_RUNNING] ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static bool is_there(const struct log_build *b, const struct el_thread *t)
{
	uint64_t start = elog__time(b, t->start), end = elog__time(b, t->end);

	return start < b->to_ns && end >= b->from_ns;
}

int elog__tsos(struct timeline *tl, struct target_state *tg, struct log_build *b)
{
	size_t all = b->in.sched ? el_sched__info(b->in.sched).n_threads : 0, n = 0;
	const struct el_thread **order = calloc(all + 1, sizeof(*order));
	struct tl_tso_lane *lanes = NULL;
	uint32_t stacks[HS_MAX];
	int err = order ? 0 : -ENOMEM;

	for (int s = 0; s < HS_MAX && !err; s++)
		err = state_stack(tl, (enum tl_tso_state)s, &stacks[s]);
	for (size_t i = 0; i < all && !err; i++)
		if (is_there(b, el_sched__thread(b->in.sched, i)))
			order[n++] = el_sched__thread(b->in.sched, i);
	if (!err && n) {
		qsort(order, n, sizeof(*order), by_running);
		if (n > LANES_MAX)
			err = elog__missing(tl, tg,
					    "%zu Haskell threads: only the %u that ran longest are "
					    "told one by one",
					    n, LANES_MAX);
		n = MIN(n, (size_t)LANES_MAX);
		lanes = elog__alloc(b, n, sizeof(*lanes));
		err = err ? err : lanes ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < n && !err; i++)
		err = fill_lane(tl, tg, order[i], (uint32_t)i, &lanes[i], stacks);
	if (!err && lanes)
		err = tsos__fill(tg, lanes, n);
	if (!err && lanes) {
		tg->pub.tso_lanes = lanes;
		tg->pub.n_tso_lanes = n;
	}
	free(order);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: capabilities that were idle while there was something to run, and those whose OS thread
 * had no CPU.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "findings_priv.h"

#define IDLE_PERCENT  3
#define IDLE_LEAST_NS 20000000
/* Shorter waits are the time in which a thread is woken. */
#define WAIT_LEAST_NS 200000

/* Fewer ticks give no share. */
#define READY_LEAST_TICKS 20

#define PREEMPTED_PERCENT 20

/* ── idle while others waited ────────────────────────────────────────────────────────────── */

/*
 * Three kinds of time, each joined over all lanes. While a capability is held by a thread without a
 * CPU the machine has none to spare, and an idle capability would get none either.
 */
struct times {
	struct spans idle, no_cpu, waiting;
};

/* Idle and waited for, and no CPU was wanting. */
static uint64_t waited_ns(const struct times *times)
{
	size_t at = 0, at_no_cpu = 0;
	uint64_t ns = 0;

	for (size_t i = 0; i < times->waiting.n; i++) {
		const struct span *w = &times->waiting.v[i];

		while (at < times->idle.n && times->idle.v[at].end <= w->start)
			at++;
		for (size_t k = at; k < times->idle.n && times->idle.v[k].start < w->end; k++) {
			uint64_t from = MAX(w->start, times->idle.v[k].start);
			uint64_t to = MIN(w->end, times->idle.v[k].end);

			ns += to - from - spans__overlap(&times->no_cpu, &at_no_cpu, from, to);
		}
	}
	return ns;
}

/* What was queued, and who was idle, is known at the RTS's ticks. */
static void report_ready(struct finder *f, const struct times *times)
{
	uint64_t step = f->t->ticks ? f->wall_ns / f->t->ticks : 0, ticks = 0, most = 0, ns;
	size_t at = 0;

	for (size_t i = 0; i < f->t->n_starved; i++) {
		const struct pic_point *p = &f->t->starved[i];

		if (spans__overlap(&times->no_cpu, &at, p->ns, p->ns + 1))
			continue;
		ticks++;
		most = MAX(most, p->value);
	}
	ns = ticks * step;
	if (ticks < READY_LEAST_TICKS || !finding__share(ns, f->wall_ns, IDLE_PERCENT))
		return;
	finding__add(f, "idle_capability", ns, "",
		     "For about %s (%s of the RTS's timer) a capability was idle while Haskell "
		     "threads, up to %" PRIu64 ", were ready to run on others: forkOn pins them, "
		     "and a capability in an unsafe call gives none away",
		     human__duration(ns).s, finding__counted(ticks, "tick", "ticks").s, most);
}

static void report_waiting(struct finder *f, const struct times *times)
{
	uint64_t ns = waited_ns(times);

	if (ns >= IDLE_LEAST_NS && finding__share(ns, f->wall_ns, IDLE_PERCENT))
		finding__add(f, "idle_capability", ns, "",
			     "For %s a capability was idle while threads waited to get another one "
			     "back after a safe call: a thread returns to the capability that it "
			     "left",
			     human__duration(ns).s);
}

static void look_for_idle(struct finder *f)
{
	struct times times = {0};

	if (f->caps->n < 2)
		return;
	f->err = spans__add_state(&times.idle, f->caps, CS_IDLE, 0);
	if (!f->err)
		f->err = spans__add_state(&times.no_cpu, f->caps, CS_PREEMPTED, 0);
	if (!f->err)
		f->err = spans__add_state(&times.waiting, f->threads, ST_CAP_WAIT, WAIT_LEAST_NS);
	spans__join(&times.idle);
	spans__join(&times.no_cpu);
	spans__join(&times.waiting);
	if (!f->err) {
		report_waiting(f, &times);
		report_ready(f, &times);
	}
	free(times.idle.v);
	free(times.no_cpu.v);
	free(times.waiting.v);
}

/* ── without a CPU ───────────────────────────────────────────────────────────────────────── */

static void look_for_preempted(struct finder *f)
{
	uint64_t preempted = 0, busy = 0;

	for (size_t i = 0; i < f->caps->n; i++) {
		const uint64_t *ns = f->caps->v[i].states_ns;

		preempted += ns[CS_PREEMPTED];
		for (unsigned s = 0; s < CS_MAX; s++)
			busy += state__is_idle(LANE_CAPABILITY, s) || s == CS_UNKNOWN ? 0 : ns[s];
	}
	/* of what the capabilities had to do, and enough of it to matter */
	if (finding__share(preempted, busy, PREEMPTED_PERCENT) &&
	    finding__share(preempted, f->wall_ns, PREEMPTED_PERCENT))
		finding__add(
			f, "capability_preempted", preempted, "",
			"Capabilities were held for %s (%.0f %% of their busy time) by threads "
			"that had no CPU: the machine is busy with other things, or there are "
			"more capabilities (%zu) than CPUs",
			human__duration(preempted).s, human__percent(preempted, busy), f->caps->n);
}

void findings__capabilities(struct finder *f)
{
	look_for_idle(f);
	if (!f->err)
		look_for_preempted(f);
}

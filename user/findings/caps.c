/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: capabilities that were idle while there was work to run, and those whose OS thread had
 * no CPU.
 */
#include <inttypes.h>

#include "findings_priv.h"

#define IDLE_PERCENT  3
#define IDLE_LEAST_NS 20000000
/* Fewer ticks are too few for a share. */
#define READY_LEAST_TICKS 20

#define PREEMPTED_PERCENT 20

/* ── idle while others waited ────────────────────────────────────────────────────────────── */

/* What was queued, and which capabilities were idle, is known only at the RTS's ticks, not from
 * slices. */
static void report_ready(struct finder *f)
{
	uint64_t step = f->t->ticks ? f->wall_ns / f->t->ticks : 0;
	uint64_t ticks = f->t->overlaps.starved_ticks, ns = ticks * step;

	if (ticks < READY_LEAST_TICKS || !finding__share(ns, f->wall_ns, IDLE_PERCENT))
		return;
	finding__add(f, "idle_capability", ns, "",
		     "For about %s (%s of the RTS's timer) a capability was idle while Haskell "
		     "threads, up to %" PRIu64
		     ", were ready to run on others: forkOn pins threads, and a capability in an "
		     "unsafe call cannot hand any over",
		     human__duration(ns).s, finding__counted(ticks, "tick", "ticks").s,
		     f->t->overlaps.starved_most);
}

static void report_waiting(struct finder *f)
{
	uint64_t ns = f->t->overlaps.idle_wait_ns;

	if (ns < IDLE_LEAST_NS || !finding__share(ns, f->wall_ns, IDLE_PERCENT))
		return;
	f->longest = finding__longest(f, LANE_THREAD, 1U << ST_CAP_WAIT);
	finding__add(f, "idle_capability", ns, "",
		     "For %s a capability was idle while threads waited to get another one back "
		     "after a safe call: a thread returns to the capability it left",
		     human__duration(ns).s);
}

uint64_t finding__cap_ns(const struct finder *f, enum cap_state state, uint64_t *ret_busy_ns)
{
	uint64_t in_state = 0, busy = 0;

	for (size_t i = 0; i < f->caps->n; i++) {
		const uint64_t *ns = f->caps->v[i].states_ns;

		in_state += ns[state];
		for (unsigned s = 0; s < CS_MAX; s++)
			busy += state__is_idle(LANE_CAPABILITY, s) || s == CS_UNKNOWN ? 0 : ns[s];
	}
	*ret_busy_ns = busy;
	return in_state;
}

/* ── without a CPU ───────────────────────────────────────────────────────────────────────── */

static void look_for_preempted(struct finder *f)
{
	uint64_t busy, preempted = finding__cap_ns(f, CS_PREEMPTED, &busy);

	/* relative to the capabilities' busy time, and enough of it to matter */
	if (!finding__share(preempted, busy, PREEMPTED_PERCENT) ||
	    !finding__share(preempted, f->wall_ns, PREEMPTED_PERCENT))
		return;
	if (f->caps->n == 1)
		finding__add(f, "capability_preempted", preempted, "",
			     "The capability was stalled for %s (%.0f %% of its busy time) because "
			     "its thread had no CPU: the machine is busy with other things, or the "
			     "program's cgroup has a quota",
			     human__duration(preempted).s, human__percent(preempted, busy));
	else
		finding__add(f, "capability_preempted", preempted, "",
			     "Capabilities were stalled for %s (%.0f %% of their busy time) "
			     "because their threads had no CPU: the machine is busy with other "
			     "things, or there are more capabilities (%zu) than CPUs",
			     human__duration(preempted).s, human__percent(preempted, busy),
			     f->caps->n);
}

void findings__capabilities(struct finder *f)
{
	if (f->caps->n > 1) {
		report_waiting(f);
		report_ready(f);
	}
	look_for_preempted(f);
}

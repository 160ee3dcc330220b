/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings_caps: capabilities that were idle while there was something to run, and those whose OS
 * thread had no CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "findings_priv.h"

#define IDLE_PERCENT  3
#define IDLE_LEAST_NS 20000000
/* Shorter waits are the time in which a thread is woken. */
#define WAIT_LEAST_NS 200000

#define PREEMPTED_PERCENT 20

/* ── idle while others waited ────────────────────────────────────────────────────────────── */

/* At `ns` so many capabilities more are idle, so many threads or Haskell threads more wait. */
struct change {
	uint64_t ns;
	int64_t idle, waiting, runnable;
};

struct changes {
	struct change *v;
	size_t n, cap;
};

#define MAX_CHANGES ((size_t)1 << 26)

static int change(struct changes *c, uint64_t ns, int64_t idle, int64_t waiting, int64_t runnable)
{
	void *v = c->v;
	int err = array__reserve(&v, &c->cap, c->n + 1, MAX_CHANGES, sizeof(*c->v));

	c->v = v;
	if (!err)
		c->v[c->n++] = (struct change){ns, idle, waiting, runnable};
	return err;
}

static int by_ns(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;

	return (a->ns > b->ns) - (a->ns < b->ns);
}

static int idle_changes(const struct tl_target *t, struct changes *c)
{
	int err = 0;

	for (size_t i = 0; i < t->n_cap_lanes; i++) {
		const struct tl_cap_lane *lane = &t->cap_lanes[i];

		for (size_t k = 0; k < lane->n_stretches && !err; k++) {
			const struct tl_cap_stretch *s = &lane->stretches[k];

			if (s->state != CS_IDLE)
				continue;
			err = change(c, s->start_ns, 1, 0, 0);
			if (!err)
				err = change(c, s->end_ns, -1, 0, 0);
		}
	}
	return err;
}

static int wait_changes(const struct tl_target *t, struct changes *c)
{
	int err = 0;

	for (size_t i = 0; i < t->n_lanes; i++) {
		const struct tl_lane *lane = &t->lanes[i];

		for (size_t k = 0; k < lane->n_stretches && !err; k++) {
			const struct tl_stretch *s = &lane->stretches[k];

			if (s->state != ST_CAP_WAIT || s->end_ns - s->start_ns < WAIT_LEAST_NS)
				continue;
			err = change(c, s->start_ns, 0, 1, 0);
			if (!err)
				err = change(c, s->end_ns, 0, -1, 0);
		}
	}
	return err;
}

static int runnable_changes(const struct tl_target *t, struct changes *c)
{
	int err = 0;

	for (size_t i = 0; i < t->n_counters; i++) {
		const struct tl_counter *counter = &t->counters[i];
		int64_t was = 0;

		if (counter->kind != TC_RUNNABLE)
			continue;
		for (size_t k = 0; k < counter->n_points && !err; k++) {
			int64_t now = (int64_t)MIN(counter->points[k].value, (uint64_t)INT32_MAX);

			err = change(c, counter->points[k].ns, 0, 0, now - was);
			was = now;
		}
	}
	return err;
}

struct overlap {
	uint64_t waiting_ns, runnable_ns;
	int64_t most_waiting, most_runnable;
};

static void sweep(struct changes *c, struct overlap *o)
{
	int64_t idle = 0, waiting = 0, runnable = 0;

	qsort(c->v, c->n, sizeof(*c->v), by_ns);
	for (size_t i = 0; i < c->n; i++) {
		uint64_t ns = i ? c->v[i].ns - c->v[i - 1].ns : 0;

		if (idle > 0 && waiting > 0) {
			o->waiting_ns += ns;
			o->most_waiting = MAX(o->most_waiting, waiting);
		}
		if (idle > 0 && runnable > 0) {
			o->runnable_ns += ns;
			o->most_runnable = MAX(o->most_runnable, runnable);
		}
		idle += c->v[i].idle;
		waiting += c->v[i].waiting;
		runnable += c->v[i].runnable;
	}
}

static void tell_idle(struct finder *f, const struct overlap *o)
{
	if (o->waiting_ns >= IDLE_LEAST_NS &&
	    finding__share(o->waiting_ns, f->wall_ns, IDLE_PERCENT))
		finding__add(f, "idle_capability", o->waiting_ns, "",
			     "For %s a capability was idle while %s waited to get another one back "
			     "after a safe call: a thread returns to the capability that it left",
			     said__ns(o->waiting_ns).s,
			     o->most_waiting == 1 ? "a thread" : "threads");
	if (o->runnable_ns >= IDLE_LEAST_NS &&
	    finding__share(o->runnable_ns, f->wall_ns, IDLE_PERCENT))
		finding__add(f, "idle_capability", o->runnable_ns, "",
			     "For %s a capability was idle while up to %" PRId64
			     " Haskell threads were ready to run on others",
			     said__ns(o->runnable_ns).s, o->most_runnable);
}

static void look_for_idle(struct finder *f)
{
	struct changes c = {0};
	struct overlap o = {0};

	if (f->t->n_cap_lanes < 2)
		return;
	f->err = idle_changes(f->t, &c);
	if (!f->err)
		f->err = wait_changes(f->t, &c);
	if (!f->err)
		f->err = runnable_changes(f->t, &c);
	if (!f->err && c.n) {
		sweep(&c, &o);
		tell_idle(f, &o);
	}
	free(c.v);
}

/* ── without a CPU ───────────────────────────────────────────────────────────────────────── */

static void look_for_preempted(struct finder *f)
{
	uint64_t preempted = 0, busy = 0;

	for (size_t i = 0; i < f->t->n_cap_lanes; i++) {
		const uint64_t *ns = f->t->cap_lanes[i].states_ns;

		preempted += ns[CS_PREEMPTED];
		for (int s = 0; s < CS_MAX; s++)
			busy += s == CS_IDLE || s == CS_DISABLED || s == CS_UNKNOWN ? 0 : ns[s];
	}
	/* of what the capabilities had to do, and enough of it to matter */
	if (finding__share(preempted, busy, PREEMPTED_PERCENT) &&
	    finding__share(preempted, f->wall_ns, PREEMPTED_PERCENT))
		finding__add(
			f, "capability_preempted", preempted, "",
			"Capabilities were held for %s (%.0f %% of their busy time) by threads "
			"that had no CPU: the machine is busy with other things, or there are "
			"more capabilities (%zu) than CPUs",
			said__ns(preempted).s, human__percent(preempted, busy), f->t->n_cap_lanes);
}

void findings__capabilities(struct finder *f)
{
	look_for_idle(f);
	if (!f->err)
		look_for_preempted(f);
}

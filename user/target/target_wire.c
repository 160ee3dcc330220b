/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel side is given about a target, confirmed or not yet. */
#include <stdlib.h>
#include <string.h>

#include "process/proc.h"
#include "target_priv.h"

/* rts/posix/, the same in every version; the non-threaded runtime has one from 9.2 on */
#define TICKER_NAME "ghc_ticker"

static bool has_ticker(pid_t pid)
{
	struct proc_stat st;
	bool found = false;
	pid_t *tids;
	size_t n;

	if (proc__threads(pid, &tids, &n) < 0)
		return false;
	for (size_t i = 0; i < n && !found; i++)
		found = proc__stat(pid, tids[i], &st) == 0 && strcmp(st.comm, TICKER_NAME) == 0;
	free(tids);
	return found;
}

/* Without a place for a probe, ticks come from the timer thread, if there is one. */
static void choose_ticks(struct target *t)
{
	if (t->info.tick.found == FOUND_NONE && has_ticker(t->info.pid))
		t->info.tick.found = FOUND_TICKER;
	if (t->info.tick.found == FOUND_TICKER)
		t->info.wire.flags |= WIRE_TARGET_TICK_THREAD;
}

void target__fill_wire(struct target *t)
{
	struct wire_target *w = &t->info.wire;
	const struct check_result *c = &t->check;

	t->info.capabilities = c->n_caps;
	t->info.caps_found = c->caps_found;
	t->info.layout_checked = true;
	t->info.rts_opts = c->rts_opts;
	w->layout = c->layout.wire;
	if (!c->alloc_checked)
		w->layout.cap_nursery = w->layout.cap_run_queue = w->layout.cap_total_allocated = 0;
	w->flags = WIRE_TARGET_UPDATEES | (t->rts.threaded ? WIRE_TARGET_THREADED : 0) |
		   (t->rts.profiled ? WIRE_TARGET_PROFILED : 0) |
		   (c->caps_array ? WIRE_TARGET_CAPS_ARRAY : 0);
	w->my_task_tls = (int32_t)c->my_task_tls;
	w->my_task_module = c->my_task_module;
	w->main_cap = t->rts.threaded ? 0 : c->caps[0];
	w->capabilities = c->capabilities;
	w->n_capabilities = c->n_capabilities;
	w->stgrun_ret = t->rts.stgrun_ret;
	w->stats = t->rts.stats.addr;
	w->gct_clock = t->info.clock_known ? t->rts.gct_clock : 0;
	w->start_boottime_ns = t->info.start_time_ns;
	w->call_record_ns = TARGET_CALL_RECORD_NS;
	w->off_record_ns = TARGET_OFF_RECORD_NS;
	choose_ticks(t);
}

/*
 * What is known before the runtime is initialised. Only the live process shows which of the two
 * Task layouts it has: the probe programs get both, and check each Task themselves.
 */
void target__fill_wire_early(struct target *t)
{
	struct wire_target *w = &t->info.wire;
	struct layout l[LAYOUT_VARIANTS];
	bool have[LAYOUT_VARIANTS], known = false;

	for (int v = 0; v < LAYOUT_VARIANTS; v++)
		have[v] = t->rts.version[0] &&
			  layout__find(t->rts.version, t->rts.threaded, t->rts.profiled,
				       (enum layout_variant)v, &l[v], &known) == 0;
	t->info.version_known = known;
	if (!known || (!have[LAYOUT_CLK] && !have[LAYOUT_NOCLK]))
		return;
	w->layout = l[have[LAYOUT_CLK] ? LAYOUT_CLK : LAYOUT_NOCLK].wire;
	if (have[LAYOUT_CLK] && have[LAYOUT_NOCLK] &&
	    l[LAYOUT_NOCLK].wire.task_incall != w->layout.task_incall)
		w->layout.alt_task_incall = l[LAYOUT_NOCLK].wire.task_incall;
	w->flags = WIRE_TARGET_UNCONFIRMED | WIRE_TARGET_UPDATEES |
		   (t->rts.threaded ? WIRE_TARGET_THREADED : 0) |
		   (t->rts.profiled ? WIRE_TARGET_PROFILED : 0);
	if (t->info.tick.found == FOUND_TICKER)
		w->flags |= WIRE_TARGET_TICK_THREAD;
	w->start_boottime_ns = t->info.start_time_ns;
	w->call_record_ns = TARGET_CALL_RECORD_NS;
	w->off_record_ns = TARGET_OFF_RECORD_NS;
	/* for a started process, its file has enough information to read a thread's state */
	if (!t->info.pid)
		return;
	if (!t->rts.threaded)
		w->main_cap = t->rts.main_cap.addr;
	else if (t->rts.tls_known && !t->rts.dynamic)
		w->my_task_tls = (int32_t)t->rts.my_task_tls;
	w->stgrun_ret = t->rts.stgrun_ret;
}

void target__fill_wire_sampled(struct target *t)
{
	t->info.only_sampled = t->why_sampled;
	t->info.wire = (struct wire_target){
		.start_boottime_ns = t->info.start_time_ns,
		.call_record_ns = TARGET_CALL_RECORD_NS,
		.off_record_ns = TARGET_OFF_RECORD_NS,
	};
}

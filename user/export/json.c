/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for programs. Every field of the contract is there; what was not measured is null.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "json_priv.h"

#define REPORT_SCHEMA 1

/* ── parts of a target ───────────────────────────────────────────────────────────────────── */

static void add_finding(struct report *r, cJSON *findings, const struct tl_finding *finding)
{
	cJSON *o = add_object(r, findings, NULL);

	add_string(r, o, "kind", finding->kind);
	add_string(r, o, "text", finding->text);
	add_u64(r, o, "ns", finding->ns);
	add_string(r, o, "where", finding->where);
}

static void add_identity(struct report *r, cJSON *o, const struct tl_target *t)
{
	cJSON *ghc, *found, *list;

	add_int(r, o, "pid", t->pid);
	add_int(r, o, "ns_pid", t->ns_pid);
	add_u64(r, o, "start_time_ns", t->start_time_ns);
	add_string(r, o, "comm", t->comm);
	add_known_string(r, o, "exe", t->exe);
	add_known_string(r, o, "build_id", t->build_id);
	add_known_string(r, o, "end", t->end);
	ghc = add_object(r, o, "ghc");
	add_known_string(r, ghc, "version", t->ghc_version);
	add_bool(r, ghc, "version_known", t->version_known);
	add_known_string(r, ghc, "way", t->way);
	add_bool(r, ghc, "threaded", t->threaded);
	add_bool(r, ghc, "profiled", t->profiled);
	add_bool(r, ghc, "layout_checked", t->layout_checked);
	found = add_object(r, o, "found_by");
	add_known_string(r, found, "suspendThread", t->found_suspend);
	add_known_string(r, found, "resumeThread", t->found_resume);
	add_known_string(r, found, "tick", t->found_tick);
	add_known_string(r, found, "capabilities", t->found_caps);
	add_u64_or_null(r, o, "capabilities", t->capabilities ? t->capabilities : UINT64_MAX);
	add_u64_or_null(r, o, "ticks",
			t->found_tick && strcmp(t->found_tick, "none") != 0 ? t->ticks
									    : UINT64_MAX);
	add_u64(r, o, "attach_ns", t->attach_took_ns);
	list = add_array(r, o, "findings");
	for (size_t i = 0; i < t->n_findings; i++)
		add_finding(r, list, &t->findings[i]);
}

static void add_lane(struct report *r, cJSON *lanes, const struct tl_session *session,
		     const struct tl_lane *lane)
{
	cJSON *o = add_object(r, lanes, NULL), *states, *sampled, *off;
	char name[sizeof(lane->name) + 1] = "";

	memcpy(name, lane->name, sizeof(lane->name));
	add_string(r, o, "kind", "thread");
	add_int(r, o, "tid", lane->tid);
	add_string(r, o, "name", name);
	add_u64(r, o, "start_ns", since_start(session, lane->start_ns));
	add_u64(r, o, "end_ns", since_start(session, lane->end_ns));
	add_u64(r, o, "wall_ns", lane->end_ns - lane->start_ns);
	add_u64_or_null(r, o, "cpu_ns", lane->cpu_ns);
	states = add_object(r, o, "states");
	sampled = add_array(r, o, "sampled_states");
	for (int s = 0; s < ST_MAX; s++) {
		add_u64(r, states, state__name(s), lane->states_ns[s]);
		if (lane->sampled_states >> s & 1)
			add_string(r, sampled, NULL, state__name(s));
	}
	off = add_array(r, o, "off_cpu");
	for (size_t i = 0; i < lane->n_off_cpu; i++) {
		cJSON *reason = add_object(r, off, NULL);

		add_string(r, reason, "reason", lane->off_cpu[i].reason);
		add_u64(r, reason, "ns", lane->off_cpu[i].ns);
	}
	add_u64(r, o, "short_calls", lane->short_calls);
	add_bool(r, o, "coarse", lane->coarse);
}

static void add_cap_lane(struct report *r, cJSON *lanes, const struct tl_session *session,
			 const struct tl_cap_lane *lane)
{
	cJSON *o = add_object(r, lanes, NULL), *states, *sampled;

	add_string(r, o, "kind", "capability");
	add_int(r, o, "no", (int)lane->no);
	add_u64(r, o, "start_ns", since_start(session, lane->start_ns));
	add_u64(r, o, "end_ns", since_start(session, lane->end_ns));
	add_u64(r, o, "wall_ns", lane->end_ns - lane->start_ns);
	states = add_object(r, o, "states");
	sampled = add_array(r, o, "sampled_states");
	for (int s = 0; s < CS_MAX; s++) {
		add_u64(r, states, cap_state__name(s), lane->states_ns[s]);
		if (lane->sampled_states >> s & 1)
			add_string(r, sampled, NULL, cap_state__name(s));
	}
	add_bool(r, o, "coarse", lane->coarse);
}

static void add_tso_lane(struct report *r, cJSON *lanes, const struct tl_session *session,
			 const struct tl_tso_lane *lane)
{
	cJSON *o = add_object(r, lanes, NULL), *states, *sampled;

	add_string(r, o, "kind", "haskell");
	add_u64(r, o, "tso", lane->tso);
	add_string(r, o, "label", lane->label);
	add_bool(r, o, "bound", lane->bound);
	add_u64(r, o, "start_ns", since_start(session, lane->start_ns));
	add_u64(r, o, "end_ns", since_start(session, lane->end_ns));
	add_u64(r, o, "wall_ns", lane->end_ns - lane->start_ns);
	states = add_object(r, o, "states");
	sampled = add_array(r, o, "sampled_states");
	for (int s = 0; s < HS_MAX; s++) {
		add_u64(r, states, tso_state__name(s), lane->states_ns[s]);
		if (lane->sampled_states >> s & 1)
			add_string(r, sampled, NULL, tso_state__name(s));
	}
	add_bool(r, o, "coarse", lane->coarse);
}

static void add_call(struct report *r, cJSON *calls, const struct tl_call *call)
{
	cJSON *o = add_object(r, calls, NULL);

	add_string(r, o, "function", call->function);
	add_known_string(r, o, "library", call->library);
	add_known_string(r, o, "caller", call->caller);
	add_bool(r, o, "caller_approximate", call->caller_approximate);
	add_known_string(r, o, "site", call->site);
	add_bool(r, o, "interruptible", call->interruptible);
	add_u64(r, o, "calls", call->calls);
	add_u64_or_null(r, o, "wall_ns", call->wall_ns);
	add_u64_or_null(r, o, "handover_ns", call->handover_ns);
	add_u64_or_null(r, o, "cpu_ns", call->cpu_ns);
	add_u64_or_null(r, o, "blocked_ns", call->blocked_ns);
	add_u64_or_null(r, o, "cap_wait_ns", call->cap_wait_ns);
	add_u64_or_null(r, o, "min_ns", call->min_ns);
	add_u64_or_null(r, o, "p50_ns", call->p50_ns);
	add_u64_or_null(r, o, "p99_ns", call->p99_ns);
	add_u64_or_null(r, o, "max_ns", call->max_ns);
	add_double(r, o, "quantile_error", call->quantile_error);
	add_u64(r, o, "open_at_start", call->open_at_start);
	add_u64(r, o, "open_at_end", call->open_at_end);
	add_u64(r, o, "open_wall_ns", call->open_wall_ns);
	add_u64(r, o, "abandoned", call->abandoned);
	add_bool(r, o, "exact", call->exact);
	add_double(r, o, "observed_share", call->observed_share);
	add_bool(r, o, "called_back", call->called_back);
}

static void add_unsafe(struct report *r, cJSON *calls, const struct tl_unsafe *call)
{
	cJSON *o = add_object(r, calls, NULL);

	add_string(r, o, "function", call->function);
	add_known_string(r, o, "library", call->library);
	add_known_string(r, o, "caller", call->caller);
	add_bool(r, o, "caller_approximate", call->caller_approximate);
	add_u64(r, o, "samples", call->samples);
	add_u64(r, o, "cpu_ns", call->cpu_ns);
	add_u64(r, o, "blocked_ns", call->blocked_ns);
	add_u64_or_null(r, o, "held_up_gc_ns", call->held_up_gc_ns);
}

static void add_function(struct report *r, cJSON *functions, const struct tl_function *f)
{
	static const char *const kinds[] = {
		[TF_HASKELL] = "haskell", [TF_FOREIGN] = "foreign", [TF_RTS] = "rts",
		[TF_GC] = "gc",		  [TF_KERNEL] = "kernel",   [TF_STATE] = "state",
		[TF_MARK] = "mark",
	};
	cJSON *o = add_object(r, functions, NULL);

	add_string(r, o, "name", f->name);
	add_known_string(r, o, "module", f->module);
	add_string(r, o, "kind", (size_t)f->kind < ARRAY_SIZE(kinds) ? kinds[f->kind] : NULL);
	add_u64(r, o, "self_samples", f->self_samples);
	add_u64(r, o, "total_samples", f->total_samples);
	add_u64(r, o, "self_ns", f->self_ns);
	add_u64(r, o, "total_ns", f->total_ns);
	add_bool(r, o, "approximate", f->approximate);
}

static void add_gc(struct report *r, cJSON *target, const struct tl_gc *gc)
{
	cJSON *o = add_object(r, target, "gc");
	bool exact = gc->known && !gc->inferred;

	add_u64_or_null(r, o, "count", exact ? gc->count : UINT64_MAX);
	add_u64_or_null(r, o, "pause_ns", exact ? gc->pause_ns : UINT64_MAX);
	add_u64_or_null(r, o, "pause_at_most_ns", gc->known ? gc->pause_ns : UINT64_MAX);
	add_u64_or_null(r, o, "max_pause_ns", exact ? gc->max_pause_ns : UINT64_MAX);
	add_u64_or_null(r, o, "observed_ns", gc->observed_ns ? gc->observed_ns : UINT64_MAX);
	add_u64_or_null(r, o, "observed_count", gc->observed_ns ? gc->observed_count : UINT64_MAX);
	add_u64_or_null(r, o, "observed_pause_ns",
			gc->observed_ns ? gc->observed_pause_ns : UINT64_MAX);
	add_u64_or_null(r, o, "wait_ns", exact ? gc->wait_ns : UINT64_MAX);
	if (gc->known)
		add_bool(r, o, "exact", exact);
	else
		add_null(r, o, "exact");
}

/* null: not a profiled program, or nothing of it was seen. */
static void add_cost_centres(struct report *r, cJSON *target, const struct tl_target *t)
{
	cJSON *list;

	if (!t->n_cost_centres) {
		add_null(r, target, "cost_centres");
		return;
	}
	list = add_array(r, target, "cost_centres");
	for (size_t i = 0; i < t->n_cost_centres; i++) {
		const struct tl_cost_centre *c = &t->cost_centres[i];
		cJSON *o = add_object(r, list, NULL);

		add_string(r, o, "label", c->label);
		add_string(r, o, "module", c->module);
		add_string(r, o, "src_loc", c->src_loc);
		add_string(r, o, "kind", c->kind);
		add_u64(r, o, "self_ticks", c->self_ticks);
		add_u64(r, o, "total_ticks", c->total_ticks);
		add_string(r, o, "source", c->from_log ? "eventlog" : "memory");
		add_string(r, o, "counted", c->from_samples ? "samples" : "ticks");
	}
}

static void add_names(struct report *r, cJSON *target, const struct tl_names *names)
{
	cJSON *o = add_object(r, target, "names");

	add_u64(r, o, "ipe", names->ipe);
	add_u64(r, o, "dwarf", names->dwarf);
	add_u64(r, o, "exact", names->exact);
	add_u64(r, o, "nearest", names->nearest);
	add_u64(r, o, "description", names->description);
	add_u64(r, o, "none", names->none);
}

static void add_stacks(struct report *r, cJSON *target, const struct tl_quality *q)
{
	cJSON *o = add_object(r, target, "stacks"), *broken;

	add_u64(r, o, "samples", q->samples);
	add_u64(r, o, "complete", q->complete);
	add_u64(r, o, "elided", q->elided);
	add_u64(r, o, "gap", q->gap);
	add_u64(r, o, "resynchronised", q->resynchronised);
	add_u64(r, o, "truncated", q->truncated);
	add_u64(r, o, "none", q->none);
	add_u64(r, o, "haskell_samples", q->haskell_samples);
	add_u64(r, o, "haskell_complete", q->haskell_complete);
	broken = add_object(r, o, "broken");
	for (unsigned i = 0; i < TL_CAUSES; i++) {
		char other[24];

		if (!q->broken[i])
			continue;
		snprintf(other, sizeof(other), "cause_%u", i);
		add_u64(r, broken, broken__name(i) ? broken__name(i) : other, q->broken[i]);
	}
}

/* Of a session whose end was not seen neither is known. */
static void add_own_cost(struct report *r, cJSON *target, const struct tl_target *t)
{
	const struct {
		const char *name;
		uint64_t value;
	} costs[] = {
		{"probe_hits", t->probe_hits},
		{"bpf_ns", t->bpf_ns_known ? t->bpf_ns : UINT64_MAX},
		{"trap_ns_estimated", t->trap_ns_estimated},
		{"user_cpu_ns", t->user_cpu_ns},
		{"max_rss_bytes", t->max_rss_bytes},
		{"probes_paused_ns", t->probes_paused_ns},
	};
	cJSON *o;

	if (t->cost_known) {
		o = add_object(r, target, "lost");
		for (size_t i = 0; i < t->n_lost; i++)
			add_u64(r, o, t->lost[i].cause, t->lost[i].n);
		add_double(r, target, "lost_share", t->lost_share);
	} else {
		add_null(r, target, "lost");
		add_null(r, target, "lost_share");
	}
	o = add_object(r, target, "cost");
	for (size_t i = 0; i < ARRAY_SIZE(costs); i++)
		add_u64_or_null(r, o, costs[i].name, t->cost_known ? costs[i].value : UINT64_MAX);
}

static void add_target(struct report *r, cJSON *targets, const struct tl_session *session,
		       const struct tl_target *t, unsigned lanes)
{
	cJSON *o = add_object(r, targets, NULL), *list;

	add_identity(r, o, t);
	list = add_array(r, o, "lanes");
	for (size_t i = 0; lanes & EXPORT_LANES_THREAD && i < t->n_lanes; i++)
		add_lane(r, list, session, &t->lanes[i]);
	for (size_t i = 0; lanes & EXPORT_LANES_CAPABILITY && i < t->n_cap_lanes; i++)
		add_cap_lane(r, list, session, &t->cap_lanes[i]);
	for (size_t i = 0; lanes & EXPORT_LANES_HASKELL && i < t->n_tso_lanes; i++)
		add_tso_lane(r, list, session, &t->tso_lanes[i]);
	list = add_array(r, o, "safe_calls");
	for (size_t i = 0; i < t->n_calls; i++)
		add_call(r, list, &t->calls[i]);
	list = add_array(r, o, "unsafe_calls");
	for (size_t i = 0; i < t->n_unsafe_calls; i++)
		add_unsafe(r, list, &t->unsafe_calls[i]);
	add_gc(r, o, &t->gc);
	list = add_array(r, o, "functions");
	for (size_t i = 0; i < t->n_functions; i++)
		add_function(r, list, &t->functions[i]);
	add_cost_centres(r, o, t);
	json__cost_centre_stacks(r, o, t);
	json__windows(r, o, session, t);
	add_names(r, o, &t->names);
	add_stacks(r, o, &t->quality);
	json__eventlog(r, o, session, t);
	add_own_cost(r, o, t);
	list = add_array(r, o, "missing");
	for (size_t i = 0; i < t->n_missing; i++)
		add_string(r, list, NULL, t->missing[i]);
}

/* ── the report ──────────────────────────────────────────────────────────────────────────── */

static void add_session(struct report *r, cJSON *root, const struct tl_session *session)
{
	cJSON *o = add_object(r, root, "safescope");

	add_string(r, o, "version", session->version);
	add_int(r, o, "schema", REPORT_SCHEMA);
	o = add_object(r, root, "session");
	add_string(r, o, "mode", session->mode);
	add_u64(r, o, "start_unix_ns", session->start_unix_ns);
	add_u64(r, o, "duration_ns", since_start(session, session->end_ns));
	add_u64_or_null(r, o, "frequency_hz",
			session->frequency_hz ? session->frequency_hz : UINT64_MAX);
	add_int(r, o, "exit", session->exit_code);
	if (session->bpf_ns_known)
		add_u64(r, o, "bpf_ns", session->bpf_ns);
}

static int json__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	const struct tl_session *session = timeline__session(tl);
	struct report report = {0};
	cJSON *root, *targets;
	char *text = NULL;
	int err = -ENOMEM;

	if (!session)
		return -EINVAL;
	root = cJSON_CreateObject();
	add_session(&report, root, session);
	targets = add_array(&report, root, "targets");
	for (size_t i = 0; i < timeline__n_targets(tl); i++)
		add_target(&report, targets, session, timeline__target(tl, i),
			   opts->lanes ? opts->lanes : UINT_MAX);
	if (!report.failed)
		text = cJSON_Print(root);
	if (text) {
		fputs(text, out);
		fputc('\n', out);
		err = ferror(out) ? -EIO : 0;
	}
	cJSON_free(text);
	cJSON_Delete(root);
	return err;
}

const struct export_format export_json = {
	.name = "json",
	.suffix = ".json",
	.write = json__write,
};

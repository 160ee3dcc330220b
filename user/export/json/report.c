/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for programs. Every field of the schema is present; what was not measured is null. */
#include <string.h>

#include "export/alloc.h"
#include "export/totals.h"
#include "picture/lost.h"
#include "json_priv.h"

#define REPORT_SCHEMA 1

/* ── parts of a target ───────────────────────────────────────────────────────────────────── */

/* The name that ghc's option -rtsopts uses. */
static const char *rts_opts_name(enum pic_rts_opts opts)
{
	static const char *const names[] = {
		[RTS_OPTS_UNKNOWN] = "",      [RTS_OPTS_NONE] = "none",
		[RTS_OPTS_IGNORE] = "ignore", [RTS_OPTS_IGNORE_ALL] = "ignoreAll",
		[RTS_OPTS_SOME] = "some",     [RTS_OPTS_ALL] = "all",
	};

	return names[opts];
}

static const char *const lane_kinds[LANE_KINDS] = {
	[LANE_CAPABILITY] = "capability", [LANE_THREAD] = "thread", [LANE_HASKELL] = "haskell"};

/* Adds the moment at which the finding's condition lasted longest. */
static void add_span(struct report *r, cJSON *o, const struct pic_moment *moment)
{
	if (moment->end_ns) {
		add_time(r, o, "start_ns", moment->start_ns);
		add_time(r, o, "end_ns", moment->end_ns);
	} else {
		add_null(r, o, "start_ns");
		add_null(r, o, "end_ns");
	}
}

static void add_moment(struct report *r, cJSON *o, const struct pic_moment *moment)
{
	const struct pic_lane *its = moment->lane;
	cJSON *longest, *lane;

	if (!moment->end_ns) {
		add_null(r, o, "longest");
		return;
	}
	longest = add_object(r, o, "longest");
	add_time(r, longest, "start_ns", moment->start_ns);
	add_time(r, longest, "end_ns", moment->end_ns);
	if (!its) {
		add_null(r, longest, "lane");
		return;
	}
	lane = add_object(r, longest, "lane");
	add_string(r, lane, "kind", lane_kinds[its->kind]);
	add_u64(r, lane, "id",
		its->kind == LANE_CAPABILITY ? its->cap
		: its->kind == LANE_THREAD   ? (uint64_t)its->tid
					     : its->tso);
}

static void add_identity(struct report *r, cJSON *o, const struct pic_target *t)
{
	bool ticks = *or_empty(t->found_tick) && strcmp(t->found_tick, "none") != 0;
	cJSON *ghc, *found, *findings, *how, *place;

	add_int(r, o, "pid", t->pid);
	add_int(r, o, "ns_pid", t->ns_pid);
	add_u64(r, o, "start_time_ns", t->start_time_ns);
	add_string(r, o, "comm", t->comm);
	add_name(r, o, "exe", t->exe);
	add_name(r, o, "build_id", t->build_id);
	place = add_object(r, o, "container");
	add_name(r, place, "id", t->container);
	add_name(r, place, "pod_uid", t->pod);
	add_name(r, place, "service", t->service);
	add_name(r, place, "cgroup", t->cgroup);
	add_name(r, o, "pod", t->pod);
	add_name(r, o, "service", t->service);
	add_name(r, o, "end", t->end);
	how = add_object(r, o, "exit");
	add_known(r, how, "code",
		  known_if(t->exit_code >= 0 && !strcmp(or_empty(t->end), "exited"),
			   (uint64_t)t->exit_code));
	add_known(r, how, "signal", known_if(t->exit_signal, (uint64_t)t->exit_signal));
	ghc = add_object(r, o, "ghc");
	add_name(r, ghc, "version", t->ghc_version);
	add_bool(r, ghc, "version_known", t->version_known);
	add_name(r, ghc, "way", t->way);
	add_bool(r, ghc, "threaded", t->threaded);
	add_bool(r, ghc, "profiled", t->profiled);
	add_bool(r, ghc, "layout_checked", t->layout_checked);
	add_name(r, ghc, "rtsopts", rts_opts_name(t->rts_opts));
	found = add_object(r, o, "found_by");
	add_name(r, found, "suspendThread", t->found_suspend);
	add_name(r, found, "resumeThread", t->found_resume);
	add_name(r, found, "tick", t->found_tick);
	add_name(r, found, "capabilities", t->found_caps);
	add_known(r, o, "capabilities", known_if(t->capabilities, t->capabilities));
	add_known(r, o, "ticks", known_if(ticks, t->ticks));
	add_u64(r, o, "attach_ns", t->attach_took_ns);
	findings = add_array(r, o, "findings");
	for (size_t i = 0; i < t->n_findings; i++) {
		const struct pic_finding *f = &t->findings[i];
		cJSON *finding = add_object(r, findings, NULL);

		add_name(r, finding, "id", f->id);
		add_string(r, finding, "kind", f->kind);
		add_string(r, finding, "text", f->text);
		add_u64(r, finding, "ns", f->ns);
		add_string(r, finding, "where", f->where);
		add_span(r, finding, &f->longest);
		add_moment(r, finding, &f->longest);
	}
}

static void add_off_cpu(struct report *r, cJSON *o, const struct pic_lane *lane)
{
	cJSON *off = add_array(r, o, "off_cpu");

	for (size_t i = 0; i < lane->n_off_cpu; i++) {
		cJSON *reason = add_object(r, off, NULL);

		add_string(r, reason, "reason", lane->off_cpu[i].reason);
		add_u64(r, reason, "ns", lane->off_cpu[i].ns);
	}
	add_u64(r, o, "short_calls", lane->short_calls);
}

/* The time for which a thread that held the capability was on a CPU. */
static uint64_t held_on_cpu(const struct pic_lane *lane)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < lane->n_rows; i++)
		ns += lane->rows[i].on_cpu ? lane->rows[i].ns : 0;
	return ns;
}

static void add_lane(struct report *r, cJSON *lanes, const struct pic_lane *lane)
{
	cJSON *o = add_object(r, lanes, NULL), *states, *sampled;

	add_string(r, o, "kind", lane_kinds[lane->kind]);
	if (lane->kind == LANE_CAPABILITY) {
		add_u64(r, o, "no", lane->cap);
	} else if (lane->kind == LANE_THREAD) {
		add_int(r, o, "tid", lane->tid);
		add_string(r, o, "name", or_empty(lane->name));
	} else {
		add_u64(r, o, "tso", lane->tso);
		add_string(r, o, "label", lane->name);
		add_bool(r, o, "bound", lane->bound);
	}
	add_time(r, o, "start_ns", lane->start_ns);
	add_time(r, o, "end_ns", lane->end_ns);
	add_u64(r, o, "wall_ns", lane->end_ns - lane->start_ns);
	if (lane->kind == LANE_THREAD)
		add_known(r, o, "cpu_ns", lane->cpu_ns);
	else if (lane->kind == LANE_CAPABILITY)
		add_known(r, o, "cpu_ns", known_if(!session__log_alone(r->pic), held_on_cpu(lane)));
	states = add_object(r, o, "states");
	sampled = add_array(r, o, "sampled_states");
	for (unsigned s = 0; s < state__count(lane->kind); s++) {
		add_u64(r, states, state__name(lane->kind, s), lane->states_ns[s]);
		if (lane->sampled_states >> s & 1)
			add_string(r, sampled, NULL, state__name(lane->kind, s));
	}
	if (lane->kind == LANE_THREAD)
		add_off_cpu(r, o, lane);
	if (lane->kind == LANE_THREAD)
		add_bool(r, o, "housekeeping", lane->housekeeping);
	add_bool(r, o, "merged_slices", lane->merged_ns);
}

static void add_lanes(struct report *r, cJSON *target, const struct pic_target *t,
		      const struct export_opts *opts)
{
	static const enum lane_kind order[] = {LANE_THREAD, LANE_CAPABILITY, LANE_HASKELL};
	cJSON *list = add_array(r, target, "lanes");

	for (size_t k = 0; k < ARRAY_SIZE(order); k++)
		for (size_t i = 0; export__shows(opts, order[k]) && i < t->lanes[order[k]].n; i++)
			add_lane(r, list, &t->lanes[order[k]].v[i]);
}

static void add_call(struct report *r, cJSON *calls, const struct pic_call *call)
{
	cJSON *o = add_object(r, calls, NULL);

	add_string(r, o, "function", call->function);
	add_name(r, o, "library", call->library);
	add_name(r, o, "caller", call->caller);
	add_bool(r, o, "caller_approximate", call->caller_approximate);
	add_name(r, o, "site", call->site);
	add_bool(r, o, "interruptible", call->interruptible);
	add_u64(r, o, "calls", call->calls);
	add_known(r, o, "wall_ns", call->wall_ns);
	add_known(r, o, "handover_ns", call->handover_ns);
	add_known(r, o, "cpu_ns", call->cpu_ns);
	add_known(r, o, "blocked_ns", call->blocked_ns);
	add_known(r, o, "cap_wait_ns", call->cap_wait_ns);
	add_known(r, o, "min_ns", call->min_ns);
	add_known(r, o, "p50_ns", call->p50_ns);
	add_known(r, o, "p99_ns", call->p99_ns);
	add_known(r, o, "max_ns", call->max_ns);
	add_real(r, o, "quantile_error", call->quantile_error);
	add_u64(r, o, "open_at_start", call->open_at_start);
	add_u64(r, o, "open_at_end", call->open_at_end);
	add_u64(r, o, "open_wall_ns", call->open_wall_ns);
	add_u64(r, o, "abandoned", call->abandoned);
	add_bool(r, o, "exact", call->exact);
	add_real(r, o, "observed_share", call->observed_share);
	add_bool(r, o, "called_back", call->called_back);
}

static void add_unsafe(struct report *r, cJSON *calls, const struct pic_unsafe *call)
{
	cJSON *o = add_object(r, calls, NULL);

	add_string(r, o, "function", call->function);
	add_name(r, o, "library", call->library);
	add_name(r, o, "caller", call->caller);
	add_bool(r, o, "caller_approximate", call->caller_approximate);
	add_u64(r, o, "samples", call->samples);
	add_u64(r, o, "cpu_ns", call->cpu_ns);
	add_u64(r, o, "blocked_ns", call->blocked_ns);
	add_known(r, o, "held_up_gc_ns", call->held_up_gc_ns);
}

static void add_function(struct report *r, cJSON *functions, const struct pic_function *f)
{
	cJSON *o = add_object(r, functions, NULL);

	add_string(r, o, "name", f->name);
	add_name(r, o, "module", f->module);
	add_name(r, o, "package", f->package);
	add_string(r, o, "kind", json__frame_kind(f->kind));
	add_u64(r, o, "self_samples", f->self_samples);
	add_u64(r, o, "total_samples", f->total_samples);
	add_u64(r, o, "self_ns", f->self_ns);
	add_u64(r, o, "total_ns", f->total_ns);
	add_bool(r, o, "approximate", f->approximate);
}

static void add_gc(struct report *r, cJSON *target, const struct pic_target *t)
{
	const struct pic_gc *gc = &t->gc;
	uint64_t missed = pic_target__gcs_missed(t);
	bool seen = gc->known && !gc->inferred, exact = seen && !missed;
	bool observed = gc->observed_ns != 0;
	cJSON *o = add_object(r, target, "gc");

	add_known(r, o, "count", known_if(seen, gc->count));
	add_known(r, o, "missed", known_if(seen && missed != PIC_GCS_UNKNOWN, missed));
	add_real(r, o, "observed_share", gc__observed_share(t));
	add_known(r, o, "pause_ns", known_if(seen, gc->pause_ns));
	add_known(r, o, "pause_at_most_ns",
		  known_if(gc->known && (gc->inferred || exact), gc->pause_ns));
	add_known(r, o, "max_pause_ns", known_if(seen, gc->max_pause_ns));
	add_known(r, o, "observed_ns", known_if(observed, gc->observed_ns));
	add_known(r, o, "observed_count", known_if(observed, gc->observed_count));
	add_known(r, o, "observed_pause_ns", known_if(observed, gc->observed_pause_ns));
	/* a log does not know the OS threads that wait */
	add_known(r, o, "wait_ns", known_if(seen && !session__log_alone(r->pic), gc->wait_ns));
	add(r, o, "exact", gc->known ? cJSON_CreateBool(exact) : cJSON_CreateNull());
}

/* null: the program is not profiled, or no cost centre was seen. */
static void add_cost_centres(struct report *r, cJSON *target, const struct pic_target *t)
{
	cJSON *list;

	if (!t->n_cost_centres) {
		add_null(r, target, "cost_centres");
		return;
	}
	list = add_array(r, target, "cost_centres");
	for (size_t i = 0; i < t->n_cost_centres; i++) {
		const struct pic_cost_centre *c = &t->cost_centres[i];
		cJSON *o = add_object(r, list, NULL);

		add_string(r, o, "label", c->label);
		add_string(r, o, "module", c->module);
		add_string(r, o, "src_loc", c->src_loc);
		add_string(r, o, "kind", c->kind);
		add_u64(r, o, "self_ticks", c->self_ticks);
		add_u64(r, o, "total_ticks", c->total_ticks);
		if (t->alloc.known) {
			add_u64(r, o, "self_bytes", c->self_bytes);
			add_u64(r, o, "total_bytes", c->total_bytes);
		}
		add_string(r, o, "source", c->from_log ? "eventlog" : "memory");
		add_string(r, o, "counted", c->from_samples ? "samples" : "ticks");
	}
}

static void add_names(struct report *r, cJSON *target, const char *title,
		      const struct pic_names *names)
{
	cJSON *o = add_object(r, target, title);

	add_u64(r, o, "ipe", names->ipe);
	add_u64(r, o, "dwarf", names->dwarf);
	add_u64(r, o, "exact", names->exact);
	add_u64(r, o, "nearest", names->nearest);
	add_u64(r, o, "description", names->description);
	add_u64(r, o, "module", names->module);
	add_u64(r, o, "strings", names->strings);
	add_u64(r, o, "archive", names->archive);
	add_u64(r, o, "none", names->none);
}

static void add_stacks(struct report *r, cJSON *target, const struct pic_quality *q)
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
	for (unsigned i = 0; i < PIC_CAUSES; i++) {
		char other[24];

		if (!q->broken[i])
			continue;
		snprintf(other, sizeof(other), "cause_%u", i);
		add_u64(r, broken, broken__name(i) ? broken__name(i) : other, q->broken[i]);
	}
}

/* A cause's name may be arbitrary bytes from a capture. */
static void add_lost(struct report *r, cJSON *lost, const char *cause, uint64_t n)
{
	char *key = utf8__clean(cause);

	if (key)
		add_u64(r, lost, key, n);
	else
		r->failed = true;
	free(key);
}

/* Losses and cost are null if the session's end was not seen; losses also in a damaged capture. */
static void add_own_cost(struct report *r, cJSON *target, const struct pic_target *t)
{
	cJSON *o;

	if (pic_target__lost_known(t)) {
		o = add_object(r, target, "lost");
		for (size_t i = 0; i < t->n_lost; i++)
			add_lost(r, o, t->lost[i].cause, t->lost[i].n);
		add_real(r, target, "lost_share", t->lost_share);
	} else {
		add_null(r, target, "lost");
		add_null(r, target, "lost_share");
	}
	o = add_object(r, target, "cost");
	add_known(r, o, "probe_hits", known_if(t->cost_known, t->probe_hits));
	add_known(r, o, "bpf_ns", known_if(t->cost_known && t->bpf_ns_known, t->bpf_ns));
	add_known(r, o, "trap_ns_estimated", known_if(t->cost_known, t->trap_ns_estimated));
	add_known(r, o, "user_cpu_ns", known_if(t->cost_known, t->user_cpu_ns));
	add_known(r, o, "max_rss_bytes", known_if(t->cost_known, t->max_rss_bytes));
	add_known(r, o, "probes_paused_ns", known_if(t->cost_known, t->probes_paused_ns));
}

static void add_ledger(struct report *r, cJSON *target, const struct pic_target *t)
{
	const struct totals totals = totals__of(r->pic, t);
	cJSON *o, *list;

	/* not known from a log alone */
	if (session__log_alone(r->pic)) {
		add_null(r, target, "ledger");
		return;
	}
	o = add_object(r, target, "ledger");

	add_u64(r, o, "cpu_ns", totals.cpu_ns);
	add_u64(r, o, "wall_ns", totals.wall_ns);
	add_u64(r, o, "without_sample_ns", totals.without_sample_ns);
	add_u64(r, o, "housekeeping_ns", totals.housekeeping_ns);
	list = add_array(r, o, "unknown");
	for (size_t i = 0; i < totals.n_unknown; i++) {
		cJSON *unknown = add_object(r, list, NULL);

		add_string(r, unknown, "frame", totals.unknown[i].frame);
		add_u64(r, unknown, "cpu_ns", totals.unknown[i].cpu_ns);
		add_u64(r, unknown, "off_cpu_ns", totals.unknown[i].off_cpu_ns);
	}
}

static void add_target(struct report *r, cJSON *targets, const struct pic_target *t,
		       const struct export_opts *opts)
{
	cJSON *o = add_object(r, targets, NULL), *list;

	add_identity(r, o, t);
	add_lanes(r, o, t, opts);
	list = add_array(r, o, "safe_calls");
	for (size_t i = 0; i < t->n_calls; i++)
		add_call(r, list, &t->calls[i]);
	list = add_array(r, o, "unsafe_calls");
	for (size_t i = 0; i < t->n_unsafe_calls; i++)
		add_unsafe(r, list, &t->unsafe_calls[i]);
	add_gc(r, o, t);
	json__allocation(r, o, t);
	json__heap(r, o, t);
	list = add_array(r, o, "functions");
	for (size_t i = 0; i < t->n_functions; i++)
		add_function(r, list, &t->functions[i]);
	add_cost_centres(r, o, t);
	json__cost_centre_stacks(r, o, t);
	json__windows(r, o, t);
	add_ledger(r, o, t);
	add_names(r, o, "names", &t->names);
	add_names(r, o, "leaf_names", &t->leaf_names);
	add_stacks(r, o, &t->quality);
	json__eventlog(r, o, t);
	add_own_cost(r, o, t);
	list = add_array(r, o, "missing");
	for (size_t i = 0; i < t->n_missing; i++)
		add_string(r, list, NULL, t->missing[i]);
}

/* ── the report ──────────────────────────────────────────────────────────────────────────── */

static void add_ended(struct report *r, cJSON *root)
{
	cJSON *list = r->session->n_ended ? add_array(r, root, "ended_programs") : NULL;

	for (size_t i = 0; i < r->session->n_ended; i++) {
		const struct pic_ended *ended = &r->session->ended[i];
		cJSON *o = add_object(r, list, NULL), *states;

		add_name(r, o, "exe", ended->exe);
		add_u64(r, o, "processes", ended->processes);
		add_u64(r, o, "threads", ended->threads);
		add_u64(r, o, "cpu_ns", ended->cpu_ns);
		states = add_object(r, o, "states");
		for (unsigned s = 0; s < state__count(LANE_THREAD); s++)
			add_u64(r, states, state__name(LANE_THREAD, s), ended->states_ns[s]);
		add_u64(r, o, "samples", ended->samples);
		add_u64(r, o, "safe_calls", ended->safe_calls);
		add_u64(r, o, "safe_call_ns", ended->safe_call_ns);
		add_u64(r, o, "gcs", ended->gcs);
		add_u64(r, o, "gc_pause_ns", ended->gc_pause_ns);
	}
}

static void add_pushes(struct report *r, cJSON *session)
{
	cJSON *list = r->session->n_pushes ? add_array(r, session, "pushes") : NULL;

	for (size_t i = 0; i < r->session->n_pushes; i++) {
		const struct pic_push *push = &r->session->pushes[i];
		cJSON *o = add_object(r, list, NULL);

		add_string(r, o, "url", push->url);
		add_u64(r, o, "delivered", push->delivered);
		add_u64(r, o, "failures", push->failures);
		add_u64(r, o, "refused", push->refused);
		add_u64(r, o, "rejected_profiles", push->rejected);
		add_u64(r, o, "dropped", push->dropped);
		add_u64(r, o, "queued", push->queued);
	}
}

static void add_window(struct report *r, cJSON *o)
{
	const struct pic_session *session = r->session;
	cJSON *window = add_object(r, o, "window");

	add_u64(r, window, "no", session->window_no);
	add_u64(r, window, "start_unix_ns", session->start_unix_ns);
	add_u64(r, window, "end_unix_ns",
		session->start_unix_ns + (session->end_ns - session->start_ns));
}

static void add_session(struct report *r, cJSON *root, bool window)
{
	const struct pic_session *session = r->session;
	cJSON *o = add_object(r, root, "safescope");

	add_string(r, o, "version", session->version);
	add_int(r, o, "schema", REPORT_SCHEMA);
	o = add_object(r, root, "session");
	add_string(r, o, "mode", session->mode);
	add_u64(r, o, "start_unix_ns", session->start_unix_ns);
	add_time(r, o, "duration_ns", session->end_ns);
	add_known(r, o, "frequency_hz", known_if(session->frequency_hz, session->frequency_hz));
	add_int(r, o, "exit", session->exit_code);
	if (session->bpf_ns_known)
		add_u64(r, o, "bpf_ns", session->bpf_ns);
	if (window)
		add_window(r, o);
	add_pushes(r, o);
}

int json__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct report report = {.pic = pic, .session = picture__session(pic)};
	cJSON *root = cJSON_CreateObject(), *targets;
	char *text = NULL;

	add_session(&report, root, opts->window);
	targets = add_array(&report, root, "targets");
	for (size_t i = 0; i < picture__n_targets(pic); i++)
		add_target(&report, targets, picture__target(pic, i), opts);
	add_ended(&report, root);
	if (!report.failed)
		text = cJSON_Print(root);
	if (text) {
		json__put_text(out, text);
		fputc('\n', out);
	}
	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	cJSON_free(text);
	return export__result(out, 0);
}

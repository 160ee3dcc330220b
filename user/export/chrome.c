/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome's trace event format (JSON), as ui.perfetto.dev and chrome://tracing read it: all lanes of
 * all processes on one screen.
 *
 * A lane is a track of slices in two rows: what state it is in, and below it the function that ran
 * or waited. Idleness is a gap. Times are microseconds with three digits of nanoseconds, from the
 * session's start: a viewer keeps them as doubles. Slices are pairs of events (ph B, E), not
 * complete ones (X): a viewer that adds a duration to a start gets an end that differs in its last
 * bit from the next one's start, and takes neighbours for nested.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chrome.h"
#include "view_each.h"

/* What viewers open in seconds. */
#define MAX_BYTES (UINT64_C(160) << 20)
/* Bytes of an event, but for its stack. */
#define EVENT_BYTES 400
/* Frames that an event's argument names, from the leaf on. */
#define STACK_FRAMES 10

/* ── events ──────────────────────────────────────────────────────────────────────────────── */

/* Pids are below 2^22. */
#define GROUP_STEP  UINT64_C(10000000)
#define REPEAT_STEP UINT64_C(100000000)

uint64_t chrome__pid(const struct chrome *w, uint32_t target_no, enum lane_kind kind)
{
	static const uint64_t offset[LANE_KINDS] = {
		[LANE_CAPABILITY] = GROUP_STEP,
		[LANE_THREAD] = 0,
		[LANE_HASKELL] = 2 * GROUP_STEP,
	};
	pid_t pid = timeline__target(w->tl, target_no)->pid;
	uint64_t repeats = 0;

	for (uint32_t i = 0; i < target_no; i++)
		repeats += timeline__target(w->tl, i)->pid == pid;
	return (uint64_t)pid + offset[kind] + repeats * REPEAT_STEP;
}

uint64_t chrome__tid(const struct lane_view *view)
{
	switch (view->kind) {
	case LANE_CAPABILITY:
		return (uint64_t)view->cap->no + 1;
	case LANE_HASKELL:
		/* a track's number is 32 bits wide in viewers */
		return (uint64_t)view->lane_no + 1;
	default:
		return (uint64_t)view->thread->tid;
	}
}

void chrome__begin(struct chrome *w, char phase, uint64_t pid, uint64_t tid, const char *name)
{
	fputs(w->any ? ",\n" : "\n", w->out);
	w->any = true;
	fprintf(w->out, "{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"name\":", phase,
		pid, tid);
	json__put_string(w->out, name);
}

void chrome__end(struct chrome *w)
{
	fputc_unlocked('}', w->out);
}

void chrome__put_ts(struct chrome *w, uint64_t ns)
{
	uint64_t at = ns > w->views.start_ns ? ns - w->views.start_ns : 0;

	fprintf(w->out, ",\"ts\":%" PRIu64 ".%03u", at / 1000, (unsigned)(at % 1000));
}

/* ── colours ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Names that chrome://tracing has colours for (catapult, base/color_scheme.html). Green runs, red
 * and orange hold others up, yellow waits for a capability, grey waits for the world, blue could
 * run. Perfetto makes colours of the names of slices, and so has its own, as constant.
 */
static const char *colour_of(enum lane_kind kind, unsigned state)
{
	static const char *const thread[ST_MAX] = {
		[ST_HASKELL] = "thread_state_running",
		[ST_UNSAFE_CALL_CPU] = "bad",
		[ST_SAFE_CALL_CPU] = "rail_response",
		[ST_GC_WORK] = "rail_animation",
		[ST_RTS] = "olive",
		[ST_FOREIGN_CPU] = "rail_idle",
		[ST_HASKELL_BLOCKED] = "thread_state_uninterruptible",
		[ST_UNSAFE_CALL_BLOCKED] = "terrible",
		[ST_SAFE_CALL_BLOCKED] = "generic_work",
		[ST_CAP_WAIT] = "yellow",
		[ST_GC_WAIT] = "thread_state_iowait",
		[ST_RTS_BLOCKED] = "grey",
		[ST_FOREIGN_BLOCKED] = "grey",
		[ST_PREEMPTED] = "thread_state_runnable",
		[ST_UNKNOWN] = "black",
	};
	static const char *const cap[CS_MAX] = {
		[CS_HASKELL] = "thread_state_running",
		[CS_UNSAFE_CALL] = "terrible",
		[CS_PREEMPTED] = "thread_state_runnable",
		[CS_GC] = "rail_animation",
		[CS_RTS] = "olive",
		[CS_DISABLED] = "grey",
		[CS_UNKNOWN] = "black",
	};
	static const char *const tso[HS_MAX] = {
		[HS_RUNNING] = "thread_state_running",
		[HS_UNSAFE_CALL] = "terrible",
		[HS_SAFE_CALL] = "rail_response",
		[HS_RUNNABLE] = "thread_state_runnable",
		[HS_BLOCKED_MVAR] = "thread_state_sleeping",
		[HS_BLOCKED_STM] = "thread_state_sleeping",
		[HS_BLOCKED_BLACKHOLE] = "bad",
		[HS_BLOCKED_IO] = "grey",
		[HS_BLOCKED_DELAY] = "grey",
		[HS_BLOCKED_OTHER] = "grey",
		[HS_GC] = "rail_animation",
		[HS_UNKNOWN] = "black",
	};

	return kind == LANE_CAPABILITY ? cap[state]
	       : kind == LANE_HASKELL  ? tso[state]
				       : thread[state];
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

/* The lane as it is walked through: the slices that are open. */
struct walk {
	struct chrome *w;
	const struct lane_view *view;
	uint64_t pid, tid;
	struct span state;    /* neighbours that look alike are one slice */
	struct span function; /* the longest of the slice's parts: its stack is shown */
	const char *name;     /* of the function; NULL: none is open */
	bool open;
};

/* The frames without the state at the leaf, which is the row above. */
static struct tl_stack code_of(const struct timeline *tl, const struct span *span)
{
	struct tl_stack stack = timeline__stack(tl, span->stack);

	while (stack.n && timeline__frame(tl, stack.frames[stack.n - 1])->kind >= TF_STATE)
		stack.n--;
	return stack;
}

static const char *function_of(const struct timeline *tl, const struct span *span)
{
	struct tl_stack stack = code_of(tl, span);
	const struct tl_frame *frame;

	if (!stack.n)
		return NULL;
	frame = timeline__frame(tl, stack.frames[stack.n - 1]);
	return frame->name && *frame->name ? frame->name : "[unknown]";
}

static bool same_state(const struct span *a, const struct span *b)
{
	return a->end_ns == b->start_ns && a->state == b->state && a->tso == b->tso &&
	       a->cap == b->cap;
}

static void put_stack(struct chrome *w, const struct span *span)
{
	struct tl_stack stack = code_of(w->tl, span);
	uint32_t end = stack.n > STACK_FRAMES ? stack.n - STACK_FRAMES : 0;

	fputs(",\"args\":{\"stack\":[", w->out);
	for (uint32_t i = stack.n; i > end; i--) {
		if (i < stack.n)
			fputc_unlocked(',', w->out);
		json__put_string(w->out, timeline__frame(w->tl, stack.frames[i - 1])->name);
	}
	if (end)
		fprintf(w->out, ",\"%" PRIu32 " more\"", end);
	fputs("]}", w->out);
}

static void put_args(struct chrome *w, const struct lane_view *view, const struct span *span)
{
	fprintf(w->out, ",\"args\":{\"state\":\"%s\",\"exact\":%s",
		view__state_name(view->kind, span->state), span->exact ? "true" : "false");
	if (view->kind == LANE_CAPABILITY && span->tso)
		fprintf(w->out, ",\"thread\":%" PRIu64, span->tso);
	if (view->kind != LANE_CAPABILITY && span->cap != UINT32_MAX)
		fprintf(w->out, ",\"capability\":%" PRIu32, span->cap);
	if (span->tid)
		fprintf(w->out, ",\"os_thread\":%d", (int)span->tid);
	fputc_unlocked('}', w->out);
}

/* A capability that runs Haskell is told by the thread that it runs. */
static void title_of(const struct chrome *w, const struct lane_view *view, const struct span *span,
		     char *out, size_t size)
{
	const char *label;

	if (view->kind != LANE_CAPABILITY || span->state != CS_HASKELL || !span->tso) {
		snprintf(out, size, "%s", view__state_title(view->kind, span->state));
		return;
	}
	label = views__label(&w->views, view->target_no, span->tso);
	snprintf(out, size, "thread %" PRIu64 "%s%.200s", span->tso, *label ? " " : "", label);
}

static void close_function(struct walk *walk, uint64_t at_ns)
{
	if (!walk->name)
		return;
	chrome__begin(walk->w, 'E', walk->pid, walk->tid, walk->name);
	chrome__put_ts(walk->w, at_ns);
	put_stack(walk->w, &walk->function);
	chrome__end(walk->w);
	walk->name = NULL;
}

static void close_state(struct walk *walk)
{
	char title[256];

	if (!walk->open)
		return;
	close_function(walk, walk->state.end_ns);
	title_of(walk->w, walk->view, &walk->state, title, sizeof(title));
	chrome__begin(walk->w, 'E', walk->pid, walk->tid, title);
	chrome__put_ts(walk->w, walk->state.end_ns);
	put_args(walk->w, walk->view, &walk->state);
	chrome__end(walk->w);
	walk->open = false;
}

static void open_state(struct walk *walk, const struct span *span)
{
	static const char *const categories[LANE_KINDS] = {
		[LANE_CAPABILITY] = "capability",
		[LANE_THREAD] = "thread",
		[LANE_HASKELL] = "haskell",
	};
	const char *colour = colour_of(walk->view->kind, span->state);
	char title[256];

	walk->state = *span;
	walk->open = true;
	title_of(walk->w, walk->view, span, title, sizeof(title));
	chrome__begin(walk->w, 'B', walk->pid, walk->tid, title);
	fprintf(walk->w->out, ",\"cat\":\"%s\"", categories[walk->view->kind]);
	chrome__put_ts(walk->w, span->start_ns);
	if (colour)
		fprintf(walk->w->out, ",\"cname\":\"%s\"", colour);
	chrome__end(walk->w);
}

static void take_function(struct walk *walk, const struct span *span)
{
	const char *name = function_of(walk->w->tl, span);
	uint64_t ns = span->end_ns - span->start_ns;

	if (walk->name && name && !strcmp(walk->name, name)) {
		if (ns > walk->function.end_ns - walk->function.start_ns)
			walk->function = *span;
		return;
	}
	close_function(walk, span->start_ns);
	if (!name)
		return;
	walk->name = name;
	walk->function = *span;
	chrome__begin(walk->w, 'B', walk->pid, walk->tid, name);
	fputs(",\"cat\":\"function\"", walk->w->out);
	chrome__put_ts(walk->w, span->start_ns);
	chrome__end(walk->w);
}

static void on_span(void *ctx, const struct span *span)
{
	struct walk *walk = ctx;

	if (walk->open && !span->idle && same_state(&walk->state, span)) {
		walk->state.end_ns = span->end_ns;
		walk->state.exact = walk->state.exact && span->exact;
	} else {
		close_state(walk);
		if (span->idle)
			return;
		open_state(walk, span);
	}
	take_function(walk, span);
}

static void put_lane(struct chrome *w, const struct lane_view *view, size_t rank)
{
	uint64_t pid = chrome__pid(w, view->target_no, view->kind), tid = chrome__tid(view);
	struct walk walk = {.w = w, .view = view, .pid = pid, .tid = tid};
	char name[224];

	view__name(view, false, name, sizeof(name));
	chrome__begin(w, 'M', pid, tid, "thread_name");
	fputs(",\"args\":{\"name\":", w->out);
	json__put_string(w->out, name);
	fputs("}", w->out);
	chrome__end(w);
	chrome__begin(w, 'M', pid, tid, "thread_sort_index");
	fprintf(w->out, ",\"args\":{\"sort_index\":%zu}", rank);
	chrome__end(w);
	view__each(view, w->grain_ns, on_span, &walk);
	close_state(&walk);
}

/* ── groups ──────────────────────────────────────────────────────────────────────────────── */

static void put_group(struct chrome *w, uint32_t target_no, enum lane_kind kind)
{
	static const char *const what[LANE_KINDS] = {
		[LANE_CAPABILITY] = "capabilities",
		[LANE_THREAD] = "OS threads",
		[LANE_HASKELL] = "Haskell threads",
	};
	const struct tl_target *target = timeline__target(w->tl, target_no);
	uint64_t pid = chrome__pid(w, target_no, kind);
	char name[96];

	snprintf(name, sizeof(name), "%.32s %d: %s", target->comm ? target->comm : "",
		 (int)target->pid, what[kind]);
	chrome__begin(w, 'M', pid, 0, "process_name");
	fputs(",\"args\":{\"name\":", w->out);
	json__put_string(w->out, name);
	fputs("}", w->out);
	chrome__end(w);
	chrome__begin(w, 'M', pid, 0, "process_sort_index");
	fprintf(w->out, ",\"args\":{\"sort_index\":%" PRIu32 "}",
		target_no * LANE_KINDS + (uint32_t)kind);
	chrome__end(w);
}

static bool has_group(const struct tl_target *target, enum lane_kind kind)
{
	switch (kind) {
	case LANE_CAPABILITY:
		return target->n_cap_lanes || target->n_gcs || target->n_counters ||
		       target->n_marks;
	case LANE_HASKELL:
		return target->n_tso_lanes;
	default:
		return target->n_lanes;
	}
}

static uint64_t cost(const struct timeline *tl, const struct span *span)
{
	struct tl_stack stack = code_of(tl, span);

	if (span->idle)
		return 0;
	return EVENT_BYTES +
	       (stack.n ? EVENT_BYTES + 24 * (uint64_t)MIN(stack.n, STACK_FRAMES) : 0);
}

static int prepare(struct chrome *w, unsigned lanes)
{
	char grain[32];
	int err = views__collect(w->tl, lanes, &w->views);

	if (err)
		return err;
	w->grain_ns = views__grain(w->tl, &w->views, MAX_BYTES, cost);
	if (w->grain_ns) {
		human__duration(grain, sizeof(grain), w->grain_ns);
		log_warn("chrome: too many stretches for a file that opens: those under %s are "
			 "merged",
			 grain);
	}
	return 0;
}

static void put_tail(struct chrome *w)
{
	const struct tl_session *session = timeline__session(w->tl);

	fputs("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"exporter\":\"safescoped ",
	      w->out);
	/* inside of a string already */
	for (const char *p = session->version; p && *p; p++)
		if (*p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\')
			fputc_unlocked(*p, w->out);
	fprintf(w->out,
		"\",\"start_unix_ns\":\"%" PRIu64 "\",\"merged_under_ns\":\"%" PRIu64 "\"}}\n",
		session->start_unix_ns, w->grain_ns);
}

static int chrome__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	struct chrome w = {.out = out, .tl = tl};
	uint32_t n_targets = (uint32_t)timeline__n_targets(tl);
	int err;

	if (!timeline__session(tl))
		return -EINVAL;
	err = prepare(&w, opts->lanes);
	if (err)
		return err;
	fputs("{\"traceEvents\":[", out);
	for (uint32_t t = 0; t < n_targets; t++)
		for (int kind = 0; kind < LANE_KINDS; kind++)
			if (has_group(timeline__target(tl, t), (enum lane_kind)kind))
				put_group(&w, t, (enum lane_kind)kind);
	for (size_t i = 0; i < w.views.n; i++)
		put_lane(&w, &w.views.v[i], i);
	for (uint32_t t = 0; !err && t < n_targets; t++)
		err = chrome__put_marks(&w, t);
	put_tail(&w);
	if (!err && ferror(out))
		err = -EIO;
	views__free(&w.views);
	return err;
}

const struct export_format export_chrome = {
	.name = "chrome",
	.suffix = ".trace.json",
	.write = chrome__write,
};

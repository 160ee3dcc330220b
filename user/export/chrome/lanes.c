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
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chrome_priv.h"
#include "export/faces.h"

/* What viewers open in seconds. */
#define MAX_BYTES (UINT64_C(160) << 20)
/* Bytes of an event, but for its stack. */
#define EVENT_BYTES 400
/* Frames that an event's argument names, from the leaf on. */
#define STACK_FRAMES 10

static enum chrome_group group_of(const struct view *view)
{
	return view->lane->housekeeping ? GROUP_IDLE : (enum chrome_group)view->lane->kind;
}

static struct chrome_track track_of(const struct chrome *w, const struct view *view)
{
	struct chrome_track at = {.pid = chrome__pid(w, view->target_no, group_of(view))};

	if (view->lane->kind == LANE_THREAD)
		at.tid = (uint64_t)view->lane->tid;
	else
		/* a track's number is 32 bits wide in viewers, a Haskell thread's is not */
		at.tid = (uint64_t)(view->lane->kind == LANE_CAPABILITY ? view->lane->cap
									: view->lane_no) +
			 1;
	return at;
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

/* The lane as it is drawn: the slices that are open. */
struct drawing {
	struct chrome *w;
	const struct view *view;
	struct chrome_track at;
	struct pic_slice state;	   /* neighbours that look alike are one slice */
	struct pic_slice function; /* the longest of the slice's parts: its stack is shown */
	const char *name;	   /* of the function; NULL: none is open */
	bool open;
};

/* The frames without the state at the leaf, which is the row above. */
static struct pic_stack code_of(const struct picture *pic, const struct pic_slice *slice)
{
	struct pic_stack stack = picture__stack(pic, slice->stack);

	while (stack.n && picture__frame(pic, stack.frames[stack.n - 1])->kind >= TF_STATE)
		stack.n--;
	return stack;
}

static const char *function_of(const struct picture *pic, const struct pic_slice *slice)
{
	struct pic_stack stack = code_of(pic, slice);

	return stack.n ? frame__name(picture__frame(pic, stack.frames[stack.n - 1])) : NULL;
}

/* Only a capability's slices differ by the Haskell thread. */
static bool same_state(const struct drawing *d, const struct pic_slice *slice)
{
	const struct pic_slice *last = &d->state;

	return d->open && last->end_ns == slice->start_ns && last->state == slice->state &&
	       last->cap == slice->cap &&
	       (d->view->lane->kind != LANE_CAPABILITY || last->tso == slice->tso);
}

static void put_stack(struct chrome *w, const struct pic_slice *slice)
{
	struct pic_stack stack = code_of(w->pic, slice);
	uint32_t end = stack.n > STACK_FRAMES ? stack.n - STACK_FRAMES : 0;

	fputs(",\"args\":{\"stack\":[", w->out);
	for (uint32_t i = stack.n; i > end; i--) {
		if (i < stack.n)
			fputc_unlocked(',', w->out);
		json__put_string(w->out, picture__frame(w->pic, stack.frames[i - 1])->name);
	}
	if (end)
		fprintf(w->out, ",\"%" PRIu32 " more\"", end);
	fputs("]}}", w->out);
}

static void put_args(struct chrome *w, enum lane_kind kind, const struct pic_slice *slice)
{
	fprintf(w->out, ",\"args\":{\"state\":\"%s\",\"exact\":%s", state__name(kind, slice->state),
		slice->exact ? "true" : "false");
	if (kind == LANE_CAPABILITY && slice->tso)
		fprintf(w->out, ",\"thread\":%" PRIu64, slice->tso);
	if (kind != LANE_CAPABILITY && slice->cap != NO_CAP)
		fprintf(w->out, ",\"capability\":%u", slice->cap);
	if (kind != LANE_THREAD && slice->tid)
		fprintf(w->out, ",\"os_thread\":%d", (int)slice->tid);
	fputs("}}", w->out);
}

/* A capability that runs Haskell is named after the thread that it runs. */
static struct view_name title_of(const struct drawing *d, const struct pic_slice *slice)
{
	enum lane_kind kind = d->view->lane->kind;
	struct view_name title;

	if (kind == LANE_CAPABILITY && slice->state == CS_HASKELL && slice->tso)
		return views__thread(&d->w->views, d->view->target_no, slice->tso);
	snprintf(title.s, sizeof(title.s), "%s", state__title(kind, slice->state));
	return title;
}

static void put_colour(const struct drawing *d, unsigned state)
{
	const char *colour = face_looks[face__of(d->view->lane->kind, state)].chrome;

	if (colour)
		fprintf(d->w->out, ",\"cname\":\"%s\"", colour);
}

static void close_function(struct drawing *d, uint64_t at_ns)
{
	if (!d->name)
		return;
	chrome__begin(d->w, 'E', d->at, d->name, "", at_ns);
	put_stack(d->w, &d->function);
	d->name = NULL;
}

static void close_state(struct drawing *d)
{
	if (!d->open)
		return;
	close_function(d, d->state.end_ns);
	chrome__begin(d->w, 'E', d->at, title_of(d, &d->state).s, "", d->state.end_ns);
	/* catapult takes the end's colour, and without one gives the slice its own */
	put_colour(d, d->state.state);
	put_args(d->w, d->view->lane->kind, &d->state);
	d->open = false;
}

static void open_state(struct drawing *d, const struct pic_slice *slice)
{
	static const char *const categories[LANE_KINDS] = {
		[LANE_CAPABILITY] = ",\"cat\":\"capability\"",
		[LANE_THREAD] = ",\"cat\":\"thread\"",
		[LANE_HASKELL] = ",\"cat\":\"haskell\"",
	};
	enum lane_kind kind = d->view->lane->kind;

	d->state = *slice;
	d->open = true;
	chrome__begin(d->w, 'B', d->at, title_of(d, slice).s, categories[kind], slice->start_ns);
	put_colour(d, slice->state);
	fputc_unlocked('}', d->w->out);
}

static void take_function(struct drawing *d, const struct pic_slice *slice)
{
	const char *name = function_of(d->w->pic, slice);
	uint64_t ns = slice->end_ns - slice->start_ns;

	if (d->name && name && !strcmp(d->name, name)) {
		if (ns > d->function.end_ns - d->function.start_ns)
			d->function = *slice;
		return;
	}
	close_function(d, slice->start_ns);
	if (!name)
		return;
	d->name = name;
	d->function = *slice;
	chrome__begin(d->w, 'B', d->at, name, ",\"cat\":\"function\"", slice->start_ns);
	fputc_unlocked('}', d->w->out);
}

static void put_slice(struct drawing *d, const struct pic_slice *slice)
{
	if (slice__is_gap(d->view->lane->kind, slice)) {
		close_state(d);
		return;
	}
	if (same_state(d, slice)) {
		d->state.end_ns = slice->end_ns;
		d->state.exact = d->state.exact && slice->exact;
	} else {
		close_state(d);
		open_state(d, slice);
	}
	take_function(d, slice);
}

static void put_lane(struct chrome *w, const struct view *view, size_t rank)
{
	struct walk walk = {.lane = view->lane, .grain_ns = w->views.grain_ns};
	struct drawing d = {.w = w, .view = view, .at = track_of(w, view)};
	struct pic_slice slice;

	chrome__name(w, d.at, "thread_name", view__name(view, false).s);
	chrome__order(w, d.at, "thread_sort_index", (int64_t)rank);
	while (walk__next(&walk, &slice))
		put_slice(&d, &slice);
	close_state(&d);
}

/* ── groups ──────────────────────────────────────────────────────────────────────────────── */

/* `groups`: a bit for each that has lanes; place: among the processes. */
static void put_groups(struct chrome *w, uint32_t target_no, unsigned groups, uint32_t place)
{
	static const char *const what[GROUPS] = {
		[GROUP_CAPABILITIES] = "capabilities",
		[GROUP_THREADS] = "OS threads",
		[GROUP_HASKELL] = "Haskell threads",
		[GROUP_IDLE] = "idle OS threads",
	};
	const struct pic_target *target = picture__target(w->pic, target_no);
	int64_t rank = (int64_t)place * LANE_KINDS;

	if (target->n_gcs || target->n_counters || target->n_marks)
		groups |= 1U << GROUP_CAPABILITIES;
	for (unsigned g = 0; g < GROUPS; g++) {
		struct chrome_track at = {chrome__pid(w, target_no, (enum chrome_group)g), 0};
		char name[96];

		if (!(groups >> g & 1))
			continue;
		snprintf(name, sizeof(name), "%.32s %d: %s", or_empty(target->comm),
			 (int)target->pid, what[g]);
		chrome__name(w, at, "process_name", name);
		/* the idle ones after the groups of all processes */
		chrome__order(w, at, "process_sort_index",
			      g == GROUP_IDLE ? INT32_MAX / 2 + rank : rank + g);
	}
}

struct place {
	uint64_t cpu_ns;
	uint32_t target_no;
};

static int by_cpu(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	return CMP(b->cpu_ns, a->cpu_ns) ?: CMP(a->target_no, b->target_no);
}

/* The processes that used the CPU most come first. */
static void order_processes(const struct picture *pic, struct place *places, uint32_t n)
{
	for (uint32_t t = 0; t < n; t++) {
		const struct pic_lanes *threads = &picture__target(pic, t)->lanes[LANE_THREAD];

		places[t].target_no = t;
		for (size_t i = 0; i < threads->n; i++)
			if (threads->v[i].cpu_ns != UINT64_MAX)
				places[t].cpu_ns += threads->v[i].cpu_ns;
	}
	qsort(places, n, sizeof(*places), by_cpu);
}

static int put_all_groups(struct chrome *w)
{
	uint32_t n = (uint32_t)picture__n_targets(w->pic);
	uint8_t *groups = calloc(n + 1, sizeof(*groups));
	struct place *places = calloc(n + 1, sizeof(*places));

	if (!groups || !places) {
		free(groups);
		free(places);
		return -ENOMEM;
	}
	order_processes(w->pic, places, n);
	for (size_t i = 0; i < w->views.n; i++)
		groups[w->views.v[i].target_no] |= (uint8_t)(1U << group_of(&w->views.v[i]));
	for (uint32_t i = 0; i < n; i++)
		put_groups(w, places[i].target_no, groups[places[i].target_no], i);
	free(places);
	free(groups);
	return 0;
}

static uint64_t cost(const struct picture *pic, enum lane_kind kind, const struct pic_slice *slice)
{
	struct pic_stack stack = code_of(pic, slice);

	if (slice__is_gap(kind, slice))
		return 0;
	return EVENT_BYTES +
	       (stack.n ? EVENT_BYTES + 24 * (uint64_t)MIN(stack.n, STACK_FRAMES) : 0);
}

static void put_tail(struct chrome *w)
{
	const struct pic_session *session = picture__session(w->pic);
	uint64_t merged = w->views.grain_ns;

	for (size_t i = 0; i < w->views.n; i++)
		merged = MAX(merged, w->views.v[i].lane->merged_ns);
	fputs("\n],\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"exporter\":\"safescoped ",
	      w->out);
	/* inside of a string already */
	for (const char *p = or_empty(session->version); *p; p++)
		if (*p >= ' ' && *p < 0x7f && *p != '"' && *p != '\\')
			fputc_unlocked(*p, w->out);
	fprintf(w->out,
		"\",\"start_unix_ns\":\"%" PRIu64 "\",\"merged_under_ns\":\"%" PRIu64 "\"}}\n",
		session->start_unix_ns, merged);
}

int chrome__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct chrome w = {.out = out, .pic = pic};
	uint32_t n_targets = (uint32_t)picture__n_targets(pic);
	int err = views__collect(pic, &w.views);

	if (err)
		return err;
	views__keep(&w.views, opts);
	views__limit(&w.views, pic, MAX_BYTES, cost, "chrome", "");
	fputs("{\"traceEvents\":[", out);
	err = put_all_groups(&w);
	for (size_t i = 0; i < w.views.n; i++)
		put_lane(&w, &w.views.v[i], i);
	for (uint32_t t = 0; !err && t < n_targets; t++)
		err = chrome__put_marks(&w, t, export__shows(opts, LANE_CAPABILITY));
	put_tail(&w);
	views__free(&w.views);
	return export__result(out, err);
}

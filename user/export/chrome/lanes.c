/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chrome's trace event format (JSON), as read by ui.perfetto.dev and chrome://tracing: all lanes of
 * all processes on one screen.
 *
 * A lane is a track of slices in two rows: its state, and below it the function that ran or waited.
 * Idleness is a gap. Times are microseconds with three digits of nanoseconds, from the session's
 * start, since viewers keep them as doubles. Slices are complete events (ph X). Their ends may
 * differ from the next one's start in the last bit; catapult therefore compares in the unit of
 * `displayTimeUnit`, and Perfetto uses whole nanoseconds.
 *
 * A slice's stack is written twice: complete and shared (stacks.c) for catapult, and its innermost
 * frames as the slice's own arguments for Perfetto, which reads nothing else.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chrome_priv.h"
#include "export/totals.h"

/* A size that viewers open within seconds. */
#define MAX_BYTES (UINT64_C(90) << 20)
/* Average sizes of a slice and of a name. */
#define EVENT_BYTES 155
#define NAME_BYTES  26

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
		/* track numbers are 32 bits wide in viewers, Haskell thread ids are not */
		at.tid = (uint64_t)(view->lane->kind == LANE_CAPABILITY ? view->lane->cap
									: view->lane_no) +
			 1;
	return at;
}

/* ── lanes ───────────────────────────────────────────────────────────────────────────────── */

/* A slice in the lower row. */
struct function {
	const char *name;
	uint64_t start_ns, end_ns;
	struct pic_slice longest; /* of its parts; the stack of this one is shown */
};

/*
 * The state of drawing a lane: the currently open state. It is written with all its functions once
 * its end is known, and before them: viewers take the first of two slices that begin together for
 * the outer one.
 */
struct drawing {
	struct chrome *w;
	const struct view *view;
	struct chrome_track at;
	struct pic_slice state; /* neighbours that look alike are merged into it */
	bool open;
	struct function *functions; /* within the open state */
	size_t n, cap;
};

/* The stack's frames without the state at the leaf, which is the upper row. */
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

/* The Haskell thread distinguishes only a capability's slices. */
static bool same_state(const struct drawing *d, const struct pic_slice *slice)
{
	const struct pic_slice *last = &d->state;

	return d->open && last->end_ns == slice->start_ns && last->state == slice->state &&
	       last->cap == slice->cap &&
	       (d->view->lane->kind != LANE_CAPABILITY || last->tso == slice->tso);
}

/* Writes `sf`, and the innermost callers as an argument. */
static void put_stack(struct chrome *w, const struct pic_slice *slice)
{
	struct pic_stack stack = code_of(w->pic, slice);

	chrome__put_stack(w, stack);
	if (stack.n > 1) {
		fputs(",\"args\":{", w->out);
		chrome__put_callers(w, stack);
		fputc_unlocked('}', w->out);
	}
	fputc_unlocked('}', w->out);
}

static void put_args(const struct drawing *d, bool titled)
{
	enum lane_kind kind = d->view->lane->kind;
	const struct pic_slice *slice = &d->state;
	FILE *out = d->w->out;

	fprintf(out, ",\"args\":{\"exact\":%s", slice->exact ? "true" : "false");
	if (!titled)
		fprintf(out, ",\"state\":\"%s\"", state__title(kind, slice->state));
	if (kind == LANE_CAPABILITY && slice->tso)
		fprintf(out, ",\"thread\":%" PRIu64, slice->tso);
	if (kind != LANE_CAPABILITY && slice->cap != NO_CAP)
		fprintf(out, ",\"capability\":%u", slice->cap);
	if (kind != LANE_THREAD && slice->tid)
		fprintf(out, ",\"os_thread\":%d", (int)slice->tid);
	fputs("}}", out);
}

static void close_state(struct drawing *d)
{
	const struct pic_slice *state = &d->state;
	enum lane_kind kind = d->view->lane->kind;
	/* a capability's slice of Haskell code is named after the thread that it runs */
	bool titled = kind != LANE_CAPABILITY || state->state != CS_HASKELL || !state->tso;

	if (!d->open)
		return;
	chrome__slice(d->w, d->at,
		      titled ? state__title(kind, state->state)
			     : views__thread(&d->w->views, d->view->target_no, state->tso).s,
		      state->start_ns, state->end_ns);
	chrome__put_colour(d->w, chrome__colour(kind, state->state));
	put_args(d, titled);
	for (size_t i = 0; i < d->n; i++) {
		const struct function *f = &d->functions[i];

		chrome__slice(d->w, d->at, f->name, f->start_ns, f->end_ns);
		put_stack(d->w, &f->longest);
	}
	d->n = 0;
	d->open = false;
}

static void take_function(struct drawing *d, const struct pic_slice *slice)
{
	const char *name = function_of(d->w->pic, slice);
	struct function *last = d->n ? &d->functions[d->n - 1] : NULL;
	int err;

	if (!name)
		return;
	if (last && last->end_ns == slice->start_ns && !strcmp(last->name, name)) {
		last->end_ns = slice->end_ns;
		if (slice->end_ns - slice->start_ns > last->longest.end_ns - last->longest.start_ns)
			last->longest = *slice;
		return;
	}
	err = ARRAY_RESERVE(d->functions, d->cap, d->n + 1, EXPORT_MAX_ENTRIES);
	if (err)
		d->w->err = err;
	else
		d->functions[d->n++] =
			(struct function){name, slice->start_ns, slice->end_ns, *slice};
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
		d->state = *slice;
		d->open = true;
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
	free(d.functions);
}

/* ── groups ──────────────────────────────────────────────────────────────────────────────── */

/* `groups`: a bit for each group that has lanes; `place`: the target's position among the
 * processes. */
static void put_groups(struct chrome *w, uint32_t target_no, unsigned groups, uint32_t place)
{
	static const char *const what[GROUPS] = {
		[GROUP_CAPABILITIES] = "capabilities",
		[GROUP_THREADS] = "OS threads",
		[GROUP_HASKELL] = "Haskell threads",
		[GROUP_IDLE] = "idle OS threads",
	};
	const struct pic_target *target = picture__target(w->pic, target_no);
	const struct pic_target_place of = pic_target__place(target);
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
		if (*of.s)
			chrome__labels(w, at, of.s + strlen(", "));
		/* idle threads come after the groups of all processes */
		chrome__order(w, at, "process_sort_index",
			      g == GROUP_IDLE ? INT32_MAX / 2 + rank : rank + g);
	}
}

static int put_all_groups(struct chrome *w)
{
	uint32_t n = (uint32_t)picture__n_targets(w->pic), *order;
	uint8_t *groups = calloc(n + 1, sizeof(*groups));
	int err = groups ? totals__order(w->pic, &order) : -ENOMEM;

	if (!err) {
		for (size_t i = 0; i < w->views.n; i++)
			groups[w->views.v[i].target_no] |=
				(uint8_t)(1U << group_of(&w->views.v[i]));
		for (uint32_t i = 0; i < n; i++)
			put_groups(w, order[i], groups[order[i]], i);
		free(order);
	}
	free(groups);
	return err;
}

static uint64_t cost(const struct picture *pic, enum lane_kind kind, const struct pic_slice *slice)
{
	struct pic_stack stack = code_of(pic, slice);

	if (slice__is_gap(kind, slice))
		return 0;
	return EVENT_BYTES +
	       (stack.n ? EVENT_BYTES + NAME_BYTES * (uint64_t)MIN(stack.n - 1, CHROME_CALLERS)
			: 0);
}

static void put_tail(struct chrome *w)
{
	const struct pic_session *session = picture__session(w->pic);
	uint64_t merged = w->views.grain_ns;

	for (size_t i = 0; i < w->views.n; i++)
		merged = MAX(merged, w->views.v[i].lane->merged_ns);
	fputs("\n],\n", w->out);
	chrome__put_stacks(w);
	fputs(",\n\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"exporter\":\"safescoped ", w->out);
	/* already inside a JSON string */
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
	uint64_t marks;
	int err = views__collect(pic, &w.views);

	if (err)
		return err;
	views__keep(&w.views, opts);
	marks = chrome__marks_bytes(&w, export__shows(opts, LANE_CAPABILITY));
	views__limit(&w.views, pic, MAX_BYTES - MIN(marks, MAX_BYTES / 2), cost, "chrome", "");
	fputs("{\"traceEvents\":[", out);
	err = put_all_groups(&w);
	for (size_t i = 0; i < w.views.n && !err; i++) {
		put_lane(&w, &w.views.v[i], i);
		err = w.err;
	}
	for (uint32_t t = 0; !err && t < n_targets; t++)
		err = chrome__put_marks(&w, t, export__shows(opts, LANE_CAPABILITY));
	put_tail(&w);
	chrome__free_stacks(&w);
	views__free(&w.views);
	return export__result(out, err);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope's own format (https://www.speedscope.app/file-format-schema.json): profiles of all
 * threads, added up by stack; one for each kind of lanes, added up by lane; and one for each
 * capability, OS thread and Haskell thread in time order. In a lane's profile the top row is the
 * state, with a colour of its own.
 *
 * All profiles are `sampled`. In speedscope an empty stack is a gap on the time axis, which is what
 * an idle thread should be; its importer drops samples of weight zero, so none is written. Its
 * numbers are doubles: times count from the session's start, not from the boot.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "balance.h"
#include "base/hash.h"
#include "speedscope_priv.h"

/* Browsers hold a file as one string of at most 512 MB, and become sluggish long before that. */
#define MAX_BYTES (UINT64_C(160) << 20)

/* ── frames ──────────────────────────────────────────────────────────────────────────────── */

static void put_frame(struct speedscope *w, uint32_t index)
{
	const struct pic_frame *frame = picture__frame(w->pic, index);
	size_t len;
	uint32_t line = src__line(frame->src, &len);
	char file[4096];

	fputs(index ? ",\n{\"name\":" : "\n{\"name\":", w->out);
	json__put_string(w->out, frame__name(frame));
	/* the line is one of the source file, which is another module's if code was inlined */
	snprintf(file, sizeof(file), "%.*s", (int)MIN(len, sizeof(file)), frame->src);
	if (*file || *frame->file) {
		fputs(",\"file\":", w->out);
		json__put_string(w->out, *file ? file : frame->file);
	}
	if (line)
		fprintf(w->out, ",\"line\":%" PRIu32, line);
	fputc('}', w->out);
}

/* ── frames that are no code: states, Haskell threads, capabilities ──────────────────────── */

/*
 * The second row from the top shows the Haskell thread in a capability's lane, and the capability
 * in a Haskell thread's lane.
 */
struct extra_key {
	uint64_t what;	 /* TSO id, capability number */
	uint32_t target; /* UINT32_MAX: a capability */
	uint32_t pad;
};

struct extra_frame {
	UT_hash_handle hh;
	struct extra_key key;
	uint32_t index;
};

/* speedscope counts and colours by frame: a million threads would be of no use. */
#define MAX_EXTRAS 65536

static bool extra_of(const struct view *view, const struct pic_slice *slice, struct extra_key *ret)
{
	*ret = (struct extra_key){.what = slice->tso, .target = view->target_no};
	if (view->lane->kind == LANE_CAPABILITY)
		return slice->tso != 0;
	if (view->lane->kind != LANE_HASKELL || slice->cap == NO_CAP)
		return false;
	*ret = (struct extra_key){.what = slice->cap, .target = UINT32_MAX};
	return true;
}

static const struct extra_frame *find_extra(const struct speedscope *w, const struct extra_key *key)
{
	const struct extra_frame *extra;

	HASH_FIND(hh, w->extras, key, sizeof(*key), extra);
	return extra;
}

/* Numbers what a slice shows next to its state, in order of first use. */
static int number_slice(struct speedscope *w, const struct view *view,
			const struct pic_slice *slice)
{
	struct extra_frame *extra;
	struct extra_key key;
	int err;

	if (slice__is_gap(view->lane->kind, slice) || !extra_of(view, slice, &key) ||
	    find_extra(w, &key) || HASH_COUNT(w->extras) >= MAX_EXTRAS)
		return 0;
	extra = calloc(1, sizeof(*extra));
	if (!extra)
		return -ENOMEM;
	extra->key = key;
	err = HASH_INSERT(w->extras, key, sizeof(extra->key), extra);
	if (!err)
		extra->index = w->next_frame++;
	return err;
}

static void note_state(struct speedscope *w, enum lane_kind kind, const struct pic_slice *slice)
{
	uint32_t *frame = &w->state_frames[kind][slice->state];

	if (*frame == UINT32_MAX && !slice__is_gap(kind, slice))
		*frame = UINT32_MAX - 1;
}

/* Marks the states in which a lane is drawn and that its account has. */
static void note_states(struct speedscope *w, const struct pic_lane *lane)
{
	for (unsigned s = 0; s < state__count(lane->kind); s++)
		if (lane->states_ns[s])
			note_state(w, lane->kind, &(struct pic_slice){.state = (uint8_t)s});
	for (size_t i = 0; i < lane->n_rows; i++)
		note_state(w, lane->kind,
			   &(struct pic_slice){.state = lane->rows[i].state,
					       .stack = lane->rows[i].stack});
}

static bool same_state(enum lane_kind a, unsigned s, enum lane_kind b, unsigned t)
{
	return !strcmp(state__title(a, s), state__title(b, t)) &&
	       !strcmp(state__name(a, s), state__name(b, t));
}

/* States that look alike in different kinds of lanes share one frame. */
static void number_state(struct speedscope *w, enum lane_kind kind, unsigned state)
{
	for (unsigned k = 0; k <= (unsigned)kind; k++)
		for (unsigned s = 0; s < state__count((enum lane_kind)k); s++) {
			if (k == (unsigned)kind && s == state)
				break;
			if (w->state_frames[k][s] < UINT32_MAX - 1 &&
			    same_state((enum lane_kind)k, s, kind, state)) {
				w->state_frames[kind][state] = w->state_frames[k][s];
				return;
			}
		}
	w->state_frames[kind][state] = w->next_frame++;
}

static int number_extras(struct speedscope *w)
{
	const struct pic_lane *other;
	struct undrawn at = {0};
	int err = 0;

	memset(w->state_frames, 0xff, sizeof(w->state_frames));
	for (size_t i = 0; i < w->views.n; i++) {
		const struct view *view = &w->views.v[i];
		struct walk walk = {.lane = view->lane, .grain_ns = w->views.grain_ns};
		struct pic_slice slice;

		note_states(w, view->lane);
		while (!err && walk__next(&walk, &slice)) {
			note_state(w, view->lane->kind, &slice);
			err = number_slice(w, view, &slice);
		}
	}
	while ((other = speedscope__undrawn(w, &at)))
		note_states(w, other);
	for (unsigned k = 0; k < LANE_KINDS; k++)
		for (unsigned s = 0; s < state__count((enum lane_kind)k); s++)
			if (w->state_frames[k][s] == UINT32_MAX - 1)
				number_state(w, (enum lane_kind)k, s);
	return err;
}

static void put_extra_frame(struct speedscope *w, const struct extra_frame *extra)
{
	if (extra->key.target == UINT32_MAX) {
		fprintf(w->out, "{\"name\":\"capability %" PRIu64 "\",\"file\":\"capability\"}",
			extra->key.what);
		return;
	}
	fputs("{\"name\":", w->out);
	json__put_string(w->out, views__thread(&w->views, extra->key.target, extra->key.what).s);
	/* the same number in another process is another thread */
	fprintf(w->out, ",\"file\":\"thread of %d\"}",
		(int)picture__target(w->pic, extra->key.target)->pid);
}

static void put_target_name(struct speedscope *w, size_t i)
{
	const struct pic_target *target = picture__target(w->pic, i);
	char name[sizeof(struct pic_target_name) + sizeof(struct pic_target_place)];

	snprintf(name, sizeof(name), "%s%s", pic_target__name(target).s,
		 pic_target__place(target).s);
	json__put_string(w->out, name);
}

/* In the order of their indices, after the picture's frames, of which there is at least one. */
static void put_extra_frames(struct speedscope *w)
{
	uint32_t next = w->process_frame;

	for (size_t i = 0; w->n_targets > 1 && i < w->n_targets; i++, next++) {
		fputs(",\n{\"name\":", w->out);
		put_target_name(w, i);
		fputs(",\"file\":\"process\"}", w->out);
	}
	next += speedscope__put_lane_frames(w);
	for (const struct extra_frame *e = w->extras; e; e = e->hh.next, next++) {
		fputs(",\n", w->out);
		put_extra_frame(w, e);
	}
	for (unsigned k = 0; k < LANE_KINDS; k++)
		for (unsigned s = 0; s < state__count((enum lane_kind)k); s++) {
			/* a state that looks like another has that one's number */
			if (w->state_frames[k][s] != next)
				continue;
			/* Each has its own `file`, from which speedscope derives colours. */
			fprintf(w->out, ",\n{\"name\":\"[%s]\",\"file\":\"%s\"}",
				state__title((enum lane_kind)k, s),
				state__name((enum lane_kind)k, s));
			next++;
		}
}

static void put_frames(struct speedscope *w)
{
	uint32_t written = 0;

	fputs("\"shared\":{\"frames\":[", w->out);
	for (uint32_t i = 0; i < picture__n_frames(w->pic); i++) {
		/* Numbers are in order of first use, so a new one is always the next. */
		if (w->map[i] != written)
			continue;
		put_frame(w, i);
		written++;
	}
	put_extra_frames(w);
	fputs("\n]},\n", w->out);
}

/* ── profiles ────────────────────────────────────────────────────────────────────────────── */

/* What a sample shows: the state, the thread or capability, the stack; n == 0: a gap. */
struct look {
	uint32_t top[2];
	uint32_t n;
	struct pic_stack stack;
};

/* Neighbours that look alike, merged: the importer would draw each of them. */
struct run {
	struct speedscope *w;
	struct look look;
	uint64_t ns;
	struct buf weights; /* the text of the weights of the samples already written */
};

static struct look look_of(const struct speedscope *w, const struct view *view,
			   const struct pic_slice *slice)
{
	struct look look = {.n = 0};
	const struct extra_frame *extra;
	struct extra_key key;

	if (slice__is_gap(view->lane->kind, slice))
		return look;
	look.top[look.n++] = w->state_frames[view->lane->kind][slice->state];
	extra = extra_of(view, slice, &key) ? find_extra(w, &key) : NULL;
	if (extra)
		look.top[look.n++] = extra->index;
	look.stack = speedscope__below_state(w, slice->stack);
	return look;
}

static bool same_look(const struct run *run, const struct look *look)
{
	return run->look.n == look->n &&
	       !memcmp(run->look.top, look->top, look->n * sizeof(look->top[0])) &&
	       stacks__equal(run->look.stack, look->stack, run->w->map);
}

static void put_run(struct run *run)
{
	bool first = !run->weights.len;
	char weight[1 + 20], top[2 + 2 * 21], *p = weight;

	if (!run->ns)
		return;
	if (!first)
		*p++ = ',';
	p = u64__put(p, run->ns);
	buf__add(&run->weights, weight, (size_t)(p - weight));
	p = top;
	if (!first)
		*p++ = ',';
	*p++ = '[';
	for (uint32_t i = 0; i < run->look.n; i++) {
		if (i)
			*p++ = ',';
		p = u64__put(p, run->look.top[i]);
	}
	fwrite_unlocked(top, 1, (size_t)(p - top), run->w->out);
	speedscope__put_stack(run->w, run->look.stack, run->look.n > 0);
	putc_unlocked(']', run->w->out);
}

static void go_on(struct run *run, const struct look *look, uint64_t ns)
{
	if (!ns)
		return;
	if (!run->ns || !same_look(run, look)) {
		put_run(run);
		run->look = *look;
		run->ns = 0;
	}
	run->ns += ns;
}

/* Writes the lane's samples and their weights, without holes in the axis. */
static int put_slices(struct speedscope *w, const struct view *view)
{
	struct walk walk = {.lane = view->lane, .grain_ns = w->views.grain_ns};
	struct run run = {.w = w};
	const struct look gap = {.n = 0};
	struct pic_slice slice, parts[BALANCE_PARTS];
	uint64_t at = w->views.start_ns;
	struct balance balance;
	int err;

	buf__init(&run.weights, MAX_BYTES);
	balance__begin(&balance, view->lane, w->views.grain_ns);
	while (walk__next(&walk, &slice)) {
		unsigned n = balance__split(&balance, &slice, parts);

		go_on(&run, &gap, slice.start_ns - at);
		for (unsigned i = 0; i < n; i++) {
			struct look look = look_of(w, view, &parts[i]);

			go_on(&run, &look, parts[i].end_ns - parts[i].start_ns);
		}
		at = slice.end_ns;
	}
	go_on(&run, &gap, w->views.end_ns - at);
	put_run(&run);
	fputs("],\n\"weights\":[", w->out);
	if (run.weights.len)
		fwrite_unlocked(run.weights.data, 1, run.weights.len, w->out);
	err = run.weights.err;
	buf__free(&run.weights);
	return err;
}

static int put_lane(struct speedscope *w, const struct view *view)
{
	uint64_t merged = view__merged_ns(&w->views, view);
	char name[288];
	int err;

	snprintf(name, sizeof(name), "%s%s%s%s", view__name(view, w->n_targets > 1).s,
		 merged ? ", under " : "", merged ? human__duration(merged).s : "",
		 merged ? " merged" : "");
	speedscope__put_head(w, name, "nanoseconds", w->views.end_ns - w->views.start_ns);
	err = put_slices(w, view);
	fputs("]}", w->out);
	return err;
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

/* Digits and commas: frames have numbers of up to seven digits. */
static uint64_t cost(const struct picture *pic, enum lane_kind kind, const struct pic_slice *slice)
{
	return 40 +
	       (slice__is_gap(kind, slice) ? 0 : 6 * (uint64_t)picture__stack(pic, slice->stack).n);
}

static int prepare(struct speedscope *w, const struct export_opts *opts)
{
	int err = views__collect(w->pic, &w->views);

	if (!err)
		err = sums__collect(w->pic, &w->views, SUMS_BY_TARGET, &w->sums, &w->sum_title);
	if (!err)
		err = frames__number_alike(w->pic, FRAME_SRC, &w->map, &w->n_frames);
	if (err)
		return err;
	views__keep(&w->views, opts);
	views__limit(&w->views, w->pic, MAX_BYTES, cost, "speedscope",
		     " in the lanes in time order; sums include all of them");
	w->n_targets = picture__n_targets(w->pic);
	w->process_frame = w->next_frame = w->n_frames;
	if (w->n_targets > 1)
		w->next_frame += (uint32_t)w->n_targets;
	speedscope__number_lanes(w);
	return number_extras(w);
}

/* Writes everything before the lanes. */
static int put_head(struct speedscope *w)
{
	char name[96];

	snprintf(name, sizeof(name), "safescoped@%s", or_empty(picture__session(w->pic)->version));
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":",
	      w->out);
	json__put_string(w->out, name);
	snprintf(name, sizeof(name), "%zu Haskell processes", w->n_targets);
	fputs(",\n\"name\":", w->out);
	if (w->n_targets == 1)
		put_target_name(w, 0);
	else
		json__put_string(w->out, name);
	fputs(",\n\"activeProfileIndex\":0,\n", w->out);
	put_frames(w);
	fputs("\"profiles\":[\n", w->out);
	return speedscope__put_sums(w);
}

int speedscope__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct speedscope w = {.out = out, .pic = pic, .weight = opts->weight};
	int err = prepare(&w, opts);

	w.texts = calloc(STACK_TEXTS, sizeof(*w.texts));
	if (!err)
		err = w.texts ? put_head(&w) : -ENOMEM;
	for (size_t i = 0; i < w.views.n && !err && !w.err; i++) {
		fputs(",\n", out);
		err = put_lane(&w, &w.views.v[i]);
	}
	fputs("\n]}\n", out);
	HASH_FREE(w.extras);
	for (size_t i = 0; w.texts && i < STACK_TEXTS; i++)
		buf__free(&w.texts[i].text);
	free(w.texts);
	free(w.map);
	sums__free(&w.sums);
	views__free(&w.views);
	return export__result(out, err ? err : w.err);
}

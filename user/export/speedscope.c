/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope's own format (https://www.speedscope.app/file-format-schema.json): one profile of
 * all threads, added up by stack, and one profile for each capability, OS thread and Haskell thread
 * in time order. In a lane's profile the top row is the state, with a colour of its own.
 *
 * All profiles are `sampled`. In speedscope an empty stack is a gap on the time axis, which is
 * what an idle thread is; samples of weight zero are dropped by its importer, so none is written.
 * Its numbers are doubles: times count from the session's start, not from the boot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "export.h"
#include "speedscope.h"
#include "view_each.h"

/* Browsers hold a file as one string of at most 512 MB, and are sluggish long before. */
#define MAX_BYTES (UINT64_C(160) << 20)

/* ── frames ──────────────────────────────────────────────────────────────────────────────── */

static const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

/* The line of "file:line"; 0 if there is none. */
static uint32_t line_of(const char *src)
{
	const char *colon = strrchr(text_or_empty(src), ':');
	char *end;
	unsigned long line;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return 0;
	line = strtoul(colon + 1, &end, 10);
	return *end || line > INT32_MAX ? 0 : (uint32_t)line;
}

/* Equal in all that the file shows: speedscope itself tells frames apart by index only. */
static int cmp_frames(uint32_t a, uint32_t b, void *ctx)
{
	const struct tl_frame *x = timeline__frame(ctx, a), *y = timeline__frame(ctx, b);
	uint32_t line_x, line_y;
	int diff;

	diff = strcmp(text_or_empty(x->name), text_or_empty(y->name));
	if (!diff)
		diff = strcmp(text_or_empty(x->file), text_or_empty(y->file));
	if (diff)
		return diff;
	line_x = line_of(x->src);
	line_y = line_of(y->src);
	return (line_x > line_y) - (line_x < line_y);
}

static void put_frame(struct speedscope *w, uint32_t index)
{
	const struct tl_frame *frame = timeline__frame(w->tl, index);
	uint32_t line = line_of(frame->src);

	fputs(index ? ",\n{\"name\":" : "\n{\"name\":", w->out);
	json__put_string(w->out, frame->name && *frame->name ? frame->name : "[unknown]");
	if (frame->file && *frame->file) {
		fputs(",\"file\":", w->out);
		json__put_string(w->out, frame->file);
	}
	if (line)
		fprintf(w->out, ",\"line\":%" PRIu32, line);
	fputc('}', w->out);
}

static void put_process_frame(struct speedscope *w, const struct tl_target *target, bool first)
{
	char name[64];

	snprintf(name, sizeof(name), "%s (pid %d)", text_or_empty(target->comm), (int)target->pid);
	fputs(first ? "\n{\"name\":" : ",\n{\"name\":", w->out);
	json__put_string(w->out, name);
	fputs(",\"file\":\"process\"}", w->out);
}

/* ── frames that are no code: states, Haskell threads, capabilities ──────────────────────── */

/*
 * The row next to the top of a capability's lane is the Haskell thread, of a Haskell thread's the
 * capability that it runs on.
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

/* Frames are what speedscope counts and colours by: a million threads are no help to anybody. */
#define MAX_EXTRAS 65536

static bool extra_of(const struct lane_view *view, const struct span *span, struct extra_key *ret)
{
	*ret = (struct extra_key){.what = span->tso, .target = view->target_no};
	if (view->kind == LANE_CAPABILITY)
		return span->tso != 0;
	if (view->kind != LANE_HASKELL || span->cap == UINT32_MAX)
		return false;
	*ret = (struct extra_key){.what = span->cap, .target = UINT32_MAX};
	return true;
}

static const struct extra_frame *find_extra(const struct speedscope *w, const struct extra_key *key)
{
	const struct extra_frame *extra;

	HASH_FIND(hh, w->extras, key, sizeof(*key), extra);
	return extra;
}

/* Numbers what the lane will show, in order of first use. */
struct numbering {
	struct speedscope *w;
	const struct lane_view *view;
	int err;
};

static void number_span(void *ctx, const struct span *span)
{
	struct numbering *n = ctx;
	struct speedscope *w = n->w;
	uint32_t *state = &w->state_frames[n->view->kind][span->state];
	struct extra_frame *extra;
	struct extra_key key;

	if (span->idle)
		return;
	if (*state == UINT32_MAX)
		*state = UINT32_MAX - 1;
	if (n->err || !extra_of(n->view, span, &key) || find_extra(w, &key) ||
	    HASH_COUNT(w->extras) >= MAX_EXTRAS)
		return;
	extra = calloc(1, sizeof(*extra));
	if (!extra) {
		n->err = -ENOMEM;
		return;
	}
	extra->key = key;
	HASH_ADD(hh, w->extras, key, sizeof(extra->key), extra);
	if (!extra->hh.tbl) {
		free(extra);
		n->err = -ENOMEM;
		return;
	}
	extra->index = w->next_frame++;
}

static bool same_state(enum lane_kind a, unsigned s, enum lane_kind b, unsigned t)
{
	return !strcmp(view__state_title(a, s), view__state_title(b, t)) &&
	       !strcmp(view__state_name(a, s), view__state_name(b, t));
}

/* States that look alike in different kinds of lanes are one frame. */
static void number_state(struct speedscope *w, enum lane_kind kind, unsigned state)
{
	for (unsigned k = 0; k <= (unsigned)kind; k++)
		for (unsigned s = 0; s < view__states((enum lane_kind)k); s++) {
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
	struct numbering n = {.w = w};

	memset(w->state_frames, 0xff, sizeof(w->state_frames));
	for (size_t i = 0; i < w->views.n; i++) {
		n.view = &w->views.v[i];
		view__each(n.view, w->grain_ns, number_span, &n);
	}
	for (unsigned k = 0; k < LANE_KINDS; k++)
		for (unsigned s = 0; s < view__states((enum lane_kind)k); s++)
			if (w->state_frames[k][s] == UINT32_MAX - 1)
				number_state(w, (enum lane_kind)k, s);
	return n.err;
}

static void put_extra_frame(struct speedscope *w, const struct extra_frame *extra)
{
	const struct tl_target *target;
	const char *label;
	char name[256];

	if (extra->key.target == UINT32_MAX) {
		fprintf(w->out, "{\"name\":\"capability %" PRIu64 "\",\"file\":\"capability\"}",
			extra->key.what);
		return;
	}
	target = timeline__target(w->tl, extra->key.target);
	label = views__label(&w->views, extra->key.target, extra->key.what);
	snprintf(name, sizeof(name), "thread %" PRIu64 "%s%.200s", extra->key.what,
		 *label ? " " : "", label);
	fputs("{\"name\":", w->out);
	json__put_string(w->out, name);
	/* the same number in another process is another thread */
	fprintf(w->out, ",\"file\":\"thread of %d\"}", (int)target->pid);
}

/* Each state has a `file` of its own, which is what speedscope makes its colours of. */
static void put_state_frame(struct speedscope *w, enum lane_kind kind, unsigned state)
{
	fprintf(w->out, "{\"name\":\"[%s]\",\"file\":\"%s\"}", view__state_title(kind, state),
		view__state_name(kind, state));
}

/* In the order of their indices. */
static void put_extra_frames(struct speedscope *w, bool first)
{
	uint32_t next = w->process_frame + (w->n_targets > 1 ? (uint32_t)w->n_targets : 0);

	for (const struct extra_frame *e = w->extras; e; e = e->hh.next) {
		fputs(first ? "\n" : ",\n", w->out);
		put_extra_frame(w, e);
		first = false;
		next++;
	}
	for (unsigned k = 0; k < LANE_KINDS; k++)
		for (unsigned s = 0; s < view__states((enum lane_kind)k); s++) {
			/* one that looked like another has that one's number */
			if (w->state_frames[k][s] != next)
				continue;
			fputs(first ? "\n" : ",\n", w->out);
			put_state_frame(w, (enum lane_kind)k, s);
			first = false;
			next++;
		}
}

static void put_frames(struct speedscope *w)
{
	uint32_t n = timeline__n_frames(w->tl), written = 0;

	fputs("\"shared\":{\"frames\":[", w->out);
	for (uint32_t i = 0; i < n; i++) {
		/* Numbered in order of first use, so a new number is always the next one. */
		if (w->map[i] != written)
			continue;
		put_frame(w, i);
		written++;
	}
	for (size_t i = 0; w->n_targets > 1 && i < w->n_targets; i++)
		put_process_frame(w, timeline__target(w->tl, i), !written && !i);
	put_extra_frames(w, !written && w->n_targets < 2);
	fputs("\n]},\n", w->out);
}

/* ── profiles ────────────────────────────────────────────────────────────────────────────── */

void speedscope__put_head(struct speedscope *w, const char *name, uint64_t end)
{
	fputs("{\"type\":\"sampled\",\"name\":", w->out);
	json__put_string(w->out, name);
	fprintf(w->out,
		",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64
		",\n\"samples\":[",
		end);
}

static char *stack_text(const struct speedscope *w, struct tl_stack stack, uint32_t *ret_len)
{
	struct buf text;

	buf__init(&text, BUF_DEFAULT_MAX);
	for (uint32_t i = 0; i < stack.n; i++)
		buf__addf(&text, ",%" PRIu32, w->map[stack.frames[i]]);
	if (text.err) {
		buf__free(&text);
		return NULL;
	}
	*ret_len = (uint32_t)text.len;
	return text.data;
}

/* NULL without memory: then it is written number by number. */
static const struct stack_text *find_text(const struct speedscope *w, struct tl_stack stack)
{
	struct stack_text *t;

	if (!w->texts || !stack.n)
		return NULL;
	t = &w->texts[((uintptr_t)stack.frames / 16 + stack.n) % STACK_TEXTS];
	if (t->frames == stack.frames && t->n == stack.n)
		return t;
	free(t->text);
	t->frames = NULL;
	t->text = stack_text(w, stack, &t->len);
	if (!t->text)
		return NULL;
	t->frames = stack.frames;
	t->n = stack.n;
	return t;
}

void speedscope__put_stack(const struct speedscope *w, struct tl_stack stack, bool comma)
{
	const struct stack_text *t = find_text(w, stack);

	if (t) {
		fwrite_unlocked(t->text + !comma, 1, t->len - !comma, w->out);
		return;
	}
	for (uint32_t i = 0; i < stack.n; i++) {
		if (comma)
			fputc_unlocked(',', w->out);
		put_u64(w->out, w->map[stack.frames[i]]);
		comma = true;
	}
}

/* What a sample shows: the state, the thread or the capability, the stack; n == 0: a gap. */
struct look {
	uint32_t top[2];
	uint32_t n;
	struct tl_stack stack;
};

/* Neighbours that look alike are one: the importer draws what it is given. */
struct run {
	struct speedscope *w;
	const struct lane_view *view;
	struct look look;
	uint64_t ns, at;
	struct buf weights; /* of the samples that are written already, as they will be */
};

static struct look look_of(const struct speedscope *w, const struct lane_view *view,
			   const struct span *span)
{
	struct look look = {.n = 0};
	const struct extra_frame *extra;
	struct extra_key key;

	if (span->idle)
		return look;
	look.top[look.n++] = w->state_frames[view->kind][span->state];
	extra = extra_of(view, span, &key) ? find_extra(w, &key) : NULL;
	if (extra)
		look.top[look.n++] = extra->index;
	look.stack = timeline__stack(w->tl, span->stack);
	/* the state is told at the top already */
	if (look.stack.n &&
	    timeline__frame(w->tl, look.stack.frames[look.stack.n - 1])->kind == TF_STATE)
		look.stack.n--;
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

static void on_span(void *ctx, const struct span *span)
{
	struct run *run = ctx;
	const struct look gap = {.n = 0};
	struct look look = look_of(run->w, run->view, span);

	go_on(run, &gap, span->start_ns - run->at);
	go_on(run, &look, span->end_ns - span->start_ns);
	run->at = span->end_ns;
}

/* The lane's samples and their weights, without a hole in the axis. */
static int put_spans(struct speedscope *w, const struct lane_view *view)
{
	struct run run = {.w = w, .view = view, .at = w->views.start_ns};
	const struct look gap = {.n = 0};
	int err;

	buf__init(&run.weights, MAX_BYTES);
	view__each(view, w->grain_ns, on_span, &run);
	go_on(&run, &gap, w->views.end_ns - run.at);
	put_run(&run);
	fputs("],\n\"weights\":[", w->out);
	if (run.weights.len)
		fwrite_unlocked(run.weights.data, 1, run.weights.len, w->out);
	err = run.weights.err;
	buf__free(&run.weights);
	return err;
}

/* The timeline had to merge already. */
static bool is_coarse(const struct lane_view *view)
{
	if (view->kind == LANE_CAPABILITY)
		return view->cap->coarse;
	return view->kind == LANE_THREAD ? view->thread->coarse : view->tso->coarse;
}

static int put_lane(struct speedscope *w, const struct lane_view *view)
{
	char name[224], grain[32];
	int err;

	view__name(view, w->n_targets > 1, name, sizeof(name));
	if (w->grain_ns) {
		size_t len = strlen(name);

		human__duration(grain, sizeof(grain), w->grain_ns);
		snprintf(name + len, sizeof(name) - len, ", under %s merged", grain);
	} else if (is_coarse(view)) {
		size_t len = strlen(name);

		snprintf(name + len, sizeof(name) - len, ", short stretches merged");
	}
	speedscope__put_head(w, name, w->views.end_ns - w->views.start_ns);
	err = put_spans(w, view);
	fputs("]}", w->out);
	return err;
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

/* Digits and commas: frames have numbers of up to seven digits. */
static uint64_t cost(const struct timeline *tl, const struct span *span)
{
	return 40 + (span->idle ? 0 : 6 * (uint64_t)timeline__stack(tl, span->stack).n);
}

static int prepare(struct speedscope *w, unsigned lanes)
{
	char grain[32];
	int err;

	w->texts = calloc(STACK_TEXTS, sizeof(*w->texts));
	w->session = timeline__session(w->tl);
	w->n_targets = timeline__n_targets(w->tl);
	err = views__collect(w->tl, lanes, &w->views);
	if (!err)
		err = frames__number(timeline__n_frames(w->tl), cmp_frames, (void *)w->tl, true,
				     &w->map, &w->n_frames);
	if (err)
		return err;
	w->grain_ns = views__grain(w->tl, &w->views, MAX_BYTES, cost);
	if (w->grain_ns) {
		human__duration(grain, sizeof(grain), w->grain_ns);
		log_warn("speedscope: too many stretches for a file that opens: those under %s "
			 "are merged in the lanes; sums and the first profile have all",
			 grain);
	}
	w->process_frame = w->next_frame = w->n_frames;
	if (w->n_targets > 1)
		w->next_frame += (uint32_t)w->n_targets;
	return number_extras(w);
}

static void free_all(struct speedscope *w)
{
	struct extra_frame *extra, *next;

	HASH_ITER (hh, w->extras, extra, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(w->extras, extra);
		free(extra);
	}
	for (size_t i = 0; w->texts && i < STACK_TEXTS; i++)
		free(w->texts[i].text);
	free(w->texts);
	free(w->map);
	views__free(&w->views);
}

static void put_name(struct speedscope *w)
{
	const struct tl_target *target = w->n_targets ? timeline__target(w->tl, 0) : NULL;
	char name[96];

	if (w->n_targets == 1)
		snprintf(name, sizeof(name), "%s (pid %d)", text_or_empty(target->comm),
			 (int)target->pid);
	else
		snprintf(name, sizeof(name), "%zu Haskell processes", w->n_targets);
	json__put_string(w->out, name);
}

static int speedscope__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	struct speedscope w = {.out = out, .tl = tl};
	char exporter[64];
	int err;

	if (!timeline__session(tl))
		return -EINVAL;
	err = prepare(&w, opts->lanes);
	if (err)
		goto out;
	snprintf(exporter, sizeof(exporter), "safescoped@%s", text_or_empty(w.session->version));
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":",
	      out);
	json__put_string(out, exporter);
	fputs(",\n\"name\":", out);
	put_name(&w);
	fputs(",\n\"activeProfileIndex\":0,\n", out);
	put_frames(&w);
	fputs("\"profiles\":[\n", out);
	err = speedscope__put_sum(&w);
	for (size_t i = 0; i < w.views.n && !err; i++) {
		fputs(",\n", out);
		err = put_lane(&w, &w.views.v[i]);
	}
	fputs("\n]}\n", out);
	if (!err && ferror(out))
		err = -EIO;
out:
	free_all(&w);
	return err;
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.suffix = ".speedscope.json",
	.write = speedscope__write,
};

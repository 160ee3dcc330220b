/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * speedscope's own format (https://www.speedscope.app/file-format-schema.json): one profile of
 * all threads, added up by stack, and one profile for each OS thread in time order.
 *
 * All profiles are `sampled`. In speedscope an empty stack is a gap on the time axis, which is
 * what an idle thread is; samples of weight zero are dropped by its importer, so none is written.
 * Its numbers are doubles: times count from the session's start, not from the boot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "export_priv.h"

struct writer {
	FILE *out;
	const struct timeline *tl;
	const struct tl_session *session;
	size_t n_targets;
	uint32_t *map;		   /* of a timeline's frame: index in the file */
	uint32_t n_frames;	   /* in the file */
	uint32_t process_frame;	   /* several targets: index of the first one's frame */
	uint64_t start_ns, end_ns; /* the time axis that all threads share */
	struct lane_ref *lanes;
	size_t n_lanes, lanes_cap;
};

struct lane_ref {
	const struct tl_target *target;
	const struct tl_lane *lane;
	uint32_t target_no, lane_no;
	uint64_t busy_ns;
};

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

static void put_frame(struct writer *w, uint32_t index)
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

static void put_process_frame(struct writer *w, const struct tl_target *target, bool first)
{
	char name[64];

	snprintf(name, sizeof(name), "%s (pid %d)", text_or_empty(target->comm), (int)target->pid);
	fputs(first ? "\n{\"name\":" : ",\n{\"name\":", w->out);
	json__put_string(w->out, name);
	fputs(",\"file\":\"process\"}", w->out);
}

static void put_frames(struct writer *w)
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
	fputs("\n]},\n", w->out);
}

/* ── profiles ────────────────────────────────────────────────────────────────────────────── */

static void put_profile_head(struct writer *w, const char *name, uint64_t end)
{
	fputs("{\"type\":\"sampled\",\"name\":", w->out);
	json__put_string(w->out, name);
	fprintf(w->out,
		",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":%" PRIu64
		",\n\"samples\":[",
		end);
}

/* process: the frame below the root, UINT32_MAX for none. */
static void put_sample(struct writer *w, struct tl_stack stack, uint32_t process, bool first)
{
	bool comma = false;

	fputs_unlocked(first ? "[" : ",[", w->out);
	if (process != UINT32_MAX) {
		put_u64(w->out, process);
		comma = true;
	}
	for (uint32_t i = 0; i < stack.n; i++) {
		if (comma)
			fputc_unlocked(',', w->out);
		put_u64(w->out, w->map[stack.frames[i]]);
		comma = true;
	}
	fputc_unlocked(']', w->out);
}

/* Neighbours with equal stacks, as one: the importer draws what it is given. */
struct run {
	struct tl_stack stack;
	uint64_t ns;
};

/* Gives the lane's stretches, gaps included, to `emit`, merged and without a hole in the axis. */
static void each_run(struct writer *w, const struct tl_lane *lane,
		     void (*emit)(struct writer *w, const struct run *run, bool first))
{
	const struct tl_stack empty = {0};
	struct run run = {0};
	uint64_t at = w->start_ns;
	bool first = true;

	for (size_t i = 0; i <= lane->n_stretches; i++) {
		const struct tl_stretch *s = i < lane->n_stretches ? &lane->stretches[i] : NULL;
		uint64_t from = s ? MAX(s->start_ns, at) : w->end_ns;
		uint64_t to = s ? MAX(s->end_ns, from) : w->end_ns;
		struct run next[2] = {
			{.stack = empty, .ns = from > at ? from - at : 0},
			{.stack = s && !stretch__is_gap(w->tl, s) ? timeline__stack(w->tl, s->stack)
								  : empty,
			 .ns = to - from},
		};

		at = to;
		for (size_t k = 0; k < 2; k++) {
			if (!next[k].ns)
				continue;
			if (run.ns && stacks__equal(run.stack, next[k].stack, w->map)) {
				run.ns += next[k].ns;
				continue;
			}
			if (run.ns) {
				emit(w, &run, first);
				first = false;
			}
			run = next[k];
		}
	}
	if (run.ns)
		emit(w, &run, first);
}

static void emit_sample(struct writer *w, const struct run *run, bool first)
{
	put_sample(w, run->stack, UINT32_MAX, first);
}

static void emit_weight(struct writer *w, const struct run *run, bool first)
{
	if (!first)
		fputc_unlocked(',', w->out);
	put_u64(w->out, run->ns);
}

static void put_thread(struct writer *w, const struct lane_ref *ref)
{
	char name[128];

	if (w->n_targets > 1)
		snprintf(name, sizeof(name), "%d %.16s (%s)", (int)ref->lane->tid, ref->lane->name,
			 text_or_empty(ref->target->comm));
	else
		snprintf(name, sizeof(name), "%d %.16s", (int)ref->lane->tid, ref->lane->name);
	put_profile_head(w, name, w->end_ns - w->start_ns);
	each_run(w, ref->lane, emit_sample);
	fputs("],\n\"weights\":[", w->out);
	each_run(w, ref->lane, emit_weight);
	fputs("]}", w->out);
}

/* ── all threads ─────────────────────────────────────────────────────────────────────────── */

static int cmp_by_stack(const void *pa, const void *pb, void *arg)
{
	const struct weighted *a = pa, *b = pb;
	const struct writer *w = arg;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return stacks__cmp(timeline__stack(w->tl, a->stack), timeline__stack(w->tl, b->stack),
			   w->map);
}

/* A stretch of items that agree in all frames above some depth. */
struct group {
	size_t start, n;
	uint64_t weight;
};

static int cmp_group(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* What tells items apart at a depth: the owner first, then frame by frame; 0: the stack ended. */
static uint64_t key_at(const struct writer *w, const struct weighted *item, uint32_t depth)
{
	struct tl_stack stack;

	if (!depth)
		return item->owner;
	stack = timeline__stack(w->tl, item->stack);
	return depth <= stack.n ? (uint64_t)w->map[stack.frames[depth - 1]] + 1 : 0;
}

static size_t group_end(const struct writer *w, const struct weighted *items, size_t start,
			size_t n, uint32_t depth)
{
	uint64_t key = key_at(w, &items[start], depth);
	size_t end = start + 1;

	while (end < n && key_at(w, &items[end], depth) == key)
		end++;
	return end;
}

/*
 * Orders sorted items so that at every depth the heaviest branch comes first: then the first
 * profile reads like a flame graph as soon as it opens. tmp has room for n items. Recursion is as
 * deep as stacks branch, and the timeline caps their depth.
 */
static int heaviest_first(const struct writer *w, struct weighted *items, size_t n, uint32_t depth,
			  struct weighted *tmp)
{
	struct group *groups;
	size_t n_groups = 0, at = 0;
	int err = 0;

	if (n < 2)
		return 0;
	/* Down to where they part. Items are distinct stacks, so they do. */
	while (group_end(w, items, 0, n, depth) == n)
		depth++;
	for (size_t i = 0; i < n; i = group_end(w, items, i, n, depth))
		n_groups++;
	groups = calloc(n_groups, sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	for (size_t i = 0, g = 0; i < n; g++) {
		groups[g].start = i;
		groups[g].n = group_end(w, items, i, n, depth) - i;
		for (size_t k = 0; k < groups[g].n; k++)
			groups[g].weight += items[i + k].weight;
		i += groups[g].n;
	}
	qsort(groups, n_groups, sizeof(*groups), cmp_group);
	memcpy(tmp, items, n * sizeof(*items));
	for (size_t g = 0; g < n_groups; g++) {
		memcpy(items + at, tmp + groups[g].start, groups[g].n * sizeof(*items));
		at += groups[g].n;
	}
	at = 0;
	for (size_t g = 0; g < n_groups && !err; g++) {
		err = heaviest_first(w, items + at, groups[g].n, depth + 1, tmp);
		at += groups[g].n;
	}
	free(groups);
	return err;
}

/* Different stacks of the timeline may look alike in the file: one item for each that is seen. */
static void merge_alike(const struct writer *w, struct weights *weights)
{
	size_t kept = 0;

	for (size_t i = 1; i < weights->n; i++) {
		if (!cmp_by_stack(&weights->items[kept], &weights->items[i], (void *)w))
			weights->items[kept].weight += weights->items[i].weight;
		else
			weights->items[++kept] = weights->items[i];
	}
	if (weights->n)
		weights->n = kept + 1;
}

static int collect(struct writer *w, struct weights *weights)
{
	for (size_t i = 0; i < w->n_lanes; i++) {
		const struct tl_lane *lane = w->lanes[i].lane;
		uint32_t owner = w->n_targets > 1 ? w->lanes[i].target_no : 0;

		for (size_t k = 0; k < lane->n_stretches; k++) {
			const struct tl_stretch *s = &lane->stretches[k];
			int err;

			if (stretch__is_gap(w->tl, s) || s->end_ns <= s->start_ns)
				continue;
			err = weights__add(weights, owner, s->stack, s->end_ns - s->start_ns);
			if (err)
				return err;
		}
	}
	weights__merge(weights);
	if (weights->n)
		qsort_r(weights->items, weights->n, sizeof(*weights->items), cmp_by_stack, w);
	merge_alike(w, weights);
	return 0;
}

static int put_all_threads(struct writer *w)
{
	struct weights weights = {0};
	struct weighted *tmp = NULL;
	uint64_t total = 0;
	int err = collect(w, &weights);

	if (!err && weights.n) {
		tmp = calloc(weights.n, sizeof(*tmp));
		err = tmp ? heaviest_first(w, weights.items, weights.n, 0, tmp) : -ENOMEM;
		free(tmp);
	}
	if (err)
		goto out;
	for (size_t i = 0; i < weights.n; i++)
		total += weights.items[i].weight;
	put_profile_head(w, "all threads", total);
	for (size_t i = 0; i < weights.n; i++)
		put_sample(w, timeline__stack(w->tl, weights.items[i].stack),
			   w->n_targets > 1 ? w->process_frame + weights.items[i].owner
					    : UINT32_MAX,
			   !i);
	fputs("],\n\"weights\":[", w->out);
	for (size_t i = 0; i < weights.n; i++)
		fprintf(w->out, "%s%" PRIu64, i ? "," : "", weights.items[i].weight);
	fputs("]}", w->out);
out:
	weights__free(&weights);
	return err;
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

static int cmp_lanes(const void *pa, const void *pb)
{
	const struct lane_ref *a = pa, *b = pb;

	if (a->busy_ns != b->busy_ns)
		return a->busy_ns > b->busy_ns ? -1 : 1;
	if (a->target_no != b->target_no)
		return a->target_no < b->target_no ? -1 : 1;
	return (a->lane_no > b->lane_no) - (a->lane_no < b->lane_no);
}

static int add_lane(struct writer *w, const struct tl_target *target, size_t target_no,
		    size_t lane_no)
{
	const struct tl_lane *lane = &target->lanes[lane_no];
	struct lane_ref ref = {
		.target = target,
		.lane = lane,
		.target_no = (uint32_t)target_no,
		.lane_no = (uint32_t)lane_no,
	};
	int err;

	for (int s = 0; s < ST_MAX; s++)
		if (s != ST_IDLE)
			ref.busy_ns += lane->states_ns[s];
	/* Snapshots may reach beyond the session's own ends by a little; the axis then does too. */
	if (lane->n_stretches) {
		w->start_ns = MIN(w->start_ns, lane->stretches[0].start_ns);
		w->end_ns = MAX(w->end_ns, lane->stretches[lane->n_stretches - 1].end_ns);
	}
	err = array__reserve((void **)&w->lanes, &w->lanes_cap, w->n_lanes + 1, EXPORT_MAX_ENTRIES,
			     sizeof(*w->lanes));
	if (!err)
		w->lanes[w->n_lanes++] = ref;
	return err;
}

static int prepare(struct writer *w)
{
	int err;

	w->session = timeline__session(w->tl);
	w->n_targets = timeline__n_targets(w->tl);
	w->start_ns = w->session->start_ns;
	w->end_ns = MAX(w->session->end_ns, w->start_ns);
	for (size_t t = 0; t < w->n_targets; t++) {
		const struct tl_target *target = timeline__target(w->tl, t);

		for (size_t i = 0; i < target->n_lanes; i++) {
			err = add_lane(w, target, t, i);
			if (err)
				return err;
		}
	}
	if (w->n_lanes)
		qsort(w->lanes, w->n_lanes, sizeof(*w->lanes), cmp_lanes);
	err = frames__number(timeline__n_frames(w->tl), cmp_frames, (void *)w->tl, true, &w->map,
			     &w->n_frames);
	w->process_frame = w->n_frames;
	return err;
}

static void put_name(struct writer *w)
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
	struct writer w = {.out = out, .tl = tl};
	char exporter[64];
	int err;

	(void)opts;
	if (!timeline__session(tl))
		return -EINVAL;
	err = prepare(&w);
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
	err = put_all_threads(&w);
	for (size_t i = 0; i < w.n_lanes && !err; i++) {
		fputs(",\n", out);
		put_thread(&w, &w.lanes[i]);
	}
	fputs("\n]}\n", out);
	if (!err && ferror(out))
		err = -EIO;
out:
	free(w.map);
	free(w.lanes);
	return err;
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.suffix = ".speedscope.json",
	.write = speedscope__write,
};

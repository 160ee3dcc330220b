/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * log_calls: lanes of OS threads from the foreign calls that hs-safescope annotates, and sums of
 * the calls. Calls of one OS thread may nest and overlap (an interval also contains Haskell code
 * before and after the C function's): the one that began last is shown until it ends.
 */
#include <stdio.h>

#include "join_priv.h"

#define THREADS_MAX 4096 /* lanes */
#define C_DEPTH_MAX 128
#define LANE_MAX    (1u << 17) /* slices of all lanes together */
#define LANE_LEAST  256
#define CALLS_MAX   (1u << 14) /* rows of the table */

/* A call, or a C function within one, as the models have it. */
struct item {
	uint64_t start, end, tid;
	uint32_t index;
	bool c_function;
};

struct sweep {
	struct log_build *b;
	uint32_t owner;	    /* of the account: the lane's index */
	struct item *items; /* by thread, then start; outer before inner */
	size_t n_items;
	uint64_t *times; /* of one thread: the times at which something begins or ends */
	uint32_t *open;	 /* calls that have begun and are not known to have ended */
	size_t n_open;
	uint32_t c_open[C_DEPTH_MAX]; /* C functions, outermost first */
	size_t n_c_open;
	struct slices slices;
	size_t max;
	/* the stack of the last call without C functions: most calls are alike */
	struct {
		uint32_t node, label, stack;
		bool full;
	} last;
};

static int by_thread(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->c_function != b->c_function)
		return a->c_function ? 1 : -1;
	return (a->index > b->index) - (a->index < b->index);
}

static int by_value(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a > b) - (a < b);
}

/* An interval with a thread or a stack is a foreign call; others are just windows. */
static bool is_call(const struct el_span *s)
{
	return s->tid || s->node != CC_NO_NODE;
}

static int collect(struct sweep *sw)
{
	const struct el_annot *a = sw->b->in.annot;
	struct el_annot_info info = el_annot__info(a);
	struct log_build *b = sw->b;

	sw->items = calloc(info.n_spans + info.n_ccalls + 1, sizeof(*sw->items));
	if (!sw->items)
		return -ENOMEM;
	for (size_t i = 0; i < info.n_spans + info.n_ccalls; i++) {
		bool c_function = i >= info.n_spans;
		const struct el_span *s = c_function ? NULL : el_annot__span(a, i);
		const struct el_ccall *c = s ? NULL : el_annot__ccall(a, i - info.n_spans);
		struct item item = {.start = elog__time(b, s ? s->start : c->start),
				    .end = elog__time(b, s ? s->end : c->end),
				    .tid = s ? s->tid : c->tid,
				    .index = (uint32_t)(s ? i : i - info.n_spans),
				    .c_function = c_function};

		if ((!s || is_call(s)) && elog__clip(b, &item.start, &item.end))
			sw->items[sw->n_items++] = item;
	}
	array__sort(sw->items, sw->n_items, sizeof(*sw->items), by_thread);
	return 0;
}

/* ── one thread's lane ───────────────────────────────────────────────────────────────────── */

static int c_frame(struct sweep *sw, uint64_t fn, uint32_t *ret_frame)
{
	struct code_name name = {.name = ""};
	struct pic_frame frame = {.kind = TF_FOREIGN};
	char text[32];

	snprintf(text, sizeof(text), "[0x%llx]", (unsigned long long)fn);
	frame.name = text;
	if (sw->b->in.function && sw->b->in.function(sw->b->in.ctx, fn, &name) && *name.name) {
		frame.name = name.name;
		frame.file = name.file;
		frame.src = name.src;
	}
	return picture__add_frame(sw->b->pic, &frame, ret_frame);
}

/* Composes Haskell's stack, the call's name, and the C functions in it. */
static int compose(struct sweep *sw, uint32_t *ret_stack)
{
	const struct el_annot *a = sw->b->in.annot;
	uint32_t frames[1024 + C_DEPTH_MAX + 2], n = 0, stack = 0;
	struct pic_stack haskell;
	int err = 0;

	if (sw->n_open) {
		const struct el_span *s =
			el_annot__span(a, sw->items[sw->open[sw->n_open - 1]].index);
		struct pic_frame label = {.name = el_annot__string(a, s->label),
					  .kind = TF_FOREIGN};

		err = elog__node_stack(sw->b, s->node, &stack);
		if (err)
			return err;
		haskell = picture__stack(sw->b->pic, stack);
		n = MIN(haskell.n, 1024u);
		memcpy(frames, haskell.frames, n * sizeof(*frames));
		err = picture__add_frame(sw->b->pic, &label, &frames[n++]);
	}
	for (size_t i = 0; i < sw->n_c_open && !err; i++)
		err = c_frame(sw, el_annot__ccall(a, sw->c_open[i])->fn, &frames[n++]);
	return err ? err : picture__add_stack(sw->b->pic, frames, n, ret_stack);
}

static int stack_now(struct sweep *sw, uint32_t *ret_stack)
{
	const struct el_span *s =
		sw->n_open
			? el_annot__span(sw->b->in.annot, sw->items[sw->open[sw->n_open - 1]].index)
			: NULL;
	int err;

	if (!s || sw->n_c_open)
		return compose(sw, ret_stack);
	if (!sw->last.full || sw->last.node != s->node || sw->last.label != s->label) {
		err = compose(sw, &sw->last.stack);
		if (err)
			return err;
		sw->last.full = true;
		sw->last.node = s->node;
		sw->last.label = s->label;
	}
	*ret_stack = sw->last.stack;
	return 0;
}

static int put(struct sweep *sw, struct pic_lane *lane, uint64_t start, uint64_t end)
{
	struct pic_slice s = {
		.start_ns = start,
		.end_ns = end,
		.tid = lane->tid,
		.cap = NO_CAP,
		.state = sw->n_open || sw->n_c_open ? ST_SAFE_CALL : ST_UNKNOWN,
		.exact = 1,
	};
	int err = stack_now(sw, &s.stack);

	if (err)
		return err;
	lane->states_ns[s.state] += end - start;
	err = ledger__off(sw->b->ledger[LANE_THREAD], sw->owner, s.state, s.stack,
			  (int64_t)(end - start));
	return err ? err : slices__put(&sw->slices, LANE_THREAD, &s, sw->max);
}

static void begin_and_end(struct sweep *sw, size_t *next, size_t end, uint64_t now)
{
	for (; *next < end && sw->items[*next].start <= now; (*next)++) {
		const struct item *item = &sw->items[*next];

		if (!item->c_function)
			sw->open[sw->n_open++] = (uint32_t)*next;
		else if (sw->n_c_open < C_DEPTH_MAX)
			sw->c_open[sw->n_c_open++] = item->index;
	}
	while (sw->n_open && sw->items[sw->open[sw->n_open - 1]].end <= now)
		sw->n_open--;
	while (sw->n_c_open &&
	       elog__time(sw->b,
			  el_annot__ccall(sw->b->in.annot, sw->c_open[sw->n_c_open - 1])->end) <=
		       now)
		sw->n_c_open--;
}

static int make_lane(struct sweep *sw, size_t first, size_t end, struct pic_lane *lane)
{
	size_t n_times = 0, next = first;
	int err = 0;

	for (size_t i = first; i < end; i++) {
		sw->times[n_times++] = sw->items[i].start;
		sw->times[n_times++] = sw->items[i].end;
	}
	array__sort(sw->times, n_times, sizeof(*sw->times), by_value);
	sw->n_open = sw->n_c_open = 0;
	*lane = (struct pic_lane){
		.kind = LANE_THREAD,
		.tid = (pid_t)MIN(sw->items[first].tid, (uint64_t)INT32_MAX),
		.name = sw->items[first].tid ? "OS thread" : "thread not known",
		.threads = 1,
		.start_ns = sw->times[0],
		.end_ns = sw->times[n_times - 1],
		.cpu_ns = UINT64_MAX,
	};
	for (size_t i = 0; i + 1 < n_times && !err; i++) {
		if (sw->times[i] == sw->times[i + 1])
			continue;
		begin_and_end(sw, &next, end, sw->times[i]);
		err = put(sw, lane, sw->times[i], sw->times[i + 1]);
	}
	return err ? err : slices__give(&sw->slices, sw->b->pic, lane);
}

static int by_busy(const void *pa, const void *pb)
{
	const struct pic_lane *a = pa, *b = pb;

	if (a->states_ns[ST_SAFE_CALL] != b->states_ns[ST_SAFE_CALL])
		return a->states_ns[ST_SAFE_CALL] < b->states_ns[ST_SAFE_CALL] ? 1 : -1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static int make_lanes(struct sweep *sw)
{
	struct pic_lanes *pub = &sw->b->pub->lanes[LANE_THREAD];
	struct pic_lane *lanes;
	size_t n = 0, k;
	int err = 0;

	for (size_t i = 0; i < sw->n_items; i++)
		n += !i || sw->items[i].tid != sw->items[i - 1].tid;
	n = MIN(n, (size_t)THREADS_MAX);
	sw->max = MAX(LANE_MAX / MAX(n, (size_t)1), (size_t)LANE_LEAST);
	lanes = picture__alloc(sw->b->pic, n, sizeof(*lanes));
	sw->times = calloc(2 * sw->n_items + 1, sizeof(*sw->times));
	sw->open = calloc(sw->n_items + 1, sizeof(*sw->open));
	if (!lanes || !sw->times || !sw->open)
		return -ENOMEM;
	for (size_t i = 0; i < sw->n_items && sw->owner < n && !err; i = k) {
		for (k = i + 1; k < sw->n_items && sw->items[k].tid == sw->items[i].tid; k++)
			;
		err = make_lane(sw, i, k, &lanes[sw->owner]);
		sw->owner++;
	}
	if (!err)
		err = elog__fill_rows(sw->b, LANE_THREAD, lanes, n);
	qsort(lanes, n, sizeof(*lanes), by_busy);
	*pub = (struct pic_lanes){.v = lanes, .n = n};
	return err;
}

/* ── calls added up ──────────────────────────────────────────────────────────────────────── */

struct called {
	uint32_t label;
	uint32_t caller; /* frame; UINT32_MAX: unknown */
	uint64_t ns;
	bool open_end;
};

/* Orders by function and caller, then by duration. */
static int order_calls(const struct called *v, size_t n, struct keyed **ret_order)
{
	struct keyed *order = calloc(n + 1, sizeof(*order)), *tmp = calloc(n + 1, sizeof(*tmp));

	if (!order || !tmp) {
		free(order);
		free(tmp);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		order[i] = (struct keyed){.key = v[i].ns, .index = (uint32_t)i};
	keyed__sort(order, tmp, n);
	for (size_t i = 0; i < n; i++) {
		const struct called *c = &v[order[i].index];

		order[i].key = (uint64_t)c->label << 32 | c->caller;
	}
	keyed__sort(order, tmp, n);
	free(tmp);
	*ret_order = order;
	return 0;
}

/* Adds up the n calls of one function by one caller, which are sorted by duration. */
static void add_up(struct sweep *sw, const struct called *all, const struct keyed *order, size_t n,
		   struct pic_call *call)
{
	const struct called *v = &all[order->index];
	uint64_t no_time = UINT64_MAX;
	size_t done = 0;

	*call = (struct pic_call){
		.function =
			picture__string(sw->b->pic, el_annot__string(sw->b->in.annot, v->label)),
		.library = "",
		.caller =
			v->caller == UINT32_MAX ? "" : picture__frame(sw->b->pic, v->caller)->name,
		.site = "",
		.handover_ns = no_time,
		.cpu_ns = no_time,
		.blocked_ns = no_time,
		.cap_wait_ns = no_time,
		.min_ns = no_time,
		.p50_ns = no_time,
		.p99_ns = no_time,
		.max_ns = no_time,
		.exact = true,
		.observed_share = 1,
	};
	for (size_t i = 0; i < n; i++) {
		v = &all[order[i].index];
		if (v->open_end) {
			call->open_at_end++;
			call->open_wall_ns += v->ns;
			continue;
		}
		call->calls++;
		call->wall_ns += v->ns;
		call->min_ns = MIN(call->min_ns, v->ns);
		call->max_ns = v->ns;
	}
	/* Finished calls in order of duration: all durations are known, so quantiles are exact. */
	for (size_t i = 0; i < n; i++) {
		v = &all[order[i].index];
		if (v->open_end)
			continue;
		if (done == (call->calls - 1) / 2)
			call->p50_ns = v->ns;
		if (done == (call->calls * 99 + 99) / 100 - 1)
			call->p99_ns = v->ns;
		done++;
	}
}

static int by_wall(const void *pa, const void *pb)
{
	const struct pic_call *a = pa, *b = pb;

	if (a->wall_ns != b->wall_ns)
		return a->wall_ns < b->wall_ns ? 1 : -1;
	return strcmp(a->function, b->function);
}

/* Lists every call with the frame that it was made from. */
static int list_calls(struct sweep *sw, struct called *v, size_t *ret_n)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < sw->n_items && !err; i++) {
		const struct el_span *s;
		struct pic_stack stack;
		uint32_t id;

		if (sw->items[i].c_function)
			continue;
		s = el_annot__span(sw->b->in.annot, sw->items[i].index);
		v[n] = (struct called){.label = s->label,
				       .ns = sw->items[i].end - sw->items[i].start,
				       .open_end = s->open_end};
		err = elog__node_stack(sw->b, s->node, &id);
		if (err)
			break;
		stack = picture__stack(sw->b->pic, id);
		v[n++].caller = stack.n ? stack.frames[stack.n - 1] : UINT32_MAX;
	}
	*ret_n = n;
	return err;
}

static size_t count_groups(const struct keyed *order, size_t n)
{
	size_t groups = 0;

	for (size_t i = 0; i < n; i++)
		groups += !i || order[i].key != order[i - 1].key;
	return groups;
}

/* Groups by function and caller; if there are too many groups, by function alone, of which there
 * are few enough. */
static int group_calls(struct sweep *sw, struct called *v, size_t n, struct keyed **ret_order)
{
	int err = order_calls(v, n, ret_order);
	size_t groups;

	if (err)
		return err;
	groups = count_groups(*ret_order, n);
	if (groups <= CALLS_MAX)
		return 0;
	err = picture__add_missing(sw->b->pic, sw->b->pub,
				   "the callers of annotated calls: too many to keep (%zu pairs of "
				   "function and caller); the calls are listed by function alone",
				   groups);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		v[i].caller = UINT32_MAX;
	free(*ret_order);
	*ret_order = NULL;
	return order_calls(v, n, ret_order);
}

static int add_calls(struct sweep *sw)
{
	struct pic_target *pub = sw->b->pub;
	struct called *v = calloc(sw->n_items + 1, sizeof(*v));
	struct keyed *order = NULL;
	struct pic_call *calls;
	size_t n = 0, k;
	int err = v ? list_calls(sw, v, &n) : -ENOMEM;

	if (!err)
		err = group_calls(sw, v, n, &order);
	if (err)
		goto out;
	calls = picture__alloc(sw->b->pic, count_groups(order, n), sizeof(*calls));
	if (!calls) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < n; i = k) {
		for (k = i + 1; k < n && order[k].key == order[i].key; k++)
			;
		add_up(sw, v, &order[i], k - i, &calls[pub->n_calls++]);
	}
	qsort(calls, pub->n_calls, sizeof(*calls), by_wall);
	pub->calls = calls;
out:
	free(order);
	free(v);
	return err;
}

/* Reports annotations that make no sense, or that show less than they could. */
static int report_odd(struct log_build *b, const struct el_annot_info *info)
{
	int err = 0;

	if (info->overlaps)
		err = picture__add_missing(
			b->pic, b->pub,
			"%llu annotated calls overlap or nest on one OS thread: the one "
			"that began last is shown",
			(unsigned long long)info->overlaps);
	if (!err && info->unmatched)
		err = picture__add_missing(b->pic, b->pub,
					   "%llu annotations without a matching begin or end",
					   (unsigned long long)info->unmatched);
	if (!err && info->malformed)
		err = picture__add_missing(b->pic, b->pub, "%llu malformed annotations",
					   (unsigned long long)info->malformed);
	if (!err && info->dropped)
		err = picture__add_missing(b->pic, b->pub,
					   "%llu annotations beyond the memory limit",
					   (unsigned long long)info->dropped);
	return err;
}

int elog__calls(struct log_build *b)
{
	struct sweep sw = {.b = b};
	struct el_annot_info info;
	int err;

	if (!b->in.annot)
		return 0;
	info = el_annot__info(b->in.annot);
	err = report_odd(b, &info);
	if (!err)
		err = collect(&sw);
	if (!err && sw.n_items)
		err = make_lanes(&sw);
	if (!err && sw.n_items)
		err = add_calls(&sw);
	free(sw.items);
	free(sw.times);
	free(sw.open);
	slices__free(&sw.slices);
	return err;
}

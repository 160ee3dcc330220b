/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annot: intervals that a program marked by messages. They may nest, overlap, and lack an end.
 * Several threads may have the same label open at once: if the scheduler's events show which thread
 * sent the message, its own interval is meant, otherwise the newest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annot_priv.h"
#include "base/base.h"

#define OPEN_MAX  (1u << 16)
#define OTHERS	  "[other labels]"
#define LOOK_BACK 64 /* how many open intervals of one key are examined */
#define NONE	  ANNOT_NONE

static void opens_free(struct opens *o)
{
	free(o->v);
	u64map__free(&o->by_key);
}

/* Pushes the item on top of those with the same key. */
static int opens_push(struct opens *o, struct open item)
{
	uint32_t at = o->closed;
	int err;

	if (at != NONE) {
		o->closed = o->v[at].below;
	} else {
		err = ARRAY_RESERVE(o->v, o->cap, o->n + 1, OPEN_MAX);
		if (err)
			return err;
		at = (uint32_t)o->n++;
	}
	item.below = u64map__get(&o->by_key, item.key);
	item.open = true;
	o->v[at] = item;
	return u64map__put(&o->by_key, item.key, at);
}

/* `above`: the newer one with the same key; NONE: it is on top. */
static void opens_take(struct opens *o, uint32_t at, uint32_t above)
{
	struct open *item = &o->v[at];

	if (above != NONE)
		o->v[above].below = item->below;
	else if (item->below == NONE)
		u64map__del(&o->by_key, item->key);
	else
		/* The key exists already: this cannot fail. */
		u64map__place(&o->by_key, item->key, item->below);
	item->open = false;
	item->below = o->closed;
	o->closed = at;
}

int el_annot__new(const struct el_window *window, struct cctree *tree, const struct el_sched *sched,
		  struct el_annot **ret_a)
{
	struct el_annot *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->window = window;
	a->tree = tree;
	a->sched = sched;
	a->open.closed = a->calls.closed = NONE;
	err = strtab__new(&a->strings);
	if (err) {
		free(a);
		return err;
	}
	strtab__set_max(a->strings, ANNOT_TEXT_MAX);
	a->forget_at = ANNOT_TEXT_MAX / 2;
	err = strtab__add(a->strings, OTHERS, strlen(OTHERS), &a->others);
	if (err) {
		el_annot__free(a);
		return err;
	}
	*ret_a = a;
	return 0;
}

void el_annot__free(struct el_annot *a)
{
	if (!a)
		return;
	strtab__free(a->strings);
	opens_free(&a->open);
	opens_free(&a->calls);
	u64map__free(&a->sum_by_label);
	free(a->spans);
	free(a->ccalls);
	free(a->sums);
	free(a->stacks);
	free(a);
}

static int intern(struct el_annot *a, const char *s, size_t len, uint32_t *ret_id)
{
	return strtab__add(a->strings, s, MIN(len, (size_t)STRTAB_MAX_STRING - 1), ret_id);
}

static uint64_t some_bytes(const char *s)
{
	uint64_t v;

	memcpy(&v, s, sizeof(v));
	return v;
}

/* A hash of a text's length and a few places in it: a collision only costs time. */
static uint64_t mix(const char *s, uint32_t len)
{
	uint64_t sum = len;

	if (len < sizeof(sum)) {
		for (uint32_t i = 0; i < len; i++)
			sum = sum * 31 + (uint8_t)s[i];
		return sum ^ sum >> 13;
	}
	for (uint32_t i = 0; i < 8; i++)
		sum = (sum ^ some_bytes(s + (len - sizeof(sum)) / 8 * i)) * 0x9e3779b97f4a7c15ull;
	sum = (sum ^ some_bytes(s + len - sizeof(sum))) * 0x9e3779b97f4a7c15ull;
	return sum >> 32;
}

/* The same for texts that have mostly been seen before: labels, and stacks, which are long. */
static int intern_again(struct el_annot *a, const char *s, uint32_t len, uint32_t *ret_id)
{
	struct recent *r = &a->recent[mix(s, len) % RECENT];
	int err;

	if (len && r->len == len && !memcmp(strtab__get(a->strings, r->id), s, len)) {
		*ret_id = r->id;
		return 0;
	}
	err = intern(a, s, len, ret_id);
	/* A text with a NUL in it, or a too long one, is kept only in part. */
	if (!err && len < STRTAB_MAX_STRING && !memchr(s, 0, len))
		*r = (struct recent){*ret_id, len};
	return err;
}

/* Makes the key of an interval from label and number. Large numbers become part of a name. */
static int intern_key(struct el_annot *a, uint64_t n, struct el_str label, uint64_t *ret_key)
{
	char key[4096];
	uint32_t id;
	int len, err;

	if (n < UINT32_MAX) {
		err = intern_again(a, label.s, label.len, &id);
	} else {
		len = snprintf(key, sizeof(key), "%llu\n%.*s", (unsigned long long)n,
			       (int)MIN(label.len, 4000u), label.s);
		err = intern(a, key, (size_t)len, &id);
		n = UINT32_MAX;
	}
	if (!err)
		*ret_key = (uint64_t)id << 32 | n;
	return err;
}

/* ── intervals ───────────────────────────────────────────────────────────────────────────── */

static int on_start(struct el_annot *a, const struct el_event *ev, const struct annot_words *w)
{
	struct open o = {.span = {.start = ev->time,
				  .n = w->n,
				  .node = CC_NO_NODE,
				  .thread = a->sched ? el_sched__running(a->sched, ev->cap) : 0},
			 .stack = NONE};
	int err = intern_key(a, w->n, w->label, &o.key);

	if (!err)
		err = intern_again(a, w->label.s, w->label.len, &o.span.label);
	return err ? err : opens_push(&a->open, o);
}

/* The open interval that a message means; *ret_above: the newer one with its key, or NONE. */
static uint32_t find_open(const struct el_annot *a, uint64_t key, uint16_t cap, uint32_t *ret_above)
{
	uint32_t top = u64map__get(&a->open.by_key, key), at = top, above = NONE;
	uint32_t thread = a->sched ? el_sched__running(a->sched, cap) : 0;

	*ret_above = NONE;
	if (top == NONE || !thread)
		return top;
	for (unsigned n = 0; n < LOOK_BACK && at != NONE; n++) {
		if (a->open.v[at].span.thread == thread) {
			*ret_above = above;
			return at;
		}
		above = at;
		at = a->open.v[at].below;
	}
	return top;
}

/* Finds it by the whole text as label, else by its first word, as hs-safescope reads ANN_ lines. */
static uint32_t find_said(struct el_annot *a, const struct annot_words *w, uint16_t cap)
{
	const char *blank = memchr(w->label.s, ' ', w->label.len);
	struct el_str word = w->label;
	uint64_t key;
	uint32_t above, at;

	if (intern_key(a, w->n, word, &key))
		return NONE;
	at = find_open(a, key, cap, &above);
	if (at != NONE || !blank)
		return at;
	word.len = (uint32_t)(blank - word.s);
	if (intern_key(a, w->n, word, &key))
		return NONE;
	return find_open(a, key, cap, &above);
}

/* The sum of the label, or of the substitute label if there are too many. */
static struct el_span_sum *sum_get(struct el_annot *a, uint32_t label)
{
	uint32_t at = u64map__get(&a->sum_by_label, label);

	if (at == U64MAP_NONE && a->info.n_sums >= SUMS_MAX - 1) {
		a->info.dropped++;
		label = a->others;
		at = u64map__get(&a->sum_by_label, label);
	}
	if (at != U64MAP_NONE)
		return &a->sums[at];
	if (ARRAY_RESERVE(a->sums, a->sums_cap, a->info.n_sums + 1, SUMS_MAX) ||
	    u64map__put(&a->sum_by_label, label, (uint32_t)a->info.n_sums))
		return NULL;
	a->sums[a->info.n_sums] = (struct el_span_sum){.label = label, .min_ns = UINT64_MAX};
	return &a->sums[a->info.n_sums++];
}

static int close_span(struct el_annot *a, const struct open *o, uint64_t end, bool open_end)
{
	struct el_span s = o->span;
	struct el_span_sum *sum;
	int err;

	s.end = MAX(end, s.start);
	s.open_end = open_end;
	if (!el_window__clip(a->window, &s.start, &s.end))
		return 0;
	sum = sum_get(a, s.label);
	if (!sum)
		return -ENOMEM;
	s.label = sum->label;
	sum->count++;
	sum->total_ns += s.end - s.start;
	sum->min_ns = MIN(sum->min_ns, s.end - s.start);
	sum->max_ns = MAX(sum->max_ns, s.end - s.start);
	sum->unfinished += open_end;
	err = ARRAY_RESERVE(a->spans, a->spans_cap, a->info.n_spans + 1, SPANS_MAX);
	if (!err)
		err = ARRAY_RESERVE(a->stacks, a->stacks_cap, a->info.n_spans + 1, SPANS_MAX);
	if (err)
		return err;
	/* Until el_annot__finish, when all centres are known, the node is its stack's number. */
	s.node = (uint32_t)a->info.n_spans;
	a->stacks[a->info.n_spans] = o->stack;
	a->spans[a->info.n_spans++] = s;
	return 0;
}

static int on_stop(struct el_annot *a, const struct el_event *ev, const struct annot_words *w)
{
	uint64_t key;
	uint32_t above, at;
	int err;

	err = intern_key(a, w->n, w->label, &key);
	if (err)
		return err;
	at = find_open(a, key, ev->cap, &above);
	if (at == NONE) {
		a->info.unmatched++;
		return 0;
	}
	err = close_span(a, &a->open.v[at], ev->time, false);
	opens_take(&a->open, at, above);
	return err;
}

/* ── C calls ─────────────────────────────────────────────────────────────────────────────── */

static int on_call_to(struct el_annot *a, const struct el_event *ev, const struct annot_words *w)
{
	uint32_t below = u64map__get(&a->calls.by_key, w->tid);
	struct open o = {.call = {.start = ev->time, .fn = w->fn, .site = w->site, .tid = w->tid},
			 .key = w->tid};

	if (below != NONE)
		o.call.depth = a->calls.v[below].call.depth + 1;
	return opens_push(&a->calls, o);
}

static int close_call(struct el_annot *a, const struct open *o, uint64_t end, bool open_end)
{
	struct el_ccall c = o->call;
	int err;

	c.end = MAX(end, c.start);
	c.open_end = open_end;
	if (!el_window__clip(a->window, &c.start, &c.end))
		return 0;
	err = ARRAY_RESERVE(a->ccalls, a->ccalls_cap, a->info.n_ccalls + 1, CCALLS_MAX);
	if (!err)
		a->ccalls[a->info.n_ccalls++] = c;
	return err;
}

static int on_call_ret(struct el_annot *a, const struct el_event *ev, const struct annot_words *w)
{
	uint32_t top = u64map__get(&a->calls.by_key, w->tid), at = top, below;
	const struct open *v = a->calls.v;
	int err = 0;

	for (unsigned n = 0; n < LOOK_BACK && at != NONE && v[at].call.fn != w->fn; n++)
		at = v[at].below;
	if (at == NONE || v[at].call.fn != w->fn) {
		a->info.unmatched++;
		return 0;
	}
	/* Calls above it did not return: longjmp, an exception. */
	for (uint32_t c = top; c != NONE; c = below) {
		int failed = close_call(a, &v[c], ev->time, c != at);

		err = err ? err : failed;
		below = c == at ? NONE : v[c].below;
		opens_take(&a->calls, c, NONE);
	}
	return err;
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

static int on_message(struct el_annot *a, const struct el_event *ev)
{
	struct annot_words w;
	enum annot_verb verb = annot__words(ev->text, &w);
	uint32_t at;

	if (verb == AV_NONE)
		return 0;
	if (verb == AV_MALFORMED) {
		a->info.malformed++;
		return 0;
	}
	a->info.messages++;
	switch (verb) {
	case AV_START:
		return on_start(a, ev, &w);
	case AV_STOP:
		return on_stop(a, ev, &w);
	case AV_CALL_TO:
		return on_call_to(a, ev, &w);
	case AV_CALL_RET:
		return on_call_ret(a, ev, &w);
	default:
		break;
	}
	at = find_said(a, &w, ev->cap);
	if (at == NONE) {
		a->info.unmatched++;
		return 0;
	}
	if (verb == AV_THREAD)
		a->open.v[at].span.tid = w.tid;
	else
		return intern_again(a, w.stack.s, w.stack.len, &a->open.v[at].stack);
	return 0;
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_annot *a = ctx;
	int err = 0;

	if (a->window && strtab__bytes(a->strings) > a->forget_at)
		err = annot__forget_texts(a);
	if (!err)
		err = on_message(a, ev);
	if (err == -E2BIG) {
		a->info.dropped++;
		err = 0;
	}
	return err;
}

int el_annot__attach(struct el_annot *a, struct eventlog *log)
{
	static const uint16_t ids[] = {EL_USER_MSG};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, a);
}

static int span_compare(const void *a, const void *b)
{
	const struct el_span *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(y->end, x->end);
}

static int ccall_compare(const void *a, const void *b)
{
	const struct el_ccall *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(x->depth, y->depth);
}

/* Logged stacks repeat: each text is parsed once. */
static int resolve_stacks(struct el_annot *a)
{
	struct u64map node_by_text = {0};
	int err = 0;

	for (size_t i = 0; i < a->info.n_spans && !err; i++) {
		uint32_t text = a->stacks[i], node;

		a->spans[i].node = CC_NO_NODE;
		if (text == NONE || !a->tree)
			continue;
		node = u64map__get(&node_by_text, text);
		if (node == U64MAP_NONE) {
			const char *list = strtab__get(a->strings, text);

			err = annot__stack_node(a->tree, list, strlen(list), &node);
			if (err == -E2BIG) {
				a->info.dropped++;
				err = 0;
				continue;
			}
			if (!err)
				err = u64map__put(&node_by_text, text, node);
		}
		if (!err)
			a->spans[i].node = node;
	}
	u64map__free(&node_by_text);
	return err;
}

/* Counts intervals on one kernel thread that begin before the previous one ended. */
static int count_overlaps(struct el_annot *a)
{
	struct u64map last = {0};
	int err = 0;

	for (size_t i = 0; i < a->info.n_spans && !err; i++) {
		const struct el_span *s = &a->spans[i];
		uint32_t at;

		if (!s->tid)
			continue;
		at = u64map__get(&last, s->tid);
		if (at != U64MAP_NONE && a->spans[at].end > s->start)
			a->info.overlaps++;
		if (at == U64MAP_NONE || a->spans[at].end < s->end)
			err = u64map__put(&last, s->tid, (uint32_t)i);
	}
	u64map__free(&last);
	return err;
}

/* What has not ended ends with the log. */
static int close_all(struct el_annot *a, const struct opens *o, uint64_t end,
		     int (*close)(struct el_annot *, const struct open *, uint64_t, bool))
{
	for (size_t i = 0; i < o->n; i++) {
		int err = o->v[i].open ? close(a, &o->v[i], end, true) : 0;

		a->info.dropped += err == -E2BIG;
		if (err && err != -E2BIG)
			return err;
	}
	return 0;
}

int el_annot__finish(struct el_annot *a, uint64_t end)
{
	int err = close_all(a, &a->open, end, close_span);

	if (!err)
		err = close_all(a, &a->calls, end, close_call);
	if (!err)
		err = resolve_stacks(a);
	if (err)
		return err;
	if (a->info.n_spans)
		array__sort(a->spans, a->info.n_spans, sizeof(*a->spans), span_compare);
	if (a->info.n_ccalls)
		array__sort(a->ccalls, a->info.n_ccalls, sizeof(*a->ccalls), ccall_compare);
	return count_overlaps(a);
}

struct el_annot_info el_annot__info(const struct el_annot *a)
{
	return a->info;
}

const struct el_span *el_annot__span(const struct el_annot *a, size_t i)
{
	return &a->spans[i];
}

const struct el_span_sum *el_annot__sum(const struct el_annot *a, size_t i)
{
	return &a->sums[i];
}

const struct el_ccall *el_annot__ccall(const struct el_annot *a, size_t i)
{
	return &a->ccalls[i];
}

const char *el_annot__string(const struct el_annot *a, uint32_t id)
{
	return strtab__get(a->strings, id);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page's slices. What many slices share (everything but their times and samples) is a look, and
 * a slice is three numbers: length, look, samples.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "html_priv.h"

/* The limit for all slices with their looks. */
#define MAX_BYTES (UINT64_C(11) << 20)
/* The maximum in one element of the document. */
#define SLICES_IN_ONE 32768

struct look_key {
	uint64_t tso;
	uint32_t node;
	pid_t tid;
	uint16_t cap;
	uint8_t state, exact;
	uint32_t pad;
};

struct html_look {
	UT_hash_handle hh;
	struct look_key key;
	uint32_t no; /* from 1 */
};

static struct look_key key_of(const struct html *h, const struct pic_slice *s)
{
	struct look_key key;

	memset(&key, 0, sizeof(key));
	key.tso = s->tso;
	key.node = html_stacks__node(&h->stacks, s->stack);
	key.tid = s->tid;
	key.cap = s->cap;
	key.state = s->state;
	key.exact = s->exact != 0;
	return key;
}

static struct html_look *find(const struct html *h, const struct pic_slice *s)
{
	const struct look_key key = key_of(h, s);
	struct html_look *look;

	HASH_FIND(hh, h->looks, &key, sizeof(key), look);
	return look;
}

static unsigned digits(uint64_t n)
{
	unsigned d = 1;

	for (; n >= 10; n /= 10)
		d++;
	return d;
}

/* Bytes for a slice, plus a share of its look, which a few slices have in common. */
static uint64_t cost(const struct picture *pic, enum lane_kind kind, const struct pic_slice *s)
{
	(void)pic;
	(void)kind;
	return digits(s->end_ns - s->start_ns) + digits(s->samples) + 8;
}

static bool is_drawn(const struct html_lane *lane)
{
	return lane->shown && lane->view && lane->view->lane->n_slices;
}

/* ── looks ───────────────────────────────────────────────────────────────────────────────── */

static int add_look(struct html *h, const struct pic_slice *s, uint64_t *bytes)
{
	struct html_look *look = calloc(1, sizeof(*look));

	if (!look)
		return -ENOMEM;
	look->key = key_of(h, s);
	look->no = ++h->n_looks;
	*bytes += 10 + digits(look->key.node) + digits((uint64_t)look->key.tid) +
		  digits(look->key.tso);
	return HASH_INSERT(h->looks, key, sizeof(look->key), look);
}

void html_slices__free(struct html *h)
{
	HASH_FREE(h->looks);
	h->looks = NULL;
	h->n_looks = 0;
}

/* Numbers the looks of all slices; *ret_bytes is the size of looks and slices. */
static int number_looks(struct html *h, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	int err = 0;

	html_slices__free(h);
	for (size_t i = 0; i < h->n_lanes && !err; i++) {
		struct walk walk = {.grain_ns = h->views.grain_ns};
		struct pic_slice slice;

		if (!is_drawn(&h->lanes[i]))
			continue;
		walk.lane = h->lanes[i].view->lane;
		while (!err && walk__next(&walk, &slice)) {
			const struct html_look *look = find(h, &slice);

			if (!look)
				err = add_look(h, &slice, &bytes);
			bytes += digits(slice.end_ns - slice.start_ns) + digits(slice.samples) + 3 +
				 digits(look ? look->no : h->n_looks);
		}
	}
	*ret_bytes = bytes;
	return err;
}

int html_slices__choose(struct html *h)
{
	struct views drawn = h->views;
	size_t n = 0;

	drawn.v = calloc(h->n_lanes + 1, sizeof(*drawn.v));
	if (!drawn.v)
		return -ENOMEM;
	for (size_t i = 0; i < h->n_lanes; i++)
		if (is_drawn(&h->lanes[i]))
			drawn.v[n++] = *h->lanes[i].view;
	drawn.n = n;
	views__limit(&drawn, h->pic, MAX_BYTES, cost, "html",
		     " in its lanes; its sums include all of them");
	h->views.grain_ns = drawn.grain_ns;
	free(drawn.v);
	return 0;
}

int html_slices__number(struct html *h)
{
	uint64_t bytes;
	int err = number_looks(h, &bytes);

	/* there are more looks than cost() assumes, and they take most of the space */
	while (!err && bytes > MAX_BYTES && h->views.grain_ns < UINT64_C(1) << 40) {
		h->views.grain_ns = MAX(h->views.grain_ns * 2, (uint64_t)1024);
		err = number_looks(h, &bytes);
	}
	return err;
}

/* Six numbers for each look. */
void html_slices__put_looks(const struct html *h)
{
	const struct html_look *look;

	/* uthash iterates in insertion order, which is that of the numbers */
	fputs("\"looks\":[0,0,0,-1,0,0", h->out);
	for (look = h->looks; look; look = look->hh.next) {
		const struct look_key *k = &look->key;

		fprintf(h->out, ",%u,%u,", k->state, k->exact);
		put_u64(h->out, k->node);
		fputc_unlocked(',', h->out);
		html__put_int(h->out, k->cap == NO_CAP ? -1 : (int64_t)k->cap);
		fputc_unlocked(',', h->out);
		html__put_int(h->out, k->tid);
		fputc_unlocked(',', h->out);
		put_u64(h->out, k->tso);
	}
	fputc_unlocked(']', h->out);
}

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

static void put_slice(FILE *out, uint64_t ns, uint64_t look, uint64_t samples)
{
	fputc_unlocked(',', out);
	put_u64(out, ns);
	fputc_unlocked(',', out);
	put_u64(out, look);
	fputc_unlocked(',', out);
	put_u64(out, samples);
}

/* Splits a lane into several elements, so that the page parses each one quickly. */
static void put_lane(const struct html *h, size_t no)
{
	const struct pic_lane *lane = h->lanes[no].view->lane;
	struct walk walk = {.lane = lane, .grain_ns = h->views.grain_ns};
	uint64_t at = 0;
	struct pic_slice s;
	size_t n = 0;

	while (walk__next(&walk, &s)) {
		const struct html_look *look = find(h, &s);
		bool first = n % SLICES_IN_ONE == 0;

		if (first) {
			fprintf(h->out,
				"%s<script type=\"application/json\" id=\"slices-%zu-%zu\">[",
				n ? "]</script>\n" : "", no, n / SLICES_IN_ONE);
			html__put_int(h->out, html__time(h, s.start_ns));
		} else if (s.start_ns > at) {
			put_slice(h->out, s.start_ns - at, 0, 0);
		}
		n++;
		at = s.end_ns;
		put_slice(h->out, s.end_ns - s.start_ns, look ? look->no : 0, s.samples);
	}
	fputs(n ? "]</script>\n" : "", h->out);
}

void html_slices__put(const struct html *h)
{
	for (size_t i = 0; i < h->n_lanes; i++)
		if (is_drawn(&h->lanes[i]))
			put_lane(h, i);
}

/* ── weights ─────────────────────────────────────────────────────────────────────────────── */

struct weights {
	uint64_t *v;
	size_t n, cap;
	int err;
};

static void weigh(struct weights *w, uint32_t stack, uint64_t ns)
{
	size_t need = (size_t)stack + 1;

	if (w->err || stack == UINT32_MAX)
		return;
	if (need > w->cap) {
		size_t old = w->cap;

		w->err = ARRAY_RESERVE(w->v, w->cap, need, EXPORT_MAX_ENTRIES);
		if (w->err)
			return;
		memset(&w->v[old], 0, (w->cap - old) * sizeof(*w->v));
	}
	w->n = MAX(w->n, need);
	w->v[stack] += MAX(ns, (uint64_t)1);
}

static void weigh_target(struct weights *w, const struct pic_target *target)
{
	for (size_t i = 0; i < target->n_gcs; i++)
		if (target->gcs[i].haskell_ns)
			weigh(w, target->gcs[i].haskell_stack, target->gcs[i].haskell_ns);
	for (size_t i = 0; i < target->n_cc_nodes; i++)
		if (target->cc_nodes[i].ticks)
			weigh(w, target->cc_nodes[i].stack,
			      target->cc_nodes[i].ticks * target->tick_ns);
}

/* Bytes have no time of their own: weigh them as if the whole session had been spent on
 * allocation. */
static void weigh_allocated(struct weights *w, const struct pic_alloc *alloc, uint64_t session_ns)
{
	uint64_t all = alloc->sampled_bytes + alloc->unsampled_bytes;

	for (size_t i = 0; i < alloc->n_rows; i++)
		weigh(w, alloc->rows[i].stack,
		      (uint64_t)((double)alloc->rows[i].bytes / (double)MAX(all, (uint64_t)1) *
				 (double)session_ns));
}

int html_slices__weigh(const struct html *h, uint64_t **ret_weights, uint32_t *ret_n)
{
	const struct pic_session *session = picture__session(h->pic);
	uint64_t session_ns = session->end_ns - MIN(session->start_ns, session->end_ns);
	struct weights w = {0};

	for (size_t i = 0; i < h->views.n; i++) {
		const struct pic_lane *lane = h->views.v[i].lane;

		for (size_t k = 0; k < lane->n_rows; k++)
			if (lane->rows[k].ns || lane->rows[k].samples)
				weigh(&w, lane->rows[k].stack, lane->rows[k].ns);
	}
	for (size_t i = 0; i < h->n_lanes; i++) {
		struct walk walk = {.grain_ns = h->views.grain_ns};
		struct pic_slice slice;

		if (!is_drawn(&h->lanes[i]))
			continue;
		walk.lane = h->lanes[i].view->lane;
		while (walk__next(&walk, &slice))
			weigh(&w, slice.stack, slice.end_ns - slice.start_ns);
	}
	for (size_t t = 0; t < picture__n_targets(h->pic); t++)
		weigh_target(&w, picture__target(h->pic, t));
	for (size_t t = 0; t < picture__n_targets(h->pic); t++)
		weigh_allocated(&w, &picture__target(h->pic, t)->alloc, session_ns);
	if (w.err) {
		free(w.v);
		return w.err;
	}
	*ret_weights = w.v;
	*ret_n = (uint32_t)w.n;
	return 0;
}

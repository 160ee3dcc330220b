/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation for the page: in total by stack, and by time, thread and capability. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "html_priv.h"
#include "picture/spans.h"

/* The limit of spans for all processes together. */
#define MAX_SPANS   32768
#define LEAST_SPANS 64

/* The capability and threads shared by many spans. */
struct whose_key {
	uint64_t tso;
	pid_t tid;
	uint32_t cap;
};

struct whose {
	UT_hash_handle hh;
	struct whose_key key;
	uint32_t no; /* from 0 */
};

/* Writes [node, bytes, samples, …], empty if not known. */
static void put_rows(const struct html *h, const struct pic_alloc *alloc)
{
	bool any = false;

	fputc_unlocked('[', h->out);
	for (size_t i = 0; i < alloc->n_rows; i++) {
		html__comma(h->out, &any);
		put_u64(h->out, html_stacks__node(&h->stacks, alloc->rows[i].stack));
		fputc_unlocked(',', h->out);
		put_u64(h->out, alloc->rows[i].bytes);
		fputc_unlocked(',', h->out);
		put_u64(h->out, alloc->rows[i].samples);
	}
	fputc_unlocked(']', h->out);
}

/* ── spans ───────────────────────────────────────────────────────────────────────────────── */

/* Collects a process's spans by the page's nodes, up to its share of the limit; *left_out: bytes in
 * no span. */
static int collect(const struct html *h, const struct pic_alloc *alloc, size_t all,
		   struct alloc_spans *spans, uint64_t *left_out)
{
	size_t most = all <= MAX_SPANS ? MAX_SPANS
				       : (size_t)((double)alloc->n_spans / (double)all * MAX_SPANS);
	int err = 0;

	*left_out = alloc->no_span_bytes;
	spans->grain_ns = alloc->span_grain_ns;
	for (size_t i = 0; i < alloc->n_spans && !err; i++) {
		struct pic_alloc_span span = alloc->spans[i];

		span.stack = html_stacks__node(&h->stacks, span.stack);
		err = alloc_spans__put(spans, &span, MAX(most, (size_t)LEAST_SPANS));
		if (err == -E2BIG) {
			*left_out += span.bytes;
			err = 0;
		}
	}
	alloc_spans__order(spans);
	return err;
}

static struct whose_key key_of(const struct pic_alloc_span *span)
{
	struct whose_key key;

	memset(&key, 0, sizeof(key));
	key.tso = span->tso;
	key.tid = span->tid;
	key.cap = span->cap;
	return key;
}

static struct whose *find(struct whose *all, const struct pic_alloc_span *span)
{
	const struct whose_key key = key_of(span);
	struct whose *whose;

	HASH_FIND(hh, all, &key, sizeof(key), whose);
	return whose;
}

static int number(const struct alloc_spans *spans, struct whose **all)
{
	uint32_t n = 0;
	int err = 0;

	for (size_t i = 0; i < spans->n && !err; i++) {
		struct whose *whose;

		if (find(*all, &spans->v[i]))
			continue;
		whose = calloc(1, sizeof(*whose));
		if (!whose)
			return -ENOMEM;
		whose->key = key_of(&spans->v[i]);
		whose->no = n++;
		err = HASH_INSERT(*all, key, sizeof(whose->key), whose);
	}
	return err;
}

static void put_whose(FILE *out, const struct whose *all)
{
	bool any = false;

	/* uthash iterates in insertion order, which is that of the numbers */
	for (const struct whose *whose = all; whose; whose = whose->hh.next) {
		html__comma(out, &any);
		html__put_int(out, whose->key.cap == NO_CAP ? -1 : (int64_t)whose->key.cap);
		fputc_unlocked(',', out);
		html__put_int(out, whose->key.tid);
		fputc_unlocked(',', out);
		put_u64(out, whose->key.tso);
	}
}

static void put_spans(const struct html *h, const struct alloc_spans *spans, struct whose *all)
{
	int64_t before = 0;
	bool any = false;

	for (size_t i = 0; i < spans->n; i++) {
		const struct pic_alloc_span *span = &spans->v[i];
		const struct whose *whose = find(all, span);
		int64_t to = html__time(h, span->to_ns);
		const uint64_t rest[] = {span->to_ns - span->from_ns, whose ? whose->no : 0,
					 span->stack, span->bytes, span->samples};

		html__comma(h->out, &any);
		html__put_int(h->out, to - before);
		for (size_t k = 0; k < ARRAY_SIZE(rest); k++) {
			fputc_unlocked(',', h->out);
			put_u64(h->out, rest[k]);
		}
		before = to;
	}
}

static int put_target(const struct html *h, const struct pic_alloc *alloc, size_t all)
{
	struct alloc_spans spans = {0};
	struct whose *whose = NULL;
	uint64_t left_out;
	int err = collect(h, alloc, all, &spans, &left_out);

	if (!err)
		err = number(&spans, &whose);
	if (!err) {
		fputs("\n{\"grain_ns\":", h->out);
		put_u64(h->out, spans.grain_ns);
		fputs(",\"left_out\":", h->out);
		put_u64(h->out, left_out);
		fputs(",\"whose\":[", h->out);
		put_whose(h->out, whose);
		fputs("],\"list\":[", h->out);
		put_spans(h, &spans, whose);
		fputs("]}", h->out);
	}
	HASH_FREE(whose);
	alloc_spans__free(&spans);
	return err;
}

int html__put_allocated(const struct html *h)
{
	size_t n = picture__n_targets(h->pic), all = 0;
	int err = 0;

	fputs("\"allocated\":[", h->out);
	for (size_t t = 0; t < n; t++) {
		const struct pic_alloc *alloc = &picture__target(h->pic, t)->alloc;

		all += alloc->n_spans;
		fputs(t ? ",\n" : "\n", h->out);
		put_rows(h, alloc);
	}
	fputs("],\n\"spans\":[", h->out);
	for (size_t t = 0; t < n && !err; t++) {
		fputs(t ? "," : "", h->out);
		err = put_target(h, &picture__target(h->pic, t)->alloc, all);
	}
	fputs("]", h->out);
	return err;
}

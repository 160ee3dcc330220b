/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One page for a browser, with all that it needs in it: flame graphs of all threads and of each
 * lane, with zoom and search, and the report's tables. It loads nothing and asks nobody. What comes
 * from targets is JSON in an element that is no program, and the page's own program puts it into
 * the document as text only.
 *
 * The page stays small: each graph has at most so many frames, what is too small to show is one
 * frame that says so, and so many lanes, the busiest, have a graph of their own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "html.h"
#include "view.h"

#define SUMS	  64	/* graphs of a process's threads */
#define LANES	  24	/* graphs of lanes of each kind */
#define SUM_NODES 40000 /* for all sums together, but no less than the next for each */
#define NODES	  5000

/* One flame graph. */
struct profile {
	char name[192];
	uint32_t target_no;
	const struct lane_view *view; /* NULL: the sum of a target */
};

struct page {
	FILE *out;
	const struct timeline *tl;
	const struct export_opts *opts;
	bool log_alone;
	size_t n_sums;
	struct views views;
	struct profile profiles[SUMS + LANE_KINDS * LANES];
	size_t n_profiles;
	struct weights weights; /* owner: the profile */
	uint32_t *map;		/* of a timeline's frame: its number */
	uint32_t n_frames;
	uint32_t *of_number; /* a timeline's frame that has the number */
	uint32_t *in_page;   /* of a number: its index in the page, from 1; 0: not used */
	uint32_t *used;	     /* numbers in the order of their use */
	uint32_t n_used;
};

/* ── frames ──────────────────────────────────────────────────────────────────────────────── */

static int cmp_strings(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int cmp_frames(uint32_t a, uint32_t b, void *ctx)
{
	const struct tl_frame *x = timeline__frame(ctx, a), *y = timeline__frame(ctx, b);
	int diff = cmp_strings(x->name, y->name);

	return diff ? diff : cmp_strings(x->file, y->file);
}

static int number_frames(struct page *p)
{
	uint32_t n = timeline__n_frames(p->tl);
	int err = frames__number(n, cmp_frames, (void *)p->tl, true, &p->map, &p->n_frames);

	if (err)
		return err;
	p->of_number = calloc((size_t)p->n_frames + 1, sizeof(*p->of_number));
	p->in_page = calloc((size_t)p->n_frames + 1, sizeof(*p->in_page));
	p->used = calloc((size_t)p->n_frames + 1, sizeof(*p->used));
	if (!p->of_number || !p->in_page || !p->used)
		return -ENOMEM;
	for (uint32_t i = n; i-- > 0;)
		p->of_number[p->map[i]] = i;
	return 0;
}

/* Frame 0 of the page stands for what is too small. */
static uint32_t page_frame(struct page *p, uint32_t number)
{
	if (number == HTML_SMALL)
		return 0;
	if (!p->in_page[number]) {
		p->used[p->n_used++] = number;
		p->in_page[number] = p->n_used;
	}
	return p->in_page[number];
}

/* [name, what groups colours, enum tl_frame_kind] */
static void put_frames(const struct page *p)
{
	fprintf(p->out, "\"frames\":[[\"[too small to show]\",\"\",%d]", TF_MARK);
	for (uint32_t i = 0; i < p->n_used; i++) {
		const struct tl_frame *frame = timeline__frame(p->tl, p->of_number[p->used[i]]);

		fputs(",\n[", p->out);
		json__put_in_html(p->out, frame->name && *frame->name ? frame->name : "[unknown]");
		fputc(',', p->out);
		json__put_in_html(p->out, frame->file);
		fprintf(p->out, ",%d]", frame->kind);
	}
	fputc(']', p->out);
}

/* ── what there is a graph of ────────────────────────────────────────────────────────────── */

static bool has_lane(const struct page *p, enum lane_kind kind)
{
	static const unsigned bits[LANE_KINDS] = {
		[LANE_CAPABILITY] = EXPORT_LANES_CAPABILITY,
		[LANE_THREAD] = EXPORT_LANES_THREAD,
		[LANE_HASKELL] = EXPORT_LANES_HASKELL,
	};

	return !p->opts->lanes || p->opts->lanes & bits[kind];
}

static const char *sum_title(const struct page *p)
{
	if (!p->log_alone)
		return "all threads";
	return p->views.n ? "all capabilities" : "all cost centres";
}

static void choose_profiles(struct page *p)
{
	size_t n = timeline__n_targets(p->tl), of_kind[LANE_KINDS] = {0};

	p->n_sums = MIN(n, (size_t)SUMS);
	for (size_t i = 0; i < p->n_sums; i++) {
		const struct tl_target *target = timeline__target(p->tl, i);
		struct profile *profile = &p->profiles[p->n_profiles++];

		profile->target_no = (uint32_t)i;
		if (n > 1)
			snprintf(profile->name, sizeof(profile->name), "%s of %.64s (pid %d)",
				 sum_title(p), target->comm ? target->comm : "", (int)target->pid);
		else
			snprintf(profile->name, sizeof(profile->name), "%s", sum_title(p));
	}
	for (size_t i = 0; i < p->views.n; i++) {
		const struct lane_view *view = &p->views.v[i];
		struct profile *profile = &p->profiles[p->n_profiles];

		if (!has_lane(p, view->kind) || of_kind[view->kind]++ >= LANES)
			continue;
		profile->view = view;
		profile->target_no = view->target_no;
		view__name(view, n > 1, profile->name, sizeof(profile->name));
		p->n_profiles++;
	}
}

/* ── weights ─────────────────────────────────────────────────────────────────────────────── */

static int add_rows(struct page *p, const struct lane_view *view, uint32_t owner)
{
	const struct ledger_row *rows;
	size_t n;
	int err = 0;

	rows = view__rows(view, &n);
	for (size_t i = 0; i < n && !err; i++)
		if (timeline__stack(p->tl, rows[i].stack).n)
			err = weights__add(&p->weights, owner, rows[i].stack,
					   view__weight(view, &rows[i], p->opts->weight));
	return err;
}

/* A report that GHC wrote has no lanes: its ticks, each worth the time between two. */
static int collect_centres(struct page *p)
{
	const struct tl_target *t = timeline__target(p->tl, 0);
	uint64_t unit = p->opts->weight == WEIGHT_SAMPLES ? 1 : t ? t->tick_ns : 0;
	int err = 0;

	for (size_t i = 0; t && i < t->n_cc_nodes && !err; i++)
		if (t->cc_nodes[i].ticks && t->cc_nodes[i].stack)
			err = weights__add(&p->weights, 0, t->cc_nodes[i].stack,
					   t->cc_nodes[i].ticks * unit);
	return err;
}

static int collect(struct page *p)
{
	int err = 0;

	for (size_t i = 0; i < p->views.n && !err; i++) {
		const struct lane_view *view = &p->views.v[i];

		if (view->target_no < p->n_sums &&
		    (view->kind == LANE_THREAD || (view->kind == LANE_CAPABILITY && p->log_alone)))
			err = add_rows(p, view, view->target_no);
	}
	for (size_t i = p->n_sums; i < p->n_profiles && !err; i++)
		err = add_rows(p, p->profiles[i].view, (uint32_t)i);
	if (!err && !p->views.n && p->log_alone)
		err = collect_centres(p);
	weights__merge(&p->weights);
	return err;
}

/* ── graphs ──────────────────────────────────────────────────────────────────────────────── */

static int cmp_items(const void *pa, const void *pb, void *arg)
{
	const struct weighted *a = pa, *b = pb;
	const struct page *p = arg;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return stacks__cmp(timeline__stack(p->tl, a->stack), timeline__stack(p->tl, b->stack),
			   p->map);
}

/* Three numbers for each node: depth, frame, its own weight. */
static void put_tree(struct page *p, const struct profile *profile, const struct html_tree *tree)
{
	fputs("{\"name\":", p->out);
	json__put_in_html(p->out, profile->name);
	fputs(",\"nodes\":[", p->out);
	for (size_t i = 0; i < tree->n; i++) {
		const struct html_node *node = &tree->nodes[i];

		if (i)
			fputc_unlocked(',', p->out);
		put_u64(p->out, node->depth);
		fputc_unlocked(',', p->out);
		put_u64(p->out, page_frame(p, node->frame));
		fputc_unlocked(',', p->out);
		put_u64(p->out, node->self);
	}
	fputs("]}", p->out);
}

/* Profiles without a weight are left out. */
static int put_profiles(struct page *p)
{
	size_t n = p->weights.n;
	bool any = false;

	if (n)
		qsort_r(p->weights.items, n, sizeof(*p->weights.items), cmp_items, p);
	fputs("\"profiles\":[", p->out);
	for (size_t i = 0; i < n;) {
		const struct weighted *items = &p->weights.items[i];
		size_t most = items->owner < p->n_sums ? MAX(SUM_NODES / p->n_sums, (size_t)NODES)
						       : NODES;
		struct html_tree tree;
		size_t end = i;
		int err;

		while (end < n && p->weights.items[end].owner == items->owner)
			end++;
		err = html_tree__build(p->tl, items, end - i, p->map, most, &tree);
		if (err)
			return err;
		fputs(any ? ",\n" : "\n", p->out);
		put_tree(p, &p->profiles[items->owner], &tree);
		html_tree__free(&tree);
		any = true;
		i = end;
	}
	fputs("],\n", p->out);
	return 0;
}

/* ── the page ────────────────────────────────────────────────────────────────────────────── */

static void put_head(const struct page *p)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
	      "form-action 'none'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n"
	      "<title>safescoped</title>\n<style>\n",
	      p->out);
	fputs(html_css, p->out);
	fputs("</style>\n</head>\n<body>\n<noscript>This page draws its data by a program within "
	      "it: JavaScript is off.</noscript>\n"
	      "<script type=\"application/json\" id=\"data\">\n",
	      p->out);
}

static void put_session(const struct page *p)
{
	const struct tl_session *s = timeline__session(p->tl);
	uint64_t ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;

	fputs("{\"version\":", p->out);
	json__put_in_html(p->out, s->version);
	fprintf(p->out,
		",\"start_unix_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		",\"frequency_hz\":%" PRIu32 ",\"weight\":\"%s\",\n",
		s->start_unix_ns, ns, s->frequency_hz,
		p->opts->weight == WEIGHT_SAMPLES ? "samples"
		: p->opts->weight == WEIGHT_CPU	  ? "cpu"
						  : "wall");
}

static int put_page(struct page *p)
{
	int err;

	put_head(p);
	put_session(p);
	err = put_profiles(p);
	if (err)
		return err;
	put_frames(p);
	fputs(",\n", p->out);
	err = html__put_targets(p->out, p->tl, p->opts->lanes);
	if (err)
		return err;
	fputs("}\n</script>\n<script>\n", p->out);
	fputs(html_js, p->out);
	fputs("</script>\n</body>\n</html>\n", p->out);
	return ferror(p->out) ? -EIO : 0;
}

static int html__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	static const struct export_opts plain;
	struct page *p;
	int err;

	if (!timeline__session(tl))
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->out = out;
	p->tl = tl;
	p->opts = opts ? opts : &plain;
	p->log_alone = session__log_alone(tl);
	err = views__collect(tl, 0, &p->views);
	if (!err)
		err = number_frames(p);
	if (!err) {
		choose_profiles(p);
		err = collect(p);
	}
	if (!err)
		err = put_page(p);
	views__free(&p->views);
	weights__free(&p->weights);
	free(p->map);
	free(p->of_number);
	free(p->in_page);
	free(p->used);
	free(p);
	return err;
}

const struct export_format export_html = {
	.name = "html",
	.suffix = ".html",
	.write = html__write,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One page for a browser, with all that it needs in it: flame graphs of all threads and of each
 * lane, with zoom and search, and the report's tables. It loads nothing and asks nobody. What comes
 * from targets is JSON in an element that is no program, and the page's own program puts it into
 * the document as text only.
 *
 * The page stays small: each graph has at most so many frames, what is too small to show is one
 * frame, and as many lanes, the busiest first, have a graph of their own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "html_priv.h"

#define SUMS	  64	/* graphs of a process's threads */
#define LANES	  24	/* graphs of lanes of each kind */
#define SUM_NODES 40000 /* for all sums together, but no less than the next for each */
#define NODES	  5000

struct page {
	FILE *out;
	const struct picture *pic;
	enum export_weight weight;
	const char *sum_title;
	struct views views; /* those that are shown */
	struct sums sums;   /* by target */
	struct sums lanes;  /* by view */
	bool any_graph;
	uint32_t *map;	    /* of a picture's frame: its number */
	uint32_t *of_index; /* the numbers in the page, in the order of their use */
	uint32_t *index;    /* of a number in there, from 1; 0: not used */
	uint32_t n_used;
};

/* ── frames ──────────────────────────────────────────────────────────────────────────────── */

/* Frame 0 of the page stands for what is too small. */
static uint32_t page_frame(struct page *p, uint32_t number)
{
	if (number == HTML_SMALL)
		return 0;
	if (!p->index[number]) {
		p->of_index[p->n_used++] = number;
		p->index[number] = p->n_used;
	}
	return p->index[number];
}

/* [name, what groups colours, enum pic_frame_kind] */
static void put_frames(const struct page *p)
{
	uint32_t *frames = p->index; /* of the numbers, which are all in the page by now */

	for (uint32_t i = picture__n_frames(p->pic); i-- > 0;)
		frames[p->map[i]] = i;
	fprintf(p->out, "\"frames\":[[\"[too small to show]\",\"\",%d]", TF_MARK);
	for (uint32_t i = 0; i < p->n_used; i++) {
		const struct pic_frame *frame = picture__frame(p->pic, frames[p->of_index[i]]);

		fputs(",\n[", p->out);
		json__put_in_html(p->out, frame__name(frame));
		fputc(',', p->out);
		json__put_in_html(p->out, frame->file);
		fprintf(p->out, ",%d]", frame->kind);
	}
	fputc(']', p->out);
}

/* ── graphs ──────────────────────────────────────────────────────────────────────────────── */

/* Three numbers for each node: depth, frame, its own weight. */
static void put_tree(struct page *p, const char *name, const struct html_tree *tree)
{
	fputs(p->any_graph ? ",\n{\"name\":" : "\n{\"name\":", p->out);
	p->any_graph = true;
	json__put_in_html(p->out, name);
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

static struct view_name name_of(const struct page *p, bool is_lane, uint32_t owner)
{
	bool several = picture__n_targets(p->pic) > 1;
	struct view_name name;

	if (is_lane)
		return view__name(&p->views.v[owner], several);
	snprintf(name.s, sizeof(name.s), "%s%s%s", p->sum_title, several ? " of " : "",
		 several ? pic_target__name(picture__target(p->pic, owner)).s : "");
	return name;
}

/* A graph for each owner, each of at most so many frames; those without a weight are left out. */
static int put_graphs(struct page *p, struct sums *sums, bool is_lane, size_t most)
{
	sums__arrange(sums, p->pic, p->map, p->weight, false);
	for (size_t i = 0, end = 0; i < sums->n; i = end) {
		uint32_t owner = sums->v[i].owner;
		struct html_tree tree;
		int err;

		while (end < sums->n && sums->v[end].owner == owner)
			end++;
		if (!is_lane && owner >= SUMS)
			break;
		err = html_tree__build(p->pic, &sums->v[i], end - i, p->weight, p->map, most,
				       &tree);
		if (err)
			return err;
		put_tree(p, name_of(p, is_lane, owner).s, &tree);
		html_tree__free(&tree);
	}
	return 0;
}

/* Of all processes together, and of the first lanes of each kind. */
static int collect(struct page *p, const struct export_opts *opts)
{
	size_t of_kind[LANE_KINDS] = {0};
	int err = views__collect(p->pic, &p->views);

	if (!err)
		err = sums__collect(p->pic, &p->views, SUMS_BY_TARGET, &p->sums, &p->sum_title);
	views__keep(&p->views, opts);
	for (size_t i = 0; i < p->views.n && !err; i++) {
		const struct pic_lane *lane = p->views.v[i].lane;

		if (of_kind[lane->kind]++ < LANES)
			err = sums__add_lane(&p->lanes, lane, (uint32_t)i);
	}
	return err;
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
	static const char *const weights[WEIGHTS] = {
		[WEIGHT_WALL] = "wall",
		[WEIGHT_CPU] = "cpu",
		[WEIGHT_SAMPLES] = "samples",
		[WEIGHT_ALLOC] = "alloc",
	};
	const struct pic_session *s = picture__session(p->pic);
	uint64_t ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;

	fputs("{\"version\":", p->out);
	json__put_in_html(p->out, s->version);
	fprintf(p->out,
		",\"start_unix_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		",\"frequency_hz\":%" PRIu32 ",\"weight\":\"%s\",\n",
		s->start_unix_ns, ns, s->frequency_hz, weights[p->weight]);
}

static int put_page(struct page *p)
{
	size_t n = MIN(MAX(picture__n_targets(p->pic), 1), (size_t)SUMS);
	int err;

	put_head(p);
	put_session(p);
	fputs("\"profiles\":[", p->out);
	err = put_graphs(p, &p->sums, false, MAX(SUM_NODES / n, (size_t)NODES));
	if (!err)
		err = put_graphs(p, &p->lanes, true, NODES);
	if (err)
		return err;
	fputs("],\n", p->out);
	put_frames(p);
	fputs(",\n", p->out);
	html__put_targets(p->out, p->pic, &p->views);
	fputs("}\n</script>\n<script>\n", p->out);
	fputs(html_js, p->out);
	fputs("</script>\n</body>\n</html>\n", p->out);
	return 0;
}

int html__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct page p = {.out = out, .pic = pic, .weight = opts->weight};
	uint32_t n = 0;
	int err = collect(&p, opts);

	if (!err)
		err = frames__number_alike(pic, FRAME_FILE, &p.map, &n);
	p.of_index = calloc((size_t)n + 1, sizeof(*p.of_index));
	p.index = calloc((size_t)n + 1, sizeof(*p.index));
	if (!err)
		err = p.of_index && p.index ? put_page(&p) : -ENOMEM;
	views__free(&p.views);
	sums__free(&p.sums);
	sums__free(&p.lanes);
	free(p.map);
	free(p.of_index);
	free(p.index);
	return export__result(out, err);
}

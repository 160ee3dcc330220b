/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One self-contained page for a browser: the session on a time axis, and below it the flame graph
 * and the tables of the selection. It loads nothing else. Data from targets is JSON in
 * non-executable elements, which the page's own program inserts into the document only as text.
 *
 * The document has three parts, so that the first view does not wait for the last byte: the lanes
 * as a whole, and the program; then stacks and accounts; then the slices, one or more elements for
 * each lane, which are read once the user zooms in that far.
 *
 * The page stays small: stacks, accounts and slices have a budget each. Too many slices are merged,
 * frames that are too light become one frame, and the page indicates that.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/faces.h"
#include "html_priv.h"

#define MAX_NODES 250000
#define MAX_ROWS  120000

/* ── states, as the page needs them ──────────────────────────────────────────────────────── */

/* [letter, words, colour, kind: running 0, waiting 1, resting 2] */
static void put_faces(const struct html *h)
{
	fputs("\"faces\":[", h->out);
	for (unsigned f = 0; f < FACES; f++)
		fprintf(h->out, "%s[\"%s\",\"%s\",\"%s\",%d]", f ? "," : "", face_looks[f].letter,
			face_looks[f].title, face_looks[f].page,
			f >= FACE_RESTING   ? 2
			: f >= FACE_WAITING ? 1
					    : 0);
	fputs("],\n\"states\":[", h->out);
	for (unsigned k = 0; k < LANE_KINDS; k++) {
		enum lane_kind kind = (enum lane_kind)k;

		fputs(k ? ",[" : "[", h->out);
		for (unsigned s = 0; s < state__count(kind); s++)
			fprintf(h->out, "%s[\"%s\",\"%s\",%u,%d,%d]", s ? "," : "",
				state__name(kind, s), state__title(kind, s),
				(unsigned)face__of(kind, s), state__on_cpu(kind, s),
				state__is_idle(kind, s));
		fputc(']', h->out);
	}
	fputs("],\n", h->out);
}

static uint64_t merged_ns(const struct html *h)
{
	uint64_t merged = h->views.grain_ns;

	for (size_t i = 0; i < h->n_lanes; i++)
		if (h->lanes[i].view)
			merged = MAX(merged, h->lanes[i].view->lane->merged_ns);
	return merged;
}

static void put_session(const struct html *h)
{
	static const char *const weights[WEIGHTS] = {
		[WEIGHT_WALL] = "wall",
		[WEIGHT_CPU] = "cpu",
		[WEIGHT_SAMPLES] = "samples",
		[WEIGHT_ALLOC] = "alloc",
	};
	const struct pic_session *s = picture__session(h->pic);
	uint64_t ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;

	fputs("{\"version\":", h->out);
	json__put_in_html(h->out, s->version);
	fprintf(h->out,
		",\"start_unix_ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
		",\"frequency_hz\":%" PRIu32 ",\"weight\":\"%s\",\"log_alone\":%d,"
		"\"merged_ns\":%" PRIu64 ",\"small_ns\":%" PRIu64 ",\n\"axis\":[",
		s->start_unix_ns, ns, s->frequency_hz, weights[h->opts->weight],
		session__log_alone(h->pic), merged_ns(h), h->stacks.small_ns);
	html__put_int(h->out, html__time(h, h->views.start_ns));
	fputc(',', h->out);
	html__put_int(h->out, html__time(h, h->views.end_ns));
	fputs("],\n", h->out);
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

/* [name, colour group, source location, enum pic_frame_kind]; frame 0 stands for what is too
 * small. */
static void put_frame(FILE *out, const struct pic_frame *frame)
{
	fputs(",\n[", out);
	json__put_in_html(out, frame__name(frame));
	fputc(',', out);
	json__put_in_html(out, frame->file);
	fputc(',', out);
	json__put_in_html(out, or_empty(frame->src));
	fprintf(out, ",%d]", frame->kind);
}

static int put_stacks(const struct html *h, uint32_t n_numbers)
{
	uint32_t *page = calloc((size_t)n_numbers + 1, sizeof(*page));
	uint32_t *frames = calloc((size_t)n_numbers + 1, sizeof(*frames));
	uint32_t n = 0;
	bool any = false;

	if (!page || !frames) {
		free(page);
		free(frames);
		return -ENOMEM;
	}
	for (uint32_t i = picture__n_frames(h->pic); i-- > 0;)
		frames[h->map[i]] = i;
	fprintf(h->out, "\"frames\":[[\"[too small to show]\",\"\",\"\",%d]", TF_MARK);
	for (size_t i = 0; i < h->stacks.n; i++) {
		uint32_t number = h->stacks.nodes[i].frame;

		if (number == HTML_SMALL || page[number])
			continue;
		page[number] = ++n;
		put_frame(h->out, picture__frame(h->pic, frames[number]));
	}
	/* two numbers for each node: depth, frame */
	fputs("],\n\"nodes\":[", h->out);
	for (size_t i = 0; i < h->stacks.n; i++) {
		const struct html_node *node = &h->stacks.nodes[i];

		html__comma(h->out, &any);
		put_u64(h->out, node->depth);
		fputc_unlocked(',', h->out);
		put_u64(h->out, node->frame == HTML_SMALL ? 0 : page[node->frame]);
	}
	fputs("]", h->out);
	free(page);
	free(frames);
	return 0;
}

/* Makes stacks and accounts, leaving out light frames until they fit. */
static int make_stacks(struct html *h)
{
	uint32_t n_stacks = 0;
	uint64_t *weights = NULL, least = 1;
	ssize_t rows = 0;
	int err = html_slices__weigh(h, &weights, &n_stacks);

	while (!err) {
		html_stacks__free(&h->stacks);
		err = html_stacks__build(h->pic, weights, n_stacks, h->map, MAX_NODES, least,
					 &h->stacks, &least);
		if (err)
			break;
		rows = html_lanes__account(h);
		if (rows <= MAX_ROWS || least > UINT64_MAX / 4 || h->stacks.n <= h->n_lanes)
			break;
		least = MAX(least * 2, (uint64_t)1000);
	}
	free(weights);
	return err ? err : rows < 0 ? (int)rows : 0;
}

/* ── the page ────────────────────────────────────────────────────────────────────────────── */

struct part {
	const char *mark; /* in the page's source */
	int (*put)(const struct html *h, uint32_t n_numbers);
};

static int put_css(const struct html *h, uint32_t n_numbers)
{
	(void)n_numbers;
	fputs(html_css, h->out);
	return 0;
}

static int put_js(const struct html *h, uint32_t n_numbers)
{
	(void)n_numbers;
	fputs(html_js, h->out);
	return 0;
}

static int put_data(const struct html *h, uint32_t n_numbers)
{
	(void)n_numbers;
	put_session(h);
	put_faces(h);
	html_lanes__put(h);
	fputs(",\n", h->out);
	html__put_targets(h);
	fputs("}", h->out);
	return 0;
}

static int put_details(const struct html *h, uint32_t n_numbers)
{
	int err;

	fputc('{', h->out);
	err = put_stacks(h, n_numbers);
	if (err)
		return err;
	fputs(",\n", h->out);
	html_lanes__put_rows(h);
	fputs(",\n", h->out);
	err = html__put_allocated(h);
	if (err)
		return err;
	fputs(",\n", h->out);
	html_slices__put_looks(h);
	fputs("}", h->out);
	return 0;
}

static int put_slices(const struct html *h, uint32_t n_numbers)
{
	(void)n_numbers;
	html_slices__put(h);
	return 0;
}

static const struct part parts[] = {
	{"@STYLE@\n", put_css},	      {"@DATA@\n", put_data},	  {"@PROGRAM@\n", put_js},
	{"@DETAILS@\n", put_details}, {"@SLICES@\n", put_slices},
};

/* Writes the page's source, with these parts in place of their marks. */
static int put_page(const struct html *h, uint32_t n_numbers)
{
	const char *rest = html_page;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && !err; i++) {
		const char *mark = strstr(rest, parts[i].mark);

		if (!mark)
			return -EINVAL;
		fwrite(rest, 1, (size_t)(mark - rest), h->out);
		err = parts[i].put(h, n_numbers);
		rest = mark + strlen(parts[i].mark);
	}
	fputs(rest, h->out);
	return err;
}

int html__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct html h = {
		.out = out, .pic = pic, .opts = opts, .zero_ns = picture__session(pic)->start_ns};
	uint32_t n = 0;
	int err = views__collect(pic, &h.views);

	if (!err)
		err = frames__number_alike(pic, FRAME_FILE, &h.map, &n);
	if (!err)
		err = html_lanes__collect(&h);
	if (!err)
		err = html_slices__choose(&h);
	if (!err)
		err = make_stacks(&h);
	if (!err)
		err = html_slices__number(&h);
	if (!err)
		err = put_page(&h, n);
	html_slices__free(&h);
	html_lanes__free(&h);
	html_stacks__free(&h.stacks);
	views__free(&h.views);
	free(h.map);
	return export__result(out, err);
}

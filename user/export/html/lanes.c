/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page's lanes: the list, their accounts, and how each looks as a whole, which is drawn until
 * the user zooms in. After that the slices are drawn (slices.c).
 */
#include <stdlib.h>
#include <string.h>

#include "export/faces.h"
#include "html_priv.h"

/* Lanes shown individually, the busiest first; of the rest there are only sums. */
#define MAX_LANES 1500
/* Bins in a lane's drawing, fewer if there are many lanes: a bin is a few pixels on the widest
 * screen. */
#define BINS	 2048
#define ALL_BINS 600000
#define MIN_BINS 256
/* The sum of the shares in a bin. */
#define WHOLE 100

#define NO_LANE UINT32_MAX

/* ── which there are ─────────────────────────────────────────────────────────────────────── */

static bool is_counted(const struct html *h, const struct view *view)
{
	enum lane_kind kind = view->lane->kind;

	/* the same condition as in sums__counts */
	return kind == LANE_THREAD ||
	       (kind == LANE_CAPABILITY &&
		(session__log_alone(h->pic) || !view->target->lanes[LANE_THREAD].n));
}

static int add_lane(struct html *h, const struct html_lane *lane, uint32_t *ret_no)
{
	int err = ARRAY_RESERVE(h->lanes, h->cap_lanes, h->n_lanes + 1, EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	h->lanes[h->n_lanes] = *lane;
	*ret_no = (uint32_t)h->n_lanes++;
	return 0;
}

/* The lane that stands for the remaining lanes of the process and kind. */
static uint32_t find_rest(const struct html *h, const struct view *view)
{
	for (size_t i = 0; i < h->n_lanes; i++)
		if (!h->lanes[i].view && h->lanes[i].kind == view->lane->kind &&
		    h->lanes[i].target_no == view->target_no)
			return (uint32_t)i;
	return NO_LANE;
}

static int lane_of(struct html *h, const struct view *view, bool own, uint32_t *ret_no)
{
	const struct html_lane lane = {
		.kind = view->lane->kind,
		.target_no = view->target_no,
		.shown = export__shows(h->opts, view->lane->kind),
		.counted = is_counted(h, view),
		.view = own ? view : NULL,
	};

	*ret_no = own ? NO_LANE : find_rest(h, view);
	return *ret_no == NO_LANE ? add_lane(h, &lane, ret_no) : 0;
}

static void add_sums(struct html_lane *to, const struct pic_lane *lane)
{
	to->lanes += lane->threads;
	to->wall_ns += lane->end_ns - lane->start_ns;
	if (lane->cpu_ns == UINT64_MAX || lane->kind != LANE_THREAD)
		to->cpu_ns = UINT64_MAX;
	else if (to->cpu_ns != UINT64_MAX)
		to->cpu_ns += lane->cpu_ns;
	for (unsigned s = 0; s < LANE_STATES; s++)
		to->states_ns[s] += lane->states_ns[s];
}

/* Adds a lane for the ticks of a report that GHC wrote, which has neither threads nor
 * capabilities. */
static int add_ticks(struct html *h)
{
	int err = 0;

	for (size_t t = 0; !err && t < picture__n_targets(h->pic); t++) {
		const struct pic_target *target = picture__target(h->pic, t);
		const struct html_lane lane = {.kind = LANE_CAPABILITY,
					       .target_no = (uint32_t)t,
					       .counted = true,
					       .ticks = true,
					       .lanes = 1,
					       .cpu_ns = UINT64_MAX};
		uint32_t no;

		if (!target->lanes[LANE_CAPABILITY].n && target->n_cc_nodes)
			err = add_lane(h, &lane, &no);
	}
	return err;
}

int html_lanes__collect(struct html *h)
{
	size_t own = 0;
	int err = 0;

	h->lane_of_view = calloc(h->views.n + 1, sizeof(*h->lane_of_view));
	if (!h->lane_of_view)
		return -ENOMEM;
	for (size_t i = 0; i < h->views.n && !err; i++) {
		const struct view *view = &h->views.v[i];
		bool shown = export__shows(h->opts, view->lane->kind);
		bool is_own = shown && own < MAX_LANES;

		h->lane_of_view[i] = NO_LANE;
		if (!shown && !is_counted(h, view))
			continue;
		err = lane_of(h, view, is_own, &h->lane_of_view[i]);
		if (!err)
			add_sums(&h->lanes[h->lane_of_view[i]], view->lane);
		own += is_own;
	}
	if (!err && session__log_alone(h->pic))
		err = add_ticks(h);
	h->bins = MAX(MIN(ALL_BINS / MAX(own, (size_t)1), (size_t)BINS), (size_t)MIN_BINS);
	return err;
}

void html_lanes__free(struct html *h)
{
	for (size_t i = 0; i < h->n_lanes; i++)
		free(h->lanes[i].rows);
	free(h->lanes);
	free(h->lane_of_view);
}

/* ── accounts ────────────────────────────────────────────────────────────────────────────── */

static int add_row(struct html_lane *lane, const struct html_row *row)
{
	int err = ARRAY_RESERVE(lane->rows, lane->cap, lane->n_rows + 1, EXPORT_MAX_ENTRIES);

	if (!err)
		lane->rows[lane->n_rows++] = *row;
	return err;
}

static int cmp_rows(const void *pa, const void *pb)
{
	const struct html_row *a = pa, *b = pb;

	return CMP(a->node, b->node) ?: CMP(a->state, b->state) ?: CMP(a->on_cpu, b->on_cpu);
}

static void merge_rows(struct html_lane *lane)
{
	size_t kept = 0;

	if (!lane->n_rows)
		return;
	qsort(lane->rows, lane->n_rows, sizeof(*lane->rows), cmp_rows);
	for (size_t i = 1; i < lane->n_rows; i++) {
		if (cmp_rows(&lane->rows[kept], &lane->rows[i])) {
			lane->rows[++kept] = lane->rows[i];
			continue;
		}
		lane->rows[kept].ns += lane->rows[i].ns;
		lane->rows[kept].samples += lane->rows[i].samples;
	}
	lane->n_rows = kept + 1;
}

static int add_ticks_of(const struct html *h, struct html_lane *lane)
{
	const struct pic_target *target = picture__target(h->pic, lane->target_no);
	int err = 0;

	for (size_t i = 0; i < target->n_cc_nodes && !err; i++) {
		const struct pic_cc_node *node = &target->cc_nodes[i];
		const struct html_row row = {html_stacks__node(&h->stacks, node->stack), CS_HASKELL,
					     true, node->ticks * target->tick_ns, node->ticks};

		if (node->ticks && node->stack)
			err = add_row(lane, &row);
	}
	return err;
}

static int add_rows_of(const struct html *h, struct html_lane *to, const struct pic_lane *lane)
{
	int err = 0;

	for (size_t i = 0; i < lane->n_rows && !err; i++) {
		const struct pic_row *row = &lane->rows[i];
		const struct html_row one = {html_stacks__node(&h->stacks, row->stack), row->state,
					     row->on_cpu, row->ns, row->samples};

		if (row->ns || row->samples)
			err = add_row(to, &one);
	}
	return err;
}

ssize_t html_lanes__account(struct html *h)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < h->n_lanes; i++)
		h->lanes[i].n_rows = 0;
	for (size_t i = 0; i < h->views.n && !err; i++)
		if (h->lane_of_view[i] != NO_LANE)
			err = add_rows_of(h, &h->lanes[h->lane_of_view[i]], h->views.v[i].lane);
	for (size_t i = 0; i < h->n_lanes && !err; i++)
		if (h->lanes[i].ticks)
			err = add_ticks_of(h, &h->lanes[i]);
	for (size_t i = 0; i < h->n_lanes && !err; i++) {
		merge_rows(&h->lanes[i]);
		n += h->lanes[i].n_rows;
	}
	return err ? err : (ssize_t)n;
}

void html_lanes__put_rows(const struct html *h)
{
	fputs("\"rows\":[", h->out);
	for (size_t i = 0; i < h->n_lanes; i++) {
		const struct html_lane *lane = &h->lanes[i];
		bool any = false;

		fputs(i ? ",\n[" : "\n[", h->out);
		for (size_t k = 0; k < lane->n_rows; k++) {
			html__comma(h->out, &any);
			put_u64(h->out, lane->rows[k].node);
			fputc_unlocked(',', h->out);
			put_u64(h->out, (unsigned)lane->rows[k].state * 2 + lane->rows[k].on_cpu);
			fputc_unlocked(',', h->out);
			put_u64(h->out, lane->rows[k].ns);
			fputc_unlocked(',', h->out);
			put_u64(h->out, lane->rows[k].samples);
		}
		fputc_unlocked(']', h->out);
	}
	fputc_unlocked(']', h->out);
}

/* ── how a lane looks as a whole ─────────────────────────────────────────────────────────── */

/* Bins in time order, with how long the lane had each face in each. */
struct drawing {
	FILE *out;
	uint64_t width_ns, start_ns;
	size_t bin;
	uint64_t ns[FACES];
	uint8_t shares[FACES], last[FACES]; /* last: of the last `times` bins, not yet written */
	uint64_t times;
	bool any;
};

/* [times, faces, face, share, …] */
static void put_bins(struct drawing *d)
{
	unsigned n = 0;

	if (!d->times)
		return;
	for (unsigned f = 0; f < FACES; f++)
		n += d->last[f] != 0;
	html__comma(d->out, &d->any);
	put_u64(d->out, d->times);
	fputc_unlocked(',', d->out);
	put_u64(d->out, n);
	for (unsigned f = 0; f < FACES; f++) {
		if (!d->last[f])
			continue;
		fputc_unlocked(',', d->out);
		put_u64(d->out, f);
		fputc_unlocked(',', d->out);
		put_u64(d->out, d->last[f]);
	}
	d->times = 0;
}

static void end_bin(struct drawing *d)
{
	for (unsigned f = 0; f < FACES; f++) {
		d->shares[f] = (uint8_t)((d->ns[f] * WHOLE + d->width_ns / 2) / d->width_ns);
		d->ns[f] = 0;
	}
	if (memcmp(d->shares, d->last, sizeof(d->last)) != 0)
		put_bins(d);
	memcpy(d->last, d->shares, sizeof(d->last));
	d->times++;
	d->bin++;
}

static void draw(struct drawing *d, uint64_t start_ns, uint64_t end_ns, enum face face)
{
	for (;;) {
		uint64_t bin_end = d->start_ns + (d->bin + 1) * d->width_ns;

		if (bin_end <= start_ns) {
			end_bin(d);
			continue;
		}
		d->ns[face] += MIN(end_ns, bin_end) - start_ns;
		if (end_ns <= bin_end)
			return;
		start_ns = bin_end;
	}
}

static void put_drawing(const struct html *h, const struct pic_lane *lane)
{
	uint64_t axis = h->views.end_ns - h->views.start_ns;
	struct drawing d = {.out = h->out,
			    .start_ns = h->views.start_ns,
			    .width_ns = MAX((axis + h->bins - 1) / h->bins, (uint64_t)1)};
	uint64_t at = h->views.start_ns;

	for (size_t i = 0; i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];
		uint64_t start = MAX(s->start_ns, at);

		if (s->end_ns <= start)
			continue;
		draw(&d, start, s->end_ns, face__of(lane->kind, s->state));
		at = s->end_ns;
	}
	end_bin(&d);
	put_bins(&d);
}

static struct view_name name_of(const struct html_lane *lane)
{
	static const char *const kinds[LANE_KINDS] = {[LANE_CAPABILITY] = "capabilities",
						      [LANE_THREAD] = "OS threads",
						      [LANE_HASKELL] = "Haskell threads"};
	struct view_name name;

	if (lane->view)
		return view__name(lane->view, false);
	if (lane->ticks)
		snprintf(name.s, sizeof(name.s), "all cost centres");
	else
		snprintf(name.s, sizeof(name.s), "%llu %s", (unsigned long long)lane->lanes,
			 kinds[lane->kind]);
	return name;
}

static void put_lane(const struct html *h, const struct html_lane *l)
{
	const struct pic_lane *lane = l->view ? l->view->lane : NULL;
	bool any = false;

	fputs("{\"name\":", h->out);
	json__put_in_html(h->out, name_of(l).s);
	fprintf(h->out, ",\"kind\":%d,\"target\":%u,\"shown\":%d,\"counted\":%d,\"lanes\":%llu",
		(int)l->kind, l->target_no, l->shown && lane, l->counted,
		(unsigned long long)l->lanes);
	if (lane) {
		uint64_t id = lane->kind == LANE_CAPABILITY ? lane->cap
			      : lane->kind == LANE_THREAD   ? (uint64_t)lane->tid
							    : lane->tso;

		fputs(",\"id\":", h->out);
		put_u64(h->out, id);
		fprintf(h->out, ",\"housekeeping\":%d,\"merged\":", lane->housekeeping);
		put_u64(h->out, lane->n_slices ? view__merged_ns(&h->views, l->view) : 0);
		fputs(",\"start\":", h->out);
		html__put_int(h->out, html__time(h, lane->start_ns));
		fputs(",\"end\":", h->out);
		html__put_int(h->out, html__time(h, lane->end_ns));
	}
	fputs(",\"wall\":", h->out);
	put_u64(h->out, l->wall_ns);
	fputs(",\"cpu\":", h->out);
	html__put_known(h->out, l->cpu_ns);
	fputs(",\"states\":[", h->out);
	for (unsigned s = 0; s < state__count(l->kind); s++) {
		html__comma(h->out, &any);
		put_u64(h->out, l->states_ns[s]);
	}
	fputc(']', h->out);
	if (l->shown && lane && lane->n_slices) {
		fputs(",\"bins\":[", h->out);
		put_drawing(h, lane);
		fputc(']', h->out);
	}
	fputc('}', h->out);
}

void html_lanes__put(const struct html *h)
{
	uint64_t axis = h->views.end_ns - h->views.start_ns;

	fputs("\"bin_ns\":", h->out);
	put_u64(h->out, MAX((axis + h->bins - 1) / h->bins, (uint64_t)1));
	fputs(",\n\"lanes\":[", h->out);
	for (size_t i = 0; i < h->n_lanes; i++) {
		fputs(i ? ",\n" : "\n", h->out);
		put_lane(h, &h->lanes[i]);
	}
	fputs("]", h->out);
}

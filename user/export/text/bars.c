/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report's bars: what the time of a process, a thread or a capability consists of. Each
 * state is a letter, so that bars are readable without colours.
 */
#include <stdlib.h>
#include <string.h>

#include "export/faces.h"
#include "text_priv.h"

#define BAR_MIN	  16
#define BAR_MAX	  100
#define LABEL_MAX 32

static void add_faces(uint64_t *ns, const uint64_t *states_ns, enum lane_kind kind)
{
	for (unsigned s = 0; s < state__count(kind); s++)
		ns[face__of(kind, s)] += states_ns[s];
}

static const char *paint(uint32_t cp, char *out, size_t size)
{
	for (unsigned i = 0; i < FACES; i++) {
		const char *letter = face_looks[i].letter;

		if (utf8__next(&letter) != cp)
			continue;
		if (!face_looks[i].terminal)
			return "\033[0;2m";
		snprintf(out, size, "\033[38;5;16;48;5;%um", face_looks[i].terminal);
		return out;
	}
	return "";
}

/* ── one bar ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Draws the states in order, each as long as its share. The ends are rounded, not the lengths. Sets
 * ret_drawn for those that have at least one letter.
 */
static void make_bar(struct buf *bar, const uint64_t *ns, size_t width, bool ret_drawn[FACES])
{
	double all = 0, sum = 0;
	size_t at = 0;

	buf__reset(bar);
	for (unsigned i = 0; i < FACES; i++)
		all += (double)ns[i];
	for (unsigned i = 0; i < FACES && all > 0; i++) {
		size_t end;

		sum += (double)ns[i];
		end = (size_t)(sum / all * (double)width + 0.5);
		ret_drawn[i] |= at < end;
		for (; at < end; at++)
			buf__adds(bar, face_looks[i].letter);
	}
	buf__addc(bar, '\0');
}

int export__bar(struct buf *bar, enum lane_kind kind, const uint64_t *states_ns, size_t width)
{
	bool drawn[FACES] = {false};
	uint64_t ns[FACES] = {0};

	add_faces(ns, states_ns, kind);
	make_bar(bar, ns, width, drawn);
	return bar->err;
}

const char *export__bar_colour(uint32_t letter, char *out, size_t size)
{
	return paint(letter, out, size);
}

/* ── the table ───────────────────────────────────────────────────────────────────────────── */

struct bar_row {
	char label[96], wall[32], cpu[32], gc[40];
	uint64_t ns[FACES];
};

struct bars {
	const struct text *t;
	struct bar_row *v;
	size_t n, max;
	uint64_t ns[FACES]; /* of the rows that the legend covers */
	bool drawn[FACES];
};

int bars__new(const struct text *t, size_t max, struct bars **ret_bars)
{
	struct bars *b = calloc(1, sizeof(*b));

	if (b)
		b->v = calloc(max + 1, sizeof(*b->v));
	if (!b || !b->v) {
		free(b);
		return -ENOMEM;
	}
	b->t = t;
	b->max = max;
	*ret_bars = b;
	return 0;
}

void bars__add(struct bars *b, enum lane_kind kind, const struct account *account, bool counted,
	       const char *gc, const char *label)
{
	struct bar_row *row = &b->v[b->n];

	if (b->n == b->max)
		return;
	b->n++;
	text__escape(label, strlen(label), row->label, sizeof(row->label));
	snprintf(row->wall, sizeof(row->wall), "%s", human__duration(account->wall).s);
	if (kind == LANE_THREAD && account->cpu != UINT64_MAX)
		snprintf(row->cpu, sizeof(row->cpu), "%s", human__duration(account->cpu).s);
	snprintf(row->gc, sizeof(row->gc), "%s", gc);
	add_faces(row->ns, account->states_ns, kind);
	for (unsigned i = 0; i < FACES && counted; i++)
		b->ns[i] += row->ns[i];
}

static size_t width_of(const char *s)
{
	return text__width(s, strlen(s));
}

/* The width that the other columns leave. */
static size_t bar_width(const struct bars *b)
{
	size_t label = 0, wall = 4, cpu = 0, gc = 0, others;

	for (size_t i = 0; i < b->n; i++) {
		label = MAX(label, MIN(width_of(b->v[i].label), (size_t)LABEL_MAX));
		wall = MAX(wall, width_of(b->v[i].wall));
		cpu = MAX(cpu, width_of(b->v[i].cpu));
		gc = MAX(gc, width_of(b->v[i].gc));
	}
	others = 2 + label + 2 + wall + 2 + (cpu ? cpu + 2 : 0) + (gc ? MAX(gc, 8U) + 2 : 0);
	return MIN(MAX(b->t->width, others + BAR_MIN) - others, (size_t)BAR_MAX);
}

/* The letters with their meanings and shares, in one paragraph. */
static void put_legend(const struct bars *b)
{
	static const char *const heads[] = {"on CPU: ", "waiting: ", ""};
	uint64_t all = 0;
	size_t at = 0;
	unsigned group = 3;

	for (unsigned i = 0; i < FACES; i++)
		all += b->ns[i];
	if (!all)
		return;
	for (unsigned i = 0; i < FACES; i++) {
		unsigned in = i < FACE_WAITING ? 0 : i < FACE_RESTING ? 1 : 2;
		double share = human__percent(b->ns[i], all);
		char item[96], colour[32];
		size_t len;

		if (share < TEXT_SHARE_SHOWN && !b->drawn[i])
			continue;
		snprintf(item, sizeof(item), " %s %.1f %%", face_looks[i].title, share);
		len = 1 + width_of(item) + (in != group ? strlen(heads[in]) : 0);
		if (!at || at + 2 + len > b->t->width) {
			fputs(!at ? "  " : in != group ? ";\n    " : ",\n    ", b->t->out);
			at = at ? 4 : 2;
		} else {
			fputs(in != group ? "; " : ", ", b->t->out);
			at += 2;
		}
		if (in != group)
			fputs(heads[in], b->t->out);
		if (b->t->opts->colour) {
			const char *letter = face_looks[i].letter;

			fputs(paint(utf8__next(&letter), colour, sizeof(colour)), b->t->out);
		}
		fprintf(b->t->out, "%s%s%s", face_looks[i].letter,
			b->t->opts->colour ? "\033[0m" : "", item);
		at += len;
		group = in;
	}
	if (at)
		fputc('\n', b->t->out);
}

int bars__print(struct bars *b, const char *title, const char *first)
{
	const struct table_column columns[] = {
		{first, COL_FLEX, NULL, 0},  {"wall", COL_RIGHT | COL_SPARE, NULL, 1},
		{"CPU", COL_RIGHT, NULL, 0}, {"GC pause", COL_RIGHT | COL_SPARE, NULL, 2},
		{"", COL_PAINTED, NULL, 0},
	};
	struct table *table;
	struct buf bar = {0};
	size_t width;
	int err = 0;

	if (!b->n)
		goto out;
	err = table__new(columns, ARRAY_SIZE(columns), &table);
	if (err)
		goto out;
	table__paint(table, paint);
	width = bar_width(b);
	for (size_t i = 0; i < b->n; i++) {
		make_bar(&bar, b->v[i].ns, width, b->drawn);
		table__cell(table, b->v[i].label);
		table__cell(table, b->v[i].wall);
		table__cell(table, b->v[i].cpu);
		table__cell(table, b->v[i].gc);
		table__cell(table, or_empty(bar.data));
	}
	err = bar.err ? bar.err : 0;
	if (err)
		table__free(table);
	else
		err = text__print(b->t, title, table, 0, "");
	if (!err)
		put_legend(b);
out:
	buf__free(&bar);
	return err;
}

void bars__free(struct bars *b)
{
	if (!b)
		return;
	free(b->v);
	free(b);
}

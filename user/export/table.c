/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aligned columns that fit a terminal. Columns that may be cut give way evenly, the widest first,
 * and are cut in the middle: both ends of a Haskell name tell more than its module path does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export_priv.h"

#define TABLE_MAX_BYTES ((size_t)64 << 20)
#define TABLE_MAX_CELLS ((size_t)1 << 22)
#define FLEX_MIN	12 /* a name cut shorter says nothing */
#define INDENT		2
#define GAP		2

struct column {
	const char *title, *group;
	int flags;
	uint64_t worth; /* UINT64_MAX: never left out */
	size_t width;
	bool used, left_out;
};

struct table {
	struct column *cols;
	size_t n_cols;
	size_t *cells; /* offsets into text */
	size_t n_cells, cap;
	struct buf text;
	int err;
};

int table__new(size_t n_cols, struct table **ret_table)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cols = calloc(n_cols, sizeof(*t->cols));
	if (!t->cols) {
		free(t);
		return -ENOMEM;
	}
	t->n_cols = n_cols;
	buf__init(&t->text, TABLE_MAX_BYTES);
	*ret_table = t;
	return 0;
}

void table__free(struct table *t)
{
	if (!t)
		return;
	buf__free(&t->text);
	free(t->cells);
	free(t->cols);
	free(t);
}

void table__column(struct table *t, size_t col, const char *title, const char *group, int flags)
{
	t->cols[col].title = title;
	t->cols[col].group = group ? group : "";
	t->cols[col].flags = flags;
	t->cols[col].worth = UINT64_MAX;
}

void table__worth(struct table *t, size_t col, uint64_t worth)
{
	t->cols[col].worth = worth;
}

void table__cell(struct table *t, const char *text)
{
	uint32_t cp;

	if (!t->err)
		t->err = array__reserve((void **)&t->cells, &t->cap, t->n_cells + 1,
					TABLE_MAX_CELLS, sizeof(*t->cells));
	if (t->err)
		return;
	t->cells[t->n_cells++] = t->text.len;
	while ((cp = utf8__next(&text))) {
		char utf8[4] = {0};

		if (utf8__is_control(cp))
			cp = '?';
		buf__add(&t->text, utf8, utf8__put(utf8, cp));
	}
	buf__addc(&t->text, '\0');
	t->err = t->text.err;
}

void table__cellf(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0) {
		text = NULL;
		t->err = t->err ? t->err : -ENOMEM;
	}
	va_end(args);
	table__cell(t, text ? text : "");
	free(text);
}

static size_t code_points(const char *s)
{
	size_t n = 0;

	while (utf8__next(&s))
		n++;
	return n;
}

static const char *cell_at(const struct table *t, size_t row, size_t col)
{
	return t->text.data + t->cells[row * t->n_cols + col];
}

static void measure(struct table *t, size_t rows)
{
	for (size_t c = 0; c < t->n_cols; c++) {
		struct column *col = &t->cols[c];

		for (size_t r = 0; r < rows; r++)
			col->width = MAX(col->width, code_points(cell_at(t, r, c)));
		col->used = col->width > 0;
		if (col->used)
			col->width = MAX(col->width, code_points(col->title));
	}
}

/* Columns are at least as wide together as the title over them. */
static void measure_groups(struct table *t)
{
	for (size_t c = 0; c < t->n_cols;) {
		const char *group = t->cols[c].group;
		struct column *first = NULL;
		size_t width = 0, need = code_points(group);

		for (; c < t->n_cols && !strcmp(t->cols[c].group, group); c++) {
			if (!t->cols[c].used)
				continue;
			width += t->cols[c].width + (first ? GAP : 0);
			first = first ? first : &t->cols[c];
		}
		if (first && width < need)
			first->width += need - width;
	}
}

static size_t total_width(const struct table *t)
{
	size_t total = INDENT, used = 0;

	for (size_t c = 0; c < t->n_cols; c++) {
		if (!t->cols[c].used)
			continue;
		total += t->cols[c].width;
		used++;
	}
	return total + (used ? (used - 1) * GAP : 0);
}

/* Columns that are worth least are left out until the others have room, names at their shortest. */
static void leave_out(struct table *t, unsigned width)
{
	for (;;) {
		size_t total = total_width(t);
		struct column *least = NULL;

		for (size_t c = 0; c < t->n_cols; c++) {
			struct column *col = &t->cols[c];

			if (!col->used)
				continue;
			if ((col->flags & COL_FLEX) && col->width > FLEX_MIN)
				total -= col->width - FLEX_MIN;
			if (col->worth != UINT64_MAX && (!least || col->worth < least->worth))
				least = col;
		}
		if (total <= width || !least)
			return;
		least->used = false;
		least->left_out = true;
	}
}

static void fit(struct table *t, unsigned width)
{
	size_t total;

	leave_out(t, width);
	total = total_width(t);
	while (total > width) {
		struct column *widest = NULL;

		for (size_t c = 0; c < t->n_cols; c++) {
			struct column *col = &t->cols[c];

			if (!col->used || !(col->flags & COL_FLEX) || col->width <= FLEX_MIN)
				continue;
			if (!widest || col->width > widest->width)
				widest = col;
		}
		if (!widest)
			return;
		widest->width--;
		total--;
	}
}

static void put_spaces(FILE *out, size_t n)
{
	while (n--)
		fputc(' ', out);
}

/* The first `head` and the last `tail` code points, with … between if that leaves some out. */
static void put_cut(FILE *out, const char *s, size_t len, size_t width)
{
	size_t head = len > width ? width / 2 : len, tail = len > width ? width - head - 1 : 0;
	uint32_t cp;

	for (size_t i = 0; (cp = utf8__next(&s)); i++) {
		char utf8[4] = {0};

		if (i == head)
			fputs("…", out);
		if (i < head || i >= len - tail)
			fwrite(utf8, 1, utf8__put(utf8, cp), out);
	}
}

/* Spaces that are due are printed only before a text: no line ends in blanks. */
static void put_cell(FILE *out, const struct column *col, const char *s, size_t *due)
{
	size_t len = code_points(s), shown = MIN(len, col->width), pad = col->width - shown;

	if (col->flags & COL_RIGHT)
		*due += pad;
	if (shown) {
		put_spaces(out, *due);
		*due = 0;
		put_cut(out, s, len, col->width);
	}
	if (!(col->flags & COL_RIGHT))
		*due += pad;
	*due += GAP;
}

/* A title over neighbouring columns of one group. Returns the column after the last of them. */
static size_t put_group(const struct table *t, size_t c, FILE *out, size_t *due)
{
	const char *group = t->cols[c].group;
	size_t width = 0, end = c;
	struct column over = {.flags = COL_RIGHT};

	for (; end < t->n_cols && (!t->cols[end].used || !strcmp(t->cols[end].group, group)); end++)
		if (t->cols[end].used)
			width += t->cols[end].width + GAP;
	over.width = width - GAP;
	/* Over right-aligned numbers the title is in the middle, a rule on both sides. */
	if (*group && code_points(group) + 4 <= over.width) {
		size_t rules = over.width - code_points(group) - 2;

		put_spaces(out, *due);
		for (size_t i = 0; i < rules; i++) {
			if (i == rules / 2)
				fprintf(out, " %s ", group);
			fputs("─", out);
		}
		*due = GAP;
	} else {
		put_cell(out, &over, group, due);
	}
	return end;
}

static void put_head(const struct table *t, FILE *out, bool colour)
{
	bool groups = false;
	size_t due = INDENT;

	for (size_t c = 0; c < t->n_cols; c++)
		groups = groups || (t->cols[c].used && *t->cols[c].group);
	if (colour)
		fputs("\033[2m", out);
	for (size_t c = 0; groups && c < t->n_cols;) {
		if (t->cols[c].used)
			c = put_group(t, c, out, &due);
		else
			c++;
	}
	if (groups)
		fputc('\n', out);
	due = INDENT;
	for (size_t c = 0; c < t->n_cols; c++)
		if (t->cols[c].used)
			put_cell(out, &t->cols[c], t->cols[c].title, &due);
	if (colour)
		fputs("\033[0m", out);
	fputc('\n', out);
}

/* Titles, with their group's where that is a new one; broken where the line is full. */
static void put_left_out(const struct table *t, FILE *out, unsigned width)
{
	static const char head[] = "  no room for: ";
	const char *group = "";
	size_t at = 0;

	for (size_t c = 0; c < t->n_cols; c++) {
		const struct column *col = &t->cols[c];
		const char *title = *col->title ? col->title : "notes";
		bool new_group = strcmp(group, col->group) != 0;
		size_t len = code_points(title) + (new_group ? code_points(col->group) + 1 : 0);

		if (!col->left_out)
			continue;
		if (at && at + 2 + len > width) {
			fputs(",\n    ", out);
			at = 4;
		} else {
			fputs(at ? ", " : head, out);
			at += at ? 2 : sizeof(head) - 1;
		}
		fprintf(out, "%s%s%s", new_group ? col->group : "", new_group ? " " : "", title);
		group = col->group;
		at += len;
	}
	if (at)
		fputc('\n', out);
}

int table__print(struct table *t, FILE *out, unsigned width, bool colour)
{
	size_t rows = t->n_cells / t->n_cols;

	if (t->err)
		return t->err;
	measure(t, rows);
	measure_groups(t);
	fit(t, width);
	put_head(t, out, colour);
	for (size_t r = 0; r < rows; r++) {
		size_t due = INDENT;

		for (size_t c = 0; c < t->n_cols; c++)
			if (t->cols[c].used)
				put_cell(out, &t->cols[c], cell_at(t, r, c), &due);
		fputc('\n', out);
	}
	put_left_out(t, out, width);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Aligned columns that fit a terminal. Flexible columns shrink evenly, the widest first, and are
 * cut in the middle: both ends of a Haskell name are worth more than its module path.
 */
#include <stdlib.h>
#include <string.h>

#include "export_priv.h"

#define TABLE_MAX_BYTES ((size_t)64 << 20)
#define TABLE_MAX_CELLS ((size_t)1 << 22)
#define FLEX_MIN	12 /* a name shorter than this means nothing */
#define FLEX_ROOM	20 /* columns are left out before names shrink below this */
#define INDENT		2
#define GAP		2

struct column {
	char title[32];
	const char *group;
	int flags;
	uint64_t worth;
	size_t no, width;
	bool left_out;
};

struct table {
	struct column *cols;
	size_t n_cols;
	struct column **used; /* the columns that are printed */
	size_t n_used;
	size_t *cells; /* offsets into text */
	size_t n_cells, cap;
	struct buf text;
	table_painter *paint;
	int err;
};

int table__new(const struct table_column *columns, size_t n, struct table **ret_table)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	buf__init(&t->text, TABLE_MAX_BYTES);
	t->n_cols = n;
	t->cols = calloc(n, sizeof(*t->cols));
	t->used = calloc(n, sizeof(struct column *));
	if (!t->cols || !t->used) {
		table__free(t);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		struct column *col = &t->cols[i];

		*col = (struct column){.group = or_empty(columns[i].group),
				       .flags = columns[i].flags,
				       .worth = columns[i].worth,
				       .no = i};
		snprintf(col->title, sizeof(col->title), "%s%s",
			 col->flags & COL_SAMPLED ? "~" : "", columns[i].title);
	}
	*ret_table = t;
	return 0;
}

void table__paint(struct table *t, table_painter *paint)
{
	t->paint = paint;
}

void table__free(struct table *t)
{
	if (!t)
		return;
	buf__free(&t->text);
	free(t->cells);
	free(t->used);
	free(t->cols);
	free(t);
}

void table__cell(struct table *t, const char *text)
{
	char *safe = text__escaped(text);

	if (!t->err)
		t->err = ARRAY_RESERVE(t->cells, t->cap, t->n_cells + 1, TABLE_MAX_CELLS);
	if (!t->err) {
		t->cells[t->n_cells++] = t->text.len;
		t->err = safe ? buf__add(&t->text, safe, strlen(safe) + 1) : -ENOMEM;
	}
	free(safe);
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

static size_t width_of(const char *s)
{
	return text__width(s, strlen(s));
}

static const char *cell_at(const struct table *t, size_t row, const struct column *col)
{
	return t->text.data + t->cells[row * t->n_cols + col->no];
}

static void measure(struct table *t, size_t rows)
{
	for (size_t c = 0; c < t->n_cols; c++) {
		struct column *col = &t->cols[c];

		for (size_t r = 0; r < rows; r++)
			col->width = MAX(col->width, width_of(cell_at(t, r, col)));
		if (!col->width)
			continue;
		col->width = MAX(col->width, width_of(col->title));
		t->used[t->n_used++] = col;
	}
}

/* Returns the column after those of the same group; *ret_width is their total width. */
static size_t group_end(const struct table *t, size_t c, size_t *ret_width)
{
	const char *group = t->used[c]->group;

	for (*ret_width = 0; c < t->n_used && !strcmp(t->used[c]->group, group); c++)
		*ret_width += t->used[c]->width + GAP;
	*ret_width -= GAP;
	return c;
}

/* Widens columns so that together they are at least as wide as their group's title. */
static void measure_groups(struct table *t)
{
	for (size_t c = 0, end, width; c < t->n_used; c = end) {
		size_t need = width_of(t->used[c]->group);

		end = group_end(t, c, &width);
		t->used[c]->width += need > width ? need - width : 0;
	}
}

static size_t total_width(const struct table *t)
{
	size_t total = t->n_used ? INDENT + (t->n_used - 1) * GAP : INDENT;

	for (size_t c = 0; c < t->n_used; c++)
		total += t->used[c]->width;
	return total;
}

/* How much a name may shrink before columns are left out. */
static size_t spare(const struct column *col)
{
	return col->flags & COL_FLEX && col->width > FLEX_ROOM ? col->width - FLEX_ROOM : 0;
}

static bool gives_way(const struct column *col)
{
	return (col->flags & COL_FLEX) && col->width > FLEX_MIN;
}

/* Leaves out the columns that are worth least until the others fit, with names of FLEX_ROOM. */
static void leave_out(struct table *t, unsigned width)
{
	for (;;) {
		size_t total = total_width(t), least = SIZE_MAX;

		for (size_t c = 0; c < t->n_used; c++) {
			total -= spare(t->used[c]);
			if (t->used[c]->flags & COL_SPARE &&
			    (least == SIZE_MAX || t->used[c]->worth < t->used[least]->worth))
				least = c;
		}
		if (total <= width || least == SIZE_MAX)
			return;
		t->used[least]->left_out = true;
		t->n_used--;
		memmove(&t->used[least], &t->used[least + 1],
			(t->n_used - least) * sizeof(struct column *));
		/* a group's title may now span fewer columns */
		measure_groups(t);
	}
}

static void fit(struct table *t, unsigned width)
{
	leave_out(t, width);
	for (size_t total = total_width(t); total > width; total--) {
		struct column *widest = NULL;

		for (size_t c = 0; c < t->n_used; c++)
			if (gives_way(t->used[c]) && (!widest || t->used[c]->width > widest->width))
				widest = t->used[c];
		if (!widest)
			return;
		widest->width--;
	}
}

static void put_spaces(FILE *out, size_t n)
{
	while (n--)
		fputc(' ', out);
}

/*
 * Prints a text that is `len` columns wide, or its two ends with … in between if it exceeds
 * `width`. Returns the columns printed: one fewer if a wide character would be cut in half.
 */
static size_t put_cut(FILE *out, const char *s, size_t len, size_t width)
{
	size_t head = len > width ? width / 2 : len, tail = len > width ? width - head - 1 : 0;
	size_t at = 0, put = 0;
	bool cut = false;
	uint32_t cp;

	while ((cp = utf8__next(&s))) {
		size_t n = text__width_of(cp);
		char utf8[4] = {0};

		if (at + n > head && !cut && len > width) {
			fputs("…", out);
			cut = true;
			put++;
		}
		if (!cut || at >= len - tail) {
			fwrite(utf8, 1, text__encode(cp, utf8), out);
			put += n;
		}
		at += n;
	}
	return put;
}

/* Emits a colour only where the character differs from the one before. */
static void put_painted(FILE *out, const char *s, table_painter *paint)
{
	uint32_t cp, last = 0;

	for (; (cp = utf8__next(&s)); last = cp) {
		char colour[32], utf8[4] = {0};

		if (cp != last)
			fputs(paint(cp, colour, sizeof(colour)), out);
		fwrite(utf8, 1, text__encode(cp, utf8), out);
	}
	fputs("\033[0m", out);
}

/* Pending spaces are printed only before text, so no line ends in blanks. */
static void put_cell(FILE *out, const struct column *col, const char *s, size_t *due,
		     table_painter *paint)
{
	size_t len = width_of(s), shown = MIN(len, col->width);

	if (col->flags & COL_RIGHT)
		*due += col->width - shown;
	if (shown) {
		put_spaces(out, *due);
		*due = 0;
		if (paint && col->flags & COL_PAINTED && len <= col->width)
			put_painted(out, s, paint);
		else
			shown = put_cut(out, s, len, col->width);
	}
	if (!(col->flags & COL_RIGHT))
		*due += col->width - shown;
	*due += GAP;
}

/* Prints a title over neighbouring columns of one group. Returns the column after the last of
 * them. */
static size_t put_group(const struct table *t, size_t c, FILE *out, size_t *due)
{
	const char *group = t->used[c]->group;
	struct column over = {.flags = COL_RIGHT};
	size_t end = group_end(t, c, &over.width);

	/* Over right-aligned numbers the title is centred, with a rule on both sides. */
	if (*group && width_of(group) + 4 <= over.width) {
		size_t rules = over.width - width_of(group) - 2;

		put_spaces(out, *due);
		for (size_t i = 0; i < rules; i++) {
			if (i == rules / 2)
				fprintf(out, " %s ", group);
			fputs("─", out);
		}
		*due = GAP;
	} else {
		put_cell(out, &over, group, due, NULL);
	}
	return end;
}

static void put_head(const struct table *t, FILE *out, bool colour)
{
	bool groups = false;
	size_t due = INDENT;

	for (size_t c = 0; c < t->n_used; c++)
		groups = groups || *t->used[c]->group;
	if (colour)
		fputs("\033[2m", out);
	for (size_t c = 0; groups && c < t->n_used;)
		c = put_group(t, c, out, &due);
	if (groups)
		fputc('\n', out);
	due = INDENT;
	for (size_t c = 0; c < t->n_used; c++)
		put_cell(out, t->used[c], t->used[c]->title, &due, NULL);
	if (colour)
		fputs("\033[0m", out);
	fputc('\n', out);
}

/* Lists the titles left out, each new group's name first; wraps full lines. */
static void put_left_out(const struct table *t, FILE *out, unsigned width)
{
	static const char head[] = "  no room for: ";
	const char *group = "";
	size_t at = 0;

	for (size_t c = 0; c < t->n_cols; c++) {
		const struct column *col = &t->cols[c];
		const char *title = *col->title ? col->title : "notes";
		bool new_group = strcmp(group, col->group) != 0;
		size_t len = width_of(title) + (new_group ? width_of(col->group) + 1 : 0);

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

		for (size_t c = 0; c < t->n_used; c++)
			put_cell(out, t->used[c], cell_at(t, r, t->used[c]), &due,
				 colour ? t->paint : NULL);
		fputc('\n', out);
	}
	put_left_out(t, out, width);
	return 0;
}

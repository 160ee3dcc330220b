/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables made from declared columns. */

#include "text_priv.h"

static void cell_duration(struct table *t, const char *mark, uint64_t ns)
{
	if (ns == UINT64_MAX)
		table__cell(t, "–");
	else if (ns)
		table__cellf(t, "%s%s", mark, human__duration(ns).s);
	else
		table__cell(t, "0");
}

void text__cell_duration(struct table *t, uint64_t ns)
{
	cell_duration(t, "", ns);
}

void text__cell_share(struct table *t, double percent)
{
	if (percent < TEXT_SHARE_SHOWN)
		table__cell(t, "·");
	else
		table__cellf(t, "%.1f", percent);
}

/* `~`: the nearest known name, not the name of exactly that code. */
static void cell_name(struct table *t, const char *name, bool approximate)
{
	if (!name || !*name)
		table__cell(t, "?");
	else
		table__cellf(t, "%s%s", approximate && *name != '~' ? "~" : "", name);
}

static void cell(struct table *t, const struct column *c, const char *row)
{
	const void *member = row + c->offset;
	const uint64_t *n = member;
	bool marked = c->mark && *(const bool *)(row + c->mark);
	const char *at_least = !c->mark || marked ? "" : "≥ ";

	switch (c->cell) {
	case CELL_TEXT:
		table__cell(t, or_empty(*(const char *const *)member));
		break;
	case CELL_NAME:
		cell_name(t, *(const char *const *)member, marked);
		break;
	case CELL_COUNT:
		table__cellf(t, "%s%s", at_least, human__count(*n).s);
		break;
	case CELL_NS:
	case CELL_ABOUT_NS:
		cell_duration(t, c->cell == CELL_NS ? at_least : "~", *n);
		break;
	case CELL_KNOWN_NS:
		if (*n == UINT64_MAX)
			table__cell(t, "");
		else
			cell_duration(t, "", *n);
		break;
	case CELL_SHARE:
		text__cell_share(t, *(const double *)member);
		break;
	}
}

void text__cell_process(const struct text *t, struct table *table, const struct pic_target *target)
{
	if (t->n_of > 1)
		table__cellf(table, "%d %s", (int)target->pid, or_empty(target->comm));
}

int text__table_of(const struct text *t, const struct columns *columns, struct table **ret_table)
{
	struct table_column v[25];
	size_t n = 0;

	if (t->n_of > 1)
		v[n++] = (struct table_column){.title = "process", .flags = COL_FLEX};
	for (size_t i = 0; i < columns->n; i++) {
		const struct column *c = &columns->v[i];

		if (!c->text)
			continue;
		v[n++] = (struct table_column){
			.title = c->text,
			.flags = (c->cell <= CELL_NAME ? COL_FLEX : COL_RIGHT) |
				 (c->worth ? COL_SPARE : 0),
			.worth = c->worth,
		};
	}
	return table__new(v, n, ret_table);
}

int text__table(const struct columns *columns, struct table **ret_table)
{
	const struct text alone = {.n_of = 1};

	return text__table_of(&alone, columns, ret_table);
}

void text__row(struct table *table, const struct columns *columns, const void *row)
{
	for (size_t i = 0; i < columns->n; i++)
		if (columns->v[i].text)
			cell(table, &columns->v[i], row);
}

int text__print(const struct text *t, const char *title, struct table *table, size_t n,
		const char *things)
{
	int err;

	if (title)
		text__section(t, title);
	err = table__print(table, t->out, t->width, t->opts->colour);
	table__free(table);
	if (n > t->rows)
		fprintf(t->out, "  … and %s more %s\n", human__count(n - t->rows).s, things);
	return err;
}

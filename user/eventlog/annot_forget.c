/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * annot_forget: the texts of intervals that ended outside the window are not needed. When there may
 * be many of them, those that are needed move to a new table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "annot_priv.h"
#include "base/base.h"

struct move {
	const struct strtab *from;
	struct strtab *to;
	uint32_t *ids; /* ids in `to`, by id in `from`; 0: not there yet, or the empty text */
};

static int move(struct move *m, uint32_t *id)
{
	const char *text = strtab__get(m->from, *id);
	int err = 0;

	if (*id == ANNOT_NONE)
		return 0;
	if (!m->ids[*id])
		err = strtab__add(m->to, text, strlen(text), &m->ids[*id]);
	if (!err)
		*id = m->ids[*id];
	return err;
}

/* Moves the open items, including the texts in their keys. */
static int move_open(struct move *m, struct opens *o)
{
	struct u64map by_key = {0};
	int err = 0;

	for (size_t i = 0; i < o->n && !err; i++) {
		struct open *item = &o->v[i];
		bool on_top = item->open && u64map__get(&o->by_key, item->key) == i;
		uint32_t text = (uint32_t)(item->key >> 32);

		if (!item->open)
			continue;
		err = move(m, &text);
		if (!err)
			err = move(m, &item->span.label);
		if (!err)
			err = move(m, &item->stack);
		item->key = (uint64_t)text << 32 | (uint32_t)item->key;
		if (!err && on_top)
			err = u64map__put(&by_key, item->key, (uint32_t)i);
	}
	u64map__free(&o->by_key);
	o->by_key = by_key;
	return err;
}

static int move_sums(struct move *m, struct el_annot *a)
{
	struct u64map by_label = {0};
	int err = 0;

	for (size_t i = 0; i < a->info.n_sums && !err; i++) {
		err = move(m, &a->sums[i].label);
		if (!err)
			err = u64map__put(&by_label, a->sums[i].label, (uint32_t)i);
	}
	u64map__free(&a->sum_by_label);
	a->sum_by_label = by_label;
	return err;
}

static int move_all(struct move *m, struct el_annot *a)
{
	int err = move(m, &a->others);

	for (size_t i = 0; i < a->info.n_spans && !err; i++) {
		err = move(m, &a->spans[i].label);
		if (!err)
			err = move(m, &a->stacks[i]);
	}
	if (!err)
		err = move_sums(m, a);
	return err ? err : move_open(m, &a->open);
}

int annot__forget_texts(struct el_annot *a)
{
	struct move m = {.from = a->strings};
	int err = strtab__new(&m.to);

	if (err)
		return err;
	strtab__set_max(m.to, ANNOT_TEXT_MAX);
	m.ids = calloc(strtab__count(a->strings), sizeof(*m.ids));
	err = m.ids ? move_all(&m, a) : -ENOMEM;
	free(m.ids);
	if (err) {
		strtab__free(m.to);
		return err;
	}
	strtab__free(a->strings);
	a->strings = m.to;
	memset(a->recent, 0, sizeof(a->recent));
	/* not worthwhile before as many have come again */
	a->forget_at = MAX(2 * strtab__bytes(a->strings), (size_t)ANNOT_TEXT_MAX / 2);
	return 0;
}

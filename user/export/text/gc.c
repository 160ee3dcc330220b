/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's table of collections by generation: how long they paused the program, and how
 * long they waited before they could begin. */
#include "export/alloc.h"
#include "text_priv.h"

#define WAIT_SHOWN  1.0 /* percent of the session */
#define GENERATIONS 8	/* GHC has two unless asked for more; the last row includes all above */

struct kind {
	uint64_t count, pause_ns, max_pause_ns, sync_ns, max_sync_ns;
	bool sync_known;
};

static void add(struct kind *k, const struct pic_gc_event *gc)
{
	uint64_t pause = gc->end_ns - gc->start_ns;

	k->count++;
	k->pause_ns += pause;
	k->max_pause_ns = MAX(k->max_pause_ns, pause);
	if (gc->sync_ns == UINT64_MAX)
		return;
	k->sync_known = true;
	k->sync_ns += gc->sync_ns;
	k->max_sync_ns = MAX(k->max_sync_ns, gc->sync_ns);
}

static void add_row(struct table *table, const struct kind *k, bool all)
{
	table__cellf(table, "%s%s", all ? "" : "≥ ", human__count(k->count).s);
	text__cell_duration(table, k->pause_ns);
	text__cell_duration(table, k->pause_ns / k->count);
	text__cell_duration(table, k->max_pause_ns);
	if (k->sync_known) {
		text__cell_duration(table, k->sync_ns);
		text__cell_duration(table, k->max_sync_ns);
	} else {
		table__cell(table, "");
		table__cell(table, "");
	}
}

/* Prints one row for each collected generation; the last is for collections of unknown
 * generation. */
static int put_table(const struct text *t)
{
	static const struct table_column columns[] = {
		{"generation", COL_LEFT, NULL, 0},
		{"collections", COL_RIGHT, NULL, 0},
		{"total", COL_RIGHT, "paused", 0},
		{"mean", COL_RIGHT, "paused", 0},
		{"longest", COL_RIGHT, "paused", 0},
		{"wait", COL_RIGHT, "waited before", 0},
		{"longest wait", COL_RIGHT, "waited before", 0},
	};
	bool all = t->target->gc.inferred || !pic_target__gcs_missed(t->target);
	struct kind kinds[GENERATIONS + 1] = {0};
	struct table *table;
	size_t rows = 0;
	int err = table__new(columns, ARRAY_SIZE(columns), &table);

	if (err)
		return err;
	for (size_t i = 0; i < t->target->n_gcs; i++) {
		int32_t generation = t->target->gcs[i].generation;

		add(&kinds[generation < 0 ? GENERATIONS : MIN(generation, GENERATIONS - 1)],
		    &t->target->gcs[i]);
	}
	for (size_t i = 0; i <= GENERATIONS; i++)
		rows += kinds[i].count != 0;
	for (size_t i = 0; i <= GENERATIONS; i++) {
		if (!kinds[i].count)
			continue;
		if (i < GENERATIONS)
			table__cellf(table, "%zu", i);
		else
			table__cell(table, rows == 1 ? "all" : "not known");
		add_row(table, &kinds[i], all);
	}
	return text__print(t, NULL, table, 0, "");
}

/* Used when the probes came off because there were too many collections. */
static void put_observed(const struct text *t)
{
	const struct pic_gc *gc = &t->target->gc;

	fprintf(t->out,
		"  in the first %s, before the probes on collections came off (--max-overhead), "
		"the program was paused for %s, %.1f %% of that time\n",
		human__duration(gc->observed_ns).s, human__duration(gc->observed_pause_ns).s,
		human__percent(gc->observed_pause_ns, gc->observed_ns));
}

static void put_inferred(const struct text *t)
{
	fputs("  inferred from the samples in the runtime: the number of collections, and how long "
	      "each took, are not known\n",
	      t->out);
	if (t->target->gc.observed_ns)
		put_observed(t);
}

static void put_missed(const struct text *t)
{
	const struct pic_target *target = t->target;
	uint64_t missed = pic_target__gcs_missed(target);

	if (missed != PIC_GCS_UNKNOWN)
		fprintf(t->out, "  %s%s more %s missed, by %s: %.1f %% of all were seen\n",
			t->log_alone ? "at least " : "", human__count(missed).s,
			plural(missed, "collection was", "collections were"),
			t->log_alone ? "what other capabilities logged of them"
				     : "the runtime's own count",
			100 * gc__observed_share(target));
	else if (target->calls_missed && !target->gc.before_known)
		fputs("  collections before the probes on them were attached are not counted\n",
		      t->out);
	else
		fputs("  collections while the probes were off are not counted\n", t->out);
}

int text__gc(const struct text *t)
{
	const struct pic_gc *gc = &t->target->gc;
	uint64_t missed = gc->inferred ? 0 : pic_target__gcs_missed(t->target);
	char title[128];
	int err = 0;

	if (!gc->known)
		return 0;
	snprintf(title, sizeof(title),
		 "Garbage collection: the program was paused for %s%s, %.1f %% of the session",
		 gc->inferred ? "at most about "
		 : missed     ? "at least "
			      : "",
		 human__duration(gc->pause_ns).s, human__percent(gc->pause_ns, t->wall_ns));
	text__section(t, title);
	if (gc->inferred) {
		err = text__wrapped(t, put_inferred);
		if (!err && gc->observed_ns && t->target->n_gcs)
			err = put_table(t);
	} else if (t->target->n_gcs) {
		err = put_table(t);
	} else {
		fprintf(t->out, "  %s%s %s%s%s\n", missed ? "≥ " : "", human__count(gc->count).s,
			plural(gc->count, "collection", "collections"),
			gc->count ? ", longest " : "",
			gc->count ? human__duration(gc->max_pause_ns).s : "");
	}
	if (!err && missed)
		err = text__wrapped(t, put_missed);
	if (human__percent(gc->wait_ns, t->wall_ns) >= WAIT_SHOWN)
		fprintf(t->out, "  threads slept for %s in all until collections ended\n",
			human__duration(gc->wait_ns).s);
	return err;
}

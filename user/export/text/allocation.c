/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report on allocation: how much, how fast, and which functions and modules. */
#include <string.h>

#include "export/alloc.h"
#include "text_priv.h"

/* Fewer are unreliable: the error exceeds 10 %. */
#define FEW_SAMPLES 100
/* Percent of the bytes: less hardly changes the ranking. */
#define MANY_STOPPED 10
/* Percent of the bytes without a sample: less is not worth a remark. */
#define MANY_UNSAMPLED 10

static void put_quality(const struct text *t)
{
	const struct pic_alloc *alloc = &t->target->alloc;

	if (alloc->observed_ns)
		fprintf(t->out, "  %s; later allocation is not known\n", alloc__part(alloc).s);
	else if (alloc__held_up_to_end(t->target))
		fputs("  the probes were off for a while after the last collection seen; what was "
		      "allocated from then on is not known\n",
		      t->out);
	if (alloc__began_unseen(t->target))
		fputs("  what was allocated before the first collection seen is not counted\n",
		      t->out);
	if (!alloc->samples) {
		fputs("  no collection shows which functions allocated it\n", t->out);
		return;
	}
	fprintf(t->out, "  by %s %s of about %s each, so shares are uncertain by %.1f %%",
		human__count(alloc->samples).s, plural(alloc->samples, "sample", "samples"),
		human__bytes(alloc->sampled_bytes / alloc->samples).s, 100 * alloc__error(alloc));
	if (alloc->tick_samples)
		fprintf(t->out,
			"; %s of the samples %s the sampler's, where collections were over 50 ms "
			"apart: it favours functions that take long",
			human__count(alloc->tick_samples).s,
			plural(alloc->tick_samples, "is", "are"));
	if (alloc->samples < FEW_SAMPLES)
		fputs("; too few samples to rely on: a smaller allocation area (-A1m) gives more",
		      t->out);
	if (human__percent(alloc->unsampled_bytes, alloc->bytes) >= MANY_UNSAMPLED)
		fprintf(t->out, "; %.0f %% of the bytes have no sample",
			human__percent(alloc->unsampled_bytes, alloc->bytes));
	if (human__percent(alloc->stopped_bytes, alloc->sampled_bytes) >= MANY_STOPPED)
		fprintf(t->out,
			"; %.0f %% of the bytes are from capabilities stopped by others, and are "
			"counted for the functions that ran on them next",
			human__percent(alloc->stopped_bytes, alloc->sampled_bytes));
	fputc('\n', t->out);
}

static void add_share(struct table *table, uint64_t part, uint64_t whole)
{
	text__cell_share(table, human__percent(part, whole));
}

static int put_functions(const struct text *t, uint64_t whole)
{
	static const struct table_column columns[] = {
		{"self %", COL_RIGHT, NULL, 0},	   {"total %", COL_RIGHT, NULL, 0},
		{"allocated", COL_RIGHT, NULL, 0}, {"function", COL_FLEX, NULL, 0},
		{"module", COL_FLEX, NULL, 0},
	};
	const struct pic_alloc *alloc = &t->target->alloc;
	struct table *table;
	size_t n = 0;
	int err = table__new(columns, ARRAY_SIZE(columns), &table);

	if (err)
		return err;
	for (size_t i = 0; i < alloc->n_allocators; i++) {
		const struct pic_allocator *a = &alloc->allocators[i];
		const struct pic_frame *frame = picture__frame(t->pic, a->frame);
		const char *module = or_empty(frame->module), *name = frame__name(frame);
		size_t len = strlen(module);

		if ((t->brief && !a->self_bytes) || ++n > t->rows)
			continue;
		add_share(table, a->self_bytes, whole);
		add_share(table, a->total_bytes, whole);
		table__cell(table, human__bytes(a->self_bytes).s);
		table__cell(table, name);
		name += *name == '~';
		table__cell(table, picture__is_rts(frame->kind, frame->package) ? "(RTS)"
				   : len && !strncmp(name, module, len) && name[len] == '.'
					   ? ""
					   : module);
	}
	return text__print(t, NULL, table, n, "functions");
}

static int put_modules(const struct text *t, uint64_t whole)
{
	static const struct table_column columns[] = {
		{"%", COL_RIGHT, NULL, 0},
		{"allocated", COL_RIGHT, NULL, 0},
		{"module", COL_FLEX, NULL, 0},
		{"package", COL_FLEX, NULL, 0},
	};
	const struct pic_alloc *alloc = &t->target->alloc;
	struct table *table;
	int err = table__new(columns, ARRAY_SIZE(columns), &table);

	if (err)
		return err;
	for (size_t i = 0; i < MIN(alloc->n_modules, t->rows); i++) {
		const struct pic_alloc_module *m = &alloc->modules[i];

		add_share(table, m->bytes, whole);
		table__cell(table, human__bytes(m->bytes).s);
		table__cell(table, *m->module			? m->module
				   : !strcmp(m->package, "rts") ? "(RTS)"
								: "(no module)");
		table__cell(table, m->package);
	}
	return text__print(t, "Allocation, by module", table, alloc->n_modules, "modules");
}

int text__allocation(const struct text *t)
{
	const struct pic_alloc *alloc = &t->target->alloc;
	uint64_t whole = alloc->sampled_bytes + alloc->unsampled_bytes;
	char title[128];
	int err = 0;

	if (!alloc->known || !alloc->bytes)
		return 0;
	snprintf(title, sizeof(title), "Allocation: %s%s, %s a second",
		 alloc__exact(t->target) ? "" : "at least ", human__bytes(alloc->bytes).s,
		 human__bytes(pic_alloc__rate(alloc)).s);
	if (alloc->large_of_bytes)
		snprintf(title + strlen(title), sizeof(title) - strlen(title),
			 "; large objects %.1f %%",
			 human__percent(alloc->large_bytes, alloc->large_of_bytes));
	text__section(t, title);
	err = text__wrapped(t, put_quality);
	if (!err && alloc->n_allocators)
		err = put_functions(t, whole);
	if (!err && !t->brief && alloc->n_modules)
		err = put_modules(t, whole);
	return err;
}

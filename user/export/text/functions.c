/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text report's table of functions, by CPU time, with the origin of each. */
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

struct ref {
	const struct pic_target *target;
	const struct pic_function *function;
};

static int by_self(const void *pa, const void *pb)
{
	const struct ref *a = pa, *b = pb;

	return CMP(b->function->self_ns, a->function->self_ns)
		       ?: CMP(b->function->self_samples, a->function->self_samples)
		       ?: CMP(b->function->total_ns, a->function->total_ns)
		       ?: CMP(a->target->pid, b->target->pid)
		       ?: CMP(a->function, b->function);
}

static bool is_code(const struct pic_function *f)
{
	return f->kind != TF_STATE && f->kind != TF_MARK;
}

/* The overview leaves out functions without CPU time of their own. */
static bool is_shown(const struct text *t, const struct pic_function *f)
{
	return is_code(f) && (!t->brief || f->self_ns);
}

/* The module, or for C code the library; "" if the qualified name already begins with the module.
 * The runtime's code is labelled as such. */
static const char *module_of(const struct pic_function *f)
{
	const char *name = or_empty(f->name), *module = or_empty(f->module);
	size_t len = strlen(module);

	if (picture__is_rts(f->kind, f->package))
		return "(RTS)";
	if (f->kind == TF_KERNEL)
		return "(kernel)";
	if (!len)
		return or_empty(f->file);
	name += *name == '~';
	return !strncmp(name, module, len) && name[len] == '.' ? "" : module;
}

/* The CPU time of all processes, including time without samples. */
static uint64_t cpu_of(const struct text *t)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < t->n_of; i++) {
		const struct pic_lanes *threads = &t->of[i]->lanes[LANE_THREAD];

		for (size_t k = 0; k < threads->n; k++)
			for (unsigned s = 0; s < ST_MAX; s++)
				if (state__on_cpu(LANE_THREAD, s))
					ns += threads->v[k].states_ns[s];
	}
	return ns;
}

static int sort_functions(const struct text *t, struct ref **ret_refs, size_t *ret_n)
{
	size_t max = 0, n = 0;
	struct ref *refs;

	for (size_t i = 0; i < t->n_of; i++)
		max += t->of[i]->n_functions;
	refs = calloc(max + 1, sizeof(*refs));
	if (!refs)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_of; i++)
		for (size_t k = 0; k < t->of[i]->n_functions; k++)
			if (is_shown(t, &t->of[i]->functions[k]))
				refs[n++] = (struct ref){t->of[i], &t->of[i]->functions[k]};
	qsort(refs, n, sizeof(*refs), by_self);
	*ret_refs = refs;
	*ret_n = n;
	return 0;
}

int text__functions(const struct text *t)
{
	uint64_t cpu = cpu_of(t);
	struct table *table;
	struct ref *refs;
	size_t n;
	int err;

	/* In a log alone functions are cost centres, which have their own table. */
	if (!cpu || t->log_alone)
		return 0;
	err = sort_functions(t, &refs, &n);
	if (err)
		return err;
	err = n ? text__table_of(t, &function_columns, &table) : 0;
	for (size_t i = 0; i < MIN(n, t->rows) && !err; i++) {
		struct function_row row = {.function = *refs[i].function};

		row.self = human__percent(row.function.self_ns, cpu);
		row.total = human__percent(row.function.total_ns, cpu);
		row.function.module = module_of(refs[i].function);
		text__cell_process(t, table, refs[i].target);
		text__row(table, &function_columns, &row);
	}
	free(refs);
	if (err || !n)
		return err;
	return text__print(t, "Top functions, by CPU time", table, n, "functions");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Matches programs, functions, modules, calls and collections of two reports, and makes the
 * rows. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "diff_priv.h"

/* Medians are bounds of a histogram, which are a sixteenth apart. */
#define MEDIAN_VARIES 0.06
#define CPU_VARIES    0.05

#define SECOND_NS 1e9

/* Calls that were counted for a smaller share of the time are not extrapolated. */
#define LEAST_SEEN 0.01
/* The largest estimate, so that sums do not overflow. */
#define MOST_CALLS ((double)(UINT64_C(1) << 48))

/* ── what belongs together ───────────────────────────────────────────────────────────────── */

/* Stands for all functions of a module or file without names: in another build they are at other
 * places. */
#define NO_NAME "(no name)"

/* An entry in either report: a function, module or call. */
struct item {
	uint32_t program; /* number in its report */
	uint32_t side;
	uint32_t kind;
	const char *name, *at;
	bool no_name; /* it has no name, or is a module with such functions */
	struct measured m;
	uint64_t cpu_ns, p50_ns, p50_of; /* safe calls; p50_of: of how many */
};

struct items {
	struct item *v;
	size_t n;
};

/* Sorts the items of a pair's two programs so that matching ones are adjacent. */
static int cmp_items(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;

	return strcmp(a->name, b->name) ?: strcmp(a->at, b->at) ?: CMP(a->kind, b->kind);
}

/* True for functions that wait by spinning, or yield the CPU. */
static bool waits(const struct diff_function *f)
{
	static const char *const names[] = {"sched_yield", "pthread_",	 "__pthread",	  "__lll",
					    "__futex",	   "__GI___lll", "__GI___pthread"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (f->kind == DIFF_FOREIGN && !strncmp(f->name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* True if the item's time depends on other threads. */
static bool spins(const struct item *item, const struct diff_pair *pair)
{
	if (item->kind == DIFF_GC)
		return pair->a->parallel || pair->b->parallel;
	return item->kind == DIFF_RTS || item->kind == DIFF_KERNEL;
}

/* Adds up the matching items from i on; returns the index after the last of them. */
static size_t gather(const struct items *items, size_t i, const struct diff_pair *pair,
		     struct judged *ret)
{
	size_t end = i;

	*ret = (struct judged){.spins = spins(&items->v[i], pair)};
	for (; end < items->n && !cmp_items(&items->v[i], &items->v[end]); end++) {
		struct measured *m = &ret->m[items->v[end].side];

		ret->no_name |= items->v[end].no_name;
		m->n += items->v[end].m.n;
		m->sum += items->v[end].m.sum;
		m->seen += items->v[end].m.seen;
		m->unsure += items->v[end].m.unsure;
	}
	return end;
}

static const struct diff_program *side_of(const struct diff_pair *pair, int side)
{
	return side ? pair->b : pair->a;
}

static const struct diff_report *report_of(const struct diff *d, int side)
{
	return side ? d->b : d->a;
}

static uint32_t program_of(const struct diff *d, const struct diff_pair *pair, int side)
{
	return (uint32_t)(side_of(pair, side) - report_of(d, side)->programs);
}

static const char *module_of(const struct diff_function *f)
{
	static const char *const kinds[DIFF_KINDS] = {"(Haskell, module not known)",
						      "(foreign code)", DIFF_MODULE_RTS, "(GC)",
						      "(kernel)"};

	if (waits(f))
		return "(locks and yields)";
	return *f->module && f->kind <= DIFF_FOREIGN ? f->module : kinds[f->kind];
}

static bool has_no_name(const struct diff_pair *pair, const char *name)
{
	return !pair->same_build && diff__place(name);
}

static struct item item_of(const struct diff_pair *pair, const struct diff_function *f,
			   bool modules)
{
	bool no_name = has_no_name(pair, f->name);
	bool rts = waits(f) || (modules && !strcmp(module_of(f), DIFF_MODULE_RTS));

	return (struct item){.kind = rts ? DIFF_RTS : f->kind,
			     .name = modules   ? module_of(f)
				     : no_name ? NO_NAME
					       : f->name,
			     .at = modules ? "" : module_of(f),
			     .no_name = no_name,
			     .m = {.n = f->samples, .sum = f->sum}};
}

/* Collects functions by their time, or by what they allocate. */
static int collect_functions(const struct diff *d, struct diff_pair *pair, bool alloc, bool modules,
			     struct items *ret)
{
	uint32_t n[2] = {alloc ? d->a->n_allocators : d->a->n_functions,
			 alloc ? d->b->n_allocators : d->b->n_functions};

	*ret = (struct items){.v = calloc((size_t)n[0] + n[1] + 1, sizeof(*ret->v))};
	if (!ret->v)
		return -ENOMEM;
	for (int side = 0; side < 2; side++) {
		const struct diff_report *r = report_of(d, side);
		const struct diff_function *list = alloc ? r->allocators : r->functions;

		for (uint32_t i = 0; i < n[side]; i++) {
			const struct diff_function *f = &list[i];
			struct item item = item_of(pair, f, modules);

			if (f->program != program_of(d, pair, side))
				continue;
			item.side = (uint32_t)side;
			pair->no_names |= item.no_name;
			ret->v[ret->n++] = item;
		}
	}
	qsort(ret->v, ret->n, sizeof(*ret->v), cmp_items);
	return 0;
}

/* Extrapolates the number of calls, assuming the same rate while they were not counted. */
static struct measured estimate(const struct diff_call *c)
{
	double seen = 1 - (double)c->unseen / DIFF_WHOLE, unsure = (double)c->unsure / DIFF_WHOLE;
	double n = (double)c->calls;

	if (seen < LEAST_SEEN)
		unsure = 1;
	else
		n = MIN(n / seen, MOST_CALLS);
	return (struct measured){.n = (uint64_t)(n + 0.5), .seen = c->calls, .unsure = n * unsure};
}

static int collect_calls(const struct diff *d, const struct diff_pair *pair, bool safe,
			 struct items *ret)
{
	*ret = (struct items){.v = calloc(d->a->n_calls + d->b->n_calls + 1, sizeof(*ret->v))};
	if (!ret->v)
		return -ENOMEM;
	for (int side = 0; side < 2; side++) {
		const struct diff_report *r = report_of(d, side);

		for (uint32_t i = 0; i < r->n_calls; i++) {
			const struct diff_call *c = &r->calls[i];
			bool called = has_no_name(pair, c->function);
			bool from = has_no_name(pair, c->caller);
			struct item item = {.side = (uint32_t)side,
					    .kind = DIFF_FOREIGN,
					    .name = called ? NO_NAME : c->function,
					    .at = from ? NO_NAME : c->caller,
					    .no_name = called,
					    .cpu_ns = c->cpu_ns,
					    .p50_ns = c->p50_ns,
					    .p50_of = c->calls};

			if (c->program != program_of(d, pair, side) || c->safe != safe)
				continue;
			item.m = safe ? estimate(c)
				      : (struct measured){.n = c->samples, .sum = c->cpu_ns};
			ret->v[ret->n++] = item;
		}
	}
	qsort(ret->v, ret->n, sizeof(*ret->v), cmp_items);
	return 0;
}

/* ── rows ────────────────────────────────────────────────────────────────────────────────── */

static struct diff_row *add_row(struct diff_pair *pair, enum diff_section section, const char *name,
				const char *at)
{
	struct diff_row *row = &pair->rows[pair->n_rows++];

	*row = (struct diff_row){.section = section, .name = name, .at = at};
	return row;
}

static void add_sampled(struct basis *b, const struct items *items, enum diff_section section)
{
	bool alloc = section == DIFF_ALLOC_FUNCTIONS || section == DIFF_ALLOC_MODULES;
	bool modules = section == DIFF_MODULES || section == DIFF_ALLOC_MODULES;

	for (size_t i = 0; i < items->n;) {
		const struct item *first = &items->v[i];
		struct diff_row *row = add_row(b->pair, section, first->name, first->at);
		struct judged j;

		i = gather(items, i, b->pair, &j);
		(alloc ? judge__alloc : judge__cpu)(b, &j, row);
		row->no_names = modules && j.no_name;
		if (!modules && j.no_name)
			row->verdict = 0;
	}
}

/* The bytes allocated after the last reading: about as many as between two readings. */
static double ends_of(const struct diff_program *p, double bytes)
{
	return bytes / (double)MAX(MAX(p->alloc_gcs, p->alloc_samples), 1);
}

static void add_alloc(struct basis *b)
{
	double bytes[2], large[2], ends[2];
	bool large_known = true;

	for (int side = 0; side < 2; side++) {
		const struct diff_program *p = side_of(b->pair, side);

		bytes[side] = (double)p->alloc_bytes;
		ends[side] = ends_of(p, bytes[side]);
		large_known &= p->large_of_bytes != 0;
		large[side] =
			bytes[side] * (double)p->large_bytes / (double)MAX(p->large_of_bytes, 1);
	}
	judge__bytes(b, bytes, ends, add_row(b->pair, DIFF_ALLOC, "in all", ""));
	if (large_known && large[0] + large[1] > 0)
		judge__bytes(b, large, ends, add_row(b->pair, DIFF_ALLOC, "in large objects", ""));
}

/* The median of the site with the most calls. */
static double median_of(const struct item *v, size_t n, uint32_t side)
{
	uint64_t most = 0, ns = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].side == side && v[i].p50_of > most) {
			most = v[i].p50_of;
			ns = v[i].p50_ns;
		}
	return (double)ns;
}

static double cpu_each(const struct item *v, size_t n, uint32_t side, uint64_t calls)
{
	double ns = 0;

	for (size_t i = 0; i < n; i++)
		ns += v[i].side == side ? (double)v[i].cpu_ns : 0;
	return calls ? ns / (double)calls : 0;
}

/* A session without any of these calls may have had as many as the other one while it did not
 * count. */
static void mark_unsure(const struct basis *b, struct measured m[2])
{
	for (int side = 0; side < 2; side++)
		if (!m[side].n)
			m[side].unsure = (double)m[!side].n * b->t[side] / b->t[!side] *
					 side_of(b->pair, side)->calls_unsure / DIFF_WHOLE;
}

/* Adds rows for the time of one call; the n items are matching calls. */
static void add_call_times(struct basis *b, const struct item *v, size_t n, const struct judged *j)
{
	/* several functions, or calls from several places */
	bool mixed = j->no_name || !strcmp(v->at, NO_NAME);
	struct diff_row *row = add_row(b->pair, DIFF_CALL_TIME, v->name, v->at);

	row->a = median_of(v, n, 0);
	row->b = median_of(v, n, 1);
	judge__each(b, j->m, MEDIAN_VARIES, row);
	if (mixed)
		row->verdict = 0;
	if (row->a <= 0 || row->b <= 0)
		b->pair->n_rows--;
	row = add_row(b->pair, DIFF_CALL_CPU, v->name, v->at);
	row->a = cpu_each(v, n, 0, j->m[0].seen);
	row->b = cpu_each(v, n, 1, j->m[1].seen);
	judge__each(b, j->m, CPU_VARIES, row);
	if (mixed)
		row->verdict = 0;
}

static void add_calls(struct basis *b, const struct items *items)
{
	for (size_t i = 0, end; i < items->n; i = end) {
		const struct item *first = &items->v[i];
		struct diff_row *row = add_row(b->pair, DIFF_CALLS, first->name, first->at);
		struct judged j;

		end = gather(items, i, b->pair, &j);
		mark_unsure(b, j.m);
		judge__count(b, j.m, row);
		if (j.no_name)
			row->verdict = 0;
		if (j.m[0].seen && j.m[1].seen)
			add_call_times(b, first, end - i, &j);
	}
}

static void add_gcs(struct basis *b)
{
	const struct diff_program *p[2] = {b->pair->a, b->pair->b};
	const uint64_t n[2] = {p[0]->gcs, p[1]->gcs};
	const struct measured m[2] = {{.n = n[0], .seen = n[0]}, {.n = n[1], .seen = n[1]}};
	struct diff_row *row;

	if (!n[0] || !n[1])
		return;
	judge__count(b, m, add_row(b->pair, DIFF_GCS, "", ""));
	row = add_row(b->pair, DIFF_GC_CPU, "", "");
	row->a = (double)p[0]->gc_cpu_ns / (double)n[0];
	row->b = (double)p[1]->gc_cpu_ns / (double)n[1];
	judge__each(b, m, judge__gc_varies(b), row);
	row = add_row(b->pair, DIFF_GC_PAUSE, "", "");
	row->a = (double)p[0]->gc_pause_ns / (double)n[0];
	row->b = (double)p[1]->gc_pause_ns / (double)n[1];
	judge__each(b, m, judge__gc_varies(b) + b->pair->load, row);
}

static int cmp_rows(const void *pa, const void *pb)
{
	const struct diff_row *a = pa, *b = pb;
	double x = fabs(a->effect), y = fabs(b->effect);

	return CMP(a->section, b->section)
		       ?: CMP(y, x) ?: CMP(MAX(b->a, b->b), MAX(a->a, a->b))
		       ?: strcmp(a->name, b->name) ?: strcmp(a->at, b->at);
}

/* ── pairs ───────────────────────────────────────────────────────────────────────────────── */

/* How often the event that is counted occurred. */
static struct measured count_events(const struct diff *d, const struct diff_pair *pair, int side)
{
	const struct diff_report *r = report_of(d, side);
	struct measured all = {0}, one;

	if (!strcmp(d->per, "gc"))
		return (struct measured){.n = side_of(pair, side)->gcs};
	for (uint32_t i = 0; i < r->n_calls; i++) {
		const struct diff_call *c = &r->calls[i];

		if (!c->safe || c->program != program_of(d, pair, side) ||
		    strcmp(c->function, d->per) != 0)
			continue;
		one = estimate(c);
		all.n += one.n;
		all.unsure += one.unsure;
	}
	return all;
}

/* -ERANGE as for judge__basis and judge__alloc_basis. */
static int judge_all(struct basis *b, const struct items *functions,
		     int (*by)(struct basis *basis, const struct judged *functions, size_t n))
{
	struct judged *judged = calloc(functions->n + 1, sizeof(*judged));
	size_t n = 0;
	int err;

	if (!judged)
		return -ENOMEM;
	for (size_t i = 0; i < functions->n; n++)
		i = gather(functions, i, b->pair, &judged[n]);
	err = by(b, judged, n);
	free(judged);
	return err;
}

static int find_basis(struct basis *b, const struct diff *d, const struct items *functions)
{
	b->counted = d->per != NULL;
	b->unit = b->counted ? 1 : SECOND_NS;
	for (int side = 0; side < 2; side++) {
		struct measured events;

		if (!b->counted) {
			b->t[side] = (double)side_of(b->pair, side)->cpu_ns;
			continue;
		}
		events = count_events(d, b->pair, side);
		b->t[side] = (double)events.n;
		b->unsure = hypot(b->unsure, events.n ? events.unsure / (double)events.n : 0);
	}
	return judge_all(b, functions, judge__basis);
}

/* Everything that is compared for a pair. */
struct things {
	struct items functions, modules, safe, unsafe, allocators, alloc_modules;
};

static int collect(const struct diff *d, struct diff_pair *pair, struct things *t)
{
	int err = collect_functions(d, pair, false, false, &t->functions);

	if (!err)
		err = collect_functions(d, pair, false, true, &t->modules);
	if (!err)
		err = collect_functions(d, pair, true, false, &t->allocators);
	if (!err)
		err = collect_functions(d, pair, true, true, &t->alloc_modules);
	if (!err)
		err = collect_calls(d, pair, true, &t->safe);
	if (!err)
		err = collect_calls(d, pair, false, &t->unsafe);
	return err;
}

static int add_rows(struct basis *b, const struct things *t)
{
	int err;

	add_sampled(b, &t->functions, DIFF_FUNCTIONS);
	add_sampled(b, &t->modules, DIFF_MODULES);
	add_sampled(b, &t->unsafe, DIFF_UNSAFE);
	add_calls(b, &t->safe);
	add_gcs(b);
	err = judge_all(b, &t->allocators, judge__alloc_basis);
	if (err)
		return err == -ERANGE ? 0 : err;
	add_alloc(b);
	add_sampled(b, &t->allocators, DIFF_ALLOC_FUNCTIONS);
	add_sampled(b, &t->alloc_modules, DIFF_ALLOC_MODULES);
	return 0;
}

static int compare(const struct diff *d, struct diff_pair *pair)
{
	struct basis b = {.pair = pair};
	struct things t = {0};
	size_t n;
	int err = collect(d, pair, &t);

	n = t.functions.n + t.modules.n + t.allocators.n + t.alloc_modules.n + t.unsafe.n +
	    3 * t.safe.n + 5;
	if (!err) {
		/* most things are in both reports */
		judge__expect(&b, n / 2);
		err = find_basis(&b, d, &t.functions);
	}
	if (!err) {
		pair->rows = calloc(n, sizeof(*pair->rows));
		err = pair->rows ? add_rows(&b, &t) : -ENOMEM;
	}
	if (!err)
		qsort(pair->rows, pair->n_rows, sizeof(*pair->rows), cmp_rows);
	free(t.functions.v);
	free(t.modules.v);
	free(t.allocators.v);
	free(t.alloc_modules.v);
	free(t.safe.v);
	free(t.unsafe.v);
	return err;
}

static const struct diff_program *find_program(const struct diff_report *r, const char *comm)
{
	for (uint32_t i = 0; i < r->n_programs; i++)
		if (!strcmp(r->programs[i].comm, comm))
			return &r->programs[i];
	return NULL;
}

static int add_pairs(struct diff *d)
{
	bool one = d->a->n_programs == 1 && d->b->n_programs == 1;
	int err = 0;

	for (uint32_t i = 0; i < d->a->n_programs && !err; i++) {
		const struct diff_program *a = &d->a->programs[i];
		const struct diff_program *b =
			one ? &d->b->programs[0] : find_program(d->b, a->comm);
		struct diff_pair *pair = &d->pairs[d->n_pairs];

		if (!b || !a->cpu_ns || !b->cpu_ns)
			continue;
		*pair = (struct diff_pair){.a = a,
					   .b = b,
					   .same_build = *a->build_id &&
							 !strcmp(a->build_id, b->build_id)};
		err = compare(d, pair);
		/* if there are several programs, those without such an event or samples are left
		 * out */
		if (!err || (err == -ERANGE && one))
			d->n_pairs++;
		else if (err == -ERANGE)
			err = 0;
	}
	return err;
}

int diff__new(const struct diff_report *a, const struct diff_report *b, const char *per,
	      struct diff **ret_diff)
{
	struct diff *d = calloc(1, sizeof(*d));
	int err = -ENOMEM;

	if (d)
		d->pairs = calloc(a->n_programs + 1, sizeof(*d->pairs));
	if (d && d->pairs) {
		d->a = a;
		d->b = b;
		d->per = per;
		err = add_pairs(d);
	}
	if (!err && !d->n_pairs)
		err = -ENOENT;
	if (err)
		diff__free(d);
	else
		*ret_diff = d;
	return err;
}

void diff__free(struct diff *diff)
{
	if (!diff)
		return;
	for (size_t i = 0; i < diff->n_pairs; i++)
		free(diff->pairs[i].rows);
	free(diff->pairs);
	free(diff);
}

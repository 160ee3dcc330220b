/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules_read: sorts the modules found by their marks, and divides the file's code between them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

/* Code on either side of a boundary that is searched for references. */
#define MAX_CONTEXT (256U << 10)

/* A module with at least one mark. */
struct item {
	struct mod_name name;
	bool has_tr;
	const struct mod_cons *cons; /* NULL: none */
	uint64_t data;		     /* address of $trModule, else of the first SrcLoc; 0 */
	bool by_place;		     /* its name is known only from places in its source */
	uint64_t first;		     /* the code after the first such place; 0 */
	/* The code of the static closures before and after $trModule; without one its
	 * constructors'. */
	uint64_t before, after;
	uint64_t begins; /* its start; 0: not known */
	uint64_t ends;	 /* its end, if C's main() follows; 0: not known */
	bool surely; /* `begins` is certain: a single function making a single constructor might be
			any function */
	bool whole;  /* all modules of its package have $trModule, so none is missing */
};

struct reader {
	struct mod_image img;
	struct mod_marks marks;
	struct mod_main main;
	struct strtab *names;
	struct item *items;
	size_t n;
	struct modules_out *out;
	uint32_t *offsets; /* output offsets of the strtab's strings; UINT32_MAX: not written yet */
};

static int by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return CMP(x->name.package, y->name.package) ?: CMP(x->name.module, y->name.module)
	       ?: CMP(x->by_place, y->by_place) ?: CMP(x->has_tr, y->has_tr) ?: CMP(x->data, y->data) ?: CMP(x->after, y->after);
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return CMP(x->cons ? x->cons->start : x->after, y->cons ? y->cons->start : y->after)
		       ?: CMP(x->data, y->data);
}

static bool same_name(const struct item *a, const struct item *b)
{
	return a->name.package == b->name.package && a->name.module == b->name.module;
}

/* Merges the marks of a module into one item; of several groups of constructors the largest is
 * kept. */
static void merge_items(struct reader *r)
{
	size_t n = 0;

	qsort(r->items, r->n, sizeof(*r->items), by_name);
	for (size_t i = 0; i < r->n; i++) {
		struct item *last = n ? &r->items[n - 1] : NULL, *it = &r->items[i];

		if (!last || !same_name(last, it)) {
			r->items[n++] = *it;
			continue;
		}
		last->ends = MAX(last->ends, it->ends);
		if (it->by_place) {
			last->first = it->first;
			continue;
		}
		if (it->cons && (!last->cons || it->cons->n > last->cons->n))
			last->cons = it->cons;
		if (it->has_tr && !last->has_tr) {
			last->has_tr = true;
			last->data = it->data;
			last->before = it->before;
			last->after = it->after;
		}
	}
	r->n = n;
	qsort(r->items, r->n, sizeof(*r->items), by_place);
}

/* Whether in this program constructors' functions come before a module's other code. */
static bool workers_in_front(const struct reader *r)
{
	size_t behind = 0, all = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct mod_cons *cons = r->items[i].cons;
		int is_behind = cons ? mod_workers__behind(&r->img, &r->marks, cons) : -1;

		all += is_behind >= 0;
		behind += is_behind > 0;
	}
	return behind <= all / 4;
}

/* Finds the start of modules that begin with functions of constructors. */
static void find_beginnings(struct reader *r)
{
	uint64_t from = r->img.text_start;

	if (!workers_in_front(r))
		return;
	for (size_t i = 0; i < r->n; i++) {
		struct item *it = &r->items[i];
		struct mod_workers w;

		if (!it->cons)
			continue;
		if (mod_workers__find(&r->img, &r->marks, it->cons, from, &w)) {
			it->begins = w.code;
			it->surely = w.n > 1;
		}
		from = it->cons->end;
	}
}

static int by_loc_name(const void *a, const void *b)
{
	const struct mod_loc *x = a, *y = b;

	return CMP(x->name.package, y->name.package) ?: CMP(x->name.module, y->name.module)
	       ?: CMP(x->data, y->data);
}

/*
 * Whether all places of a module lie together, among its package's modules; otherwise some belong
 * to functions that were inlined elsewhere.
 */
static bool lies_together(const struct reader *r, const struct item *it)
{
	const struct mod_cons *cons = r->marks.cons;
	size_t n = r->marks.n_cons;
	size_t next = search__first(n, i, cons[i].start >= it->after);

	if (it->before >= it->after && next < n && cons[next].start <= it->before)
		return false;
	return (next < n && cons[next].name.package == it->name.package) ||
	       (next > 0 && cons[next - 1].name.package == it->name.package);
}

static void add_places(struct reader *r)
{
	struct mod_marks *m = &r->marks;

	if (!m->n_locs)
		return;
	qsort(m->locs, m->n_locs, sizeof(*m->locs), by_loc_name);
	for (size_t i = 0, end; i < m->n_locs; i = end) {
		struct item it = {
			.name = m->locs[i].name, .data = m->locs[i].data, .by_place = true};

		for (end = i + 1; end < m->n_locs && m->locs[end].name.package == it.name.package &&
				  m->locs[end].name.module == it.name.module;)
			end++;
		it.before = mod_marks__code_before(m, m->locs[end - 1].data);
		it.after = MIN(mod_marks__code_after(m, it.data), r->img.text_end);
		it.first = it.after;
		if (lies_together(r, &it))
			r->items[r->n++] = it;
	}
}

/* A marked item's position, and the furthest reach of all up to it. */
struct marked {
	uint64_t after, reach;
	uint32_t package;
};

static int by_after(const void *a, const void *b)
{
	const struct marked *x = a, *y = b;

	return CMP(x->after, y->after) ?: CMP(x->reach, y->reach) ?: CMP(x->package, y->package);
}

/* Collects the positions of all marked items; sets ret_named[id] for each module name that has a
 * mark. */
static size_t find_marked(const struct reader *r, struct marked *ret_marked, bool *ret_named)
{
	uint64_t reach = 0;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct item *it = &r->items[i];

		if (it->by_place)
			continue;
		ret_marked[n++] =
			(struct marked){it->after, MAX(it->before, it->after), it->name.package};
		ret_named[it->name.module] = true;
	}
	qsort(ret_marked, n, sizeof(*ret_marked), by_after);
	for (size_t i = 0; i < n; i++)
		ret_marked[i].reach = reach = MAX(reach, ret_marked[i].reach);
	return n;
}

/*
 * Code between two modules of one package belongs to that package. False: the package is not known,
 * or another module's mark lies between the places, so some belong to functions that were inlined
 * elsewhere.
 */
static bool package_between(const struct marked *marked, size_t n, const struct mod_source *source,
			    uint32_t *ret_package)
{
	size_t after = search__first(n, i, marked[i].after > source->last);

	if (after == n || (after && (marked[after - 1].reach >= source->first ||
				     marked[after - 1].package != marked[after].package)))
		return false;
	*ret_package = marked[after].package;
	return true;
}

static void put_sources(struct reader *r, const struct mod_source *sources, size_t n_sources,
			const struct marked *marked, size_t n_marked, const bool *named)
{
	for (size_t i = 0; i < n_sources; i++) {
		struct item it = {.name.module = sources[i].module,
				  .by_place = true,
				  .before = sources[i].last,
				  .after = sources[i].first,
				  .first = sources[i].first};

		if (!named[it.name.module] &&
		    package_between(marked, n_marked, &sources[i], &it.name.package))
			r->items[r->n++] = it;
	}
}

/* Adds the modules whose names occur only in pattern-match failures. */
static int add_sources(struct reader *r)
{
	struct mod_source *sources;
	size_t n_sources;
	struct item *items;
	int err = mod_sources__find(&r->img, r->names, &sources, &n_sources);
	struct marked *marked;
	bool *named;

	if (err)
		return err;
	marked = calloc(r->n + 1, sizeof(*marked));
	named = calloc(strtab__count(r->names), sizeof(*named));
	items = reallocarray(r->items, r->n + n_sources + 1, sizeof(*items));
	if (items)
		r->items = items;
	if (marked && named && items)
		put_sources(r, sources, n_sources, marked, find_marked(r, marked, named), named);
	else
		err = -ENOMEM;
	free(sources);
	free(marked);
	free(named);
	return err;
}

/*
 * A package whose modules were partly removed by section garbage collection lacks some $trModule.
 * If it lacks none, no module is missing that a place in the source could show.
 */
static int find_whole(struct reader *r)
{
	uint32_t n = strtab__count(r->names);
	bool *lacks = calloc(n, sizeof(*lacks)), any = false;
	size_t kept = 0;
	int err = 0;

	if (!lacks)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++)
		if (!r->items[i].has_tr && !r->items[i].by_place)
			lacks[r->items[i].name.package] = any = true;
	if (any)
		err = add_sources(r);
	for (size_t i = 0; i < r->n; i++) {
		struct item it = r->items[i];

		it.whole = !lacks[it.name.package];
		if (!it.whole || !it.by_place)
			r->items[kept++] = it;
	}
	r->n = kept;
	qsort(r->items, r->n, sizeof(*r->items), by_place);
	free(lacks);
	return err;
}

/*
 * Adds the program's Main, whose name may have been removed by section garbage collection. The
 * nearest named module before it is in the same package, which is not "main" if Cabal built it.
 */
static int add_main(struct reader *r)
{
	uint64_t code = mod_marks__code_before(&r->marks, r->main.data), nearest = 0;
	struct item it = {.data = r->main.data, .before = code, .after = code, .ends = r->main.at};
	int err = strtab__add(r->names, "Main", strlen("Main"), &it.name.module);

	if (!err)
		err = strtab__add(r->names, "main", strlen("main"), &it.name.package);
	for (size_t i = 0; i < r->n && !err; i++) {
		if (r->items[i].after > code || r->items[i].after < nearest)
			continue;
		nearest = r->items[i].after;
		it.name.package = r->items[i].name.package;
	}
	if (!err)
		r->items[r->n++] = it;
	return err;
}

static int make_items(struct reader *r)
{
	const struct mod_marks *m = &r->marks;
	int err = 0;

	r->items = calloc(m->n_cons + m->n_trs + m->n_locs + 1, sizeof(*r->items));
	if (!r->items)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_cons; i++)
		r->items[r->n++] = (struct item){.name = m->cons[i].name,
						 .cons = &m->cons[i],
						 .before = m->cons[i].start,
						 .after = m->cons[i].start};
	add_places(r);
	for (size_t i = 0; i < m->n_trs; i++)
		r->items[r->n++] = (struct item){
			.name = m->trs[i].name,
			.has_tr = true,
			.data = m->trs[i].data,
			.before = mod_marks__code_before(m, m->trs[i].data),
			.after = MIN(mod_marks__code_after(m, m->trs[i].data), r->img.text_end)};
	if (r->main.data)
		err = add_main(r);
	if (err)
		return err;
	merge_items(r);
	err = find_whole(r);
	if (!err)
		find_beginnings(r);
	return err;
}

/* ── putting it out ──────────────────────────────────────────────────────────────────────── */

static int put_string(struct reader *r, uint32_t id, uint32_t *ret_at)
{
	const char *s = strtab__get(r->names, id);
	size_t len = strlen(s) + 1;

	if (r->offsets[id] == UINT32_MAX) {
		if (len > r->out->max_strings - r->out->strings_len)
			return -E2BIG;
		memcpy(r->out->strings + r->out->strings_len, s, len);
		r->offsets[id] = r->out->strings_len;
		r->out->strings_len += (uint32_t)len;
	}
	*ret_at = r->offsets[id];
	return 0;
}

static int put_piece(struct reader *r, const struct item *it, uint64_t base, uint64_t start,
		     uint64_t end, bool uncertain)
{
	struct modules_raw raw = {.start = start, .end = end, .base = base, .uncertain = uncertain};
	int err;

	if (start >= end)
		return 0;
	if (r->out->n >= r->out->max_pieces)
		return -E2BIG;
	err = put_string(r, it->name.package, &raw.package);
	if (!err)
		err = put_string(r, it->name.module, &raw.module);
	if (!err)
		r->out->pieces[r->out->n++] = raw;
	return err;
}

/* ── parting ─────────────────────────────────────────────────────────────────────────────── */

/* The runtime's own Cmm code follows the last module, so that gets only the code known to be its
 * own. */
static uint64_t end_of_last(const struct reader *r, uint64_t low, uint64_t high)
{
	for (uint64_t at = (low + 8) & ~7ULL; at < high; at += 8)
		if (mod_image__is_static(mod_image__type(&r->img, at)))
			return at - mod_image__table_size(&r->img, mod_image__type(&r->img, at));
	return high;
}

/* Finds the boundary between one module and the next. */
static int end_of(struct reader *r, size_t i, uint64_t start, struct mod_cut *ret_cut)
{
	const struct item *it = &r->items[i], *next = i + 1 < r->n ? it + 1 : NULL;
	struct mod_between where = {.start = start, .low = MAX(start, it->before)};
	int err;

	if (it->ends || it->cons) {
		uint64_t end = it->ends ? it->ends : it->cons->end;

		*ret_cut = (struct mod_cut){end, end, end};
		return 0;
	}
	if (next && next->begins > start) {
		*ret_cut = (struct mod_cut){next->begins, next->begins, next->begins};
		return 0;
	}
	if (!next) {
		where.high = end_of_last(r, where.low, it->after);
		*ret_cut = (struct mod_cut){where.high, where.low, where.high};
		return 0;
	}
	where.high = MIN(next->after, next->cons ? next->cons->start : UINT64_MAX);
	where.end = next->after + 1;
	if (next->cons)
		where.end = next->cons->end;
	else if (i + 2 < r->n)
		where.end = next[1].begins ? next[1].begins : next[1].after;
	where.end = MIN(MAX(where.end, where.high), r->img.text_end);
	where.end = MIN(where.end, where.high + MAX_CONTEXT);
	where.start = MAX(where.start, where.low - MIN(where.low, (uint64_t)MAX_CONTEXT));
	if (where.high <= where.low) {
		*ret_cut = (struct mod_cut){where.high, where.high, where.high};
		return 0;
	}
	err = mod_cut__find(&r->img, &r->marks, &where, ret_cut);
	if (err == -ENOENT) {
		*ret_cut = (struct mod_cut){where.high, where.low, where.high};
		err = 0;
	}
	return err;
}

/*
 * If sections were garbage-collected, a module without constructors may be missing before this one:
 * then the code before its constructors' functions is uncertain, or all of its code if those do not
 * come first.
 */
static uint64_t certain_from(const struct item *before, const struct item *it, uint64_t start)
{
	if (it->begins && (it->surely || it->whole))
		return it->begins;
	if (before && before->whole && it->whole)
		return start;
	if (!it->cons)
		return MAX(it->after, start);
	return it->first > start ? MIN(it->first, it->cons->start) : it->cons->start;
}

static int put_pieces(struct reader *r)
{
	uint64_t start = r->img.text_start, doubt = 0;
	int err = 0;

	for (size_t i = 0; i < r->n && !err; i++) {
		const struct item *it = &r->items[i];
		struct mod_cut cut;
		uint64_t from, to;

		err = end_of(r, i, start, &cut);
		if (err)
			break;
		from = certain_from(i ? it - 1 : NULL, it, start);
		cut.at = MAX(cut.at, start);
		from = MIN(MAX(from, MAX(doubt, start)), cut.at);
		to = it->by_place ? MIN(cut.low, it->before) : cut.low;
		to = MAX(MIN(to, cut.at), from);
		err = put_piece(r, it, start, start, from, true);
		if (!err)
			err = put_piece(r, it, start, from, to, false);
		if (!err)
			err = put_piece(r, it, start, to, cut.at, true);
		start = cut.at;
		doubt = cut.high;
	}
	return err;
}

int modules_read(const struct elf_file *elf, bool profiled, struct modules_out *out)
{
	struct reader r = {.out = out};
	int err = mod_image__init(elf, profiled, &r.img);
	size_t n;

	out->n = 0;
	out->strings_len = 1;
	out->strings[0] = '\0';
	if (err)
		return err == -ENOENT ? 0 : err;
	err = strtab__new(&r.names);
	if (!err)
		err = mod_marks__find(&r.img, r.names, &r.marks);
	if (!err)
		err = mod_main__find(&r.img, &r.marks, &r.main);
	if (!err)
		err = make_items(&r);
	if (err)
		goto out;
	n = strtab__count(r.names);
	r.offsets = malloc(n * sizeof(*r.offsets));
	if (!r.offsets) {
		err = -ENOMEM;
		goto out;
	}
	memset(r.offsets, 0xff, n * sizeof(*r.offsets));
	r.offsets[0] = 0;
	err = put_pieces(&r);
out:
	free(r.offsets);
	free(r.items);
	mod_marks__fini(&r.marks);
	strtab__free(r.names);
	mod_image__fini(&r.img);
	return err;
}

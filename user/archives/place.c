/* SPDX-License-Identifier: GPL-2.0-or-later */
/* place: accepts sections that are certain, follows their references, and accepts what agrees
 * with them. */
#include "place_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "base/hash.h"
#include "base/search.h"

/* Rounds of accepting what agrees; each one knows more than the last. */
#define MAX_ROUNDS 16

struct taken {
	uint64_t start;
	uint32_t section;
	UT_hash_handle hh;
};

/* A symbol of an accepted section. */
struct spot {
	uint64_t vaddr;
	uint32_t section;
	uint32_t value;
	UT_hash_handle hh;
};

struct placing {
	const struct sections *all;
	const struct defs *defs;
	const struct code *code;
	const struct matches *matches;
	uint32_t *n_at; /* at how many places each section matches */
	uint8_t *done;	/* the section has been placed */
	struct learnt learnt;
	struct taken *taken;
	struct spot *spots;
	struct places sorted; /* those accepted before this round */
	/* those whose references are yet to be followed */
	struct placed *todo;
	size_t n_todo, todo_cap;
};

/* What a relocation reveals if its section is at `start`. */
struct reference {
	struct member_symbol symbol;
	uint64_t vaddr; /* address of the symbol */
};

static bool read_reference(const struct placing *p, uint64_t start, uint32_t section, uint32_t i,
			   struct reference *ret)
{
	const struct section *s = &p->all->v[section];
	struct archives_field field;
	const uint8_t *at;
	Elf64_Rela reloc;
	uint32_t type;

	section__reloc(p->all, s, i, &reloc);
	type = (uint32_t)ELF64_R_TYPE(reloc.r_info);
	if (!archives_arch__field(type, &field))
		return false;
	at = code__at(p->code, start + reloc.r_offset, field.len);
	return at && !field.before &&
	       archives_arch__symbol(type, at, start + reloc.r_offset, reloc.r_addend,
				     &ret->vaddr) &&
	       member__symbol(section__member(p->all, s), (uint32_t)ELF64_R_SYM(reloc.r_info),
			      &ret->symbol);
}

/* ── taking ──────────────────────────────────────────────────────────────────────────────── */

static struct taken *taken_at(const struct placing *p, uint64_t start)
{
	struct taken *t;

	HASH_FIND(hh, p->taken, &start, sizeof(start), t);
	return t;
}

static int take(struct placing *p, uint64_t start, uint32_t section)
{
	struct taken *t;
	int err;

	if (p->done[section] || taken_at(p, start))
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct taken){.start = start, .section = section};
	err = HASH_INSERT(p->taken, start, sizeof(t->start), t);
	if (!err)
		err = ARRAY_RESERVE(p->todo, p->todo_cap, p->n_todo + 1, MAX_SECTIONS);
	if (err)
		return err;
	p->done[section] = 1;
	p->todo[p->n_todo++] = (struct placed){start, section};
	return 0;
}

/* ── following references ────────────────────────────────────────────────────────────────── */

static bool may_be_at(const struct placing *p, uint32_t section, uint64_t start)
{
	const struct section *s = &p->all->v[section];
	const uint8_t *code;

	if (p->done[section] || start & (s->align - 1) || s->fixed < PLACE_MIN_FIXED)
		return false;
	code = code__at(p->code, start, s->size);
	return code && section__is_at(p->all, s, code);
}

/* Follows a reference to a local symbol of the same object file. */
static int follow_local(struct placing *p, const struct section *from, const struct reference *ref)
{
	const struct section *to =
		member__section(p->all, section__member(p->all, from), ref->symbol.section);
	uint64_t start = ref->vaddr - ref->symbol.value;

	if (!to || to == from || !may_be_at(p, (uint32_t)(to - p->all->v), start))
		return 0;
	return take(p, start, (uint32_t)(to - p->all->v));
}

/* Follows a reference by name. Several sections of the archives may define it; only one is
 * linked. */
static int follow_name(struct placing *p, const struct reference *ref)
{
	const char *name = ref->symbol.name;
	uint32_t found = DEFS_NONE;
	uint64_t start = 0;

	for (uint32_t i = defs__find(p->defs, name); i != DEFS_NONE;
	     i = defs__find_next(p->defs, i, name)) {
		struct member_symbol sym;
		uint32_t section = p->defs->v[i].section;

		if (!defs__symbol(p->defs, i, &sym) ||
		    !may_be_at(p, section, ref->vaddr - sym.value))
			continue;
		if (found != DEFS_NONE && !defs__agree(p->defs, found, section))
			return 0;
		found = section;
		start = ref->vaddr - sym.value;
	}
	return found == DEFS_NONE ? 0 : take(p, start, found);
}

static int follow(struct placing *p, struct placed from)
{
	const struct section *s = &p->all->v[from.section];
	int err = 0;

	for (uint32_t i = 0; i < s->n_relocs && !err; i++) {
		struct reference ref;

		if (!read_reference(p, from.start, from.section, i, &ref))
			continue;
		if (ref.symbol.bind == STB_LOCAL) {
			err = follow_local(p, s, &ref);
			continue;
		}
		if (!ref.symbol.name[0])
			continue;
		err = learnt__add(&p->learnt, ref.symbol.name, ref.vaddr);
		if (!err)
			err = follow_name(p, &ref);
	}
	return err;
}

static int add_spot(struct placing *p, struct placed from, uint64_t value)
{
	uint64_t vaddr = from.start + value;
	struct spot *spot;

	HASH_FIND(hh, p->spots, &vaddr, sizeof(vaddr), spot);
	if (spot)
		return 0;
	spot = calloc(1, sizeof(*spot));
	if (!spot)
		return -ENOMEM;
	*spot = (struct spot){.vaddr = vaddr, .section = from.section, .value = (uint32_t)value};
	return HASH_INSERT(p->spots, vaddr, sizeof(spot->vaddr), spot);
}

/*
 * True if a reference to the symbol leads to the section's own definition. An IFUNC, which is
 * resolved when the program starts, does not qualify: its callers are led to an entry that the
 * linker generates. Nor does a weak symbol for which the linker may have taken another one.
 */
static bool is_a_mark(const struct placing *p, uint32_t def, const struct member_symbol *sym)
{
	return sym->bind != STB_LOCAL && sym->type != STT_GNU_IFUNC &&
	       !defs__may_yield(p->defs, def);
}

static int learn(struct placing *p, struct placed from)
{
	int err = 0;

	for (uint32_t i = p->defs->first[from.section];
	     i < p->defs->first[from.section + 1] && !err; i++) {
		struct member_symbol sym;

		if (!defs__symbol(p->defs, i, &sym))
			continue;
		if (is_a_mark(p, i, &sym))
			err = learnt__add(&p->learnt, sym.name, from.start + sym.value);
		if (!err)
			err = add_spot(p, from, sym.value);
	}
	return err;
}

static int follow_all(struct placing *p)
{
	int err = 0;

	while (p->n_todo && !err) {
		struct placed next = p->todo[--p->n_todo];

		err = learn(p, next);
		if (!err)
			err = follow(p, next);
	}
	return err;
}

/* ── what was taken, by its place ────────────────────────────────────────────────────────── */

static int by_start(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return CMP(x->start, y->start);
}

/* Of two overlapping sections at most one is really there: keeps the one with more fixed bytes. */
static void drop_overlaps(const struct sections *all, struct places *places)
{
	size_t kept = 0;

	for (size_t i = 0; i < places->n; i++) {
		const struct placed *last = kept ? &places->v[kept - 1] : NULL;
		const struct section *s = &all->v[places->v[i].section];

		if (!last || last->start + all->v[last->section].size <= places->v[i].start)
			places->v[kept++] = places->v[i];
		else if (all->v[last->section].fixed < s->fixed)
			places->v[kept - 1] = places->v[i];
	}
	places->n = kept;
}

static int sort(struct placing *p)
{
	struct places *ret = &p->sorted;
	struct taken *t, *next;
	int err = ARRAY_RESERVE(ret->v, ret->cap, HASH_COUNT(p->taken) + 1UL, MAX_SECTIONS + 1);

	ret->n = 0;
	if (err)
		return err;
	HASH_ITER (hh, p->taken, t, next)
		ret->v[ret->n++] = (struct placed){t->start, t->section};
	qsort(ret->v, ret->n, sizeof(*ret->v), by_start);
	drop_overlaps(p->all, ret);
	return 0;
}

/* ── what is sure, and what agrees with it ───────────────────────────────────────────────── */

/* True if another function is known to be at the symbol's supposed address. */
static bool is_another(const struct placing *p, const struct reference *ref)
{
	struct spot *spot;

	HASH_FIND(hh, p->spots, &ref->vaddr, sizeof(ref->vaddr), spot);
	return spot && !defs__has(p->defs, spot->section, ref->symbol.name, spot->value);
}

enum verdict {
	NOT_IT, /* contradicted by what is known of its symbols or references */
	MAY_BE,
	IT_IS,
};

/* Judges by what the section refers to. */
static enum verdict by_references(const struct placing *p, const struct match *m)
{
	const struct section *s = &p->all->v[m->section];
	enum verdict verdict = MAY_BE;

	for (uint32_t i = 0; i < s->n_relocs; i++) {
		const struct learnt_name *known;
		struct reference ref;

		if (!read_reference(p, m->start, m->section, i, &ref) ||
		    ref.symbol.bind == STB_LOCAL || !ref.symbol.name[0])
			continue;
		if (is_another(p, &ref))
			return NOT_IT;
		known = learnt__find(&p->learnt, ref.symbol.name);
		if (!known || known->several)
			continue;
		if (known->vaddr != ref.vaddr)
			return NOT_IT;
		verdict = IT_IS;
	}
	return verdict;
}

/* True if a symbol that the section defines is known to be elsewhere. */
static bool is_elsewhere(const struct placing *p, const struct match *m)
{
	for (uint32_t i = p->defs->first[m->section]; i < p->defs->first[m->section + 1]; i++) {
		const struct learnt_name *known;
		struct member_symbol sym;

		if (!defs__symbol(p->defs, i, &sym) || !is_a_mark(p, i, &sym))
			continue;
		known = learnt__find(&p->learnt, sym.name);
		if (known && !known->several && known->vaddr != m->start + sym.value)
			return true;
	}
	return false;
}

/* True if b comes right after a, as the linker arranges sections of one object file. */
static bool is_next(const struct placing *p, struct placed a, struct placed b)
{
	const struct section *x = &p->all->v[a.section], *y = &p->all->v[b.section];

	return x->member == y->member && x->number < y->number && a.start + x->size <= b.start &&
	       b.start - (a.start + x->size) < PLACE_MAX_PADDING;
}

static bool has_neighbour(const struct placing *p, const struct match *m)
{
	const struct places *sorted = &p->sorted;
	const struct placed here = {m->start, m->section};
	size_t after = search__first(sorted->n, i, sorted->v[i].start > m->start);

	return (after && is_next(p, sorted->v[after - 1], here)) ||
	       (after < sorted->n && is_next(p, here, sorted->v[after]));
}

static enum verdict judge_sure(const struct placing *p, const struct match *m)
{
	const struct section *s = &p->all->v[m->section];
	bool haskell = section__member(p->all, s)->haskell;

	return p->n_at[m->section] == 1 &&
			       s->distinct >= (haskell ? PLACE_SURE_HASKELL : PLACE_SURE_FIXED)
		       ? IT_IS
		       : MAY_BE;
}

/* A quick test whether judge_known() could accept the match; most matches in large programs fail
 * it. */
static bool may_win(const struct placing *p, const struct match *m)
{
	const struct section *s = &p->all->v[m->section];

	return p->n_at[m->section] == 1 && !p->done[m->section] &&
	       (!section__member(p->all, s)->haskell || has_neighbour(p, m));
}

static enum verdict judge_known(const struct placing *p, const struct match *m)
{
	const struct section *s = &p->all->v[m->section];
	enum verdict verdict = by_references(p, m);

	if (p->done[m->section] || verdict == NOT_IT || is_elsewhere(p, m))
		return NOT_IT;
	if (section__member(p->all, s)->haskell)
		verdict = MAY_BE;
	if (has_neighbour(p, m))
		verdict = IT_IS;
	return p->n_at[m->section] == 1 ? verdict : MAY_BE;
}

typedef enum verdict (*judge_fn)(const struct placing *p, const struct match *m);

/* Of the matches from `i` on, which begin at the same place, the one that is really there;
 * `end`: unknown. */
static size_t only_one(const struct placing *p, size_t i, size_t end, judge_fn judge)
{
	const struct match *v = p->matches->v;
	size_t first = end, found = end;
	uint32_t size = 0;

	/* the largest one includes the bytes of the others */
	for (size_t k = i; k < end; k++)
		size = MAX(size, p->all->v[v[k].section].size);
	for (size_t k = i; k < end; k++) {
		enum verdict verdict =
			p->all->v[v[k].section].size == size ? judge(p, &v[k]) : NOT_IT;

		if (verdict == NOT_IT)
			continue;
		if (first != end && !defs__agree(p->defs, v[first].section, v[k].section))
			return end;
		first = first == end ? k : first;
		if (verdict == IT_IS)
			found = k;
	}
	return found;
}

static int take_those(struct placing *p, judge_fn judge)
{
	const struct matches *m = p->matches;
	int err = 0;

	for (size_t i = 0, end; i < m->n && !err; i = end) {
		bool any = may_win(p, &m->v[i]);
		size_t one;

		for (end = i + 1; end < m->n && m->v[end].start == m->v[i].start; end++)
			any |= may_win(p, &m->v[end]);
		if ((judge == judge_known && !any) || taken_at(p, m->v[i].start))
			continue;
		one = only_one(p, i, end, judge);
		if (one != end)
			err = take(p, m->v[i].start, m->v[one].section);
	}
	return err;
}

static int place_all(struct placing *p)
{
	size_t before = 0;
	int err = take_those(p, judge_sure);

	if (!err)
		err = follow_all(p);
	for (size_t i = 0; i < MAX_ROUNDS && !err && HASH_COUNT(p->taken) > before; i++) {
		before = HASH_COUNT(p->taken);
		err = sort(p);
		if (!err)
			err = take_those(p, judge_known);
		if (!err)
			err = follow_all(p);
	}
	return err ? err : sort(p);
}

void places__free(struct places *places)
{
	free(places->v);
	learnt__free(&places->learnt);
	memset(places, 0, sizeof(*places));
}

bool places__has_name(const struct places *places, const struct defs *defs,
		      const struct placed *place, uint32_t def)
{
	const struct learnt_name *known;
	struct member_symbol sym;

	if (!defs__symbol(defs, def, &sym))
		return false;
	if (sym.bind != STB_WEAK || sym.type == STT_GNU_IFUNC)
		return true;
	known = learnt__find(&places->learnt, sym.name);
	if (!known)
		return !defs__may_yield(defs, def);
	return !known->several && known->vaddr == place->start + sym.value;
}

int places__find(const struct defs *defs, const struct code *code, const struct matches *matches,
		 struct places *ret_places)
{
	struct placing p = {.all = defs->all, .defs = defs, .code = code, .matches = matches};
	int err = -ENOMEM;

	p.n_at = calloc(p.all->n + 1, sizeof(*p.n_at));
	p.done = calloc(p.all->n + 1, 1);
	if (!p.n_at || !p.done || learnt__init(&p.learnt))
		goto out;
	for (size_t i = 0; i < matches->n; i++)
		p.n_at[matches->v[i].section]++;
	err = place_all(&p);
	if (!err) {
		*ret_places = p.sorted;
		ret_places->learnt = p.learnt;
		p.sorted = (struct places){0};
		p.learnt = (struct learnt){0};
	}
out:
	places__free(&p.sorted);
	HASH_FREE(p.taken);
	HASH_FREE(p.spots);
	learnt__free(&p.learnt);
	free(p.n_at);
	free(p.done);
	free(p.todo);
	return err;
}

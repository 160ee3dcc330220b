/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names functions of the runtime by the strings that they use: messages of failures, traces and
 * reports, which strip leaves. rts_strings_table_priv.h lists which functions use a string in the
 * releases that it was generated from. Compilers inline functions as they please, so a name is
 * given only if all strings of a function agree on it and no other function has it. Some functions
 * without strings are then named because they come between two named ones in the call graph.
 */
#include "rts_named_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "base/search.h"

struct rts_string {
	const char *text;
	/* Numbers of the functions that use it. The second may be 0, or the same as the first:
	 * two objects of the archive then have a function of that name. */
	uint16_t names[2];
};

#include "rts_strings_table_priv.h"

#define MAX_TEXT 128
#define MAX_USES (1U << 20)
/* Functions that are compiled twice: the version for a collector that works alone has a 1
 * appended to its name. */
#define ALONE '1'

/* A use of a string by a function. */
struct use {
	uint32_t function;
	uint16_t string;
};

/* A segment that is not writable, which strings may be in. */
struct range {
	const char *data;
	uint64_t vaddr, size;
};

#define MAX_RANGES 16

struct search {
	const struct elf_file *elf;
	const struct elf_fde *fdes;
	size_t n;
	const struct rts_graph *graph;
	uint16_t *names;
	struct range ranges[MAX_RANGES];
	size_t n_ranges;
	uint64_t lo, hi;  /* bounds of all ranges */
	struct use *uses; /* ascending by function */
	size_t n_uses, cap;
	uint32_t function; /* being read at the moment */
	int err;
};

uint16_t rts_named__last(void)
{
	return ARRAY_SIZE(rts_string_names);
}

const char *rts_named__text(uint16_t name)
{
	return name && name <= ARRAY_SIZE(rts_string_names) ? rts_string_names[name - 1] : NULL;
}

static uint16_t number_of(const char *text)
{
	size_t at = search__first(ARRAY_SIZE(rts_string_names), i,
				  strcmp(rts_string_names[i], text) >= 0);

	return at < ARRAY_SIZE(rts_string_names) && !strcmp(rts_string_names[at], text)
		       ? (uint16_t)(at + 1)
		       : RTS_NAMED_NONE;
}

/* ── the strings ─────────────────────────────────────────────────────────────────────────── */

static void find_ranges(struct search *s)
{
	s->lo = UINT64_MAX;
	for (size_t i = 0; i < elf__n_segments(s->elf) && s->n_ranges < MAX_RANGES; i++) {
		const struct elf_segment *seg = elf__segment(s->elf, i);
		const uint8_t *data;

		data = seg->write || !seg->filesz ? NULL : elf__at(s->elf, seg->vaddr, seg->filesz);
		if (!data)
			continue;
		s->ranges[s->n_ranges++] =
			(struct range){(const char *)data, seg->vaddr, seg->filesz};
		s->lo = MIN(s->lo, seg->vaddr);
		s->hi = MAX(s->hi, seg->vaddr + seg->filesz - 1);
	}
}

/* The index of the listed string at vaddr; the number of strings if it is not listed. */
static size_t string_at(const struct search *s, uint64_t vaddr)
{
	size_t n = ARRAY_SIZE(rts_strings);

	for (size_t i = 0; i < s->n_ranges; i++) {
		const struct range *r = &s->ranges[i];
		const char *text;
		size_t at;

		if (vaddr < r->vaddr || vaddr - r->vaddr >= r->size)
			continue;
		text = r->data + (vaddr - r->vaddr);
		if (!memchr(text, '\0', MIN(r->size - (vaddr - r->vaddr), MAX_TEXT)))
			return n;
		at = search__first(n, k, strncmp(rts_strings[k].text, text, MAX_TEXT) >= 0);
		return at < n && !strncmp(rts_strings[at].text, text, MAX_TEXT) ? at : n;
	}
	return n;
}

static bool on_address(void *ctx, uint64_t target)
{
	struct search *s = ctx;
	size_t string = string_at(s, target);

	if (string == ARRAY_SIZE(rts_strings))
		return true;
	for (size_t i = s->n_uses; i > 0 && s->uses[i - 1].function == s->function; i--)
		if (s->uses[i - 1].string == string)
			return true;
	s->err = ARRAY_RESERVE(s->uses, s->cap, s->n_uses + 1, MAX_USES);
	if (s->err)
		return false;
	s->uses[s->n_uses++] = (struct use){s->function, (uint16_t)string};
	return true;
}

static const uint8_t *code_of(const struct search *s, size_t i, size_t *ret_len)
{
	*ret_len = s->fdes[i].end - s->fdes[i].start;
	return elf__at(s->elf, s->fdes[i].start, *ret_len);
}

static int find_uses(struct search *s)
{
	find_ranges(s);
	for (size_t i = 0; i < s->n && s->n_ranges && !s->err; i++) {
		size_t len;
		const uint8_t *code = code_of(s, i, &len);

		s->function = (uint32_t)i;
		if (code)
			rts_arch__addresses(code, len, s->fdes[i].start, s->lo, s->hi, on_address,
					    s);
	}
	return s->err;
}

/* ── whose they are ──────────────────────────────────────────────────────────────────────── */

static bool has(const uint16_t names[2], uint16_t name)
{
	return name && (names[0] == name || names[1] == name);
}

/* The names that all strings of the function at *at agree on; advances *at to the next function. */
static void agree(const struct search *s, const uint16_t *users, size_t *at, uint16_t names[2])
{
	uint32_t function = s->uses[*at].function;
	bool any = false;

	names[0] = names[1] = 0;
	for (; *at < s->n_uses && s->uses[*at].function == function; (*at)++) {
		const struct rts_string *string = &rts_strings[s->uses[*at].string];

		/* more functions use it than in the measured releases */
		if (users[s->uses[*at].string] > 1 + (string->names[1] != 0))
			continue;
		if (!any)
			memcpy(names, string->names, sizeof(string->names));
		for (size_t k = 0; k < 2; k++)
			if (!has(string->names, names[k]))
				names[k] = 0;
		any = true;
	}
	if (!names[0])
		names[0] = names[1];
	if (names[0] == names[1])
		names[1] = 0;
}

/* True if names[1] is the same function as names[0], compiled for a collector that works alone. */
static bool is_pair(const uint16_t names[2])
{
	const char *one = rts_named__text(names[0]), *other = rts_named__text(names[1]);
	size_t len = one ? strlen(one) : 0;

	return one && other && !strncmp(one, other, len) && other[len] == ALONE && !other[len + 1];
}

/* Two functions that share their strings. */
struct twins {
	uint16_t names[2];
	size_t functions[2];
	size_t n;
	bool done;
};

#define MAX_TWINS 16

static void add_twin(struct twins *twins, const uint16_t names[2], size_t function)
{
	for (size_t i = 0; i < MAX_TWINS; i++) {
		struct twins *t = &twins[i];

		if (t->n && t->names[0] != names[0])
			continue;
		memcpy(t->names, names, sizeof(t->names));
		if (t->n < ARRAY_SIZE(t->functions))
			t->functions[t->n] = function;
		t->n++;
		return;
	}
}

static int by_strings(struct search *s, struct twins *twins)
{
	uint16_t *users = calloc(ARRAY_SIZE(rts_strings), sizeof(*users));

	if (!users)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_uses; i++)
		if (users[s->uses[i].string] < UINT16_MAX)
			users[s->uses[i].string]++;
	for (size_t at = 0; at < s->n_uses;) {
		size_t function = s->uses[at].function;
		uint16_t names[2];

		agree(s, users, &at, names);
		if (names[0] && !names[1])
			s->names[function] = names[0];
		else if (is_pair(names))
			add_twin(twins, names, function);
	}
	free(users);
	return 0;
}

static void swap(struct twins *t)
{
	size_t first = t->functions[0];

	t->functions[0] = t->functions[1];
	t->functions[1] = first;
}

/* How many of the identified twins' members `which` (0: parallel, 1: alone) a function calls. */
static size_t calls_twins(const struct search *s, const struct twins *twins, size_t function,
			  size_t which)
{
	size_t n = 0;

	for (size_t i = 0; i < MAX_TWINS; i++)
		n += twins[i].done && twins[i].n == 2 &&
		     rts_graph__calls(s->graph, function, twins[i].functions[which]);
	return n;
}

/* Functions of a collector that works alone call others of that kind. */
static bool by_callees(const struct search *s, const struct twins *twins, struct twins *t)
{
	bool with[2], alone[2];

	for (size_t k = 0; k < 2; k++) {
		with[k] = calls_twins(s, twins, t->functions[k], 0) > 0;
		alone[k] = calls_twins(s, twins, t->functions[k], 1) > 0;
	}
	if (with[0] && !alone[0] && alone[1] && !with[1])
		return true;
	if (with[1] && !alone[1] && alone[0] && !with[0]) {
		swap(t);
		return true;
	}
	return false;
}

/* Parallel collectors claim each object atomically (rts/sm/Evac.c, copy_tag and copyPart). */
static bool by_exchanges(const struct search *s, struct twins *t)
{
	size_t count[2], len;

	for (size_t k = 0; k < 2; k++) {
		const uint8_t *code = code_of(s, t->functions[k], &len);

		count[k] = code ? rts_arch__n_exchanges(code, len) : 0;
	}
	if (count[0] == count[1])
		return false;
	if (count[1] > count[0])
		swap(t);
	return true;
}

static void distinguish(struct search *s, struct twins *twins)
{
	bool more = true;

	for (size_t i = 0; i < MAX_TWINS; i++) {
		/* a non-threaded runtime has only one of each */
		if (twins[i].n == 1)
			s->names[twins[i].functions[0]] = twins[i].names[0];
		twins[i].done = twins[i].n == 2 &&
				!strcmp("evacuate", rts_named__text(twins[i].names[0])) &&
				by_exchanges(s, &twins[i]);
	}
	while (more) {
		more = false;
		for (size_t i = 0; i < MAX_TWINS; i++) {
			if (twins[i].n != 2 || twins[i].done || !by_callees(s, twins, &twins[i]))
				continue;
			twins[i].done = more = true;
		}
	}
	for (size_t i = 0; i < MAX_TWINS; i++)
		for (size_t k = 0; k < 2 && twins[i].done; k++)
			s->names[twins[i].functions[k]] = twins[i].names[k];
}

/* ── by other marks ──────────────────────────────────────────────────────────────────────── */

static size_t by_place(const struct search *s, const struct rts *rts, const struct rts_place *place,
		       const char *name)
{
	size_t i = place->addr
			   ? elf_fdes__starting_at(s->fdes, s->n, place->addr - rts->image->bias)
			   : s->n;

	if (i != s->n)
		s->names[i] = number_of(name);
	return i;
}

static void by_places(const struct search *s, const struct rts *rts)
{
	size_t end, collect;

	by_place(s, rts, &rts->suspend, "suspendThread");
	by_place(s, rts, &rts->resume, "resumeThread");
	by_place(s, rts, &rts->stgrun, "StgRun");
	if (rts->tick.found != FOUND_TICKER)
		by_place(s, rts, &rts->tick, "handle_tick");
	by_place(s, rts, &rts->gc_sync, "stat_startGCSync");
	by_place(s, rts, &rts->gc_start, "stat_startGC");
	end = by_place(s, rts, &rts->gc_end, "stat_endGC");
	collect = end == s->n ? s->n : rts_graph__caller(s->graph, end);
	if (collect != s->n)
		s->names[collect] = number_of("GarbageCollect");
}

static bool is_twofold(uint16_t name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rts_strings); i++)
		if (rts_strings[i].names[0] == name && rts_strings[i].names[1] == name)
			return true;
	return false;
}

/*
 * A name that two functions have is dropped from both, unless the runtime has two of that name, or
 * one is a part of the other (gcc's .cold).
 */
static void drop_doubles(struct search *s)
{
	uint32_t first[ARRAY_SIZE(rts_string_names) + 1];

	memset(first, 0xff, sizeof(first));
	for (size_t i = 0; i < s->n; i++) {
		uint32_t *other = &first[s->names[i]];

		if (!s->names[i])
			continue;
		if (*other == UINT32_MAX) {
			*other = (uint32_t)i;
		} else if (!is_twofold(s->names[i]) && !rts_graph__calls(s->graph, *other, i) &&
			   !rts_graph__calls(s->graph, i, *other)) {
			s->names[*other] = RTS_NAMED_NONE;
			s->names[i] = RTS_NAMED_NONE;
		}
	}
}

/* ── by who calls whom ───────────────────────────────────────────────────────────────────── */

/* Functions named in this way do not help to name others: only names from strings do. */
static int by_relations(const struct search *s)
{
	uint16_t *found = calloc(s->n + 1, sizeof(*found));

	if (!found)
		return -ENOMEM;
	for (size_t k = 0; k < ARRAY_SIZE(rts_relations); k++) {
		const uint16_t *r = rts_relations[k];
		size_t i = rts_graph__between(s->graph, s->names, r[1], r[2]);

		/* two relations contradict each other */
		if (i != s->n)
			found[i] = found[i] && found[i] != r[0] ? UINT16_MAX : r[0];
	}
	for (size_t i = 0; i < s->n; i++)
		if (found[i] && found[i] != UINT16_MAX)
			s->names[i] = found[i];
	free(found);
	return 0;
}

int rts_named__find(const struct rts *rts, const struct elf_fde *fdes, size_t n,
		    const struct rts_graph *graph, uint16_t *names)
{
	struct search s = {
		.elf = rts->image->elf, .fdes = fdes, .n = n, .graph = graph, .names = names};
	struct twins twins[MAX_TWINS] = {0};
	int err = find_uses(&s);

	if (!err)
		err = by_strings(&s, twins);
	if (!err) {
		distinguish(&s, twins);
		drop_doubles(&s);
		by_places(&s, rts);
		err = by_relations(&s);
	}
	free(s.uses);
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sites: the busiest places of a process's safe calls, and the sum of all others.
 *
 * Neither the sums of a place with a slot nor those of the others ever decrease, and whatever they
 * grow by has just happened. When a place gets a slot late, what was counted among the others
 * before stays there. When a place loses its slot, its series ends.
 *
 * If the pid becomes the same program again, by exec, the series go on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_priv.h"

/* How many times busier a place must be to take another one's slot. */
#define BUSIER 2
/* In bytes; the text may show less. */
#define NAME_BYTES  256
#define PLACE_BYTES 64

static void free_slot(struct site_slot *slot)
{
	free(slot->function);
	free(slot->caller);
	free(slot->place);
	*slot = (struct site_slot){0};
}

void sites__free(struct sites *sites)
{
	for (size_t i = 0; i < METRICS_MAX_SITES; i++)
		free_slot(&sites->slots[i]);
}

/* ── sums ────────────────────────────────────────────────────────────────────────────────── */

static uint64_t without(uint64_t a, uint64_t b)
{
	return a - MIN(a, b);
}

/* The part of *a that is not in *b. */
static struct figures_site difference(const struct figures_site *a, const struct figures_site *b)
{
	struct figures_site d = *a;

	d.wall_ns = without(a->wall_ns, b->wall_ns);
	d.cap_wait_ns = without(a->cap_wait_ns, b->cap_wait_ns);
	for (size_t i = 0; i < FIGURES_HIST; i++)
		d.hist[i] = without(a->hist[i], b->hist[i]);
	return d;
}

static void add(struct figures_site *to, const struct figures_site *s)
{
	to->wall_ns += s->wall_ns;
	to->cap_wait_ns += s->cap_wait_ns;
	for (size_t i = 0; i < FIGURES_HIST; i++)
		to->hist[i] += s->hist[i];
}

/* A copy without the names, which belong to the caller. */
static struct figures_site nameless(const struct figures_site *s)
{
	struct figures_site copy = *s;

	copy.function = copy.caller = copy.place = NULL;
	return copy;
}

static void take(struct site_sums *sums, const struct figures_site *part, bool closed)
{
	sum__take(&sums->wall_ns, part->wall_ns, closed);
	sum__take(&sums->cap_wait_ns, part->cap_wait_ns, closed);
	for (size_t i = 0; i < FIGURES_HIST; i++)
		sum__take(&sums->hist[i], part->hist[i], closed);
}

static struct site_slot *find(struct sites *sites, const struct figures_site *s)
{
	for (size_t i = 0; i < METRICS_MAX_SITES; i++) {
		struct site_slot *slot = &sites->slots[i];

		if (slot->used && !slot->old && slot->addr == s->addr &&
		    slot->interruptible == s->interruptible)
			return slot;
	}
	return NULL;
}

/* ── slots ───────────────────────────────────────────────────────────────────────────────── */

/* True if both would have the same series. */
static bool shows_the_same(const struct site_slot *a, const struct site_slot *b)
{
	return a->interruptible == b->interruptible && strcmp(a->function, b->function) == 0 &&
	       strcmp(a->caller, b->caller) == 0 && strcmp(a->place, b->place) == 0;
}

static bool is_shown_already(const struct sites *sites, const struct site_slot *slot)
{
	for (size_t i = 0; i < METRICS_MAX_SITES; i++)
		if (sites->slots[i].used && shows_the_same(&sites->slots[i], slot))
			return true;
	return false;
}

/* Distinguishes the place by its address: a file may be mapped twice, or two files may have one
 * name. */
static void add_address(struct site_slot *slot)
{
	char address[24];
	char *place;

	snprintf(address, sizeof(address), "@0x%" PRIx64, slot->addr);
	place = malloc(strlen(slot->place) + sizeof(address));
	if (place)
		sprintf(place, "%s%s", slot->place, address);
	free(slot->place);
	slot->place = place;
}

/* The end of a place's text by which it is shown: places differ at their ends. */
static const char *end_of_place(const struct figures_site *s)
{
	size_t len = strlen(s->place);

	return s->place + (len > PLACE_BYTES ? len - PLACE_BYTES : 0);
}

/* False: no memory, and the place stays among the others. */
static bool fill_slot(const struct sites *sites, struct site_slot *slot,
		      const struct figures_site *s)
{
	struct site_slot new = {.addr = s->addr, .interruptible = s->interruptible};

	new.function = strndup(s->function, NAME_BYTES);
	new.caller = strndup(s->caller, NAME_BYTES);
	new.place = strdup(end_of_place(s));
	new.used = new.function &&new.caller &&new.place;
	if (new.used && is_shown_already(sites, &new))
		add_address(&new);
	new.used = new.used &&new.place;
	if (!new.used)
		free_slot(&new);
	*slot = new;
	return new.used;
}

static bool has_names(const struct site_slot *slot, const struct figures_site *s)
{
	return strncmp(slot->function, s->function, NAME_BYTES) == 0 &&
	       strncmp(slot->caller, s->caller, NAME_BYTES) == 0;
}

/*
 * A place may get better names later, as when a file with symbols has been downloaded: its series
 * goes on under them, with the sums it has. If there is no memory it keeps its names.
 */
static void follow_names(struct sites *sites, struct site_slot *slot, const struct figures_site *s)
{
	struct site_slot new;

	if (has_names(slot, s))
		return;
	/* it may have the labels that it has now */
	slot->used = false;
	if (fill_slot(sites, &new, s)) {
		free(slot->function);
		free(slot->caller);
		free(slot->place);
		slot->function = new.function;
		slot->caller = new.caller;
		slot->place = new.place;
	}
	slot->used = true;
}

/* ── the pid's previous program ──────────────────────────────────────────────────────────── */

static void go_on(struct site_sums *sums)
{
	sum__go_on(&sums->wall_ns, &sums->wall_ns);
	sum__go_on(&sums->cap_wait_ns, &sums->cap_wait_ns);
	for (size_t i = 0; i < FIGURES_HIST; i++)
		sum__go_on(&sums->hist[i], &sums->hist[i]);
}

void sites__go_on(struct sites *sites, struct sites *before)
{
	*sites = *before;
	*before = (struct sites){0};
	sites->n_gone = 0;
	go_on(&sites->others);
	sum__go_on(&sites->cap_wait_ns, &sites->cap_wait_ns);
	for (size_t i = 0; i < METRICS_MAX_SITES; i++) {
		struct site_slot *slot = &sites->slots[i];

		slot->old = slot->used;
		slot->addr = 0;
		slot->before = slot->part = (struct figures_site){0};
		go_on(&slot->sums);
	}
}

/* Recognizes places that the pid's previous program called from, too. */
static void recognize(struct sites *sites, const struct figures *f)
{
	for (size_t i = 0; i < METRICS_MAX_SITES; i++) {
		struct site_slot *slot = &sites->slots[i];

		for (size_t k = 0; k < f->n_sites && slot->old; k++) {
			const struct figures_site *s = &f->sites[k];

			if (s->interruptible != slot->interruptible || !has_names(slot, s) ||
			    strcmp(slot->place, end_of_place(s)) != 0 || find(sites, s))
				continue;
			slot->addr = s->addr;
			slot->old = false;
		}
	}
}

/* ── choice ──────────────────────────────────────────────────────────────────────────────── */

/* The busiest place without a slot. */
static const struct figures_site *busiest(struct sites *sites, const struct figures *f)
{
	const struct figures_site *best = NULL;

	for (size_t i = 0; i < f->n_sites; i++)
		if (!find(sites, &f->sites[i]) && (!best || f->sites[i].wall_ns > best->wall_ns))
			best = &f->sites[i];
	return best;
}

/*
 * Fills slots while no place has been counted among the others: as long as a slot is free, that
 * happens only if there was no memory for a slot.
 */
static void fill_free_slots(struct sites *sites, const struct figures *f)
{
	for (size_t i = 0; i < METRICS_MAX_SITES && !sites->has_others; i++) {
		const struct figures_site *s;

		if (sites->slots[i].used)
			continue;
		s = busiest(sites, f);
		if (!s || !fill_slot(sites, &sites->slots[i], s))
			return;
	}
}

static struct site_gone *find_gone(struct sites *sites, const struct figures_site *s)
{
	for (size_t i = 0; i < sites->n_gone; i++)
		if (sites->gone[i].addr == s->addr &&
		    sites->gone[i].interruptible == s->interruptible)
			return &sites->gone[i];
	return NULL;
}

/*
 * Ends the series of the place and drops its sums: added to the others' they would look like calls
 * that have just happened. Later readings of the current part contain again what the series has
 * counted of it, which is noted for that. False: there is no room to note it.
 */
static bool end_slot(struct sites *sites, struct site_slot *slot)
{
	struct figures_site had = difference(&slot->part, &slot->before);
	struct site_gone *gone = find_gone(sites, &slot->part);

	if (!gone && sites->n_gone == METRICS_MAX_GONE)
		return false;
	if (!gone) {
		gone = &sites->gone[sites->n_gone++];
		*gone = (struct site_gone){.addr = slot->addr,
					   .interruptible = slot->interruptible};
	}
	add(&gone->had, &had);
	sites->has_others = true;
	free_slot(slot);
	return true;
}

/* The time of the slot's place in this part. */
static uint64_t wall_of(const struct figures *f, const struct site_slot *slot)
{
	for (size_t i = 0; i < f->n_sites; i++)
		if (!slot->old && f->sites[i].addr == slot->addr &&
		    f->sites[i].interruptible == slot->interruptible)
			return f->sites[i].wall_ns;
	return 0;
}

void sites__choose(struct sites *sites, const struct figures *f)
{
	struct site_slot *least = &sites->slots[0], new;
	const struct figures_site *s;

	recognize(sites, f);
	s = busiest(sites, f);
	for (size_t i = 0; i < METRICS_MAX_SITES; i++) {
		if (!sites->slots[i].used)
			return;
		if (wall_of(f, &sites->slots[i]) < wall_of(f, least))
			least = &sites->slots[i];
	}
	if (!s || s->wall_ns / BUSIER <= wall_of(f, least) || !fill_slot(sites, &new, s))
		return;
	new.before = new.part = nameless(s);
	if (end_slot(sites, least))
		*least = new;
	else
		free_slot(&new);
}

/* Adds to `others` the figures *s of the place for the current part, minus what its ended series
 * has counted. */
static void add_to_others(struct sites *sites, struct figures_site *others,
			  const struct figures_site *place, const struct figures_site *s)
{
	const struct site_gone *gone = find_gone(sites, place);
	struct figures_site rest = gone ? difference(s, &gone->had) : *s;

	add(others, &rest);
}

void sites__take(struct sites *sites, const struct figures *f, bool closed)
{
	struct figures_site others = {0};
	uint64_t cap_wait_ns = 0;

	recognize(sites, f);
	fill_free_slots(sites, f);
	for (size_t i = 0; i < METRICS_MAX_SITES; i++)
		sites->slots[i].part =
			(struct figures_site){.addr = sites->slots[i].addr,
					      .interruptible = sites->slots[i].interruptible};
	for (size_t i = 0; i < f->n_sites; i++) {
		const struct figures_site *s = &f->sites[i];
		struct site_slot *slot = find(sites, s);
		struct figures_site own;

		cap_wait_ns += s->cap_wait_ns;
		if (!slot) {
			add_to_others(sites, &others, s, s);
			sites->has_others = true;
			continue;
		}
		follow_names(sites, slot, s);
		own = difference(s, &slot->before);
		slot->part = nameless(s);
		take(&slot->sums, &own, closed);
		add_to_others(sites, &others, s, &slot->before);
	}
	take(&sites->others, &others, closed);
	sum__take(&sites->cap_wait_ns, cap_wait_ns, closed);
	for (size_t i = 0; closed && i < METRICS_MAX_SITES; i++) {
		struct site_slot *slot = &sites->slots[i];

		slot->before = (struct figures_site){0};
		slot->part = (struct figures_site){.addr = slot->addr,
						   .interruptible = slot->interruptible};
	}
	if (closed)
		sites->n_gone = 0;
}

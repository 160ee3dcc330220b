/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The start and end of a collection in a runtime without symbols (rts/Stats.c, 8.10 to 9.14).
 * stat_endGC prints the line of `+RTS -S`, whose format nothing else has; only GarbageCollect calls
 * it. GarbageCollect also calls stat_startGC, which rings the bell of `+RTS -B` ("\a").
 * stat_startGCSync only stores the time of the clock that stat_startGC reads. Unless all of that
 * holds, nothing is used: a probe in another function would report collections that did not happen.
 * The statistics that stat_endGC keeps are found through it.
 */
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "rts_code_priv.h"
#include "rts_find_priv.h"

#define END_FORMAT_TAIL "(Gen: %2d)\n"
#define BELL		"\a"

/* GarbageCollect has 5 to 8 kB, stat_startGC less than 200 bytes. */
#define MAX_CALLER (64U << 10)
#define MAX_BELL   1024
/* More functions than this that ring the bell: give up. */
#define MAX_RINGERS 8

/* A gc_thread is about 700 bytes, plus as many for each generation. */
#define MAX_FIELD 4096

/* The search for the one function that rings the bell and is called by `caller` and nobody else. */
struct bell {
	const struct code *c;
	size_t caller, found, ringers;
	bool given_up;
};

static bool on_callee(void *ctx, uint64_t target, uint64_t next)
{
	struct bell *b = ctx;
	const struct code *c = b->c;
	size_t i = code__starts_at(c, target);

	(void)next;
	if (i == c->n || i == b->found || c->fdes[i].end - target > MAX_BELL ||
	    !code__loads_string(c, i, BELL, sizeof(BELL)))
		return true;
	if (++b->ringers > MAX_RINGERS) {
		b->given_up = true;
	} else if (code__caller_of(c, target) == b->caller) {
		b->given_up = b->found != c->n;
		b->found = i;
	}
	return !b->given_up;
}

static size_t bell_of(const struct code *c, size_t caller)
{
	struct bell b = {.c = c, .caller = caller, .found = c->n};

	if (c->fdes[caller].end - c->fdes[caller].start <= MAX_CALLER)
		code__each_branch(c, caller, on_callee, &b);
	return b.given_up ? c->n : b.found;
}

/* The only function that just stores the time of the clock that `start` reads too; n if none or
 * several. */
static size_t sync_of(const struct code *c, size_t start)
{
	size_t found = c->n;

	for (size_t i = 0; i < c->n; i++) {
		size_t len;
		const uint8_t *code = code__bytes(c, i, &len);
		struct rts_arch_note note;

		if (i == start || !code ||
		    rts_arch__note(code, len, c->fdes[i].start, &note) != len ||
		    !code__calls(c, start, note.clock))
			continue;
		if (found != c->n)
			return c->n;
		found = i;
	}
	return found;
}

static void take(struct rts *rts, struct rts_place *place, uint64_t vaddr)
{
	if (place->addr)
		return;
	place->addr = image__addr(rts->image, vaddr);
	place->found = FOUND_STRINGS;
}

void rts_gc__find(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	size_t end, start, collect, sync;
	uint64_t format;

	if (rts->gc_start.addr && rts->gc_end.addr)
		return;
	format = rts_strings__ending_in(c.elf, END_FORMAT_TAIL, sizeof(END_FORMAT_TAIL));
	if (!format || elf__fdes(c.elf, &c.fdes, &c.n) < 0)
		return;
	end = code__user_of(&c, format);
	collect = end == c.n ? c.n : code__caller_of(&c, c.fdes[end].start);
	start = collect == c.n ? c.n : bell_of(&c, collect);
	if (start == c.n || start == end)
		return;
	take(rts, &rts->gc_start, c.fdes[start].start);
	take(rts, &rts->gc_end, c.fdes[end].start);
	sync = sync_of(&c, start);
	if (sync != c.n)
		take(rts, &rts->gc_sync, c.fdes[sync].start);
}

void rts_gc__clock(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	uint64_t bias = rts->image->bias;
	struct rts_arch_note note;
	size_t sync, start, len;
	const uint8_t *code;

	if (!rts->gc_sync.addr || !rts->gc_start.addr || elf__fdes(c.elf, &c.fdes, &c.n) < 0)
		return;
	sync = code__starts_at(&c, rts->gc_sync.addr - bias);
	start = code__starts_at(&c, rts->gc_start.addr - bias);
	if (sync == c.n || start == c.n)
		return;
	code = code__bytes(&c, sync, &len);
	if (!code || !rts_arch__note(code, len, c.fdes[sync].start, &note) ||
	    !code__calls(&c, start, note.clock) || note.field > MAX_FIELD)
		return;
	/* stat_startGC stores the time of the same clock in the field after stat_startGCSync's */
	code = code__bytes(&c, start, &len);
	if (code && rts_arch__stores_result(code, len, note.field + 8))
		rts->gct_clock = note.field;
}

/* stat_endGC increments two. */
#define MAX_COUNTS 8

struct counts {
	uint64_t v[MAX_COUNTS];
	size_t n;
};

static bool on_count(void *ctx, uint64_t target)
{
	struct counts *counts = ctx;

	if (counts->n == MAX_COUNTS)
		return false;
	counts->v[counts->n++] = target;
	return true;
}

/* The only address at which two counters are side by side; 0: none, or several. */
static uint64_t pair_of(const struct counts *counts)
{
	uint64_t found = 0;

	for (size_t i = 0; i < counts->n; i++)
		for (size_t k = 0; k < counts->n; k++) {
			uint64_t at = counts->v[i];

			if (at % 8 || counts->v[k] != at + 4 || at == found)
				continue;
			if (found)
				return 0;
			found = at;
		}
	return found;
}

/*
 * RTSStats begins with the numbers of all and of major collections (rts/include/RtsAPI.h), which
 * stat_endGC increments. The live check (check_alloc.c) verifies the address once more.
 */
void rts_gc__stats(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	struct counts counts = {0};
	const uint8_t *code;
	uint64_t found;
	size_t end, len;

	if (rts->stats.addr || !rts->gc_end.addr || elf__fdes(c.elf, &c.fdes, &c.n) < 0)
		return;
	end = code__starts_at(&c, rts->gc_end.addr - rts->image->bias);
	code = end == c.n ? NULL : code__bytes(&c, end, &len);
	if (!code)
		return;
	rts_arch__counts(code, len, c.fdes[end].start, on_count, &counts);
	found = pair_of(&counts);
	if (!found)
		return;
	rts->stats.addr = image__addr(rts->image, found);
	rts->stats.found = FOUND_CODE;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unsafe: unsafe calls by function and caller, added up from the rows of the threads' accounts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "intake/seen.h"
#include "picture/make.h"
#include "sums.h"

struct unsafe_key {
	uint32_t function, caller; /* frames; UINT32_MAX: unknown */
};

struct unsafe_entry {
	UT_hash_handle hh;
	struct unsafe_key key;
	struct pic_unsafe sums;
};

/* The last Haskell frame of a whole stack is the caller; the function that it called comes next. */
static struct unsafe_key key_of(const struct picture *pic, uint32_t stack)
{
	struct unsafe_key key = {UINT32_MAX, UINT32_MAX};
	struct pic_stack s = picture__stack(pic, stack);
	uint32_t i = s.n;

	while (i > 0 && picture__frame(pic, s.frames[i - 1])->kind != TF_HASKELL)
		i--;
	if (i)
		key.caller = s.frames[i - 1];
	for (; i < s.n && key.function == UINT32_MAX; i++) {
		const struct pic_frame *f = picture__frame(pic, s.frames[i]);

		/* nobody calls what a signal handler returns to: the handler comes next */
		if (f->kind != TF_KERNEL && f->kind != TF_MARK && f->kind != TF_STATE &&
		    strcmp(f->name, NAMES_SIGNAL_RETURN) != 0)
			key.function = s.frames[i];
	}
	return key;
}

/* The entry for the stack; NULL without memory. */
static struct pic_unsafe *get(const struct picture *pic, struct unsafe_entry **entries,
			      uint32_t stack)
{
	struct unsafe_key key = key_of(pic, stack);
	struct unsafe_entry *entry;

	HASH_FIND(hh, *entries, &key, sizeof(key), entry);
	if (entry)
		return &entry->sums;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->key = key;
	return HASH_INSERT(*entries, key, sizeof(entry->key), entry) ? NULL : &entry->sums;
}

static int add_rows(const struct picture *pic, struct unsafe_entry **entries,
		    const struct pic_lane *lane)
{
	for (size_t i = 0; i < lane->n_rows; i++) {
		const struct pic_row *row = &lane->rows[i];
		struct pic_unsafe *sums;

		if (row->state != ST_UNSAFE_CALL_CPU && row->state != ST_UNSAFE_CALL_BLOCKED)
			continue;
		sums = get(pic, entries, row->stack);
		if (!sums)
			return -ENOMEM;
		sums->samples += row->samples;
		*(row->state == ST_UNSAFE_CALL_CPU ? &sums->cpu_ns : &sums->blocked_ns) += row->ns;
		sums->sleeps += row->times;
		sums->longest_sleep_ns = MAX(sums->longest_sleep_ns, row->longest_ns);
	}
	return 0;
}

static int add_hold(const struct picture *pic, struct unsafe_entry **entries,
		    const struct unsafe_hold *hold)
{
	struct pic_unsafe *sums = hold->ns ? get(pic, entries, hold->stack) : NULL;

	if (!sums)
		return hold->ns ? -ENOMEM : 0;
	sums->held_up_gc_ns += hold->ns;
	sums->held_up_gcs++;
	if (hold->ns > sums->longest_held_ns) {
		sums->longest_held_ns = hold->ns;
		sums->longest_held = (struct pic_moment){hold->start_ns, hold->end_ns, NULL};
	}
	sums->held_caps |= 1ULL << MIN(hold->cap, 63);
	return 0;
}

static int by_time(const void *pa, const void *pb)
{
	const struct pic_unsafe *a = pa, *b = pb;
	uint64_t ta = a->cpu_ns + a->blocked_ns, tb = b->cpu_ns + b->blocked_ns;

	return CMP(tb, ta) ?: strcmp(a->function, b->function) ?: strcmp(a->caller, b->caller);
}

static int take(struct picture *pic, struct pic_target *target, const struct unsafe_entry *entries,
		bool knows_gcs)
{
	struct pic_unsafe *v = picture__alloc(pic, HASH_COUNT(entries), sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (const struct unsafe_entry *e = entries; e; e = e->hh.next) {
		const struct pic_frame *f = picture__frame(pic, e->key.function);
		const struct pic_frame *caller = picture__frame(pic, e->key.caller);
		struct pic_unsafe *sums = &v[n++];

		*sums = e->sums;
		sums->function_frame = e->key.function;
		sums->caller_frame = e->key.caller;
		sums->function = f ? f->name : "[unknown function]";
		sums->library = f ? f->file : "";
		sums->caller = caller ? caller->name : "";
		sums->caller_approximate = caller && caller->approximate;
		if (!knows_gcs)
			sums->held_up_gc_ns = UINT64_MAX;
	}
	qsort(v, n, sizeof(*v), by_time);
	target->unsafe_calls = v;
	target->n_unsafe_calls = n;
	return 0;
}

int unsafe__fill(struct picture *pic, struct pic_target *target, const struct unsafe_hold *holds,
		 size_t n_holds)
{
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];
	struct unsafe_entry *entries = NULL;
	int err = 0;

	for (size_t i = 0; !err && i < threads->n; i++)
		err = add_rows(pic, &entries, &threads->v[i]);
	for (size_t i = 0; !err && i < n_holds; i++)
		err = add_hold(pic, &entries, &holds[i]);
	if (!err)
		err = take(pic, target, entries, n_holds != 0);
	HASH_FREE(entries);
	return err;
}

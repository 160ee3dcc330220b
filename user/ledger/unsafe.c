/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unsafe: unsafe calls by function and caller, added up from the rows of the threads' accounts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "picture/make.h"
#include "sums.h"

struct unsafe_key {
	uint32_t function, caller; /* frames; UINT32_MAX: not known */
};

struct unsafe_entry {
	UT_hash_handle hh;
	struct unsafe_key key;
	uint64_t samples, cpu_ns, blocked_ns, held_up_gc_ns;
};

struct unsafe_sums {
	struct picture *pic;
	struct pic_target *target;
	struct unsafe_entry *entries;
	bool knows_gcs;
};

/* The last Haskell frame of a whole stack is the caller, what it called comes next. */
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
		enum pic_frame_kind kind = picture__frame(pic, s.frames[i])->kind;

		if (kind != TF_KERNEL && kind != TF_MARK && kind != TF_STATE)
			key.function = s.frames[i];
	}
	return key;
}

static struct unsafe_entry *find(const struct unsafe_sums *sums, const struct unsafe_key *key)
{
	struct unsafe_entry *entry;

	HASH_FIND(hh, sums->entries, key, sizeof(*key), entry);
	return entry;
}

static int add(struct unsafe_sums *sums, const struct pic_row *row)
{
	struct unsafe_key key = key_of(sums->pic, row->stack);
	struct unsafe_entry *entry = find(sums, &key);
	int err;

	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		err = HASH_INSERT(sums->entries, key, sizeof(entry->key), entry);
		if (err)
			return err;
	}
	entry->samples += row->samples;
	if (row->state == ST_UNSAFE_CALL_CPU)
		entry->cpu_ns += row->ns;
	else
		entry->blocked_ns += row->ns;
	return 0;
}

int unsafe_sums__new(struct picture *pic, struct pic_target *target, struct unsafe_sums **ret_sums)
{
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];
	struct unsafe_sums *sums = calloc(1, sizeof(*sums));
	int err = 0;

	if (!sums)
		return -ENOMEM;
	sums->pic = pic;
	sums->target = target;
	for (size_t k = 0; k < threads->n; k++)
		for (size_t i = 0; !err && i < threads->v[k].n_rows; i++) {
			const struct pic_row *row = &threads->v[k].rows[i];

			if (row->state == ST_UNSAFE_CALL_CPU ||
			    row->state == ST_UNSAFE_CALL_BLOCKED)
				err = add(sums, row);
		}
	if (err)
		unsafe_sums__free(sums);
	else
		*ret_sums = sums;
	return err;
}

void unsafe_sums__free(struct unsafe_sums *sums)
{
	if (!sums)
		return;
	HASH_FREE(sums->entries);
	free(sums);
}

void unsafe_sums__know_gcs(struct unsafe_sums *sums)
{
	sums->knows_gcs = true;
}

void unsafe_sums__held_up(struct unsafe_sums *sums, uint32_t stack, uint64_t ns)
{
	struct unsafe_key key = key_of(sums->pic, stack);
	struct unsafe_entry *entry = find(sums, &key);

	if (entry)
		entry->held_up_gc_ns += ns;
}

static int by_time(const void *pa, const void *pb)
{
	const struct pic_unsafe *a = pa, *b = pb;
	uint64_t ta = a->cpu_ns + a->blocked_ns, tb = b->cpu_ns + b->blocked_ns;
	int diff;

	if (ta != tb)
		return ta < tb ? 1 : -1;
	diff = strcmp(a->function, b->function);
	return diff ? diff : strcmp(a->caller, b->caller);
}

int unsafe_sums__fill(struct unsafe_sums *sums)
{
	size_t n = 0;
	struct pic_unsafe *v = picture__alloc(sums->pic, HASH_COUNT(sums->entries), sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (const struct unsafe_entry *e = sums->entries; e; e = e->hh.next) {
		const struct pic_frame *f = picture__frame(sums->pic, e->key.function);
		const struct pic_frame *caller = picture__frame(sums->pic, e->key.caller);

		v[n++] = (struct pic_unsafe){
			.function = f ? f->name : "[unknown function]",
			.library = f ? f->file : "",
			.caller = caller ? caller->name : "",
			.caller_approximate = caller && caller->approximate,
			.samples = e->samples,
			.cpu_ns = e->cpu_ns,
			.blocked_ns = e->blocked_ns,
			.held_up_gc_ns = sums->knows_gcs ? e->held_up_gc_ns : UINT64_MAX,
		};
	}
	qsort(v, n, sizeof(*v), by_time);
	sums->target->unsafe_calls = v;
	sums->target->n_unsafe_calls = n;
	return 0;
}

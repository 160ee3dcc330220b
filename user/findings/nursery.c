/* SPDX-License-Identifier: GPL-2.0-or-later */
/* findings: nurseries that are used up all the time, and those that take up most of the memory. */
#include <stdio.h>
#include <string.h>

#include "findings_priv.h"

/* Collections this frequent and short cost time by their number. */
#define MANY_PER_SECOND	   20
#define SHORT_PAUSE_NS	   20000000
#define SMALL_WALL_PERCENT 10
/* If more survives, copying takes the time, and a larger area would not reduce that. */
#define SURVIVES 0.25
/* A nursery above this size is not called small. */
#define SMALL_BYTES 16000000ULL

/* Less memory, or a smaller share of it, is not worth saving. */
#define LARGE_BYTES   512000000ULL
#define LARGE_PERCENT 50
/* A quarter of the nursery (LARGE_PART) means four times as many collections: it is advised only if
 * pauses take at most this many tenths of a percent of the time. */
#define LARGE_PAUSES 5
#define LARGE_PART   4

/* Collections of the youngest generation alone. */
struct minors {
	uint64_t n, ns;
};

static struct minors count_minors(const struct pic_target *t)
{
	struct minors m = {0};

	for (size_t i = 0; i < t->n_gcs; i++)
		if (!t->gcs[i].generation) {
			m.n++;
			m.ns += t->gcs[i].end_ns - t->gcs[i].start_ns;
		}
	return m;
}

static bool is_found(const struct finder *f, const char *kind)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->v[i].kind, kind))
			return true;
	return false;
}

static void find_small(struct finder *f, const struct minors *m, uint64_t each)
{
	const struct pic_heap *heap = &f->t->heap;
	double survives;

	if (each > SMALL_BYTES || !m->n || !heap->minor_bytes || f->t->gc.inferred ||
	    m->ns / m->n > SHORT_PAUSE_NS ||
	    (double)m->n * 1e9 < (double)MANY_PER_SECOND * (double)f->wall_ns ||
	    !finding__share(m->ns, f->wall_ns, SMALL_WALL_PERCENT) || is_found(f, "gc_share"))
		return;
	survives = (double)heap->minor_copied_bytes / (double)heap->minor_bytes;
	if (survives > SURVIVES)
		return;
	finding__add(f, "small_nursery", m->ns, NULL,
		     "Nurseries of %s were used up %s times a second, and collecting them paused "
		     "the program for %.0f %% of the time, although only %.1f %% of what is "
		     "allocated survives: a larger allocation area means fewer collections: %s",
		     human__bytes(each).s, finding__rate(m->n, f->wall_ns).s,
		     human__percent(m->ns, f->wall_ns), 100 * survives, finding__rts(f, "-A64m"));
}

static void find_large(struct finder *f, uint64_t each)
{
	const struct pic_heap *heap = &f->t->heap;
	char option[32];

	if (heap->nursery_bytes < LARGE_BYTES || !f->t->gc.known || f->t->gc.inferred ||
	    !finding__share(heap->nursery_bytes, heap->held_bytes, LARGE_PERCENT) ||
	    f->t->gc.pause_ns > f->wall_ns / 1000 * LARGE_PAUSES)
		return;
	snprintf(option, sizeof(option), "-A%llum",
		 (unsigned long long)MAX(each / LARGE_PART >> 20, UINT64_C(1)));
	finding__add(f, "large_nursery", f->t->gc.pause_ns, NULL,
		     "Nurseries take %s of the %s that the heap holds from the system, and "
		     "collections paused the program for only %.1f %% of the time: a smaller "
		     "allocation area saves memory: %s",
		     human__bytes(heap->nursery_bytes).s, human__bytes(heap->held_bytes).s,
		     human__percent(f->t->gc.pause_ns, f->wall_ns), finding__rts(f, option));
}

void findings__nursery(struct finder *f)
{
	const struct pic_heap *heap = &f->t->heap;
	struct minors m = count_minors(f->t);
	uint64_t each;

	if (!heap->known || !heap->nursery_bytes)
		return;
	each = heap->nursery_bytes / MAX(f->t->capabilities, 1U);
	find_small(f, &m, each);
	find_large(f, each);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lanes: the lanes of all processes for formats with a time axis: one list, one axis, and no more
 * slices than a reader of the file can handle.
 */
#ifndef SAFESCOPED_EXPORT_LANES_H
#define SAFESCOPED_EXPORT_LANES_H

#include "export_priv.h"
#include "picture/merge.h"

struct view {
	const struct pic_lane *lane;
	const struct pic_target *target;
	uint32_t target_no, lane_no; /* indices into picture__target() and target->lanes[].v */
	uint64_t busy_ns;    /* sort key of a process's lanes of one kind; 0 for capabilities */
	uint64_t process_ns; /* the busy time of all threads of its process */
};

struct view_label;

/* Capabilities by number, then OS threads, then Haskell threads, process by process, the busiest
 * first; housekeeping threads last. */
struct views {
	struct view *v;
	size_t n, cap;
	uint64_t start_ns, end_ns; /* the shared axis: the session, extended to slices beyond it */
	uint64_t grain_ns;	   /* neighbours shorter than this are merged; 0: none are */
	struct view_label *labels;
};

int views__collect(const struct picture *pic, struct views *ret_views);
void views__free(struct views *views);
/* Removes lanes of kinds that the options do not show. */
void views__keep(struct views *views, const struct export_opts *opts);

/*
 * Sets the smallest grain (0, or a power of two of ns) at which the slices of all lanes cost no
 * more than `budget` according to `cost`, such as bytes in the file. If that is not 0, logs a
 * warning that begins with the format's name and ends with `but`, which names what is not affected.
 */
void views__limit(struct views *views, const struct picture *pic, uint64_t budget,
		  uint64_t (*cost)(const struct picture *pic, enum lane_kind kind,
				   const struct pic_slice *slice),
		  const char *format, const char *but);
/* Slices shorter than this were merged in the lane as drawn; 0: it has all its slices. */
static inline uint64_t view__merged_ns(const struct views *views, const struct view *view)
{
	return MAX(views->grain_ns, view->lane->merged_ns);
}

/* "4242 worker", "capability 0", "Haskell thread 7 (main)"; with the process if there are
 * several. */
struct view_name {
	char s[224];
};
struct view_name view__name(const struct view *view, bool several);
/* A Haskell thread's label; "" if none is known. */
const char *views__label(const struct views *views, uint32_t target_no, uint64_t tso);
/* "Haskell thread 7 (main)", with the label if one is known. */
struct view_name views__thread(const struct views *views, uint32_t target_no, uint64_t tso);

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

/* True if the slice is drawn as a gap. */
static inline bool slice__is_gap(enum lane_kind kind, const struct pic_slice *s)
{
	if (kind == LANE_CAPABILITY)
		return s->state == CS_IDLE;
	/* an unknown state without a stack is time that a log knows nothing about */
	return kind == LANE_THREAD &&
	       (s->state == ST_IDLE || (s->state == ST_UNKNOWN && !s->stack));
}

/* The position of a walk over a lane's slices. */
struct walk {
	const struct pic_lane *lane;
	uint64_t grain_ns, at_ns;
	size_t i;
	struct pic_slice merged[MERGE_PARTS];
	unsigned n_merged, next;
};

/* Merges neighbours shorter than the grain; the results are the walk's next slices. */
void walk__merge(struct walk *w);

/*
 * Returns the lane's slices in time order, none of them empty or overlapping the one before. False:
 * there are no more. (Inlined: a lane may have millions.)
 */
static inline bool walk__next(struct walk *w, struct pic_slice *ret)
{
	if (w->next < w->n_merged) {
		*ret = w->merged[w->next++];
		return true;
	}
	for (; w->i < w->lane->n_slices; w->i++) {
		const struct pic_slice *s = &w->lane->slices[w->i];
		uint64_t start = MAX(s->start_ns, w->at_ns);

		if (s->end_ns <= start)
			continue;
		w->at_ns = start;
		if (s->end_ns - start < w->grain_ns) {
			walk__merge(w);
			*ret = w->merged[w->next++];
			return true;
		}
		*ret = *s;
		ret->start_ns = start;
		w->at_ns = s->end_ns;
		w->i++;
		return true;
	}
	return false;
}

#endif

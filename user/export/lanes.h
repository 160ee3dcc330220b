/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lanes: the lanes of all processes as formats with a time axis draw them: one list, one axis, and
 * no more slices than a reader of the file can bear.
 */
#ifndef SAFESCOPED_EXPORT_LANES_H
#define SAFESCOPED_EXPORT_LANES_H

#include "export_priv.h"
#include "picture/merge.h"

struct view {
	const struct pic_lane *lane;
	const struct pic_target *target;
	uint32_t target_no, lane_no; /* as in picture__target(), target->lanes[].v */
	uint64_t busy_ns;	     /* what a process's lanes of a kind are in order of;
					capabilities: 0 */
	uint64_t process_ns;	     /* how busy its process's threads were together */
};

struct view_label;

/* Capabilities by number, then OS threads and Haskell threads, process by process, the busiest
 * first; of threads those that are housekeeping last. */
struct views {
	struct view *v;
	size_t n, cap;
	uint64_t start_ns, end_ns; /* the axis that all share: the session, and what reaches out */
	uint64_t grain_ns;	   /* shorter neighbours are merged; 0: none are */
	struct view_label *labels;
};

int views__collect(const struct picture *pic, struct views *ret_views);
void views__free(struct views *views);
/* Removes those that are not shown. */
void views__keep(struct views *views, const struct export_opts *opts);

/*
 * Sets the smallest grain (0, or a power of two of ns) with which the slices of all lanes cost no
 * more than `budget` by `cost` (bytes in the file, say), and logs a warning in the format's name
 * that there is one; `but`: what it does not concern.
 */
void views__limit(struct views *views, const struct picture *pic, uint64_t budget,
		  uint64_t (*cost)(const struct picture *pic, enum lane_kind kind,
				   const struct pic_slice *slice),
		  const char *format, const char *but);
/* The shortest slice of a lane as it is drawn; 0: all slices are there. */
static inline uint64_t view__merged_ns(const struct views *views, const struct view *view)
{
	return MAX(views->grain_ns, view->lane->merged_ns);
}

/* "4242 worker", "capability 0", "Haskell thread 7 (main)"; several targets: then the process. */
struct view_name {
	char s[224];
};
struct view_name view__name(const struct view *view, bool several);
/* A Haskell thread's label; "" if it has none that is known. */
const char *views__label(const struct views *views, uint32_t target_no, uint64_t tso);
/* "Haskell thread 7 (main)": with its label, if it has one that is known. */
struct view_name views__thread(const struct views *views, uint32_t target_no, uint64_t tso);

/* ── slices ──────────────────────────────────────────────────────────────────────────────── */

/* Drawn as a gap. */
static inline bool slice__is_gap(enum lane_kind kind, const struct pic_slice *s)
{
	if (kind == LANE_CAPABILITY)
		return s->state == CS_IDLE;
	/* without a stack: what a log has nothing of */
	return kind == LANE_THREAD &&
	       (s->state == ST_IDLE || (s->state == ST_UNKNOWN && !s->stack));
}

/* Where a walk over a lane's slices is. */
struct walk {
	const struct pic_lane *lane;
	uint64_t grain_ns, at_ns;
	size_t i;
	struct pic_slice merged[MERGE_PARTS];
	unsigned n_merged, next;
};

/* Neighbours shorter than the grain, merged, become the walk's next slices. */
void walk__merge(struct walk *w);

/*
 * The lane's slices in time order, none empty, none before the one before it. False: there are no
 * more. (Inlined: a lane may have millions.)
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

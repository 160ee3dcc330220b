/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view: lanes of all kinds (OS threads, capabilities, Haskell threads) as formats with a time axis
 * draw them: one list, one shape of a stretch, one axis, and no more stretches than a reader of the
 * file can bear.
 */
#ifndef SAFESCOPED_EXPORT_VIEW_H
#define SAFESCOPED_EXPORT_VIEW_H

#include "export_priv.h"

enum lane_kind { LANE_CAPABILITY, LANE_THREAD, LANE_HASKELL, LANE_KINDS };

struct lane_view {
	enum lane_kind kind;
	const struct tl_target *target;
	uint32_t target_no, lane_no; /* as in timeline__target(), target->lanes[] and so on */
	uint64_t busy_ns;	     /* what lanes of a kind are in order of; capabilities: 0 */
	size_t n;		     /* stretches */
	/* the one of its kind */
	const struct tl_lane *thread;
	const struct tl_cap_lane *cap;
	const struct tl_tso_lane *tso;
};

struct view_label;

/* Capabilities by number, then OS threads and Haskell threads, the busiest first. */
struct views {
	struct lane_view *v;
	size_t n, cap;
	uint64_t start_ns, end_ns; /* the axis that all share: the session, and what reaches out */
	struct view_label *labels;
};

/* `lanes`: EXPORT_LANES_…; 0: all. */
int views__collect(const struct timeline *tl, unsigned lanes, struct views *ret_views);
void views__free(struct views *views);

/* A stretch of any lane. */
struct span {
	uint64_t start_ns, end_ns;
	uint64_t tso;	/* a capability's: the Haskell thread; 0: none, or not known */
	uint32_t stack; /* of the timeline */
	uint32_t cap;	/* UINT32_MAX: none */
	uint32_t samples;
	pid_t tid;     /* 0: none, or the lane's own */
	uint8_t state; /* of the lane's kind */
	bool exact;
	bool idle;   /* nothing ran and nothing was waited for: drawn as a gap */
	bool merged; /* several, of which this is the longest */
};

/* "haskell" and "Haskell", "cap_wait" and "waiting for a capability", … */
const char *view__state_name(enum lane_kind kind, unsigned state);
const char *view__state_title(enum lane_kind kind, unsigned state);
bool view__on_cpu(enum lane_kind kind, unsigned state);
/* How many states the kind has. */
unsigned view__states(enum lane_kind kind);

/* view__each walks over them: view_each.h. */

/* The lane's account: what it adds up to comes from there, and never from its slices. */
const struct ledger_row *view__rows(const struct lane_view *view, size_t *ret_n);
/* What a row counts by; 0: nothing. */
uint64_t view__weight(const struct lane_view *view, const struct ledger_row *row,
		      enum export_weight weight);
bool view__is_idle(enum lane_kind kind, unsigned state);

/*
 * The smallest grain (0, or a power of two of ns) with which the spans of all lanes cost no more
 * than `budget` by `cost` (bytes in the file, say).
 */
uint64_t views__grain(const struct timeline *tl, const struct views *views, uint64_t budget,
		      uint64_t (*cost)(const struct timeline *tl, const struct span *span));

/* "4242 worker", "capability 0", "thread 7 main"; several targets: with the process behind it. */
void view__name(const struct lane_view *view, bool several, char *out, size_t size);
/* Of a Haskell thread of the target; "" if it has none, or is not known. */
const char *views__label(const struct views *views, uint32_t target_no, uint64_t tso);

#endif

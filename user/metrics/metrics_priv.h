/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the metrics room only. */
#ifndef SAFESCOPED_METRICS_PRIV_H
#define SAFESCOPED_METRICS_PRIV_H

#include <stddef.h>

#include "base/base.h"
#include "base/hash.h"
#include "metrics.h"
#include "picture/figures.h"

/* ── sums that only grow ─────────────────────────────────────────────────────────────────── */

/* The sum of completed parts, and the value shown, which includes the current part. */
struct sum {
	uint64_t closed, shown;
};

static inline void sum__take(struct sum *s, uint64_t part, bool closed)
{
	uint64_t now = s->closed + part;

	if (closed)
		s->closed = now;
	s->shown = MAX(s->shown, now);
}

/* Begins where *before has got to. */
static inline void sum__go_on(struct sum *s, const struct sum *before)
{
	s->closed = s->shown = before->shown;
}

/* ── places of safe calls (sites.c) ──────────────────────────────────────────────────────── */

struct site_sums {
	struct sum wall_ns, cap_wait_ns, hist[FIGURES_HIST];
};

/* A place with series of its own. */
struct site_slot {
	bool used;
	bool old; /* the pid's previous program had it, and this one has not shown it yet */
	bool interruptible;
	uint64_t addr;
	char *function, *caller, *place;
	/* counted among the others in the current part, before it had a slot */
	struct figures_site before;
	struct figures_site part; /* everything in the current part */
	struct site_sums sums;
};

/* A place that lost its slot in the current part, and what its series counted of that part. */
struct site_gone {
	bool interruptible;
	uint64_t addr;
	struct figures_site had;
};

#define METRICS_MAX_GONE 8

struct sites {
	struct site_slot slots[METRICS_MAX_SITES];
	struct site_gone gone[METRICS_MAX_GONE];
	size_t n_gone;
	struct site_sums others;
	bool has_others;
	struct sum cap_wait_ns; /* for all places */
};

void sites__free(struct sites *sites);
/* Moves the series of the pid's previous program to `sites`, which is empty: they go on where the
 * new one calls from the same places of the same file, at whatever addresses. */
void sites__go_on(struct sites *sites, struct sites *before);
void sites__take(struct sites *sites, const struct figures *figures, bool closed);
/* Gives a slot to a place that is busier in this part than one that has a slot. To be called
 * before the same figures are taken. */
void sites__choose(struct sites *sites, const struct figures *figures);

/* ── processes (model.c) ─────────────────────────────────────────────────────────────────── */

struct gc_sums {
	struct sum count, pause_ns, sync_ns;
};

struct model_target {
	UT_hash_handle hh;
	uint32_t no;
	pid_t pid;
	uid_t user;
	char *labels; /* `pid="12",program="ledgerd"`, escaped */
	char *info;   /* further labels of its info metric */
	bool ended;
	uint64_t ended_ns; /* when it ended, or was first seen to have ended; 0: it has not */
	uint64_t chosen_ns, part_ns; /* when places were last chosen, and a part was last closed */
	struct sum thread_ns[ST_MAX], cap_ns[CS_MAX];
	struct gc_sums gc[FIGURES_GENERATIONS + 1]; /* the last entry: generation unknown */
	bool gc_counted; /* the series of collections are there before the first one */
	struct sum gc_off_ns, gc_missed;
	bool gc_off; /* data about the heap is out of date, and will stay so */
	struct sites sites;
	uint64_t queued;
	bool queued_known;
	uint64_t probes_off_ns, probes_off_before_ns; /* …: when the program began */
	uint64_t cost_ns, cost_before_ns;
	struct sum allocated_bytes;
	uint64_t live_bytes;
	bool live_known;
	uint64_t held_bytes;	  /* 0: unknown */
	uint32_t haskell_threads; /* 0: unknown */
};

struct labelled {
	enum metrics_group group;
	char label[METRICS_MAX_LABEL];
	uint64_t value;
};

/* The number of a user's processes in the model. */
struct model_user {
	UT_hash_handle hh;
	uid_t id;
	size_t n;
};

struct metrics {
	struct model_target *targets;
	struct model_user *users;
	uint64_t hidden; /* processes in this reading for which there was no room */
	metrics_place_fn place;
	metrics_user_fn user;
	void *place_ctx;
	uint64_t values[METRICS_VALUES];
	bool known[METRICS_VALUES];
	struct labelled labelled[METRICS_MAX_LABELLED];
	size_t n_labelled;
};

/* ── text (text.c, daemon.c) ─────────────────────────────────────────────────────────────── */

/* Appends untrusted text as a label's value, without its quotes; a long one is truncated. */
void label__add(struct buf *out, const char *value);
/* Truncates a long one at its front. */
void label__add_end(struct buf *out, const char *value);
/* Does not truncate; where two values that differ only at their ends must stay distinct: for
 * text that is ours, or short before it is escaped. */
void label__add_whole(struct buf *out, const char *value);
/* "# HELP" and "# TYPE" lines; `type` is counter, gauge or histogram. */
void family__begin(struct buf *out, const char *name, const char *type, const char *help);
/* Appends nanoseconds as seconds, exactly. */
void seconds__add(struct buf *out, uint64_t ns);

void daemon__write(const struct metrics *m, struct buf *out);
/* True for a counter: an estimate that decreases leaves it unchanged. */
bool daemon__grows(enum metrics_value which);

#endif

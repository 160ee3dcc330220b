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

/* Of parts that are over, and with the one that goes on, as it is shown. */
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

/* ── places of safe calls (sites.c) ──────────────────────────────────────────────────────── */

struct site_sums {
	struct sum wall_ns, cap_wait_ns, hist[FIGURES_HIST];
};

/* One that has series of its own. */
struct site_slot {
	bool used;
	bool interruptible;
	uint64_t addr;
	char *function, *caller, *place;
	/* of the part that goes on, what is in the sums of the others: it had no slot then */
	struct figures_site before;
	struct figures_site part; /* all of the part that goes on */
	struct site_sums sums;
};

/* A place that has lost its slot in the part that goes on, and what of that its series had. */
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
	struct sum cap_wait_ns; /* of all places */
};

void sites__free(struct sites *sites);
void sites__take(struct sites *sites, const struct figures *figures, bool closed);
/* Gives a slot to a place that is busier in the part than one that has a slot. Before the same
 * figures are taken. */
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
	char *info;   /* the labels of its info metric, beside these */
	bool ended;
	uint64_t ended_ns;	     /* when that was, or was first seen; 0: not yet */
	uint64_t chosen_ns, part_ns; /* when places were last chosen, and a part closed */
	struct sum thread_ns[ST_MAX], cap_ns[CS_MAX];
	struct gc_sums gc[FIGURES_GENERATIONS + 1]; /* the last: of no known generation */
	struct sum gc_off_ns;
	bool gc_off; /* what is known of the heap is old, and stays so */
	struct sites sites;
	uint64_t queued;
	bool queued_known;
	uint64_t probes_off_ns;
	struct sum allocated_bytes;
	uint64_t live_bytes;
	bool live_known;
	uint64_t held_bytes;	  /* 0: not known */
	uint32_t haskell_threads; /* 0: not known */
};

struct labelled {
	enum metrics_group group;
	char label[METRICS_MAX_LABEL];
	uint64_t value;
};

/* How many processes of a user there are in the model. */
struct model_user {
	UT_hash_handle hh;
	uid_t id;
	size_t n;
};

struct metrics {
	struct model_target *targets;
	struct model_user *users;
	uint64_t hidden; /* processes of this reading that found no room */
	metrics_place_fn place;
	metrics_user_fn user;
	void *place_ctx;
	uint64_t values[METRICS_VALUES];
	bool known[METRICS_VALUES];
	struct labelled labelled[METRICS_MAX_LABELLED];
	size_t n_labelled;
};

/* ── text (text.c, daemon.c) ─────────────────────────────────────────────────────────────── */

/* Adds text from elsewhere as a label's value, without its quotes; a long one is cut. */
void label__add(struct buf *out, const char *value);
/* A long one is cut at its front. */
void label__add_end(struct buf *out, const char *value);
/* Where two that differ only at their ends would become one: for what nobody else chose, or what is
 * short before it is escaped. */
void label__add_whole(struct buf *out, const char *value);
/* "# HELP" and "# TYPE" lines; `type` is counter, gauge or histogram. */
void family__begin(struct buf *out, const char *name, const char *type, const char *help);
/* A number of nanoseconds as seconds, exactly. */
void seconds__add(struct buf *out, uint64_t ns);

void daemon__write(const struct metrics *m, struct buf *out);
/* It is a counter: an estimate that sinks leaves it as it is. */
bool daemon__grows(enum metrics_value which);

#endif

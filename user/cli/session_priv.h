/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of a session share: session.c, members.c, follow.c, command.c, ending.c. */
#ifndef SAFESCOPED_CLI_SESSION_PRIV_H
#define SAFESCOPED_CLI_SESSION_PRIV_H

#include <poll.h>

#include "base/base.h"
#include "capture/capture.h"
#include "command.h"
#include "kernel/kernel.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "target/target.h"
#include "timeline/timeline.h"

#define SNAPSHOT_TIMEOUT_MS 2000
#define DRAIN_EVERY_MS	    50
#define SESSION_MAX_MEMBERS 65536

/* A process that was attached. Kept to the session's end: its names are read until then. */
struct member {
	struct target *target;
	pid_t pid;
	uint64_t attach_ns;
	uint64_t probed_ns;	 /* when the probes were on */
	bool live;		 /* attached, and not seen to end */
	bool ready;		 /* its layout is confirmed */
	bool forgotten;		 /* it was none: nothing of it is in the timeline */
	struct kernel_cost cost; /* of one that has ended and is detached */
	/* until it is ready */
	uint64_t retry_ns, give_up_ns;
	unsigned tries;
	struct buf held;	      /* its records until then */
	bool held_over;		      /* none are held any more */
	uint64_t maps_due_ns;	      /* it has mapped code: when to read its maps again; 0: not */
	uint64_t maps_read_ns;	      /* when that was last done */
	struct member_log *log;	      /* its eventlog; NULL: none was found */
	unsigned log_looks;	      /* how often it was looked for */
	struct wire_proc_new program; /* how it was told; ino 0: it was not */
};

/* A process that is to be looked at. */
struct candidate {
	pid_t pid;
	uint64_t due_ns, give_up_ns;
	unsigned tries;
	struct wire_proc_new program;
};

struct mapped;

struct session {
	const struct options *options;
	struct kernel_features features;
	struct kernel *kernel;
	struct timeline *tl;
	struct capture *capture; /* --save; else NULL */
	uint64_t flushed_ns, counted_ns;
	struct target_cache *cache;
	struct member *members;
	size_t n_members, cap_members, n_live;
	pid_t *gone; /* of members that have ended, whose counters are not read yet */
	size_t n_gone, cap_gone;
	struct candidate *candidates;
	size_t n_candidates, cap_candidates;
	struct mapped *mapped;
	struct command command;
	struct pollfd
		*fds; /* of one wait; those behind the first two are live members', in order */
	size_t cap_fds;
	struct outputs outputs;
	struct progress progress;
	uint64_t start_ns, swept_ns;
	char why[512]; /* the command's last program could not be profiled */
	int signal_fd;
	unsigned signals;     /* how many came */
	bool stopped;	      /* by a signal */
	int record_err;	      /* the first record that the timeline refused for want of memory */
	size_t n_starting;    /* live members that are not ready */
	uint64_t bad_records; /* records that contradicted themselves */
};

/* ── session.c ───────────────────────────────────────────────────────────────────────────── */

/* Asks the outputs too: true once a signal says that it is enough. */
bool session__signal_came(void *ctx);
void session__take_record(struct session *s, const void *record, size_t size);
int session__on_record(void *ctx, const void *record, size_t size);
/* Tells the timeline of targets whose probes on collections came off. */
void session__gc_off(struct session *s);

/* ── members.c ───────────────────────────────────────────────────────────────────────────── */

/* --pid: opens the target; waits a while for a runtime that is not initialised yet. */
int members__open_pid(struct session *s, pid_t pid);
/* Takes the target over (also on failure); it is not attached yet. */
int members__add(struct session *s, struct target *target, bool ready, struct member **ret_member);
/* The timeline, the probes, the snapshot. `armed`: its probes are on already. */
int members__attach(struct session *s, struct member *m, bool armed);
struct member *members__find_live(struct session *s, pid_t pid);
/* It is no target any more: "exited", "exec". */
void members__end(struct session *s, struct member *m, const char *how, uint64_t at_ns);
/*
 * It runs another program: true if its life so far was none, and it is forgotten. Else it is to be
 * ended.
 */
bool members__forget(struct session *s, struct member *m);
/* Looks again at those whose runtime was not initialised. */
void members__complete(struct session *s, uint64_t now);
/* When the next of them is due; 0: none. */
uint64_t members__next_due(const struct session *s);
/* Reads the counters of those that have ended, before their pids are used again. */
void members__sweep(struct session *s);
void members__snapshot(struct session *s, struct member *m, bool at_end);
/* Its maps have changed: names and unwind rows of what is new. */
void members__read_maps(struct session *s, struct member *m);

/* ── follow.c ────────────────────────────────────────────────────────────────────────────── */

/* Attaches every GHC process that there is. */
int follow__all_now(struct session *s);
/* A process that began. */
void follow__on_new(struct session *s, const struct wire_proc_new *rec);
/* Looks at the candidates that are due. */
void follow__look(struct session *s, uint64_t now);
uint64_t follow__next_due(const struct session *s);

/* Whether a process that is no target yet may become one. */
bool follow__wants(const struct session *s, pid_t pid);
/* A process that is no target has mapped a library that holds a runtime. */
void follow__on_mapped(struct session *s, pid_t pid);

/* ── mapped.c ────────────────────────────────────────────────────────────────────────────── */

int mapped__new(struct mapped **ret_mapped);
void mapped__free(struct mapped *mapped);
/* Whether the kernel tells what is mapped. */
bool mapped__works(const struct session *s);
/* What is readable when something was mapped; -1 while nobody needs to be woken for it. */
int mapped__fd(const struct session *s);
/* When to look for what was mapped; 0: the descriptor tells. */
uint64_t mapped__next_due(const struct session *s);
/* Takes in what was mapped since, and reads the maps of members that it concerns. */
void mapped__drain(struct session *s, uint64_t now);

/* ── held.c ──────────────────────────────────────────────────────────────────────────────── */

/* True: the record was taken, and is given on later. */
bool held__take(struct session *s, const void *record, size_t size);
/* Gives on what is held of the member; from now on nothing is. */
void held__give(struct session *s, struct member *m);
void held__drop(struct member *m);

/* ── ending.c ────────────────────────────────────────────────────────────────────────────── */

uint64_t session__lost_records(struct session *s);
/* Everything that is left in the kernel, then the picture. */
int session__finish(struct session *s);
int session__on_site(void *ctx, const struct wire_site_key *key, const struct wire_site *site);

/* ── eventlogs (logs.c) ──────────────────────────────────────────────────────────────────── */

/* Looks for the log that a member writes, and opens it; again at the next call if there is none. */
void logs__look(struct session *s, struct member *m);
/* Reads what the members' logs tell of the session, for the timeline; before it is finished. */
void logs__join(struct session *s);
/* After the timeline is finished. */
void logs__free(struct session *s);

#endif

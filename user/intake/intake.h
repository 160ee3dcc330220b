/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intake: the entry point for everything that a session learns: kernel records in order of arrival,
 * snapshots, and what the session itself sets. Each input is checked, its addresses are named, its
 * stacks are interned, and it is kept until lanes have been made of it (seen.h). This room makes no
 * lanes and adds nothing up.
 */
#ifndef SAFESCOPED_INTAKE_H
#define SAFESCOPED_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/target.h"
#include "wire.h"

struct intake;
struct pic_push;
struct picture;
struct seen;

/* What the Haskell part of a stack is made of. */
enum intake_stacks {
	/* cost centres in profiled programs, else what is on the Haskell stack; as STACKS_BOTH
	 * where all centres are GHC's own, since MAIN alone shows nothing */
	STACKS_AUTO,
	STACKS_STG,
	STACKS_CCS,
	/* the path of the cost centres from the root, then a mark, then the frames of the Haskell
	 * stack */
	STACKS_BOTH,
};

struct intake_opts {
	uint32_t max_depth; /* frames per stack */
	bool plumbing; /* keep the RTS's return frames that mean nothing to a reader: update, catch,
			  stop */
	bool haskell;  /* keep what records have on Haskell threads */
	enum intake_stacks stacks;
	size_t max_records; /* the most that are kept at once */
	size_t max_stacks;  /* the most distinct parts of stacks */
	/* Called when many records are kept: makes lanes of them and releases the records that are
	 * used up (seen__forget). Returns 0 or a negative errno, which intake__record passes on. */
	int (*make_room)(void *ctx);
	/* Takes over what should outlive a target that is removed; the target is removed whatever
	 * this returns. NULL: no target is removed. */
	int (*retire)(void *ctx, struct seen *s);
	void *ctx;
};

/* Also adds what is seen to *pic, which must outlive the intake. */
int intake__new(const struct intake_opts *opts, struct picture *pic, struct intake **ret_intake);
void intake__free(struct intake *in);

/*
 * Where frames get their names: callbacks, so that this room needs no live target. They are called
 * as records come in, once for each distinct frame, while the process most likely still exists.
 * Strings are copied. `site` returns a negative errno if nothing is known about the address.
 */
struct namer {
	void *ctx;
	void (*name)(void *ctx, uint64_t frame, struct code_name *ret_name);
	int (*site)(void *ctx, uint64_t ret_addr, struct target_site *ret_site);
	/* Both NULL: cost-centre stacks are not read. See target__read_ccs, target__ccs. */
	int (*read_ccs)(void *ctx, const uint64_t *addrs, size_t n);
	int (*ccs)(void *ctx, uint64_t addr, struct target_ccs *ret_ccs);
};

/* Unless noted otherwise, the functions below return -EINVAL after intake__close and -ENOENT if
 * there is no such process. */

/*
 * Adds a process. Its info is copied; namer->ctx must live until the end or until
 * intake__settle_target. A pid may be added again after its target has ended (exec); records then
 * go to the newest one. -EEXIST if the pid's target has not ended.
 */
int intake__add_target(struct intake *in, const struct target_info *info, const struct namer *namer,
		       uint64_t attach_ns, uint64_t attach_took_ns);
/* Updates the info of a process whose runtime was not initialised when it joined. Not refused after
 * intake__close. */
int intake__update_target(struct intake *in, const struct target_info *info);
/*
 * Takes one record as it came from the ring buffer; `size` bytes are readable. -EBADMSG: type,
 * size, counts or times contradict each other (nothing was taken); -ENOSPC: dropped because
 * max_records are kept and none of them can be released (counted; the lanes end there); -ENOMEM.
 */
int intake__record(struct intake *in, const void *rec, size_t size);
/*
 * Sets the longest time that the sampler takes for each sample of a thread that runs all the time;
 * 0, the initial value: it takes none.
 */
void intake__set_period(struct intake *in, uint64_t period_ns);
/* A thread that runs is sampled within this many periods. */
#define INTAKE_SILENCE 5
/*
 * Takes a sample, off-CPU interval, safe call, tick or end of a collection that comes after the
 * next cut. A replay knows it ahead of time, and it shows what its thread is doing at the cut. Only
 * the time up to the cut is used, and the cut drops the record again. Errors as intake__record,
 * except that nothing is counted and -ENOSPC does not occur.
 */
int intake__ahead(struct intake *in, const void *rec, size_t size);
/* From here on, each cut is preceded by the later records that cross it. */
void intake__looks_ahead(struct intake *in);
bool intake__does_look_ahead(const struct intake *in);
/*
 * Sets facts about the newest target with this pid that arrive later in the capture but hold from
 * its start: calls_missed of its cost, and the number of capabilities (0 if none is recorded).
 * Not refused after intake__close.
 */
int intake__known_ahead(struct intake *in, pid_t pid, bool calls_missed, uint32_t capabilities);
/* As intake__known_ahead: the target's end, or the session's; of an unfinished capture, the time of
 * its last record. `exits`: it is the target's. */
int intake__ends_ahead(struct intake *in, pid_t pid, uint64_t ns, bool exits);
/* The capture ends before the final call counters were read of the processes still running at its
 * end. */
void intake__calls_uncounted(struct intake *in);
/* The capture is damaged: no count of losses has what was in the damaged part. */
void intake__lost_unknown(struct intake *in);
/* The threads as they were at at_ns; at_end: the last snapshot of the session or the target. */
int intake__snapshot(struct intake *in, pid_t pid, const struct snapshot *snapshot, uint64_t at_ns,
		     bool at_end);
/* What the heap consisted of at at_ns, which is not 0. Not refused after intake__close. */
int intake__census(struct intake *in, pid_t pid, const struct target_census *census,
		   uint64_t at_ns);
/* Whether a collection was running at any time between start and end, as far as records show. */
bool intake__collects(const struct intake *in, pid_t pid, uint64_t start, uint64_t end);
/*
 * Haskell threads that had not ended at began_ns, all that the process had; this counts as their
 * state at at_ns, which is a cut or the session's end. Threads without any record are ignored.
 * -EBADMSG: the times are impossible.
 */
int intake__living(struct intake *in, pid_t pid, const struct target_living_thread *v, size_t n,
		   uint64_t began_ns, uint64_t at_ns);
/* As intake__living for a time still to come, which a replay in windows knows. -E2BIG: there is no
 * room for some of the threads. */
int intake__living_ahead(struct intake *in, pid_t pid, const struct target_living_thread *v,
			 size_t n, uint64_t began_ns, uint64_t at_ns);
/* As intake__living_ahead: a record shows that the Haskell thread is alive at ns. */
int intake__seen_ahead(struct intake *in, pid_t pid, uint64_t tso, uint64_t ns);
/* The latest values replace earlier ones. at_ns: when they were read; 0: unknown. */
int intake__site_counters(struct intake *in, const struct wire_site_key *key,
			  const struct wire_site *site, uint64_t at_ns);
/* A thread's entry in the kernel's map, read at the end: closes its lane. */
int intake__thread_state(struct intake *in, pid_t tid, const struct wire_thread *state);
/* The stack of the off-CPU interval that the thread is in; call after intake__thread_state. */
int intake__off_stack(struct intake *in, pid_t pid, pid_t tid, const struct wire_off_stack *stack);
/*
 * Call after the states at at_ns if records were lost: a thread that has no state and whose exit
 * was not reported ended at at_ns at the latest. Errors as intake__record.
 */
int intake__end_lost(struct intake *in, uint64_t at_ns);
/* Drops the threads' states and their stacks: they show a moment within the session. */
int intake__forget_states(struct intake *in);
/* The process ended or left: "exited 3" (its code, if known), "killed 9", "exec", "left". The first
 * end counts; its exit status may be added later. Also allowed after intake__close. */
int intake__end_target(struct intake *in, pid_t pid, const char *end, uint64_t at_ns);
/*
 * Asks again for names that may have improved (code_name.partial), also for what was recorded under
 * the earlier names; lanes that are already made keep the earlier ones. -ENOMEM.
 */
int intake__rename(struct intake *in);
/*
 * The code from start up to end was replaced by another file's: its names are asked for again and
 * apply to what comes from now on. Its safe-call sites have one name for everything that is not cut
 * yet. -ENOMEM.
 */
int intake__retaken(struct intake *in, pid_t pid, uint64_t start, uint64_t end);
/*
 * The newest target with this pid has ended, and nothing more comes of it except what the session
 * sets: its namer is not called again, and the tables that only served to find names are freed.
 */
int intake__settle_target(struct intake *in, pid_t pid, bool keep);
/*
 * Of the settled targets that need not be kept whole, keeps the `stay` newest; of the others only
 * sums remain (opts.retire).
 */
int intake__retire_settled(struct intake *in, size_t stay);
/*
 * The newest target with this pid turned out not to be one: removes it from the picture. -EBUSY:
 * something of it has been taken already, and it stays.
 */
int intake__forget_target(struct intake *in, pid_t pid);

/* What the session knows in addition to the records; also allowed after intake__close. Numbers are
 * totals of the session; the picture gets their growth since the last cut. */
struct intake_cost {
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	bool bpf_ns_known;
	bool calls_missed; /* it started in the session, maybe making calls before it had probes */
	bool own_bpf_ns_known;
	uint64_t held_up_until_ns; /* all probes were off until then; 0: they were not off */
	uint64_t own_bpf_ns;	   /* the process's part of bpf_ns */
};
int intake__set_cost(struct intake *in, pid_t pid, const struct intake_cost *cost);
int intake__set_lost(struct intake *in, pid_t pid, const char *cause, uint64_t n);
int intake__set_lost_share(struct intake *in, pid_t pid, double share);
/* What is missing until a debug file, a server or a twin names Haskell code of the executable. */
#define INTAKE_NO_SYMBOLS                                                                          \
	"no symbols: code that has no other name is shown by its place in the file; --symbols "    \
	"FILE, or a debug file in /usr/lib/debug, would help"
/* Adds a sentence unless it is already there. */
int intake__add_missing(struct intake *in, pid_t pid, const char *text);
/* As intake__add_missing, but only for the window that ends now. Not captured: a capture has the
 * sentences of the whole session. */
int intake__add_missing_once(struct intake *in, pid_t pid, const char *text);
void intake__set_exit_code(struct intake *in, int exit_code);
/* Copied into the current picture; not captured. */
int intake__set_pushes(struct intake *in, const struct pic_push *pushes, size_t n);

/* No more input follows: the session ended at end_ns. */
int intake__close(struct intake *in, uint64_t end_ns);

#endif

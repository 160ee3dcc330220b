/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * intake: everything that a session gets to know comes in here: kernel records in the order in
 * which they arrive, snapshots, what the session sets. Each is checked, its addresses are named,
 * its stacks interned, and it is kept until lanes are made of it (seen.h). Makes no lanes and adds
 * nothing up.
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
	STACKS_AUTO, /* cost centres in profiled programs, else what is on the Haskell stack */
	STACKS_STG,
	STACKS_CCS,
	/* the cost centres' path from its root, then a mark, then the frames of the Haskell stack
	 */
	STACKS_BOTH,
};

struct intake_opts {
	uint32_t max_depth; /* frames of a stack */
	bool plumbing; /* keep the RTS's return frames that mean nothing to a reader: update, catch,
			  stop */
	bool haskell;  /* what records have on Haskell threads is wanted */
	enum intake_stacks stacks;
	size_t max_records; /* kept at once */
	size_t max_stacks;  /* distinct parts of stacks */
	/* Asked when many records are kept: makes lanes of them, and lets go of what they are made
	 * of (seen__forget). 0 or a negative errno, which the record's taker returns. */
	int (*make_room)(void *ctx);
	/* Takes what is to stay of a target that goes, whatever it returns; NULL: none go. */
	int (*retire)(void *ctx, struct seen *s);
	void *ctx;
};

/* What is seen goes into *pic too, which must live longer. */
int intake__new(const struct intake_opts *opts, struct picture *pic, struct intake **ret_intake);
void intake__free(struct intake *in);

/*
 * Where frames get their names: callbacks, so that this room needs no live target. They are called
 * as records come in, once for each distinct frame, while the process is most likely still there.
 * Strings are copied. `site` returns a negative errno when nothing is known of the address.
 */
struct namer {
	void *ctx;
	void (*name)(void *ctx, uint64_t frame, struct code_name *ret_name);
	int (*site)(void *ctx, uint64_t ret_addr, struct target_site *ret_site);
	/* Both NULL: cost-centre stacks are not looked at. See target__read_ccs, target__ccs. */
	int (*read_ccs)(void *ctx, const uint64_t *addrs, size_t n);
	int (*ccs)(void *ctx, uint64_t addr, struct target_ccs *ret_ccs);
};

/* All of these: -EINVAL after intake__close, but where it is said; -ENOENT: no such process. */

/*
 * A process joins. Its info is copied; namer->ctx must live until the end, or until it is settled.
 * A pid may be added again after its target has ended (exec): records go to the newest. -EEXIST
 * while it lives.
 */
int intake__add_target(struct intake *in, const struct target_info *info, const struct namer *namer,
		       uint64_t attach_ns, uint64_t attach_took_ns);
/* More is known of the process: its runtime was not initialised when it joined. */
int intake__update_target(struct intake *in, const struct target_info *info);
/*
 * One record as it came from the ring buffer; `size` bytes are readable. -EBADMSG: type, size,
 * counts or times contradict each other (nothing was taken); -ENOSPC: left out because max_records
 * are kept and none of them can go (counted; the lanes end there); -ENOMEM.
 */
int intake__record(struct intake *in, const void *rec, size_t size);
/*
 * A sample, off-CPU interval, safe call or tick, or a
 * collection's end, that comes after the next cut: a replay knows of it, and
 * it says what its thread does at the cut. Only the time up to there is made of it, and the cut
 * forgets it again. As intake__record; nothing is counted, and -ENOSPC does not happen.
 */
int intake__ahead(struct intake *in, const void *rec, size_t size);
/* From here on each cut is preceded by the records, of those after it, that cross it. */
void intake__looks_ahead(struct intake *in);
bool intake__does_look_ahead(const struct intake *in);
/*
 * What comes later of the target that was added last with this pid, and is true from its begin on:
 * calls_missed of its costs, and so many capabilities, 0 where none comes. -ENOENT.
 */
int intake__known_ahead(struct intake *in, pid_t pid, bool calls_missed, uint32_t capabilities);
/* The same: when the last is recorded of it, its end or that of a capture that was not finished. */
int intake__ends_ahead(struct intake *in, pid_t pid, uint64_t ns);
/* The capture ends before the last counters of calls were read of the processes that go on there.
 */
void intake__calls_uncounted(struct intake *in);
/* The threads as they were at at_ns; at_end: the session's (or the target's) last one. */
int intake__snapshot(struct intake *in, pid_t pid, const struct snapshot *snapshot, uint64_t at_ns,
		     bool at_end);
/* What its heap was made of at at_ns, which is not 0. */
int intake__census(struct intake *in, pid_t pid, const struct target_census *census,
		   uint64_t at_ns);
/* Whether a collection was under way between these times, as far as records show it. */
bool intake__collects(const struct intake *in, pid_t pid, uint64_t start, uint64_t end);
/*
 * Haskell threads that had not ended at began_ns, all of the process's by then; it counts as if it
 * were so at at_ns, a cut or the session's end. Of those that records had none is kept. -EBADMSG:
 * these times cannot be.
 */
int intake__living(struct intake *in, pid_t pid, const struct target_living_thread *v, size_t n,
		   uint64_t began_ns, uint64_t at_ns);
/* The same, of a time that is yet to come: a replay in windows knows of it. -E2BIG: there is no
 * room for some of the threads. */
int intake__living_ahead(struct intake *in, pid_t pid, const struct target_living_thread *v,
			 size_t n, uint64_t began_ns, uint64_t at_ns);
/* In the same way, a record shows the Haskell thread to live at ns. */
int intake__seen_ahead(struct intake *in, pid_t pid, uint64_t tso, uint64_t ns);
/* The latest values replace earlier ones. at_ns: when they were read; 0: not known. */
int intake__site_counters(struct intake *in, const struct wire_site_key *key,
			  const struct wire_site *site, uint64_t at_ns);
/* A thread's entry in the kernel's map, read at the end: closes its lane. */
int intake__thread_state(struct intake *in, pid_t tid, const struct wire_thread *state);
/* The stack of the off-CPU interval that the thread is still in. After its state. */
int intake__off_stack(struct intake *in, pid_t pid, pid_t tid, const struct wire_off_stack *stack);
/*
 * After the states at at_ns, where records were lost: a thread without a state whose end did not
 * come has ended, no later than that. As intake__record.
 */
int intake__end_lost(struct intake *in, uint64_t at_ns);
/* Threads' states, and their stacks, were those of a moment, and are not the last ones. */
int intake__forget_states(struct intake *in);
/* The process ended or left: "exited 3" (its code, if it is known), "killed 9", "exec", "left". The
 * first end counts; how it exited may be added to it. Also after intake__close. */
int intake__end_target(struct intake *in, pid_t pid, const char *end, uint64_t at_ns);
/*
 * Names that may be better by now (code_name.partial) are asked for again, also for what was
 * recorded under the earlier ones; only of what lanes are made already those stay. -ENOMEM.
 */
int intake__rename(struct intake *in);
/*
 * Where code from start up to end was another file's is: names of it are asked for again, for
 * what comes from now on. Its sites of safe calls have one name for all that is not cut yet.
 * -ENOMEM.
 */
int intake__retaken(struct intake *in, pid_t pid, uint64_t start, uint64_t end);
/*
 * Of the target that was added last with this pid, which has ended, nothing more comes but what the
 * session sets: its namer is not asked any more, and what only names were found by goes.
 */
int intake__settle_target(struct intake *in, pid_t pid, bool keep);
/*
 * Of the targets that are settled, and are not to be kept as they are, the last `stay` that joined
 * stay; of the others only sums do (opts.retire).
 */
int intake__retire_settled(struct intake *in, size_t stay);
/*
 * The target that was added last with this pid was none: nothing of it is in the picture. -EBUSY:
 * something was taken of it already, and it stays.
 */
int intake__forget_target(struct intake *in, pid_t pid);

/* What the session knows beside the records; also after intake__close. Numbers are totals of the
 * session; the picture has what they have grown since the last cut. */
struct intake_cost {
	uint64_t probe_hits, bpf_ns, trap_ns_estimated, user_cpu_ns, max_rss_bytes,
		probes_paused_ns;
	bool bpf_ns_known;
	bool calls_missed; /* it began in the session, and may have worked before the probes came */
	uint64_t held_up_until_ns; /* all probes were off until then; 0: they were not */
};
int intake__set_cost(struct intake *in, pid_t pid, const struct intake_cost *cost);
int intake__set_lost(struct intake *in, pid_t pid, const char *cause, uint64_t n);
int intake__set_lost_share(struct intake *in, pid_t pid, double share);
/* A sentence that is there already is not put twice. */
int intake__add_missing(struct intake *in, pid_t pid, const char *text);
/* The same of the window that ends now, and of no later one. In no capture, which has it of the
 * whole session. */
int intake__add_missing_once(struct intake *in, pid_t pid, const char *text);
void intake__set_exit_code(struct intake *in, int exit_code);
/* Copied into the picture that is being made; a capture has none of it. */
int intake__set_pushes(struct intake *in, const struct pic_push *pushes, size_t n);

/* Nothing more comes: the session ended at end_ns. */
int intake__close(struct intake *in, uint64_t end_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the intake room only. */
#ifndef SAFESCOPED_INTAKE_PRIV_H
#define SAFESCOPED_INTAKE_PRIV_H

#include "picture/intern.h"
#include "seen.h"
#include "tap.h"

#define MAX_FLOWS  (1U << 18)
#define MAX_POINTS (1U << 18)
/* Far more than 2^32 seconds: a later time is corrupt, and sums of earlier ones cannot overflow. */
#define MAX_TIME (1ULL << 62)

struct intake {
	struct intake_opts opts;
	struct picture *pic;
	struct stack_table parts; /* the parts of stacks that events refer to */
	struct seen **targets, *by_pid;
	size_t n_targets, targets_cap;
	uint32_t n_added; /* targets ever added */
	size_t n_records;
	size_t room_at;	    /* call make_room at this many records */
	uint64_t period_ns; /* intake__set_period */
	bool closed;
	bool ahead;	  /* the record being taken is known ahead of time */
	bool looks_ahead; /* a replay in windows: calls that end after a cut are known at the cut */
	intake_tap tap;
	void *tap_ctx;
	/* Totals of the session at the last cut; later inputs are totals, too. */
	uint64_t cpu_before_ns, bpf_before_ns;
	struct lost_before {
		char cause[48];
		uint64_t now, before;
	} lost[16];
	size_t n_lost;
	/* the frame that replaces each frame number (rename.c) */
	struct renamed {
		uint32_t *v, n;
	} renamed;
	unsigned n_renames;
	/* during a cut: what the old numbers refer to */
	struct picture *old_pic;
	struct stack_table old_parts;
	uint32_t *moved, n_moved; /* new number by old number; UINT32_MAX: not assigned yet */
};

/* Reports an input to the tap unless it was refused; returns err. */
int tap__report(struct intake *in, int err, const struct intake_input *input);

int target__thread(struct seen *s, pid_t tid, struct seen_thread **ret_thread);
/* Removes target number i, which is not, or not any more, in the picture. */
int target__take_out(struct intake *in, size_t i);
/* Makes the table for the parts of stacks of *pic. */
int parts__new(const struct intake *in, struct picture *pic, struct stack_table *ret_parts);
int target__end(struct intake *in, struct seen *s, const char *end, uint64_t at_ns);

/* ── addresses by frame (addrs.c) ────────────────────────────────────────────────────────── */

/* NULL if it has not been added. */
struct seen_addr *addrs__find(struct seen *s, uint64_t frame);
/* Takes ownership of addr and frees it on failure: -ENOMEM. */
int addrs__add(struct seen *s, struct seen_addr *addr);
/* Prefetches addresses that are about to be looked up, so that their cache misses overlap. */
void addrs__expect(struct seen *s, const uint64_t *frames, size_t n);
/* Call before an added address is freed. */
void addrs__forget_recent(struct seen *s);
/* Frees all of them; idempotent. */
void addrs__free(struct seen *s);

/* ── names and stacks (name.c, stack.c, kframe.c) ────────────────────────────────────────── */

/* Beyond the target's limit of addresses *ret_name is a mark, and 0 is returned. */
int name__addr(struct intake *in, struct seen *s, uint64_t frame, struct seen_addr *ret_name);
/* Counts a frame with this name in a stack; `leaf`: it is the code that ran. */
void name__count(struct seen *s, const struct seen_addr *addr, bool leaf);
/* Asks for the name again. */
int name__again(struct intake *in, struct seen *s, struct seen_addr *addr);
int name__site_again(struct intake *in, struct seen *s, struct seen_site *site);
/* -E2BIG: the target has too many sites. */
int name__site(struct intake *in, struct seen *s, uint64_t addr, struct seen_site **ret_site);
/* The kernel side knows that calls from there call back, and does not count them as short ones. */
void site__calls_back(struct seen_site *site);

#define MAX_PART (WIRE_FRAMES_MAX + 8) /* frames per part of a stack */

/* The stack of a record as it arrived; stack__take puts it into ev (hs, c, site, code, flags). */
struct raw_stack {
	const struct wire_stack *head;
	const uint64_t *frames; /* leaf first */
	uint64_t ip;		/* 0: none */
	uint64_t site;		/* 0: none */
	const struct wire_rts *rts;
	bool sampled; /* the thread was sampled on the CPU */
};
/* ── rename.c ────────────────────────────────────────────────────────────────────────────── */

void rename__free(struct intake *in);

int stack__take(struct intake *in, struct seen *s, const struct raw_stack *raw, struct ev *ev);

/* ── event managers (managers.c) ─────────────────────────────────────────────────────────── */

/* Whether code in this module is an event manager's. */
bool managers__have(const char *module);
/* Marks the wait of an event manager, by the call's site, its stack, or its Haskell thread. */
void managers__look(const struct intake *in, struct seen *s, struct ev *ev);

enum kernel_frame {
	KERNEL_PLAIN,
	KERNEL_OURS,  /* this frame, and everything that it called, is there for the probes */
	KERNEL_PROBE, /* the same if it called a KERNEL_OURS or KERNEL_PROBE frame */
};
enum kernel_frame kframe__of(const char *name);

/* ── cost-centre stacks (ccs.c) ──────────────────────────────────────────────────────────── */

/* *ret_id is 0 for no stack. */
int ccs__get(struct seen *s, uint64_t addr, uint32_t *ret_id);
/* As ccs__resolve, but rate-limited. */
int ccs__resolve_at(struct intake *in, struct seen *s, uint64_t now_ns);
void ccs__count_tick(struct seen *s, uint32_t id);
/*
 * Where no timer ticks are seen, counts the samples of threads that hold a capability, since a tick
 * would count its cost-centre stack. (Without -threaded a capability is held during safe calls,
 * too.)
 */
int ccs__count_sample(struct seen *s, const struct wire_rts *rts);
/* Keeps what a tick found, up to a limit. */
int ccs__note_tick(struct seen *s, uint64_t ns, uint16_t cap, uint32_t id);
void ccs__free(struct seen_centres *centres);

/* ── collections (gcs.c) ─────────────────────────────────────────────────────────────────── */

int gcs__record(struct seen *s, const struct wire_gc *rec);
/* Takes the end, still to come, of a collection that is running at the cut. */
int gcs__ahead(struct seen *s, const struct wire_gc *rec);
/* An off-CPU interval of the thread that leads a collection may move the collection's edge. */
void gcs__off(struct seen *s, const struct wire_off *rec);
/* Takes what the thread did on the CPU at ev->t0: its collection's end may have been lost. */
void gcs__runs(struct seen *s, pid_t tid, const struct ev *ev);

/* ── allocation (allocs.c) ───────────────────────────────────────────────────────────────── */

/* Takes a sample of allocation; *ev has its stack. */
void allocs__sample(struct seen *s, const struct wire_alloc *rec, const struct ev *ev);
/* Takes a sample of a thread running Haskell code: a WIRE_ALLOCATED may follow. */
void allocs__note_sample(struct seen *s, const struct wire_sample *rec, const struct ev *ev);
int allocs__tick(struct intake *in, struct seen *s, const struct wire_allocated *rec);
/* `caps` has rec->n_caps entries. */
int allocs__heap(struct intake *in, struct seen *s, const struct wire_heap *rec,
		 const struct wire_heap_cap *caps);
/* Drops everything before at_ns and renumbers the rest. */
int allocs__cut(struct intake *in, struct seen *s, uint64_t at_ns);

/* ── notes (notes.c) ─────────────────────────────────────────────────────────────────────── */

int notes__caps(struct seen *s, uint64_t ns, uint32_t n, uint64_t disabled);
/* Finds or creates the info of a Haskell thread. -E2BIG: there are too many; -ENOMEM. */
int notes__tso_info(struct seen *s, uint64_t id, struct tso_info **ret_info);
int notes__tso(struct intake *in, struct seen *s, const struct wire_tso *rec);
int notes__tso_waits(struct intake *in, struct seen *s, const struct wire_tso_waits *rec);
int notes__flow(struct seen *s, pid_t tid, const struct ev *call);
int notes__queued(struct seen *s, uint64_t ns, uint64_t queued);
int notes__starved(struct seen *s, uint64_t ns, uint64_t queued);

/* snapshot.c: checks whether a call that returned is the one in the snapshot at the attach. */
void snapshot__compare(struct seen_thread *th, const struct ev *call);

/* carried.c: for calls that were open at the last cut: takes such a call's record, the thread's
 * state, or its exit with `open` calls still open. `alone`: the process goes on. */
void carried__record(const struct intake *in, struct seen *s, struct seen_thread *th,
		     const struct wire_call *rec, struct seen_site *site);
void carried__state(struct seen *s, struct seen_thread *th, const struct wire_thread *state);
void carried__exit(struct seen *s, struct seen_thread *th, uint32_t open, bool alone);
/* The thread has called exec. */
void carried__exec(struct seen *s, struct seen_thread *th, uint32_t open);

/* Copies the runtime's state from a record. */
void ev__take_rts(struct ev *ev, const struct wire_rts *rts);
void thread__take_name(struct seen_thread *th, const char comm[16]);

#endif

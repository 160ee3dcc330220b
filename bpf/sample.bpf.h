/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler: what the thread on this CPU is doing. Runs in the timer interrupt. */
#ifndef SAFESCOPED_SAMPLE_BPF_H
#define SAFESCOPED_SAMPLE_BPF_H

#include "maps.bpf.h"
#include "walk.bpf.h"
#include "off.bpf.h"
#include "site.bpf.h"
#include "tso.bpf.h"
#include "kstack.bpf.h"
#include "heap.bpf.h"

/* XOL slots, kernel/events/uprobes.c */
#define UPROBE_SLOT_BYTES 128

/* Undoes out-of-line stepping: a probed instruction that the kernel does not emulate runs as a
 * copy. */
SS_INLINE void regs_unstep(struct task_struct *task, struct walk_regs *r)
{
	struct uprobe_task *utask = BPF_CORE_READ(task, utask);
	u64 in, slot;

	if (!utask)
		return;
	slot = BPF_CORE_READ(utask, xol_vaddr);
	in = r->ip - slot;
	if (slot && in < UPROBE_SLOT_BYTES)
		r->ip = BPF_CORE_READ(utask, vaddr) + in;
}

/* The user registers at the entry to the kernel. */
SS_INLINE void regs_of(struct task_struct *task, struct walk_regs *r)
{
	struct pt_regs *u = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 ip = ARCH_IP(u), sp = ARCH_SP(u), fp = ARCH_FP(u), base = ARCH_BASE(u);
	u64 saved = ARCH_SAVED(u), rdi = ARCH_ARG1(u);

	ss_barrier(saved);
	ss_barrier(rdi);
	ss_barrier(ip);
	ss_barrier(sp);
	ss_barrier(fp);
	ss_barrier(base);
	*r = (struct walk_regs){
		.ip = ip, .sp = sp, .fp = fp, .base = base, .saved = saved, .rdi = rdi};
}

/* User registers: those interrupted, or those at the entry to the kernel. */
SS_INLINE void sample_regs(struct bpf_perf_event_data *ctx, struct task_struct *task,
			   struct walk_regs *r, u8 *in_kernel)
{
	if (ARCH_FROM_USER(&ctx->regs)) {
		u64 ip = ARCH_IP(&ctx->regs), sp = ARCH_SP(&ctx->regs);
		u64 fp = ARCH_FP(&ctx->regs), base = ARCH_BASE(&ctx->regs);
		u64 rdi = ARCH_ARG1(&ctx->regs);

		/* else clang loads through one of two pointers, but the verifier requires ctx
		 * itself */
		ss_barrier(ip);
		ss_barrier(sp);
		ss_barrier(fp);
		ss_barrier(base);
		ss_barrier(rdi);
		*r = (struct walk_regs){.ip = ip, .sp = sp, .fp = fp, .base = base, .rdi = rdi};
		*in_kernel = 0;
	} else {
		regs_of(task, r);
		walk_unprobe(0, r);
		*in_kernel = 1;
	}
	regs_unstep(task, r);
}

/*
 * Between the entry of resumeThread and the moment when a capability is held again, the InCall
 * looks as it does in the call itself.
 */
SS_INLINE void thread_refine(const struct wire_thread *seen, const struct rts_thread *th,
			     struct wire_rts *rts)
{
	if (rts->where == WIRE_WHERE_SAFE_CALL && seen->resume_incall &&
	    seen->resume_incall == th->incall)
		rts->where = WIRE_WHERE_RESUMING;
}

/* WIRE_RTS_CALLED_BACK for a thread whose open calls are known and that is in this InCall, else 0.
 */
SS_INLINE u8 called_back(const struct wire_target *t, const struct wire_thread *seen,
			 const struct wire_open *top, u32 tid, u64 incall)
{
	const struct wire_open_at_start *o;

	if (calls_in_callback(top, incall)) {
		site_calls_back(seen->tgid, top->site, top->flags);
		return WIRE_RTS_CALLED_BACK;
	}
	if (top || !incall)
		return 0;
	o = bpf_map_lookup_elem(&open_at_start, &tid);
	return o && o->incall && o->incall != incall && o->epoch == t->epoch ? WIRE_RTS_CALLED_BACK
									     : 0;
}

/* Like calls_known(); a thread without an entry has not been seen since the session started. */
SS_INLINE int sample_known(const struct wire_target *t, const struct wire_thread *seen)
{
	if (seen)
		return calls_known(t, seen);
	return !(t->flags & WIRE_TARGET_PROBES_OFF) && t->epoch == 1;
}

/* With smaller nurseries, collections are frequent enough. */
#define SAMPLE_LARGE_NURSERY (4ULL << 20)

/* Sends WIRE_ALLOCATED for a thread that runs Haskell code. */
SS_NOINLINE int sample_allocated(struct wire_target *t, struct scratch *s, struct task_struct *task,
				 u64 now)
{
	const struct wire_sample *sample = (const struct wire_sample *)s->rec;
	struct wire_allocated rec = {};

	if (!heap_known(&t->layout) ||
	    heap_nursery(0, &t->layout, sample->rts.cap) < SAMPLE_LARGE_NURSERY ||
	    heap_allocated(0, &t->layout, sample->rts.cap, &rec.allocated))
		return 0;
	fill_header(&rec.h, WIRE_ALLOCATED, now, task->tgid, task->pid);
	rec.h.size = sizeof(rec);
	rec.cap_no = sample->rts.cap_no;
	ring_put(&rec, sizeof(rec), ring_wakeup());
	return 0;
}

/*
 * walk_thread() with the state of a scratch slot, and s->state.site. `maps` may be NULL: then there
 * are no rows.
 */
SS_GLOBAL int walk_alone(struct scratch *s, const struct wire_target *t,
			 const struct wire_unwind_maps *maps, const struct wire_rts *rts,
			 struct stg_frames *frames)
{
	struct stg g = {};

	if (!s || !t || !rts || !frames)
		return 0;
	g.w = &s->walk;
	g.scan = &s->scan;
	g.unw = &s->unw;
	g.maps = maps;
	g.frames = frames->v;
	walk_thread(&g, t, &s->th, &s->state, rts, s->state.site, &s->regs);
	return 0;
}

/* Counts a sample, if the number of other stacks of the target follows it. */
SS_INLINE void sample_count(struct wire_target *t)
{
	if (stacks_by_samples)
		__sync_fetch_and_add(&target_entry(t)->samples, 1);
}

SS_INLINE int sample_take(struct bpf_perf_event_data *ctx, struct wire_target *t,
			  struct task_struct *task, u64 now)
{
	struct wire_thread *seen;
	const struct wire_open *open;
	struct stg g = {};
	struct wire_sample *rec;
	struct scratch *s;
	u32 slot = SLOT_SAMPLE, tgid = task->tgid;
	u8 in_kernel = 0;

	count(WIRE_CNT_SAMPLES);
	s = bpf_map_lookup_elem(&cpu_scratch, &slot);
	if (!s)
		return 0;
	seen = thread_find(task->pid);
	if (seen && seen->off_since_ns)
		off_end_unseen(t, seen, s, task, now);
	/* the thread may stay on the CPU for long */
	if (seen && thread_entry(seen)->lost_since_ns)
		lost_send(thread_entry(seen), s, (u64)task->tgid << 32 | (u32)task->pid, now,
			  task->se.sum_exec_runtime);
	if (seen)
		hold_end(seen, s, task->tgid, task->pid, now);
	sample_count(t);
	rec = (struct wire_sample *)s->rec;
	rts_thread_of(task, seen, &s->th);
	fill_header(&rec->h, WIRE_SAMPLE, now, task->tgid, task->pid);
	sample_regs(ctx, task, &s->regs, &in_kernel);
	rts_read(0, t, &s->th, &rec->rts);
	rec->rts.flags = (in_kernel ? WIRE_RTS_IN_KERNEL : 0) | (seen ? 0 : WIRE_RTS_NO_ENTRY);
	rec->ip = s->regs.ip;
	rec->site = 0;
	rec->call_start_ns = 0;
	rec->short_cpu_ns = seen ? calls_short_cpu(seen) : 0;
	/* nothing is changed here: the sample may have interrupted a probe of this very thread */
	if (!sample_known(t, seen)) {
		rec->rts.flags |= WIRE_RTS_CALLS_UNKNOWN;
	} else if (seen) {
		thread_refine(seen, &s->th, &rec->rts);
		open = calls_top(seen);
		rec->rts.flags |= called_back(t, seen, open, task->pid, s->th.incall);
		if (open) {
			rec->site = open->site;
			rec->call_start_ns = open->start_ns;
		}
	}
	g.w = &s->walk;
	g.maps = bpf_map_lookup_elem(&unwind_maps, &tgid);
	g.frames = (u64 *)(s->rec + sizeof(*rec));
	stg_init(&g, &t->layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	s->walk.updatees = !!(t->flags & WIRE_TARGET_UPDATEES);
	/* without a list of mappings there is no way to notice that they change */
	if (g.maps)
		s->walk.owner = (u64)tgid << 32 | g.maps->generation;
	if (kernel_stacks && in_kernel)
		kstack_put(ctx, s, g.frames);
	s->state.site = rec->site;
	rts_thread_stack(task, &s->th);
	walk_alone(s, t, g.maps, &rec->rts, (struct stg_frames *)g.frames);
	if (s->state.differs)
		count(WIRE_CNT_UNWIND_DIFFERS);
	if (seen)
		rts_thread_keep(seen, &s->th);
	stg_result(&s->walk, &rec->stack);
	ring_send(rec, sizeof(*rec), s->walk.n);
	if (rec->rts.where == WIRE_WHERE_HASKELL && !(t->flags & WIRE_TARGET_UNCONFIRMED))
		sample_allocated(t, s, task, now);
	if (seen && follow_tsos) {
		s->rts = rec->rts;
		tso_note(t, seen, s, &s->rts, task->tgid, task->pid, now);
		tso_look_round(t, s, (u64)task->tgid << 32 | task->pid, now);
	}
	return 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps, counters, and look-ups by process and thread. Kernel only. */
#ifndef SAFESCOPED_MAPS_BPF_H
#define SAFESCOPED_MAPS_BPF_H

#include "wire.h"
#include "rts.bpf.h"
#include "cstack.bpf.h"
#include "walk.bpf.h"

/* Set before load: the verifier removes what is off. */
const volatile __u32 wire_version = WIRE_VERSION;
const volatile __u32 wakeup_bytes = 1 << 20; /* unread bytes in the ring that wake user space */
/* Limits of stacks per target and second: at switch-out; at switch-out of preempted threads,
 * included in these; of allocation. */
const volatile __u64 off_stacks_per_sec = 1000;
const volatile __u64 preempted_stacks_per_sec = 500;
const volatile __u32 alloc_stacks_per_sec = 1000;
/* 1: a target gets no more stacks of preempted threads, and no more of allocation, than it has
 * samples. */
const volatile __u32 stacks_by_samples = 0;
/* One tick in this many, chosen at random, is taken if ticks come from the timer thread. */
const volatile __u32 tick_every = 1;
/* Short off-CPU intervals may be held back this long before they become a record (hold.bpf.h); 0:
 * never. */
const volatile __u64 hold_for_ns = 0;
const volatile __u32 kernel_stacks = 0; /* 1: kernel frames go on top of stacks */

const volatile __u32 follow_tsos = 0; /* report which Haskell thread runs */

const volatile __u64 held_up_ns = WIRE_HELD_UP_NS; /* when user space counts as held up */

/* 1: hold back no intervals at present, since user space is about to read what threads are
 * doing. */
__u32 hold_paused;

/* Last time that user space's loop turned; 0: the loop has not started. */
__u64 beat_ns;

/* One sample in this many, chosen at random, is taken; 0: all. */
__u32 sample_every;

/* The users' shares of the maps: by slot (struct wire_user), and in total. User space subtracts the
 * entries that it removes. */
struct wire_user users[WIRE_MAX_USERS];
__u32 all_threads, all_sites, all_targets;

/* Whose execs are reported: nobody's, those of processes in `family`, everybody's. */
enum follow { FOLLOW_NOBODY = 0, FOLLOW_FAMILY = 1, FOLLOW_ALL = 2 };
__u32 follow;

/* A command and its descendants: user space enters the command, forks add the others. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} family SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct wire_target_entry);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct wire_cost);
} costs SEC(".maps");

/* An entry is created at a target's first collection; user space removes it with the target. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct wire_heap_state);
} heaps SEC(".maps");

/* The same, created as a target's first Haskell thread stops. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct wire_off_tsos);
} off_tsos SEC(".maps");

/* Executables known to user space: a process that runs one is a target from its first
 * instruction. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct wire_program_key);
	__type(value, struct wire_target);
} programs SEC(".maps");

/*
 * These two are preallocated: with interrupts off, allocating an element on demand may fail, and a
 * switch or a call would be lost.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_THREADS);
	__type(key, u32);
	__type(value, struct wire_thread_entry);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_SITES);
	__type(key, struct wire_site_key);
	__type(value, struct wire_site);
} call_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, struct wire_off_stack);
} off_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_OPEN);
	__type(key, u32);
	__type(value, struct wire_open_at_start);
} open_at_start SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WIRE_CNT_MAX);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} ring SEC(".maps");

/*
 * Templates for new map values, which are too large for the stack: one per slot of `users`, so that
 * an entry has its user from the start. No other field of them is ever written.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_MAX_USERS);
	__type(key, u32);
	__type(value, struct wire_thread_entry);
} zero_thread SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_MAX_USERS);
	__type(key, u32);
	__type(value, struct wire_site);
} zero_site SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wire_heap_state);
} zero_heap SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct wire_off_tsos);
} zero_off_tsos SEC(".maps");

/* A record being built: a head of at most SCRATCH_HEAD bytes, followed by frames. */
#define SCRATCH_HEAD 136

#define KSTACK_FRAMES 32

struct scratch {
	u32 busy;
	u32 _pad;
	struct rts_thread th;
	struct stg_walk walk;
	struct cstack_scan scan;
	struct unw unw;
	struct walk_state state;
	struct wire_rts rts;   /* of a record that has been sent already */
	struct walk_regs regs; /* here because a program and its callees share 512 bytes of stack */
	u64 kernel[KSTACK_FRAMES];
	u8 rec[SCRATCH_HEAD + STG_FRAMES_ROOM * sizeof(u64)];
};

/*
 * For programs that run with interrupts off (the sampler in the timer interrupt, and sched_switch)
 * one slot per CPU for each of the two is enough.
 */
enum cpu_slot { SLOT_SAMPLE = 0, SLOT_SWITCH = 1, SLOT_MAX = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOT_MAX);
	__type(key, u32);
	__type(value, struct scratch);
} cpu_scratch SEC(".maps");

/* uprobe programs can be preempted and can nest, so their slots are claimed by a flag. */
#define CALL_SLOTS 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALL_SLOTS);
	__type(key, u32);
	__type(value, struct scratch);
} call_scratch SEC(".maps");

/*
 * One bit per tgid, set while it is a key of `targets`: every switch and wake-up on the host checks
 * it first, which costs one load. A stale bit only costs a useless look-up.
 */
__u64 target_bits[WIRE_MAX_PIDS / 64];

SS_INLINE u64 *target_word(u32 tgid)
{
	u32 i = (tgid & (WIRE_MAX_PIDS - 1)) >> 6;

	ss_barrier(i);
	return &target_bits[i & (WIRE_MAX_PIDS / 64 - 1)];
}

/*
 * Succeeds only while half of the map is free: processes found by user space need entries as well,
 * and only user space knows which one takes precedence.
 */
SS_INLINE long target_add(u32 tgid, const struct wire_target_entry *t)
{
	long err;

	if (all_targets >= WIRE_MAX_TARGETS / 2)
		return -1;
	err = bpf_map_update_elem(&targets, &tgid, t, BPF_NOEXIST);
	if (err)
		return bpf_map_update_elem(&targets, &tgid, t, BPF_EXIST);
	__sync_fetch_and_add(&all_targets, 1);
	__sync_fetch_and_or(target_word(tgid), 1ULL << (tgid & 63));
	return 0;
}

SS_INLINE void target_remove(u32 tgid)
{
	__sync_fetch_and_and(target_word(tgid), ~(1ULL << (tgid & 63)));
	if (!bpf_map_delete_elem(&targets, &tgid))
		__sync_fetch_and_add(&all_targets, -1);
}

/* `t` must come from target_of(). */
SS_INLINE struct wire_target_entry *target_entry(struct wire_target *t)
{
	return (struct wire_target_entry *)t;
}

SS_INLINE struct wire_user *user_at(u32 slot)
{
	slot &= WIRE_MAX_USERS - 1;
	ss_barrier(slot);
	return &users[slot & (WIRE_MAX_USERS - 1)];
}

SS_INLINE u32 user_of(u32 tgid)
{
	const struct wire_target *t = bpf_map_lookup_elem(&targets, &tgid);

	return t ? t->user & (WIRE_MAX_USERS - 1) : 0;
}

/* Adds one entry to the user's account, if wire_share_fits() allows it. */
SS_INLINE int user_takes(u32 *all, u32 *his, u32 max)
{
	if (!wire_share_fits(max, *all, *his, 1))
		return 0;
	__sync_fetch_and_add(all, 1);
	__sync_fetch_and_add(his, 1);
	return 1;
}

SS_INLINE void user_leaves(u32 *all, u32 *his)
{
	__sync_fetch_and_add(all, -1);
	__sync_fetch_and_add(his, -1);
}

SS_INLINE void count_n(u32 which, u64 n)
{
	u64 *c = bpf_map_lookup_elem(&counters, &which);

	if (c)
		__sync_fetch_and_add(c, n);
}

SS_INLINE void count(u32 which)
{
	count_n(which, 1);
}

SS_INLINE int target_may_be(u32 tgid)
{
	return *target_word(tgid) >> (tgid & 63) & 1;
}

/* The target entry of this process, if it is still the process that user space inspected. */
SS_INLINE struct wire_target *target_of(struct task_struct *task)
{
	u32 tgid = task->tgid;
	struct wire_target *t;

	if (!target_may_be(tgid))
		return 0;
	t = bpf_map_lookup_elem(&targets, &tgid);
	if (!t)
		return 0;
	/* /proc has the start time in clock ticks: equal up to one tick */
	if (t->start_boottime_ns) {
		u64 start = task->group_leader->start_boottime;

		if (start < t->start_boottime_ns || start - t->start_boottime_ns > 20000000)
			return 0;
	}
	return t;
}

/*
 * While user space is held up, the keeper removes the probes without it
 * (user/kernel/keeper_priv.h). They count as off from shortly before that, until user space writes
 * the target's entry again.
 */
SS_INLINE void target_held_up(struct wire_target *t, u64 now)
{
	if (beat_ns && (s64)(now - beat_ns) > (s64)held_up_ns &&
	    !(t->flags & WIRE_TARGET_PROBES_OFF))
		__sync_fetch_and_or(&t->flags, WIRE_TARGET_PROBES_OFF);
}

/* The current time; marks the target's probes as off if user space is held up. */
SS_INLINE u64 target_now(struct wire_target *t)
{
	u64 now = bpf_ktime_get_ns();

	target_held_up(t, now);
	return now;
}

/* A slot that the caller owns until scratch_release(); NULL if none is free. */
SS_INLINE struct scratch *scratch_claim(void)
{
	u32 first = bpf_get_smp_processor_id() * 4;

#pragma GCC unroll 4
	for (u32 i = 0; i < 4; i++) {
		u32 k = (first + i) & (CALL_SLOTS - 1);
		struct scratch *s = bpf_map_lookup_elem(&call_scratch, &k);

		if (s && !__sync_val_compare_and_swap(&s->busy, 0, 1))
			return s;
	}
	count(WIRE_CNT_LOST_SCRATCH);
	return 0;
}

SS_INLINE void scratch_release(struct scratch *s)
{
	__sync_lock_test_and_set(&s->busy, 0);
}

SS_INLINE struct wire_thread *thread_find(u32 tid)
{
	return bpf_map_lookup_elem(&threads, &tid);
}

SS_INLINE struct wire_thread_entry *thread_entry(struct wire_thread *seen)
{
	return (struct wire_thread_entry *)seen;
}

SS_INLINE void thread_drop(u32 tid)
{
	struct wire_thread *th = thread_find(tid);
	u32 slot;

	if (!th)
		return;
	slot = th->user;
	if (!bpf_map_delete_elem(&threads, &tid))
		user_leaves(&all_threads, &user_at(slot)->threads);
}

/* tgid is set last: an entry with a tgid is complete. */
SS_INLINE void thread_begin(struct wire_thread *th, u32 tgid, u32 epoch)
{
	if (th->tgid)
		return;
	th->epoch = epoch;
	ss_barrier(epoch);
	th->tgid = tgid;
}

SS_INLINE struct wire_thread *thread_add(u32 tgid, u32 tid, u32 epoch)
{
	u32 slot = user_of(tgid);
	struct wire_thread *zero = bpf_map_lookup_elem(&zero_thread, &slot), *th;
	struct wire_user *user = user_at(slot);

	if (!zero)
		return 0;
	if (!user_takes(&all_threads, &user->threads, WIRE_MAX_THREADS)) {
		__sync_fetch_and_add(&user->refused_threads, 1);
		return 0;
	}
	zero->user = slot;
	if (bpf_map_update_elem(&threads, &tid, zero, BPF_NOEXIST)) {
		user_leaves(&all_threads, &user_at(slot)->threads);
		/* a switch may have created it just now */
		th = thread_find(tid);
		if (th && th->tgid == tgid)
			return th;
		count(WIRE_CNT_LOST_THREADS);
		return 0;
	}
	th = thread_find(tid);
	if (th)
		thread_begin(th, tgid, epoch);
	return th;
}

/*
 * `epoch`: for a new entry, see struct wire_thread. Not to be called by the sampler, which may have
 * interrupted an update of the same map. A switch may find an entry that the preempted probe is
 * still creating, and completes it.
 */
SS_INLINE struct wire_thread *thread_get(u32 tgid, u32 tid, u32 epoch)
{
	struct wire_thread *th = thread_find(tid);

	if (th) {
		thread_begin(th, tgid, epoch);
		if (th->tgid == tgid)
			return th;
		/* left by a thread that had the tid before */
		thread_drop(tid);
	}
	return thread_add(tgid, tid, epoch);
}

/* Without stack_start, which only a walk of the C stack needs. `seen` may be NULL. */
SS_INLINE void rts_thread_of(struct task_struct *task, const struct wire_thread *seen,
			     struct rts_thread *th)
{
	th->stack_start = 0;
	th->stgrun_at = seen ? seen->stgrun_at : 0;
	th->stgrun_incall = seen ? seen->stgrun_incall : 0;
	th->fsbase = ARCH_THREAD_POINTER(task);
	th->tid = task->pid;
	th->tgid = task->tgid;
	th->task = 0;
	th->incall = 0;
}

/* Reads stack_start: by a helper, because each pointer to a kernel object that is loaded directly
 * costs the verifier searches of the kernel's whole BTF. */
SS_INLINE void rts_thread_stack(struct task_struct *task, struct rts_thread *th)
{
	if (task->pid == task->tgid)
		th->stack_start = BPF_CORE_READ(task, mm, start_stack);
}

/* Keeps what a walk found, for the next walk. */
SS_INLINE void rts_thread_keep(struct wire_thread *seen, const struct rts_thread *th)
{
	seen->stgrun_at = th->stgrun_at;
	seen->stgrun_incall = th->stgrun_incall;
}

SS_INLINE void fill_header(struct wire_hdr *h, u32 type, u64 now, u32 tgid, u32 tid)
{
	h->ns = now;
	h->tgid = tgid;
	h->tid = tid;
	h->type = type;
	h->cpu = bpf_get_smp_processor_id();
}

SS_INLINE u64 ring_wakeup(void)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wakeup_bytes ? BPF_RB_FORCE_WAKEUP
									   : BPF_RB_NO_WAKEUP;
}

/* Sends a record whose header has its size, and counts it. `wakeup`: a flag of the ring, whether
 * user space is woken. Returns 0, or -1 if it is lost. */
SS_INLINE int ring_put(void *rec, u64 size, u64 wakeup)
{
	if (bpf_ringbuf_output(&ring, rec, size, wakeup)) {
		count(WIRE_CNT_LOST_RING);
		return -1;
	}
	count(WIRE_CNT_RECORDS);
	return 0;
}

/* Sends a record of `head` bytes, followed by nframes frames. Returns 0, or -1 if it is lost. */
SS_INLINE int ring_send(void *rec, u32 head, u32 nframes)
{
	u32 size;

	nframes &= STG_FRAMES_ROOM - 1;
	size = head + nframes * (u32)sizeof(u64);
	ss_barrier(size);
	if (size > SCRATCH_HEAD + STG_FRAMES_ROOM * sizeof(u64))
		return -1;
	((struct wire_hdr *)rec)->size = size;
	return ring_put(rec, size, ring_wakeup());
}

#endif

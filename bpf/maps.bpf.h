/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps, the counters, and the look-ups by process and thread. Kernel only. */
#ifndef SAFESCOPED_MAPS_BPF_H
#define SAFESCOPED_MAPS_BPF_H

#include "wire.h"
#include "rts.bpf.h"
#include "cstack.bpf.h"
#include "walk.bpf.h"

/* Set before load: what is off costs nothing. */
const volatile __u32 wire_version = WIRE_VERSION;
const volatile __u32 wakeup_bytes = 1 << 20; /* unread bytes in the ring that wake user space */
/* Stacks for each target and second, at most: at switch-out; of these, of threads that were
 * preempted; of allocation. */
const volatile __u64 off_stacks_per_sec = 1000;
const volatile __u64 preempted_stacks_per_sec = 500;
const volatile __u32 alloc_stacks_per_sec = 1000;
/* 1: of preempted threads and of allocation there are no more stacks than samples of the target. */
const volatile __u32 stacks_by_samples = 0;
/* Of so many ticks of a timer's thread one is taken, by chance. */
const volatile __u32 tick_every = 1;
/* Short stays off the CPU may wait for so long to become a record, see hold.bpf.h; 0: none does. */
const volatile __u64 hold_for_ns = 0;
const volatile __u32 kernel_stacks = 0; /* 1: kernel frames on top */

const volatile __u32 follow_tsos = 0; /* report which Haskell thread runs */

const volatile __u64 held_up_ns = WIRE_HELD_UP_NS; /* how long it may be held up */

/* 1: none is held at present, since user space is about to read what threads are doing. */
__u32 hold_paused;

/* When user space's loop turned last; 0: it has not begun. */
__u64 beat_ns;

/* One sample in so many is taken, by chance; 0: all. */
__u32 sample_every;

/* What users have of the maps: by slot (struct wire_user), and all together. User space takes from
 * it what it removes. */
struct wire_user users[WIRE_MAX_USERS];
__u32 all_threads, all_sites, all_targets;

/* Whose execs are reported: nobody's, those of the processes in `family`, everybody's. */
enum follow { FOLLOW_NOBODY = 0, FOLLOW_FAMILY = 1, FOLLOW_ALL = 2 };
__u32 follow;

/* A command and what it has started: user space puts the first in, forks bring the others. */
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

/* Made as a target's first collection is seen; user space removes it with the target. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WIRE_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct wire_heap_state);
} heaps SEC(".maps");

/* Executables that were looked at: who runs one of them is a target from its first instruction. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct wire_program_key);
	__type(value, struct wire_target);
} programs SEC(".maps");

/*
 * These two are allocated beforehand: with interrupts off there may be no memory for an element
 * that is made on demand, and a switch or a call would be lost.
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
 * Templates for new map values, too large for the stack: one for each slot of `users`, so that an
 * entry has its user from the moment it is there. Nothing else in them is ever written.
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

/* A record in the making: a head of at most SCRATCH_HEAD bytes, then frames. */
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
	struct wire_rts rts;   /* of a record that has been sent */
	struct walk_regs regs; /* here, for a program and all that it calls share 512 bytes */
	u64 kernel[KSTACK_FRAMES];
	u8 rec[SCRATCH_HEAD + STG_FRAMES_ROOM * sizeof(u64)];
};

/*
 * For programs that run with interrupts off (the sampler's timer interrupt and sched_switch) a slot
 * for each CPU and each of the two is enough.
 */
enum cpu_slot { SLOT_SAMPLE = 0, SLOT_SWITCH = 1, SLOT_MAX = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOT_MAX);
	__type(key, u32);
	__type(value, struct scratch);
} cpu_scratch SEC(".maps");

/* uprobe programs can be preempted and can nest: their slots are claimed by a flag. */
#define CALL_SLOTS 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALL_SLOTS);
	__type(key, u32);
	__type(value, struct scratch);
} call_scratch SEC(".maps");

/*
 * One bit for each tgid, set while it is a key of `targets`: every switch and wake-up on the host
 * looks here first, at the price of one load. A bit that is left set costs a look-up in vain.
 */
__u64 target_bits[WIRE_MAX_PIDS / 64];

SS_INLINE u64 *target_word(u32 tgid)
{
	u32 i = (tgid & (WIRE_MAX_PIDS - 1)) >> 6;

	ss_barrier(i);
	return &target_bits[i & (WIRE_MAX_PIDS / 64 - 1)];
}

/*
 * Only while there is much room: whom user space looks at first needs an entry too, and it alone
 * knows whose turn it is.
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

/* Of one that target_of() has found. */
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

/* One more for him, if the rule of shares allows it. */
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

/* The target that this process is, if it is still the one that user space looked at. */
SS_INLINE struct wire_target *target_of(struct task_struct *task)
{
	u32 tgid = task->tgid;
	struct wire_target *t;

	if (!target_may_be(tgid))
		return 0;
	t = bpf_map_lookup_elem(&targets, &tgid);
	if (!t)
		return 0;
	/* /proc has the start in clock ticks: equal up to one of them */
	if (t->start_boottime_ns) {
		u64 start = task->group_leader->start_boottime;

		if (start < t->start_boottime_ns || start - t->start_boottime_ns > 20000000)
			return 0;
	}
	return t;
}

/*
 * While user space is held up its probes come off without its doing (user/kernel/keeper_priv.h):
 * they count as off from before that on, until user space has put the target's entry here anew.
 */
SS_INLINE void target_held_up(struct wire_target *t, u64 now)
{
	if (beat_ns && (s64)(now - beat_ns) > (s64)held_up_ns &&
	    !(t->flags & WIRE_TARGET_PROBES_OFF))
		__sync_fetch_and_or(&t->flags, WIRE_TARGET_PROBES_OFF);
}

/* The time, for what concerns one target. */
SS_INLINE u64 target_now(struct wire_target *t)
{
	u64 now = bpf_ktime_get_ns();

	target_held_up(t, now);
	return now;
}

/* A slot that no other program uses until it is given back. NULL: none free. */
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

/* An entry has no tgid before all else is in it. */
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
		/* a switch may have made it just now */
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
 * `epoch`: a new entry's, see struct wire_thread. Not from the sampler: it may have interrupted an
 * update of the same map. A switch may find an entry that the probe it preempts is making: it
 * completes it.
 */
SS_INLINE struct wire_thread *thread_get(u32 tgid, u32 tid, u32 epoch)
{
	struct wire_thread *th = thread_find(tid);

	if (th) {
		thread_begin(th, tgid, epoch);
		if (th->tgid == tgid)
			return th;
		/* of a thread that had the number before */
		thread_drop(tid);
	}
	return thread_add(tgid, tid, epoch);
}

/* `seen` may be NULL. */
SS_INLINE void rts_thread_of(struct task_struct *task, const struct wire_thread *seen,
			     struct rts_thread *th)
{
	struct mm_struct *mm = task->pid == task->tgid ? task->mm : 0;

	th->stack_start = mm ? mm->start_stack : 0;
	th->stgrun_at = seen ? seen->stgrun_at : 0;
	th->stgrun_incall = seen ? seen->stgrun_incall : 0;
	th->fsbase = ARCH_THREAD_POINTER(task);
	th->tid = task->pid;
	th->tgid = task->tgid;
	th->task = 0;
	th->incall = 0;
}

/* What a walk learnt, for the next one. */
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

/* Sends a record of `head` bytes and nframes frames after it. */
/* 0, or -1: it is lost. */
SS_INLINE int ring_send(void *rec, u32 head, u32 nframes)
{
	u32 size;

	nframes &= STG_FRAMES_ROOM - 1;
	size = head + nframes * (u32)sizeof(u64);
	ss_barrier(size);
	if (size > SCRATCH_HEAD + STG_FRAMES_ROOM * sizeof(u64))
		return -1;
	((struct wire_hdr *)rec)->size = size;
	if (bpf_ringbuf_output(&ring, rec, size, ring_wakeup())) {
		count(WIRE_CNT_LOST_RING);
		return -1;
	}
	count(WIRE_CNT_RECORDS);
	return 0;
}

#endif

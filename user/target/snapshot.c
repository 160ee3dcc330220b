/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot: every thread of the process with its Task, InCall, state and, in a safe call, the
 * Haskell stack and the call's site. Only this shows threads that cause no event (asleep in a call
 * since before the attach, or an idle worker). All of it runs in a killable child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/search.h"
#include "process/mem.h"
#include "names/names.h"
#include "target_priv.h"

/* The kernel's __u64 and uint64_t have the same size but are different types: the walker uses the
 * latter. */
#include "mem.bpf.h"
#include "stg.bpf.h"
#include "cstack.bpf.h"
#include "rts.bpf.h"

#define SNAPSHOT_MAX_THREADS 16384
/* glibc 2.36 has the tid at 720 in the TCB, musl 1.2 at 48: the offset is searched for in this
 * range. */
#define TCB_SCAN 1024
/* Frames that fit into a snap_thread: leaf, the mark of what is left out, root. */
#define LEAF_FRAMES (WIRE_OFF_FRAMES - ROOT_FRAMES - 4)
#define ROOT_FRAMES 32
/* How often and how long to wait for a thread in a safe call to leave the CPU. */
#define RUNNING_TRIES	5
#define RUNNING_WAIT_NS 200000
/* Otherwise this much of its stack is searched, from the top: StgRun is among the outermost
 * frames. */
#define STACK_DEPTH (256 << 10)
/* The code after a safe call is in the same function, within this distance of the call. */
#define BESIDE (16 << 10)

struct snap_mem {
	struct mem mem; /* first: the walker's handle */
	pid_t pid;
};

struct snap_out {
	uint64_t n;
	struct snap_thread threads[];
};

struct task_thread {
	uint64_t task;
	uint64_t id; /* fs base of its thread */
	pid_t tid;   /* 0: not found */
};

/* A thread and its number in the process's own PID namespace, which is the one in its TCB. */
struct thread_id {
	uint32_t ns_tid;
	pid_t tid;
};

struct snap_ctx {
	struct target *target;
	size_t room;
	struct snap_mem mem;
	struct task_list *list;
	struct task_thread *tasks;
	size_t n_tasks;
	struct thread_id *ids; /* ascending by ns_tid */
	size_t n_ids;
	uint64_t *frames; /* buffer of the walker */
};

static int read_mem(struct mem *mem, void *dst, u32 size, u64 addr)
{
	return mem__read(((struct snap_mem *)mem)->pid, addr, dst, size);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = ((const struct thread_id *)a)->ns_tid,
		 y = ((const struct thread_id *)b)->ns_tid;

	return x < y ? -1 : x > y;
}

static int collect_threads(struct snap_ctx *c)
{
	bool shifted = c->target->info.ns_pid != c->mem.pid;
	pid_t *tids, ns;
	size_t n;
	int err;

	err = proc__threads(c->mem.pid, &tids, &n);
	if (err < 0)
		return err;
	n = MIN(n, c->room);
	c->ids = calloc(n + 1, sizeof(*c->ids));
	for (size_t i = 0; c->ids && i < n; i++) {
		ns = tids[i];
		if (shifted && proc__ns_pid(c->mem.pid, tids[i], &ns) < 0)
			continue;
		c->ids[c->n_ids++] = (struct thread_id){.ns_tid = (uint32_t)ns, .tid = tids[i]};
	}
	free(tids);
	if (!c->ids)
		return -ENOMEM;
	qsort(c->ids, c->n_ids, sizeof(*c->ids), compare_ids);
	return 0;
}

static pid_t tid_of(const struct snap_ctx *c, uint32_t ns_tid)
{
	size_t at = search__first(c->n_ids, i, c->ids[i].ns_tid >= ns_tid);

	return at < c->n_ids && c->ids[at].ns_tid == ns_tid ? c->ids[at].tid : 0;
}

/* Collects the Tasks whose threads' my_task points back at them, which shows that the threads
 * live. */
static int collect_tasks(struct snap_ctx *c)
{
	const struct wire_target *w = &c->target->info.wire;
	const struct check_result *check = &c->target->check;

	c->list = calloc(1, sizeof(*c->list));
	c->tasks = calloc(CHECK_MAX_TASKS, sizeof(*c->tasks));
	if (!c->list || !c->tasks)
		return -ENOMEM;
	if (!c->target->rts.threaded || !check->tls_checked)
		return 0;
	check__tasks(c->mem.pid, &c->target->rts, &check->layout, check->caps, check->n_caps,
		     c->list);
	for (uint32_t i = 0; i < c->list->n; i++) {
		struct task_thread t = {.task = c->list->tasks[i]};
		uint64_t back;

		if (mem__read_u64(c->mem.pid, t.task + w->layout.task_id, &t.id) < 0 || !t.id ||
		    rts_my_task(&c->mem.mem, w, t.id, &back) || back != t.task)
			continue;
		c->tasks[c->n_tasks++] = t;
	}
	return 0;
}

/*
 * The number of words at one offset of all TCBs that are tids of this process, all different.
 * Others must be 0, as the kernel leaves them when a thread ends, or -1, as the C library does when
 * it was joined. 0: the words are something else.
 */
static size_t count_tids(const struct snap_ctx *c, uint32_t (*tcbs)[TCB_SCAN / 4], size_t word)
{
	size_t n = 0;

	for (size_t t = 0; t < c->n_tasks; t++) {
		uint32_t v = tcbs[t][word];

		if (!v || v == UINT32_MAX)
			continue;
		if (!tid_of(c, v))
			return 0;
		for (size_t before = 0; before < t; before++)
			if (tcbs[before][word] == v)
				return 0;
		n++;
	}
	return n;
}

/*
 * Task.id is the thread's pthread_t, at which the C library keeps its TCB, which contains its tid.
 * As its offset differs between libraries and versions, it is determined as the one at which the
 * most Tasks have a tid of this process. A thread that has ended may have left its Task and its
 * TCB.
 */
static int match_tids(struct snap_ctx *c)
{
	uint32_t(*tcbs)[TCB_SCAN / 4] = calloc(c->n_tasks + 1, sizeof(*tcbs));
	size_t kept = 0, best = 0, at = 0;

	if (!tcbs)
		return -ENOMEM;
	for (size_t t = 0; t < c->n_tasks; t++) {
		/* A thread that has ended meanwhile has no TCB. */
		if (mem__read(c->mem.pid, c->tasks[t].id, tcbs[kept], TCB_SCAN) < 0)
			continue;
		c->tasks[kept++] = c->tasks[t];
	}
	c->n_tasks = kept;
	for (size_t w = 0; w < TCB_SCAN / 4; w++) {
		size_t n = count_tids(c, tcbs, w);

		if (n > best) {
			best = n;
			at = w;
		}
	}
	for (size_t t = 0; t < c->n_tasks; t++)
		c->tasks[t].tid = best ? tid_of(c, tcbs[t][at]) : 0;
	if (!best)
		c->n_tasks = 0;
	free(tcbs);
	return 0;
}

/*
 * The site of the call made by Haskell code above the StgRun frame whose return address is at `at`:
 * the foreign function's return address is right below that frame (rts/StgCRun.c). The caller may
 * or may not have aligned the stack by `sub $8,%rsp`. 0: it made no such call.
 */
static uint64_t site_above(const struct snap_ctx *c, uint64_t at)
{
	uint64_t ra[2], site;

	if (mem__read(c->mem.pid, at - CSTACK_STGRUN_FRAME - sizeof(ra), ra, sizeof(ra)) < 0)
		return 0;
	for (int k = 0; k < 2; k++)
		if (names__find_site(c->target->names, ra[k], &site) == 0)
			return site;
	return 0;
}

/* The site of the foreign function that the thread is in, searched from its stack pointer
 * upward. */
static uint64_t find_site(const struct snap_ctx *c, uint64_t sp)
{
	uint64_t stgrun_ret = c->target->info.wire.stgrun_ret, words[512], at, end;

	if (!stgrun_ret || !sp || (sp & 7))
		return 0;
	end = sp + CSTACK_STGRUN_FRAME + CSTACK_MAX_DEPTH;
	for (at = sp + CSTACK_STGRUN_FRAME; at < end; at += sizeof(words)) {
		size_t n = ARRAY_SIZE(words);

		while (n > 0 && mem__read(c->mem.pid, at, words, n * 8) < 0)
			n /= 2;
		for (size_t i = 0; i < n; i++)
			if (words[i] == stgrun_ret)
				return site_above(c, at + 8 * i);
		if (n < ARRAY_SIZE(words))
			return 0;
	}
	return 0;
}

/*
 * The address at which a suspended Haskell thread continues: the code that its call's site jumps
 * to, which GHC puts next to it. 0: not known.
 */
static uint64_t find_continuation(struct snap_ctx *c, uint64_t tso)
{
	const struct wire_layout *l = &c->target->info.wire.layout;
	uint64_t obj, sp, info;

	if (!tso || mem__read_u64(c->mem.pid, tso + l->tso_stackobj, &obj) < 0 ||
	    mem__read_u64(c->mem.pid, obj + l->stack_sp, &sp) < 0 ||
	    mem__read_u64(c->mem.pid, sp, &info) < 0)
		return 0;
	return info;
}

/*
 * Like find_site(), for a thread on the CPU, whose stack pointer is not available: searches from
 * the top of its stack downward. To rule out leftovers of calls that have returned, the site must
 * be next to the code at which the suspended Haskell thread continues.
 */
static uint64_t find_running_site(struct snap_ctx *c, uint64_t top, uint64_t tso)
{
	uint64_t stgrun_ret = c->target->info.wire.stgrun_ret, words[512], at, end, site;
	uint64_t continuation = find_continuation(c, tso);

	if (!stgrun_ret || !continuation || (top & 7) || top <= STACK_DEPTH)
		return 0;
	for (end = top; end > top - STACK_DEPTH; end = at) {
		/* page by page: the page below may not be mapped */
		at = (end - 1) & ~(uint64_t)(sizeof(words) - 1);
		if (mem__read(c->mem.pid, at, words, end - at) < 0)
			return 0;
		for (size_t i = (end - at) / 8; i-- > 0;) {
			if (words[i] != stgrun_ret)
				continue;
			site = site_above(c, at + 8 * i);
			if (site && MAX(site, continuation) - MIN(site, continuation) < BESIDE)
				return site;
		}
	}
	return 0;
}

static void walk_suspended(struct snap_ctx *c, struct snap_thread *th)
{
	const struct wire_target *w = &c->target->info.wire;
	struct stg_walk walk = {0};
	struct stg g = {.mem = &c->mem.mem, .w = &walk, .frames = c->frames};

	stg_init(&g, &w->layout, LEAF_FRAMES, ROOT_FRAMES);
	if (th->site)
		stg_put(&g, WIRE_FRAME_SITE, th->site);
	rts_walk_suspended(&g, w, th->incall, th->rts.tso);
	stg_result(&walk, &th->stack);
	if (th->stack.nframes > WIRE_OFF_FRAMES)
		th->stack.nframes = WIRE_OFF_FRAMES;
	memcpy(th->frames, c->frames, th->stack.nframes * sizeof(th->frames[0]));
}

/* The C library puts a thread's TCB at the top of its stack. 0: not known. */
static uint64_t stack_top(const struct snap_ctx *c, const struct rts_thread *rt,
			  const struct proc_stat *st)
{
	return rt->tid == (u32)c->mem.pid ? st->start_stack : rt->fsbase;
}

static void look_at(struct snap_ctx *c, pid_t tid, struct snap_thread *th)
{
	const struct wire_target *w = &c->target->info.wire;
	struct rts_thread rt = {.tid = (u32)tid, .tgid = (u32)c->mem.pid};
	struct proc_syscall sc = {.nr = WIRE_NO_SYSCALL};
	struct proc_stat st = {.state = '?'};
	struct timespec wait = {.tv_nsec = RUNNING_WAIT_NS};

	th->tid = tid;
	proc__stat(c->mem.pid, tid, &st);
	memcpy(th->comm, st.comm, sizeof(th->comm));
	th->state = st.state;
	th->start_time_ns = proc__ticks_to_ns(st.start_ticks);
	proc__syscall(c->mem.pid, tid, &sc);
	th->syscall = sc.nr;
	th->rts.cap_no = WIRE_NO_CAP;
	th->rts.where = WIRE_WHERE_FOREIGN;

	if (c->target->rts.threaded) {
		for (size_t i = 0; i < c->n_tasks && !rt.fsbase; i++)
			if (c->tasks[i].tid == tid)
				rt.fsbase = c->tasks[i].id;
		if (!rt.fsbase) {
			/* Without any Task, nothing is known of any thread. */
			if (c->n_tasks == 0)
				th->rts.where = WIRE_WHERE_UNKNOWN;
			return;
		}
	}
	rts_read(&c->mem.mem, w, &rt, &th->rts);
	th->incall = rt.incall;
	if (th->rts.where == WIRE_WHERE_SAFE_CALL) {
		/* The stack pointer is available only while the thread is off the CPU; a signal
		 * handler is soon over. */
		for (int i = 0; sc.running && i < RUNNING_TRIES; i++) {
			nanosleep(&wait, NULL);
			proc__syscall(c->mem.pid, tid, &sc);
			th->syscall = sc.nr;
		}
		th->site = sc.running ? find_running_site(c, stack_top(c, &rt, &st), th->rts.tso)
				      : find_site(c, sc.sp);
		walk_suspended(c, th);
	}
}

/* Runs in the child. */
static int run(void *ctx, void *out)
{
	struct snap_ctx *c = ctx;
	struct snap_out *o = out;
	int err;

	c->frames = calloc(STG_FRAMES_ROOM, sizeof(*c->frames));
	if (!c->frames)
		return -ENOMEM;
	err = collect_threads(c);
	if (err == 0)
		err = collect_tasks(c);
	if (err == 0)
		err = match_tids(c);
	for (size_t i = 0; err == 0 && i < c->n_ids; i++) {
		look_at(c, c->ids[i].tid, &o->threads[i]);
		o->n = i + 1;
	}
	return err;
}

/* The child has read hostile memory, so its result is bounded once more. */
static void copy_thread(struct snap_thread *to, const struct snap_thread *from)
{
	*to = *from;
	to->start_time_ns = time__of_boottime_ns(from->start_time_ns);
	to->comm[sizeof(to->comm) - 1] = '\0';
	if (to->stack.nframes > WIRE_OFF_FRAMES)
		to->stack.nframes = WIRE_OFF_FRAMES;
}

struct snapshot_look {
	struct guard *guard;
	size_t room, size;
};

static void free_look(struct snapshot_look *look)
{
	if (!look)
		return;
	guard__free(look->guard);
	free(look);
}

void target__cancel(struct target *t)
{
	check__free(t->checking);
	t->checking = NULL;
	free_look(t->snapshot);
	t->snapshot = NULL;
	census_look__free(t->census);
	t->census = NULL;
	guard__free(t->living);
	t->living = NULL;
}

int target__start_snapshot(struct target *target, int timeout_ms)
{
	struct snap_ctx c = {
		.target = target,
		.mem = {.mem = {.read = read_mem}, .pid = target->info.pid},
	};
	struct snapshot_look *look;
	pid_t *tids;
	size_t n;
	int err;

	if (!target->info.layout_checked)
		return -EAGAIN;
	err = proc__threads(target->info.pid, &tids, &n);
	if (err < 0)
		return err;
	free(tids);
	look = calloc(1, sizeof(*look));
	if (!look)
		return -ENOMEM;
	/* Threads created meanwhile are reported by the probes. */
	c.room = look->room = MIN(n + 64, (size_t)SNAPSHOT_MAX_THREADS);
	look->size = sizeof(struct snap_out) + look->room * sizeof(struct snap_thread);
	target__cancel(target);
	err = guard__start(c.mem.pid, GUARD_PROC, timeout_ms, run, &c, look->size, &look->guard);
	if (err)
		free(look);
	else
		target->snapshot = look;
	return err;
}

static int copy_out(const struct snapshot_look *look, const struct snap_out *out,
		    struct snapshot *ret_snapshot)
{
	size_t n = MIN(out->n, look->room);
	struct snap_thread *threads = calloc(n + 1, sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		copy_thread(&threads[i], &out->threads[i]);
	ret_snapshot->threads = threads;
	ret_snapshot->n = n;
	return 0;
}

int target__take_snapshot(struct target *target, struct snapshot *ret_snapshot)
{
	struct snapshot_look *look = target->snapshot;
	void *out;
	int err;

	if (!look)
		return -EINVAL;
	if (target__names_fd(target) >= 0)
		return -EINPROGRESS;
	err = guard__take(look->guard, &out);
	if (err == -EINPROGRESS)
		return err;
	if (!err) {
		err = copy_out(look, out, ret_snapshot);
		mem__guard_free(out, look->size);
	}
	look->guard = NULL;
	target__cancel(target);
	return err;
}

int snapshot_look__fd(const struct snapshot_look *look)
{
	return guard__fd(look->guard);
}

uint64_t snapshot_look__due_ns(const struct snapshot_look *look)
{
	return guard__due_ns(look->guard);
}

void snapshot__free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->threads);
	snapshot->threads = NULL;
	snapshot->n = 0;
}

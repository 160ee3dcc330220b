/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the offsets in GHC's runtime that safescoped needs: a program that scripts/gen-layouts
 * compiles against the headers that a GHC installs, once for each way (-DTHREADED_RTS,
 * -DPROFILING), and once more without the clock in a Condition (see enum layout_variant in
 * user/rts/layout.h).
 *
 * Capability, Task and InCall are private to the runtime: their headers are in GHC's source tree
 * (rts/Capability.h, rts/Task.h), which -DGHC_SOURCE includes. Without a source tree the order of
 * their fields is that of 8.10 to 9.14, below. The installed DerivedConstants.h has some offsets of
 * Capability, which must agree with it; nothing that is installed describes the other two.
 */
#include "ghcautoconf.h"
#undef HAVE_PTHREAD_CONDATTR_SETCLOCK
#if defined(LAYOUT_CLOCK)
#define HAVE_PTHREAD_CONDATTR_SETCLOCK 1
#undef HAVE_CLOCK_GETTIME
#define HAVE_CLOCK_GETTIME 1
#endif

#include "ghcversion.h"
#include "Rts.h"
#include "DerivedConstants.h"

#include <stddef.h>
#include <stdio.h>

#if defined(GHC_SOURCE)
#include "Capability.h"
#include "Task.h"

#define CAPABILITY(field) offsetof(Capability, field)
#define SPARE_WORKERS	  CAPABILITY(spare_workers)
#define RETURNING_TASKS	  CAPABILITY(returning_tasks_hd)
#define RUN_QUEUE	  CAPABILITY(run_queue_hd)
#else
/* Up to `mut_lists`, whose offset is installed. */
struct described_capability {
	StgFunTable f;
	StgRegTable r;
	uint32_t no, node;
	void *running_task;
	bool in_haskell;
	uint32_t idle;
	bool disabled;
	StgTSO *run_queue[2];
	uint32_t n_run_queue;
	void *suspended_ccalls;
	uint32_t n_suspended_ccalls;
	void *mut_lists;
};

struct described_incall {
	StgTSO *tso, *suspended_tso;
	void *suspended_cap;
	int status;
	void *ret, *task, *prev_stack, *prev, *next;
};

struct described_task {
#if defined(THREADED_RTS)
	OSThreadId id;
	uint32_t node;
	Condition cond;
	Mutex lock;
	bool wakeup;
#endif
	void *cap, *incall;
	uint32_t n_spare_incalls;
	void *spare_incalls;
	bool worker, stopped, running_finalizers;
	int preferred_capability;
	void *next, *all_next;
};

#define SAME(field, derived)                                                                       \
	_Static_assert(offsetof(struct described_capability, field) == (derived),                  \
		       "Capability." #field " is not where 8.10 to 9.14 have it: --source")
SAME(r, OFFSET_Capability_r);
SAME(no, OFFSET_Capability_no);
SAME(mut_lists, OFFSET_Capability_mut_lists);

#define Task		  struct described_task
#define InCall		  struct described_incall
#define CAPABILITY(field) offsetof(struct described_capability, field)
/* spare_workers, n_spare_workers, lock, returning_tasks_hd */
#define SPARE_WORKERS	  (OFFSET_Capability_lock - 16)
#define RETURNING_TASKS	  (OFFSET_Capability_lock + sizeof(Mutex))
#define RUN_QUEUE	  CAPABILITY(run_queue[0])
#endif

/*
 * What bpf/heap.bpf.h has as constants, since it is the same from 8.10 to 9.14. If a release
 * differs, it has to go into the table.
 */
#define FIXED(place, at)                                                                           \
	_Static_assert((place) == (at), #place " is not where 8.10 to 9.14 have it")
FIXED(offsetof(StgRegTable, rCurrentNursery), offsetof(StgRegTable, rNursery) + 8);
FIXED(offsetof(StgRegTable, rCurrentAlloc), offsetof(StgRegTable, rNursery) + 16);
FIXED(offsetof(StgRegTable, rHpLim), offsetof(StgRegTable, rCCCS) - 8);
FIXED(offsetof(InCall, tso), 0);
FIXED(offsetof(nursery, n_blocks), 8);
FIXED(offsetof(bdescr, start), 0);
FIXED(offsetof(bdescr, free), 8);
FIXED(offsetof(bdescr, link), 16);
FIXED(offsetof(bdescr, gen), 32);
FIXED(offsetof(bdescr, flags), 46);
FIXED(BF_PINNED, 4);
FIXED(offsetof(bdescr, blocks), 48);
FIXED(CAPABILITY(mut_lists), RUN_QUEUE + 40);
FIXED(offsetof(generation, no), 0);
FIXED(offsetof(generation, blocks), 8);
FIXED(offsetof(generation, large_objects), 32);
FIXED(offsetof(generation, compact_objects), 64);
FIXED(offsetof(generation, n_blocks), 16);
FIXED(offsetof(generation, n_words), 24);
FIXED(offsetof(generation, n_large_blocks), 40);
FIXED(offsetof(generation, n_large_words), 48);
FIXED(offsetof(generation, n_new_large_words), 56);
FIXED(offsetof(generation, n_compact_blocks), 72);
FIXED(offsetof(generation, threads), 104);
FIXED(offsetof(generation, to), 120);
/* user/target/living.c */
FIXED(offsetof(generation, collections), 128);
FIXED(sizeof(generation) - offsetof(generation, old_blocks), 80);
FIXED(sizeof(generation) - offsetof(generation, old_threads), 16);
FIXED(offsetof(StgTSO, global_link), offsetof(StgTSO, stackobj) - 8);
FIXED(offsetof(RTSStats, max_mem_in_use_bytes), 48);
FIXED(offsetof(RTSStats, gc.mem_in_use_bytes), 208);

static void put(const char *key, size_t value)
{
	printf("%s %zu\n", key, value);
}

int main(void)
{
	put("Capability.r", CAPABILITY(r));
	put("Capability.no", CAPABILITY(no));
	put("Capability.running_task", CAPABILITY(running_task));
	put("Capability.in_haskell", CAPABILITY(in_haskell));
	put("Capability.disabled", CAPABILITY(disabled));
	put("Capability.r.rCurrentTSO", CAPABILITY(r) + offsetof(StgRegTable, rCurrentTSO));
	put("Capability.r.rCCCS", CAPABILITY(r) + offsetof(StgRegTable, rCCCS));
	put("Capability.n_run_queue", CAPABILITY(n_run_queue));
	put("Capability.r.rNursery", CAPABILITY(r) + offsetof(StgRegTable, rNursery));
	put("Capability.run_queue_hd", RUN_QUEUE);
	put("Capability.total_allocated", OFFSET_Capability_total_allocated);
	put("Capability.suspended_ccalls", CAPABILITY(suspended_ccalls));
#if defined(THREADED_RTS)
	put("Capability.spare_workers", SPARE_WORKERS);
	put("Capability.returning_tasks_hd", RETURNING_TASKS);
	put("Task.id", offsetof(Task, id));
#endif
	put("Task.cap", offsetof(Task, cap));
	put("Task.incall", offsetof(Task, incall));
	put("Task.next", offsetof(Task, next));
	put("Task.all_next", offsetof(Task, all_next));
	put("InCall.suspended_tso", offsetof(InCall, suspended_tso));
	put("InCall.suspended_cap", offsetof(InCall, suspended_cap));
	put("InCall.prev_stack", offsetof(InCall, prev_stack));
	put("InCall.task", offsetof(InCall, task));
	put("InCall.next", offsetof(InCall, next));
	put("StgTSO.stackobj", offsetof(StgTSO, stackobj));
	put("StgTSO.why_blocked", offsetof(StgTSO, why_blocked));
	put("StgTSO.flags", offsetof(StgTSO, flags));
	put("StgTSO.id", offsetof(StgTSO, id));
	put("StgTSO.bound", offsetof(StgTSO, bound));
#if defined(PROFILING)
	put("StgTSO.prof.cccs", offsetof(StgTSO, prof.cccs));
#endif
#if MIN_VERSION_GLASGOW_HASKELL(9, 6, 0, 0)
	put("StgTSO.label", offsetof(StgTSO, label));
#endif
	put("width.StgTSO.id", sizeof(((StgTSO *)0)->id));
	put("width.StgTSO.why_blocked", sizeof(((StgTSO *)0)->why_blocked));
	put("StgStack.stack_size", offsetof(StgStack, stack_size));
	put("StgStack.sp", offsetof(StgStack, sp));
	put("StgStack.stack", offsetof(StgStack, stack));
	put("StgBCO.bitmap", offsetof(StgBCO, bitmap));
	put("StgUpdateFrame.updatee", offsetof(StgUpdateFrame, updatee));
	return 0;
}

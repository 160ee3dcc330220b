/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share. */
#ifndef SAFESCOPED_KERNEL_PRIV_H
#define SAFESCOPED_KERNEL_PRIV_H

#include <bpf/libbpf.h>

#include "base/hash.h"
#include "base/retry.h"
#include "kernel.h"

struct safescope_bpf;
struct unwind;
struct users;
struct programs;
struct keeper;
struct reaper;
struct ring_buffer;

/* ── uprobe.c ────────────────────────────────────────────────────────────────────────────── */

/* True if the kernel has uprobe_multi links whose process filter works. */
bool uprobe__has_multi(void);
/* Sets the attach type that a program must have before load to be used with a multi link. */
int uprobe__prepare(struct bpf_program *prog, bool multi);
/* pid 0: every process that maps the file; otherwise the program gets the cookie WIRE_PROBE_OWN.
 * *ret_fd: its link, the only reference to it. */
int uprobe__attach(struct bpf_program *prog, bool multi, const char *path, uint64_t offset,
		   pid_t pid, int *ret_fd);

/* ── perf.c ──────────────────────────────────────────────────────────────────────────────── */

/* Runs the program at each sample of the event, with that cookie. Closes event_fd; *ret_fd: the
 * link, which holds the event. Linux 5.15. */
int perf__link(struct bpf_program *prog, int event_fd, uint64_t cookie, int *ret_fd);

/* ── cpu_event.c ─────────────────────────────────────────────────────────────────────────── */

enum cpu_event {
	CPU_EVENT_CLOCK = 1, /* cpu-clock, every period_ns */
	CPU_EVENT_MAPPINGS,  /* PERF_RECORD_MMAP2 of executable mappings; period_ns is 0 */
};

/*
 * Opens the event on the CPU and returns a descriptor. -ENODEV: the CPU is offline. -EACCES: with a
 * perf_event_paranoid above 2, a level that Debian's and Ubuntu's kernels have, CAP_PERFMON is not
 * enough; if this process has given up CAP_SYS_ADMIN, the keeper opens the event (NULL: nobody
 * does). -ETIMEDOUT: the keeper is busy.
 */
int cpu_event__open(struct keeper *keeper, enum cpu_event what, int cpu, uint64_t period_ns);
/* The same, without the keeper. */
int cpu_event__open_here(enum cpu_event what, int cpu, uint64_t period_ns);

/* ── sampler.c ───────────────────────────────────────────────────────────────────────────── */

struct sampler;
/* Starts sampling on each online CPU at frequency_hz on average. The keeper holds the links and
 * must outlive the sampler. */
int sampler__start(struct bpf_program *prog, uint32_t frequency_hz, struct keeper *keeper,
		   struct sampler **ret_sampler);
/* The links that the keeper holds stay attached. */
void sampler__free(struct sampler *s);
/* True if a cpu-clock event can be opened. */
bool sampler__works(void);

/* ── mappings.c ──────────────────────────────────────────────────────────────────────────── */

struct mappings;
/* The keeper must outlive the mappings. */
int mappings__new(struct keeper *keeper, struct mappings **ret_mappings);
void mappings__free(struct mappings *mappings);
/*
 * To be called when the CPU has come online: opens its ring. What it did not report until then is
 * reported as a loss. NULL: does nothing. Errors as from cpu_event__open(): the CPU's mappings are
 * not reported.
 */
int mappings__revive(struct mappings *mappings, int cpu);

/* ── fork.c ──────────────────────────────────────────────────────────────────────────────── */

/* Children that are forked later do not inherit the rings that are mapped at the time of the
 * call. */
void kernel__keep_from_children(void);

/* ── calibrate.c ─────────────────────────────────────────────────────────────────────────── */

/*
 * Measures the cost of one uprobe trap, in ns, on a function of this program; the keeper detaches
 * the probe. 0 if it cannot be measured.
 */
uint64_t calibrate__trap_ns(struct bpf_program *prog, bool multi, struct keeper *keeper);

/* ── probes.c: probes that targets share ─────────────────────────────────────────────────── */

enum probe_kind {
	PROBE_SUSPEND,
	PROBE_RESUME,
	PROBE_TICK,
	PROBE_GC_SYNC,
	PROBE_GC_START,
	PROBE_GC_END,
	PROBE_MAX
};

/*
 * How many probes are kept in files that no target runs any more, and for how long: the next
 * process that runs such a file is covered from its first instruction. Files that have been removed
 * are excluded: nobody can run them any more, and their file system cannot be unmounted while they
 * are open.
 */
#define PROBES_MAX_UNUSED 1024
#define PROBES_UNUSED_NS  600000000000ULL

/* Hashed by its bytes in memory, so it must have no padding. */
struct probe_key {
	uint64_t dev, ino, offset;
	uint32_t kind; /* enum probe_kind */
	pid_t pid;     /* 0: every process that maps the file */
};
_Static_assert(sizeof(struct probe_key) == 3 * sizeof(uint64_t) + 2 * sizeof(uint32_t),
	       "struct probe_key has no padding");

/* A probe on one instruction of one file, for all of the file's targets or for one process. */
struct probe {
	struct probe_key key;
	int file;      /* O_PATH: a target's own paths lead nowhere once it has ended */
	uint32_t link; /* the keeper's id of the link; 0: the probe is off */
	bool on;
	uint64_t on_ns;	     /* when it last came on */
	bool held_up;	     /* was on when the daemon was held up, and is to come on again */
	uint64_t off_number; /* number of its last drop; see keeper__drop() */
	uint32_t refs;
	uint64_t last_used, unused_ns; /* unused_ns: since when it has had no refs */
	struct lease *lease;	       /* on its file; NULL: none, see leases.c */
	bool stale;		       /* the file was overwritten while in use */
	UT_hash_handle hh;	       /* of kernel.probes, by key */
};

/* Gets the probe at a place of `file` (O_PATH, stays the caller's) and attaches it if it is off.
 * at->found must not be FOUND_NONE. *ret_was_on: it was already on. */
int probes__get(struct kernel *kernel, enum probe_kind kind, const struct target_probe *at,
		int file, pid_t pid, struct probe **ret_probe, bool *ret_was_on);
/* Sets *probe to NULL. Detaching goes on in the background. Programs learnt by kernel__learn()
 * are forgotten when their call probes come off. */
void probes__put(struct kernel *kernel, struct probe **probe);
/* -EBUSY: still being detached, or somebody is about to write to the file; -ESTALE: the file has
 * been overwritten. */
int probe__on(struct kernel *kernel, struct probe *probe);
/* True if the probe is on, or is known to be fully off, so that it may be switched on. */
bool probe__may_be_on(const struct kernel *kernel, const struct probe *probe);
/* Does not wait until the probe is off. */
void probe__off(struct kernel *kernel, struct probe *probe);
/* Takes off a probe that nobody uses; a program learnt with it is forgotten. */
void probe__rest(struct kernel *kernel, struct probe *probe);
/* To be called often: drops probes that have been unused for long, or whose file was removed. */
void probes__turn(struct kernel *kernel, uint64_t now_ns);
void probes__free(struct kernel *kernel);

/* ── leases.c: files that nobody writes to while probes are in them ──────────────────────── */

/* Gets a lease on the probe's file; to be called before the probe comes on. -EBUSY: somebody
 * waits to write to the file; any other error: there can be no lease. */
int leases__get(struct kernel *kernel, struct probe *probe);
/* To be called when a probe that goes away is off, or has been asked to come off. */
void leases__put(struct probe *probe);
/* To be called often: takes the probes off files that somebody waits to write to. */
void leases__turn(struct kernel *kernel, uint64_t now_ns);
/* After probes__free(). */
void leases__free(struct kernel *kernel);

/* ── reaper.c: detaching in the background ───────────────────────────────────────────────── */

/* Runs in the keeper. Detaching a perf uprobe takes 100 ms, which nobody should have to wait
 * for. */
int reaper__new(struct reaper **ret_reaper);
/* Closes the link in the background. */
void reaper__add(struct reaper *reaper, int fd);
/* Waits until everything that was added is detached. */
void reaper__wait(struct reaper *reaper);
/* The same, then frees the reaper. */
void reaper__free(struct reaper *reaper);

/* ── one target's probes ─────────────────────────────────────────────────────────────────── */

#define KERNEL_MAX_TARGETS WIRE_MAX_TARGETS

enum probe_state {
	PROBES_ABSENT,
	PROBES_ON,
	PROBES_OFF,
	PROBES_TRIAL,
	PROBES_HELD_UP, /* off, but not because of the budget: see held_up.c */
};

/* The mean run time of the programs for a target's call probes, from the hits up to `hits`, when
 * the sum was `ns`; 0: not known yet. */
struct call_price {
	uint64_t each_ns, hits, ns;
};

struct attached {
	pid_t pid;
	struct probe *probes[PROBE_MAX]; /* NULL: none */
	struct wire_target wire;
	struct kernel_lacking lacking;
	/* since when its call probes have been on, as it was attached; UINT64_MAX: they were not */
	uint64_t covered_ns;
	bool waits; /* for its layout to be confirmed before it gets probes */
	/* budget */
	enum probe_state state;
	uint64_t since_ns; /* when the state began */
	uint64_t checked_ns, checked_hits;
	struct call_price price;
	uint64_t on_ns, off_ns; /* total time in earlier states */
	uint64_t retry_ns;	/* how long the probes stay off this time; UINT64_MAX: until another
				   target that shares them tries again */
	unsigned over;		/* consecutive checks over the budget */
	double debt_ns;		/* see budget__in_debt() */
	uint64_t held_up_before_ns; /* kernel__held_up()'s ns when it was attached */
	/* the same for the probes on collections, which do not come back */
	uint64_t gc_checked_ns, gc_checked_hits, gc_checked_run_ns;
	unsigned gc_over;
	double gc_debt_ns;
	bool gc_off, gc_off_reported;
	unsigned gc_calm;  /* consecutive checks in which all probes on collections could be on */
	UT_hash_handle hh; /* of kernel.targets, by pid */
};

struct kernel {
	struct safescope_bpf *skel;
	struct ring_buffer *ring;
	struct keeper *keeper;
	struct sampler *sampler;
	struct run_time *run_time;
	bool multi;
	bool all; /* all processes of a file share its probes, and execs are followed */
	struct probe *probes;
	struct lease *leases;
	uint64_t leases_ns; /* when leases were last looked at */
	size_t n_unused;
	uint64_t unused_turn_ns; /* when unused probes were last looked at */
	uint64_t probe_uses;
	double max_overhead_percent;
	bool sparse; /* samples at less than KERNEL_SPARSE_HZ */
	uint64_t trap_ns;
	uint64_t budget_ns; /* when it last checked which targets are due */
	bool gc_off_new;    /* kernel__next_gc_off() may have one to return */
	struct attached *targets;
	kernel_record_fn fn; /* set during a drain */
	void *fn_ctx;
	int fn_err;
	uint64_t drained_ns; /* when the drain began */
	uint64_t *record;    /* scratch buffer of the drain */
	struct unwind *unwind;
	struct users *users;
	struct programs *programs;
	uint64_t threads_due_ns; /* when users__sweep_threads() is due; 0: no thread is left over */
	struct mappings *mappings; /* NULL: the kernel does not report mappings */
	/* held_up.c */
	uint64_t beat_ns, times_taken;
	uint64_t held_up_until_ns; /* when the probes come on again; 0: they were not taken off */
	uint64_t held_up_since_ns; /* when the last hold-up began, and for how long the probes stay
				      off after it */
	uint64_t held_up_pause_ns;
	/* when probes that failed to come on again are next tried, if there are any */
	struct retry left;
	struct kernel_held_up held_up;
	uint64_t held_up_ended_ns; /* when the last hold-up ended */
};

/* NULL: not attached. */
struct attached *kernel__find(const struct kernel *kernel, pid_t pid);
/* The target after `prev`, in the order of attachment; prev NULL: the first one. */
struct attached *kernel__next(const struct kernel *kernel, const struct attached *prev);

/* ── run_time.c ──────────────────────────────────────────────────────────────────────────── */

struct run_time;
struct bpf_object;
struct bpf_program;

/* Measures the run time of the object's programs from now on. The keeper turns the kernel's
 * account of it on and off, less often if `sparse`. -ENOMEM. */
int run_time__new(struct bpf_object *object, struct keeper *keeper, bool sparse,
		  struct run_time **ret_run_time);
void run_time__free(struct run_time *r);
/* To be called about ten times a second. */
void run_time__turn(struct run_time *r, uint64_t now);
/* The estimated run time of all programs up to `at_ns`, which is now or not long ago, in ns.
 * False: unknown. */
bool run_time__sum(const struct run_time *r, uint64_t at_ns, uint64_t *ret_ns);
/* Mean duration of one run of these programs, in ns; 0: unknown. */
uint64_t run_time__mean(const struct run_time *r, struct bpf_program *const *programs, size_t n);

/* ── unwind.c ────────────────────────────────────────────────────────────────────────────── */

int unwind__new(struct unwind **ret_unwind);
void unwind__free(struct unwind *unwind);
void unwind__forget(struct kernel *kernel, pid_t pid);

/* ── users.c: shares of the maps ─────────────────────────────────────────────────────────── */

int users__new(struct users **ret_users);
void users__free(struct users *users);
/* The user's slot, see struct wire_user; 0: no slot is free. */
uint32_t users__slot(struct kernel *kernel, uid_t uid);
/* To be called after an entry of call_sites has been deleted. */
void users__site_removed(struct kernel *kernel, const struct wire_site *site);
/* A process is not followed any more, but its threads may still have entries. go_on: the process
 * itself may go on running. */
void users__threads_left(struct kernel *kernel, bool go_on);
/* Removes such entries once that is due. */
void users__sweep_threads(struct kernel *kernel);
/* Accounts for one more entry of open_at_start in the slot. 0, or -EDQUOT. */
int users__add_open(struct kernel *kernel, uint32_t slot);

/* ── programs.c: what kernel__learn() learnt ─────────────────────────────────────────────── */

/* For the BPF map `map`, which has room for `max` entries. */
int programs__new(int map, uint32_t max, struct programs **ret_programs);
void programs__free(struct programs *programs);
/*
 * Adds the program, on the user's account; replaces the user's oldest one if the user has reached
 * the limit. The probes are those on the program's calls. -EDQUOT: other users leave no room;
 * -ENOMEM, or errors of bpf_map_update_elem().
 */
int programs__learn(struct programs *programs, const struct wire_program_key *key,
		    const struct wire_target *wire, uid_t uid, const struct probe *suspend,
		    const struct probe *resume);
void programs__unlearn(struct programs *programs, const struct wire_program_key *key);
/* Forgets the programs that have this as a call probe. */
void programs__probe_gone(struct programs *programs, const struct probe *probe);

/* ── budget.c ────────────────────────────────────────────────────────────────────────────── */

/* Puts the target into the state from now_ns on, and restarts the counting of its hits. */
void budget__enter(struct kernel *kernel, struct attached *a, enum probe_state state,
		   uint64_t now_ns);

/* Takes the target's probe of this kind off for good, together with those that are useless
 * without it. */
void budget__stop(struct kernel *kernel, struct attached *a, enum probe_kind kind, uint64_t now_ns);

/* How long the target's probes have been on and off, and whether the daemon was held up. */
void budget__times(const struct kernel *kernel, const struct attached *a, uint64_t now_ns,
		   struct kernel_cost *cost);

/* ── held_up.c ───────────────────────────────────────────────────────────────────────────── */

/* Records a beat outside the loop: starts the watch, and accounts for what has held the loop up
 * so far. */
void held_up__begin(struct kernel *kernel);
/* Since when the probes have been off without the loop having noticed, which it does when it next
 * turns; 0: they have not been. */
uint64_t held_up__unnoticed(const struct kernel *kernel, uint64_t now);

/* ── attached.c ──────────────────────────────────────────────────────────────────────────── */

/* The word of target_bits that has the process's bit; see bpf/maps.bpf.h. */
__u64 *target__word(struct kernel *kernel, __u32 tgid);
/* Writes the target's map entry; how: BPF_ANY or BPF_EXIST. */
int target__put(struct kernel *kernel, const struct attached *a, __u64 how);
/* The same, and marks the target's calls as seen or not seen from now on. */
void target__put_seen(struct kernel *kernel, struct attached *a, bool seen);
/* For the target and all that share its call probes. -EBUSY: they are still being detached. */
int call_probes__on(struct kernel *kernel, struct attached *a);
void call_probes__off(struct kernel *kernel, struct attached *a);
/* Takes all of the target's probes on collections off for good. */
void gc_probes__off(struct kernel *kernel, struct attached *a);
bool gc_probes__are_off(const struct attached *a);
/* A session that samples less often than this looks at nothing closely: it gets by with the ends
 * of collections and fewer stacks (load.c). */
#define KERNEL_SPARSE_HZ 50
/*
 * Which probes on collections are on. The one on the end has the start by the runtime's own clock;
 * the one on the request shows who allocates, and why a collection is asked for.
 */
enum gc_probes {
	GC_PROBES_ALL,
	GC_PROBES_REQUESTS, /* and ends */
	GC_PROBES_ENDS,
};
void gc_probes__set(struct kernel *kernel, struct attached *a, enum gc_probes probes);
enum gc_probes gc_probes__set_now(const struct attached *a);
/* What one hit of each probe on collections costs, in the mean of all targets. The one on the
 * request walks a stack, so it costs several times as much as the others. */
struct gc_prices {
	uint64_t sync_ns, start_ns, end_ns;
};
/*
 * What the programs take for one hit of the target's call probes, by what they have timed for it:
 * its stacks may be much deeper than those of others, and without CAP_SYS_ADMIN the kernel keeps no
 * account of run time. `shared`, the mean of all targets, while it has had few hits.
 */
uint64_t budget__call_price(struct call_price *price, const struct wire_cost *cost,
			    uint64_t shared);
/*
 * Adds a window in which the probes cost `percent` of a CPU to *debt_ns, what they have cost beyond
 * the budget, less what of it was left in other windows. True: it exceeds what the budget allows in
 * five seconds. For bursts that are too short to be over it for several windows in a row.
 */
bool budget__in_debt(double *debt_ns, double percent, double max_percent, uint64_t window_ns);
/*
 * What the probes `would` have cost in percent of a CPU, if the probes `on` have cost this target
 * spent_ns. Targets differ by how deep their stacks are, so the prices, which are means, count only
 * in proportion to each other.
 */
double budget__gc_percent(const struct gc_prices *prices, enum gc_probes on, enum gc_probes would,
			  uint64_t spent_ns, uint64_t window_ns);
bool attached__has_gc(const struct attached *a);
/* True if both have the same call probes, or are the same target. */
bool attached__share(const struct attached *a, const struct attached *b);

/* Unrolls the ring of root frames of a deep stack; see wire.h, struct wire_stack. */
void stack__straighten(struct wire_stack *stack, uint64_t *frames);

/* ── each.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Calls fn for each element of a hash map, never twice for the same one, even if others come and go
 * meanwhile; fn may remove its own element. Stops at fn's first error and returns it. -ENOMEM, and
 * the errors of bpf_map_lookup_batch().
 */
int map__each(int fd, uint32_t key_size, uint32_t value_size,
	      int (*fn)(void *ctx, const void *key, void *value), void *ctx);

#endif

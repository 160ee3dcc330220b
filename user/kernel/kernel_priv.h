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

/* Whether the kernel has uprobe_multi links whose process filter works. */
bool uprobe__has_multi(void);
/* The attach type a program needs before load to be used with a multi link. */
int uprobe__prepare(struct bpf_program *prog, bool multi);
/* pid 0: every process that maps the file; else the program has the cookie WIRE_PROBE_OWN. *ret_fd:
 * its link, which is all that holds it. */
int uprobe__attach(struct bpf_program *prog, bool multi, const char *path, uint64_t offset,
		   pid_t pid, int *ret_fd);

/* ── perf.c ──────────────────────────────────────────────────────────────────────────────── */

/* Runs the program at each of the event's samples, with that cookie. event_fd is closed; *ret_fd:
 * the link, which holds the event. Linux 5.15. */
int perf__link(struct bpf_program *prog, int event_fd, uint64_t cookie, int *ret_fd);

/* ── cpu_event.c ─────────────────────────────────────────────────────────────────────────── */

enum cpu_event {
	CPU_EVENT_CLOCK = 1, /* cpu-clock, once in period_ns */
	CPU_EVENT_MAPPINGS,  /* PERF_RECORD_MMAP2 of what is mapped to be run; period_ns 0 */
};

/*
 * Opens it on the CPU: a descriptor. -ENODEV: the CPU is offline. -EACCES: with a
 * perf_event_paranoid above 2, which Debian's and Ubuntu's kernels know, CAP_PERFMON is not enough;
 * where this process has given up CAP_SYS_ADMIN the keeper opens it (NULL: nobody). -ETIMEDOUT:
 * the keeper is busy.
 */
int cpu_event__open(struct keeper *keeper, enum cpu_event what, int cpu, uint64_t period_ns);
/* The same by this process alone. */
int cpu_event__open_here(enum cpu_event what, int cpu, uint64_t period_ns);

/* ── sampler.c ───────────────────────────────────────────────────────────────────────────── */

struct sampler;
/* On each CPU that is online; the keeper, which must outlive it, holds it. frequency_hz: the mean.
 */
int sampler__start(struct bpf_program *prog, uint32_t frequency_hz, struct keeper *keeper,
		   struct sampler **ret_sampler);
/* What the keeper holds goes on. */
void sampler__free(struct sampler *s);
/* To be called often: gives each CPU another period at times. NULL: nothing. */
void sampler__vary(struct sampler *s, uint64_t now_ns);
/* To be called often: at times, begins on CPUs that have come online since, for the first time or
 * again; `came` is called for each, and again at later looks until it gives 0. NULL: nothing. */
void sampler__look(struct sampler *s, uint64_t now_ns, int (*came)(void *ctx, int cpu), void *ctx);
/* True if a cpu-clock event can be opened. */
bool sampler__works(void);

/* ── mappings.c ──────────────────────────────────────────────────────────────────────────── */

struct mappings;
/* The keeper must outlive it. */
int mappings__new(struct keeper *keeper, struct mappings **ret_mappings);
void mappings__free(struct mappings *mappings);
/* The CPU has come online: it reports mappings from here on, and what it did not report may be
 * asked for, as after a loss. NULL: nothing. -errno: it does not report them, see
 * cpu_event__open(). */
int mappings__revive(struct mappings *mappings, int cpu);

/* ── fork.c ──────────────────────────────────────────────────────────────────────────────── */

/* The rings that are mapped now are not in children that are forked later. */
void kernel__keep_from_children(void);

/* ── calibrate.c ─────────────────────────────────────────────────────────────────────────── */

/*
 * Measures one trap of a uprobe on a function of this program, in ns; the keeper takes the probe
 * off. 0 if it cannot be done.
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
 * How many probes are kept in files that no target runs any more, and for how long: the next one
 * that does is covered from its first instruction. Nobody can run a file any more that has been
 * removed, and its file system cannot be unmounted as long as the file is open.
 */
#define PROBES_MAX_UNUSED 1024
#define PROBES_UNUSED_NS  600000000000ULL

/* Hashed as it is in memory: without padding. */
struct probe_key {
	uint64_t dev, ino, offset;
	uint32_t kind; /* enum probe_kind */
	pid_t pid;     /* 0: every process that maps the file */
};
_Static_assert(sizeof(struct probe_key) == 3 * sizeof(uint64_t) + 2 * sizeof(uint32_t),
	       "struct probe_key has no padding");

/* One instruction of one file, for all its targets or for one process. */
struct probe {
	struct probe_key key;
	int file;      /* O_PATH: a target's own paths lead nowhere once it has ended */
	uint32_t link; /* the keeper's id of it; 0: it is off */
	bool on;
	bool held_up;	     /* it was on when the daemon was held up, and is to be again */
	uint64_t off_number; /* of its last drop; see keeper__drop() */
	uint32_t refs;
	uint64_t last_used, unused_ns; /* unused_ns: since when, of one without refs */
	struct lease *lease;	       /* on its file; NULL: none, see leases.c */
	bool stale;		       /* the file is overwritten while it is in use */
	UT_hash_handle hh;	       /* of kernel.probes, by key */
};

/* The probe at a place of `file` (O_PATH, stays the caller's), attached now if it is new. at->found
 * must not be FOUND_NONE. *ret_was_on: it was on before. */
int probes__get(struct kernel *kernel, enum probe_kind kind, const struct target_probe *at,
		int file, pid_t pid, struct probe **ret_probe, bool *ret_was_on);
/* *probe is NULL afterwards. Detaching goes on in the background. What was learnt of programs whose
 * call probes come off is forgotten. */
void probes__put(struct kernel *kernel, struct probe **probe);
/* -EBUSY: it is still coming off, or somebody is about to write to the file; -ESTALE: somebody
 * does.
 */
int probe__on(struct kernel *kernel, struct probe *probe);
/* Whether it is, or is off for sure. */
bool probe__may_be_on(const struct kernel *kernel, const struct probe *probe);
/* Does not wait for it. */
void probe__off(struct kernel *kernel, struct probe *probe);
/* Takes one off that nobody uses; what was learnt of its program is forgotten. */
void probe__rest(struct kernel *kernel, struct probe *probe);
/* To be called often: drops what has been unused for long, or is of a file that was removed. */
void probes__turn(struct kernel *kernel, uint64_t now_ns);
void probes__free(struct kernel *kernel);

/* ── leases.c: files that nobody writes to while probes are in them ──────────────────────── */

/* The probe's, which is not on: it is to have one before it comes on. -EBUSY: somebody waits to
 * write to the file; any other error: it can have none. */
int leases__get(struct kernel *kernel, struct probe *probe);
/* The probe is off, or has been asked to come off, and goes. */
void leases__put(struct probe *probe);
/* To be called often: where somebody waits to write to a file its probes come off. */
void leases__turn(struct kernel *kernel, uint64_t now_ns);
/* After the probes. */
void leases__free(struct kernel *kernel);

/* ── reaper.c: detaching in the background ───────────────────────────────────────────────── */

/* In the keeper. A perf uprobe's detach takes 100 ms: nobody is to wait for it. */
int reaper__new(struct reaper **ret_reaper);
/* Closes the link. */
void reaper__add(struct reaper *reaper, int fd);
/* Waits until all that were added are detached. */
void reaper__wait(struct reaper *reaper);
/* The same, and ends it. */
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

struct attached {
	pid_t pid;
	struct probe *probes[PROBE_MAX]; /* NULL: none */
	struct wire_target wire;
	struct kernel_lacking lacking;
	bool covered; /* its call probes were on before it was attached */
	bool waits;   /* for its layout to be confirmed, before there are probes */
	/* budget */
	enum probe_state state;
	uint64_t since_ns; /* of the state */
	uint64_t checked_ns, checked_hits;
	uint64_t on_ns, off_ns; /* of states that have ended */
	uint64_t retry_ns;	/* how long the probes stay off this time; UINT64_MAX: as long as
				   those of another target that shares them */
	unsigned over;		/* checks in a row over the budget */
	uint64_t held_up_before_ns; /* what kernel__held_up had when it was attached */
	/* the same of the probes on collections' ends, which do not come back */
	uint64_t gc_checked_ns, gc_checked_hits;
	unsigned gc_over;
	bool gc_off, gc_off_reported;
	unsigned gc_calm;  /* checks in a row in which all probes on collections could be on */
	UT_hash_handle hh; /* of kernel.targets, by pid */
};

struct kernel {
	struct safescope_bpf *skel;
	struct ring_buffer *ring;
	struct keeper *keeper;
	struct sampler *sampler;
	struct run_time *run_time;
	bool multi;
	bool all; /* every process of a file shares its probes, and execs are followed */
	struct probe *probes;
	struct lease *leases;
	uint64_t leases_ns; /* when they were last looked at */
	size_t n_unused;
	uint64_t unused_turn_ns; /* when those were last looked at */
	uint64_t probe_uses;
	double max_overhead_percent;
	bool sparse; /* sampled at less than KERNEL_SPARSE_HZ */
	uint64_t trap_ns;
	uint64_t budget_ns; /* when it was last looked at which checks are due */
	bool gc_off_new;    /* kernel__next_gc_off() may have one */
	struct attached *targets;
	kernel_record_fn fn; /* during a drain */
	void *fn_ctx;
	int fn_err;
	uint64_t drained_ns; /* when the drain began */
	uint64_t *record;    /* scratch of the drain */
	struct unwind *unwind;
	struct users *users;
	struct programs *programs;
	uint64_t threads_due_ns;   /* of users__sweep_threads(); 0: no thread is left */
	struct mappings *mappings; /* NULL: the kernel does not report them */
	/* held_up.c */
	uint64_t beat_ns, times_taken;
	uint64_t held_up_until_ns; /* when the probes come on again; 0: they were not off */
	uint64_t held_up_since_ns; /* the last time, and for how long they stayed off after it */
	uint64_t held_up_pause_ns;
	/* when probes that did not come on again are tried next, if there are any */
	struct retry left;
	struct kernel_held_up held_up;
	uint64_t held_up_ended_ns; /* the last time */
};

/* NULL: it is not attached. */
struct attached *kernel__find(const struct kernel *kernel, pid_t pid);
/* The target after `prev`, in the order in which they were attached; prev NULL: the first one. */
struct attached *kernel__next(const struct kernel *kernel, const struct attached *prev);

/* ── run_time.c ──────────────────────────────────────────────────────────────────────────── */

struct run_time;
struct bpf_object;
struct bpf_program;

/* Of the object's programs, from now on; the keeper turns it on and off, less often if `sparse`.
 * -ENOMEM. */
int run_time__new(struct bpf_object *object, struct keeper *keeper, bool sparse,
		  struct run_time **ret_run_time);
void run_time__free(struct run_time *r);
/* To be called about ten times a second. */
void run_time__turn(struct run_time *r, uint64_t now);
/* Of all programs so far, in ns, estimated. False: not known. */
bool run_time__sum(const struct run_time *r, uint64_t now, uint64_t *ret_ns);
/* Mean of a run of these programs, in ns; 0: not known. */
uint64_t run_time__mean(const struct run_time *r, struct bpf_program *const *programs, size_t n);

/* ── unwind.c ────────────────────────────────────────────────────────────────────────────── */

int unwind__new(struct unwind **ret_unwind);
void unwind__free(struct unwind *unwind);
void unwind__forget(struct kernel *kernel, pid_t pid);

/* ── users.c: shares of the maps ─────────────────────────────────────────────────────────── */

int users__new(struct users **ret_users);
void users__free(struct users *users);
/* The user's slot, see struct wire_user; 0: there is none for him. */
uint32_t users__slot(struct kernel *kernel, uid_t uid);
/* An entry of call_sites is not there any more. */
void users__site_removed(struct kernel *kernel, const struct wire_site *site);
/* A process is followed no more: its threads may still have entries. go_on: it may go on. */
void users__threads_left(struct kernel *kernel, bool go_on);
/* Removes them, once that is due. */
void users__sweep_threads(struct kernel *kernel);
/* Whether open_at_start may get an entry for the slot. 0, or -EDQUOT. */
int users__add_open(struct kernel *kernel, uint32_t slot);

/* ── programs.c: what kernel__learn() learnt ─────────────────────────────────────────────── */

/* In the BPF map `map`, which has room for `max`. */
int programs__new(int map, uint32_t max, struct programs **ret_programs);
void programs__free(struct programs *programs);
/*
 * On the user's account, in place of the oldest of his own if he has as many as one may; the probes
 * are those on the program's calls. -EDQUOT: others leave no room; -ENOMEM, or as
 * bpf_map_update_elem().
 */
int programs__learn(struct programs *programs, const struct wire_program_key *key,
		    const struct wire_target *wire, uid_t uid, const struct probe *suspend,
		    const struct probe *resume);
void programs__unlearn(struct programs *programs, const struct wire_program_key *key);
/* Forgets those whose calls it is on. */
void programs__probe_gone(struct programs *programs, const struct probe *probe);

/* ── budget.c ────────────────────────────────────────────────────────────────────────────── */

/* The target is in that state from now_ns on, and its hits are counted anew. */
void budget__enter(struct kernel *kernel, struct attached *a, enum probe_state state,
		   uint64_t now_ns);

/* That probe of the target's comes off for good, and what it cannot do without. */
void budget__stop(struct kernel *kernel, struct attached *a, enum probe_kind kind, uint64_t now_ns);

/* ── held_up.c ───────────────────────────────────────────────────────────────────────────── */

/* From now on the loop is to turn: what held it up before has ended. */
void held_up__begin(struct kernel *kernel);

/* ── attached.c ──────────────────────────────────────────────────────────────────────────── */

/* See target_bits in bpf/maps.bpf.h. */
__u64 *target__word(struct kernel *kernel, __u32 tgid);
/* Puts the target's entry; how: BPF_ANY, BPF_EXIST. */
int target__put(struct kernel *kernel, const struct attached *a, __u64 how);
/* The same: its calls are seen from now on, or are not. */
void target__put_seen(struct kernel *kernel, struct attached *a, bool seen);
/* Of the target and of all that share its call probes. -EBUSY: they are still coming off. */
int call_probes__on(struct kernel *kernel, struct attached *a);
void call_probes__off(struct kernel *kernel, struct attached *a);
/* Those on collections' ends, for good. */
void gc_probes__off(struct kernel *kernel, struct attached *a);
bool gc_probes__are_off(const struct attached *a);
/* A session that samples less often than this looks at nothing closely: the ends of collections,
 * and fewer stacks (load.c), are enough. */
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
bool attached__has_gc(const struct attached *a);
/* Whether both have the same call probes; true for a target and itself. */
bool attached__share(const struct attached *a, const struct attached *b);

/* Turns the ring of root frames of a deep stack; see wire.h, struct wire_stack. */
void stack__straighten(struct wire_stack *stack, uint64_t *frames);

/* ── each.c ──────────────────────────────────────────────────────────────────────────────── */

/*
 * Calls fn for each element of a hash map, never twice for one, though others come and go
 * meanwhile; fn may remove the one that it has. An error of fn's ends it and is returned. -ENOMEM,
 * and the errors of bpf_map_lookup_batch().
 */
int map__each(int fd, uint32_t key_size, uint32_t value_size,
	      int (*fn)(void *ctx, const void *key, void *value), void *ctx);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel: the life of the BPF object: find out what this kernel allows, load, attach to targets,
 * drain the ring, read the maps, keep the probes within their budget. Everything it holds is a file
 * descriptor, and the links that keep programs running are held by a separate process
 * (keeper_priv.h): a killed daemon leaves nothing behind, and a stalled one slows nobody down.
 */
#ifndef SAFESCOPED_KERNEL_H
#define SAFESCOPED_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"
#include "target/target.h"

/* ── what this kernel and these privileges allow ─────────────────────────────────────────── */

struct kernel_features {
	bool proc, sys; /* /proc and /sys are mounted */
	bool btf;	/* /sys/kernel/btf/vmlinux */
	bool ringbuf;
	bool uprobes;	   /* the uprobe PMU or uprobe_multi */
	bool uprobe_multi; /* links whose process filter works (6.6.35, 6.9.5, 6.10) */
	bool perf_event;   /* the cpu-clock sampler */
	bool perf_uprobes; /* the uprobe PMU, used without uprobe_multi */
	bool sched;	   /* BTF of the scheduler and process tracepoints */
	bool host_pids;	   /* our PID namespace is the host's, or unknown */
	bool host_clocks;  /* our clocks are the host's (time namespace), or unknown */
	bool host_users;   /* our user namespace is the host's, or unknown */
	uint64_t caps;	   /* effective capabilities, bit by number (linux/capability.h), … */
			   /* … of the host's user namespace */
	bool seccomp;	   /* system calls are filtered, as in a container */
	int perf_paranoid; /* -100: unreadable */
	int kptr_restrict; /* the same */
	char lockdown[32]; /* "none", "integrity", …; "" without the file, … */
	bool securityfs;   /* … which is not built in, if its file system is mounted */
	char release[65];
};

/* Needs no privileges; a feature that cannot be tried without them is reported as false. */
void kernel__features(struct kernel_features *ret_features);

/*
 * Checks for everything without which nothing works: the host's PID namespace, clocks and user
 * namespace, privileges, BTF, ring buffer, uprobes, perf events, and for /proc. Logs one line about
 * the first that is missing and returns -EPERM or -ENOTSUP; 0 if all are there.
 */
int kernel__require(const struct kernel_features *features);

/* What is missing, and what to do, where /proc, the host's user namespace or the kernel's BTF is
 * not there. */
#define KERNEL_NO_PROC "not mounted: mount -t proc proc /proc"
#define KERNEL_OTHER_USERS                                                                         \
	"not the host's, outside of which capabilities have no power over the kernel; run "        \
	"safescoped on the host itself, or in a container that has no user namespace of its own"
const char *kernel__btf_advice(const struct kernel_features *features);
/* Advice for when perf_event_open is refused, and for when there is no ring buffer. */
const char *kernel__perf_advice(const struct kernel_features *features);
const char *kernel__ringbuf_advice(const struct kernel_features *features);

/* True if the process has CAP_… (linux/capability.h), or CAP_SYS_ADMIN where that implies it. */
bool kernel__has_cap(const struct kernel_features *features, int cap);

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

struct kernel;

struct kernel_opts {
	uint32_t frequency_hz;	     /* samples per second and CPU, on average */
	double max_overhead_percent; /* of one CPU, for each target's call probes */
	const struct kernel_features *features;
	/*
	 * Every GHC process of the host: targets that run the same file share its probes, and execs
	 * are reported by WIRE_PROC_NEW.
	 */
	bool all;
	bool tsos;	    /* report which Haskell thread is running (WIRE_TSO) */
	bool kernel_stacks; /* kernel frames on top of stacks */
};

/*
 * Loads the object and attaches what is not bound to a target: sampler, scheduler, process events.
 * Starts the keeper (keeper_priv.h), a process that holds the links of all programs.
 */
int kernel__open(const struct kernel_opts *opts, struct kernel **ret_kernel);
/* Detaches everything without waiting for it. The maps and the ring can still be read, but
 * mappings are not reported any more. */
void kernel__release(struct kernel *kernel);
/* After kernel__release(): gives up the leases on probed files once everything is detached, so
 * that they may be overwritten. Waits up to wait_ms for that. */
void kernel__let_files_go(struct kernel *kernel, uint64_t wait_ms);
/* Detaches everything; waits for it for two seconds at most. Frees `kernel`. */
void kernel__close(struct kernel *kernel);

/*
 * Starts following a target. Probe places that are FOUND_NONE are left out. On failure nothing of
 * the target stays attached. Until its layout is confirmed (WIRE_TARGET_UNCONFIRMED), a target gets
 * probes only if its file cannot have been forged (ORIGIN_OWNED); otherwise kernel__update() adds
 * them. `account`: the user whose share of the maps it uses (target__account()). `ret_since_ns`:
 * CLOCK_MONOTONIC; what its threads do is observed only from then on, as setting probes takes tens
 * of milliseconds.
 */
int kernel__attach(struct kernel *kernel, const struct target_info *info, uid_t account,
		   uint64_t *ret_since_ns);
/*
 * The same for a child that is about to exec the program: info.pid is the child's, the probes are
 * the file's. Its execs are reported by WIRE_PROC_NEW from here on.
 */
int kernel__arm(struct kernel *kernel, const struct target_info *info, uid_t account);
/* Only reports the execs of the process and of its descendants. */
void kernel__follow(struct kernel *kernel, pid_t pid);
/* The probes of a target that could not be set, and why (a negative errno; 0: all could). */
struct kernel_lacking {
	bool calls, gc; /* safe calls; ends of collections */
	bool gc_parts;	/* other probes on collections: how long threads waited for them */
	int err;
};
void kernel__lacking(const struct kernel *kernel, pid_t pid, struct kernel_lacking *ret_lacking);
/* Whether a target's call probes have been on since before it began, or it was armed. */
bool kernel__covers(const struct kernel *kernel, pid_t pid, uint64_t begun_ns);
/* Whether a process's execs are reported: by kernel__follow(), or because of opts.all. */
bool kernel__follows(const struct kernel *kernel, pid_t pid);
/* Calls fn for each process that kernel__follow() covers; does nothing with opts.all. Returns
 * fn's first failure. */
int kernel__family(struct kernel *kernel, int (*fn)(void *ctx, pid_t pid), void *ctx);
/* To be called when the target's layout has been confirmed: info.wire has changed. -ENOENT: not
 * attached. */
int kernel__update(struct kernel *kernel, const struct target_info *info);
/*
 * From now on whoever execs this program (as named by WIRE_PROC_NEW) is a target at once, and is
 * reported by WIRE_PROC_TARGET. Only with opts.all, and only while the program's probes are
 * attached.
 */
void kernel__learn(struct kernel *kernel, const struct wire_proc_new *program,
		   const struct target_info *info, uid_t account);
/* Undoes kernel__learn(): what was learnt of the program is wrong. */
void kernel__unlearn(struct kernel *kernel, const struct wire_proc_new *program);
/*
 * Uploads the unwind rows of the files that the target maps: to be called before kernel__attach(),
 * and again when its mappings have changed. Without them C frames are missing, but the session can
 * go on after a failure. Running out of room for some rows is not a failure. -EAGAIN: until_ns
 * (CLOCK_MONOTONIC) came before the rows of all files were made; call again. -EBUSY: no time was
 * left for the user's files; -ETIMEDOUT, -EIO: some files took too long to read, or the reader was
 * killed; call again some time later, whichever process mapped them first.
 */
int kernel__unwind(struct kernel *kernel, const struct target *target, uint64_t until_ns);
/* Mappings whose rows were left out: `process`, beyond the limit for one process; `user`, for
 * lack of room for its user's files. */
struct kernel_left_out {
	size_t process, user;
};
void kernel__unwind_left_out(const struct kernel *kernel, pid_t pid,
			     struct kernel_left_out *ret_left_out);
/*
 * What the user's processes were refused since the user was first seen, for having reached the
 * limit for one user (half of what others leave): how often a thread was met that is not followed,
 * and safe calls that are not counted.
 */
struct kernel_refused {
	uint64_t threads, calls;
};
void kernel__refused(const struct kernel *kernel, uid_t uid, struct kernel_refused *ret_refused);
/* The same for all users together, including those whose slots were reused. */
void kernel__all_refused(const struct kernel *kernel, struct kernel_refused *ret_refused);
/* Stops following the target and removes its map entries. Does nothing if it is unknown. */
void kernel__detach(struct kernel *kernel, pid_t pid);

/*
 * Adds a safe call that the snapshot found a thread of a target in when the session began. -EEXIST:
 * the kernel side has seen the thread begin a call; -ENOENT: no such target; -ESRCH: the thread has
 * ended; -EDQUOT: its user has reached the limit.
 */
int kernel__open_call(struct kernel *kernel, pid_t pid, pid_t tid, uint64_t start_ns, uint64_t site,
		      uint64_t incall);

/* ── records and maps ────────────────────────────────────────────────────────────────────── */

typedef int (*kernel_record_fn)(void *ctx, const void *record, size_t size);

/*
 * Waits up to timeout_ms for records and hands over those made by the end of the wait; later ones
 * are left for the next drain. Returns fn's first failure.
 */
int kernel__drain(struct kernel *kernel, int timeout_ms, kernel_record_fn fn, void *ctx);
/*
 * Makes the kernel side send the short off-CPU intervals that it holds back (bpf/hold.bpf.h); to be
 * called before the drain that precedes reading the threads. It holds none back until
 * kernel__hold_again(), with which the reading ends.
 */
void kernel__flush(struct kernel *kernel);
void kernel__hold_again(struct kernel *kernel);
/* True if the sampling frequency is so low that events are made sparse as well
 * (KERNEL_SPARSE_HZ). */
bool kernel__is_sparse(const struct kernel *kernel);
/* Readable when there are enough records for a drain to be worthwhile. */
int kernel__poll_fd(const struct kernel *kernel);

int kernel__sites(struct kernel *kernel,
		  int (*fn)(void *ctx, const struct wire_site_key *key,
			    const struct wire_site *site),
		  void *ctx);
/* Only the sites of processes for which `gone` returns true; they are removed from the map. */
int kernel__sweep_sites(struct kernel *kernel, bool (*gone)(void *ctx, uint32_t tgid),
			int (*fn)(void *ctx, const struct wire_site_key *key,
				  const struct wire_site *site),
			void *ctx);
/*
 * fn gets `epoch` and `depth` 0 if the thread has run since its calls were last known: while the
 * call probes were off it may have begun and ended others.
 */
int kernel__threads(struct kernel *kernel,
		    int (*fn)(void *ctx, pid_t tid, const struct wire_thread *thread), void *ctx);

/* The stack of the off-CPU interval that a thread is in. -ENOENT: there is none. */
int kernel__off_stack(struct kernel *kernel, pid_t tid, struct wire_off_stack *ret_stack);

/* Code that a process has mapped: addresses in that process, the file as the kernel identifies
 * it. */
struct kernel_mapping {
	pid_t pid;
	uint64_t start, end;
	uint64_t ino, generation; /* ino 0: no file */
	uint32_t dev_major, dev_minor;
};
/* mapping NULL: some were lost. */
typedef void (*kernel_mapping_fn)(void *ctx, const struct kernel_mapping *mapping);
/*
 * kernel__mappings() hands over what all processes of the host have mapped since kernel__open() or
 * its last call; -ENOTSUP: the kernel does not report mappings. The descriptor is readable once
 * there is something to hand over; -1: the kernel does not report mappings.
 */
int kernel__mappings_fd(const struct kernel *kernel);
int kernel__mappings(struct kernel *kernel, kernel_mapping_fn fn, void *ctx);

uint64_t kernel__counter(struct kernel *kernel, enum wire_counter which);
/* The report's name for a counter that means a loss; NULL for the others. */
const char *kernel__loss_name(enum wire_counter which);
/* The sum of all counters that mean a loss. */
uint64_t kernel__lost_records(struct kernel *kernel);

/* ── the watch ───────────────────────────────────────────────────────────────────────────── */

/*
 * To be called at each turn of the session's loop. If the last turn was over two seconds ago, the
 * probes are off by now, and come on again after a while. -ENOLINK: everything is off for good,
 * because the loop stood still for long, or the keeper has ended.
 */
int kernel__beat(struct kernel *kernel);
/* Readable when the keeper has ended. */
int kernel__watch_fd(const struct kernel *kernel);

/* How often the probes were off because the loop stood still, and for how long in all. */
struct kernel_held_up {
	unsigned times;
	uint64_t ns;
};
void kernel__held_up(const struct kernel *kernel, struct kernel_held_up *ret_held_up);

/* ── cost and budget ─────────────────────────────────────────────────────────────────────── */

struct kernel_cost {
	uint64_t probe_hits;
	uint64_t trap_ns; /* estimated: hits times the cost of one trap */
	uint64_t bpf_ns;  /* estimated: run time of all programs, for all targets; see bpf_known */
	bool bpf_known;
	/* estimated: run time of all programs for this target, without its wake-ups, and without
	 * those that run as threads and processes begin and end */
	uint64_t own_bpf_ns;
	uint64_t paused_ns;	   /* how long the call probes were off */
	uint64_t observed_ns;	   /* how long they were on */
	uint64_t held_up_until_ns; /* until then all probes were off; 0: they were not */
};

/*
 * To be called about ten times a second. Compares the cost of each target's probes with the budget,
 * takes the call probes off a target that exceeds it, and tries them again for 100 ms at growing
 * intervals. The probes on collections are compared with the budget separately, and come off for
 * good.
 */
void kernel__budget(struct kernel *kernel, uint64_t now_ns);
/*
 * To be called about ten times a second. Changes the sampling period now and then, lest it run in
 * step with what a program does, and starts sampling on CPUs that have come online.
 */
void kernel__turn_sampling(struct kernel *kernel, uint64_t now_ns);
/* From now on one sample in n is taken; 1: all. */
void kernel__sample_every(struct kernel *kernel, uint32_t n);
/*
 * The next target whose probes on collections came off because they cost more than the budget; each
 * is returned once. 0: none.
 */
pid_t kernel__next_gc_off(struct kernel *kernel);
void kernel__cost(struct kernel *kernel, pid_t pid, uint64_t now_ns, struct kernel_cost *ret_cost);

#endif

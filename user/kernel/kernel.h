/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel: the BPF object's life: what this kernel allows, load, attach to targets, drain the ring,
 * read the maps, keep the probes within their budget. Everything it holds is a file descriptor, and
 * those that make programs run are held by a process of their own (keeper_priv.h): a killed daemon
 * leaves nothing behind, and one that stands still slows nobody down.
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
	bool btf; /* /sys/kernel/btf/vmlinux */
	bool ringbuf;
	bool uprobes;	   /* the uprobe PMU or uprobe_multi */
	bool uprobe_multi; /* links whose filter by process works (6.6.35, 6.9.5, 6.10) */
	bool perf_event;   /* the cpu-clock sampler */
	bool perf_uprobes; /* the uprobe PMU: what is used without uprobe_multi */
	bool sched;	   /* BTF of the scheduler's and the process tracepoints */
	bool host_pids;	   /* our PID namespace is the host's, or nobody knows */
	bool host_clocks;  /* and so are our time namespace's clocks */
	uint64_t caps;	   /* effective capabilities, bit by number (linux/capability.h) */
	bool seccomp;	   /* system calls are filtered, as in a container */
	int perf_paranoid; /* -100: not readable */
	char lockdown[32]; /* "none", "integrity", …; "" without the file */
	char release[65];
};

/* Needs no privilege itself; what cannot be tried without one is false. */
void kernel__features(struct kernel_features *ret_features);

/*
 * Prints one line about the first thing without which nothing works (the host's PID namespace,
 * the host's clocks, privileges, BTF, ring buffer, perf events) and returns -EPERM or -ENOTSUP; 0
 * if all is there.
 */
int kernel__require(const struct kernel_features *features);

/* What to do where perf_event_open is refused, and where there is no ring buffer. */
const char *kernel__perf_advice(const struct kernel_features *features);
const char *kernel__ringbuf_advice(const struct kernel_features *features);

/* True if CAP_… (linux/capability.h) is there, or CAP_SYS_ADMIN, which stands for it. */
bool kernel__has_cap(const struct kernel_features *features, int cap);

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

struct kernel;

struct kernel_opts {
	uint32_t frequency_hz;	     /* samples per second and CPU, in the mean */
	double max_overhead_percent; /* of one CPU, for each target's call probes */
	const struct kernel_features *features;
	/*
	 * For every GHC process of the host: targets of one file share its probes, and what execs
	 * is reported by WIRE_PROC_NEW.
	 */
	bool all;
	bool tsos;	    /* report which Haskell thread runs (WIRE_TSO) */
	bool kernel_stacks; /* kernel frames on top of stacks */
};

/*
 * Loads and attaches what is not bound to a target: sampler, scheduler, process events. Starts the
 * keeper (keeper_priv.h), a process that holds all programs.
 */
int kernel__open(const struct kernel_opts *opts, struct kernel **ret_kernel);
/* Takes everything off, and does not wait for it; the maps and the ring can still be read, but no
 * mappings are reported any more. */
void kernel__release(struct kernel *kernel);
/* After that: once everything is off, for which it waits for so long, files may be overwritten. */
void kernel__let_files_go(struct kernel *kernel, uint64_t wait_ms);
/* Takes everything off, and waits for it no longer than two seconds. */
void kernel__close(struct kernel *kernel);

/*
 * Follows a target from now on. Probe places that are FOUND_NONE are left out. On failure nothing
 * of the target stays attached. Until its layout is confirmed (WIRE_TARGET_UNCONFIRMED) it gets
 * probes only if its file is one that nobody can have forged (ORIGIN_OWNED); kernel__update()
 * brings the others. `account`: the user who has what it takes of the maps (target__account()).
 * `ret_since_ns`: CLOCK_MONOTONIC; what its threads do is seen from then on, and not before: to set
 * probes takes tens of milliseconds.
 */
int kernel__attach(struct kernel *kernel, const struct target_info *info, uid_t account,
		   uint64_t *ret_since_ns);
/*
 * The same of a child that waits to exec the program: info.pid is the child's, the probes are of
 * the file. Its execs are reported by WIRE_PROC_NEW from now on.
 */
int kernel__arm(struct kernel *kernel, const struct target_info *info, uid_t account);
/* Only reports the execs of the process and of those that it starts. */
void kernel__follow(struct kernel *kernel, pid_t pid);
/* Probes of a target that could not be set where they belong, and why (negative errno; 0: all
 * could). */
struct kernel_lacking {
	bool calls, gc; /* safe calls', collections' ends' */
	bool gc_parts;	/* others on collections: how long they were waited for */
	int err;
};
void kernel__lacking(const struct kernel *kernel, pid_t pid, struct kernel_lacking *ret_lacking);
/* Whether the call probes of a target were on before it was attached, or it was armed. */
bool kernel__covers(const struct kernel *kernel, pid_t pid);
/* Whether a process's execs are reported: it is one of those, or opts.all. */
bool kernel__follows(const struct kernel *kernel, pid_t pid);
/* Calls fn for each of those, unless opts.all. fn's first failure is returned. */
int kernel__family(struct kernel *kernel, int (*fn)(void *ctx, pid_t pid), void *ctx);
/* The target's layout is confirmed now: info.wire is new. -ENOENT. */
int kernel__update(struct kernel *kernel, const struct target_info *info);
/*
 * Whoever execs this program (as WIRE_PROC_NEW named it) from now on is a target at once; reported
 * by WIRE_PROC_TARGET. Only with opts.all, and while its probes are attached.
 */
void kernel__learn(struct kernel *kernel, const struct wire_proc_new *program,
		   const struct target_info *info, uid_t account);
/* What was learnt of the program is wrong. */
void kernel__unlearn(struct kernel *kernel, const struct wire_proc_new *program);
/*
 * Brings the unwind rows of what the target maps: before kernel__attach, and again when its
 * mappings have changed. Without them C frames are not known; the session goes on after a failure.
 * That there was no room for some of them is not a failure. -EAGAIN: at until_ns (CLOCK_MONOTONIC)
 * there were files left of which rows have not been made; to be called again. -EBUSY: there was no
 * time for the user's files; -ETIMEDOUT, -EIO: some took too long to read, or what read them was
 * killed; to be called again some time later, whoever was the first to map them.
 */
int kernel__unwind(struct kernel *kernel, const struct target *target, uint64_t until_ns);
/* Mappings whose rows were left out: of the process, beyond those that one process may have, and
 * for want of room for its user's files. */
struct kernel_left_out {
	size_t process, user;
};
void kernel__unwind_left_out(const struct kernel *kernel, pid_t pid,
			     struct kernel_left_out *ret_left_out);
/*
 * What the user's processes were refused because they have as much as one user may, half of what
 * others leave: how often a thread was met that is not followed, and safe calls that are not
 * counted. Since the user was first seen.
 */
struct kernel_refused {
	uint64_t threads, calls;
};
void kernel__refused(const struct kernel *kernel, uid_t uid, struct kernel_refused *ret_refused);
/* The same of all users together, those whom nobody needs to know any more included. */
void kernel__all_refused(const struct kernel *kernel, struct kernel_refused *ret_refused);
/* Forgets the target; its map entries go too. Does nothing if it is unknown. */
void kernel__detach(struct kernel *kernel, pid_t pid);

/*
 * A safe call that a thread of a target was in when the session began, as the snapshot found it.
 * -EEXIST: the kernel side has seen it begin; -ENOENT: no such target; -ESRCH: the thread has
 * ended; -EDQUOT: its user has as many as one may.
 */
int kernel__open_call(struct kernel *kernel, pid_t pid, pid_t tid, uint64_t start_ns, uint64_t site,
		      uint64_t incall);

/* ── records and maps ────────────────────────────────────────────────────────────────────── */

typedef int (*kernel_record_fn)(void *ctx, const void *record, size_t size);

/*
 * Waits up to timeout_ms for records, hands over those that there are by then: what comes meanwhile
 * is for the next time. fn's first failure is returned.
 */
int kernel__drain(struct kernel *kernel, int timeout_ms, kernel_record_fn fn, void *ctx);
/*
 * Makes the kernel side send the short stays off the CPU that it holds (bpf/hold.bpf.h): to be
 * called before the drain that a reading of threads follows. None is held before
 * kernel__hold_again(), which the reading ends with.
 */
void kernel__flush(struct kernel *kernel);
void kernel__hold_again(struct kernel *kernel);
/* Whether the sampler's frequency is so low that events are sparse, too (KERNEL_SPARSE_HZ). */
bool kernel__is_sparse(const struct kernel *kernel);
/* Readable when there are enough records to be worth a drain. */
int kernel__poll_fd(const struct kernel *kernel);

int kernel__sites(struct kernel *kernel,
		  int (*fn)(void *ctx, const struct wire_site_key *key,
			    const struct wire_site *site),
		  void *ctx);
/* Only those of processes for which `gone` says so, which are removed then. */
int kernel__sweep_sites(struct kernel *kernel, bool (*gone)(void *ctx, uint32_t tgid),
			int (*fn)(void *ctx, const struct wire_site_key *key,
				  const struct wire_site *site),
			void *ctx);
/*
 * `epoch` of what fn gets is 0, and so is `depth`, if the thread has run since its calls were
 * known: while the call probes were off it may have begun and ended others.
 */
int kernel__threads(struct kernel *kernel,
		    int (*fn)(void *ctx, pid_t tid, const struct wire_thread *thread), void *ctx);

/* The stack of the off-CPU interval that a thread is still in. -ENOENT. */
int kernel__off_stack(struct kernel *kernel, pid_t tid, struct wire_off_stack *ret_stack);

/* Code that a process has mapped; addresses are its own, the file as the kernel names it. */
struct kernel_mapping {
	pid_t pid;
	uint64_t start, end;
	uint64_t ino, generation; /* ino 0: no file */
	uint32_t dev_major, dev_minor;
};
/* NULL: some were lost. */
typedef void (*kernel_mapping_fn)(void *ctx, const struct kernel_mapping *mapping);
/*
 * Hands over what all processes of the host have mapped since kernel__open() or the last call.
 * -ENOTSUP: the kernel does not report it.
 */
/* Readable once there is something to hand over; -1: the kernel does not report it. */
int kernel__mappings_fd(const struct kernel *kernel);
int kernel__mappings(struct kernel *kernel, kernel_mapping_fn fn, void *ctx);

uint64_t kernel__counter(struct kernel *kernel, enum wire_counter which);
/* Name of a counter that means a loss, for the report; NULL for the others. */
const char *kernel__loss_name(enum wire_counter which);
/* The sum of those. */
uint64_t kernel__lost_records(struct kernel *kernel);

/* ── the watch ───────────────────────────────────────────────────────────────────────────── */

/*
 * The session's loop has turned. When it has not for two seconds, the probes are off by now, and
 * come on again after a while. -ENOLINK: everything is off for good: the loop stood still for long,
 * or the keeper has ended.
 */
int kernel__beat(struct kernel *kernel);
/* Readable when the keeper has ended. */
int kernel__watch_fd(const struct kernel *kernel);

/* How often the probes were off for that reason, and for how long in all. */
struct kernel_held_up {
	unsigned times;
	uint64_t ns;
};
void kernel__held_up(const struct kernel *kernel, struct kernel_held_up *ret_held_up);

/* ── cost and budget ─────────────────────────────────────────────────────────────────────── */

struct kernel_cost {
	uint64_t probe_hits;
	uint64_t trap_ns; /* estimated: hits times one trap's cost */
	uint64_t bpf_ns;  /* estimated: run time of all programs, all targets; see bpf_known */
	bool bpf_known;
	uint64_t paused_ns;	   /* how long the call probes were off */
	uint64_t observed_ns;	   /* how long they were on */
	uint64_t held_up_until_ns; /* until then all were off (kernel__held_up); 0: they were not */
};

/*
 * To be called about ten times a second: holds each target's probes against the budget, takes the
 * call probes off one that exceeds it, tries them again for 100 ms at growing intervals. The probes
 * on collections' ends are held against it by themselves, and come off for good.
 */
void kernel__budget(struct kernel *kernel, uint64_t now_ns);
/*
 * To be called about ten times a second: changes the sampler's period at times, lest it keep step
 * with what a program does, and begins on CPUs that have come online.
 */
void kernel__turn_sampling(struct kernel *kernel, uint64_t now_ns);
/* From now on one sample in so many is taken; 1: all. */
void kernel__sample_every(struct kernel *kernel, uint32_t n);
/*
 * A target whose probes on collections' ends came off, because they cost more than the budget; each
 * is reported once. 0: none.
 */
pid_t kernel__next_gc_off(struct kernel *kernel);
void kernel__cost(struct kernel *kernel, pid_t pid, uint64_t now_ns, struct kernel_cost *ret_cost);

#endif

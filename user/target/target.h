/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target: a process and the GHC runtime in it. Everything read here was written by somebody else:
 * sizes are bounded, files are opened O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC and must be regular (except
 * for /proc's own links), and the process is never stopped, written to or executed.
 */
#ifndef SAFESCOPED_TARGET_H
#define SAFESCOPED_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "names/code_name.h"
#include "process/origin.h"
#include "rts/found.h"
#include "wire.h"

/* ── one process ─────────────────────────────────────────────────────────────────────────── */

struct target;

/* A place for a uprobe: an offset in the file that holds the runtime (target_info.probe_file). */
struct target_probe {
	char path[64]; /* where the file was found, for messages: the path may refer to another file
			  by now */
	uint64_t offset;   /* file offset of the instruction */
	uint64_t addr;	   /* the same place in the process's memory */
	uint64_t dev, ino; /* the file's identity */
	enum rts_found found;
	bool emulated; /* the kernel emulates the instruction instead of single-stepping it */
	char insn[48]; /* the instruction, disassembled */
};

/* What was found out about the process. Strings live as long as the target. */
struct target_info {
	pid_t pid;
	pid_t ns_pid;		/* in its innermost PID namespace */
	uint64_t start_time_ns; /* CLOCK_BOOTTIME (/proc/PID/stat, field 22) */
	bool clock_known;	/* if false, no time taken by the runtime's clock is used: */
	int64_t clock_ahead_ns; /* CLOCK_MONOTONIC in its time namespace, minus the kernel's own */
	char comm[16];
	const char *exe;	 /* path as from proc__exe() */
	const char *build_id;	 /* hex; "" if the executable has none */
	const char *ghc_version; /* "9.0.2" */
	bool version_known;	 /* it is in the layout table */
	const char *way;	 /* "rts_thr_p" */
	bool threaded, profiled, debug;
	bool dynamic_rts;      /* the RTS is a shared library */
	bool layout_checked;   /* all checks against the live process passed */
	uint8_t rts_opts;      /* see rts/check.h */
	uint32_t capabilities; /* how many exist at present */
	enum rts_found caps_found;
	struct target_probe suspend, resume, tick, gc_sync, gc_start,
		gc_end; /* .found == FOUND_NONE: absent */
	/*
	 * The file that all probes go into: O_PATH, owned by the target; -1: none. For which
	 * processes probes in it may take effect, see process/origin.h.
	 */
	int probe_file;
	enum origin_reach reach;
	bool in_overlay;
	/* Where it runs, from its control group; "": not known (process/cgroup.h). */
	const char *container, *pod, *service, *cgroup;
	const char *no_probes; /* why there are no probes although there are places for them; else
				  NULL */
	const char *only_sampled; /* TARGET_SAMPLED: why; else NULL */
	struct wire_target wire;  /* ready for the kernel's `targets` map */
};

enum target_verdict {
	TARGET_OK = 0,
	TARGET_NOT_READY, /* the runtime is not initialised yet: target__start_check() later */
	TARGET_SAMPLED,	  /* packed; only with opts->sample, see only_sampled */
	TARGET_REFUSED,	  /* a GHC program that cannot be profiled; only with opts->reason */
};

/* What is known of files, shared by all targets that are opened with the cache. Must be freed after
 * all of them. */
struct target_cache;
struct debuginfod;
int target_cache__new(struct target_cache **ret_cache);
void target_cache__free(struct target_cache *cache);
/* To be called often: drops what has not been used for a long time (process/file.h). */
void target_cache__turn(struct target_cache *cache, uint64_t now_ns);
/*
 * Takes names for statically linked code from the archives in these directories (archives.h). To be
 * called once, before targets are opened. Failures are printed.
 */
int target_cache__open_archives(struct target_cache *cache, const char *const *dirs, size_t n);
/* True if target_cache__open_archives() would find archives in each directory; prints nothing. */
bool target_cache__finds_archives(const char *const *dirs, size_t n);
/*
 * Requests files with symbols from there (debuginfod.h), which must outlive the cache. To be called
 * once, before targets are opened.
 */
void target_cache__ask(struct target_cache *cache, struct debuginfod *debuginfod);
/*
 * False: the kernel hides the addresses of its functions, and WIRE_FRAME_KERNEL frames have no
 * names. Reads the addresses, so it must be called after the kernel side is loaded: its programs
 * have names as well.
 */
bool target_cache__knows_kernel(struct target_cache *cache);

/*
 * Thresholds for target_info.wire. A safe call of at least 500 us is worth a record and a stack: at
 * most 2000 of them fit into a second of a thread. An off-CPU interval of at least 100 us is worth
 * a stack.
 */
#define TARGET_CALL_RECORD_NS 500000
#define TARGET_OFF_RECORD_NS  100000

struct target_opts {
	const char *symbols_path;   /* --symbols FILE, or NULL */
	bool force;		    /* accept a build-id that does not match */
	struct target_cache *cache; /* NULL: nothing is shared */
	/*
	 * Receives the line about what is wrong, without "pid N: ", instead of standard error. A
	 * GHC program that cannot be profiled is then not a failure but TARGET_REFUSED.
	 */
	char *reason;
	size_t reason_size;
	/*
	 * A program whose code is in no file is not a failure but TARGET_SAMPLED: its threads, when
	 * they ran and where they waited can be reported, but nothing of what they ran.
	 */
	bool sample;
	/*
	 * The process has just been exec'd. -EAGAIN: its runtime is a library that is not mapped
	 * yet. An unexpected state counts as not initialised yet.
	 */
	bool starting;
	/* Leave the check to target__start_check(): TARGET_NOT_READY. */
	bool unchecked;
};

/*
 * Opens pid (pidfd, start time), finds its GHC runtime, chooses the layout and checks it against
 * the live process. Prints one line and returns
 *   -ESRCH no such process · -ENOEXEC not a GHC program, or of another architecture ·
 *   -EPERM/-EACCES may not look into it · -ENOTSUP a GHC whose layout could not be confirmed ·
 *   another negative errno.
 */
int target__open(pid_t pid, const struct target_opts *opts, struct target **ret_target,
		 enum target_verdict *ret_verdict);
void target__free(struct target *target);

/*
 * A target that is not ready can be attached already: its probes are known, and info.wire has
 * WIRE_TARGET_UNCONFIRMED, unless there is no layout.
 */

/* ── looks that nobody waits for ─────────────────────────────────────────────────────────── */

/*
 * A look into the process's memory runs in a child of its own, which is killed if it takes too
 * long: reading memory may hang (FUSE). Only one can run at a time; starting another one ends it.
 *
 * After TARGET_NOT_READY: checks the process again. `last`: an unexpected state counts as wrong;
 * otherwise as not ready. Errors like target__open(), with their line in `reason` (NULL: on
 * standard error); -EBUSY: no child can be started at present, or the memory hung recently.
 */
int target__start_check(struct target *target, bool last, char *reason, size_t reason_size);
/*
 * Never waits. -EINPROGRESS: the check is still running; otherwise it is finished. On 0, info.wire
 * and everything else that only the live process can show has been filled in. -ETIMEDOUT: the
 * memory hangs; other errors as above.
 */
int target__take_check(struct target *target, char *reason, size_t reason_size,
		       enum target_verdict *ret_verdict);

struct snapshot;
/* Starts a snapshot of the threads. -EAGAIN: the target is not ready; -EBUSY as above. */
int target__start_snapshot(struct target *target, int timeout_ms);
/* -EINPROGRESS; 0: free the result with snapshot__free(). -ETIMEDOUT, -EIO, -ENOMEM. */
int target__take_snapshot(struct target *target, struct snapshot *ret_snapshot);

struct target_census;
/*
 * Starts a heap census, while the process runs on or, with freeze_ms above 0, while it is stopped
 * for no longer than that; if it cannot be stopped, a line is printed and it runs on. -EAGAIN: the
 * target is not ready; -ENOTSUP: the layout of its heap is not known; -EBUSY as above.
 */
int target__start_census(struct target *target, int timeout_ms, int freeze_ms);
/* -EINPROGRESS; 0: *ret_census is to be freed. -ETIMEDOUT, -EIO, -EFAULT, -ENOMEM; -EINVAL: none is
 * running. */
int target__take_census(struct target *target, struct target_census **ret_census);

struct target_living;
/*
 * Starts reading which Haskell threads the process has, while it runs on. -EAGAIN: the target is
 * not ready; -ENOTSUP: the layout of its lists is not known; -EBUSY as above.
 */
int target__start_living(struct target *target, int timeout_ms);
/* -EINPROGRESS; 0: *ret_living is to be freed. -E2BIG: more than TARGET_LIVING_MAX; -ETIMEDOUT,
 * -EIO, -EFAULT, -ENOMEM; -EINVAL: none is running. */
int target__take_living(struct target *target, struct target_living **ret_living);

/* True if a look is running. */
bool target__looks(const struct target *target);
/* Readable (poll) when the look is finished; -1: this kernel has no such descriptor, so poll by
 * time. */
int target__look_fd(const struct target *target);
/* Ends the look that is running, if any. */
void target__cancel(struct target *target);

/*
 * For an executable that is yet to be started: its probes and layout, as for a target that is not
 * ready; info.pid is 0. Prints nothing. -ENOEXEC: it holds no runtime, or one of a version without
 * a known layout.
 */
int target__open_file(int fd, const char *path, const struct target_opts *opts,
		      struct target **ret_target);

const struct target_info *target__info(const struct target *target);
/* Notes that the probes on safe calls, or on collections, could not be set: info then has none of
 * them. */
void target__set_unprobed(struct target *target, bool calls, bool gc);

/* Readable (poll) when the process has exited. Owned by the target. */
int target__pidfd(const struct target *target);

/* True while this pid still belongs to the process that was opened (pidfd alive, start time
 * equal). */
bool target__alive(const struct target *target);

/*
 * False: the process has called exec since it was opened, and runs another program. True also if
 * that cannot be determined.
 */
bool target__runs_same(const struct target *target);

/* True if the last check (target__take_check) found a runtime that was not initialised at all. */
bool target__untouched(const struct target *target);

/* Reads /proc/PID/maps again (dlopen, exec). Resolved names stay valid, except for those in places
 * returned by target__take_retaken(). */
int target__refresh_maps(struct target *target);
/* True if files that it maps could not be read in time: reading them again may succeed. */
bool target__may_come_later(const struct target *target);
/*
 * Returns a range in which the code of another file was found by the readings so far. The target
 * names it anew; anyone who keeps names of it must ask for them again. False: no more.
 */
bool target__take_retaken(struct target *target, uint64_t *ret_start, uint64_t *ret_end);
/* The user that the process is accounted to (process/proc.h). */
uid_t target__account(const struct target *target);
/*
 * How many mappings of code, as last read, are of files that were not opened, so that code in them
 * has no names: for lack of room; because a file that is not on a local file system could not be
 * copied; because it could not be opened.
 */
struct target_left_out {
	size_t no_room, not_copied, not_opened;
};
void target__left_out(const struct target *target, struct target_left_out *ret_left_out);

/* ── what --list and --doctor report besides ─────────────────────────────────────────────── */

struct target_traits {
	const char *linking; /* "dynamic", "static glibc", "static musl", "dynamic Haskell", … */
	const char *symbols; /* "full", "dynamic only", "debug file", "none" */
	uint32_t threads;
	char eventlog[256];  /* path of the eventlog that it writes; "": none */
	int eventlog_number; /* its descriptor for that (open_file__own) */
};
/* Takes at most timeout_ms. Unknown fields are "" or 0. */
void target__traits(struct target *target, int timeout_ms, struct target_traits *ret_traits);

/* "full", "dynamic only", "debug file", "none"; "" if there is no runtime. */
const char *target__symbols(const struct target *target);

/* How the live process confirmed the layout. */
struct target_confirmed {
	uint32_t capabilities, tasks, tsos; /* how many of each agreed */
	bool tls;		   /* my_task's offset was verified by the Tasks' own ids */
	const char *task_layout;   /* "with clock", "without clock": see layout.h */
	uint64_t stgrun_ret;	   /* 0: not found */
	const char *rts_file;	   /* base name of the file that holds the runtime */
	uint32_t votes, runner_up; /* call sites that agree on suspendThread and resumeThread, and
				      on the second best pair; 0: not needed */
};
void target__confirmed(const struct target *target, struct target_confirmed *ret_confirmed);

/* ── discovery ───────────────────────────────────────────────────────────────────────────── */

/*
 * A quick check: 1 if the process maps a file that holds a GHC runtime; 0 if not (or it is gone, or
 * access is denied). -EBUSY: not known, because time or memory was lacking for one of the files; a
 * later call may succeed. -EMFILE: there was no descriptor. Each file is inspected once per cache.
 */
int discover__process(struct target_cache *cache, pid_t pid);
/*
 * True if the program that a process runs is not GHC's, and will not be unless it later maps a
 * library with a runtime that it does not name: true of most processes that start on a host. Checks
 * only the executable, so a known one costs next to nothing. Also false if it is not known.
 */
bool discover__is_plain(struct target_cache *cache, pid_t pid);
/* Like discover__process(), for the mapping of file `ino` at `start`; -ESRCH and other errors if it
 * is gone or access is denied. */
int discover__mapping(struct target_cache *cache, pid_t pid, uint64_t start, uint64_t ino);
/*
 * Calls fn for every process for which discover__process() does not return 0; before_each, if not
 * NULL, is called before each process is inspected. Stops when one of them returns non-zero, and
 * returns that.
 */
int discover__all(struct target_cache *cache, int (*before_each)(void *ctx),
		  int (*fn)(void *ctx, pid_t pid), void *ctx);

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

/*
 * Starts to read what names need, which takes long. A snapshot is not finished before that, within
 * its time limit, so that its contents have names.
 */
void target__prepare_names(struct target *target);

/*
 * Names a frame (see wire.h, enum wire_frame_kind). Never fails: an address in no mapping becomes
 * "[unmapped]". A WIRE_FRAME_SITE is named after the foreign function that is called there.
 */
void target__name(struct target *target, uint64_t frame, struct code_name *ret_name);

/* A safe call's site, from the return address of its suspendThread or resumeThread call. */
int target__site(struct target *target, uint64_t ret_addr, struct target_site *ret_site);

/* ── cost-centre stacks ──────────────────────────────────────────────────────────────────── */

/* A CostCentreStack of a profiled program: its innermost cost centre. Strings live as long as the
 * target. */
struct target_ccs {
	uint64_t addr, parent; /* parent: the enclosing CostCentreStack; 0: this is the root */
	const char *label, *module, *src_loc;
};
/*
 * Reads the stacks at these addresses, their parents and, now and then, the whole tree, in a child
 * process that is killed after a second. -ENOTSUP: not a profiled program; -ESRCH: it has ended;
 * -ETIMEDOUT: its memory hangs. After three timeouts in a row it is not read for a minute, and for
 * longer each time, up to an hour.
 */
int target__read_ccs(struct target *target, const uint64_t *addrs, size_t n);
/* A stack that was read before; -ENOENT. Its parents are available as well, without a cycle. */
int target__ccs(const struct target *target, uint64_t addr, struct target_ccs *ret_ccs);

/* ── snapshot ────────────────────────────────────────────────────────────────────────────── */

/* One thread, as found by the snapshot's helper process. */
struct snap_thread {
	pid_t tid;
	char comm[16];
	struct wire_rts rts;
	uint64_t start_time_ns; /* CLOCK_MONOTONIC, accurate to a clock tick; 0: the thread had
				   ended by then */
	uint64_t site; /* in a safe call: return address of the suspendThread call; 0: not found */
	uint64_t incall;  /* Task.incall */
	uint32_t syscall; /* number, or WIRE_NO_SYSCALL */
	char state;	  /* from /proc/PID/task/TID/stat: R, S, D, … */
	struct wire_stack stack;
	uint64_t frames[WIRE_OFF_FRAMES];
};

struct snapshot {
	struct snap_thread *threads;
	size_t n;
};

void snapshot__free(struct snapshot *snapshot);

/* ── census ──────────────────────────────────────────────────────────────────────────────── */

#define TARGET_CENSUS_MAX	  1024
#define TARGET_CENSUS_CONSTRUCTOR 104

/* The closures with the same info table. */
struct target_census_entry {
	uint64_t info; /* address of the info table, which is that of its entry code */
	uint64_t count, bytes;
	uint32_t type, pad;			     /* enum closure_type, census/census.h */
	char constructor[TARGET_CENSUS_CONSTRUCTOR]; /* "package:Module.Name"; "": it is none */
};

/* As in struct census; largest entries first. No pointers, since captures contain it. */
struct target_census {
	uint64_t blocks_bytes, walked_bytes, counted_bytes, gap_bytes, unknown_bytes, large_bytes,
		compact_bytes, pinned_bytes, mutable_bytes;
	uint64_t frozen_ns;    /* how long the process was stopped, at most; 0: it was not */
	uint64_t frozen_whole; /* 1: it stayed stopped until everything was read */
	uint64_t live_bytes; /* live bytes at the end of the collection; filled in by the caller */
	uint64_t others_count, others_bytes; /* sum of everything without an entry */
	uint32_t cut, n;
	struct target_census_entry entries[TARGET_CENSUS_MAX];
};

/* ── Haskell threads ─────────────────────────────────────────────────────────────────────── */

/* Limit on threads read in a look. */
#define TARGET_LIVING_MAX (1U << 18)

struct target_living_thread {
	uint64_t id;
	uint16_t why_blocked;
	uint16_t pad[3];
};

/* Limit on quiet spans: readings during which no collection of the youngest generation moved a
 * thread. */
#define TARGET_LIVING_QUIETS 8

struct target_living_quiet {
	uint64_t start_ns, end_ns;
};

/*
 * Haskell threads that had not ended at some moment between began_ns and ended_ns
 * (CLOCK_MONOTONIC), by id. Includes all that lived throughout, provided that no collection was
 * running during one of the quiet spans. No collection moved a thread in these spans; but a thread
 * that a collection resurrects, to raise an exception in it, is missing until that collection ends,
 * and while the non-moving collector marks concurrently, old threads may be missing
 * (rts/sm/NonMoving.c, nonmoving_old_threads). No pointers, since captures contain it.
 */
struct target_living {
	uint64_t began_ns, ended_ns;
	uint64_t cpu_ns; /* CPU time of the look, no more than its duration */
	struct target_living_quiet quiet[TARGET_LIVING_QUIETS];
	uint64_t n_quiet; /* 0: each attempt was disturbed by a collection, and n is 0 */
	uint64_t n;
	struct target_living_thread v[];
};

/* ── unwind rows ─────────────────────────────────────────────────────────────────────────── */

struct cfi_rows; /* unwind/cfi.h */

/* A mapping of code that has unwind rows or might have them. */
struct target_code {
	uint64_t start, end;
	uint64_t bias;	     /* address in the process minus address in the file */
	uint64_t dev, ino;   /* the file's identity; 0, 0: the vdso, the same for all processes */
	uint64_t changed_ns; /* when the file was last changed */
};
size_t target__n_code(const struct target *target);
/* -ENOENT: the file of this mapping is not known. */
int target__code_at(const struct target *target, size_t i, struct target_code *ret_code);

/* Makes the rows of a mapping's file; free them with cfi_rows__free(). -ENOENT: it has none. */
int target__rows(const struct target *target, size_t i, struct cfi_rows *ret_rows);

#endif

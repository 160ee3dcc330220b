/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target: a process and the GHC runtime in it. Everything read here was written by somebody
 * else: sizes are bounded, files are opened O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC and must be regular
 * (but for /proc's own links), the process is never stopped, never written to and never executed.
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

/* A place for a uprobe: an offset into the file that holds the runtime (target_info.probe_file). */
struct target_probe {
	char path[64];	 /* where the file was found, for messages: it may lead elsewhere by now */
	uint64_t offset; /* file offset of the instruction */
	uint64_t addr;	 /* the same place in the process's memory */
	uint64_t dev, ino; /* the file's identity */
	enum rts_found found;
	bool emulated; /* the kernel emulates the instruction instead of stepping it */
	char insn[48]; /* the instruction, disassembled */
};

/* What the finder learnt. Strings live as long as the target. */
struct target_info {
	pid_t pid;
	pid_t ns_pid;		/* in its innermost PID namespace */
	uint64_t start_time_ns; /* CLOCK_BOOTTIME (/proc/PID/stat, field 22) */
	bool clock_known;	/* else nothing that the runtime noted by its clock is used: */
	int64_t clock_ahead_ns; /* CLOCK_MONOTONIC of its time namespace, less the kernel's own */
	char comm[16];
	const char *exe;	 /* path, as proc__exe() has it */
	const char *build_id;	 /* hex; "" if the executable has none */
	const char *ghc_version; /* "9.0.2" */
	bool version_known;	 /* the layout table has it */
	const char *way;	 /* "rts_thr_p" */
	bool threaded, profiled, debug;
	bool dynamic_rts;      /* the RTS is a shared library */
	bool layout_checked;   /* all checks against the live process passed */
	uint8_t rts_opts;      /* see rts/check.h */
	uint32_t capabilities; /* how many exist now */
	enum rts_found caps_found;
	struct target_probe suspend, resume, tick, gc_sync, gc_start,
		gc_end; /* .found == FOUND_NONE: absent */
	/*
	 * The file that all probes go into: O_PATH, owned by the target; -1: there is none. How far
	 * probes in it may reach, see process/origin.h.
	 */
	int probe_file;
	enum origin_reach reach;
	bool in_overlay;
	/* Where it runs, by its control group; "": not known (process/cgroup.h). */
	const char *container, *pod, *service, *cgroup;
	const char *no_probes;	  /* why there are none, though there are places; else NULL */
	const char *only_sampled; /* TARGET_SAMPLED: why; else NULL */
	struct wire_target wire;  /* ready for the kernel's `targets` map */
};

enum target_verdict {
	TARGET_OK = 0,
	TARGET_NOT_READY, /* the runtime is not initialised yet: target__start_check() later */
	TARGET_SAMPLED,	  /* packed: only with opts->sample, see only_sampled */
	TARGET_REFUSED,	  /* a GHC program that cannot be profiled: only with opts->reason */
};

/* What was learnt of files, shared by the targets that are opened with it. Outlives none of them:
 * free it last. */
struct target_cache;
struct debuginfod;
int target_cache__new(struct target_cache **ret_cache);
void target_cache__free(struct target_cache *cache);
/* To be called often: forgets what has not been used for long (process/file.h). */
void target_cache__turn(struct target_cache *cache, uint64_t now_ns);
/*
 * From now on what was linked from the static archives in these directories has their names
 * (archives.h). To be called once, before targets are opened. Failures are printed.
 */
int target_cache__open_archives(struct target_cache *cache, const char *const *dirs, size_t n);
/*
 * From now on files with symbols are asked for there (debuginfod.h), which outlives the cache. The
 * same.
 */
void target_cache__ask(struct target_cache *cache, struct debuginfod *debuginfod);
/*
 * False: the kernel shows no addresses of its functions, and WIRE_FRAME_KERNEL frames have no
 * names. Reads them, so to be called when the kernel side is loaded: its programs have names too.
 */
bool target_cache__knows_kernel(struct target_cache *cache);

/*
 * What target_info.wire begins with. A safe call from 500 us on is worth a record and a stack: at
 * most 2000 of them fit into a second of a thread; and an off-CPU interval from 100 us on a stack.
 */
#define TARGET_CALL_RECORD_NS 500000
#define TARGET_OFF_RECORD_NS  100000

struct target_opts {
	const char *symbols_path;   /* --symbols FILE, or NULL */
	bool force;		    /* accept a build-id that does not match */
	struct target_cache *cache; /* NULL: nothing is shared */
	/*
	 * Takes the line about what is wrong, without "pid N: ", instead of standard error. Then a
	 * GHC program that cannot be profiled is no failure but TARGET_REFUSED, to be looked at.
	 */
	char *reason;
	size_t reason_size;
	/*
	 * A program whose code is in no file is no failure but TARGET_SAMPLED: its threads, when
	 * they ran and where they waited can be reported, and nothing of what they ran.
	 */
	bool sample;
	/*
	 * The process has just been exec'd. -EAGAIN: its runtime is a library that is not mapped
	 * yet; and what does not look right is taken for not initialised yet.
	 */
	bool starting;
	/* The check is left to target__start_check(): TARGET_NOT_READY. */
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
 * WIRE_TARGET_UNCONFIRMED (no layout: it has not).
 */

/* ── looks that nobody waits for ─────────────────────────────────────────────────────────── */

/*
 * A look into the process's memory goes on in a child of its own, which is killed when it takes too
 * long: reading memory may hang (FUSE). One at a time; starting another one ends it.
 *
 * After TARGET_NOT_READY: looks again. `last`: what does not look right now is wrong; else it is
 * not ready. Errors as of target__open(), with their line in `reason` (NULL: on standard error);
 * -EBUSY: no child can be started now, or the memory hung not long ago.
 */
int target__start_check(struct target *target, bool last, char *reason, size_t reason_size);
/*
 * Never waits. -EINPROGRESS: it goes on. Otherwise it is over. On 0 it has filled in info.wire and
 * what else only the live process can show. -ETIMEDOUT: the memory hangs; other errors as above.
 */
int target__take_check(struct target *target, char *reason, size_t reason_size,
		       enum target_verdict *ret_verdict);

struct snapshot;
/* A snapshot of the threads. -EAGAIN: the target is not ready; -EBUSY as above. */
int target__start_snapshot(struct target *target, int timeout_ms);
/* -EINPROGRESS; 0: free it with snapshot__free(). -ETIMEDOUT, -EIO, -ENOMEM. */
int target__take_snapshot(struct target *target, struct snapshot *ret_snapshot);

struct target_census;
/*
 * What its heap is made of, while it runs on, or with freeze_ms above 0 while it is stopped, which
 * takes no longer than that; a line is printed when it cannot be, and it runs on then. -EAGAIN: the
 * target is not ready; -ENOTSUP: its heap's places are not known; -EBUSY as above.
 */
int target__start_census(struct target *target, int timeout_ms, int freeze_ms);
/* -EINPROGRESS; 0: *ret_census is to be freed. -ETIMEDOUT, -EIO, -EFAULT, -ENOMEM; -EINVAL: none
 * goes on. */
int target__take_census(struct target *target, struct target_census **ret_census);

struct target_living;
/*
 * Which Haskell threads it has, while it runs on. -EAGAIN: the target is not ready; -ENOTSUP: the
 * places of its lists are not known; -EBUSY as above.
 */
int target__start_living(struct target *target, int timeout_ms);
/* -EINPROGRESS; 0: *ret_living is to be freed. -E2BIG: more than TARGET_LIVING_MAX; -ETIMEDOUT,
 * -EIO, -EFAULT, -ENOMEM; -EINVAL: none goes on. */
int target__take_living(struct target *target, struct target_living **ret_living);

/* Whether a look goes on. */
bool target__looks(const struct target *target);
/* Readable when it is over, for poll(); -1: this kernel has no such descriptor, so ask now and
 * then. */
int target__look_fd(const struct target *target);
/* Ends the look that goes on, if there is one. */
void target__cancel(struct target *target);

/*
 * The executable of a process that is yet to be: where its probes go and its layout, as of a
 * target that is not ready; info.pid is 0. Prints nothing. -ENOEXEC: it holds no runtime, or one
 * of a version whose layout nobody knows.
 */
int target__open_file(int fd, const char *path, const struct target_opts *opts,
		      struct target **ret_target);

const struct target_info *target__info(const struct target *target);
/* Its probes on safe calls, or on collections, could not be set: info has none of them. */
void target__set_unprobed(struct target *target, bool calls, bool gc);

/* Readable (poll) when the process has exited. Owned by the target. */
int target__pidfd(const struct target *target);

/* True while the process of this pid is the one that was opened (pidfd alive, start time equal). */
bool target__alive(const struct target *target);

/*
 * False: an exec has come since it was opened, and it is another program. True where that cannot be
 * seen, too.
 */
bool target__runs_same(const struct target *target);

/* True if the last look (target__take_check) showed a runtime that was not initialised at all. */
bool target__untouched(const struct target *target);

/* Reads /proc/PID/maps again (dlopen, exec); names resolved before stay valid, but for those below.
 */
int target__refresh_maps(struct target *target);
/* Files that it maps could not be read for want of time: another reading may. */
bool target__may_come_later(const struct target *target);
/*
 * Of the readings so far: a place where the code of another file has come. The target names it
 * anew; who keeps names of it asks for them again. false: there is none that was not taken.
 */
bool target__take_retaken(struct target *target, uint64_t *ret_start, uint64_t *ret_end);
/* The user on whose account it runs (process/proc.h). */
uid_t target__account(const struct target *target);
/*
 * How many mappings of code, as last read, are of files that were not opened, so that what runs
 * there has no names: there was no room for them, or, where they are on a file system that is not a
 * local one, no copy could be made.
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
	uid_t uid;
	char eventlog[256];  /* path of the eventlog that it writes; "": none */
	int eventlog_number; /* its descriptor of it (open_file__own) */
};
/* Takes at most timeout_ms. What is not known is "" or 0. */
void target__traits(struct target *target, int timeout_ms, struct target_traits *ret_traits);

/* "full", "dynamic only", "debug file", "none"; "" if there is no runtime. */
const char *target__symbols(const struct target *target);

/* How the live process confirmed the layout. */
struct target_confirmed {
	uint32_t capabilities, tasks, tsos; /* how many of each agreed */
	bool tls;			    /* my_task's place was proved by the Tasks' own ids */
	const char *task_layout;	    /* "with clock", "without clock": see layout.h */
	uint64_t stgrun_ret;		    /* 0: not found */
	const char *rts_file;		    /* base name of the file that holds the runtime */
	uint32_t votes, runner_up; /* call sites that agree on suspendThread and resumeThread, and
				      on the second best pair; 0: they were not needed */
};
void target__confirmed(const struct target *target, struct target_confirmed *ret_confirmed);

/* ── discovery ───────────────────────────────────────────────────────────────────────────── */

/*
 * A cheap look: 1 if the process maps a file that holds a GHC runtime, 0 if not (or it is gone, or
 * may not be looked at). -EBUSY: nobody knows, there was no time or memory for one of the files,
 * and there may be later; -EMFILE: there was no descriptor. Each file is looked through once for a
 * cache.
 */
int discover__process(struct target_cache *cache, pid_t pid);
/*
 * Whether the program that a process has begun is none of GHC's, and will be none unless a library
 * with a runtime is mapped later that it does not name: most of those that begin on a host. By the
 * executable alone, so that one that was looked at before costs next to nothing. False as well
 * where that is not known.
 */
bool discover__is_plain(struct target_cache *cache, pid_t pid);
/* As discover__process(), of the mapping of file `ino` at `start`; -ESRCH and others if it is gone,
 * or may not be looked at. */
int discover__mapping(struct target_cache *cache, pid_t pid, uint64_t start, uint64_t ino);
/*
 * Calls fn for every process for which discover__process() does not return 0, and before_each (or
 * NULL) before it looks at any, until one of them returns non-zero: returns that.
 */
int discover__all(struct target_cache *cache, int (*before_each)(void *ctx),
		  int (*fn)(void *ctx, pid_t pid), void *ctx);

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

/*
 * Begins to read what names need and takes long. A snapshot is not there before it is, within its
 * time limit: what is learnt by it has names.
 */
void target__prepare_names(struct target *target);

/*
 * Names a frame (see wire.h, enum wire_frame_kind). Never fails: an address in no mapping gets
 * "[unmapped]". A WIRE_FRAME_SITE is named after the foreign function that is called there.
 */
void target__name(struct target *target, uint64_t frame, struct code_name *ret_name);

/* A safe call's site, from the return address of its suspendThread or resumeThread call. */
int target__site(struct target *target, uint64_t ret_addr, struct target_site *ret_site);

/* ── cost-centre stacks ──────────────────────────────────────────────────────────────────── */

/* One CostCentreStack of a profiled program: its innermost cost centre. Strings live as long as the
 * target. */
struct target_ccs {
	uint64_t addr, parent; /* parent: the CostCentreStack around it; 0: this is the root */
	const char *label, *module, *src_loc;
};
/*
 * Reads the stacks at these addresses, what is around them and, now and then, the whole tree, in a
 * child process that is killed when it takes longer than a second. -ENOTSUP: not a profiled
 * program; -ESRCH: it has ended; -ETIMEDOUT: its memory hangs, or did so three times in a row: it
 * is not read for a minute then, and for longer each time, up to an hour.
 */
int target__read_ccs(struct target *target, const uint64_t *addrs, size_t n);
/* What was read so far. -ENOENT. A stack's parents are there too, without a cycle. */
int target__ccs(const struct target *target, uint64_t addr, struct target_ccs *ret_ccs);

/* ── snapshot ────────────────────────────────────────────────────────────────────────────── */

/* One thread as the snapshot's helper process found it. */
struct snap_thread {
	pid_t tid;
	char comm[16];
	struct wire_rts rts;
	uint64_t start_time_ns; /* CLOCK_MONOTONIC, to a clock tick; 0: it was gone by then */
	uint64_t site;	  /* safe call: the suspendThread call's return address; 0: not found */
	uint64_t incall;  /* Task.incall */
	uint32_t syscall; /* number, or WIRE_NO_SYSCALL */
	char state;	  /* of /proc/PID/task/TID/stat: R, S, D, … */
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

/* Closures with the same info table. */
struct target_census_entry {
	uint64_t info; /* its address, which is its entry code's */
	uint64_t count, bytes;
	uint32_t type, pad;			     /* enum closure_type, census/census.h */
	char constructor[TARGET_CENSUS_CONSTRUCTOR]; /* "package:Module.Name"; "": it is none */
};

/* As struct census has it; those with the most bytes first. Without pointers: captures have it. */
struct target_census {
	uint64_t blocks_bytes, walked_bytes, counted_bytes, gap_bytes, unknown_bytes, large_bytes,
		compact_bytes, pinned_bytes, mutable_bytes;
	uint64_t frozen_ns;    /* for so long the process was stopped, at most; 0: it was not */
	uint64_t frozen_whole; /* 1: until all had been read */
	uint64_t live_bytes;   /* when the collection ended; whoever knows it fills it in */
	uint64_t others_count, others_bytes; /* of all without an entry */
	uint32_t cut, n;
	struct target_census_entry entries[TARGET_CENSUS_MAX];
};

/* ── Haskell threads ─────────────────────────────────────────────────────────────────────── */

/* As much as is read of a process in a look. */
#define TARGET_LIVING_MAX (1U << 18)

struct target_living_thread {
	uint64_t id;
	uint16_t why_blocked;
	uint16_t pad[3];
};

/* So often is found what no collection of the youngest generation has moved. */
#define TARGET_LIVING_QUIETS 8

struct target_living_quiet {
	uint64_t start_ns, end_ns;
};

/*
 * Haskell threads that had not ended at some moment from began_ns to ended_ns (CLOCK_MONOTONIC):
 * all that lived all the time, by id, if in one of the quiet spans no collection was at work.
 * Threads without pointers: captures have them. In these spans no collection moved any, but what
 * one resurrects, to get an exception, is missing until its end; and while a concurrent mark of the
 * non-moving collector goes on, old ones may be (rts/sm/NonMoving.c, nonmoving_old_threads).
 */
struct target_living {
	uint64_t began_ns, ended_ns;
	uint64_t cpu_ns; /* that it took, no more than all of the time */
	struct target_living_quiet quiet[TARGET_LIVING_QUIETS];
	uint64_t n_quiet; /* 0: a collection came in between each time, and n is 0 */
	uint64_t n;
	struct target_living_thread v[];
};

/* ── unwind rows ─────────────────────────────────────────────────────────────────────────── */

struct cfi_rows; /* unwind/cfi.h */

/* One mapping of code with unwind rows, or that might have them. */
struct target_code {
	uint64_t start, end;
	uint64_t bias;	     /* address in the process − address in the file */
	uint64_t dev, ino;   /* the file's identity; 0, 0: the vdso, the same for all processes */
	uint64_t changed_ns; /* when the file was changed last */
};
size_t target__n_code(const struct target *target);
/* -ENOENT: no file is known for this mapping. */
int target__code_at(const struct target *target, size_t i, struct target_code *ret_code);

/* Reads the rows of a mapping's file; free them with cfi_rows__free(). -ENOENT: it has none. */
int target__rows(const struct target *target, size_t i, struct cfi_rows *ret_rows);

#endif

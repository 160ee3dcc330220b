/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the session room share. Each section is one file; a file calls only those above
 * its own section. Members and candidates are in members_priv.h and the command in command_priv.h,
 * below all of these.
 */
#ifndef SAFESCOPED_SESSION_PRIV_H
#define SAFESCOPED_SESSION_PRIV_H

#include "session.h"

#include "base/base.h"
#include "base/hash.h"
#include "capture/capture.h"
#include "debuginfod/debuginfod.h"
#include "kernel/kernel.h"
#include "target/target.h"
#include "timeline/timeline.h"

#include "command_priv.h"
#include "hourly_priv.h"
#include "members_priv.h"
#include "unseen_priv.h"

#define SNAPSHOT_TIMEOUT_MS 2000
#define SESSION_MAX_MEMBERS 65536
/*
 * This many members that have ended keep a place of their own in the report; earlier ones are only
 * in the sums of their programs. Up to twice as many may accumulate before they are summed up.
 */
#define SESSION_MAX_ENDED 512U
/* Live members: as many as the kernel side has room for (bpf/maps.bpf.h). */
#define SESSION_MAX_LIVE 4096U
/* The eventlogs of this many members that have ended stay open until the session ends and they are
 * read. */
#define SESSION_MAX_ENDED_LOGS 256
/* Descriptors reserved for the end of the session: files that it reads and writes, helper
 * processes. */
#define SESSION_SPARE_FDS 32
/* How long a process that was just exec'd may take until hs_init, before which it has no
 * capabilities. */
#define READY_TIMEOUT_NS 10000000000ULL

/* Limit on the time for looks in one turn of the loop; the rest follows in the next turn, after
 * everything else. */
#define TURN_NS 200000000ULL

/* Programs whose processes ended before they could be looked at (early.c). */
#define EARLY_PROGRAMS 128
struct early {
	struct early_program {
		uint64_t ino;
		uint64_t used; /* the value of `uses` when it was last used; 0: never */
		uint32_t dev;
		uint32_t n;    /* processes that ended early, until it is known to be profiled */
		bool profiled; /* a process of it joined */
	} v[EARLY_PROGRAMS];
	uint64_t uses;
};

/* Counts of what the profiles of all processes lack together (noted.c). */
struct noted {
	uint64_t switches, returns; /* switches not reported; safe calls without a start */
	uint64_t too_short, unseen; /* struct session's n_too_short, n_unseen */
	uint64_t held_up_ns;	    /* total time that the probes were off, … */
	unsigned held_up;	    /* … and how many times */
};

/* Processes left out for lack of descriptors (room.c, noted.c). */
struct no_files {
	uint64_t n;
	uint64_t lately; /* since the last cut, including those that were waiting then */
	bool reported;	 /* logged: some have been left out since then */
};

/* The session. Its parts are created by open.c and freed by session.c. */
struct session {
	const struct session_opts *opts;
	struct kernel_features features;
	struct kernel *kernel;
	struct target_cache *cache;
	struct debuginfod *debuginfod; /* NULL: no server is asked for symbols */
	struct timeline *tl;
	struct intake *in;	 /* owned by the timeline */
	struct capture *capture; /* NULL: no capture is saved */
	struct feed *feed;
	struct members *members;
	struct looks *looks;
	struct served *served;
	struct candidates *candidates;
	struct follow *follow;
	struct mapped *mapped;
	struct command *command; /* NULL unless SESSION_COMMAND */
	struct outputs *outputs;
	struct push *push;	 /* NULL: nothing is pushed */
	struct windows *windows; /* NULL: the session is a single window */
	struct scrape *scrape;	 /* NULL: no metrics */
	size_t n_symbols;	 /* files that have provided names, or failed to (symbols.c) */
	/* counts of records at the last cut; ring_…: those for which the ring had no room */
	uint64_t lost_before, sent_before, ring_lost_before;
	uint64_t start_ns;
	int signal_fd;
	int write_fd; /* SIGUSR1: write the window so far; -1: there are no windows */
	int spare_fds[SESSION_SPARE_FDS];
	size_t n_spare_fds;
	size_t n_ended_logs;	 /* logs of ended members that are kept open */
	size_t n_snapshots;	 /* snapshots of members that are wanted and not finished */
	uint64_t rows_until_ns;	 /* for this turn of the loop: member__more_rows() */
	bool rows_later;	 /* some member lacks rows: member__more_rows() */
	uint64_t helpers_cpu_ns; /* the maximum seen so far */
	uint64_t n_too_short;	 /* processes that ended before they could be looked at */
	uint64_t n_unseen;	 /* the same for those of a command, whatever they ran */
	struct noted noted;	 /* counts at the last cut */
	struct early early;
	struct hourly hourly;
	struct unseen unseen;
	unsigned n_signals;  /* signals taken in a session with a command */
	uint64_t n_left_out; /* GHC programs that could not be profiled */
	struct no_files no_files;
	bool not_scanned;     /* it ended before all processes had been found */
	bool stopped;	      /* by a signal, or by what follows */
	bool cut_short;	      /* the kernel side is gone */
	bool no_archives;     /* archives that were asked for are missing */
	struct retry lacking; /* when to look for archives and for files that pushes lack */
	bool renewed;	      /* it ends so that the next one can start */
	uint64_t began_ns;
	bool switched_off;  /* by opts->off_path: nothing may stay attached */
	bool off_ignored;   /* there is such a file, but it does not count */
	uint64_t switch_ns; /* when the file was last looked for */
	uint64_t alive_ns;  /* last call of opts->alive; 0: never */
	struct sparing {
		uint32_t every; /* one sample in this many is taken; 0: not measured yet */
		uint64_t looked_ns, cpu_ns;
		/* number of looks: consecutive calm ones; calm ones needed for a try; left of the
		 * current try */
		uint32_t calm, calm_needed, try_left;
	} sparing;
};

/* ── sparing.c ───────────────────────────────────────────────────────────────────────────── */

/* To be called in each turn of the loop: reduces the samples if CPU use exceeds
 * opts->max_cpu_percent. */
void sparing__turn(struct session *s, uint64_t now);
/* Updates sparing->every, the sampling ratio, after a period that took `percent` of a CPU. */
void sparing__next(struct sparing *sparing, double percent, double max_percent);

/* ── alive.c ─────────────────────────────────────────────────────────────────────────────── */

/* Calls opts->alive about once a second. */
void alive__report(struct session *s, uint64_t now);

/* ── rights.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * Permanently gives up the capabilities and system calls that the rest of the session does not
 * need. To be called before there are threads. `traces`: of enum rights_trace. Prints a line on
 * failure.
 */
int rights__give_up(const struct kernel_features *features, unsigned traces);

enum rights_trace {
	RIGHTS_STOP = 1,    /* processes are to be stopped (process/freeze.h) */
	RIGHTS_COMMAND = 2, /* a command is taken to its entry (entry.c) */
};

/* ── switched.c: the operator's switch ───────────────────────────────────────────────────── */

/*
 * True if the file opts->off_path exists. Everything that the session has attached is then removed
 * at once, and the session is stopped. The file is looked for at most five times a second, however
 * often this is called.
 */
bool switched__off(struct session *s, uint64_t now);

/* ── renewal.c: what a session cannot get back ───────────────────────────────────────────── */

/* True if the session may end so that the next one starts, which it may not soon after its
 * start. */
bool renewal__may_be(const struct session *s, uint64_t now);
/* True if a process that the session needs has ended, or something that it started without is
 * available, which is reported, and the session is to end. */
bool renewal__is_due(struct session *s, uint64_t now);

/* ── signalled.c: what signals ask of the session ────────────────────────────────────────── */

/*
 * Takes a signal, if one came. A command receives the terminal's signals itself; a signal sent to
 * safescoped alone is passed on to it. The first signal is meant for the command, and the session
 * goes on until the command ends; a second one ends the session.
 */
void signalled__take(struct session *s);
/* For confine__hurry_by(); ctx: the session. The first signal for a command is passed on, and is
 * not urgent. */
bool signalled__is_urgent(void *ctx);

/* ── feed.c: what the intake takes from the kernel side ──────────────────────────────────── */

/* Passes on records and counters, and counts what the intake refuses. */
struct feed;

int feed__new(struct intake *in, struct feed **ret_feed);
void feed__free(struct feed *feed);
void feed__record(struct feed *feed, const void *record, size_t size);
/* A callback for kernel__sites(); ctx: the feed. */
int feed__site(void *ctx, const struct wire_site_key *key, const struct wire_site *site);
/* Notes that something was lost outside of the feed. */
void feed__failed(struct feed *feed);
/* True if anything was refused or lost since the last cut. */
bool feed__lost_some(const struct feed *feed);
void feed__cut(struct feed *feed);
/* Number of malformed records in the whole session. */
uint64_t feed__bad_records(const struct feed *feed);

/* ── symbols.c: files with symbols that are downloaded ───────────────────────────────────── */

/* To be called before any target is looked at. Negative: what the options ask for failed, which is
 * printed. */
int symbols__open(struct session *s);
/* To be called in each turn of the loop: names what was recorded by means of files that have
 * arrived. */
void symbols__turn(struct session *s);
/* At the end, before timeline__finish(): waits for pending downloads. No target has probes any
 * more. */
void symbols__last(struct session *s, uint64_t now);

/* ── held.c: records that wait ───────────────────────────────────────────────────────────── */

/*
 * Records of a process whose runtime is not initialised yet are held back: passing them on means
 * naming what is in them, and reading the symbols of large files would delay what the process waits
 * for, the confirmation of its layout and its unwind rows.
 */
struct held;

int held__new(struct held **ret_held);
void held__free(struct held *held);
/* Starts holding records at since_ns, until held__give() or held__drop(). */
void held__begin(struct held *held, uint64_t since_ns);
/*
 * True: the record was taken and is passed on later. False: the caller must pass it on, after all
 * records held so far; holding has ended, unless the record is malformed.
 */
bool held__take(struct held *held, struct feed *feed, const void *record, size_t size);
/* Passes on the records held, and stops holding. */
void held__give(struct held *held, struct feed *feed);
/* Drops the records held, and stops holding. */
void held__drop(struct held *held);
/* True if no records are held any more: some may have been passed on. */
bool held__is_over(const struct held *held);

/* ── looks.c: looks into memory ──────────────────────────────────────────────────────────── */

/*
 * Looks into targets' memory that run while the loop turns (target.h), up to LOOKS_MAX at a time. A
 * user may have half of what others leave (base/shares.h), so that hanging memory delays nobody
 * else.
 */
struct looks;
#define LOOKS_MAX 16

int looks__new(struct looks **ret_looks);
/* Looks in progress are ended by their targets. */
void looks__free(struct looks *looks);
/* Like target__start_check(); -EDQUOT: the user has too many looks in progress; try again soon. */
int looks__check(struct looks *looks, struct target *target, bool last, char *reason,
		 size_t reason_size);
/* Like target__take_check(). */
int looks__checked(struct looks *looks, struct target *target, char *reason, size_t reason_size,
		   enum target_verdict *ret_verdict);
/* Like target__start_snapshot() and target__take_snapshot(). */
int looks__snapshot(struct looks *looks, struct target *target, int timeout_ms);
int looks__snapshot_taken(struct looks *looks, struct target *target,
			  struct snapshot *ret_snapshot);
/* Like target__start_census() and target__take_census(). */
int looks__census(struct looks *looks, struct target *target, int timeout_ms, int freeze_ms);
int looks__census_taken(struct looks *looks, struct target *target,
			struct target_census **ret_census);
/* Like target__start_living() and target__take_living(). */
int looks__living(struct looks *looks, struct target *target, int timeout_ms);
int looks__living_taken(struct looks *looks, struct target *target,
			struct target_living **ret_living);
/* To be called before a target is freed, and whenever its result is no longer needed. */
void looks__cancel(struct looks *looks, struct target *target);
/* Number of looks in progress, and the descriptor that becomes readable when the i-th is finished
 * (-1: none). */
size_t looks__count(const struct looks *looks);
int looks__fd(const struct looks *looks, size_t i);
/* Waits until a look is finished or signal_fd is readable (true), but no longer than timeout_ms. */
bool looks__wait(const struct looks *looks, int signal_fd, int timeout_ms);

/* ── logs.c: the eventlogs of members ────────────────────────────────────────────────────── */

/* Searches for the log that a member writes, and opens it; to be called again if there is none. */
void logs__look(struct session *s, struct member *m);
/* Reads what the members' logs have about the session into the timeline, before that is
 * finished. */
void logs__join(struct session *s);
/* The member has ended: its log stays open for logs__join(), unless too many already do. */
void logs__ended(struct session *s, struct member *m);
/* To be called after the timeline is finished. */
void logs__free(struct session *s);

/* ── snapshots.c: what members' threads are doing ────────────────────────────────────────── */

/*
 * Requests a snapshot of the member's threads: those that have slept in a call since before the
 * probes cause no event that shows it. Records that arrive meanwhile are passed on after the
 * snapshot, which is of an earlier time.
 */
void snapshots__want(struct session *s, struct member *m);
/* Starts the snapshot, if there is room for another look. */
void snapshots__start(struct session *s, struct member *m, uint64_t now);
/* Takes the snapshot, if it is finished; `at_end`: of the session. */
void snapshots__take(struct session *s, struct member *m, bool at_end);
/* The snapshot is finished or will not be made: stops waiting for it. */
void snapshots__over(struct session *s, struct member *m);
/* Takes snapshots of all members at the end of the session, until until_ns at the latest. */
void snapshots__last(struct session *s, uint64_t until_ns);
/* Why there is no snapshot, for a message: strerror() would name devices and connections. */
const char *snapshots__why_not(int err);

/* ── room.c: processes for which there is no room, or no time ────────────────────────────── */

/* Descriptors that must be free to decide whether a process is wanted, to look at it with the help
 * of other processes, to let it join, and for each check in between. */
#define ROOM_SELECT_FDS 4
#define ROOM_LOOK_FDS	16
#define ROOM_JOIN_FDS	12
#define ROOM_CHECK_FDS	4

/*
 * Makes a candidate wait. -EDQUOT: it is a target, and joins once others of its user have ended.
 * -EMFILE: there are no descriptors to look at it, which is counted. Any other error of
 * retry__is_worth_it(): see room__wait_for_time(). False: too many are waiting.
 */
bool room__wait(struct session *s, struct candidate *c, uint64_t now, int err);
/* For a process that could not be looked at in time: it is tried again later. Reported once. */
bool room__wait_for_time(struct session *s, struct candidate *c);
/* For a process in which nothing confirmed the runtime, perhaps because it did nothing at that
 * moment: it is tried again later. */
bool room__wait_unconfirmed(struct session *s, struct candidate *c);
/* Makes a member that has left a candidate again, since its runtime was not confirmed (-ENOTSUP) or
 * could not be checked. */
void room__come_back(struct session *s, const struct member *m, int err);
/* For a waiting candidate. 0: there is room or time now; -EDQUOT: not yet; -ESRCH: it has ended. */
int room__await(struct session *s, struct candidate *c, uint64_t now, uint64_t give_up_ns);

/* ── member.c: a member joins and becomes ready ──────────────────────────────────────────── */

/*
 * Adds the process to the timeline, sets its probes, and requests its snapshot if it is ready.
 * `armed`: the probes are set already. If it turns out to run another program by now, it has ended
 * on return.
 */
int member__attach(struct session *s, struct member *m, bool armed);
/* Takes the looks that are finished, before the records that arrived meanwhile. */
void member__take_looks(struct session *s, uint64_t now);
/* Starts looks at members whose runtime was not initialised, or whose snapshot is due. */
void member__start_looks(struct session *s, uint64_t now);
/* How long to wait for the next check after so many failed ones, if patience ran out given_up
 * times. */
uint64_t member__wait_ns(unsigned tries, unsigned given_up);
/* When the next check is due; 0: none. */
uint64_t member__next_due(const struct session *s);
/* The maps have changed: reads them, and gets names and unwind rows for what was added. */
void member__read_maps(struct session *s, struct member *m);
/* To be called at the start of each turn of the loop: makes rows for one of the members that lack
 * some. */
void member__more_rows(struct session *s);

/* ── leaving.c: a member ends ────────────────────────────────────────────────────────────── */

/* The member is no longer a target; how: "exited", "exec", "left". */
void member__end(struct session *s, struct member *m, const char *how, uint64_t at_ns);
/* member__end() for a process that has ended, with how: "exited 3", "killed 9", or "exited" if the
 * status is not known. */
void member__exited(struct session *s, struct member *m);
/*
 * For a member that runs another program: true if nothing happened in it so far and it is
 * forgotten; otherwise the caller ends it.
 */
bool member__forget(struct session *s, struct member *m);
/* A program starts in the process of `rec`: if the process is still a member with another program,
 * because the record of the exec was lost, that member ends. */
void member__exec_unseen(struct session *s, const struct wire_proc_new *rec);
/* Closes and unmaps what the member holds; it must not be used any more. */
void member__release(struct session *s, struct member *m);
/* Reads the counters of ended members, before their pids are reused, and releases the members. */
void member__sweep(struct session *s);
/* The two parts of member__sweep(): code of a released member gets no more names than it has by
 * then. */
void member__read_left(struct session *s);
void member__release_left(struct session *s);
/* Keeps only sums of the members that ended first, if there are many. Frees members. */
void member__retire(struct session *s);

/* ── program.c: what a process runs ──────────────────────────────────────────────────────── */

/* The file that the process executes, with its device in the kernel's encoding (MKDEV). False: it
 * is gone. */
bool program__exe(pid_t pid, uint64_t *ret_ino, uint32_t *ret_dev);
/*
 * True if the process still runs the program of the record: an exec may have come in between, and
 * what was found out about one program does not hold for the other. To be called after a look.
 */
bool program__is(pid_t pid, const struct wire_proc_new *rec);
/* True if it has ended or is about to: its memory is freed first, and with it the link to its
 * program. */
bool program__has_ended(pid_t pid);

/* ── follow.c: processes that begin ──────────────────────────────────────────────────────── */

/* Processes that may become members: those that the kernel reports and that must be looked at in
 * time. */
struct follow;

int follow__new(struct follow **ret_follow);
void follow__free(struct follow *follow);
/*
 * Sets the probes of the command's program, by its file, so that its first safe call is counted,
 * and makes the kernel side follow its descendants.
 */
void follow__arm(struct session *s);
/* Why the command's last program cannot be profiled; "": no reason known. */
const char *follow__why(const struct session *s);
/* For a process that runs already: attaches to it if it is to be profiled. */
void follow__running(struct session *s, pid_t pid);
/* A member runs another program, which is reported next. */
void follow__on_exec(struct session *s, pid_t pid);
/* A process has started. */
void follow__on_new(struct session *s, const struct wire_proc_new *rec);
/* True if a process that is not a member may become one. */
bool follow__wants(const struct session *s, pid_t pid);
/* A process that is not a member has mapped a library that holds a runtime. */
void follow__on_mapped(struct session *s, pid_t pid);
/*
 * Looks at the candidates that are due. `maps_reported`: the kernel reports mappings, so a library
 * that is loaded late needs no late look.
 */
void follow__look(struct session *s, uint64_t now, bool maps_reported);
/* Looks only at candidates whose runtime is being checked. */
void follow__check(struct session *s, uint64_t now);
/* True if there are any of those. */
bool follow__looks(const struct session *s);
/* When the next candidate is due; 0: none. */
uint64_t follow__next_due(const struct session *s);

/* ── records.c: the kernel side's records ────────────────────────────────────────────────── */

/* Takes all available records: members join and end by them, the timeline gets the rest. */
void records__drain(struct session *s);
/*
 * Takes all records, including those held back; to be called before a picture is made. Otherwise a
 * thread's state in the kernel's maps would be taken for what it did all along.
 */
void records__take_all(struct session *s);
/* To be called after a drain: marks the targets whose probes on collections were removed. */
void records__gc_off(struct session *s);
/*
 * Attaches to every GHC process that is followed: of the host, or of the command. -ECANCELED: a
 * signal came, and the session is stopped; other errors of /proc.
 */
int records__scan(struct session *s);

/* ── mapped.c: code that processes map ───────────────────────────────────────────────────── */

struct mapped;

int mapped__new(struct mapped **ret_mapped);
void mapped__free(struct mapped *mapped);
/* True if the kernel reports mappings. */
bool mapped__works(const struct session *s);
/*
 * True if a process that has started need not be looked at: only a library could make it a GHC
 * process, and its mapping would be reported. Not for the command itself, for which the reason is
 * reported.
 */
bool mapped__would_show(const struct session *s, const struct candidate *c);
/* A descriptor that is readable when something was mapped; -1 while no wake-up is needed. */
int mapped__fd(const struct session *s);
/* When to look for mappings; 0: when the descriptor is readable. */
uint64_t mapped__next_due(const struct session *s);
/* Makes the member's maps be read again at `due_ns` or earlier. */
void mapped__want(struct mapped *mapped, struct member *m, uint64_t due_ns);
/* Processes the mappings since the last call, and reads the maps of the members concerned. */
void mapped__drain(struct session *s, uint64_t now);

/* ── spare.c: descriptors for the end ────────────────────────────────────────────────────── */

/*
 * Reserves descriptors for the end of the session, so that it can write its results even if targets
 * have used up all others: as many as there are, up to SESSION_SPARE_FDS.
 */
void spare_fds__open(struct session *s);
/* Closes the reserved descriptors. */
void spare_fds__close(struct session *s);

/* ── windows.c: the session in windows ───────────────────────────────────────────────────── */

/*
 * Each window's files are written by a child, which has the picture as of the fork: the session
 * goes on at once. A window whose files could not be written is counted.
 */
struct windows;

int windows__new(struct session *s, struct windows **ret_windows);
/* When the current window is to end; 0: there are none. */
uint64_t windows__ends_ns(const struct session *s);
/* When to check whether it can end. */
uint64_t windows__next_due(const struct session *s);
/*
 * Ends the window if it is due, or if `at_once`; otherwise folds its records into lanes once there
 * are many. An error is permanent.
 */
int windows__cut(struct session *s, uint64_t now, bool at_once);
/*
 * To be called before a window is made: informs the timeline if the wall clock was set meanwhile.
 * Does nothing in a session without windows, which uses the time of its start.
 */
void windows__read_clock(struct session *s);
/* Collects children that have ended. */
void windows__collect(struct session *s);
/* Waits a while for the children, and for one that writes to standard output until a signal comes;
 * then kills those that are left. */
void windows__finish(struct session *s);
/* Kills the children, and frees. */
void windows__free(struct session *s);
/* True if some window is in no file, or was incomplete. False if there are none. */
bool windows__partial(const struct windows *w);
/* True if some window was written. False if there are none. */
bool windows__written(const struct windows *w);

struct windows_state {
	uint64_t made, dropped; /* so far */
	uint64_t writing_ns; /* end of the oldest window that is still being written; 0: none is */
};
/* All zero if there are no windows. */
void windows__state(const struct windows *w, struct windows_state *ret_state);

/* ── open.c, loop.c, ending.c: the session from beginning to end ─────────────────────────── */

/* Opens the kernel side, the timeline and the outputs; the first members join. Prints a line on
 * failure. */
int open__all(struct session *s);
/* Runs until the session is over: by its kind, its duration, or a signal. */
void loop__run(struct session *s);
/* Takes everything that is left in the kernel, then finishes the timeline. Prints a line on
 * failure. */
int ending__finish(struct session *s);
/* At a cut: takes all records up to *ret_now, the contents of the kernel's maps, losses and
 * cost. */
int ending__read(struct session *s, uint64_t *ret_now);
/* Only the counters of calls and the states of threads. */
int ending__read_maps(struct session *s);
/* CPU time of the session's helper processes so far. */
uint64_t ending__helpers_cpu_ns(struct session *s);
/* What is missing for a command; takes a number (unsigned long long). */
#define ENDING_UNSEEN                                                                              \
	"processes that the command started and that ended before they could be inspected: "       \
	"%llu; any GHC programs among them are not shown"

/* ── early.c ─────────────────────────────────────────────────────────────────────────────── */

/* A process ended before it could be looked at: it counts as missed (n_too_short) once its program
 * is known to be one to be profiled. */
void early__missed(struct session *s, const struct wire_proc_new *rec);
/* A process of this program joined. */
void early__profiled(struct session *s, const struct wire_proc_new *program);

/* ── noted.c ─────────────────────────────────────────────────────────────────────────────── */

/* Adds to the profiles of all processes what they lack together since the last cut. */
void noted__cut(struct session *s);
/* The same at the end of the session, and which processes were left out of it. */
void noted__end(struct session *s);

/* ── scrape.c: the session as metrics ────────────────────────────────────────────────────── */

/* What the session has seen so far, for the server opts->metrics. */
struct scrape;

/* To be called once the timeline is open. */
int scrape__new(struct session *s, struct scrape **ret_scrape);
/* To be called in each turn of the loop: writes a text if one was requested, but not too often. */
void scrape__turn(struct session *s, uint64_t now);
/* How long to wait for the next reading, after one that took this much CPU time. */
uint64_t scrape__every_ns(uint64_t took_ns);
/* The member has ended, and its metrics were not read since: adds what they lack. */
void scrape__note_end(struct session *s, const struct member *m);
/* True if the server process has ended. False if there was none. */
bool scrape__has_ended(const struct scrape *scrape);
/* To be called after the timeline is freed. NULL is fine. */
void scrape__free(struct scrape *scrape);

#endif

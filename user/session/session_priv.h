/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the session room share. Each section is one file; a file calls only those
 * above its own section. Members, and what may become one, are in members_priv.h, below them all,
 * and so is the command (command_priv.h).
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
 * This many members that have ended have a place of their own in the report; earlier ones are only
 * in the sums of their programs. Up to twice as many may wait for that.
 */
#define SESSION_MAX_ENDED 512U
/* At once: as many as the kernel side has room for (bpf/maps.bpf.h). */
#define SESSION_MAX_LIVE 4096U
/* The eventlogs of this many members that have ended stay open until the end, when they are read.
 */
#define SESSION_MAX_ENDED_LOGS 256
/* Kept back for the end of the session: files that it reads and writes, and helper processes. */
#define SESSION_SPARE_FDS 32
/* A process that has just been exec'd has no capabilities before hs_init. */
#define READY_TIMEOUT_NS 10000000000ULL

/* Looks take no longer than this in one turn of the loop: the rest comes in the next one, after all
 * else. */
#define TURN_NS 200000000ULL

/* Programs of which processes ended before they could be looked at (early.c). */
#define EARLY_PROGRAMS 128
struct early {
	struct early_program {
		uint64_t ino;
		uint32_t dev;
		uint32_t n; /* processes; 0: the place is free */
	} v[EARLY_PROGRAMS];
	size_t next; /* the place of the one that goes for another one */
};

/* Counts of what all processes' profiles lack together (noted.c). */
struct noted {
	uint64_t switches, returns; /* not reported by the kernel; safe calls' without a begin */
	uint64_t too_short, unseen; /* struct session's n_too_short, n_unseen */
	uint64_t held_up_ns;	    /* the probes were off, … */
	unsigned held_up;	    /* … so many times */
};

/* Processes that were left out for want of descriptors (room.c, noted.c). */
struct no_files {
	uint64_t n;
	uint64_t lately; /* since the last cut, and those that waited then */
	bool reported;	 /* in the log: since then some are left out */
};

/* Its parts are made by open.c and freed by session.c. */
struct session {
	const struct session_opts *opts;
	struct kernel_features features;
	struct kernel *kernel;
	struct target_cache *cache;
	struct debuginfod *debuginfod; /* NULL: nobody is asked for symbols */
	struct timeline *tl;
	struct intake *in;	 /* the timeline's */
	struct capture *capture; /* NULL: nothing is saved */
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
	struct windows *windows; /* NULL: the session is one */
	struct scrape *scrape;	 /* NULL: nobody asks for metrics */
	size_t n_symbols;	 /* files that names were given by, or could not be (symbols.c) */
	/* records, at the last cut; ring_…: those for which the ring had no room */
	uint64_t lost_before, sent_before, ring_lost_before;
	uint64_t start_ns;
	int signal_fd;
	int write_fd; /* SIGUSR1: the window so far; -1: there are no windows */
	int spare_fds[SESSION_SPARE_FDS];
	size_t n_spare_fds;
	size_t n_ended_logs;	 /* that are kept open */
	size_t n_snapshots;	 /* of members: wanted, and not there yet */
	uint64_t rows_until_ns;	 /* in this turn of the loop: member__more_rows */
	bool rows_later;	 /* of a member: member__more_rows */
	uint64_t helpers_cpu_ns; /* the most that was seen */
	uint64_t n_too_short;	 /* processes that ended before they could be looked at */
	uint64_t n_unseen;	 /* the same of those of a command, whatever they ran */
	struct noted noted;	 /* at the last cut */
	struct early early;
	struct hourly hourly;
	struct unseen unseen;
	unsigned n_signals;  /* that a command has got from us */
	uint64_t n_left_out; /* GHC programs that could not be profiled */
	struct no_files no_files;
	bool not_scanned; /* it was to end before all processes had been found */
	bool stopped;	  /* by a signal, or what follows */
	bool cut_short;	  /* the kernel side has gone */
	bool no_archives; /* that were asked for */
	bool renewed;	  /* it ends so that the next one may begin */
	uint64_t began_ns;
	bool switched_off;  /* by opts->off_path: nothing is to be on any more */
	bool off_ignored;   /* there is such a file, but not one that counts */
	uint64_t switch_ns; /* when that was last looked for */
	uint64_t alive_ns;  /* when alive__report() last did; 0: never */
	struct sparing {
		uint32_t every; /* one sample in so many is taken; 0: nobody has looked yet */
		uint64_t looked_ns, cpu_ns;
		/* looks: in a row that were calm; so many before a try; left of one */
		uint32_t calm, calm_needed, try_left;
	} sparing;
};

/* ── sparing.c ───────────────────────────────────────────────────────────────────────────── */

/* To be called in each turn of the loop: takes fewer samples beyond opts->max_cpu_percent. */
void sparing__turn(struct session *s, uint64_t now);
/* In how many samples one is to be taken, `every`, after a look at which that took `percent`. */
void sparing__next(struct sparing *sparing, double percent, double max_percent);

/* ── alive.c ─────────────────────────────────────────────────────────────────────────────── */

/* Calls opts->alive now and then. */
void alive__report(struct session *s, uint64_t now);

/* ── rights.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * Gives up the capabilities and system calls that the rest of the session does not need, for good.
 * Before there are threads. `traces`: of enum rights_trace. Prints a line on failure.
 */
int rights__give_up(const struct kernel_features *features, unsigned traces);

enum rights_trace {
	RIGHTS_STOP = 1,    /* processes are to be stopped (process/freeze.h) */
	RIGHTS_COMMAND = 2, /* there is a command to be taken to its entry (entry.c) */
};

/* ── switched.c: the operator's switch ───────────────────────────────────────────────────── */

/*
 * True: there is a file opts->off_path. Everything that the session has attached is off then, at
 * once, and the session is stopped. The file is looked for five times a second, however often this
 * is asked.
 */
bool switched__off(struct session *s, uint64_t now);

/* ── renewal.c: what a session cannot get back ───────────────────────────────────────────── */

/* Whether it may end for the next one: not soon after its begin. */
bool renewal__may_be(const struct session *s, uint64_t now);
/* True: a process that it needs has ended, which is reported, and it is to end. */
bool renewal__is_due(struct session *s, uint64_t now);

/* ── signalled.c: what signals ask of the session ────────────────────────────────────────── */

/*
 * Takes a signal, if one came. A command gets the terminal's own signals itself; those that were
 * sent to us it gets from us. The first one is the command's, and we go on to its end; a second one
 * ends the session.
 */
void signalled__take(struct session *s);
/* For confine__hurry_by(), ctx: the session. A command's first signal is passed on, and there is as
 * much time as before. */
bool signalled__is_urgent(void *ctx);

/* ── feed.c: what the intake takes from the kernel side ──────────────────────────────────── */

/* Passes on records and counters, and counts what the intake refuses. */
struct feed;

int feed__new(struct intake *in, struct feed **ret_feed);
void feed__free(struct feed *feed);
void feed__record(struct feed *feed, const void *record, size_t size);
/* A callback of kernel__sites(); ctx: the feed. */
int feed__site(void *ctx, const struct wire_site_key *key, const struct wire_site *site);
/* Something was lost outside of the feed. */
void feed__failed(struct feed *feed);
/* Whether anything was refused, or lost, since the last cut. */
bool feed__lost_some(const struct feed *feed);
void feed__cut(struct feed *feed);
/* How many records of the whole session contradicted themselves. */
uint64_t feed__bad_records(const struct feed *feed);

/* ── symbols.c: files with symbols that are downloaded ────────────────────────────────────── */

/* Before any target is looked at. Below 0: what the options ask for failed, which is printed. */
int symbols__open(struct session *s);
/* In each turn of the loop: names what was recorded by what has come. */
void symbols__turn(struct session *s);
/* At the end, before the timeline's: waits for what is under way. No target has probes any more. */
void symbols__last(struct session *s, uint64_t now);

/* ── held.c: records that wait ───────────────────────────────────────────────────────────── */

/*
 * Records of a process whose runtime is not initialised yet are held back: passing them on means
 * naming what is in them, and reading the symbols of large files would delay what the process waits
 * for, its confirmed layout and its unwind rows.
 */
struct held;

int held__new(struct held **ret_held);
void held__free(struct held *held);
/* Holds from now on, since_ns; until something is given or dropped. */
void held__begin(struct held *held, uint64_t since_ns);
/*
 * True: the record was taken, and is passed on later. False: it is the caller's, and comes after
 * all that was held: nothing is any more, unless the record contradicts itself.
 */
bool held__take(struct held *held, struct feed *feed, const void *record, size_t size);
/* Passes on what is held; from now on nothing is. */
void held__give(struct held *held, struct feed *feed);
/* The same, but what is held is dropped. */
void held__drop(struct held *held);
/* Whether something may have been passed on: nothing is held now. */
bool held__is_over(const struct held *held);

/* ── looks.c: looks into memory ──────────────────────────────────────────────────────────── */

/*
 * Looks that go on while the loop turns (target.h), up to LOOKS_MAX at a time. A user's may be half
 * of what others leave (base/shares.h): memory that hangs keeps nobody else waiting.
 */
struct looks;
#define LOOKS_MAX 16

int looks__new(struct looks **ret_looks);
/* Those that go on are ended by their targets. */
void looks__free(struct looks *looks);
/* As target__start_check(); -EDQUOT: too many of the user's go on; to be tried again soon. */
int looks__check(struct looks *looks, struct target *target, bool last, char *reason,
		 size_t reason_size);
/* As target__take_check(). */
int looks__checked(struct looks *looks, struct target *target, char *reason, size_t reason_size,
		   enum target_verdict *ret_verdict);
/* As target__start_snapshot(), target__take_snapshot(). */
int looks__snapshot(struct looks *looks, struct target *target, int timeout_ms);
int looks__snapshot_taken(struct looks *looks, struct target *target,
			  struct snapshot *ret_snapshot);
/* As target__start_census(), target__take_census(). */
int looks__census(struct looks *looks, struct target *target, int timeout_ms, int freeze_ms);
int looks__census_taken(struct looks *looks, struct target *target,
			struct target_census **ret_census);
/* As target__start_living(), target__take_living(). */
int looks__living(struct looks *looks, struct target *target, int timeout_ms);
int looks__living_taken(struct looks *looks, struct target *target,
			struct target_living **ret_living);
/* Before a target is freed, and whenever nothing is to be known of it any more. */
void looks__cancel(struct looks *looks, struct target *target);
/* How many go on, and the descriptor that is readable when the i-th is over (-1: none is). */
size_t looks__count(const struct looks *looks);
int looks__fd(const struct looks *looks, size_t i);
/* Until one of them is over, or the descriptor is readable (true), but not longer than this. */
bool looks__wait(const struct looks *looks, int signal_fd, int timeout_ms);

/* ── logs.c: the eventlogs of members ────────────────────────────────────────────────────── */

/* Looks for the log that a member writes, and opens it; again at the next call if there is none. */
void logs__look(struct session *s, struct member *m);
/* Reads what the members' logs have about the session, for the timeline; before it is finished. */
void logs__join(struct session *s);
/* The member has ended: its log stays open for logs__join(), if not too many do already. */
void logs__ended(struct session *s, struct member *m);
/* After the timeline is finished. */
void logs__free(struct session *s);

/* ── snapshots.c: what members' threads are doing ────────────────────────────────────────── */

/*
 * Threads that sleep in a call since before the probes cause no event that shows it. Records that
 * come meanwhile are taken after the snapshot, as it is of an earlier time.
 */
void snapshots__want(struct session *s, struct member *m);
/* Begins it, if there is room for another look. */
void snapshots__start(struct session *s, struct member *m, uint64_t now);
/* Takes it, if it is over; `at_end`: of the session. */
void snapshots__take(struct session *s, struct member *m, bool at_end);
/* There will be none, or there is one: nothing waits for it any more. */
void snapshots__over(struct session *s, struct member *m);
/* Of all members, at the session's end; until then at the latest. */
void snapshots__last(struct session *s, uint64_t until_ns);

/* ── room.c: processes for which there is no room, or no time ────────────────────────────── */

/* Descriptors that have to be free to find out whether a process is wanted, to look at it with the
 * help of others, to let it join, and for each of the checks in between. */
#define ROOM_SELECT_FDS 4
#define ROOM_LOOK_FDS	16
#define ROOM_JOIN_FDS	12
#define ROOM_CHECK_FDS	4

/*
 * There is no room for one that is a target: it joins once others of its user's have ended
 * (-EDQUOT). Or there are no descriptors to look at one with (-EMFILE), which is counted; or
 * something else of retry__is_worth_it()'s: see room__wait_for_time(). False: too many wait.
 */
bool room__wait(struct session *s, struct candidate *c, uint64_t now, int err);
/* One that could not be looked at for want of time: later, which is reported once. */
bool room__wait_for_time(struct session *s, struct candidate *c);
/* One that was looked at, and showed nothing by which its runtime could be confirmed: it may have
 * done nothing at that moment. Later, too. */
bool room__wait_unconfirmed(struct session *s, struct candidate *c);
/* A member that has left, since its runtime was not confirmed (-ENOTSUP), or could not be checked:
 * the same. */
void room__come_back(struct session *s, const struct member *m, int err);
/* One that waits: 0: there is room now, or time; -EDQUOT: not yet; -ESRCH: it has ended. */
int room__await(struct session *s, struct candidate *c, uint64_t now, uint64_t give_up_ns);

/* ── member.c: a member joins and becomes ready ──────────────────────────────────────────── */

/*
 * Its part of the timeline, its probes, and if it is ready its snapshot. `armed`: the probes are on
 * already. One that turns out to run another program by now has ended after this.
 */
int member__attach(struct session *s, struct member *m, bool armed);
/* Takes in the looks that are over, before the records that came meanwhile. */
void member__take_looks(struct session *s, uint64_t now);
/* Begins to look at those whose runtime was not initialised, or whose threads are to be seen. */
void member__start_looks(struct session *s, uint64_t now);
/* How long to wait for the next look after so many in vain, if patience was over so often. */
uint64_t member__wait_ns(unsigned tries, unsigned given_up);
/* When the next of them is due; 0: none. */
uint64_t member__next_due(const struct session *s);
/* Its maps have changed: names and unwind rows of what is new. */
void member__read_maps(struct session *s, struct member *m);
/* At the beginning of each turn of the loop: makes rows for one of those that lack some.
 */
void member__more_rows(struct session *s);

/* ── leaving.c: a member ends ────────────────────────────────────────────────────────────── */

/* It is no target any more: "exited", "exec", "left". */
void member__end(struct session *s, struct member *m, const char *how, uint64_t at_ns);
/* Its process has ended: the same with how, "exited 3", "killed 9", or "exited" where nobody knows.
 */
void member__exited(struct session *s, struct member *m);
/*
 * It runs another program: true if its life so far was none, and it is forgotten. Else the caller
 * ends it.
 */
bool member__forget(struct session *s, struct member *m);
/* A program begins in the process `rec` is of: if that is still a member as another one, since the
 * ring had no room for the record of the exec, that one ends. */
void member__exec_unseen(struct session *s, const struct wire_proc_new *rec);
/* Closes and unmaps what it holds; nothing is asked of it any more. */
void member__release(struct session *s, struct member *m);
/* Reads the counters of those that have ended, before their pids are used again. */
void member__sweep(struct session *s);
/* Its two parts: what is released has no names but those that it has by then. */
void member__read_left(struct session *s);
void member__release_left(struct session *s);
/* Of those that ended first only sums stay, if there are many. Frees members. */
void member__retire(struct session *s);

/* ── program.c: what a process runs ──────────────────────────────────────────────────────── */

/* The file that the process executes, with its device as the kernel numbers it (MKDEV). False: it
 * is gone. */
bool program__exe(pid_t pid, uint64_t *ret_ino, uint32_t *ret_dev);
/*
 * Whether what was looked at is the program of the record: an exec may have come in between, and
 * what is known of the one program does not hold for the other. To be called after the look.
 */
bool program__is(pid_t pid, const struct wire_proc_new *rec);
/* Or is about to: its memory goes first, and with it the link to its program. */
bool program__has_ended(pid_t pid);

/* ── follow.c: processes that begin ──────────────────────────────────────────────────────── */

/* Processes that may become members: what the kernel reported and is to be looked at in time. */
struct follow;

int follow__new(struct follow **ret_follow);
void follow__free(struct follow *follow);
/*
 * Sets the probes of the command's program, as its file shows them, so that its first safe call is
 * counted, and has the kernel side follow what it starts.
 */
void follow__arm(struct session *s);
/* Why the command's last program cannot be profiled; "": nothing is known against it. */
const char *follow__why(const struct session *s);
/* A process that runs already: attaches it if it is to be profiled. */
void follow__running(struct session *s, pid_t pid);
/* A member runs another program, which is reported next. */
void follow__on_exec(struct session *s, pid_t pid);
/* A process that began. */
void follow__on_new(struct session *s, const struct wire_proc_new *rec);
/* Whether a process that is not a member may become one. */
bool follow__wants(const struct session *s, pid_t pid);
/* A process that is not a member has mapped a library that holds a runtime. */
void follow__on_mapped(struct session *s, pid_t pid);
/*
 * Looks at those that are due. `maps_reported`: the kernel reports mappings, so that a library that
 * is loaded late needs no late look.
 */
void follow__look(struct session *s, uint64_t now, bool maps_reported);
/* Only those whose runtime is being checked. */
void follow__check(struct session *s, uint64_t now);
/* Whether there are any of those. */
bool follow__looks(const struct session *s);
/* When the next of them is due; 0: none. */
uint64_t follow__next_due(const struct session *s);

/* ── records.c: the kernel side's records ────────────────────────────────────────────────── */

/* Takes all records that there are: members join and end by them, the timeline gets the rest. */
void records__drain(struct session *s);
/*
 * The same of whatever there is, held back or not: before a picture is made of it. What a thread is
 * in by the kernel's maps would else be taken for what it did all along.
 */
void records__take_all(struct session *s);
/* After a drain: marks the targets whose probes on collections have come off. */
void records__gc_off(struct session *s);
/*
 * Attaches every GHC process that is followed: of the host, or of the command's. -ECANCELED: a
 * signal came, and the session is stopped; other errors of /proc.
 */
int records__scan(struct session *s);

/* ── mapped.c: code that processes map ───────────────────────────────────────────────────── */

struct mapped;

int mapped__new(struct mapped **ret_mapped);
void mapped__free(struct mapped *mapped);
/* Whether the kernel reports what is mapped. */
bool mapped__works(const struct session *s);
/*
 * Whether a process that has begun need not be looked at: what could make it one of GHC's is a
 * library, and would be reported as it is mapped. Not the command itself, of which it is reported
 * what it lacks.
 */
bool mapped__would_show(const struct session *s, const struct candidate *c);
/* What is readable when something was mapped; -1 while nobody needs to be woken for it. */
int mapped__fd(const struct session *s);
/* When to look for what was mapped; 0: the descriptor shows it. */
uint64_t mapped__next_due(const struct session *s);
/* The member's maps are to be read again at `due_ns`, unless they are before. */
void mapped__want(struct mapped *mapped, struct member *m, uint64_t due_ns);
/* Takes in what was mapped since, and reads the maps of members that it concerns. */
void mapped__drain(struct session *s, uint64_t now);

/* ── spare.c: descriptors for the end ─────────────────────────────────────────────────────── */

/*
 * Keeps descriptors back for the end of the session, so that it can write what it has whatever
 * targets have used up: as many as there are, up to SESSION_SPARE_FDS.
 */
void spare_fds__open(struct session *s);
/* Gives them back. */
void spare_fds__close(struct session *s);

/* ── windows.c: the session in windows ───────────────────────────────────────────────────── */

/*
 * Each window's files are written by a child, which has the picture as it was at the fork: the
 * session goes on at once. A window of which no files could be made is counted.
 */
struct windows;

int windows__new(struct session *s, struct windows **ret_windows);
/* When the window that goes on is to end; 0: there are none. */
uint64_t windows__ends_ns(const struct session *s);
/* When to look whether it may. */
uint64_t windows__next_due(const struct session *s);
/*
 * Ends the window, if it is due or `at_once`; else makes lanes of its records once there are many.
 * An error is for good.
 */
int windows__cut(struct session *s, uint64_t now, bool at_once);
/*
 * Before a window is made: where the wall clock was set meanwhile, the timeline learns of it.
 * Nothing in a session without windows, which has the time of its start.
 */
void windows__read_clock(struct session *s);
/* Collects children that have ended. */
void windows__collect(struct session *s);
/* Waits a while for the children, and until a signal comes for one that writes to standard output;
 * then ends those that are left. */
void windows__finish(struct session *s);
/* Ends children, and frees. */
void windows__free(struct session *s);
/* Some window is not in any file, or was not complete. NULL: there are none. */
bool windows__partial(const struct windows *w);
/* Some window is. NULL: there are none. */
bool windows__written(const struct windows *w);

struct windows_state {
	uint64_t made, dropped; /* so far */
	uint64_t writing_ns;	/* when the oldest one ended that is being written; 0: none is */
};
/* NULL: there are none. */
void windows__state(const struct windows *w, struct windows_state *ret_state);

/* ── open.c, loop.c, ending.c: the session from beginning to end ─────────────────────────── */

/* Opens the kernel side, the timeline and the outputs; the first members join. Prints a line on
 * failure. */
int open__all(struct session *s);
/* Waits and works until the session is over: its kind's end, its duration, a signal. */
void loop__run(struct session *s);
/* Takes everything that is left in the kernel, then finishes the timeline. Prints a line on
 * failure. */
int ending__finish(struct session *s);
/* At a cut: all records up to *ret_now, what the kernel's maps know of then, losses and cost. */
int ending__read(struct session *s, uint64_t *ret_now);
/* Only calls' counters and threads' states. */
int ending__read_maps(struct session *s);
/* CPU time of the session's helper processes that have ended. */
uint64_t ending__helpers_cpu_ns(struct session *s);
/* What is missing of a command's; a number (unsigned long long). */
#define ENDING_UNSEEN                                                                              \
	"processes that the command started, and that ended before they could be looked at: "      \
	"%llu; GHC programs among them are not here"

/* ── early.c ─────────────────────────────────────────────────────────────────────────────── */

/* It has ended before it could be looked at: one of a program that is known, or may be soon. */
void early__missed(struct session *s, const struct wire_proc_new *rec);
/* How many did, of a program that is known now; they are forgotten. */
uint64_t early__of(struct early *early, const struct wire_proc_new *rec);

/* ── noted.c ─────────────────────────────────────────────────────────────────────────────── */

/* Into the profiles of all processes: what they lack together since the last cut. */
void noted__cut(struct session *s);
/* The same at the session's end, and who was left out of it. */
void noted__end(struct session *s);

/* ── scrape.c: the session as metrics ────────────────────────────────────────────────────── */

/* What the session has seen so far, for whoever asks opts->metrics. */
struct scrape;

/* Once the timeline is open. */
int scrape__new(struct session *s, struct scrape **ret_scrape);
/* In each turn of the loop: writes a text if one is wanted, though not too often. */
void scrape__turn(struct session *s, uint64_t now);
/* How long to wait until the next reading, after one that took so much CPU time. */
uint64_t scrape__every_ns(uint64_t took_ns);
/* The member has ended, and its figures have not been read since: what they do not have. */
void scrape__note_end(struct session *s, const struct member *m);
/* Nobody answers any more. NULL: nobody was to. */
bool scrape__has_ended(const struct scrape *scrape);
/* After the timeline is freed. NULL is fine. */
void scrape__free(struct scrape *scrape);

#endif

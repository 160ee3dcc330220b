/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of a session, their users, and the candidates that may become members. Shared by
 * the files of this room only. */
#ifndef SAFESCOPED_SESSION_MEMBERS_PRIV_H
#define SAFESCOPED_SESSION_MEMBERS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/retry.h"
#include "base/base.h"
#include "base/hash.h"
#include "kernel/kernel.h"

#include "censuses_priv.h"
#include "living_priv.h"
#include "missing_priv.h"

struct target;
struct wire_proc_new;

/* ── served.c: users ─────────────────────────────────────────────────────────────────────── */

/* How much time was spent on the processes of each user: the user with the least comes first. */
struct served;

int served__new(struct served **ret_served);
void served__free(struct served *served);
uint64_t served__of(const struct served *served, uid_t uid);
void served__add(struct served *served, uid_t uid, uint64_t ns);

/* ── members.c: the set of processes that have joined ────────────────────────────────────── */

struct member_log;

/*
 * A process that has joined. Its address never changes. `live` and `ready` are changed by the set
 * only. A member that has ended is released as soon as its counters have been read: what it held
 * open and mapped is freed, and `target` is NULL.
 */
struct member {
	pid_t pid;
	uid_t account; /* target__account() */
	struct target *target;
	struct kernel_lacking lacking; /* probes that could not be set */
	bool only_sampled;	       /* as in target__info() once the member is ready */
	bool no_rows;		       /* its unwind rows could not be loaded */
	bool no_rows_reported;	       /* this is in the report */
	bool rows_lack;	     /* its rows could not be loaded so far; they are tried again */
	uint64_t rows_ns;    /* total time spent on making its rows */
	bool rows_later;     /* its rows are not complete yet: member__more_rows() */
	uint32_t rows_tries; /* consecutive turns without time for its user's files */
	struct retry again;  /* while its mappings could not be read: want_again() */
	struct wire_proc_new program; /* as reported by the kernel; ino 0: not reported */
	uint64_t attach_ns;	      /* CLOCK_MONOTONIC: start of its part of the profile */
	uint64_t probed_ns;	      /* when its probes were in place */
	bool live;		      /* attached, and not yet known to have ended */
	bool ready;		      /* its layout has been confirmed */
	bool forgotten;		      /* it was not a target: the timeline has nothing of it */
	bool replaced;		      /* unseen.c: it now runs another program */
	bool from_start;	      /* its probes were in place before its first call */
	bool calls_missed; /* it started during the session, and calls may have been missed */
	struct held *held; /* its records until it is ready */
	struct kernel_refused refused; /* its user's counts before it joined, or at the last cut */
	struct kernel_cost cost;       /* set once it has ended and is detached */
	/* member.c: when to check next whether it is ready, and when patience runs out */
	uint64_t retry_ns, give_up_ns;
	unsigned tries, given_up; /* checks so far; times that patience ran out */
	bool last_check;     /* for the check in progress, an unexpected result counts as wrong */
	struct retry waited; /* the candidate's, from before it joined: the next pause is longer */
	/* the snapshot of its threads: wanted, deadline, and when it was started */
	bool snapshot_due;
	bool announced; /* the first one is finished, which was reported */
	uint64_t snapshot_until_ns, snapshot_ns;
	/* censuses.c */
	struct census_state census;
	/* living.c */
	struct living_state living;
	/* mapped.c: when to read its maps again (0: not needed), and when that was last done */
	uint64_t maps_due_ns, maps_read_ns;
	/* logs.c: its eventlog (NULL: none was found), and how often it was searched for */
	struct member_log *log;
	unsigned log_looks;
	bool log_left_out; /* there was no room to keep its log */
	int log_refused;   /* why a log that was found was not opened: open_file__own() */
};

struct members;

int members__new(struct members **ret_members);
/* Frees the members' targets as well; their logs must have been freed. */
void members__free(struct members *members);
/*
 * Takes the target over (also on failure); the member is not live yet. -EDQUOT: the user has so
 * many live members that others would lack room (counted); -E2BIG, -ENOMEM.
 */
int members__add(struct members *members, struct target *target, pid_t pid, uid_t account,
		 bool ready, struct member **ret_member);
/* True if there is room for one more member of that user. */
bool members__has_room(const struct members *members, uid_t account);

/* All members, in the order in which they were added. */
size_t members__count(const struct members *members);
struct member *members__at(const struct members *members, size_t i);
/* The next member that is in the timeline, starting at index *at, which is advanced past it. NULL:
 * no more. */
const struct member *members__next_shown(const struct members *members, size_t *at);
/*
 * Iterates over the live members in the order in which they became live: prev NULL gives the first;
 * `prev` must still be live. NULL: no more.
 */
struct member *members__next_live(const struct members *members, const struct member *prev);
size_t members__count_live(const struct members *members);
/* Live members that are not ready. */
size_t members__count_starting(const struct members *members);
/* Number of members that have become live so far. */
uint64_t members__n_joined(const struct members *members);
/* The live member with this pid, of which there is at most one; NULL: none. */
struct member *members__find_live(const struct members *members, pid_t pid);

/* Makes the member live. No other member with its pid may be live. `pidfd` must stay open until the
 * member is set ended. -ENOMEM, or epoll_ctl()'s errors. */
int members__set_live(struct members *members, struct member *m, int pidfd);
void members__set_ready(struct members *members, struct member *m);
/* Makes the member no longer live. */
void members__set_ended(struct members *members, struct member *m);

/* Readable while there are live members whose processes have exited. */
int members__ends_fd(const struct members *members);
/* Returns up to `max` of these, each one repeatedly until it is set ended, and their number. */
size_t members__exited(const struct members *members, struct member **ret_exited, size_t max);

/* Marks that the kernel still has counters of an ended member to be read. -ENOMEM. */
int members__leave_counters(struct members *members, const struct member *m);
/* True if the counters of a process with this pid, or of any process, are still to be read. */
bool members__has_left_counters(const struct members *members, pid_t pid);
bool members__any_left_counters(const struct members *members);
/* Removes and returns one of these members, whose counters have now been read; NULL: no more. */
struct member *members__take_left(struct members *members);
/* Like members__leave_counters(), for a process that the kernel side followed but that did not
 * become a member. -ENOMEM. */
int members__leave_gone(struct members *members, pid_t pid);

/* The member holds no more resources and may be forgotten. */
void members__set_released(struct members *members, struct member *m);
size_t members__count_released(const struct members *members);
/* Frees the released members, except for the last `stay` that joined. */
void members__forget_released(struct members *members, size_t stay);

/* Processes that did not become members, or not at once, for lack of room; by user. */
struct members_refused {
	uid_t uid;
	uint64_t n;
	uint64_t lately; /* since the last cut, including those that were waiting then */
};
/* NULL: no more. The last entry, with uid -1, is for all users for whom there was no entry left. */
const struct members_refused *members__refused(const struct members *members, size_t i);
/* For a message after "too many of theirs": which limit leaves room for so few. "": none. */
const char *members__why_few(const struct members *members);
/* At a cut: `waiting` processes of the i-th entry still wait for room. The first refusal after a
 * cut with no process left out is logged. */
void members__cut_refused(struct members *members, size_t i, uint64_t waiting);

/* ── candidates.c: processes that are to be looked at ────────────────────────────────────── */

/* What a candidate waits for. */
enum candidate_wait {
	WAITS_NOT,
	WAITS_FOR_ROOM,	 /* among the members */
	WAITS_FOR_FILES, /* descriptors */
	WAITS_FOR_TIME,	 /* in which it can be looked at, or its runtime can be confirmed */
};

struct candidate {
	pid_t pid;
	uint64_t due_ns;
	uint64_t give_up_ns; /* 0: the next look is the late one, for dlopen() */
	unsigned tries;
	bool reported; /* reported by the kernel in `program` */
	bool running; /* it ran before it was noticed: it joins once its runtime has been checked */
	bool mapped;  /* by the kernel's report it has mapped a file that holds a runtime */
	enum candidate_wait waits; /* changed by the set only */
	/* there was no room for it, or no descriptors, at some time: counted once */
	bool refused, missed;
	bool unconfirmed;   /* its runtime was not confirmed at some time: reported once */
	struct retry again; /* for WAITS_FOR_TIME; ns 0: it has not waited for that */
	struct wire_proc_new program;
	/* Its runtime is to be checked before it joins; NULL: not yet. Changed by the set only. */
	struct target *target;
	uid_t user; /* valid if has_user: the user it is accounted to */
	bool has_user;
	uid_t waits_of; /* candidates.c: the user whose place it takes while it waits */
	/* candidates.c: the turn in which it was last looked at, and its rank among those of its
	 * user */
	uint64_t turn, place;
	UT_hash_handle hh;
};

/* The set of candidates, at most one per process. */
struct candidates;

int candidates__new(struct candidates **ret_candidates);
/* Frees the candidates' targets as well. */
void candidates__free(struct candidates *candidates);
struct candidate *candidates__find(const struct candidates *candidates, pid_t pid);
/* Iterates over the candidates: prev NULL gives the first. NULL: no more. */
struct candidate *candidates__next(const struct candidates *candidates,
				   const struct candidate *prev);
/* Replaces an earlier candidate of the process, whose target must have been taken. NULL, with a
 * line: there is no room for it; the caller has all processes scanned again (unseen.c). */
struct candidate *candidates__add(struct candidates *candidates, const struct wire_proc_new *rec,
				  uint64_t due_ns, uint64_t give_up_ns);
void candidates__drop(struct candidates *candidates, struct candidate *c);

/* The candidate waits for room among the members until due_ns; what the kernel reported of it is
 * dropped. False: too many processes of its user are waiting. */
bool candidates__wait(struct candidates *candidates, struct candidate *c, uint64_t due_ns);
/* Like candidates__wait(), until there are descriptors. */
bool candidates__wait_for_files(struct candidates *candidates, struct candidate *c,
				uint64_t due_ns);
/* Like candidates__wait(): it was not looked at in time, or not confirmed. The pause is ten seconds
 * and doubles up to ten minutes. There are as many places for this as for all other reasons. */
bool candidates__wait_for_time(struct candidates *candidates, struct candidate *c, uint64_t now);
/* How many processes of that user wait for others to end; uid -1: of all users. */
size_t candidates__count_waiting(const struct candidates *candidates, uid_t uid);
/* How many wait for descriptors. */
size_t candidates__count_waiting_for_files(const struct candidates *candidates);
/* How many wait for anything, or are just being looked at once more after waiting for time. */
size_t candidates__count_all_waiting(const struct candidates *candidates);
/* The candidate stops waiting and starts anew, to be looked at by give_up_ns. */
void candidates__go_on(struct candidates *candidates, struct candidate *c, uint64_t give_up_ns);

/* Takes the target over; the candidate must not have one. */
void candidates__set_target(struct candidates *candidates, struct candidate *c,
			    struct target *target);
/* Gives the target to the caller; its look must have been cancelled (looks__cancel). NULL: none. */
struct target *candidates__take_target(struct candidates *candidates, struct candidate *c);
/* How many candidates have a target. */
size_t candidates__n_checked(const struct candidates *candidates);

/* True if there may be something to do for it. */
bool candidate__is_due(const struct candidate *c, uint64_t now);
/* Starts a new turn, in which each candidate is due once. */
void candidates__new_turn(struct candidates *candidates);
/* Of the candidates that are due, each once per turn: one of the user with the least time so far,
 * and of that user the one that has waited longest. NULL: no more. */
struct candidate *candidates__next_due(struct candidates *candidates, const struct served *served,
				       uint64_t now);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The processes of a session, their users, and those that may become members. Shared by the files
 * of this room only. */
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

/* How long the processes of each user have been looked at: who had least comes first. */
struct served;

int served__new(struct served **ret_served);
void served__free(struct served *served);
uint64_t served__of(const struct served *served, uid_t uid);
void served__add(struct served *served, uid_t uid, uint64_t ns);

/* ── members.c: the set of processes that have joined ────────────────────────────────────── */

struct member_log;

/*
 * A process that has joined. Its address never changes. `live` and `ready` are changed by the set
 * only. One that has ended is released as soon as its counters have been read: what it held open
 * and mapped goes, and `target` is NULL.
 */
struct member {
	pid_t pid;
	uid_t account; /* target__account() */
	struct target *target;
	struct kernel_lacking lacking; /* probes that could not be set */
	bool only_sampled;	       /* as target__info() has it once the member is ready */
	bool no_rows;		       /* its unwind rows could not be loaded */
	bool no_rows_reported;	       /* in the report */
	bool rows_lack;		       /* … so far: they are tried again */
	uint64_t rows_ns;	       /* how long rows have been made for it */
	bool rows_later;	       /* or not yet all of them: member__more_rows */
	uint32_t rows_tries;	       /* turns in a row that had no time for its user */
	struct retry again;	       /* while what it maps could not be read: want_again */
	struct wire_proc_new program;  /* how the kernel reported it; ino 0: it did not */
	uint64_t attach_ns;	       /* CLOCK_MONOTONIC: its part of the profile begins */
	uint64_t probed_ns;	       /* when its probes were on */
	bool live;		       /* attached, and not seen to end */
	bool ready;		       /* its layout is confirmed */
	bool forgotten;		       /* it was no target: nothing of it is in the timeline */
	bool replaced;		       /* unseen.c: it runs another program */
	bool from_start;	       /* no call of it was made before its probes were on */
	bool calls_missed; /* it began in the session, and whether calls were missed is not known */
	struct held *held; /* its records until it is ready */
	struct kernel_refused refused; /* its user, before it joined, or by the last cut */
	struct kernel_cost cost;       /* of one that has ended and is detached */
	/* member.c: when to look next whether it is ready, and until when to be patient */
	uint64_t retry_ns, give_up_ns;
	unsigned tries, given_up; /* looks, and how often patience was over and began anew */
	bool last_check;	  /* what does not look right in the check that goes on is wrong */
	struct retry waited;	  /* the candidate's, before it joined: a next pause is longer */
	/* the snapshot of its threads: wanted, until when, and when it was begun */
	bool snapshot_due;
	bool announced; /* the first one is over, which was reported */
	uint64_t snapshot_until_ns, snapshot_ns;
	/* censuses.c */
	struct census_state census;
	/* living.c */
	struct living_state living;
	/* mapped.c: when to read its maps again (0: no need to), and when that was last done */
	uint64_t maps_due_ns, maps_read_ns;
	/* logs.c: its eventlog (NULL: none was found), and how often it was looked for */
	struct member_log *log;
	unsigned log_looks;
	bool log_left_out; /* there was no room to keep it */
	int log_refused;   /* why one that was found was not opened: open_file__own */
};

struct members;

int members__new(struct members **ret_members);
/* Frees the members' targets too; their logs must be gone. */
void members__free(struct members *members);
/*
 * Takes the target over (also on failure); the member is not live yet. -EDQUOT: of the same user
 * too many are live to leave others room (counted); -E2BIG, -ENOMEM.
 */
int members__add(struct members *members, struct target *target, pid_t pid, uid_t account,
		 bool ready, struct member **ret_member);
/* Whether there is room for one more of that user's. */
bool members__has_room(const struct members *members, uid_t account);

/* All of them, in the order in which they were added. */
size_t members__count(const struct members *members);
struct member *members__at(const struct members *members, size_t i);
/* The next one that is in the timeline, from number *at on, which becomes the one after it. NULL:
 * no more. */
const struct member *members__next_shown(const struct members *members, size_t *at);
/*
 * The live ones, in the order in which they became so: the first one (prev NULL), then the one
 * after `prev`, which must be live still. NULL: no more.
 */
struct member *members__next_live(const struct members *members, const struct member *prev);
size_t members__count_live(const struct members *members);
/* Those of them that are not ready. */
size_t members__count_starting(const struct members *members);
/* How many have become live so far. */
uint64_t members__n_joined(const struct members *members);
/* The live member of this pid; there is at most one. NULL: none. */
struct member *members__find_live(const struct members *members, pid_t pid);

/* It is live from now on. No other one of its pid may be. `pidfd` stays open until it is set ended.
 * -ENOMEM, or as epoll_ctl(). */
int members__set_live(struct members *members, struct member *m, int pidfd);
void members__set_ready(struct members *members, struct member *m);
/* It is not live any more. */
void members__set_ended(struct members *members, struct member *m);

/* Readable while processes of live members have exited. */
int members__ends_fd(const struct members *members);
/* Those, `max` at most; each again and again until it is set ended. Their number. */
size_t members__exited(const struct members *members, struct member **ret_exited, size_t max);

/* Marks that the kernel's counters of an ended member are still to be read. -ENOMEM. */
int members__leave_counters(struct members *members, const struct member *m);
/* Whether those of a process of this pid are, or of any. */
bool members__has_left_counters(const struct members *members, pid_t pid);
bool members__any_left_counters(const struct members *members);
/* One of those, of which they have been read now; NULL: that was the last. */
struct member *members__take_left(struct members *members);
/* The same of a process that the kernel side followed, and that became no member. -ENOMEM. */
int members__leave_gone(struct members *members, pid_t pid);

/* Nothing is held for it any more, and it may be forgotten. */
void members__set_released(struct members *members, struct member *m);
size_t members__count_released(const struct members *members);
/* Frees them, except for the `stay` that joined last. */
void members__forget_released(struct members *members, size_t stay);

/* Processes that did not become members for want of room, or not at once, by user. */
struct members_refused {
	uid_t uid;
	uint64_t n;
	uint64_t lately; /* since the last cut, and those that waited then */
};
/* NULL: no more. The last one is of all users for whom there was no entry left, of uid -1. */
const struct members_refused *members__refused(const struct members *members, size_t i);
/* A cut: so many of the i-th ones wait for room still. The first one that is refused after a cut at
 * which none was left out has a line in the log. */
void members__cut_refused(struct members *members, size_t i, uint64_t waiting);

/* ── candidates.c: processes that are to be looked at ────────────────────────────────────── */

/* What a candidate waits for. */
enum candidate_wait {
	WAITS_NOT,
	WAITS_FOR_ROOM,	 /* among the members */
	WAITS_FOR_FILES, /* descriptors */
	WAITS_FOR_TIME,	 /* … in which it can be looked at, or shows that its runtime is right */
};

struct candidate {
	pid_t pid;
	uint64_t due_ns;
	uint64_t give_up_ns; /* 0: the next look is the late one, for what dlopen() has loaded */
	unsigned tries;
	bool reported; /* by the kernel: `program` */
	bool running;  /* it ran before it was seen: it joins when its runtime was checked */
	bool mapped;   /* it has mapped what holds a runtime, by the kernel's report */
	enum candidate_wait waits; /* changed by the set only */
	/* there was no room for it at some time, or there were no descriptors: counted once */
	bool refused, missed;
	bool unconfirmed;   /* its runtime was not confirmed at some time: reported once */
	struct retry again; /* of WAITS_FOR_TIME; ns 0: it has not waited for that */
	struct wire_proc_new program;
	/* Its runtime is to be checked before it joins; NULL: not yet. The set changes it only. */
	struct target *target;
	uid_t user; /* while has_user: on whose account it is looked at */
	bool has_user;
	uid_t waits_of; /* candidates.c: whose place it has while it waits */
	/* candidates.c: in which turn it was looked at last, and who comes first of one user's */
	uint64_t turn, place;
	UT_hash_handle hh;
};

/* At most one for a process. */
struct candidates;

int candidates__new(struct candidates **ret_candidates);
/* Their targets too. */
void candidates__free(struct candidates *candidates);
struct candidate *candidates__find(const struct candidates *candidates, pid_t pid);
/* The first one (prev NULL), then the one after `prev`. NULL: no more. */
struct candidate *candidates__next(const struct candidates *candidates,
				   const struct candidate *prev);
/* In place of an earlier one of the process, which has no target any more. NULL, with a line: there
 * is no room for it, and whoever asked has all processes looked at again (unseen.c). */
struct candidate *candidates__add(struct candidates *candidates, const struct wire_proc_new *rec,
				  uint64_t due_ns, uint64_t give_up_ns);
void candidates__drop(struct candidates *candidates, struct candidate *c);

/* It waits for room among the members until due_ns; of what was reported of it nothing holds then.
 * False: too many of its user's wait. */
bool candidates__wait(struct candidates *candidates, struct candidate *c, uint64_t due_ns);
/* The same: until there are descriptors. */
bool candidates__wait_for_files(struct candidates *candidates, struct candidate *c,
				uint64_t due_ns);
/* The same: it was not looked at in time, or not confirmed. The pause is ten seconds, and doubles
 * up to ten minutes. As many may wait for that as for all else. */
bool candidates__wait_for_time(struct candidates *candidates, struct candidate *c, uint64_t now);
/* How many of that user's wait for others' end; of uid -1: of all users. */
size_t candidates__count_waiting(const struct candidates *candidates, uid_t uid);
/* How many wait for descriptors. */
size_t candidates__count_waiting_for_files(const struct candidates *candidates);
/* It does not wait any more, and is as new, to be looked at by give_up_ns. */
void candidates__go_on(struct candidates *candidates, struct candidate *c, uint64_t give_up_ns);

/* Takes the target over; the candidate has none. */
void candidates__set_target(struct candidates *candidates, struct candidate *c,
			    struct target *target);
/* Gives it back; its look must have been cancelled (looks__cancel). NULL: it has none. */
struct target *candidates__take_target(struct candidates *candidates, struct candidate *c);
/* How many have one. */
size_t candidates__n_checked(const struct candidates *candidates);

/* Whether there may be something to do for it. */
bool candidate__is_due(const struct candidate *c, uint64_t now);
/* From now on each of them is due once again. */
void candidates__new_turn(struct candidates *candidates);
/* Of those that are due, each once in a turn, one whose user has had least, and of his the one that
 * has waited longest. NULL: no more. */
struct candidate *candidates__next_due(struct candidates *candidates, const struct served *served,
				       uint64_t now);

#endif

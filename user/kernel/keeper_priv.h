/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper: a process that does nothing but hold the links of all programs. A program runs for as
 * long as somebody holds its link, so they all end when the keeper says so, and it says so
 *   - when the daemon asks for it;
 *   - when the daemon has ended, however that happened;
 *   - of the uprobes, when the daemon's loop has not turned for two seconds (it is stopped, or what
 *     it does takes long): nobody holds the probes against their budget then, and whoever runs into
 *     one pays for it. What the other programs cost is bounded by itself (a tenth of a microsecond
 *     for a switch of a thread that is no target's, and so many samples a second), and the daemon
 *     needs their reports on processes to find its way again. After ten seconds they go too.
 * The daemon's own descriptors could not do that: of a process in uninterruptible sleep none is
 * closed, not even when it has been killed.
 *
 * The keeper reads nothing but the daemon's messages. It has one right, CAP_SYS_ADMIN, of which its
 * filter leaves two uses, so that the daemon need not have it: it turns the kernel's account of
 * programs' run time on and off, and opens the events of a CPU that has come online where the
 * daemon may not (cpu_event__open()).
 */
#ifndef SAFESCOPED_KERNEL_KEEPER_PRIV_H
#define SAFESCOPED_KERNEL_KEEPER_PRIV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct keeper;

enum keep_kind {
	KEEP_PROBE, /* a uprobe */
	KEEP_REST,
};

/* Links at a time. */
#define KEEPER_MAX 32768

/* Starts it; before anything is open that it should not have. */
int keeper__new(struct keeper **ret_keeper);
/* Asks it to end, with all that it holds, and waits for that no longer than two seconds. */
void keeper__free(struct keeper *keeper);
/* Whether it has, with all that it held; waits for that for so long. After keeper__release(). */
bool keeper__ended(struct keeper *keeper, uint64_t wait_ms);
/* Asks it to end, and does not wait. Everything below fails from then on, or does nothing. */
void keeper__release(struct keeper *keeper);

/*
 * Takes the link over: fd is closed in any case. *ret_id, never 0, names it from now on. -EMFILE:
 * it holds too many; -EPIPE: it has ended.
 */
int keeper__hold(struct keeper *keeper, enum keep_kind kind, int fd, uint32_t *ret_id);
/*
 * Takes the program off. Does not wait: *ret_number is to be asked for by keeper__is_done(). NULL:
 * in the background, among others. id 0: nothing.
 */
void keeper__drop(struct keeper *keeper, uint32_t id, uint64_t *ret_number);
/* Whether what has this number is done, which takes the time of all that was asked for before: that
 * a probe comes off may take 100 ms, on a busy machine more. */
bool keeper__is_done(const struct keeper *keeper, uint64_t number);
/* The same; waits for it, but not for long. */
bool keeper__await(const struct keeper *keeper, uint64_t number);
/* Takes a program off that it does not hold yet, in the background. */
void keeper__discard(struct keeper *keeper, int fd);

/*
 * The kernel's account of programs' run time (BPF_ENABLE_STATS) is to be kept, or no more. Does not
 * wait: once *ret_number is done, keeper__accounts() reports whether it is kept. -EPIPE: the keeper
 * has ended.
 */
int keeper__account(struct keeper *keeper, bool on, uint64_t *ret_number);
bool keeper__accounts(const struct keeper *keeper);

/*
 * Opens a CPU's event (an enum cpu_event, kernel_priv.h): a descriptor, or what
 * cpu_event__open_here() gives there. Waits for the answer, but not for long: -ETIMEDOUT; -EPIPE:
 * the keeper has ended.
 */
int keeper__open_event(struct keeper *keeper, int what, int cpu, uint64_t period_ns);

/* The loop has turned. */
void keeper__beat(struct keeper *keeper);
/* How often it has taken the probes off by itself; of those that it was given by then, none is on.
 */
uint64_t keeper__times_taken(const struct keeper *keeper);
/* Whether it holds what it was given, but for that; else it has taken everything off, or has ended.
 */
bool keeper__works(struct keeper *keeper);
/* Readable when it has ended. */
int keeper__fd(const struct keeper *keeper);

/* ── between the two (keeper.c, keeper_child.c) ──────────────────────────────────────────── */

/* In shared memory. */
struct keeper_page {
	_Atomic uint64_t beats;	  /* the daemon: counts turns */
	_Atomic uint64_t done;	  /* the keeper: the last `number` with which it is done */
	_Atomic uint64_t taken;	  /* the keeper: see keeper__times_taken() */
	_Atomic uint64_t all_off; /* the keeper: not 0: nothing is held any more */
	_Atomic uint64_t account; /* the keeper: not 0: the account is kept */
};

enum keeper_what {
	KEEPER_HOLD = 1,
	KEEPER_DROP,
	KEEPER_DROP_LATER,
	KEEPER_ACCOUNT,
	KEEPER_NO_ACCOUNT,
	KEEPER_OPEN_EVENT,
};

/* A message; KEEPER_HOLD has a descriptor with it, and so has KEEPER_OPEN_EVENT: a socket for the
 * answer. */
struct keeper_msg {
	uint32_t what, kind, id;
	int32_t cpu;	    /* of an event, of which `kind` is the enum cpu_event */
	uint64_t number;    /* of what is waited for, ascending */
	uint64_t period_ns; /* of an event */
};

/* The answer to KEEPER_OPEN_EVENT, with the event's descriptor. */
struct keeper_event {
	int32_t err; /* a negative errno, or 0 */
};

/* Is the keeper, and never returns. `daemon`: a pidfd, or -1. */
_Noreturn void keeper_child__run(int socket, int daemon, struct keeper_page *page);

#endif

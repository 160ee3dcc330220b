/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper: a process that does nothing but hold the links of all programs. A program runs for as
 * long as somebody holds its link, so the keeper can end them all by closing them. It does so
 *   - when the daemon asks for it;
 *   - when the daemon has ended, however that happened;
 *   - for the uprobes, when the daemon's loop has not turned for two seconds (it is stopped, or
 *     something takes long): nobody compares the probes with their budget then, and whoever hits
 *     one pays for it. The cost of the other programs is inherently bounded (a tenth of a
 *     microsecond for a switch of a thread of no target, and a fixed number of samples a second),
 *     and the daemon needs their reports on processes to catch up. After ten seconds they go too.
 * The daemon's own descriptors could not do that: those of a process in uninterruptible sleep are
 * not closed, even if it has been killed.
 *
 * The keeper reads nothing but the daemon's messages. It keeps one capability, CAP_SYS_ADMIN, so
 * that the daemon need not have it; its seccomp filter leaves two uses of it: turning the kernel's
 * account of programs' run time on and off, and opening the events of a CPU that has come online
 * where the daemon may not (cpu_event__open()).
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

/* The most links at a time. */
#define KEEPER_MAX 32768

/* Starts the keeper; to be called before anything is open that it should not inherit. */
int keeper__new(struct keeper **ret_keeper);
/* Asks the keeper to end and close all its links; waits for that for two seconds at most. */
void keeper__free(struct keeper *keeper);
/* After keeper__release(): true if the keeper has ended and closed all links; waits up to
 * wait_ms for that. */
bool keeper__ended(struct keeper *keeper, uint64_t wait_ms);
/* Asks the keeper to end, without waiting. Everything below fails or does nothing from then on. */
void keeper__release(struct keeper *keeper);

/*
 * Hands a link over to the keeper; fd is closed in any case. *ret_id, never 0, identifies it from
 * then on. -EMFILE: the keeper holds too many; -EPIPE: it has ended.
 */
int keeper__hold(struct keeper *keeper, enum keep_kind kind, int fd, uint32_t *ret_id);
/*
 * Detaches the program without waiting: *ret_number is for keeper__is_done(). ret_number NULL: in
 * the background, along with others. id 0: does nothing.
 */
void keeper__drop(struct keeper *keeper, uint32_t id, uint64_t *ret_number);
/* True if the request with this number is done. Requests are done in order: detaching one probe
 * may take 100 ms, and more on a busy machine. */
bool keeper__is_done(const struct keeper *keeper, uint64_t number);
/* The same, but waits for it for a short time. */
bool keeper__await(const struct keeper *keeper, uint64_t number);
/* Detaches, in the background, a program whose link the keeper does not hold yet. Closes fd. */
void keeper__discard(struct keeper *keeper, int fd);

/*
 * Turns the kernel's account of programs' run time (BPF_ENABLE_STATS) on or off. Does not wait:
 * once *ret_number is done, keeper__accounts() reports whether the account is kept. -EPIPE: the
 * keeper has ended.
 */
int keeper__account(struct keeper *keeper, bool on, uint64_t *ret_number);
bool keeper__accounts(const struct keeper *keeper);

/*
 * Opens a CPU's event (an enum cpu_event, kernel_priv.h) and returns a descriptor, or the error of
 * cpu_event__open_here() in the keeper. Waits for the answer for a short time: -ETIMEDOUT; -EPIPE:
 * the keeper has ended.
 */
int keeper__open_event(struct keeper *keeper, int what, int cpu, uint64_t period_ns);

/* To be called at each turn of the loop. */
void keeper__beat(struct keeper *keeper);
/* How often the keeper has taken the probes off by itself. None of the probes that it held at
 * that time is on. */
uint64_t keeper__times_taken(const struct keeper *keeper);
/* True if the keeper still holds its links, apart from probes it took off by itself; false if it
 * has detached everything, or has ended. */
bool keeper__works(struct keeper *keeper);
/* Readable when the keeper has ended. */
int keeper__fd(const struct keeper *keeper);

/* ── between the two (keeper.c, keeper_child.c) ──────────────────────────────────────────── */

/* In memory shared by the daemon and the keeper. */
struct keeper_page {
	_Atomic uint64_t beats;	  /* the daemon: number of turns */
	_Atomic uint64_t done;	  /* the keeper: the last `number` that is done */
	_Atomic uint64_t taken;	  /* the keeper: see keeper__times_taken() */
	_Atomic uint64_t all_off; /* the keeper: nonzero: nothing is held any more */
	_Atomic uint64_t account; /* the keeper: nonzero: the account is kept */
};

enum keeper_what {
	KEEPER_HOLD = 1,
	KEEPER_DROP,
	KEEPER_DROP_LATER,
	KEEPER_ACCOUNT,
	KEEPER_NO_ACCOUNT,
	KEEPER_OPEN_EVENT,
};

/* A message. KEEPER_HOLD comes with the link's descriptor, KEEPER_OPEN_EVENT with a socket for
 * the answer. */
struct keeper_msg {
	uint32_t what, kind, id;
	int32_t cpu;	    /* of an event; `kind` is its enum cpu_event */
	uint64_t number;    /* of a request to be waited for; ascending */
	uint64_t period_ns; /* of an event */
};

/* The answer to KEEPER_OPEN_EVENT, with the event's descriptor. */
struct keeper_event {
	int32_t err; /* a negative errno, or 0 */
};

/* Runs the keeper; never returns. `daemon`: a pidfd, or -1. */
_Noreturn void keeper_child__run(int socket, int daemon, struct keeper_page *page);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger: what time and samples add up to. All totals of all formats come from it, and none from
 * the slices that are drawn.
 *
 * It is kept for owners: OS threads and capabilities. An owner's time on the CPU is booked to
 * classes whose sums are known exactly, from events; its samples are booked to the class
 * that they fell into, with their stacks. When the ledger is read, each class's nanoseconds are
 * divided among that class's own samples. A class without a sample, and what is more than its
 * samples can stand for, stays under the class's own stack. Time off the CPU is exact and is booked
 * with its stack.
 *
 * What is booked only ever adds up: the difference between two readings is a ledger, too, and such
 * differences add up to the whole, to the nanosecond. Numbers in a difference may be negative where
 * what was known at the earlier reading turned out otherwise.
 */
#ifndef SAFESCOPED_LEDGER_H
#define SAFESCOPED_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "picture/picture.h"

/* Rows that one ledger keeps. */
#define LEDGER_MAX_ROWS ((size_t)1 << 22)

/* What an owner was on the CPU for. */
enum ledger_class {
	LEDGER_RUN, /* all that is none of the others: Haskell code, unsafe calls, the runtime's own
		       code; code of threads without Haskell */
	LEDGER_CALL,  /* a safe call with a record of its own; `detail`: its site */
	LEDGER_SHORT, /* safe calls too short for a record, all sites together */
	LEDGER_GC,    /* collections that the thread led */
	LEDGER_CLASSES,
};

struct ledger;

struct ledger_opts {
	uint32_t full_stack; /* stands for the stacks of rows beyond max_rows */
	uint64_t period_ns;  /* of samples on a busy CPU; 0: a sample has no bound */
	size_t max_rows;     /* default LEDGER_MAX_ROWS */
};

int ledger__new(const struct ledger_opts *opts, struct ledger **ret_ledger);
void ledger__free(struct ledger *ledger);
/* For the next reading: the longest that the sampler had since the last one. */
void ledger__set_period(struct ledger *ledger, uint64_t period_ns);

/* ── booking ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Owners, states, stacks and details are the caller's numbers; states are below LEDGER_STATES.
 * Nanoseconds and samples may be negative: what was booked wrongly is taken back so. All of these
 * return -ENOMEM only: beyond max_rows a booking goes to full_stack and is counted.
 */
#define LEDGER_STATES 32

/* Where time on the CPU belongs. */
struct ledger_place {
	uint32_t owner;
	uint32_t detail; /* of LEDGER_CALL: the site; else 0 */
	enum ledger_class class;
};

/* A class's time, exact. */
int ledger__time(struct ledger *ledger, const struct ledger_place *place, int64_t ns);
/* Samples of a class, with the state and stack that they showed. */
int ledger__sample(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		   uint32_t stack, int64_t samples);
/*
 * What a class's time most likely was where no sample stands for it, as events around it say: such
 * time is divided in proportion to these bookings. A class of which there is none has state 0 and
 * full_stack.
 */
int ledger__guess(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		  uint32_t stack, int64_t ns);
/* Time off the CPU, exact: each booking is one time, which the account's rows count. */
int ledger__off(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns);
/* Time on the CPU whose stack is known by events alone. */
int ledger__on(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns);
/*
 * What an owner waited for in a state: a second view of the same time. `syscall`: the system call,
 * or whatever else a state has, such as a capability's number.
 */
int ledger__reason(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t syscall,
		   uint32_t function, int64_t ns);

/*
 * Something else than time that stacks add up to, exact: bytes, and of how many samples they are.
 * Its lines are read by ledger__weights() and are in no account.
 */
int ledger__weight(struct ledger *ledger, uint32_t owner, uint32_t stack, int64_t n,
		   int64_t samples);

/*
 * Owners below n become to[owner], all that was booked for them included: threads that nobody
 * asks for singly any more. UINT32_MAX: stays as it is.
 */
int ledger__merge_owners(struct ledger *ledger, const uint32_t *to, uint32_t n);

/* ── readings ────────────────────────────────────────────────────────────────────────────── */

int ledger__copy(const struct ledger *ledger, struct ledger **ret_copy);
/* Adds what `other` holds, `sign` (1 or -1) times. */
int ledger__add(struct ledger *ledger, const struct ledger *other, int sign);

struct ledger_reason {
	uint64_t ns;
	uint32_t state, syscall, function;
};

/* What one owner did. */
struct ledger_account {
	struct pic_row *rows; /* by state and stack, those on the CPU first */
	size_t n;
	struct ledger_reason *reasons;
	size_t n_reasons;
	uint64_t on_ns, off_ns; /* the rows' sums */
};

/*
 * Divides the classes' time and hands over the accounts of owners 0 … n_owners-1. The caller frees
 * by ledger_accounts__free().
 */
int ledger__accounts(const struct ledger *ledger, uint32_t n_owners,
		     struct ledger_account **ret_accounts);
void ledger_accounts__free(struct ledger_account *accounts, uint32_t n_owners);

/*
 * Rows whose sums by state are `states_ns` (n_states of them, at most LEDGER_STATES; 0 for others):
 * of the rows of a state that has another sum now each has its share, and a state without rows gets
 * one with its stack in `stacks`, of which there are as many. The caller frees *ret_rows.
 */
int ledger_rows__fit(const struct pic_row *rows, size_t n, const uint64_t *states_ns,
		     unsigned n_states, const uint32_t *stacks, struct pic_row **ret_rows,
		     size_t *ret_n);

/* What a stack has of a weight. */
struct ledger_weight {
	uint64_t n, samples;
	uint32_t owner, stack;
};
/* By owner and stack, ascending; the caller frees. What is not positive is left out. */
int ledger__weights(const struct ledger *ledger, struct ledger_weight **ret_weights, size_t *ret_n);

/* Bookings that found no room, and went to full_stack. */
uint64_t ledger__left_out(const struct ledger *ledger);

#endif

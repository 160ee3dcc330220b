/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger: sums of time and samples. All totals in all formats come from it, and none from the
 * slices that are drawn.
 *
 * A ledger has owners: OS threads and capabilities. An owner's time on the CPU is booked to classes
 * whose sums are known exactly, from events; its samples are booked to the class that they fell
 * into, with their stacks. When the ledger is read, the nanoseconds of each class are divided among
 * its own samples. The time of a class without a sample, and what exceeds the time that its samples
 * can stand for, stays under the class's own stack. Time off the CPU is exact and is booked with
 * its stack.
 *
 * Bookings are additive: the difference between two readings is a ledger, too, and such differences
 * add up to the whole, to the nanosecond. Numbers in a difference may be negative where something
 * turned out differently from what the earlier reading assumed.
 */
#ifndef SAFESCOPED_LEDGER_H
#define SAFESCOPED_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "picture/picture.h"

/* The most rows that one ledger keeps. */
#define LEDGER_MAX_ROWS ((size_t)1 << 22)

/* What an owner did on the CPU. */
enum ledger_class {
	LEDGER_RUN,   /* everything else: Haskell code, unsafe calls, the runtime's own code; safe
			 calls with a record that called back; code of threads without Haskell */
	LEDGER_CALL,  /* a safe call with a record of its own; `detail`: its site */
	LEDGER_SHORT, /* safe calls too short for a record, all sites together */
	LEDGER_GC,    /* collections that the thread led */
	LEDGER_CLASSES,
};

struct ledger;

struct ledger_opts {
	uint32_t full_stack; /* the stack for bookings beyond max_rows */
	uint64_t period_ns;  /* of samples on a busy CPU; 0: the time per sample is not bounded */
	size_t max_rows;     /* default LEDGER_MAX_ROWS */
};

int ledger__new(const struct ledger_opts *opts, struct ledger **ret_ledger);
void ledger__free(struct ledger *ledger);
/* Sets the period for the next reading: the longest that the sampler has had since the last one. */
void ledger__set_period(struct ledger *ledger, uint64_t period_ns);

/* ── booking ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Owners, states, stacks and details are the caller's numbers; states are below LEDGER_STATES.
 * Nanoseconds and samples may be negative, to take a wrong booking back. All of these fail only
 * with -ENOMEM: beyond max_rows a booking goes to full_stack and is counted.
 */
#define LEDGER_STATES 32

/* Where time on the CPU is booked. */
struct ledger_place {
	uint32_t owner;
	uint32_t detail; /* LEDGER_CALL: the site; else 0 */
	enum ledger_class class;
};

/* Books a class's exact time. */
int ledger__time(struct ledger *ledger, const struct ledger_place *place, int64_t ns);
/* Books samples of a class, with the state and stack that they showed. */
int ledger__sample(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		   uint32_t stack, int64_t samples);
/*
 * Books what a class's time most likely was, as shown by events around it, in case no sample stands
 * for the time: such time is divided in proportion to these bookings. For a class without them, it
 * gets state 0 and full_stack.
 */
int ledger__guess(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
		  uint32_t stack, int64_t ns);
/* ledger__time() and ledger__guess() of the same time. */
int ledger__guessed_time(struct ledger *ledger, const struct ledger_place *place, uint32_t state,
			 uint32_t stack, int64_t ns);
/* Books exact time off the CPU. Each booking counts as one occurrence in the account's rows. */
int ledger__off(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns);
/* Books time on the CPU whose stack is known from events alone. */
int ledger__on(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t stack, int64_t ns);
/*
 * Books what an owner waited for in a state: a second view of the same time. `syscall`: the system
 * call, or another number that the state has, such as a capability's.
 */
int ledger__reason(struct ledger *ledger, uint32_t owner, uint32_t state, uint32_t syscall,
		   uint32_t function, int64_t ns);

/*
 * Books an exact quantity other than time, such as bytes, by stack, and the number of samples that
 * it comes from. It is read by ledger__weights() and is in no account.
 */
int ledger__weight(struct ledger *ledger, uint32_t owner, uint32_t stack, int64_t n,
		   int64_t samples);

/*
 * Merges each owner below n, with everything booked for it, into to[owner]: used for threads that
 * are not reported separately any more. UINT32_MAX: the owner stays as it is.
 */
int ledger__merge_owners(struct ledger *ledger, const uint32_t *to, uint32_t n);

/* ── readings ────────────────────────────────────────────────────────────────────────────── */

int ledger__copy(const struct ledger *ledger, struct ledger **ret_copy);
/* Adds the bookings of `other`, multiplied by `sign` (1 or -1). */
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
	uint64_t on_ns, off_ns; /* sums of the rows */
};

/*
 * Divides the time of classes and returns the accounts of owners 0 … n_owners-1. Free with
 * ledger_accounts__free().
 */
int ledger__accounts(const struct ledger *ledger, uint32_t n_owners,
		     struct ledger_account **ret_accounts);
void ledger_accounts__free(struct ledger_account *accounts, uint32_t n_owners);

/*
 * Scales rows to the sums by state in states_ns (n_states of them, at most LEDGER_STATES; 0 for
 * others): the rows of a state keep their proportions, and a state without rows gets one with its
 * entry of `stacks`, which has n_states entries. The caller frees *ret_rows.
 */
int ledger_rows__fit(const struct pic_row *rows, size_t n, const uint64_t *states_ns,
		     unsigned n_states, const uint32_t *stacks, struct pic_row **ret_rows,
		     size_t *ret_n);

/* A stack's part of a weight. */
struct ledger_weight {
	uint64_t n, samples;
	uint32_t owner, stack;
};
/* By owner and stack, ascending, without entries that are not positive. The caller frees. */
int ledger__weights(const struct ledger *ledger, struct ledger_weight **ret_weights, size_t *ret_n);

/* The number of bookings that went to full_stack for lack of room. */
uint64_t ledger__left_out(const struct ledger *ledger);

#endif

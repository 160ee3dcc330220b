/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room only: the table of bookings. */
#ifndef SAFESCOPED_LEDGER_PRIV_H
#define SAFESCOPED_LEDGER_PRIV_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "ledger.h"

enum booking_kind {
	BOOKING_TIME,
	BOOKING_SAMPLE,
	BOOKING_GUESS,
	BOOKING_OFF,
	BOOKING_REASON, /* stack: the function; detail: the system call */
	BOOKING_WEIGHT,
};

/* `detail` of a BOOKING_OFF that is on the CPU. */
#define BOOKING_ON_CPU 1

struct booking_key {
	uint32_t owner, detail, stack;
	uint8_t kind;  /* enum booking_kind */
	uint8_t class; /* enum ledger_class */
	uint8_t state;
	uint8_t pad;
};

struct booking {
	UT_hash_handle hh;
	struct booking_key key;
	int64_t n; /* ns, samples, or bytes */
	/* of BOOKING_OFF: how often it was booked, and the most at once; of BOOKING_WEIGHT: samples
	 */
	int64_t times;
	uint64_t longest;
};

/* By a cheap hash: most bookings are like one of the last. */
#define RECENT_BOOKINGS_BITS 9
#define RECENT_BOOKINGS	     (1U << RECENT_BOOKINGS_BITS)
#define FEW_BOOKINGS_BITS    4
#define FEW_BOOKINGS	     (1U << FEW_BOOKINGS_BITS)

struct ledger {
	struct ledger_opts opts;
	struct booking *table;
	/* those that were found last, by their keys: RECENT_BOOKINGS of them once there are as many
	 * lines as pay for it, until then (NULL) some */
	struct booking **recent, *few[FEW_BOOKINGS];
	uint64_t left_out;
};

/* By owner, class, detail, kind, state, stack. */
int booking__compare(const struct booking_key *a, const struct booking_key *b);

#endif

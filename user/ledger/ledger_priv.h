/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room only: the table of bookings. */
#ifndef SAFESCOPED_LEDGER_PRIV_H
#define SAFESCOPED_LEDGER_PRIV_H

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
	/* BOOKING_OFF: number of bookings, and the largest one; BOOKING_WEIGHT: samples;
	 * BOOKING_GUESS: how much of it is the class's time as well, and has no BOOKING_TIME */
	int64_t times;
	uint64_t longest;
};

/* A cache indexed by a cheap hash: most bookings are like a recent one. */
#define RECENT_BOOKINGS_BITS 9
#define RECENT_BOOKINGS	     (1U << RECENT_BOOKINGS_BITS)
#define FEW_BOOKINGS_BITS    4
#define FEW_BOOKINGS	     (1U << FEW_BOOKINGS_BITS)

struct ledger {
	struct ledger_opts opts;
	struct booking *table;
	/* the bookings found last, by key: RECENT_BOOKINGS of them once there are enough lines to
	 * make that worthwhile; until then `recent` is NULL and `few` is used */
	struct booking **recent, *few[FEW_BOOKINGS];
	uint64_t left_out;
};

/* Orders by owner, class, detail, kind, state, stack. */
int booking__compare(const struct booking_key *a, const struct booking_key *b);

#endif

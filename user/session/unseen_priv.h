/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events for whose records the ring had no room. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_UNSEEN_PRIV_H
#define SAFESCOPED_SESSION_UNSEEN_PRIV_H

#include <stdbool.h>
#include <stdint.h>

struct session;

struct unseen {
	uint64_t losses;    /* number of records without room … */
	uint64_t read_ns;   /* … and when it was last read */
	bool processes;	    /* some processes may have started unseen, or found no room among the
			       candidates: all are to be scanned … */
	uint64_t looked_ns; /* … and when they were last scanned */
	bool ends;	    /* some threads may have ended unseen, … */
	uint64_t ends_ns;   /* … which is to be checked from this time on */
};

/* To be called in each turn of the loop, after the records and the ends of members. */
void unseen__turn(struct session *s, uint64_t now);

#endif

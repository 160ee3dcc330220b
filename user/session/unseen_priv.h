/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ring had no room to report. Shared by the files of this room only. */
#ifndef SAFESCOPED_SESSION_UNSEEN_PRIV_H
#define SAFESCOPED_SESSION_UNSEEN_PRIV_H

#include <stdbool.h>
#include <stdint.h>

struct session;

struct unseen {
	uint64_t losses;    /* so many records had no room … */
	uint64_t read_ns;   /* … when that was last read */
	bool processes;	    /* some may have begun, or found no room among the candidates: all are
			       to be looked at … */
	uint64_t looked_ns; /* … as they last were then */
	bool ends;	    /* some threads may have ended, … */
	uint64_t ends_ns;   /* … which is to be looked for from then on */
};

/* In each turn of the loop, after the records and the ends of members. */
void unseen__turn(struct session *s, uint64_t now);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by compare.c (what is compared) and judge.c (what of it is a change). */
#ifndef SAFESCOPED_DIFF_PRIV_H
#define SAFESCOPED_DIFF_PRIV_H

#include "diff.h"

/* What one session has of something that is compared. */
struct measured {
	uint64_t n;    /* samples, calls, collections */
	uint64_t sum;  /* ns, bytes; 0 for counts */
	uint64_t seen; /* calls, collections: those that were counted, of which n is estimated */
	double unsure; /* so many of n: its standard deviation beside that of counts */
};

/* What a program's two sessions are compared by. */
struct basis {
	struct diff_pair *pair;
	bool counted;	 /* an event is counted, not CPU time */
	double t[2];	 /* how much work: ns of CPU time, the second one's scaled; or events */
	double unit;	 /* the work that rows are for, in that unit: a second, or an event */
	double unsure;	 /* the standard deviation of t[1] / t[0] for want of events, as a part */
	double expected; /* so many standard deviations one of all comparisons exceeds by chance */
};

struct judged {
	struct measured m[2];
	bool spins;   /* takes as long as others let it: the collector, locks */
	bool no_name; /* a module's functions that have none, or a module that has such */
};

/* How many comparisons there will be: comes first. */
void judge__expect(struct basis *basis, size_t n);
/* Given pair, counted, t and unit: finds all else, from all functions. -ERANGE: without samples, or
 * without work. */
int judge__basis(struct basis *basis, const struct judged *functions, size_t n);
/* After that: the same of allocation. -ERANGE: it is not known of both. */
int judge__alloc_basis(struct basis *basis, const struct judged *allocators, size_t n);

/* Each fills a row's a, b, noise, effect and verdict. */
void judge__cpu(const struct basis *basis, const struct judged *j, struct diff_row *row);
void judge__alloc(const struct basis *basis, const struct judged *j, struct diff_row *row);
/* What the runtime counts: bytes that end so far before the session's end. */
void judge__bytes(const struct basis *basis, const double bytes[2], const double ends[2],
		  struct diff_row *row);
void judge__count(const struct basis *basis, const struct measured m[2], struct diff_row *row);
/* a and b are set: a duration each, of m[] things; cv: how much it varies by itself. */
void judge__each(const struct basis *basis, const struct measured m[2], double cv,
		 struct diff_row *row);
/* How much the collector's times vary by themselves. */
double judge__gc_varies(const struct basis *basis);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by compare.c (what is compared) and judge.c (which differences are changes). */
#ifndef SAFESCOPED_DIFF_PRIV_H
#define SAFESCOPED_DIFF_PRIV_H

#include "diff.h"

/* One session's figures for something that is compared. */
struct measured {
	uint64_t n;    /* samples, calls, collections */
	uint64_t sum;  /* ns, bytes; 0 for counts */
	uint64_t seen; /* calls, collections: the number counted, from which n is extrapolated */
	double unsure; /* n's standard deviation from extrapolation, beside that of counts */
};

/* The basis on which a program's two sessions are compared. */
struct basis {
	struct diff_pair *pair;
	bool counted;	 /* work is a number of events rather than CPU time */
	double t[2];	 /* the work: ns of CPU time, the second one's scaled; or events */
	double unit;	 /* the work that rows refer to, in the same unit: a second, or an event */
	double unsure;	 /* the relative standard deviation of t[1] / t[0], as not all events were
			    counted */
	double expected; /* the number of standard deviations that one of all comparisons exceeds by
			    chance in 1 % of runs */
};

struct judged {
	struct measured m[2];
	bool spins;   /* its time depends on other threads: the collector, locks */
	bool no_name; /* a module's functions without names, or a module with such functions */
};

/* Sets the number of comparisons; must be called first. */
void judge__expect(struct basis *basis, size_t n);
/* Computes the other fields from pair, counted, t and unit, and from all functions. -ERANGE:
 * without samples, or without work. */
int judge__basis(struct basis *basis, const struct judged *functions, size_t n);
/* The same for allocation, after judge__basis. -ERANGE: it is not known for both. */
int judge__alloc_basis(struct basis *basis, const struct judged *allocators, size_t n);

/* Each fills in a row's a, b, noise, effect and verdict. */
void judge__cpu(const struct basis *basis, const struct judged *j, struct diff_row *row);
void judge__alloc(const struct basis *basis, const struct judged *j, struct diff_row *row);
/* For bytes counted by the runtime. ends: about how many bytes may be missing at each session's
 * end. */
void judge__bytes(const struct basis *basis, const double bytes[2], const double ends[2],
		  struct diff_row *row);
void judge__count(const struct basis *basis, const struct measured m[2], struct diff_row *row);
/* The row's a and b are given: the duration of one of m[] things; cv: how much it varies by
 * itself. */
void judge__each(const struct basis *basis, const struct measured m[2], double cv,
		 struct diff_row *row);
/* How much the collector's times vary by themselves. */
double judge__gc_varies(const struct basis *basis);

#endif

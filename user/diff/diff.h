/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff: two sessions compared: what of the second one takes longer or shorter than in the first,
 * told from what is noise. It knows sessions by their JSON reports and their folded stacks only.
 *
 * How noise is told from change (compare.c has the formulas). Both sessions are brought to the same
 * work: a second of the first one's CPU time, or one of the events that are counted. A function's
 * time on the CPU, and what it allocates, is known by its samples, whose number varies as counts
 * do; besides, the same program does not take exactly the same time twice, and less so what spins
 * while others hold it up. A difference is a change if it is larger than all that explains, for so
 * many comparisons at a time, and large enough to matter.
 */
#ifndef SAFESCOPED_DIFF_H
#define SAFESCOPED_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ── a report (report.c) ─────────────────────────────────────────────────────────────────── */

#define DIFF_MAX_PROGRAMS   64
#define DIFF_MAX_FUNCTIONS  30000
#define DIFF_MAX_ALLOCATORS 30000
#define DIFF_MAX_CALLS	    5000
/* Bytes of a report that is read at all. */
#define DIFF_MAX_REPORT ((size_t)256 << 20)

/* All processes with one name. */
struct diff_program {
	char comm[32];
	char build_id[48]; /* "": none, or not the same of all */
	uint64_t processes;
	bool parallel;		       /* more than one capability: collections spin */
	uint32_t calls_unsure;	       /* the largest of its safe calls: see there */
	uint64_t cpu_ns, preempted_ns; /* of the threads: on a CPU, and kept from one */
	uint64_t gc_cpu_ns;	       /* collecting, on a CPU */
	uint64_t gcs, gc_pause_ns;     /* 0: not known */
	bool gcs_missed; /* nobody counted them all, and how many is not known: the probes were off
			  */
	uint64_t alloc_bytes; /* 0: not known */
	uint64_t alloc_sampled, alloc_samples;
	uint64_t alloc_gcs; /* collections by which it is known */
	bool alloc_in_part; /* of one of the processes not all was seen: these are 0 */
	/* in large objects, of so many of the bytes: of the others it is not known */
	uint64_t large_bytes, large_of_bytes;
};

enum diff_kind { DIFF_HASKELL, DIFF_FOREIGN, DIFF_RTS, DIFF_GC, DIFF_KERNEL, DIFF_KINDS };

/* The module of what the runtime does, whatever it is written in. */
#define DIFF_MODULE_RTS "(RTS)"

struct diff_function {
	uint32_t program;
	uint32_t kind;	  /* enum diff_kind */
	char name[232];	  /* longer ones are cut */
	char module[112]; /* of foreign code without a name: the file, as the name has it */
	uint64_t samples;
	uint64_t sum; /* of its own: ns on the CPU, or bytes that it allocated */
};

struct diff_call {
	uint32_t program;
	bool safe;
	char function[120], caller[232];
	uint64_t calls, cpu_ns, p50_ns; /* safe; p50_ns 0: not known */
	uint64_t samples;		/* unsafe */
	/* Safe, in millionths: the part of the time in which they were not counted; the part of
	 * their number, as that time makes it, that it may be off by. */
	uint32_t unseen, unsure;
};

#define DIFF_WHOLE 1000000 /* millionths */

struct diff_report {
	/* of the session; where it is of one process, how long that was seen */
	uint64_t duration_ns;
	uint64_t frequency_hz;
	uint32_t n_programs, n_functions, n_allocators, n_calls;
	bool cut; /* there is more than there is room for */
	struct diff_program programs[DIFF_MAX_PROGRAMS];
	struct diff_function functions[DIFF_MAX_FUNCTIONS];
	struct diff_function allocators[DIFF_MAX_ALLOCATORS];
	struct diff_call calls[DIFF_MAX_CALLS];
};

/* The length of what comes before "+0x1a30", which a place in the code without a name ends with; 0:
 * there is no such end. */
size_t diff__place(const char *name);
/*
 * Reads a JSON report, in a process without rights, which parses it. -EBADMSG: it is none; -EINVAL:
 * one without any time on the CPU, such as of a log alone; others as confine__aside().
 */
int diff_report__read(const char *json, size_t len, struct diff_report **ret_report);
void diff_report__free(struct diff_report *report);

/* ── the comparison (compare.c) ──────────────────────────────────────────────────────────── */

enum diff_section {
	DIFF_FUNCTIONS,	      /* time of their own, on the CPU, for the same work */
	DIFF_MODULES,	      /* the same of all functions of a module */
	DIFF_UNSAFE,	      /* the same in unsafe calls, by function and caller */
	DIFF_CALLS,	      /* number of safe calls, for the same work */
	DIFF_CALL_TIME,	      /* a safe call's median time */
	DIFF_CALL_CPU,	      /* a safe call's time on the CPU */
	DIFF_GCS,	      /* number of collections, for the same work */
	DIFF_GC_CPU,	      /* a collection's time on the CPU, of all threads */
	DIFF_GC_PAUSE,	      /* a collection's pause */
	DIFF_ALLOC,	      /* bytes for the same work: all, and large objects */
	DIFF_ALLOC_FUNCTIONS, /* the same of functions themselves */
	DIFF_ALLOC_MODULES,   /* and of all functions of a module */
	DIFF_SECTIONS,
};

struct diff_row {
	enum diff_section section;
	const char *name; /* function, module, "" */
	const char *at;	  /* module, caller, "" */
	double a, b;	  /* ns, bytes or a number, as the section has it */
	double noise;	  /* b - a may be so far from 0 without a change */
	/* What it makes of the same work, as a part of its CPU time, or of its bytes: rows are
	 * sorted by its amount. */
	double effect;
	int verdict;   /* -1: less in b, 1: more, 0: may be noise, or does not matter */
	bool no_names; /* a module: functions of it have none, so that theirs are one row */
};

/* What samples measure: CPU time, or bytes that are allocated. */
struct diff_measure {
	double whole[2]; /* of each session; 0: not known */
	double each[2];	 /* that a sample stands for */
	bool uneven;	 /* each sample for another amount: these are means */
	double spread;	 /* samples vary so many times as much as counts do; at least 1 */
	double limit;	 /* so many standard deviations are a change */
};

/* A program that both have. */
struct diff_pair {
	const struct diff_program *a, *b;
	bool same_build; /* a place in the code is the same function in both */
	bool no_names;	 /* else: there are functions that are known by their places only */
	/* The second session did so many times the first one's work. */
	double work;
	/* How many times the CPU time of the median function the second one's work took, which is
	 * taken for the same; 1: too few functions, or an event is counted. */
	double scale;
	struct diff_measure cpu, alloc;
	/* How much a time varies by itself, as a part of it: of what runs, and of what spins. */
	double varies, spins_varies;
	double alloc_varies; /* of bytes, which are as many however busy the machine is */
	double unknown;	     /* the standard deviation of the scale, as a part of it; of the number
				of events that are counted */
	double load;	     /* how differently busy the machine was: 0: alike */
	struct diff_row *rows;
	size_t n_rows;
};

struct diff {
	struct diff_pair *pairs;
	size_t n_pairs;
	const struct diff_report *a, *b; /* must outlive it */
	const char *per;		 /* as given */
};

/*
 * `per`: NULL: CPU time; "gc": collections; else the function of safe calls, which are counted. One
 * program in each report are a pair whatever they are called; of several those with the same name.
 * -ENOENT: there is no pair; -ERANGE: one of a pair has no such event, or no samples.
 */
int diff__new(const struct diff_report *a, const struct diff_report *b, const char *per,
	      struct diff **ret_diff);
void diff__free(struct diff *diff);

/* ── output ──────────────────────────────────────────────────────────────────────────────── */

/* The report for people (text.c). `names`: of the two sessions; width: of the page, 0: not known.
 */
int diff__put_text(FILE *out, const struct diff *diff, const char *const names[2], bool verbose,
		   bool colour, unsigned width);

/*
 * Folded stacks of both, without processes' and threads' numbers: a line for each stack with the
 * first one's count, for the second one's work, and the second one's, as difffolded.pl writes them
 * (stacks.c).
 */
struct diff_stacks;
/* Both as the folded format has them, of the weight cpu, microseconds, or alloc, bytes. */
int diff_stacks__new(const struct diff *diff, const char *const folded[2], bool alloc,
		     struct diff_stacks **ret_stacks);
void diff_stacks__free(struct diff_stacks *stacks);
int diff_stacks__put_folded(FILE *out, const struct diff_stacks *stacks);
/* A page for a browser, which loads nothing: the flame graph of the second one in the colours of
 * what changed, and the text (page.c). */
int diff__put_page(FILE *out, const struct diff *diff, const struct diff_stacks *stacks,
		   const char *const names[2]);

#endif

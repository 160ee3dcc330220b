/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff: compares two sessions: what takes longer or shorter in the second one than in the first, as
 * opposed to noise. Sessions are known only by their JSON reports and their folded stacks.
 *
 * How noise is distinguished from change (judge.c has the formulas): both sessions are scaled to
 * the same work, which is a second of the first one's CPU time, or one of the events that are
 * counted. A function's CPU time and allocation are known by its samples, whose number varies like
 * a count; besides, a program never takes exactly the same time twice, and code that spins while
 * others hold it up varies even more. A difference is a change if it exceeds what all of that
 * explains, given the number of comparisons, and is large enough to matter.
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
/* The maximum size of a report in bytes. */
#define DIFF_MAX_REPORT ((size_t)256 << 20)

/* All processes with the same name. */
struct diff_program {
	char comm[32];
	char build_id[48]; /* "": none, or not the same for all of them */
	uint64_t processes;
	bool parallel;	       /* more than one capability, so collections spin */
	uint32_t calls_unsure; /* the largest `unsure` of its safe calls (struct diff_call) */
	uint64_t cpu_ns, preempted_ns; /* the threads' time on a CPU, and preempted */
	uint64_t gc_cpu_ns;	       /* CPU time in collections */
	uint64_t gcs, gc_pause_ns;     /* 0: not known */
	bool gcs_missed;	       /* how many were missed is not known: the probes were off */
	uint64_t alloc_bytes;	       /* 0: not known */
	uint64_t alloc_sampled, alloc_samples;
	uint64_t alloc_gcs; /* the collections that allocation is known from */
	bool alloc_in_part; /* one of the processes was seen only in part: these figures are 0 */
	/* bytes in large objects, out of large_of_bytes; for the others it is not known */
	uint64_t large_bytes, large_of_bytes;
};

enum diff_kind { DIFF_HASKELL, DIFF_FOREIGN, DIFF_RTS, DIFF_GC, DIFF_KERNEL, DIFF_KINDS };

/* The module of the runtime's code, in whatever language. */
#define DIFF_MODULE_RTS "(RTS)"

struct diff_function {
	uint32_t program;
	uint32_t kind;	  /* enum diff_kind */
	char name[232];	  /* longer ones are cut */
	char module[112]; /* of foreign code without a name: the file, taken from the name */
	uint64_t samples;
	uint64_t sum; /* the function's own: ns on the CPU, or bytes allocated */
};

struct diff_call {
	uint32_t program;
	bool safe;
	char function[120], caller[232];
	uint64_t calls, cpu_ns, p50_ns; /* safe calls; p50_ns 0: not known */
	uint64_t samples;		/* unsafe calls */
	/* Safe calls, in millionths: the share of the time in which they were not counted, and the
	 * relative uncertainty of their number, which is extrapolated to that time. */
	uint32_t unseen, unsure;
};

#define DIFF_WHOLE 1000000 /* in millionths */

struct diff_report {
	/* of the session; with a single process, the time for which that was seen */
	uint64_t duration_ns;
	uint64_t frequency_hz;
	uint32_t n_programs, n_functions, n_allocators, n_calls;
	bool cut; /* some of it did not fit */
	struct diff_program programs[DIFF_MAX_PROGRAMS];
	struct diff_function functions[DIFF_MAX_FUNCTIONS];
	struct diff_function allocators[DIFF_MAX_ALLOCATORS];
	struct diff_call calls[DIFF_MAX_CALLS];
};

/* The length of what precedes "+0x1a30", the end of a name that is only a place in the code; 0:
 * there is no such end. */
size_t diff__place(const char *name);
/*
 * Reads a JSON report; a process without rights parses it. -EBADMSG: not a report; -EINVAL: it has
 * no CPU time, such as one from a log alone; other errors as confine__aside().
 */
int diff_report__read(const char *json, size_t len, struct diff_report **ret_report);
void diff_report__free(struct diff_report *report);

/* ── the comparison (compare.c) ──────────────────────────────────────────────────────────── */

enum diff_section {
	DIFF_FUNCTIONS,	      /* their own CPU time for the same work */
	DIFF_MODULES,	      /* the same for all functions of a module */
	DIFF_UNSAFE,	      /* the same for unsafe calls, by function and caller */
	DIFF_CALLS,	      /* number of safe calls, for the same work */
	DIFF_CALL_TIME,	      /* a safe call's median time */
	DIFF_CALL_CPU,	      /* a safe call's CPU time */
	DIFF_GCS,	      /* number of collections, for the same work */
	DIFF_GC_CPU,	      /* a collection's CPU time, of all threads */
	DIFF_GC_PAUSE,	      /* a collection's pause */
	DIFF_ALLOC,	      /* bytes for the same work: in all, and in large objects */
	DIFF_ALLOC_FUNCTIONS, /* the same for functions themselves */
	DIFF_ALLOC_MODULES,   /* and for all functions of a module */
	DIFF_SECTIONS,
};

struct diff_row {
	enum diff_section section;
	const char *name; /* function, module, "" */
	const char *at;	  /* module, caller, "" */
	double a, b;	  /* ns, bytes or a count, depending on the section */
	double noise;	  /* how far b - a can be from 0 without being a change */
	/* The difference for the same work, as a part of its CPU time or bytes: rows are sorted by
	 * its absolute value. */
	double effect;
	int verdict;   /* -1: less in b, 1: more, 0: may be noise, or does not matter */
	bool no_names; /* a module: it has functions without names, which share one row */
};

/* What samples measure: CPU time, or allocated bytes. */
struct diff_measure {
	double whole[2]; /* total of each session; 0: not known */
	double each[2];	 /* what one sample stands for */
	bool uneven;	 /* samples stand for different amounts: `each` is their mean */
	double spread;	 /* the variance of samples, relative to that of counts; at least 1 */
	double limit;	 /* more standard deviations than this are a change */
};

/* A program in both reports. */
struct diff_pair {
	const struct diff_program *a, *b;
	bool same_build; /* a place in the code is the same function in both */
	bool no_names;	 /* otherwise, some functions are known only by their places */
	/* The second session's work, relative to the first one's. */
	double work;
	/*
	 * How many times as much CPU time the same work took in the second session, by the median
	 * function, which is assumed not to have changed; 1: too few functions, or an event is
	 * counted.
	 */
	double scale;
	struct diff_measure cpu, alloc;
	/* How much a time varies by itself, relative to it: in general, and for code that spins. */
	double varies, spins_varies;
	double alloc_varies; /* for bytes, which do not depend on how busy the machine is */
	double unknown; /* the relative standard deviation of the scale, or of the number of events
			   counted */
	double load;	/* the difference in how busy the machine was; 0: none */
	struct diff_row *rows;
	size_t n_rows;
};

struct diff {
	struct diff_pair *pairs;
	size_t n_pairs;
	const struct diff_report *a, *b; /* must outlive this struct */
	const char *per;		 /* as given */
};

/*
 * Compares two reports. `per` is the unit of work: NULL: CPU time; "gc": collections; else the
 * function of the safe calls that are counted. If each report has one program, these are a pair
 * whatever their names; otherwise, programs with the same name are. -ENOENT: there is no pair;
 * -ERANGE: the only pair lacks such an event, or samples.
 */
int diff__new(const struct diff_report *a, const struct diff_report *b, const char *per,
	      struct diff **ret_diff);
void diff__free(struct diff *diff);

/* ── output ──────────────────────────────────────────────────────────────────────────────── */

/* Writes the report for people (text.c). `names`: of the two sessions; width: of the page, 0: not
 * known. */
int diff__put_text(FILE *out, const struct diff *diff, const char *const names[2], bool verbose,
		   bool colour, unsigned width);

/*
 * Folded stacks of both, without the numbers of processes and threads: a line for each stack with
 * the first one's count, scaled to the second one's work, and the second one's, as written by
 * difffolded.pl (stacks.c).
 */
struct diff_stacks;
/* `folded`: both sessions in the folded format, by the weight cpu (microseconds) or, if `alloc`,
 * alloc (bytes). */
int diff_stacks__new(const struct diff *diff, const char *const folded[2], bool alloc,
		     struct diff_stacks **ret_stacks);
void diff_stacks__free(struct diff_stacks *stacks);
int diff_stacks__put_folded(FILE *out, const struct diff_stacks *stacks);
/* Writes a self-contained page for a browser: the flame graph of the second session, coloured by
 * change, and the text (page.c). */
int diff__put_page(FILE *out, const struct diff *diff, const struct diff_stacks *stacks,
		   const char *const names[2]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heap: the part of a process's picture that concerns memory: who allocates, and how the heap
 * grows. */
#ifndef SAFESCOPED_PICTURE_HEAP_H
#define SAFESCOPED_PICTURE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

/* The bytes that one stack has allocated. */
struct pic_alloc_row {
	uint64_t bytes, samples;
	uint32_t stack;
};

/*
 * When and where some of those bytes were allocated: between two consecutive samples of a
 * capability, or in several such intervals close to each other (picture/spans.h).
 */
struct pic_alloc_span {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC; the time within the interval is not known */
	uint64_t bytes, samples;
	uint64_t tso;	/* id of the Haskell thread; 0: not known */
	pid_t tid;	/* the OS thread; 0: not known */
	uint32_t stack; /* as in struct pic_alloc_row */
	uint16_t cap;	/* NO_CAP: not known */
};

struct pic_allocator {
	uint32_t frame;
	uint64_t self_bytes, total_bytes;
	uint64_t self_samples, total_samples;
};

/* What a module's functions have allocated themselves. */
struct pic_alloc_module {
	const char *module, *package; /* "": code without a module */
	uint64_t bytes, samples;
};

/* Why a collection took place. */
enum pic_gc_reason {
	GC_REASON_UNKNOWN,
	GC_REASON_NURSERY, /* a capability's nursery was used up */
	GC_REASON_LARGE,   /* large objects had reached their limit */
	GC_REASON_FORCED,  /* the program requested it */
	GC_REASON_IDLE,	   /* nothing was left to run */
	GC_REASON_OTHER,   /* a heap profile's timer */
	GC_REASONS,
};

/*
 * What Haskell threads allocated, as counted by the runtime, from the end of one collection to the
 * end of a later one. A sample is taken of a thread that has used up its capability's nursery or
 * allocated large objects.
 */
struct pic_alloc {
	bool known;
	uint64_t from_ns, to_ns; /* what was allocated before and after is not known */
	/* How long the probes on collections were on, if they were taken off during the session;
	 * nothing is known of allocation or the heap after that. 0: they were not taken off. */
	uint64_t observed_ns;
	uint64_t bytes;
	/* Bytes in large objects, out of `large_of_bytes`. For the rest of `bytes` it is not known,
	 * as the probes that show it were taken off. */
	uint64_t large_bytes, large_of_bytes;
	uint64_t collections, reasons[GC_REASONS];
	/* Samples and the bytes they account for. In each window, sampled_bytes + unsampled_bytes
	 * is `bytes`. */
	uint64_t samples, sampled_bytes;
	/*
	 * The part of `sampled_bytes` from capabilities that another one stopped, each sampled at
	 * its next heap check: the place is where the thread was then, near the code that
	 * allocated.
	 */
	uint64_t stopped_bytes;
	/*
	 * The part of `samples` and of `sampled_bytes` that comes from the sampler's ticks, which
	 * are used where collections are rare: a tick accounts for everything its capability has
	 * allocated since its last sample, and is biased towards functions that take long over it.
	 */
	uint64_t tick_samples, tick_bytes;
	uint64_t whole_stacks;		  /* samples with a whole stack */
	uint64_t unsampled_bytes;	  /* in rows, but with no sample up to the window's end */
	bool caps_left_out;		  /* there are more capabilities than can be read */
	const struct pic_alloc_row *rows; /* by bytes, descending */
	size_t n_rows;
	/* The same bytes, divided by time, in order of to_ns. */
	const struct pic_alloc_span *spans;
	size_t n_spans;
	uint64_t span_grain_ns; /* how far apart samples in one span can be; 0: none were merged */
	uint64_t no_span_bytes; /* in rows but in no span: there were too many spans */
	const struct pic_allocator *allocators; /* functions, descending by self_bytes */
	size_t n_allocators;
	const struct pic_alloc_module *modules; /* by bytes, descending */
	size_t n_modules;
};

/* Bytes a second from from_ns to to_ns, at most 10^18; 0 if that is no time. */
uint64_t pic_alloc__rate(const struct pic_alloc *alloc);

/* ── the heap ────────────────────────────────────────────────────────────────────────────── */

/* The number of generations that are read. */
#define PIC_HEAP_GENS 4
/* Haskell threads are counted up to this many; a count that reaches it means "this many or
 * more". */
#define PIC_HEAP_THREADS 4096

/* One generation. The array has the youngest first. */
struct pic_heap_gen {
	uint64_t live_bytes;	/* small and large objects */
	uint64_t large_bytes;	/* of these */
	uint64_t block_bytes;	/* the blocks that hold them, and those of compact regions */
	uint64_t compact_bytes; /* of these */
};

/* The heap at a collection's end. Objects that died since their generation was last collected count
 * as live. */
struct pic_heap_point {
	uint64_t ns, live_bytes;
	uint64_t allocated_bytes;     /* since pic_alloc.from_ns */
	uint64_t gens[PIC_HEAP_GENS]; /* live bytes of each generation */
	uint64_t held_bytes;	      /* as in struct pic_heap */
	bool major;
};

struct pic_heap {
	bool known;
	uint64_t majors;		    /* collections of all generations */
	uint64_t major_reasons[GC_REASONS]; /* of these */
	/* after the last major collection, or the last one if none was major */
	struct pic_heap_point last;
	/* the most live bytes after any collection, including what has died since the last major
	 * one; and after any major one */
	uint64_t most_live_bytes, most_major_bytes;
	/* at the last collection's end */
	struct pic_heap_gen gens[PIC_HEAP_GENS];
	uint32_t n_gens;	/* 0: not known */
	uint64_t slop_bytes;	/* in blocks of all generations, but not live */
	uint64_t nursery_bytes; /* of all capabilities together; 0: not known */
	/* Memory held from the system, in megablocks, as of the end of the last collection but one,
	 * and the most at the end of any; 0: not known. */
	uint64_t held_bytes, most_held_bytes;
	/* Haskell threads after the last major collection, and the most after any major one; 0: not
	 * known */
	uint32_t haskell_threads, most_haskell_threads;
	uint64_t copied_bytes;
	/* collections of the youngest generation alone: bytes allocated before them, and bytes
	 * copied */
	uint64_t minor_bytes, minor_copied_bytes;
	/* The growth per minute of what is live after major collections, and half the width of its
	 * 95 % confidence interval. Only if growth_known. */
	bool growth_known;
	/* The growth continues at the end: the later half of the collections alone shows growth
	 * beyond its error, and the amount after the last one is close to the maximum. */
	bool growth_goes_on;
	/* The session covers the program from its start to an end of its own accord: the growth may
	 * be all that it had to do. */
	bool whole_run;
	double growth, growth_error;
	uint64_t growth_span_ns; /* from the first of these major collections to the last */
	/* major collections that freed less than MAJOR_FREED_LITTLE_PERCENT of the live bytes */
	uint64_t futile_majors;
	const struct pic_heap_point *points; /* in time order; not all of them if there are many */
	size_t n_points;
};

#define MAJOR_FREED_LITTLE_PERCENT 3

/* ── what it is made of ──────────────────────────────────────────────────────────────────── */

enum pic_closure_kind {
	PC_CONSTRUCTOR,
	PC_FUNCTION, /* functions and partial applications */
	PC_THUNK,
	PC_ARRAY,
	PC_THREAD, /* Haskell threads and their stacks */
	PC_OTHER,
	PC_KINDS,
};

/* Closures of one constructor, of one piece of code, or of one of the runtime's types. */
struct pic_closure {
	const char *name;    /* as in struct pic_frame: "Data.Map.Internal.Bin", "ARR_WORDS" */
	const char *module;  /* "" if none */
	const char *package; /* "": the main package, or none */
	enum pic_closure_kind kind;
	uint64_t count, bytes;
	uint64_t first_bytes; /* in the picture's first census */
};

/* The last census. Data read while the program ran may be inconsistent. */
struct pic_census {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: there was none */
	uint64_t first_ns;
	uint64_t blocks_bytes;	/* in blocks, except large objects and compact regions */
	uint64_t walked_bytes;	/* the part of these that was walked, and stands for all of them */
	uint64_t counted_bytes; /* the part of walked_bytes in closures */
	uint64_t gap_bytes;	/* the part left over by updated closures */
	uint64_t unknown_bytes; /* the part that could not be interpreted */
	uint64_t large_bytes;	/* large objects; counted among the closures */
	uint64_t pinned_bytes;	/* the part of large_bytes in objects that must not be moved */
	uint64_t compact_bytes; /* compact regions; not counted among the closures */
	uint64_t mutable_bytes; /* mutable lists: one word for each old object that may point to a
				   younger one */
	uint64_t live_bytes;	/* at the end of the collection */
	uint64_t others_count, others_bytes;
	bool cut;	    /* not all blocks were found */
	uint64_t frozen_ns; /* how long the process was stopped for it; 0: it was not stopped */
	bool frozen_whole;  /* it stayed stopped until everything had been read */
	const struct pic_closure *v; /* by bytes, descending */
	size_t n;
};

#endif

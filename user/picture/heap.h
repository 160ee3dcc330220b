/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heap: what of a process's picture is about its memory: who allocates, and how its heap grows. */
#ifndef SAFESCOPED_PICTURE_HEAP_H
#define SAFESCOPED_PICTURE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ── allocation ──────────────────────────────────────────────────────────────────────────── */

/* What a stack has allocated. */
struct pic_alloc_row {
	uint64_t bytes, samples;
	uint32_t stack;
};

/*
 * When, and where, a part of that was allocated: between two samples of the same capability, or
 * several that were near to each other (picture/spans.h).
 */
struct pic_alloc_span {
	uint64_t from_ns, to_ns; /* CLOCK_MONOTONIC; nothing is known of when within that */
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

/* What its functions have allocated themselves. */
struct pic_alloc_module {
	const char *module, *package; /* "": code of no module */
	uint64_t bytes, samples;
};

/* Why a collection came. */
enum pic_gc_reason {
	GC_REASON_UNKNOWN,
	GC_REASON_NURSERY, /* a capability's nursery was used up */
	GC_REASON_LARGE,   /* large objects had reached their limit */
	GC_REASON_FORCED,  /* the program called for it */
	GC_REASON_IDLE,	   /* nothing was left to run */
	GC_REASON_OTHER,   /* a heap profile's timer */
	GC_REASONS,
};

/*
 * What Haskell threads allocated, as the runtime counts it, from one collection's end to a later
 * one's. A sample is a thread that had used up its capability's nursery, or made large objects.
 */
struct pic_alloc {
	bool known;
	uint64_t from_ns, to_ns; /* what comes before and after is not known */
	/* How long the probes on collections were on, if they came off meanwhile: neither of this
	 * nor of the heap anything is known after that; 0: they did not. */
	uint64_t observed_ns;
	uint64_t bytes;
	/* In large objects, of `large_of_bytes`: of the rest of `bytes` that is not known, as the
	 * probes were taken off that would have shown it. */
	uint64_t large_bytes, large_of_bytes;
	uint64_t collections, reasons[GC_REASONS];
	/* Samples, and what they add up to: `bytes`, with `unsampled_bytes`, in each window. */
	uint64_t samples, sampled_bytes;
	/* Of `sampled_bytes`: by samples of capabilities that others stopped, each at its next heap
	 * check: that is where it was, and near what had allocated. */
	uint64_t stopped_bytes;
	/* Of both, by the sampler's ticks, which take part where collections are rare: a tick
	 * stands for what its capability has allocated since the last one, and prefers functions
	 * that take long over it. */
	uint64_t tick_samples, tick_bytes;
	uint64_t whole_stacks;		  /* of the samples */
	uint64_t unsampled_bytes;	  /* in rows, but of no sample up to the window's end */
	bool caps_left_out;		  /* there are more capabilities than are read */
	const struct pic_alloc_row *rows; /* by bytes, descending */
	size_t n_rows;
	/* The same, divided by time, in the order of to_ns. */
	const struct pic_alloc_span *spans;
	size_t n_spans;
	uint64_t span_grain_ns; /* 0, or how far samples can be apart that are in one span */
	uint64_t no_span_bytes; /* in rows, but in no span: there would have been too many */
	const struct pic_allocator *allocators; /* functions, by bytes of their own, descending */
	size_t n_allocators;
	const struct pic_alloc_module *modules; /* by bytes, descending */
	size_t n_modules;
};

/* ── the heap ────────────────────────────────────────────────────────────────────────────── */

/* Generations that are read. */
#define PIC_HEAP_GENS 4
/* Haskell threads that are counted: as many, or more. */
#define PIC_HEAP_THREADS 4096

/* Of one generation; youngest first. */
struct pic_heap_gen {
	uint64_t live_bytes;	/* small objects and large ones */
	uint64_t large_bytes;	/* of these */
	uint64_t block_bytes;	/* the blocks that they are in, and compact regions' */
	uint64_t compact_bytes; /* of these */
};

/* At a collection's end. What died since an older generation was collected last counts as live. */
struct pic_heap_point {
	uint64_t ns, live_bytes;
	uint64_t allocated_bytes;     /* by then, since pic_alloc.from_ns */
	uint64_t gens[PIC_HEAP_GENS]; /* live bytes of each */
	uint64_t held_bytes;	      /* as in struct pic_heap */
	bool major;
};

struct pic_heap {
	bool known;
	uint64_t majors;		    /* collections of all generations */
	uint64_t major_reasons[GC_REASONS]; /* of these */
	/* after the last of them, or the last collection if there was none */
	struct pic_heap_point last;
	/* the most after any collection, what has died since the last major one among it; and after
	 * any major one */
	uint64_t most_live_bytes, most_major_bytes;
	/* at the last collection's end */
	struct pic_heap_gen gens[PIC_HEAP_GENS];
	uint32_t n_gens;	/* 0: not known */
	uint64_t slop_bytes;	/* in blocks of all generations, and not live */
	uint64_t nursery_bytes; /* of all capabilities together; 0: not known */
	/* Held from the system, in megablocks, at the end of the collection before the last one,
	 * and the most at any's; 0: not known. */
	uint64_t held_bytes, most_held_bytes;
	/* Haskell threads after the last major collection, and the most after any; 0: not known */
	uint32_t haskell_threads, most_haskell_threads;
	uint64_t copied_bytes;
	/* collections of the youngest generation alone: what was allocated for them, and copied */
	uint64_t minor_bytes, minor_copied_bytes;
	/* What is live after major collections, each minute more, and half the width of the
	 * interval that has it in 19 of 20 cases. Only if growth_known. */
	bool growth_known;
	/* In the end, too: their later half alone grows beyond its error, and after the last one
	 * hardly less is live than after any. */
	bool growth_goes_on;
	/* It is the heap of a program from its start to its end, which it came to by itself: that
	 * it grew may be all that it had to do. */
	bool whole_run;
	double growth, growth_error;
	uint64_t growth_span_ns; /* from the first of these collections to the last one */
	/* major collections that freed less than MAJOR_FREED_LITTLE_PERCENT of what was live */
	uint64_t futile_majors;
	const struct pic_heap_point *points; /* in time order; not all, if there are many */
	size_t n_points;
};

#define MAJOR_FREED_LITTLE_PERCENT 3

/* ── what it is made of ──────────────────────────────────────────────────────────────────── */

enum pic_closure_kind {
	PC_CONSTRUCTOR,
	PC_FUNCTION, /* functions, and applications of them to some of their arguments */
	PC_THUNK,
	PC_ARRAY,
	PC_THREAD, /* Haskell threads and their stacks */
	PC_OTHER,
	PC_KINDS,
};

/* Closures of one constructor, of one piece of code, or of one type of the runtime's. */
struct pic_closure {
	const char *name;    /* as struct pic_frame has it; "Data.Map.Internal.Bin", "ARR_WORDS" */
	const char *module;  /* "" if none */
	const char *package; /* "": the main package, or none */
	enum pic_closure_kind kind;
	uint64_t count, bytes;
	uint64_t first_bytes; /* at the picture's first census */
};

/* The last one. What was read while the program ran on may contradict itself. */
struct pic_census {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: there was none */
	uint64_t first_ns;
	uint64_t blocks_bytes;	/* in blocks, but for large objects and compact regions */
	uint64_t walked_bytes;	/* of these were looked at, and stand for all */
	uint64_t counted_bytes; /* of these are closures */
	uint64_t gap_bytes;	/* and what an updated closure left */
	uint64_t unknown_bytes; /* and what no sense could be made of */
	uint64_t large_bytes;	/* large objects; they are among the closures */
	uint64_t pinned_bytes;	/* of these, objects that may not be moved */
	uint64_t compact_bytes; /* compact regions; they are not */
	uint64_t mutable_bytes; /* mutable lists: a word for each old object that may point to a
				   younger one */
	uint64_t live_bytes;	/* when the collection ended */
	uint64_t others_count, others_bytes;
	bool cut;		     /* not all blocks were found */
	uint64_t frozen_ns;	     /* the process was stopped for it; 0: it was not */
	bool frozen_whole;	     /* until all had been read */
	const struct pic_closure *v; /* by bytes, descending */
	size_t n;
};

#endif

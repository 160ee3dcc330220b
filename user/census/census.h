/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * census: what a program's heap consists of, in the categories of `+RTS -hT`, read from outside
 * while the program runs on. The blocks of the generations are walked closure by closure. An
 * updated thunk is smaller than it was, and nothing marks where the next closure begins: words that
 * do not look like the beginning of a closure are skipped, and counted.
 *
 * All input is the program's memory, which is untrusted: this runs in a process without rights, and
 * every number is checked.
 */
#ifndef SAFESCOPED_CENSUS_H
#define SAFESCOPED_CENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* rts/include/rts/storage/ClosureTypes.h: the same numbers from 8.10 to 9.14. */
enum closure_type {
	CLOSURE_CONSTR = 1,
	CLOSURE_CONSTR_NOCAF = 7,
	CLOSURE_FUN = 8,
	CLOSURE_FUN_0_2 = 13,
	CLOSURE_THUNK = 15,
	CLOSURE_THUNK_0_2 = 20,
	CLOSURE_THUNK_SELECTOR = 22,
	CLOSURE_BCO = 23,
	CLOSURE_AP = 24,
	CLOSURE_PAP = 25,
	CLOSURE_AP_STACK = 26,
	CLOSURE_IND = 27,
	CLOSURE_BLOCKING_QUEUE = 37,
	CLOSURE_BLACKHOLE = 38,
	CLOSURE_MVAR_CLEAN = 39,
	CLOSURE_TVAR = 41,
	CLOSURE_ARR_WORDS = 42,
	CLOSURE_MUT_ARR_PTRS_CLEAN = 43,
	CLOSURE_MUT_ARR_PTRS_FROZEN_CLEAN = 46,
	CLOSURE_MUT_VAR_CLEAN = 47,
	CLOSURE_MUT_VAR_DIRTY = 48,
	CLOSURE_WEAK = 49,
	CLOSURE_PRIM = 50,
	CLOSURE_MUT_PRIM = 51,
	CLOSURE_TSO = 52,
	CLOSURE_STACK = 53,
	CLOSURE_TREC_CHUNK = 54,
	CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN = 59,
	CLOSURE_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN = 62,
	CLOSURE_COMPACT_NFDATA = 63,
	CLOSURE_CONTINUATION = 64, /* since 9.6 */
	CLOSURE_TYPES = 65,
};

/* The most generations that are walked; only `+RTS -G` creates more. */
#define CENSUS_MAX_GENERATIONS 8
/* The most info tables with an entry of their own; closures of all others are counted together. */
#define CENSUS_MAX_ENTRIES 16384
#define CENSUS_MAX_RANGES  64

struct census_range {
	uint64_t start, end;
};

/* What must be known about the program beforehand. */
struct census_opts {
	/* Reads len bytes at addr; returns 0 or a negative errno. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
	uint64_t generations[CENSUS_MAX_GENERATIONS]; /* addresses of the generation structs */
	uint32_t n_generations;
	/* addresses of each capability's `mut_lists`; the array must outlive the walk */
	const uint64_t *mut_lists;
	uint32_t n_mut_lists;
	struct census_range code[CENSUS_MAX_RANGES]; /* info tables' code; ascending */
	uint32_t n_code;
	bool profiled;	     /* closures' headers are two words longer */
	uint16_t stack_size; /* offsets in a STACK: of stack_size, and of the stack itself */
	uint16_t stack_stack;
	uint64_t most_bytes; /* limit for blocks; of more, a sample stands for all */
};

struct census_entry {
	uint64_t info; /* the info pointer; 0: all closures without an entry of their own */
	uint64_t count, bytes;
	uint8_t type; /* enum closure_type */
};

struct census {
	uint64_t blocks_bytes;	/* size of the generations' blocks, as far as they are filled */
	uint64_t walked_bytes;	/* bytes of these blocks that were walked */
	uint64_t counted_bytes; /* bytes of these that are closures */
	uint64_t gap_bytes;	/* bytes between an updated closure and the next one */
	uint64_t unknown_bytes; /* other bytes that could not be interpreted */
	uint64_t large_bytes;	/* in large objects, which are among the entries */
	uint64_t pinned_bytes;	/* in those of them that must not be moved */
	uint64_t compact_bytes; /* in compact regions, which are not walked */
	uint64_t mutable_bytes; /* in the mutable lists: a word for each old object that may point
				   to a younger one */
	bool cut;		/* not all blocks could be listed */
	uint32_t n;
	struct census_entry entries[CENSUS_MAX_ENTRIES]; /* descending by bytes */
};

/*
 * Walks the generations. Blocks that cannot be read count as unknown. -EFAULT: not even the
 * generations can be read; -ENOMEM.
 */
int census__walk(const struct census_opts *opts, struct census *ret_census);

#endif

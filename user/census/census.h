/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * census: what a program's heap is made of, as `+RTS -hT` counts it, read from outside while the
 * program runs on. Blocks of the generations are walked closure by closure. An updated thunk is
 * smaller than it was, and nothing marks where the next closure begins: words that do not look like
 * the beginning of one are passed over, and counted.
 *
 * All that is read is the program's own, which may be anybody's: this runs in a process without
 * rights, and every number is checked.
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

/* Generations that are walked; more are not created but by `+RTS -G`. */
#define CENSUS_MAX_GENERATIONS 8
/* Info tables with an entry of their own; closures of all others are counted together. */
#define CENSUS_MAX_ENTRIES 16384
#define CENSUS_MAX_RANGES  64

struct census_range {
	uint64_t start, end;
};

/* What is known of the program beforehand. */
struct census_opts {
	/* Reads len bytes at addr; a negative errno. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
	uint64_t generations[CENSUS_MAX_GENERATIONS]; /* addresses of the structs */
	uint32_t n_generations;
	/* addresses of each capability's `mut_lists`; they must outlive the walk */
	const uint64_t *mut_lists;
	uint32_t n_mut_lists;
	struct census_range code[CENSUS_MAX_RANGES]; /* where info tables' code lies, by address */
	uint32_t n_code;
	bool profiled;	     /* closures' headers are two words longer */
	uint16_t stack_size; /* offsets in a STACK: of stack_size, and of the stack */
	uint16_t stack_stack;
	uint64_t most_bytes; /* of blocks; if there are more, some are taken for all of them */
};

struct census_entry {
	uint64_t info; /* the info pointer; 0: of all that have no entry of their own */
	uint64_t count, bytes;
	uint8_t type; /* enum closure_type */
};

struct census {
	uint64_t blocks_bytes;	/* of the generations' blocks up to where they are filled */
	uint64_t walked_bytes;	/* of these were walked */
	uint64_t counted_bytes; /* of these are closures */
	uint64_t gap_bytes;	/* between an updated closure and the next one */
	uint64_t unknown_bytes; /* and that no sense could be made of, otherwise */
	uint64_t large_bytes;	/* of large objects, which are among the entries */
	uint64_t pinned_bytes;	/* of these, of objects that may not be moved */
	uint64_t compact_bytes; /* in compact regions, which are not looked into */
	uint64_t mutable_bytes; /* of the mutable lists: a word for each old object that may point
				   to a younger one */
	bool cut;		/* there were more blocks than there is room for */
	uint32_t n;
	struct census_entry entries[CENSUS_MAX_ENTRIES]; /* most bytes first */
};

/*
 * Walks the generations. What a block could not be read of is unknown. -EFAULT: not even the
 * generations can be read; -ENOMEM.
 */
int census__walk(const struct census_opts *opts, struct census *ret_census);

#endif

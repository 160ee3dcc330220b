/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the GHC runtime among a process's files: which file, version and way, and where its
 * functions and variables lie. Each strategy is a file of its own and fills in what those before
 * it left open; nothing here looks at the live process (check.c does). Private to the target room.
 */
#ifndef SAFESCOPED_RTS_FIND_H
#define SAFESCOPED_RTS_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "callsites.h"
#include "process/image.h"
#include "target/target.h"

#define RTS_NAME_LEN 32

/* An address in the process; 0: not found. */
struct rts_place {
	uint64_t addr;
	enum target_found found;
};

struct rts {
	struct image *image;	    /* the file that holds the runtime */
	char version[RTS_NAME_LEN]; /* "9.0.2"; "" if nothing tells it */
	char way[RTS_NAME_LEN];	    /* "rts_thr_p"; "" if nothing tells it */
	bool threaded, profiled, debug;
	bool dynamic; /* a shared library */
	struct rts_place suspend, resume, tick, gc_sync, gc_start, gc_end, stgrun;
	struct rts_place prof_tick; /* what `tick` calls first */
	struct rts_place capabilities, n_capabilities, main_cap, all_tasks;
	struct rts_place stats;	    /* rts/Stats.c: RTSStats, whose first word counts collections */
	uint64_t stgrun_ret;	    /* the return address of StgRun's one call */
	uint32_t gct_clock;	    /* where a gc_thread has gc_sync_start_elapsed, and behind it
				       gc_start_elapsed (rts/sm/GCThread.h); 0: not known */
	bool tls_known;		    /* my_task_tls is what the file says */
	int64_t my_task_tls;	    /* my_task relative to a thread's fs base */
	struct callsites callsites; /* n 0, votes 0: not looked for, symbols said it */
};

/* -ENOEXEC: none of the files holds a runtime. */
int rts__find(pid_t pid, const struct images *images, struct rts *ret_rts);
void rts__free(struct rts *rts);

/* ── strategies and parts ────────────────────────────────────────────────────────────────── */

/* Version and way from the strings that `strip` leaves; false if the file has none. */
bool rts_strings__read(struct elf_file *elf, const char *base, struct rts *rts);
/* A cheap look: whether the file holds the string that every runtime has. */
bool rts_strings__maybe(const struct elf_file *elf);
/* "rts_thr_p" → threaded, profiled, debug. */
void rts_strings__set_way(struct rts *rts, const char *way);

/* By .symtab, a debug file and .dynsym. */
void rts_symbols__find(struct rts *rts);

/* Forgets places that symbols gave and whose code is another function's. */
void rts_shape__check(struct rts *rts);

/* suspendThread and resumeThread by the safe calls in Haskell code. */
void rts_callsites__find(struct rts *rts);

/*
 * The vaddr of the only string whose last `size` bytes, its NUL among them, are `tail`; 0: there is
 * none, or more than one.
 */
uint64_t rts_strings__ending_in(const struct elf_file *elf, const char *tail, size_t size);

/* The ends of a collection where they have no symbols. */
void rts_gc__find(struct rts *rts);
/* gct_clock, by the code of the functions that note the clock. */
void rts_gc__clock(struct rts *rts);

/* StgRun by its code where it has no symbol, and the return address of its call. */
void rts_stgrun__find(struct rts *rts);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rts: the GHC runtime of a process. This header finds it among the process's files: which file,
 * version and way, and where its functions and variables are. check.h compares that with the live
 * process; layout.h has the offsets into its structs, callsites.h the safe calls in its code,
 * rts_text.h which code belongs to it, insn.h the instructions, ghc_version.h the releases.
 */
#ifndef SAFESCOPED_RTS_H
#define SAFESCOPED_RTS_H

#include <stdbool.h>
#include <stdint.h>

#include "callsites.h"
#include "found.h"
#include "insn.h"
#include "process/image.h"

#define RTS_NAME_LEN 32

/* An address in the process; 0: not found. */
struct rts_place {
	uint64_t addr;
	enum rts_found found;
};

/* The functions that are probed. */
enum rts_probed {
	RTS_SUSPEND,
	RTS_RESUME,
	RTS_TICK,
	RTS_GC_SYNC,
	RTS_GC_START,
	RTS_GC_END,
	RTS_PROBED, /* their number */
};

/* Where to probe one of them. Not known: no function is known to begin at its address. */
struct rts_probe {
	bool known;
	struct insn_choice choice;
};

struct rts {
	struct image *image;	    /* the file that holds the runtime */
	char version[RTS_NAME_LEN]; /* "9.0.2"; "" if unknown */
	char way[RTS_NAME_LEN];	    /* "rts_thr_p"; "" if unknown */
	bool threaded, profiled, debug;
	bool dynamic; /* it is a shared library */
	struct rts_place suspend, resume, tick, gc_sync, gc_start, gc_end, stgrun;
	struct rts_place prof_tick; /* the first function that `tick` calls */
	struct rts_place capabilities, n_capabilities, main_cap, all_tasks;
	struct rts_place config; /* rts/RtsFlags.c: rtsConfig, a RtsConfig (rts/include/RtsAPI.h) */
	struct rts_place stats;	 /* rts/Stats.c: RTSStats, whose first word counts collections */
	uint64_t stgrun_ret;	 /* the return address of the only call of StgRun */
	uint64_t stgreturn;	 /* StgReturn, a label in StgRun's code; 0: unknown */
	uint32_t gct_clock;	 /* offset of gc_sync_start_elapsed in a gc_thread, which
				    gc_start_elapsed follows (rts/sm/GCThread.h); 0: unknown */
	bool tls_known;		 /* my_task_tls was found in the file */
	int64_t my_task_tls;	 /* my_task relative to a thread's fs base */
	struct rts_probe probes[RTS_PROBED];
	struct callsites callsites; /* n 0, votes 0: not scanned, the symbols are enough */
};

/* -ENOEXEC: none of the files holds a runtime. An error for which retry__shows_nothing() is
 * true: why one of the files could not be examined, if no other one holds a runtime. */
int rts__find(pid_t pid, const struct images *images, struct rts *ret_rts);
void rts__free(struct rts *rts);

/* The place of the function, whether it was found or not. */
const struct rts_place *rts__probed(const struct rts *rts, enum rts_probed which);
/*
 * All code of the function that begins at vaddr; *ret_offset: where it is in the file. NULL: no
 * function is known to begin there. Only C functions of the runtime are probed, and their unwind
 * rows begin at their first instruction.
 */
const uint8_t *rts__function_code(struct elf_file *elf, uint64_t vaddr, size_t *ret_len,
				  uint64_t *ret_offset);

/*
 * A cheap test: 1 if the file has the string that every runtime has, else 0. A large file is read
 * in a confined child, with elf__aside()'s errors.
 */
int rts__maybe_in(const struct elf_file *elf);

/* Validates a child's result: enumerations, strings and bools have valid values, sites ascend. */
bool rts__check_read(const struct rts *rts, const struct callsite *sites);

#endif

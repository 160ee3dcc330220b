/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The strategies that find the parts of a runtime in its file. Each has a file of its own and fills
 * in what earlier ones left open; none looks at the live process (check.c does). For the files of
 * this room only.
 */
#ifndef SAFESCOPED_RTS_FIND_PRIV_H
#define SAFESCOPED_RTS_FIND_PRIV_H

#include "rts.h"

/* Version and way, from strings that `strip` leaves; false if the file does not hold a runtime. */
bool rts_strings__read(struct elf_file *elf, const char *base, struct rts *rts);
/* "rts_thr_p" → threaded, profiled, debug. */
void rts_strings__set_way(struct rts *rts, const char *way);

/* By .symtab, a debug file and .dynsym. */
void rts_symbols__find(struct rts *rts);

/* Forgets places given by symbols if the code there is another function's. */
void rts_shape__check(struct rts *rts);

/* suspendThread and resumeThread, by the safe calls in Haskell code. */
void rts_callsites__find(struct rts *rts);

/*
 * The vaddr of the only string that ends in `tail`, which is `size` bytes long with its NUL; 0:
 * there is none, or more than one.
 */
uint64_t rts_strings__ending_in(const struct elf_file *elf, const char *tail, size_t size);

/* The functions at the start and end of a collection, if they have no symbols. */
void rts_gc__find(struct rts *rts);
/* gct_clock, by the code of the functions that store the time. */
void rts_gc__clock(struct rts *rts);

/* The runtime's statistics, by the code that counts collections. */
void rts_gc__stats(struct rts *rts);

/* The function that the timer calls, where neither symbols nor a thread of its own show it. */
void rts_tick__find(struct rts *rts);

/* StgRun, by its code if it has no symbol, and the return address of its call. */
void rts_stgrun__find(struct rts *rts);

/* Where to probe the places found. The last step, when no place changes any more. */
void rts_probed__choose(struct rts *rts);
/* Validates the choices that a child made. */
bool rts_probed__check(const struct rts *rts);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suspendThread and resumeThread in a file without symbols: every safe foreign call in Haskell
 * code calls both, in one shape that nothing else has, so the code itself shows by majority which
 * functions they are, what each site calls, and where the runtime's structs keep the thread's
 * stack.
 */
#ifndef SAFESCOPED_RTS_CALLSITES_H
#define SAFESCOPED_RTS_CALLSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf.h"

#define CALLSITES_MAX (1U << 20)
/* A runtime's own library base brings more than these into every program. */
#define CALLSITES_MIN_VOTES 3

struct callsite {
	uint64_t site;	  /* the return address of the suspendThread call, as in the file */
	uint64_t foreign; /* the function called, or the slot that points at it; 0: by register */
	uint64_t suspend, resume;
	uint16_t current_tso, stackobj, sp;
	bool interruptible, by_slot;
};

/* Offsets that the reload after a call shows. */
struct callsites_offsets {
	uint32_t current_tso; /* from BaseReg */
	uint32_t stackobj, sp;
};

struct callsites {
	uint64_t suspend, resume;  /* as in the file; 0: no clear majority */
	uint32_t votes, runner_up; /* sites that agree on them; those of the second best pair */
	struct callsites_offsets offsets; /* of the greater part of these sites */
	uint32_t offset_votes;
	struct callsite *sites; /* those that agree, ascending by site */
	size_t n;
};

/*
 * Scans the file's code once. -ENOENT: no safe call in it; -ENOMEM. Without a clear majority
 * suspend and resume are 0, votes and runner_up show why. The caller frees in any case but -ENOMEM.
 */
int callsites__scan(struct elf_file *elf, struct callsites *ret_sites);
void callsites__free(struct callsites *sites);

/* True if so many votes against so many leave no doubt. */
bool callsites__clear(uint32_t votes, uint32_t runner_up);

/* The site of that return address; NULL. */
const struct callsite *callsites__at(const struct callsites *sites, uint64_t site);

#endif

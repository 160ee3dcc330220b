/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * suspendThread and resumeThread in a file without symbols. Every safe foreign call in Haskell code
 * calls both, in a pattern that nothing else has, so the code itself shows by majority which
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
/* The runtime's own base library alone brings more sites than this into every program. */
#define CALLSITES_MIN_VOTES 3

struct callsite {
	uint64_t site;	  /* return address of the suspendThread call, as in the file */
	uint64_t foreign; /* the function called, or the slot that points to it; 0: through a
			     register */
	uint64_t suspend, resume;
	uint16_t current_tso, stackobj, sp;
	bool interruptible, by_slot;
};

/* Offsets that the reload of Sp after a call reveals. */
struct callsites_offsets {
	uint32_t current_tso; /* relative to BaseReg */
	uint32_t stackobj, sp;
};

struct callsites {
	uint64_t suspend, resume;  /* as in the file; 0: no clear majority */
	uint32_t votes, runner_up; /* sites that agree on them; votes of the second best pair */
	struct callsites_offsets offsets; /* of the largest group of these sites */
	uint32_t offset_votes;
	struct callsite *sites; /* the sites that agree, ascending by site */
	size_t n;
};

/*
 * Scans the file's code once. -ENOENT: there is no safe call in it; -ENOMEM. Without a clear
 * majority suspend and resume are 0, and votes and runner_up show why. On success the caller frees
 * the result.
 */
int callsites__scan(struct elf_file *elf, struct callsites *ret_sites);
void callsites__free(struct callsites *sites);

/* True if this many votes against the runner-up's leave no doubt. */
bool callsites__clear(uint32_t votes, uint32_t runner_up);

/* The site with that return address, or NULL. */
const struct callsite *callsites__at(const struct callsites *sites, uint64_t site);

#endif

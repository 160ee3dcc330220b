/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the sections of archives occur in a program's code.
 *
 * Each section has an anchor: eight consecutive bytes that the linker does not change, and that few
 * other sections have. The code is read once; where an anchor is found, all other fixed bytes of
 * its section are compared. A match is only a candidate, which place_priv.h judges.
 *
 * For the files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_MATCH_PRIV_H
#define SAFESCOPED_ARCHIVES_MATCH_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "sections_priv.h"

/* A range of code without symbols, as in the file. */
struct code_range {
	const uint8_t *bytes;
	uint64_t start, len;
};

struct code {
	struct code_range *ranges; /* ascending, non-overlapping */
	size_t n;
};

/* The bytes from vaddr on if all `len` of them are code; else NULL. */
const uint8_t *code__at(const struct code *code, uint64_t vaddr, uint64_t len);

/* Sections with fewer fixed bytes are not searched for. */
#define MATCH_MIN_FIXED 16
#define MATCH_MAX	(4U << 20)

struct match {
	uint64_t start;
	uint32_t section;
};

struct matches {
	struct match *v; /* by start, then section */
	size_t n, cap;
};

/* -E2BIG: too many; -ENOMEM. */
int matches__find(const struct sections *all, const struct code *code, struct matches *ret_matches);
void matches__free(struct matches *matches);

#endif

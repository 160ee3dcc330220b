/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbols of code sections, by section and by name. For the files of this room only. */
#ifndef SAFESCOPED_ARCHIVES_DEFS_PRIV_H
#define SAFESCOPED_ARCHIVES_DEFS_PRIV_H

#include "sections_priv.h"

#define MAX_DEFS  (4U << 20)
#define DEFS_NONE UINT32_MAX

/* A symbol that a section defines. */
struct def {
	uint32_t section, symbol;
};

struct defs {
	const struct sections *all;
	struct def *v;	 /* by section, then in the order of the symbol table */
	uint32_t *first; /* index of each section's first symbol; one more entry for the end */
	uint32_t *next, *buckets;
	size_t n;
	unsigned bits;
};

/* -E2BIG, -ENOMEM. */
int defs__init(struct defs *defs, const struct sections *all);
void defs__free(struct defs *defs);

bool defs__symbol(const struct defs *defs, uint32_t def, struct member_symbol *ret_symbol);
/*
 * The first non-local symbol of that name, and the next one after `def`; DEFS_NONE: there is none.
 * `name` must be the same in both.
 */
uint32_t defs__find(const struct defs *defs, const char *name);
uint32_t defs__find_next(const struct defs *defs, uint32_t def, const char *name);

/*
 * True if it is weak and another section has a strong one of that name, which the linker prefers if
 * it is linked.
 */
bool defs__may_yield(const struct defs *defs, uint32_t def);

/* True if both sections have symbols of the same names at the same offsets. */
bool defs__agree(const struct defs *defs, uint32_t a, uint32_t b);
/* True if the section has a symbol of that name at that offset. */
bool defs__has(const struct defs *defs, uint32_t section, const char *name, uint64_t value);

#endif

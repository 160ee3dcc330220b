/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The symbols of sections of code, by section and by name. Shared by the files of this room only.
 */
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
	struct def *v;	 /* by section, then as in the symbol table */
	uint32_t *first; /* of each section, and after the last one */
	uint32_t *next, *buckets;
	size_t n;
	unsigned bits;
};

/* -E2BIG, -ENOMEM. */
int defs__init(struct defs *defs, const struct sections *all);
void defs__free(struct defs *defs);

bool defs__symbol(const struct defs *defs, uint32_t def, struct member_symbol *ret_symbol);
/*
 * The first symbol for others of that name, and the next one after it; DEFS_NONE: there is none.
 * `name` is the one that was asked for.
 */
uint32_t defs__find(const struct defs *defs, const char *name);
uint32_t defs__find_next(const struct defs *defs, uint32_t def, const char *name);

/*
 * Whether it is weak and another section has a strong one of that name, which the linker takes if
 * it is linked.
 */
bool defs__may_yield(const struct defs *defs, uint32_t def);

/* Whether both sections have symbols of the same names at the same places. */
bool defs__agree(const struct defs *defs, uint32_t a, uint32_t b);
/* Whether the section has a symbol of that name at that place. */
bool defs__has(const struct defs *defs, uint32_t section, const char *name, uint64_t value);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of this room only. */
#ifndef SAFESCOPED_CENSUS_PRIV_H
#define SAFESCOPED_CENSUS_PRIV_H

#include "census.h"

struct info_tables;

/* The info table at an info pointer. */
struct info_table {
	uint64_t info;
	uint32_t ptrs, nptrs;
	uint32_t entry; /* number of its entry in the census, from 1; 0: none yet */
	uint8_t type;	/* 0: not an info table, or not one of a closure on the heap */
};

int info_tables__new(const struct census_opts *opts, struct info_tables **ret_tables);
void info_tables__free(struct info_tables *tables);
/* The info table of a closure whose first word this is; NULL: not an info pointer. -ENOMEM. */
int info_tables__find(struct info_tables *tables, uint64_t word, struct info_table **ret_table);

/*
 * The size in words of the closure that begins with `words`, of which `n` are available; 0: it
 * cannot be a closure, or does not fit.
 */
uint64_t closure__words(const struct census_opts *opts, const struct info_table *table,
			const uint64_t *words, uint64_t n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The names of the runtime's own C functions in a file without symbols, by the strings that they
 * use and by who calls whom. For the files of this room only.
 */
#ifndef SAFESCOPED_RTS_NAMED_PRIV_H
#define SAFESCOPED_RTS_NAMED_PRIV_H

#include <stddef.h>
#include <stdint.h>

#include "rts.h"
#include "rts_graph_priv.h"

/* Names are numbers; 0: unknown. */
#define RTS_NAMED_NONE 0
/* The highest valid number. */
uint16_t rts_named__last(void);
/* NULL: not a valid number. */
const char *rts_named__text(uint16_t name);

/*
 * Fills in names[i] for each of the n functions (fdes, ascending; `graph` is theirs) that can be
 * named. Places of `rts` are as in the process. -ENOMEM, -E2BIG: too many strings are used in the
 * file.
 */
int rts_named__find(const struct rts *rts, const struct elf_fde *fdes, size_t n,
		    const struct rts_graph *graph, uint16_t *names);

#endif

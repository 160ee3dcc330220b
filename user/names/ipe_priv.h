/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Info-table provenance: what GHC's -finfo-table-map (9.2 and later) records for each info table:
 * the source binding, its module, file and span. It is stored in variables of every module compiled
 * with that flag, as buffers that a constructor registers with the runtime (rts/IPE.c,
 * registerInfoProvList).
 *
 * The buffers are found by their shape in the writable data of the process's files, not through the
 * runtime's list: that list is emptied as soon as the program itself asks for a provenance, and its
 * head is a static variable, which has no symbol in a stripped program. The process's memory is
 * read, not the file: in a position-independent program only memory has addresses.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_IPE_PRIV_H
#define SAFESCOPED_NAMES_IPE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/image.h"

#define IPE_MAX_ENTRIES (2U << 20)
#define IPE_MAX_STRINGS (192U << 20)
#define IPE_MAX_NODE	(1U << 20) /* entries of one module */

struct ipe;

/* One info table. Strings live as long as the table; none of them is NULL. */
struct ipe_entry {
	uint64_t info; /* address of its entry code, as stored in a frame's first word */
	const char
		*table; /* "$wgo_r3cX_info", "sat_s3hx_info"; of a return point "block_c3wH_info" */
	const char *label; /* the source binding: "main.go"; "" if it belongs to none */
	const char *module;
	const char *unit; /* "main", "text-2.1"; "" before 9.10 */
	const char *file; /* "src/Foo.hs"; "" if not known */
	const char *span; /* "7:25-39", "(6,1)-(7,47)" */
	bool is_return;	  /* a return point, not a closure */
};

/*
 * Reads the process's provenance in a child, which is killed after timeout_ms. -ENOENT: there is
 * none (GHC older than 9.2, or compiled without the flag); -ENOTSUP: the format of this version is
 * not known.
 */
int ipe__new(pid_t pid, const char *ghc_version, const struct images *images, int timeout_ms,
	     struct ipe **ret_ipe);
void ipe__free(struct ipe *ipe);
size_t ipe__count(const struct ipe *ipe);
/* True if there was more than is kept, and parts were left out. */
bool ipe__truncated(const struct ipe *ipe);

/*
 * Finds the info table whose code contains addr: the last one at or below addr, if the next one
 * belongs to the same module. `symbol`: start of the symbol known to cover addr; 0: none. It
 * decides for addresses that are not between two info tables of one module, and for other code
 * within a module. `closure`: the info table of the closure that contains the code; it differs from
 * the entry only for a return point. -ENOENT.
 */
int ipe__find(const struct ipe *ipe, uint64_t addr, uint64_t symbol, struct ipe_entry *ret_entry,
	      struct ipe_entry *ret_closure);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Info-table provenance: what GHC's -finfo-table-map (9.2 and later) says of each info table: the
 * source binding, its module, file and span. It lies in the variables of every module that was
 * compiled so, as buffers that a constructor hands to the runtime (rts/IPE.c,
 * registerInfoProvList).
 *
 * The buffers are found by their looks in the writable data of the process's files, and not
 * through the runtime's list: that is empty as soon as the program itself has asked for a
 * provenance, and its head is a static variable, which no stripped program names. The process's
 * memory is read, and not the file: in a position-independent program only memory has addresses.
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

/* One info table. Strings live as long as the table; none is NULL. */
struct ipe_entry {
	uint64_t info; /* of its entry code: what a frame's word holds */
	const char
		*table; /* "$wgo_r3cX_info", "sat_s3hx_info"; of a return point "block_c3wH_info" */
	const char *label; /* the source binding: "main.go"; "" if it is none's */
	const char *module;
	const char *unit; /* "main", "text-2.1"; "" before 9.10 */
	const char *file; /* "src/Foo.hs"; "" if not known */
	const char *span; /* "7:25-39", "(6,1)-(7,47)" */
	bool is_return;	  /* a return point, not a closure */
};

/*
 * Reads what the process has, in a child that is killed after timeout_ms. -ENOENT: there is none
 * (GHC older than 9.2, or not compiled so); -ENOTSUP: this version's form is not known.
 */
int ipe__new(pid_t pid, const char *ghc_version, const struct images *images, int timeout_ms,
	     struct ipe **ret_ipe);
void ipe__free(struct ipe *ipe);
size_t ipe__count(const struct ipe *ipe);
/* Parts were left out, because there was more than is kept. */
bool ipe__truncated(const struct ipe *ipe);

/*
 * The info table whose code addr lies in: the last one at or below addr, if the one after it is
 * of the same module too. `symbol`: where the symbol begins that is known to cover addr; 0: none.
 * It settles what is not between two info tables of a module, and what a module has besides.
 * `closure`: the info table of the closure that holds it, the same one unless it is a return
 * point. -ENOENT.
 */
int ipe__find(const struct ipe *ipe, uint64_t addr, uint64_t symbol, struct ipe_entry *ret_entry,
	      struct ipe_entry *ret_closure);

#endif

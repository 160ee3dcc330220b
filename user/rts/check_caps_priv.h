/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capabilities of a live process. Only inside of mem__guard(). Shared by the files of this room
 * only.
 */
#ifndef SAFESCOPED_RTS_CHECK_CAPS_PRIV_H
#define SAFESCOPED_RTS_CHECK_CAPS_PRIV_H

#include "check.h"

/*
 * Fills in caps, n_caps, capabilities, caps_array, caps_found, and `why` when the result is
 * CHECK_FAILED.
 */
enum check_verdict check__caps(pid_t pid, const struct rts *rts, const struct images *images,
			       const struct layout *layout, struct check_result *r);

/* ── parts ───────────────────────────────────────────────────────────────────────────────── */

/* True if cap looks like capability number no. */
bool check__is_cap(pid_t pid, const struct images *images, const struct layout *layout,
		   uint64_t cap, uint32_t no);
/* Reads the array of pointers; how many of its first entries are capabilities. */
uint32_t check__take_array(pid_t pid, const struct images *images, const struct layout *layout,
			   uint64_t array, uint32_t max, uint64_t *caps);

/* By looking through the runtime's variables. `want`: how many there are, 0 if not known. */
bool check__scan_caps(pid_t pid, const struct rts *rts, const struct images *images,
		      const struct layout *layout, uint32_t want, struct check_result *r);
/* The address of n_capabilities, found by its value and its use; 0: not found. */
uint64_t check__scan_n_caps(pid_t pid, const struct rts *rts, const struct check_result *r);
/* True once the process has a Haskell heap, which it gets after its capabilities. */
bool check__has_heap(const struct images *images);

#endif

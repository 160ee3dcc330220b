/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The capabilities of a live process. Only to be called inside mem__guard(). For the files of this
 * room only.
 */
#ifndef SAFESCOPED_RTS_CHECK_CAPS_PRIV_H
#define SAFESCOPED_RTS_CHECK_CAPS_PRIV_H

#include "check.h"

/*
 * Fills in caps, n_caps, capabilities, caps_array, caps_found, and `why` if the result is
 * CHECK_FAILED.
 */
enum check_verdict check__caps(pid_t pid, const struct rts *rts, const struct images *images,
			       const struct layout *layout, struct check_result *r);

/* ── parts ───────────────────────────────────────────────────────────────────────────────── */

/* True if cap looks like capability number no. */
bool check__is_cap(pid_t pid, const struct images *images, const struct layout *layout,
		   uint64_t cap, uint32_t no);
/* Reads the array of pointers. Returns how many entries from the start are capabilities. */
uint32_t check__take_array(pid_t pid, const struct images *images, const struct layout *layout,
			   uint64_t array, uint32_t max, uint64_t *caps);

/* Finds the capabilities by scanning the runtime's variables. `want`: their number, 0 if
 * unknown. */
bool check__scan_caps(pid_t pid, const struct rts *rts, const struct images *images,
		      const struct layout *layout, uint32_t want, struct check_result *r);
/* The address of n_capabilities, found by its value and its use; 0: not found. */
uint64_t check__scan_n_caps(pid_t pid, const struct rts *rts, const struct check_result *r);
/* True once the process has a Haskell heap, which is created after the capabilities. */
bool check__has_heap(const struct images *images);

#endif

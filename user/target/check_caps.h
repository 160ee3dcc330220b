/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The capabilities of a live process. Only inside of mem__guard(). Private to the target room. */
#ifndef SAFESCOPED_TARGET_CHECK_CAPS_H
#define SAFESCOPED_TARGET_CHECK_CAPS_H

#include "check.h"

/*
 * Fills in caps, n_caps, capabilities, caps_array, caps_found, and `why` when the result is
 * CHECK_FAILED.
 */
enum check_verdict check__caps(pid_t pid, const struct rts *rts, const struct images *images,
			       const struct layout *layout, struct check_result *r);

#endif

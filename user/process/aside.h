/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs what reads a file in a confined child, and waits for it: no longer than its time, than the
 * file's user may be waited for, and than the daemon has nothing else to do (guard__hurry_by).
 */
#ifndef SAFESCOPED_PROCESS_ASIDE_H
#define SAFESCOPED_PROCESS_ASIDE_H

#include <stddef.h>
#include <stdint.h>

#include "confine/confine.h"

/*
 * As confine__run(). `honest_ns`: what it may take without counting against how->user. -EBUSY: that
 * user has been waited for too long; this and -ETIMEDOUT say nothing of the file.
 */
int aside__run(const struct confine *how, int timeout_ms, uint64_t honest_ns,
	       int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out);

#endif

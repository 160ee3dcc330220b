/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks the layout's offsets for allocation in a live process. Only to be called inside
 * mem__guard(). For the files of this room only.
 */
#ifndef SAFESCOPED_RTS_CHECK_ALLOC_PRIV_H
#define SAFESCOPED_RTS_CHECK_ALLOC_PRIV_H

#include "check.h"

/* check.c: true if tso is a TSO whose stackobj is a STACK that its sp lies in. */
bool check__tso(pid_t pid, const struct layout *layout, uint64_t tso);

/* Checks the capabilities of *r. */
bool check__alloc(pid_t pid, const struct rts *rts, const struct check_result *r);

#endif

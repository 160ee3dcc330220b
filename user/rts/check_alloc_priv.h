/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the layout's places for allocation hold in a live process. Only inside of mem__guard().
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_RTS_CHECK_ALLOC_PRIV_H
#define SAFESCOPED_RTS_CHECK_ALLOC_PRIV_H

#include "check.h"

/* check.c: true if tso is a TSO whose stackobj is a STACK that its sp lies in. */
bool check__tso(pid_t pid, const struct layout *layout, uint64_t tso);

/* The capabilities of *r. */
bool check__alloc(pid_t pid, const struct rts *rts, const struct check_result *r);

#endif

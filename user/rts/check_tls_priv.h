/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the threads keep my_task. Only to be called inside mem__guard(). For the files of this room
 * only.
 */
#ifndef SAFESCOPED_RTS_CHECK_TLS_PRIV_H
#define SAFESCOPED_RTS_CHECK_TLS_PRIV_H

#include <stdint.h>
#include <sys/types.h>

#include "layout.h"
#include "rts.h"

struct check_tls {
	uint32_t agree;	 /* number of Tasks that prove it */
	uint32_t module; /* 0: `offset` is relative to the fs base; else the index of the block in
			    the DTV */
	int64_t offset;
};

/* Needs Tasks whose layout has been confirmed. agree 0: not found. */
void check__tls(pid_t pid, const struct rts *rts, const struct layout *l, const uint64_t *tasks,
		uint32_t n, struct check_tls *ret_tls);

#endif

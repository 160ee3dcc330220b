/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Offsets into the structs of GHC's runtime, by release and way. The table is generated;
 * `scripts/gen-layouts --add "$(ghc --print-libdir)"` adds a release to it. What it claims about a
 * process is used only after check.c has confirmed it.
 */
#ifndef SAFESCOPED_RTS_LAYOUT_H
#define SAFESCOPED_RTS_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct layout {
	struct wire_layout wire;
	/* read by user space only; 0: this way has no such field */
	uint16_t cap_suspended_ccalls;
	uint16_t cap_spare_workers;
	uint16_t cap_returning_tasks;
	uint16_t incall_next;
	uint16_t task_next;
	uint16_t task_all_next;
	bool caps_array; /* the symbol `capabilities` is the array, not a pointer to it */
};

/*
 * rts/include/rts/OSThreads.h (9.2 and later): a Condition contains a clockid_t only if configure
 * found pthread_condattr_setclock. Without it every Task field after `cond` is 8 bytes lower, and
 * nothing in the file shows which variant a runtime was built with.
 */
enum layout_variant { LAYOUT_CLK = 0, LAYOUT_NOCLK = 1, LAYOUT_VARIANTS = 2 };

struct layout_row {
	const char *versions; /* separated by single spaces, ascending */
	bool threaded, profiled, noclk;
	struct layout layout;
};

/*
 * The layout of a version ("9.0.2"). A version that is not in the table gets the row of the nearest
 * release at or below it, or of the lowest one, and *ret_known false. -EINVAL: not a version;
 * -ENOENT: this release and way has no such variant.
 */
int layout__find(const char *version, bool threaded, bool profiled, enum layout_variant variant,
		 struct layout *ret_layout, bool *ret_known);

#endif

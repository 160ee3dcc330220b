/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sources: what the names of a process's code will come from, before any of it is named. */
#ifndef SAFESCOPED_TARGET_SOURCES_H
#define SAFESCOPED_TARGET_SOURCES_H

#include "target.h"

/* Like names__sources(); 0: none, or nothing is known of the program. */
unsigned target__name_sources(struct target *target);

#endif

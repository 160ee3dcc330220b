/* SPDX-License-Identifier: GPL-2.0-or-later */
/* caps: the capabilities of this process, as sets of bits by number (linux/capability.h). */
#ifndef SAFESCOPED_CONFINE_CAPS_H
#define SAFESCOPED_CONFINE_CAPS_H

#include <stdint.h>

#define CAP_BIT_OF(cap) (1ULL << (cap))

int caps__permitted(uint64_t *ret_caps);
/*
 * These, permitted and effective, as far as they are permitted now; the others are gone for good,
 * and none is inherited. Of the calling thread: before there are others.
 */
int caps__reduce_to(uint64_t caps);

#endif

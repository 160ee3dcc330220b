/* SPDX-License-Identifier: GPL-2.0-or-later */
/* caps: the capabilities of this process, as bit sets by number (linux/capability.h). */
#ifndef SAFESCOPED_CONFINE_CAPS_H
#define SAFESCOPED_CONFINE_CAPS_H

#include <stdint.h>

#define CAP_BIT_OF(cap) (1ULL << (cap))

int caps__permitted(uint64_t *ret_caps);
/*
 * Makes these the only permitted and effective capabilities, as far as they are permitted; all
 * others are lost for good, and none is inherited. Affects the calling thread only: call it before
 * there are others.
 */
int caps__reduce_to(uint64_t caps);

#endif

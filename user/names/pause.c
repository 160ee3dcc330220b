/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pause: when to try again what failed. */
#include "names/pause_priv.h"

#include <errno.h>

#include "base/base.h"

void names_pause__begin(struct names_pause *p, uint64_t now, int err)
{
	if (now - p->since_ns >= 2 * NAMES_PAUSE_MAX_NS)
		p->n = 0;
	p->ns = p->n ? MIN(2 * p->ns, NAMES_PAUSE_MAX_NS) : NAMES_PAUSE_NS;
	p->since_ns = now;
	p->n++;
	p->err = p->n < NAMES_PAUSE_LASTING ? -EBUSY : err;
}

int names_pause__now(const struct names_pause *p, uint64_t now)
{
	return p->n && now - p->since_ns < p->ns ? p->err : 0;
}

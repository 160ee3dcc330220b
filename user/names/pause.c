/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pause: when to retry what failed. */
#include "names/pause_priv.h"

#include <errno.h>

void names_pause__begin(struct names_pause *p, uint64_t now, int err)
{
	if (now >= p->retry.until_ns + NAMES_PAUSE_MAX_NS)
		names_pause__end(p);
	retry__begin(&p->retry, now, NAMES_PAUSE_NS, NAMES_PAUSE_MAX_NS);
	p->n++;
	p->err = p->n < NAMES_PAUSE_LASTING ? -EBUSY : err;
}

int names_pause__now(const struct names_pause *p, uint64_t now)
{
	return p->n && retry__waits(&p->retry, now) ? p->err : 0;
}

void names_pause__end(struct names_pause *p)
{
	*p = (struct names_pause){0};
}

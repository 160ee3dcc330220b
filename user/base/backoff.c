/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to try again. */
#include "backoff.h"

#include "base.h"

void backoff__begin(struct backoff *b, uint64_t now, uint64_t first_ns, uint64_t longest_ns)
{
	b->ns = b->ns ? MIN(2 * b->ns, longest_ns) : first_ns;
	b->until_ns = now + b->ns;
}

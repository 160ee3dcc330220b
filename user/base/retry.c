/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to try again. */
#include "retry.h"

void retry__begin(struct retry *r, uint64_t now, uint64_t first_ns, uint64_t longest_ns)
{
	r->ns = retry__longer(r->ns, first_ns, longest_ns);
	r->until_ns = now + r->ns;
}

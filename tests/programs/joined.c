/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Joined.hs. */
#include "tally.h"

void joined_spin(unsigned us);
void joined_spin(unsigned us)
{
	tally__spin((uint64_t)us * 1000);
}

void joined_sleep(unsigned us);
void joined_sleep(unsigned us)
{
	tally__sleep((uint64_t)us * 1000);
}

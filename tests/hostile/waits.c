// SPDX-License-Identifier: GPL-2.0-or-later
/* Says "ready" and waits for its end. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints "ready" and waits until it is killed. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}

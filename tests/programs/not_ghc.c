/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that is not a Haskell program: prints "ready" and sleeps until its input ends. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char c;

	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

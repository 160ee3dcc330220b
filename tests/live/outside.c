/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A C program with Embed.hs and its runtime: for two seconds it calls no Haskell function, and then
 * one that takes 100 ms, over and over, until its input ends. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

extern void hs_init(int *argc, char ***argv);
extern void hs_exit(void);
extern void embed_spin(long ms);

int main(int argc, char **argv)
{
	/* the runtime's timer interrupts it */
	struct timespec wait = {.tv_sec = 2};
	struct pollfd input = {.fd = 0, .events = POLLIN};

	hs_init(&argc, &argv);
	puts("ready");
	fflush(stdout);
	while (nanosleep(&wait, &wait) < 0 && errno == EINTR)
		;
	while (poll(&input, 1, 0) <= 0)
		embed_spin(100);
	hs_exit();
	return 0;
}

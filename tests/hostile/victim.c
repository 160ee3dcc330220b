// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Another user's program: keeps calling add_one() of libvictim.so and checks the result. Prints
 * "ready", then "wrong: N" at the first wrong result; ends when its input ends.
 */
#include <poll.h>
#include <stdio.h>

int add_one(int x);

int main(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	puts("ready");
	fflush(stdout);
	while (poll(&in, 1, 1) == 0) {
		for (int i = 0; i < 10000; i++) {
			int got = add_one(i);

			if (got == i + 1)
				continue;
			printf("wrong: add_one(%d) is %d\n", i, got);
			return 1;
		}
	}
	puts("right");
	return 0;
}

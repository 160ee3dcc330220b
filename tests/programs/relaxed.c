/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions of an archive whose instructions the linker relaxes: thread-local variables, its own
 * and another file's, and what is reached through the GOT. With -DOTHERS the other file, with
 * -DMAIN the program that calls them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OTHERS
_Thread_local int theirs = 1;
_Thread_local long their_sum;
int their_data = 4;
int (*their_hook)(int);
int their_rounds(int n)
{
	int rounds = 0;

	while (n > 1 && rounds < 1000) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		rounds++;
		their_data ^= n;
	}
	return rounds;
}
#else
extern _Thread_local int theirs;
extern _Thread_local long their_sum;
extern int their_data, (*their_hook)(int);
int their_rounds(int n);
int relaxed_tail(int n), relaxed_sum(int n), relaxed_print(const char *text);
long *relaxed_address(int i);
#endif

#if !defined(OTHERS) && !defined(MAIN)
static _Thread_local int ours = 5;
static _Thread_local long our_sums[40];

/* With -fno-plt the jump through the GOT is the first instruction of the file. */
int relaxed_tail(int n)
{
	return their_rounds(n);
}

int relaxed_sum(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += theirs + ours * 3 + (int)our_sums[i % 40] + their_data;
		their_sum += sum;
		our_sums[(i * 7) % 40] ^= sum;
		if (sum & 64 && their_hook)
			sum = their_hook(sum);
	}
	return sum + errno;
}

int relaxed_print(const char *text)
{
	size_t len = strlen(text);
	char *copy = malloc(len + 16);

	if (!copy) {
		errno = ENOMEM;
		ours++;
		return -1;
	}
	memcpy(copy, text, len + 1);
	printf("%s %d\n", copy, theirs + their_data);
	their_sum = (long)len;
	free(copy);
	return relaxed_sum((int)len);
}

long *relaxed_address(int i)
{
	our_sums[3] = ours;
	return i & 1 ? &their_sum : &our_sums[i % 40];
}
#endif

#ifdef MAIN
int main(void)
{
	return relaxed_sum(4) + relaxed_print("x") + (int)*relaxed_address(3) + relaxed_tail(3) ==
	       77;
}
#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The C side of Mixed.hs: functions that are kept apart, and burn a millisecond in the innermost
 * one.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No call becomes a jump, and no function is inlined, merged or cloned. */
#define APART	__attribute__((noinline, noclone, noipa))
#define KEEP(x) __asm__ volatile("" : "+r"(x)::"memory")

static volatile int sink;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

APART int mix_inner(int n)
{
	uint64_t end = now_ns() + 1000000;

	while (now_ns() < end)
		for (int i = 0; i < 2000; i++)
			sink = sink * 3 + n;
	n |= 1;
	KEEP(n);
	return n;
}

APART int mix_middle(int n)
{
	/* a frame whose size is known only at run time: the CFA depends on rbp */
	char room[64 + (n & 63)];
	int x;

	memset(room, n, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
	x = mix_inner(n + room[n & 15]);
	KEEP(x);
	return x;
}

APART int mix_outer(int n)
{
	int x = mix_middle(n);

	KEEP(x);
	return x;
}

APART static int mix_compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	for (int i = 0; i < 200; i++)
		sink = sink * 3 + i;
	return (x > y) - (x < y);
}

APART int mix_sort(int n)
{
	int v[1000];

	for (int i = 0; i < 1000; i++)
		v[i] = (int)((unsigned)(i + n) * 2654435761u >> 8);
	qsort(v, 1000, sizeof(v[0]), mix_compare);
	n = v[0] | 1;
	KEEP(n);
	return n;
}

extern int mixBack(int n);

APART int mix_call_more(int n)
{
	int x = mixBack(n);

	KEEP(x);
	return x;
}

APART int mix_call(int n)
{
	int x = mix_call_more(n);

	KEEP(x);
	return x;
}

APART static void mix_handler(int signal)
{
	int x = mix_outer(signal);

	KEEP(x);
}

APART int mix_raise(int n)
{
	struct sigaction action = {.sa_handler = mix_handler, .sa_flags = SA_RESTART};

	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
	n |= 1;
	KEEP(n);
	return n;
}

APART int mix_many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k,
		   int l, int m, int n, int o, int p)
{
	int x = mix_outer(a);

	x += b + c + d + e + f + g + h + i + j + k + l + m + n + o + p;
	KEEP(x);
	return x | 1;
}

/* Like hand-written loops (gmp's, musl's): no frame, and nothing in .eh_frame. */
__asm__(".text\n"
	".type mix_spin, @function\n"
	"mix_spin:\n"
	"	mov $300000, %eax\n"
	"1:	sub $1, %eax\n"
	"	jnz 1b\n"
	"	lea 1(%rdi), %eax\n"
	"	ret\n"
	".size mix_spin, .-mix_spin\n");
int mix_spin(int n);

APART int mix_leaf(int n)
{
	int x = mix_spin(n);

	KEEP(x);
	return x | 1;
}

APART static void *mix_thread(void *arg)
{
	int x = *(int *)arg;

	for (int i = 0; i < 50; i++)
		x = mix_outer(x | 1);
	KEEP(x);
	return NULL;
}

APART int mix_start(int n)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, mix_thread, &n) == 0)
		pthread_join(thread, NULL);
	return n | 1;
}

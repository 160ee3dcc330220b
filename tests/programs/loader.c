/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loader LIBRARY CALLS MS [OWN]: a C program that loads a Haskell library (Embed.hs) on request,
 * starts the runtime, makes it work, and releases it. Prints what it has done and waits for a line
 * before each step. OWN: between two calls of the library, and after its runtime has ended, it uses
 * that many milliseconds of CPU itself, and then sleeps as long.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef void init_fn(int *argc, char ***argv);
typedef void void_fn(void);
typedef void long_fn(long n);

static void *library;

static void *need(const char *name)
{
	void *at = dlsym(library, name);

	if (!at) {
		fprintf(stderr, "loader: %s\n", dlerror());
		exit(1);
	}
	return at;
}

static void step(const char *said)
{
	char line[64];

	puts(said);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

static void own(long ms)
{
	struct timespec begun, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < ms);
	usleep((useconds_t)ms * 1000);
}

int main(int argc, char **argv)
{
	long own_ms = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
	char *args[] = {"embed", NULL}, **hs_argv = args;
	int hs_argc = 1;

	if (argc != 4 && argc != 5)
		return 2;
	step("ready");
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "loader: %s\n", dlerror());
		return 1;
	}
	((init_fn *)need("hs_init"))(&hs_argc, &hs_argv);
	step("loaded");
	((long_fn *)need("embed_work"))(strtol(argv[2], NULL, 10));
	own(own_ms);
	((long_fn *)need("embed_spin"))(strtol(argv[3], NULL, 10));
	((void_fn *)need("embed_print"))();
	((void_fn *)need("hs_exit"))();
	own(own_ms);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loader LIBRARY CALLS MS: a C program that loads a Haskell library (Embed.hs) on request, starts
 * the runtime, makes it work, and releases it. Prints what it has done and waits for a line before
 * each step.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

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

int main(int argc, char **argv)
{
	char *args[] = {"embed", NULL}, **hs_argv = args;
	int hs_argc = 1;

	if (argc != 4)
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
	((long_fn *)need("embed_spin"))(strtol(argv[3], NULL, 10));
	((void_fn *)need("embed_print"))();
	((void_fn *)need("hs_exit"))();
	return 0;
}

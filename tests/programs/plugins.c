/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Plugins.hs. With -DPLUGIN=NAME: a library that spins in NAME(). */
#include <dlfcn.h>
#include <stdlib.h>

#include "tally.h"

#ifdef PLUGIN
void PLUGIN(uint64_t end_ns);
__attribute__((noinline)) void PLUGIN(uint64_t end_ns)
{
	while (tally__clock(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

void plugin_run(int ms);
void plugin_run(int ms)
{
	PLUGIN(tally__clock(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000);
	/* no tail call */
	__asm__ volatile("");
}
#else

static void *library, *places[16];
static void (*plugin_run)(int ms);
static unsigned n_places;

void plugins_load(const char *path);
void plugins_load(const char *path)
{
	library = dlopen(path, RTLD_NOW);
	if (library)
		plugin_run = (void (*)(int))dlsym(library, "plugin_run");
	if (!library || !plugin_run) {
		fprintf(stderr, "Plugins: %s\n", dlerror());
		exit(1);
	}
	places[n_places++ % 16] = (void *)plugin_run;
}

void plugins_run(int ms);
void plugins_run(int ms)
{
	plugin_run(ms);
	__asm__ volatile("");
}

void plugins_unload(void);
void plugins_unload(void)
{
	dlclose(library);
}

void plugins_print(void);
void plugins_print(void)
{
	printf("[");
	for (unsigned i = 0; i < n_places && i < 16; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)places[i]);
	printf("]\n");
	fflush(stdout);
}
#endif

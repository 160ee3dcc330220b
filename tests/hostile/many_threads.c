/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded: once the file named by MANY_THREADS_WHEN exists, starts MANY_THREADS threads that
 * sleep, or, with MANY_THREADS_END, that end at once, one after the other; then creates a file of
 * that name with ".done" appended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STACK 16384

static void *asleep(void *ctx)
{
	(void)ctx;
	for (;;)
		pause();
	return NULL;
}

static void *at_once(void *ctx)
{
	return ctx;
}

static void *start_all(void *ctx)
{
	const char *when = ctx, *count = getenv("MANY_THREADS");
	long n = count ? strtol(count, NULL, 10) : 0;
	int ends = getenv("MANY_THREADS_END") != NULL;
	pthread_attr_t attr;
	pthread_t thread;
	char path[4096];
	int fd;

	while (access(when, F_OK))
		usleep(10000);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (n-- && pthread_create(&thread, &attr, ends ? at_once : asleep, NULL) == 0)
		if (ends)
			pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "%s.%s", when, n < 0 ? "done" : "failed");
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return NULL;
}

__attribute__((constructor)) static void many_threads(void)
{
	char *when = getenv("MANY_THREADS_WHEN");
	pthread_t thread;

	if (when)
		pthread_create(&thread, NULL, start_all, when);
}

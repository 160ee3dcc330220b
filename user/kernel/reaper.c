/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detaches programs in the background, several at a time, by closing their links. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "kernel_priv.h"

/* Each close waits for the kernel's grace periods, which all of them share, so this many take no
 * longer than one. */
#define REAPER_THREADS 128
#define REAPER_MAX     (1U << 20)

struct reaper {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	int *todo;
	size_t n, cap;
	bool last; /* no more will come */
	pthread_t threads[REAPER_THREADS];
	size_t n_threads, n_idle;
};

int reaper__new(struct reaper **ret_reaper)
{
	struct reaper *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->more, NULL);
	pthread_cond_init(&r->done, NULL);
	*ret_reaper = r;
	return 0;
}

static void *work(void *ctx)
{
	struct reaper *r = ctx;

	pthread_mutex_lock(&r->lock);
	for (;;) {
		int fd;

		while (!r->n && !r->last) {
			r->n_idle++;
			pthread_cond_signal(&r->done);
			pthread_cond_wait(&r->more, &r->lock);
			r->n_idle--;
		}
		if (!r->n)
			break;
		fd = r->todo[--r->n];
		pthread_mutex_unlock(&r->lock);
		close(fd);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

void reaper__add(struct reaper *r, int fd)
{
	bool taken = false;

	pthread_mutex_lock(&r->lock);
	if (ARRAY_RESERVE(r->todo, r->cap, r->n + 1, REAPER_MAX) == 0) {
		/* a thread that was woken counts as idle until it runs, and may have been woken
		 * for an earlier entry */
		if (r->n >= r->n_idle && r->n_threads < REAPER_THREADS &&
		    pthread_create(&r->threads[r->n_threads], NULL, work, r) == 0)
			r->n_threads++;
		if (r->n_threads) {
			r->todo[r->n++] = fd;
			taken = true;
			pthread_cond_signal(&r->more);
		}
	}
	pthread_mutex_unlock(&r->lock);
	if (!taken)
		close(fd);
}

void reaper__wait(struct reaper *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->n || r->n_idle < r->n_threads)
		pthread_cond_wait(&r->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

void reaper__free(struct reaper *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->last = true;
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
	for (size_t i = 0; i < r->n_threads; i++)
		pthread_join(r->threads[i], NULL);
	pthread_cond_destroy(&r->more);
	pthread_cond_destroy(&r->done);
	pthread_mutex_destroy(&r->lock);
	free(r->todo);
	free(r);
}

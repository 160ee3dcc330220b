/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of all processes, counted by use. */
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"

#define FILES_MAX 65536

struct file_cache {
	struct file **files;
	size_t n, cap, n_unused;
	uint64_t look_ups;
};

int file_cache__new(struct file_cache **ret_cache)
{
	struct file_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	*ret_cache = cache;
	return 0;
}

static void file__free(struct file *file)
{
	slots__free(&file->slots);
	elf__free(file->debug);
	elf__free(file->elf);
	free(file);
}

void file_cache__free(struct file_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->n; i++) {
		/* one that is still held is freed when it is put */
		if (cache->files[i]->refs)
			cache->files[i]->cache = NULL;
		else
			file__free(cache->files[i]);
	}
	free(cache->files);
	free(cache);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static struct file *find(struct file_cache *cache, const struct stat *st)
{
	for (size_t i = 0; i < cache->n; i++) {
		struct file *f = cache->files[i];

		if (f->ino == st->st_ino && f->dev == st->st_dev &&
		    f->size == (uint64_t)st->st_size && same_time(&f->mtime, &st->st_mtim) &&
		    same_time(&f->ctime, &st->st_ctim))
			return f;
	}
	return NULL;
}

static void drop_oldest(struct file_cache *cache)
{
	size_t oldest = SIZE_MAX;

	for (size_t i = 0; i < cache->n; i++)
		if (!cache->files[i]->refs &&
		    (oldest == SIZE_MAX ||
		     cache->files[i]->last_used < cache->files[oldest]->last_used))
			oldest = i;
	if (oldest == SIZE_MAX)
		return;
	file__free(cache->files[oldest]);
	cache->files[oldest] = cache->files[--cache->n];
	cache->n_unused--;
}

int file__get(struct file_cache *cache, int fd, const char *name, struct file **ret_file)
{
	struct file *file = NULL;
	struct stat st;
	int err = 0;

	if (fstat(fd, &st) < 0)
		err = -errno;
	else if (cache)
		file = find(cache, &st);
	if (!err && !file && cache)
		err = array__reserve((void **)&cache->files, &cache->cap, cache->n + 1, FILES_MAX,
				     sizeof(struct file *));
	if (err || file) {
		fd__close(&fd);
		if (err)
			return err;
		if (!file->refs++)
			cache->n_unused--;
		file->last_used = ++cache->look_ups;
		*ret_file = file;
		return 0;
	}
	file = calloc(1, sizeof(*file));
	if (!file) {
		fd__close(&fd);
		return -ENOMEM;
	}
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	file->size = (uint64_t)st.st_size;
	file->uid = st.st_uid;
	file->mtime = st.st_mtim;
	file->ctime = st.st_ctim;
	file->refs = 1;
	file->cache = cache;
	file->elf_err = elf__open_fd(fd, name, &file->elf);
	if (cache) {
		file->last_used = ++cache->look_ups;
		cache->files[cache->n++] = file;
	}
	*ret_file = file;
	return 0;
}

void file__put(struct file *file)
{
	struct file_cache *cache;

	if (!file || --file->refs)
		return;
	cache = file->cache;
	if (!cache) {
		file__free(file);
		return;
	}
	cache->n_unused++;
	if (cache->n_unused > FILES_MAX_UNUSED)
		drop_oldest(cache);
}

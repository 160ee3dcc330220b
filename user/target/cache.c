/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What targets share: the files, and the kernel's names. */
#include <errno.h>
#include <stdlib.h>

#include "archives/archives.h"
#include "names/kallsyms.h"
#include "process/file.h"
#include "target_priv.h"

struct target_cache {
	struct file_cache *files;
	struct archives *archives;
	struct debuginfod *debuginfod;
	struct kallsyms *kallsyms;
	bool kallsyms_tried;
};

int target_cache__new(struct target_cache **ret_cache)
{
	struct target_cache *cache = calloc(1, sizeof(*cache));
	int err = cache ? file_cache__new(&cache->files) : -ENOMEM;

	if (err < 0) {
		free(cache);
		return err;
	}
	*ret_cache = cache;
	return 0;
}

void target_cache__free(struct target_cache *cache)
{
	if (!cache)
		return;
	file_cache__free(cache->files);
	kallsyms__free(cache->kallsyms);
	archives__free(cache->archives);
	free(cache);
}

struct file_cache *target_cache__files(const struct target_cache *cache)
{
	return cache ? cache->files : NULL;
}

int target_cache__open_archives(struct target_cache *cache, const char *const *dirs, size_t n)
{
	return n ? archives__open(dirs, n, &cache->archives) : 0;
}

void target_cache__ask(struct target_cache *cache, struct debuginfod *debuginfod)
{
	cache->debuginfod = debuginfod;
}

struct debuginfod *target_cache__debuginfod(const struct target_cache *cache)
{
	return cache ? cache->debuginfod : NULL;
}

const struct archives *target_cache__archives(const struct target_cache *cache)
{
	return cache ? cache->archives : NULL;
}

const struct kallsyms *target_cache__kallsyms(struct target_cache *cache)
{
	if (cache && !cache->kallsyms_tried) {
		cache->kallsyms_tried = true;
		kallsyms__open(&cache->kallsyms);
	}
	return cache ? cache->kallsyms : NULL;
}

bool target_cache__knows_kernel(struct target_cache *cache)
{
	return target_cache__kallsyms(cache) != NULL;
}

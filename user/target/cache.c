/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What targets share: files, and the kernel's symbols. */
#include <errno.h>
#include <stdlib.h>

#include "archives/archives.h"
#include "base/base.h"
#include "base/keyset.h"
#include "names/kallsyms.h"
#include "names/names.h"
#include "process/file.h"
#include "target_priv.h"

/* Code that was loaded after the kernel's symbols were read, such as modules, is named after they
 * are read again, which takes a tenth of a second. */
#define KALLSYMS_EVERY_NS 60000000000ULL

struct target_cache {
	struct file_cache *files;
	struct archives *archives;
	struct debuginfod *debuginfod;
	struct names_helpers *helpers;
	struct keyset *plain; /* struct plain_key */
	struct kallsyms *kallsyms;
	bool kallsyms_tried;
	uint64_t kallsyms_ns; /* when it was last read … */
	uint64_t kallsyms_no; /* … and how often so far */
};

int target_cache__new(struct target_cache **ret_cache)
{
	struct target_cache *cache = calloc(1, sizeof(*cache));
	int err = cache ? file_cache__new(&cache->files) : -ENOMEM;

	if (!err)
		err = names_helpers__new(&cache->helpers);
	if (!err)
		err = keyset__new(sizeof(struct plain_key), PLAIN_MAX, &cache->plain);
	if (err < 0) {
		target_cache__free(cache);
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
	names_helpers__free(cache->helpers);
	keyset__free(cache->plain);
	free(cache);
}

void target_cache__turn(struct target_cache *cache, uint64_t now_ns)
{
	file_cache__turn(cache->files, now_ns);
}

struct file_cache *target_cache__files(const struct target_cache *cache)
{
	return cache ? cache->files : NULL;
}

int target_cache__open_archives(struct target_cache *cache, const char *const *dirs, size_t n)
{
	return n ? archives__open(dirs, n, &cache->archives) : 0;
}

bool target_cache__finds_archives(const char *const *dirs, size_t n)
{
	return archives__are_there(dirs, n);
}

void target_cache__ask(struct target_cache *cache, struct debuginfod *debuginfod)
{
	cache->debuginfod = debuginfod;
}

struct debuginfod *target_cache__debuginfod(const struct target_cache *cache)
{
	return cache ? cache->debuginfod : NULL;
}

struct keyset *target_cache__plain(const struct target_cache *cache)
{
	return cache->plain;
}

struct names_helpers *target_cache__helpers(const struct target_cache *cache)
{
	return cache ? cache->helpers : NULL;
}

const struct archives *target_cache__archives(const struct target_cache *cache)
{
	return cache ? cache->archives : NULL;
}

/* If there is no memory, the old table is kept. */
static void read_kallsyms(struct target_cache *cache, uint64_t now_ns)
{
	struct kallsyms *fresh;

	cache->kallsyms_tried = true;
	cache->kallsyms_ns = now_ns;
	if (kallsyms__open(&fresh))
		return;
	kallsyms__free(cache->kallsyms);
	cache->kallsyms = fresh;
	cache->kallsyms_no++;
}

void target_cache__kernel(struct target_cache *cache, uint64_t addr, uint64_t now_ns,
			  struct names_kernel *ret_kernel)
{
	bool comes_and_goes;

	*ret_kernel = (struct names_kernel){0};
	if (!cache)
		return;
	if (!cache->kallsyms_tried)
		read_kallsyms(cache, now_ns);
	if (!cache->kallsyms)
		return;
	comes_and_goes = !kallsyms__stays(cache->kallsyms, addr);
	if (comes_and_goes && now_ns - cache->kallsyms_ns >= KALLSYMS_EVERY_NS)
		read_kallsyms(cache, now_ns);
	*ret_kernel = (struct names_kernel){
		.syms = cache->kallsyms,
		.no = cache->kallsyms_no,
		.early = comes_and_goes && cache->kallsyms_ns != now_ns,
	};
}

bool target_cache__knows_kernel(struct target_cache *cache)
{
	if (cache && !cache->kallsyms_tried)
		read_kallsyms(cache, time__monotonic_ns());
	return cache && cache->kallsyms;
}

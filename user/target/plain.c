/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "plain_priv.h"

struct plain_key {
	uint64_t dev, ino, size;
	int64_t mtime_s, mtime_ns, ctime_s, ctime_ns;
};

struct plain_file {
	struct plain_key key;
	UT_hash_handle hh;
};

struct plain {
	struct plain_file *files;
};

int plain__new(struct plain **ret_plain)
{
	*ret_plain = calloc(1, sizeof(**ret_plain));
	return *ret_plain ? 0 : -ENOMEM;
}

static void forget(struct plain *p)
{
	struct plain_file *f = p->files, *next;

	/* the list of them stays */
	HASH_CLEAR(hh, p->files);
	for (; f; f = next) {
		next = f->hh.next;
		free(f);
	}
}

void plain__free(struct plain *plain)
{
	if (plain)
		forget(plain);
	free(plain);
}

static struct plain_key key_of(const struct stat *st)
{
	return (struct plain_key){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
	};
}

bool plain__knows(const struct plain *plain, const struct stat *st)
{
	const struct plain_key key = key_of(st);
	struct plain_file *f;

	HASH_FIND(hh, plain->files, &key, sizeof(key), f);
	return f != NULL;
}

void plain__add(struct plain *plain, const struct stat *st)
{
	struct plain_file *f;

	if (plain__knows(plain, st))
		return;
	if (HASH_COUNT(plain->files) >= PLAIN_PROGRAMS_MAX)
		forget(plain);
	f = calloc(1, sizeof(*f));
	if (!f)
		return;
	f->key = key_of(st);
	HASH_ADD(hh, plain->files, key, sizeof(f->key), f);
	if (!f->hh.tbl) /* uthash found no memory */
		free(f);
}

size_t plain__count(const struct plain *plain)
{
	return HASH_COUNT(plain->files);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keyset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

struct keyset_key {
	UT_hash_handle hh;
	unsigned char bytes[];
};

struct keyset {
	size_t key_size, max;
	struct keyset_key *keys;
};

int keyset__new(size_t key_size, size_t max, struct keyset **ret_set)
{
	struct keyset *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->key_size = key_size;
	set->max = max;
	*ret_set = set;
	return 0;
}

void keyset__forget(struct keyset *set)
{
	struct keyset_key *k = set->keys, *next;

	/* the keys stay linked by hh.next */
	HASH_CLEAR(hh, set->keys);
	for (; k; k = next) {
		next = k->hh.next;
		free(k);
	}
}

void keyset__free(struct keyset *set)
{
	if (set)
		keyset__forget(set);
	free(set);
}

bool keyset__has(const struct keyset *set, const void *key)
{
	struct keyset_key *k;

	HASH_FIND(hh, set->keys, key, set->key_size, k);
	return k != NULL;
}

void keyset__add(struct keyset *set, const void *key)
{
	struct keyset_key *k;

	if (keyset__has(set, key))
		return;
	if (HASH_COUNT(set->keys) >= set->max)
		keyset__forget(set);
	k = calloc(1, sizeof(*k) + set->key_size);
	if (!k)
		return;
	memcpy(k->bytes, key, set->key_size);
	HASH_ADD(hh, set->keys, bytes, set->key_size, k);
	if (!k->hh.tbl) /* uthash found no memory */
		free(k);
}

size_t keyset__count(const struct keyset *set)
{
	return HASH_COUNT(set->keys);
}

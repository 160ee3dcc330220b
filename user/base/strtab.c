/* SPDX-License-Identifier: GPL-2.0-or-later */
/* strtab: strings stored once, identified by number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "hash.h"

#define STRTAB_MAX_STRINGS (16U << 20)

struct strtab_entry {
	UT_hash_handle hh;
	uint32_t id;
	char s[];
};

struct strtab {
	struct strtab_entry *hash;
	struct strtab_entry **by_id;
	size_t n;
	size_t cap;
	size_t bytes, max_bytes; /* max_bytes 0: only their number is limited */
};

static struct strtab_entry *lookup(const struct strtab *tab, const char *s, size_t len)
{
	struct strtab_entry *entry = NULL;

	HASH_FIND(hh, tab->hash, s, len, entry);
	return entry;
}

static int insert(struct strtab *tab, const char *s, size_t len, uint32_t *ret_id)
{
	struct strtab_entry *entry = NULL;
	/* including its share of the hash table's buckets */
	size_t bytes = sizeof(*entry) + len + 1 + 3 * sizeof(void *);
	void *by_id = tab->by_id;
	int err;

	if (tab->max_bytes && tab->bytes + bytes > tab->max_bytes)
		return -E2BIG;
	err = array__reserve(&by_id, &tab->cap, tab->n + 1, STRTAB_MAX_STRINGS,
			     sizeof(struct strtab_entry *));
	tab->by_id = by_id;
	if (err)
		return err;

	entry = calloc(1, sizeof(*entry) + len + 1);
	if (!entry)
		return -ENOMEM;
	memcpy(entry->s, s, len);
	entry->id = (uint32_t)tab->n;
	HASH_ADD_KEYPTR(hh, tab->hash, entry->s, len, entry);
	if (!entry->hh.tbl) { /* uthash found no memory */
		free(entry);
		return -ENOMEM;
	}
	tab->by_id[tab->n++] = entry;
	tab->bytes += bytes;
	*ret_id = entry->id;
	return 0;
}

int strtab__new(struct strtab **ret_tab)
{
	struct strtab *tab = calloc(1, sizeof(*tab));
	uint32_t id;
	int err;

	if (!tab)
		return -ENOMEM;
	err = insert(tab, "", 0, &id);
	if (err) {
		strtab__free(tab);
		return err;
	}
	*ret_tab = tab;
	return 0;
}

void strtab__free(struct strtab *tab)
{
	size_t i;

	if (!tab)
		return;
	HASH_CLEAR(hh, tab->hash);
	for (i = 0; i < tab->n; i++)
		free(tab->by_id[i]);
	free(tab->by_id);
	free(tab);
}

void strtab__set_max(struct strtab *tab, size_t bytes)
{
	tab->max_bytes = bytes;
}

int strtab__add(struct strtab *tab, const char *s, size_t len, uint32_t *ret_id)
{
	struct strtab_entry *entry;

	if (len > STRTAB_MAX_STRING)
		return -E2BIG;
	/* What follows a NUL could never be read back: two such strings would look alike. */
	len = strnlen(s, len);
	entry = lookup(tab, s, len);
	if (entry) {
		*ret_id = entry->id;
		return 0;
	}
	return insert(tab, s, len, ret_id);
}

int strtab__add_escaped(struct strtab *tab, const char *s, uint32_t *ret_id)
{
	size_t len = s ? strlen(s) : 0;
	size_t size = MIN(text__escape(s, len, NULL, 0), (size_t)STRTAB_MAX_STRING) + 1;
	char *safe = malloc(size);
	int err;

	if (!safe)
		return -ENOMEM;
	text__escape(s, len, safe, size);
	err = strtab__add(tab, safe, strlen(safe), ret_id);
	free(safe);
	return err;
}

const char *strtab__get(const struct strtab *tab, uint32_t id)
{
	return id < tab->n ? tab->by_id[id]->s : "";
}

uint32_t strtab__count(const struct strtab *tab)
{
	return (uint32_t)tab->n;
}

size_t strtab__bytes(const struct strtab *tab)
{
	return tab->bytes;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_kept: answers, without the room that their strings do not use. */
#include "names/dwarf_kept_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"

#define NUMBERS_SIZE offsetof(struct dwarf_place, name)
#define STRINGS	     4

struct dwarf_kept {
	UT_hash_handle hh;
	uint64_t vaddr;
	bool found;
	uint8_t len[STRINGS]; /* fewer than sizeof(place.name) each */
	char place[]; /* if it was found: the numbers, then the strings, one after the other */
};

static void strings_of(struct dwarf_place *p, char *ret_strings[STRINGS])
{
	ret_strings[0] = p->name;
	ret_strings[1] = p->linkage;
	ret_strings[2] = p->file;
	ret_strings[3] = p->proc_file;
}

int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place)
{
	const struct dwarf_kept *k;
	char *strings[STRINGS];
	const char *from;

	HASH_FIND(hh, kept, &vaddr, sizeof(vaddr), k);
	if (!k)
		return -ESRCH;
	if (!k->found)
		return -ENOENT;
	memcpy(ret_place, k->place, NUMBERS_SIZE);
	from = k->place + NUMBERS_SIZE;
	strings_of(ret_place, strings);
	for (size_t i = 0; i < STRINGS; from += k->len[i], i++) {
		memcpy(strings[i], from, k->len[i]);
		strings[i][k->len[i]] = '\0';
	}
	return 0;
}

static struct dwarf_kept *new_found(struct dwarf_place *place)
{
	size_t size = sizeof(struct dwarf_kept) + NUMBERS_SIZE;
	uint8_t len[STRINGS];
	char *strings[STRINGS], *to;
	struct dwarf_kept *k;

	strings_of(place, strings);
	for (size_t i = 0; i < STRINGS; i++)
		size += len[i] = (uint8_t)strlen(strings[i]);
	k = calloc(1, size);
	if (!k)
		return NULL;
	k->found = true;
	memcpy(k->len, len, sizeof(k->len));
	memcpy(k->place, place, NUMBERS_SIZE);
	to = k->place + NUMBERS_SIZE;
	for (size_t i = 0; i < STRINGS; to += len[i], i++)
		memcpy(to, strings[i], len[i]);
	return k;
}

void dwarf_kept__add(struct dwarf_kept **kept, uint64_t vaddr, struct dwarf_place *place)
{
	struct dwarf_kept *k;

	if (HASH_COUNT(*kept) >= DWARF_KEPT_MAX)
		dwarf_kept__free(kept);
	k = place ? new_found(place) : calloc(1, sizeof(*k));
	if (!k)
		return;
	k->vaddr = vaddr;
	/* without memory it is asked for again */
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	(void)HASH_INSERT(*kept, vaddr, sizeof(k->vaddr), k);
}

void dwarf_kept__free(struct dwarf_kept **kept)
{
	HASH_FREE(*kept);
}

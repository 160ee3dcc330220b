/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_kept: stores answers without the unused part of their strings, and the ranges where they
 * hold. */
#include "names/dwarf_kept_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/search.h"

#define NUMBERS_SIZE offsetof(struct dwarf_place, name)
#define STRINGS	     4

/* Nested blocks searched for one that contains an address. */
#define NESTED_MAX 16

struct dwarf_answer {
	UT_hash_handle hh;
	uint64_t vaddr;
	bool found;
	uint8_t len[STRINGS]; /* fewer than sizeof(place.name) each */
	char place[];	      /* if found: the numbers, then the strings, without separators */
};

static void strings_of(struct dwarf_place *p, char *ret_strings[STRINGS])
{
	ret_strings[0] = p->name;
	ret_strings[1] = p->linkage;
	ret_strings[2] = p->file;
	ret_strings[3] = p->proc_file;
}

static int give(const struct dwarf_answer *answer, struct dwarf_place *ret_place)
{
	char *strings[STRINGS];
	const char *from;

	if (!answer->found)
		return -ENOENT;
	memcpy(ret_place, answer->place, NUMBERS_SIZE);
	from = answer->place + NUMBERS_SIZE;
	strings_of(ret_place, strings);
	for (size_t i = 0; i < STRINGS; from += answer->len[i], i++) {
		memcpy(strings[i], from, answer->len[i]);
		strings[i][answer->len[i]] = '\0';
	}
	return 0;
}

int dwarf_kept__find(const struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *ret_place)
{
	const struct dwarf_answer *answer;
	size_t after, i;

	HASH_FIND(hh, kept->answers, &vaddr, sizeof(vaddr), answer);
	if (answer)
		return give(answer, ret_place);
	after = search__first(kept->n_blocks, k, kept->blocks[k].start > vaddr);
	for (i = after; i > 0 && after - i < NESTED_MAX; i--)
		if (vaddr < kept->blocks[i - 1].end)
			return give(kept->blocks[i - 1].answer, ret_place);
	return -ESRCH;
}

static struct dwarf_answer *new_found(struct dwarf_place *place)
{
	size_t size = sizeof(struct dwarf_answer) + NUMBERS_SIZE;
	uint8_t len[STRINGS];
	char *strings[STRINGS], *to;
	struct dwarf_answer *answer;

	strings_of(place, strings);
	for (size_t i = 0; i < STRINGS; i++)
		size += len[i] = (uint8_t)strlen(strings[i]);
	answer = calloc(1, size);
	if (!answer)
		return NULL;
	answer->found = true;
	memcpy(answer->len, len, sizeof(answer->len));
	memcpy(answer->place, place, NUMBERS_SIZE);
	to = answer->place + NUMBERS_SIZE;
	for (size_t i = 0; i < STRINGS; to += len[i], i++)
		memcpy(to, strings[i], len[i]);
	return answer;
}

/* If out of memory, the answer holds only for its own address. */
static void add_block(struct dwarf_kept *kept, const struct dwarf_answer *answer, uint64_t start,
		      uint64_t end)
{
	size_t at;

	if (start >= end ||
	    ARRAY_RESERVE(kept->blocks, kept->blocks_cap, kept->n_blocks + 1, DWARF_KEPT_MAX))
		return;
	at = search__first(kept->n_blocks, k,
			   kept->blocks[k].start > start ||
				   (kept->blocks[k].start == start && kept->blocks[k].end <= end));
	memmove(&kept->blocks[at + 1], &kept->blocks[at],
		(kept->n_blocks - at) * sizeof(*kept->blocks));
	kept->blocks[at] = (struct dwarf_range){start, end, answer};
	kept->n_blocks++;
}

/* NULL: there was no memory for the answer, so it is not kept. */
static bool add(struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_answer *answer)
{
	if (!answer)
		return false;
	if (HASH_COUNT(kept->answers) >= DWARF_KEPT_MAX)
		dwarf_kept__clear(kept);
	answer->vaddr = vaddr;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
	return HASH_INSERT(kept->answers, vaddr, sizeof(answer->vaddr), answer) == 0;
}

void dwarf_kept__add(struct dwarf_kept *kept, uint64_t vaddr, struct dwarf_place *place)
{
	struct dwarf_answer *answer = new_found(place);

	if (add(kept, vaddr, answer) && !place->haskell)
		add_block(kept, answer, place->start, place->end);
}

void dwarf_kept__add_nothing(struct dwarf_kept *kept, uint64_t vaddr, uint64_t start, uint64_t end)
{
	struct dwarf_answer *answer = calloc(1, sizeof(*answer));

	if (add(kept, vaddr, answer))
		add_block(kept, answer, start, end);
}

void dwarf_kept__clear(struct dwarf_kept *kept)
{
	HASH_FREE(kept->answers);
	free(kept->blocks);
	memset(kept, 0, sizeof(*kept));
}

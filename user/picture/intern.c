/* SPDX-License-Identifier: GPL-2.0-or-later */
/* intern: frames and stacks, each stored once and identified by a number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

#define MAX_FRAMES (1U << 22)

static const char *text(const char *s)
{
	return s ? s : "";
}

int frames__new(struct frame_table *tab)
{
	memset(tab, 0, sizeof(*tab));
	return strtab__new(&tab->strings);
}

void frames__free(struct frame_table *tab)
{
	HASH_CLEAR(hh, tab->hash);
	for (size_t i = 0; i < tab->n; i++)
		free(tab->entries[i]);
	free(tab->entries);
	free(tab->v);
	strtab__free(tab->strings);
	memset(tab, 0, sizeof(*tab));
}

static int add_string(struct strtab *strings, const char *s, uint32_t *ret_id)
{
	s = text(s);
	return strtab__add(strings, s, MIN(strlen(s), (size_t)STRTAB_MAX_STRING), ret_id);
}

static int insert_frame(struct frame_table *tab, const struct frame_key *key, const char *src,
			uint32_t *ret_id)
{
	struct frame_entry *entry;
	struct pic_frame *frame;
	uint32_t src_id;
	int err;

	err = ARRAY_RESERVE(tab->v, tab->cap, tab->n + 1, MAX_FRAMES);
	if (!err)
		err = ARRAY_RESERVE(tab->entries, tab->entries_cap, tab->n + 1, MAX_FRAMES);
	if (!err)
		err = add_string(tab->strings, src, &src_id);
	if (err)
		return err;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = *key;
	entry->id = (uint32_t)tab->n;
	err = HASH_INSERT(tab->hash, key, sizeof(entry->key), entry);
	if (err)
		return err;
	frame = &tab->v[tab->n];
	frame->name = strtab__get(tab->strings, key->name);
	frame->module = strtab__get(tab->strings, key->module);
	frame->package = strtab__get(tab->strings, key->package);
	frame->file = strtab__get(tab->strings, key->file);
	frame->src = strtab__get(tab->strings, src_id);
	frame->kind = (enum pic_frame_kind)key->kind;
	frame->approximate = key->approximate;
	tab->entries[tab->n++] = entry;
	*ret_id = entry->id;
	return 0;
}

int frames__add(struct frame_table *tab, const struct pic_frame *frame, uint32_t *ret_id)
{
	struct frame_key key = {.kind = frame->kind, .approximate = frame->approximate};
	struct frame_entry *entry;
	int err;

	err = add_string(tab->strings, frame->name, &key.name);
	if (!err)
		err = add_string(tab->strings, frame->module, &key.module);
	if (!err)
		err = add_string(tab->strings, frame->package, &key.package);
	if (!err)
		err = add_string(tab->strings, frame->file, &key.file);
	if (err)
		return err;
	HASH_FIND(hh, tab->hash, &key, sizeof(key), entry);
	if (entry) {
		*ret_id = entry->id;
		return 0;
	}
	return insert_frame(tab, &key, frame->src, ret_id);
}

int frames__set_place(struct frame_table *tab, uint32_t id, const struct pic_place *place)
{
	struct pic_place *its = id < tab->n ? &tab->entries[id]->place : NULL;
	uint32_t path, build_id;
	int err;

	if (!its || its->end || place->address < place->start || place->address >= place->end)
		return 0;
	err = add_string(tab->strings, place->path, &path);
	if (!err)
		err = add_string(tab->strings, place->build_id, &build_id);
	if (err)
		return err;
	*its = *place;
	its->path = strtab__get(tab->strings, path);
	its->build_id = strtab__get(tab->strings, build_id);
	return 0;
}

const struct pic_place *frames__place(const struct frame_table *tab, uint32_t id)
{
	return id < tab->n && tab->entries[id]->place.end ? &tab->entries[id]->place : NULL;
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

static int insert_stack(struct stack_table *tab, const uint32_t *frames, uint32_t n,
			uint32_t *ret_id)
{
	size_t bytes = (size_t)n * sizeof(*frames);
	struct stack_entry *entry;
	int err;

	/* Two more than the caller's limit: the empty stack and the one that means "full". */
	err = ARRAY_RESERVE(tab->v, tab->cap, tab->n + 1, tab->max + 2);
	if (err)
		return err;
	entry = calloc(1, sizeof(*entry) + bytes);
	if (!entry)
		return -ENOMEM;
	if (n)
		memcpy(entry->frames, frames, bytes);
	entry->n = n;
	entry->id = (uint32_t)tab->n;
	HASH_ADD_KEYPTR(hh, tab->hash, entry->frames, bytes, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return -ENOMEM;
	}
	tab->v[tab->n++] = entry;
	*ret_id = entry->id;
	return 0;
}

int stacks__new(struct stack_table *tab, size_t max, uint32_t full_frame)
{
	uint32_t id;
	int err;

	memset(tab, 0, sizeof(*tab));
	tab->max = MIN(max, (size_t)UINT32_MAX - 2);
	err = insert_stack(tab, NULL, 0, &id);
	if (!err)
		err = insert_stack(tab, &full_frame, 1, &tab->full);
	if (err)
		stacks__free(tab);
	return err;
}

void stacks__free(struct stack_table *tab)
{
	HASH_CLEAR(hh, tab->hash);
	for (size_t i = 0; i < tab->n; i++)
		free(tab->v[i]);
	free(tab->v);
	memset(tab, 0, sizeof(*tab));
}

int stacks__add(struct stack_table *tab, const uint32_t *frames, uint32_t n, uint32_t *ret_id)
{
	struct stack_entry *entry = NULL;

	if (!n) {
		*ret_id = 0;
		return 0;
	}
	HASH_FIND(hh, tab->hash, frames, (size_t)n * sizeof(*frames), entry);
	if (entry) {
		*ret_id = entry->id;
		return 0;
	}
	if (tab->n >= tab->max + 2) {
		tab->left_out++;
		*ret_id = tab->full;
		return 0;
	}
	return insert_stack(tab, frames, n, ret_id);
}

struct pic_stack stacks__get(const struct stack_table *tab, uint32_t id)
{
	struct pic_stack stack = {0};

	if (id < tab->n) {
		stack.frames = tab->v[id]->frames;
		stack.n = tab->v[id]->n;
	}
	return stack;
}

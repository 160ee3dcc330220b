/* SPDX-License-Identifier: GPL-2.0-or-later */
/* intern: frames and stacks, each stored once and identified by a number. Part of the picture
 * room. */
#ifndef SAFESCOPED_PICTURE_INTERN_H
#define SAFESCOPED_PICTURE_INTERN_H

#include "base/base.h"
#include "base/hash.h"
#include "picture.h"

struct frame_key {
	uint32_t name, module, package, file; /* indices into the string table */
	uint32_t kind, approximate;
};

struct frame_entry {
	UT_hash_handle hh;
	struct frame_key key;
	uint32_t id;
	struct pic_place place; /* end 0: not known */
};

struct frame_table {
	struct strtab *strings;
	struct frame_entry *hash;
	struct frame_entry **entries;
	struct pic_frame *v;
	size_t n, cap, entries_cap;
};

int frames__new(struct frame_table *tab);
void frames__free(struct frame_table *tab);
/* Copies the strings of *frame. -E2BIG: too many frames. */
int frames__add(struct frame_table *tab, const struct pic_frame *frame, uint32_t *ret_id);
/* See picture__set_place and picture__place. */
int frames__set_place(struct frame_table *tab, uint32_t id, const struct pic_place *place);
const struct pic_place *frames__place(const struct frame_table *tab, uint32_t id);

struct stack_entry {
	UT_hash_handle hh;
	uint32_t id, n;
	uint32_t frames[]; /* root first */
};

/* Stack 0 is the empty one. Once there are `max` stacks, further ones become stack `full`. */
struct stack_table {
	struct stack_entry *hash;
	struct stack_entry **v;
	size_t n, cap, max;
	uint64_t left_out;
	uint32_t full;
};

int stacks__new(struct stack_table *tab, size_t max, uint32_t full_frame);
void stacks__free(struct stack_table *tab);
int stacks__add(struct stack_table *tab, const uint32_t *frames, uint32_t n, uint32_t *ret_id);
struct pic_stack stacks__get(const struct stack_table *tab, uint32_t id);

#endif

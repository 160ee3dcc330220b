/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A memory image for the native walker: words at chosen addresses, everything else unreadable; and
 * functions that lay out info tables, STACK objects and frames as GHC does.
 */
#ifndef SAFESCOPED_TESTS_IMAGE_H
#define SAFESCOPED_TESTS_IMAGE_H

#include <string.h>

#include "wire.h"
#include "stg.bpf.h"

#define IMAGE_MAX_WORDS 65536

struct image {
	struct mem mem; /* must be first: the walker's handle */
	u64 base;	/* address of words[0] */
	u32 n;
	u64 words[IMAGE_MAX_WORDS];
	u8 known[IMAGE_MAX_WORDS];
};

static inline int image_read(struct mem *mem, void *dst, u32 size, u64 addr)
{
	struct image *im = (struct image *)mem;
	u64 first, last;

	if (addr < im->base || size == 0)
		return -14;
	first = (addr - im->base) / 8;
	last = (addr - im->base + size - 1) / 8;
	if (last >= IMAGE_MAX_WORDS)
		return -14;
	for (u64 i = first; i <= last; i++)
		if (!im->known[i])
			return -14;
	memcpy(dst, (char *)im->words + (addr - im->base), size);
	return 0;
}

static inline void image_init(struct image *im, u64 base)
{
	memset(im, 0, sizeof(*im));
	im->mem.read = image_read;
	im->base = base;
}

/* Adds n readable zeroed words at the image's end; returns their address. */
static inline u64 image_alloc(struct image *im, u32 n)
{
	u64 addr = im->base + 8ULL * im->n;

	if (im->n + n > IMAGE_MAX_WORDS)
		return 0;
	memset(im->known + im->n, 1, n);
	im->n += n;
	return addr;
}

static inline void image_put(struct image *im, u64 addr, u64 word)
{
	u64 i = (addr - im->base) / 8;

	if (addr >= im->base && i < IMAGE_MAX_WORDS) {
		im->words[i] = word;
		im->known[i] = 1;
	}
}

/* Adds an info table followed by its entry code; returns the info pointer. */
static inline u64 image_info(struct image *im, u32 type, u64 layout)
{
	u64 at = image_alloc(im, 4);

	image_put(im, at, layout);
	image_put(im, at + 8, type);
	return at + 16;
}

/* The offsets of GHC 9.0.2; profiled headers are two words longer. */
static inline struct wire_layout image_layout(int profiled)
{
	u16 p = profiled ? 16 : 0;
	struct wire_layout l = {
		.cap_r = 24,
		.cap_no = 944,
		.cap_running_task = 952,
		.cap_in_haskell = 960,
		.cap_current_tso = 896,
		.cap_cccs = 888,
		.task_id = 0,
		.task_cap = 112,
		.task_incall = 120,
		.incall_suspended_tso = 8,
		.incall_suspended_cap = 16,
		.incall_task = 40,
		.incall_prev_stack = 48,
		.tso_stackobj = 24 + p,
		.tso_why_blocked = 34 + p,
		.tso_id = 48 + p,
		.tso_id_size = 8,
		.tso_why_size = 2,
		.tso_bound = 64 + p,
		.tso_cccs = profiled ? 136 : 0,
		.stack_size = 8 + p,
		.stack_sp = 16 + p,
		.stack_stack = 24 + p,
		.bco_bitmap = 40 + p,
		.updframe_updatee = 8 + p,
	};

	return l;
}

/* Adds a STACK object of n words with sp at its end; image_push() pushes the frames. */
static inline u64 image_stack(struct image *im, const struct wire_layout *l, u32 words)
{
	u64 info = image_info(im, STG_STACK, 0);
	u64 obj = image_alloc(im, l->stack_stack / 8 + words);
	u64 i = (obj + l->stack_size - im->base) / 8;

	image_put(im, obj, info);
	im->words[i] = words;
	image_put(im, obj + l->stack_sp, obj + l->stack_stack + 8ULL * words);
	return obj;
}

static inline u64 image_sp(const struct image *im, const struct wire_layout *l, u64 obj)
{
	return im->words[(obj + l->stack_sp - im->base) / 8];
}

/* Pushes words[0..n) so that words[0] is at the new sp. */
static inline void image_push(struct image *im, const struct wire_layout *l, u64 obj,
			      const u64 *words, u32 n)
{
	u64 sp = image_sp(im, l, obj) - 8ULL * n;

	for (u32 i = 0; i < n; i++)
		image_put(im, sp + 8ULL * i, words[i]);
	image_put(im, obj + l->stack_sp, sp);
}

#endif

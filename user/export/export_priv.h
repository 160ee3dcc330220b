/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the exporters share among themselves: text that is safe to print, weights added up by
 * stack, frames told apart by what a format shows of them, numbers for people, tables.
 */
#ifndef SAFESCOPED_EXPORT_PRIV_H
#define SAFESCOPED_EXPORT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "export.h"
#include "timeline/timeline.h"

/* The largest table that an exporter builds for itself. */
#define EXPORT_MAX_ENTRIES ((size_t)1 << 28)

/* ── text (text_safe.c) ──────────────────────────────────────────────────────────────────── */

#define UTF8_REPLACEMENT 0xfffdu

/*
 * The next code point of a NUL-terminated string, and steps over it; 0 at its end. A byte that
 * does not begin a valid sequence counts as one U+FFFD: names come from other people's files.
 */
uint32_t utf8__next(const char **s);
/* Writes cp to out (at most 4 bytes, no NUL) and returns the number of bytes. */
size_t utf8__put(char *out, uint32_t cp);
/* C0, DEL and C1: what a terminal may take for a command. */
bool utf8__is_control(uint32_t cp);
/* The string with its quotes, as JSON. NULL is written as "". */
void json__put_string(FILE *out, const char *s);
/* The same within a <script> of a page, which nothing in it can end. */
void json__put_in_html(FILE *out, const char *s);
/* A decimal number. Deep stacks make millions of them, which printf is too slow for. */
void put_u64(FILE *out, uint64_t n);
/* The same into memory, at most 20 bytes without a NUL; returns where it ends. */
char *u64__put(char *out, uint64_t n);

/* ── frames and stacks (aggregate.c) ─────────────────────────────────────────────────────── */

/* Orders frames a and b as one format sees them; 0 if it cannot tell them apart. */
typedef int (*frame_cmp)(uint32_t a, uint32_t b, void *ctx);

/*
 * Frames that a format cannot tell apart get one number: map[frame] counts from 0, in order of
 * first use (by_use) or in the order of cmp. *ret_map (freed by the caller) has n elements.
 */
int frames__number(uint32_t n, frame_cmp cmp, void *ctx, bool by_use, uint32_t **ret_map,
		   uint32_t *ret_distinct);

/* Weight of one stack of one owner (a lane, a target: whatever the format keeps apart). */
struct weighted {
	uint32_t owner;
	uint32_t stack;
	uint64_t weight;
};

struct weights {
	struct weighted *items;
	size_t n, cap;
	uint32_t recent[256]; /* by stack: where it may be */
};

void weights__free(struct weights *w);
int weights__add(struct weights *w, uint32_t owner, uint32_t stack, uint64_t weight);
/* One item for each (owner, stack), in that order. */
void weights__merge(struct weights *w);
/* Compares two stacks frame by frame, root first, by the frames' numbers in map. */
int stacks__cmp(struct tl_stack a, struct tl_stack b, const uint32_t *map);
bool stacks__equal(struct tl_stack a, struct tl_stack b, const uint32_t *map);

/* There was no process: an eventlog, or a report that GHC wrote, is all there is. */
bool session__log_alone(const struct timeline *tl);

/* ── broken stacks (broken.c) ────────────────────────────────────────────────────────────── */

/* By enum wire_cause: "no_frame", and a phrase for people; NULL for a cause without a name. */
const char *broken__name(unsigned cause);
const char *broken__title(unsigned cause);

#endif

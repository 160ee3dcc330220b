/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the exporters share among themselves: text that is safe to print, what accounts add up to by
 * stack, frames numbered by what a format shows of them, columns of tables.
 */
#ifndef SAFESCOPED_EXPORT_PRIV_H
#define SAFESCOPED_EXPORT_PRIV_H

#include <errno.h>

#include "base/base.h"
#include "export.h"

/* The largest table that an exporter builds for itself. */
#define EXPORT_MAX_ENTRIES ((size_t)1 << 28)

/* The formats' writers, for export.c. */
typedef int export_write(FILE *out, const struct picture *pic, const struct export_opts *opts);
export_write chrome__write, folded__write, html__write, json__write, otlp__write, pprof__write,
	speedscope__write, text__write;

static inline bool export__shows(const struct export_opts *opts, enum lane_kind kind)
{
	return !opts->lanes || opts->lanes >> kind & 1;
}

/* What a writer ends with. */
static inline int export__result(FILE *out, int err)
{
	return err ? err : ferror(out) ? -EIO : 0;
}

/* There was no process: an eventlog, or a report that GHC wrote, is all there is. */
bool session__log_alone(const struct picture *pic);

/* ── text (utf8.c) ───────────────────────────────────────────────────────────────────────── */

#define UTF8_REPLACEMENT 0xfffdu

/*
 * The next code point of a NUL-terminated string, and steps over it; 0 at its end. A byte that
 * does not begin a valid sequence counts as one U+FFFD: names come from other people's files.
 */
uint32_t utf8__next(const char **s);
/* Writes cp to out (at most 4 bytes, no NUL) and returns the number of bytes. */
size_t utf8__put(char *out, uint32_t cp);
/* The string with its quotes, as JSON, in ASCII where text__is_hidden. NULL is written as "". */
void json__put_string(FILE *out, const char *s);
/* As people shall see it, by text__escape, within a <script> of a page, which nothing in it can
 * end. */
void json__put_in_html(FILE *out, const char *s);
/* A decimal number. Deep stacks make millions of them, which printf is too slow for. */
void put_u64(FILE *out, uint64_t n);
/* The same into memory, at most 20 bytes without a NUL; returns where it ends. */
char *u64__put(char *out, uint64_t n);

static inline const char *or_empty(const char *s)
{
	return s ? s : "";
}
/* As it is shown. */
static inline const char *frame__name(const struct pic_frame *frame)
{
	return *frame->name ? frame->name : "[unknown]";
}
/* "src/Data/Fib.hs:7": the line, and *ret_len of the file's name; 0: no line. */
uint32_t src__line(const char *src, size_t *ret_len);

/* ── processes (target_name.c) ───────────────────────────────────────────────────────────── */

/* "demo (pid 42)" */
struct pic_target_name {
	char s[96];
};
struct pic_target_name pic_target__name(const struct pic_target *target);
/* ", nginx.service", ", container 3f2c01ab77de, pod 8c1d…": to follow a name; "" where it has none.
 */
struct pic_target_place {
	char s[192];
};
struct pic_target_place pic_target__place(const struct pic_target *target);
/* How much of the name of a service of `len` bytes is before its suffix. */
size_t service__stem(const char *service, size_t len);
/* How much of a container, that of a user's manager or the system's, its engine shows. */
size_t container__shown(const char *container);

/* ── frames and stacks (frames.c) ────────────────────────────────────────────────────────── */

/* Orders frames a and b as one format sees them; 0 if they are the same to it. */
typedef int (*frame_cmp)(uint32_t a, uint32_t b, void *ctx);

/*
 * Frames that are the same to a format get one number: map[frame] counts from 0, in order of
 * first use (by_use) or in the order of cmp. *ret_map (freed by the caller) has n elements.
 */
int frames__number(uint32_t n, frame_cmp cmp, void *ctx, bool by_use, uint32_t **ret_map,
		   uint32_t *ret_distinct);
/* So for frames that are equal in name and file, and in their line, or in all of `src`, if a format
 * shows those. */
enum frame_detail { FRAME_FILE, FRAME_LINE, FRAME_SRC };
int frames__number_alike(const struct picture *pic, enum frame_detail detail, uint32_t **ret_map,
			 uint32_t *ret_distinct);
/* Compares two stacks frame by frame, root first, by the frames' numbers in map. */
int stacks__cmp(struct pic_stack a, struct pic_stack b, const uint32_t *map);
static inline bool stacks__equal(struct pic_stack a, struct pic_stack b, const uint32_t *map)
{
	return a.n == b.n && !stacks__cmp(a, b, map);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the exporters share: text that is safe to print, sums of accounts by stack, frames numbered
 * by what a format shows of them, columns of tables.
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

/* A writer's return value: its error, or that of the stream. */
static inline int export__result(FILE *out, int err)
{
	return err ? err : ferror(out) ? -EIO : 0;
}

/* True if no process was profiled: there is only an eventlog, or a report that GHC wrote. */
bool session__log_alone(const struct picture *pic);

/* ── text (utf8.c) ───────────────────────────────────────────────────────────────────────── */

#define UTF8_REPLACEMENT 0xfffdu

/*
 * Returns the next code point of a NUL-terminated string and advances past it; 0 at the end. A byte
 * that does not begin a valid sequence counts as one U+FFFD: names come from untrusted files.
 */
uint32_t utf8__next(const char **s);
/* Writes a quoted JSON string; characters for which text__is_hidden is true become `\u` escapes.
 * NULL is written as "". */
void json__put_string(FILE *out, const char *s);
/* Writes a quoted JSON string for a <script> in a page, made readable by text__escape; nothing in
 * it can end the script. */
void json__put_in_html(FILE *out, const char *s);
/* Writes a decimal number. Deep stacks need millions of them, for which printf is too slow. */
void put_u64(FILE *out, uint64_t n);
/* Writes it to memory, at most 20 bytes without a NUL; returns the end. */
char *u64__put(char *out, uint64_t n);

static inline const char *or_empty(const char *s)
{
	return s ? s : "";
}
/* The name as shown. */
static inline const char *frame__name(const struct pic_frame *frame)
{
	return *frame->name ? frame->name : "[unknown]";
}
/*
 * The line of "src/Data/Fib.hs:7", or of a cost centre's place: "Fib.hs:7:1-25", "Fib.hs:7:3",
 * "Fib.hs:(7,1)-(9,12)"; sets *ret_len to the length of the file's name. 0: no line.
 */
uint32_t src__line(const char *src, size_t *ret_len);

/* ── processes (target_name.c) ───────────────────────────────────────────────────────────── */

/* "demo (pid 42)" */
struct pic_target_name {
	char s[96];
};
struct pic_target_name pic_target__name(const struct pic_target *target);
/* ", nginx.service", ", container 3f2c01ab77de, pod 8c1d…": to append to a name; "" if none is
 * known. */
struct pic_target_place {
	char s[192];
};
struct pic_target_place pic_target__place(const struct pic_target *target);
/* The length of a service's name (`len` bytes) without its suffix. */
size_t service__stem(const char *service, size_t len);
/* The length of a container's name as its engine shows it: any part before the last slash, and 12
 * characters of the id. */
size_t container__shown(const char *container);

/* ── frames and stacks (frames.c) ────────────────────────────────────────────────────────── */

/* Orders frames a and b for one format; 0 if it cannot distinguish them. */
typedef int (*frame_cmp)(uint32_t a, uint32_t b, void *ctx);

/*
 * Gives frames that cmp finds equal one number: map[frame] counts from 0, in order of first use
 * (by_use) or in the order of cmp. *ret_map has n elements and is freed by the caller.
 */
int frames__number(uint32_t n, frame_cmp cmp, void *ctx, bool by_use, uint32_t **ret_map,
		   uint32_t *ret_distinct);
/* The same for frames with equal name and file and, depending on `detail`, equal `src`. */
enum frame_detail { FRAME_FILE, FRAME_SRC };
int frames__number_alike(const struct picture *pic, enum frame_detail detail, uint32_t **ret_map,
			 uint32_t *ret_distinct);
/* Compares two stacks frame by frame, root first, by the numbers in map. */
int stacks__cmp(struct pic_stack a, struct pic_stack b, const uint32_t *map);
static inline bool stacks__equal(struct pic_stack a, struct pic_stack b, const uint32_t *map)
{
	return a.n == b.n && !stacks__cmp(a, b, map);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the JSON report share: values that keep the first failure. */
#ifndef SAFESCOPED_JSON_PRIV_H
#define SAFESCOPED_JSON_PRIV_H

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/export_priv.h"

/* ── values ──────────────────────────────────────────────────────────────────────────────── */

/* A report is written completely or not at all: failures set `failed`, which is checked once at the
 * end. */
struct report {
	const struct picture *pic;
	const struct pic_session *session;
	bool failed;
};

/* key: NULL in an array. */
static inline cJSON *add(struct report *r, cJSON *object, const char *key, cJSON *value)
{
	if (!value || !object ||
	    !(key ? cJSON_AddItemToObject(object, key, value)
		  : cJSON_AddItemToArray(object, value))) {
		cJSON_Delete(value);
		r->failed = true;
		return NULL;
	}
	return value;
}

static inline cJSON *add_object(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateObject());
}

static inline cJSON *add_array(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateArray());
}

static inline void add_null(struct report *r, cJSON *object, const char *key)
{
	add(r, object, key, cJSON_CreateNull());
}

static inline void add_bool(struct report *r, cJSON *object, const char *key, bool b)
{
	add(r, object, key, cJSON_CreateBool(b));
}

static inline void add_int(struct report *r, cJSON *object, const char *key, int n)
{
	add(r, object, key, cJSON_CreateNumber(n));
}

/* Adds the number as text: cJSON's numbers are doubles and would be rounded above 2^53. */
static inline void add_u64(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	add(r, object, key, cJSON_CreateRaw(text));
}

/* UINT64_MAX: null. */
static inline void add_known(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	if (n == UINT64_MAX)
		add_null(r, object, key);
	else
		add_u64(r, object, key, n);
}

static inline uint64_t known_if(bool known, uint64_t n)
{
	return known ? n : UINT64_MAX;
}

/* Negative: null. */
static inline void add_real(struct report *r, cJSON *object, const char *key, double x)
{
	add(r, object, key, x < 0 ? cJSON_CreateNull() : cJSON_CreateNumber(x));
}

/* NULL: null. cJSON escapes control characters but lets invalid UTF-8 through. */
static inline void add_string(struct report *r, cJSON *object, const char *key, const char *s)
{
	char *clean = s ? utf8__clean(s) : NULL;

	if (!s)
		add_null(r, object, key);
	else
		add(r, object, key, clean ? cJSON_CreateString(clean) : NULL);
	free(clean);
}

/* "": null. */
static inline void add_name(struct report *r, cJSON *object, const char *key, const char *s)
{
	add_string(r, object, key, s && *s ? s : NULL);
}

/* Adds a CLOCK_MONOTONIC time, relative to the session's start. */
static inline void add_time(struct report *r, cJSON *object, const char *key, uint64_t ns)
{
	add_u64(r, object, key, ns - MIN(ns, r->session->start_ns));
}

/* Long arrays are built as text: a cJSON object for each number would cost more than everything
 * else. */
static inline void begin_text(struct buf *text)
{
	buf__init(text, (size_t)1 << 30);
	buf__addc(text, '[');
}

static inline void add_text(struct report *r, cJSON *object, const char *key, struct buf *text)
{
	buf__addc(text, ']');
	add(r, object, key, text->err ? NULL : cJSON_CreateRaw(text->data));
	buf__free(text);
}

/* ── parts (allocation.c) ────────────────────────────────────────────────────────────────── */

/* "haskell", "rts", … */
const char *json__frame_kind(enum pic_frame_kind kind);
/* Add `allocation` and `heap`; nothing if no collection's end was seen. */
void json__allocation(struct report *r, cJSON *target, const struct pic_target *t);
void json__heap(struct report *r, cJSON *target, const struct pic_target *t);

/* ── parts (log.c) ───────────────────────────────────────────────────────────────────────── */

/* The tree of cost-centre stacks, by indices into cost_centres. */
void json__cost_centre_stacks(struct report *r, cJSON *target, const struct pic_target *t);
/* The windows and markers that the program set itself. */
void json__windows(struct report *r, cJSON *target, const struct pic_target *t);
/* `eventlog`; null without one. */
void json__eventlog(struct report *r, cJSON *target, const struct pic_target *t);

#endif

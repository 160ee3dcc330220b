/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the JSON report share: values that keep the first failure.
 */
#ifndef SAFESCOPED_JSON_PRIV_H
#define SAFESCOPED_JSON_PRIV_H

#include <cjson/cJSON.h>
#include <inttypes.h>

#include "export/export_priv.h"

/* ── values (values.c) ───────────────────────────────────────────────────────────────────── */

/* A report is whole or it is none: the first failure is kept, and one look at the end is enough. */
struct report {
	const struct pic_session *session;
	bool failed;
};

/* key: NULL in an array. */
cJSON *add(struct report *r, cJSON *object, const char *key, cJSON *value);
cJSON *add_object(struct report *r, cJSON *object, const char *key);
cJSON *add_array(struct report *r, cJSON *object, const char *key);
void add_null(struct report *r, cJSON *object, const char *key);
void add_bool(struct report *r, cJSON *object, const char *key, bool b);
void add_int(struct report *r, cJSON *object, const char *key, int n);
void add_u64(struct report *r, cJSON *object, const char *key, uint64_t n);
/* UINT64_MAX: null. */
void add_known(struct report *r, cJSON *object, const char *key, uint64_t n);
static inline uint64_t known_if(bool known, uint64_t n)
{
	return known ? n : UINT64_MAX;
}
/* Negative: null. */
void add_real(struct report *r, cJSON *object, const char *key, double x);
/* NULL: null. */
void add_string(struct report *r, cJSON *object, const char *key, const char *s);
/* "": null. */
void add_name(struct report *r, cJSON *object, const char *key, const char *s);
/* A CLOCK_MONOTONIC time, from the session's start. */
void add_time(struct report *r, cJSON *object, const char *key, uint64_t ns);
/* Long arrays are made as text: an object for each number would cost more than all else. */
void text__begin(struct buf *text);
void add_text(struct report *r, cJSON *object, const char *key, struct buf *text);

/* ── parts (log.c) ───────────────────────────────────────────────────────────────────────── */

/* The tree of cost-centre stacks, by indices into cost_centres. */
void json__cost_centre_stacks(struct report *r, cJSON *target, const struct pic_target *t);
/* windows and markers that the program set itself. */
void json__windows(struct report *r, cJSON *target, const struct pic_target *t);
/* eventlog; null without one. */
void json__eventlog(struct report *r, cJSON *target, const struct pic_target *t);

#endif

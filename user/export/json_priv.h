/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the JSON report share: values that keep the first failure. */
#ifndef SAFESCOPED_JSON_PRIV_H
#define SAFESCOPED_JSON_PRIV_H

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export.h"
#include "export_priv.h"

/* ── values ──────────────────────────────────────────────────────────────────────────────── */

/* A report is whole or it is none: the first failure is kept, and one look at the end is enough. */
struct report {
	bool failed;
};

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

static inline void add_null(struct report *r, cJSON *object, const char *key)
{
	add(r, object, key, cJSON_CreateNull());
}

/* As text: cJSON's numbers are doubles and would round above 2^53. */
static inline void add_u64(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	add(r, object, key, cJSON_CreateRaw(text));
}

/* UINT64_MAX stands for "none" in the timeline. */
static inline void add_u64_or_null(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	if (n == UINT64_MAX)
		add_null(r, object, key);
	else
		add_u64(r, object, key, n);
}

static inline void add_int(struct report *r, cJSON *object, const char *key, int n)
{
	add(r, object, key, cJSON_CreateNumber(n));
}

static inline void add_double(struct report *r, cJSON *object, const char *key, double n)
{
	add(r, object, key, cJSON_CreateNumber(n));
}

static inline void add_bool(struct report *r, cJSON *object, const char *key, bool b)
{
	add(r, object, key, cJSON_CreateBool(b));
}

/* cJSON escapes control characters but passes bytes that are no UTF-8. NULL becomes null. */
static inline void add_string(struct report *r, cJSON *object, const char *key, const char *s)
{
	char *clean;

	if (!s) {
		add_null(r, object, key);
		return;
	}
	clean = utf8__clean(s);
	add(r, object, key, clean ? cJSON_CreateString(clean) : NULL);
	free(clean);
}

static inline void add_known_string(struct report *r, cJSON *object, const char *key, const char *s)
{
	add_string(r, object, key, s && *s ? s : NULL);
}

static inline cJSON *add_object(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateObject());
}

static inline cJSON *add_array(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateArray());
}

/* A CLOCK_MONOTONIC time, from the session's start. */
static inline uint64_t since_start(const struct tl_session *session, uint64_t ns)
{
	return ns > session->start_ns ? ns - session->start_ns : 0;
}

/* ── parts (json_log.c) ──────────────────────────────────────────────────────────────────── */

/* The tree of cost-centre stacks, by indices into cost_centres. */
void json__cost_centre_stacks(struct report *r, cJSON *target, const struct tl_target *t);
/* windows and markers that the program set itself. */
void json__windows(struct report *r, cJSON *target, const struct tl_session *session,
		   const struct tl_target *t);
/* eventlog; null without one. */
void json__eventlog(struct report *r, cJSON *target, const struct tl_session *session,
		    const struct tl_target *t);

#endif

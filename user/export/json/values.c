/* SPDX-License-Identifier: GPL-2.0-or-later */
/* values: of the report. */
#include <stdlib.h>

#include "json_priv.h"

#define TEXT_MAX ((size_t)1 << 30)

cJSON *add(struct report *r, cJSON *object, const char *key, cJSON *value)
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

cJSON *add_object(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateObject());
}

cJSON *add_array(struct report *r, cJSON *object, const char *key)
{
	return add(r, object, key, cJSON_CreateArray());
}

void add_null(struct report *r, cJSON *object, const char *key)
{
	add(r, object, key, cJSON_CreateNull());
}

void add_bool(struct report *r, cJSON *object, const char *key, bool b)
{
	add(r, object, key, cJSON_CreateBool(b));
}

void add_int(struct report *r, cJSON *object, const char *key, int n)
{
	add(r, object, key, cJSON_CreateNumber(n));
}

/* As text: cJSON's numbers are doubles and would round above 2^53. */
void add_u64(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, n);
	add(r, object, key, cJSON_CreateRaw(text));
}

void add_known(struct report *r, cJSON *object, const char *key, uint64_t n)
{
	if (n == UINT64_MAX)
		add_null(r, object, key);
	else
		add_u64(r, object, key, n);
}

void add_real(struct report *r, cJSON *object, const char *key, double x)
{
	add(r, object, key, x < 0 ? cJSON_CreateNull() : cJSON_CreateNumber(x));
}

/* cJSON escapes control characters but passes bytes that are no UTF-8. */
void add_string(struct report *r, cJSON *object, const char *key, const char *s)
{
	char *clean = s ? utf8__clean(s) : NULL;

	if (!s)
		add_null(r, object, key);
	else
		add(r, object, key, clean ? cJSON_CreateString(clean) : NULL);
	free(clean);
}

void add_name(struct report *r, cJSON *object, const char *key, const char *s)
{
	add_string(r, object, key, s && *s ? s : NULL);
}

void add_time(struct report *r, cJSON *object, const char *key, uint64_t ns)
{
	add_u64(r, object, key, ns - MIN(ns, r->session->start_ns));
}

void text__begin(struct buf *text)
{
	buf__init(text, TEXT_MAX);
	buf__addc(text, '[');
}

void add_text(struct report *r, cJSON *object, const char *key, struct buf *text)
{
	buf__addc(text, ']');
	add(r, object, key, text->err ? NULL : cJSON_CreateRaw(text->data));
	buf__free(text);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An OTLP request, unpacked by protobuf-c, and lookups in it. */
#ifndef TEST_OTLP_KIT_H
#define TEST_OTLP_KIT_H

#include "otlp.pb-c.h"
#include "test_export_pictures.h"
#include "gunzip.h"

static const struct export_opts plain = {.weight = WEIGHT_WALL};
static const struct export_opts on_host = {.host_name = "box", .host_id = "0123456789abcdef"};

static inline Otlp__ExportRequest *unzip_request(const char *text, size_t len)
{
	static uint8_t raw[1 << 20];
	Otlp__ExportRequest *request =
		otlp__export_request__unpack(NULL, gunzip(text, len, raw, sizeof(raw)), raw);

	assert_non_null(request);
	assert_non_null(request->dictionary);
	return request;
}

static inline Otlp__ExportRequest *render(const struct sketch *sketch,
					  const struct export_opts *opts)
{
	size_t len;
	char *text = kit_render("otlp", sketch, opts, &len);
	Otlp__ExportRequest *request = unzip_request(text, len);

	free(text);
	return request;
}

static inline const char *string_of(const Otlp__ExportRequest *r, int32_t index)
{
	assert_in_range(index, 0, r->dictionary->n_string_table - 1);
	return r->dictionary->string_table[index];
}

/* The process's profile of that type; NULL if it has none. */
static inline const Otlp__Profile *profile_of(const Otlp__ExportRequest *r, size_t process,
					      const char *type)
{
	const Otlp__ScopeProfiles *scope;

	assert_in_range(process, 0, r->n_resource_profiles - 1);
	assert_int_equal(r->resource_profiles[process]->n_scope_profiles, 1);
	scope = r->resource_profiles[process]->scope_profiles[0];
	assert_string_equal(scope->scope->name, "safescoped");
	for (size_t i = 0; i < scope->n_profiles; i++) {
		const Otlp__Profile *p = scope->profiles[i];

		if (!strcmp(string_of(r, p->sample_type->type_strindex), type))
			return p;
	}
	return NULL;
}

/* NULL if there is no such attribute. */
static inline const Otlp__AnyValue *attribute(const Otlp__ExportRequest *r, const int32_t *indices,
					      size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		const Otlp__KeyValueAndUnit *a = r->dictionary->attribute_table[indices[i]];

		if (!strcmp(string_of(r, a->key_strindex), key))
			return a->value;
	}
	return NULL;
}

static inline const char *text_of(const Otlp__ExportRequest *r, const Otlp__Sample *s,
				  const char *key)
{
	const Otlp__AnyValue *value =
		attribute(r, s->attribute_indices, s->n_attribute_indices, key);

	return value ? value->string_value : "";
}

static inline int64_t number_of(const Otlp__ExportRequest *r, const Otlp__Sample *s,
				const char *key)
{
	const Otlp__AnyValue *value =
		attribute(r, s->attribute_indices, s->n_attribute_indices, key);

	return value ? value->int_value : -1;
}

/* The sum over the samples whose text attribute `key` is `is`; key NULL: over all samples. */
static inline int64_t sum_of(const Otlp__ExportRequest *r, size_t process, const char *type,
			     const char *key, const char *is)
{
	const Otlp__Profile *p = profile_of(r, process, type);
	int64_t sum = 0;

	for (size_t i = 0; p && i < p->n_samples; i++)
		if (!key || !strcmp(text_of(r, p->samples[i], key), is))
			sum += p->samples[i]->values[0];
	return sum;
}

#endif

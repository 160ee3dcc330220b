/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OTLP profiles, unpacked by protobuf-c: what they add up to, what refers to what, what they name.
 */
#include <zlib.h>

#include "otlp.pb-c.h"
#include "test_export_pictures.h"

static const struct export_opts plain = {.weight = WEIGHT_WALL};
static const struct export_opts on_host = {.host_name = "box", .host_id = "0123456789abcdef"};

static Otlp__ExportRequest *unzip_request(const char *text, size_t len)
{
	z_stream z = {.next_in = (Bytef *)text, .avail_in = (uInt)len};
	static uint8_t raw[1 << 20];
	Otlp__ExportRequest *request;

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_out = raw;
	z.avail_out = sizeof(raw);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	request = otlp__export_request__unpack(NULL, sizeof(raw) - z.avail_out, raw);
	inflateEnd(&z);
	assert_non_null(request);
	assert_non_null(request->dictionary);
	return request;
}

static Otlp__ExportRequest *render(const struct sketch *sketch, const struct export_opts *opts)
{
	size_t len;
	char *text = kit_render("otlp", sketch, opts, &len);
	Otlp__ExportRequest *request = unzip_request(text, len);

	free(text);
	return request;
}

static const char *string_of(const Otlp__ExportRequest *r, int32_t index)
{
	assert_in_range(index, 0, r->dictionary->n_string_table - 1);
	return r->dictionary->string_table[index];
}

/* The process's profile of a type; NULL: it has none. */
static const Otlp__Profile *profile_of(const Otlp__ExportRequest *r, size_t process,
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

/* NULL: it has no such attribute. */
static const Otlp__AnyValue *attribute(const Otlp__ExportRequest *r, const int32_t *indices,
				       size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		const Otlp__KeyValueAndUnit *a = r->dictionary->attribute_table[indices[i]];

		if (!strcmp(string_of(r, a->key_strindex), key))
			return a->value;
	}
	return NULL;
}

static const char *text_of(const Otlp__ExportRequest *r, const Otlp__Sample *s, const char *key)
{
	const Otlp__AnyValue *value =
		attribute(r, s->attribute_indices, s->n_attribute_indices, key);

	return value ? value->string_value : "";
}

static int64_t number_of(const Otlp__ExportRequest *r, const Otlp__Sample *s, const char *key)
{
	const Otlp__AnyValue *value =
		attribute(r, s->attribute_indices, s->n_attribute_indices, key);

	return value ? value->int_value : -1;
}

/* Of the samples whose text attribute `key` (NULL: of all) is that. */
static int64_t sum_of(const Otlp__ExportRequest *r, size_t process, const char *type,
		      const char *key, const char *is)
{
	const Otlp__Profile *p = profile_of(r, process, type);
	int64_t sum = 0;

	for (size_t i = 0; p && i < p->n_samples; i++)
		if (!key || !strcmp(text_of(r, p->samples[i], key), is))
			sum += p->samples[i]->values[0];
	return sum;
}

/* ── what refers to what ─────────────────────────────────────────────────────────────────── */

static void check_attributes(const Otlp__ProfilesDictionary *d, const int32_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_in_range(v[i], 1, d->n_attribute_table - 1);
}

static void check_code(const Otlp__ProfilesDictionary *d)
{
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		const Otlp__Mapping *m = d->mapping_table[i];

		assert_in_range(m->filename_strindex, i ? 1 : 0, i ? d->n_string_table - 1 : 0);
		check_attributes(d, m->attribute_indices, m->n_attribute_indices);
	}
	for (size_t i = 1; i < d->n_function_table; i++)
		assert_in_range(d->function_table[i]->name_strindex, 1, d->n_string_table - 1);
	for (size_t i = 1; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];

		assert_in_range(l->mapping_index, 0, d->n_mapping_table - 1);
		assert_int_equal(l->n_lines, 1);
		assert_in_range(l->lines[0]->function_index, 1, d->n_function_table - 1);
		assert_int_equal(l->n_attribute_indices, 1);
		check_attributes(d, l->attribute_indices, l->n_attribute_indices);
	}
	for (size_t i = 1; i < d->n_stack_table; i++) {
		assert_true(d->stack_table[i]->n_location_indices > 0);
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
			assert_in_range(d->stack_table[i]->location_indices[k], 1,
					d->n_location_table - 1);
	}
}

/* Place 0 of each table is the zero value. */
static void check_zeros(const Otlp__ProfilesDictionary *d)
{
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(otlp__mapping__get_packed_size(d->mapping_table[0]), 0);
	assert_int_equal(otlp__location__get_packed_size(d->location_table[0]), 0);
	assert_int_equal(otlp__function__get_packed_size(d->function_table[0]), 0);
	assert_int_equal(otlp__link__get_packed_size(d->link_table[0]), 0);
	assert_int_equal(otlp__stack__get_packed_size(d->stack_table[0]), 0);
	assert_int_equal(otlp__key_value_and_unit__get_packed_size(d->attribute_table[0]), 0);
}

static bool same_key(const Otlp__Sample *a, const Otlp__Sample *b)
{
	return a->stack_index == b->stack_index &&
	       a->n_attribute_indices == b->n_attribute_indices &&
	       !memcmp(a->attribute_indices, b->attribute_indices,
		       a->n_attribute_indices * sizeof(int32_t));
}

static void check_samples(const Otlp__ProfilesDictionary *d, const Otlp__Profile *p)
{
	assert_int_equal(p->profile_id.len, 16);
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Sample *s = p->samples[i];

		assert_in_range(s->stack_index, 0, d->n_stack_table - 1);
		assert_int_equal(s->link_index, 0);
		assert_int_equal(s->n_values, 1);
		assert_true(s->values[0] != 0);
		check_attributes(d, s->attribute_indices, s->n_attribute_indices);
		for (size_t k = 0; k < i; k++)
			assert_false(same_key(s, p->samples[k]));
	}
}

static void check_all(const Otlp__ExportRequest *r)
{
	const Otlp__Profile *seen[64];
	size_t n = 0;

	check_zeros(r->dictionary);
	check_code(r->dictionary);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__ScopeProfiles *s = r->resource_profiles[i]->scope_profiles[0];

		for (size_t k = 0; k < s->n_profiles; k++) {
			check_samples(r->dictionary, s->profiles[k]);
			assert_in_range(n, 0, ARRAY_SIZE(seen) - 1);
			seen[n++] = s->profiles[k];
		}
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(seen[i]->profile_id.data, seen[k]->profile_id.data,
						16);
	for (size_t i = 1; i < r->dictionary->n_string_table; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(r->dictionary->string_table[i],
						r->dictionary->string_table[k]);
}

static void test_references(void **state)
{
	static const struct sketch *const sketches[] = {&service, &hostile, &empty};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sketches); i++) {
		Otlp__ExportRequest *r = render(sketches[i], &plain);

		check_all(r);
		otlp__export_request__free_unpacked(r, NULL);
	}
}

/* ── what it adds up to ──────────────────────────────────────────────────────────────────── */

static void test_sums(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);

	(void)state;
	assert_int_equal(sum_of(r, 0, "cpu", NULL, ""), 610 * MS - 498);
	assert_int_equal(sum_of(r, 0, "off_cpu", NULL, ""), 500 * MS + 498);
	assert_int_equal(sum_of(r, 0, "safe_call", NULL, ""), 600 * MS + 491);
	assert_int_equal(sum_of(r, 0, "cpu", "ghc.state", "haskell"), 500 * MS - 498);
	assert_int_equal(sum_of(r, 0, "cpu", "thread.name", "ghc_worker"), 110 * MS);
	assert_int_equal(sum_of(r, 0, "off_cpu", "ghc.state", "idle"), 0);
	assert_int_equal(sum_of(r, 0, "samples", "ghc.state", "haskell"), 30 + 9 + 9);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_head(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);
	const Otlp__Profile *cpu = profile_of(r, 0, "cpu"), *off = profile_of(r, 0, "off_cpu"),
			    *samples = profile_of(r, 0, "samples");

	(void)state;
	assert_int_equal(cpu->time_unix_nano, UINT64_C(1767225600123456789));
	assert_int_equal(cpu->duration_nano, 1000 * MS);
	assert_string_equal(string_of(r, cpu->sample_type->unit_strindex), "nanoseconds");
	assert_string_equal(string_of(r, samples->sample_type->unit_strindex), "count");
	assert_int_equal(samples->period, 1000000000 / 99);
	assert_string_equal(string_of(r, samples->period_type->type_strindex), "cpu");
	/* what was not sampled has no period */
	assert_null(off->period_type);
	assert_int_equal(off->period, 0);
	otlp__export_request__free_unpacked(r, NULL);
}

/*
 * What Pyroscope files a profile under, by its newProfileBuilder() and profileType()
 * (pkg/ingester/otlp/convert.go). "": its ValidateLabels() refuses that, and the rest of the
 * request with it.
 */
static const char *filed_under(const Otlp__ExportRequest *r, const Otlp__Profile *p)
{
	const char *type = string_of(r, p->sample_type->type_strindex);
	const char *unit = string_of(r, p->sample_type->unit_strindex);
	const char *period_type = "", *period_unit = "";

	if (p->period_type && p->period) {
		period_type = string_of(r, p->period_type->type_strindex);
		period_unit = string_of(r, p->period_type->unit_strindex);
	}
	if (!strcmp(type, "samples") && !strcmp(unit, "count") && !strcmp(period_type, "cpu") &&
	    !strcmp(period_unit, "nanoseconds"))
		return "process_cpu";
	if (!strcmp(type, "off_cpu") && !strcmp(unit, "nanoseconds") && !*period_type)
		return "off_cpu";
	return period_type;
}

/* period_ns 0: nothing was sampled. */
static void check_filed(uint64_t period_ns, const char *samples)
{
	static const struct pic_alloc_row rows[] = {{.stack = 1, .bytes = 4096}};
	const struct {
		const char *type, *under;
	} wanted[] = {{"samples", samples},
		      {"cpu", "cpu"},
		      {"off_cpu", "off_cpu"},
		      {"safe_call", "safe_call"},
		      {"alloc_space", "alloc_space"}};
	struct pic_target target = service_target;
	struct sketch with = service;
	Otlp__ExportRequest *r;

	target.alloc.known = true;
	target.alloc.rows = rows;
	target.alloc.n_rows = 1;
	with.targets = &target;
	with.session.period_ns = period_ns;
	r = render(&with, &plain);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const Otlp__Profile *p = profile_of(r, 0, wanted[i].type);

		assert_non_null(p);
		assert_string_equal(filed_under(r, p), wanted[i].under);
	}
	assert_int_equal(profile_of(r, 0, "alloc_space")->period, 1);
	assert_int_equal(profile_of(r, 0, "safe_call")->period, 1);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_pyroscope_takes_all(void **state)
{
	(void)state;
	check_filed(10101010, "process_cpu");
	check_filed(0, "samples");
}

/* The same profile has the same id; another one, or another host's, has another. */
static void test_ids(void **state)
{
	Otlp__ExportRequest *a = render(&service, &plain), *b = render(&service, &plain),
			    *c = render(&service, &on_host);
	const Otlp__Profile *cpu = profile_of(a, 0, "cpu");

	(void)state;
	assert_memory_equal(cpu->profile_id.data, profile_of(b, 0, "cpu")->profile_id.data, 16);
	assert_memory_not_equal(cpu->profile_id.data, profile_of(c, 0, "cpu")->profile_id.data, 16);
	otlp__export_request__free_unpacked(a, NULL);
	otlp__export_request__free_unpacked(b, NULL);
	otlp__export_request__free_unpacked(c, NULL);
}

/* ── what it names ───────────────────────────────────────────────────────────────────────── */

static const char *resource_text(const Otlp__ExportRequest *r, size_t process, const char *key)
{
	const Otlp__Resource *resource = r->resource_profiles[process]->resource;

	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, key))
			return resource->attributes[i]->value->string_value;
	return NULL;
}

static void test_resource(void **state)
{
	Otlp__ExportRequest *r = render(&service, &on_host), *nowhere = render(&service, &plain);

	(void)state;
	assert_string_equal(resource_text(r, 0, "host.name"), "box");
	assert_string_equal(resource_text(r, 0, "host.id"), "0123456789abcdef");
	assert_string_equal(resource_text(r, 0, "process.runtime.name"), "ghc");
	assert_string_equal(resource_text(r, 0, "service.name"), "demo");
	assert_string_equal(resource_text(r, 0, "container.id"), service_target.container);
	assert_string_equal(resource_text(r, 0, "k8s.pod.uid"), service_target.pod);
	assert_string_equal(resource_text(r, 0, "process.executable.path"), service_target.exe);
	assert_null(resource_text(nowhere, 0, "host.name"));
	assert_null(resource_text(nowhere, 0, "host.id"));
	otlp__export_request__free_unpacked(r, NULL);
	otlp__export_request__free_unpacked(nowhere, NULL);
}

/* A service's suffix is no part of its name; whose manager it has is. */
static void test_services(void **state)
{
	static const struct {
		const char *service, *name;
	} cases[] = {
		{"", "service"},
		{"nginx.service", "nginx"},
		{"a.service.b.service", "a.service.b"},
		{"a.service.b", "a.service.b"},
		{"user@1000.service/nginx.service", "user@1000.service/nginx"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pic_target target = service_target;
		struct sketch one = service;
		Otlp__ExportRequest *r;

		target.service = cases[i].service;
		one.targets = &target;
		r = render(&one, &plain);
		assert_string_equal(resource_text(r, 0, "service.name"), cases[i].name);
		otlp__export_request__free_unpacked(r, NULL);
	}
}

static const Otlp__Location *leaf(const Otlp__ExportRequest *r, const Otlp__Sample *s, size_t i)
{
	const Otlp__Stack *stack = r->dictionary->stack_table[s->stack_index];

	assert_in_range(i, 0, stack->n_location_indices - 1);
	return r->dictionary->location_table[stack->location_indices[i]];
}

static const char *name_of(const Otlp__ExportRequest *r, const Otlp__Location *l)
{
	return string_of(r,
			 r->dictionary->function_table[l->lines[0]->function_index]->name_strindex);
}

static const char *type_of(const Otlp__ExportRequest *r, const Otlp__Location *l)
{
	return attribute(r, l->attribute_indices, l->n_attribute_indices, "profile.frame.type")
		->string_value;
}

static const char *file_mapped(const Otlp__ExportRequest *r, const Otlp__Location *l)
{
	return string_of(r, r->dictionary->mapping_table[l->mapping_index]->filename_strindex);
}

static void test_frames(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);
	const Otlp__Profile *cpu = profile_of(r, 0, "cpu"), *safe = profile_of(r, 0, "off_cpu");
	const Otlp__Location *fib = NULL, *sleep = NULL;
	const Otlp__Mapping *exe;

	(void)state;
	for (size_t i = 0; i < cpu->n_samples && !fib; i++)
		if (!strcmp(text_of(r, cpu->samples[i], "ghc.state"), "haskell")) {
			/* the leaf comes first: the state, then the function */
			assert_string_equal(name_of(r, leaf(r, cpu->samples[i], 0)), "[Haskell]");
			assert_string_equal(type_of(r, leaf(r, cpu->samples[i], 0)), "synthetic");
			fib = leaf(r, cpu->samples[i], 1);
		}
	assert_non_null(fib);
	assert_string_equal(name_of(r, fib), "Data.Fib.fib");
	assert_string_equal(type_of(r, fib), "haskell");
	assert_int_equal(fib->lines[0]->line, 7);
	assert_string_equal(
		string_of(r, r->dictionary->function_table[fib->lines[0]->function_index]
				     ->filename_strindex),
		"src/Data/Fib.hs");
	assert_string_equal(file_mapped(r, fib), service_target.exe);
	exe = r->dictionary->mapping_table[fib->mapping_index];
	assert_string_equal(attribute(r, exe->attribute_indices, exe->n_attribute_indices,
				      "process.executable.build_id.gnu")
				    ->string_value,
			    service_target.build_id);
	for (size_t i = 0; i < safe->n_samples && !sleep; i++)
		if (!strcmp(text_of(r, safe->samples[i], "ghc.state"), "safe_call_blocked"))
			sleep = leaf(r, safe->samples[i], 1);
	assert_non_null(sleep);
	assert_string_equal(name_of(r, sleep), "usleep");
	assert_string_equal(type_of(r, sleep), "native");
	assert_string_equal(file_mapped(r, sleep), "libc.so.6");
	otlp__export_request__free_unpacked(r, NULL);
}

/* What other people wrote is text that may be shown. */
static void test_hostile_text(void **state)
{
	Otlp__ExportRequest *r = render(&hostile, &plain);

	(void)state;
	for (size_t i = 0; i < r->dictionary->n_string_table; i++) {
		char *clean = utf8__clean(r->dictionary->string_table[i]);

		assert_string_equal(r->dictionary->string_table[i], clean);
		assert_null(strchr(clean, '\x1b'));
		free(clean);
	}
	otlp__export_request__free_unpacked(r, NULL);
}

/* ── capabilities and labels ─────────────────────────────────────────────────────────────── */

#define SPLIT_SLICE(from, to, on, thread, n)                                                       \
	{                                                                                          \
		.start_ns = (from), .end_ns = (to), .stack = 1, .state = ST_HASKELL, .cap = (on),  \
		.tso = (thread), .samples = (n)                                                    \
	}

static const struct pic_slice split_slices[] = {
	SPLIT_SLICE(0, 10, 0, 7, 1),	   SPLIT_SLICE(10, 40, 1, 7, 2),
	SPLIT_SLICE(40, 50, 1, 8, 0),	   SPLIT_SLICE(50, 60, 0, 7, 1),
	SPLIT_SLICE(60, 67, NO_CAP, 0, 0),
};

static struct pic_lane split_threads[] = {
	{.tid = 5, .name = "w", .end_ns = 67, .slices = split_slices, .n_slices = 5}};

static const struct pic_slice label_slices[] = {{.end_ns = 1, .tso = 7}};
static struct pic_lane split_haskell[] = {
	{.tso = 7, .name = "main", .end_ns = 1, .slices = label_slices, .n_slices = 1}};

static const struct pic_target split_target = {
	.pid = 9,
	.comm = "split",
	.exe = "/split",
	.build_id = "",
	.lanes = {[LANE_THREAD] = LANES(split_threads), [LANE_HASKELL] = LANES(split_haskell)},
};

static const struct pic_stack split_stacks[] = {{0}, STACK(F_MAIN)};

static const struct sketch split = {
	.session = {.version = "1", .mode = "pid", .end_ns = 67},
	.targets = &split_target,
	.n_targets = 1,
	.frames = service_frames,
	.n_frames = ARRAY_SIZE(service_frames),
	.stacks = split_stacks,
	.n_stacks = ARRAY_SIZE(split_stacks),
};

/* The account has one row of 100 ns for what the slices show in five parts of 67 ns. */
static Otlp__ExportRequest *render_split(uint64_t ns, uint64_t samples)
{
	struct picture *pic = kit_picture(&split, NULL);
	struct pic_lane *lane = (struct pic_lane *)picture__target(pic, 0)->lanes[LANE_THREAD].v;
	struct pic_row *row = (struct pic_row *)lane->rows;
	Otlp__ExportRequest *r;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	row->ns = ns;
	row->samples = samples;
	lane->n_rows = 1;
	assert_non_null(out);
	assert_int_equal(export_otlp.write(out, pic, &plain), 0);
	assert_int_equal(fclose(out), 0);
	r = unzip_request(text, len);
	free(text);
	picture__free(pic);
	return r;
}

static int64_t split_sum(const Otlp__ExportRequest *r, const char *type, int64_t cap,
			 const char *label)
{
	const Otlp__Profile *p = profile_of(r, 0, type);
	int64_t sum = 0;

	for (size_t i = 0; p && i < p->n_samples; i++)
		if (number_of(r, p->samples[i], "ghc.capability") == cap &&
		    !strcmp(text_of(r, p->samples[i], "ghc.thread.label"), label))
			sum += p->samples[i]->values[0];
	return sum;
}

static void test_division(void **state)
{
	Otlp__ExportRequest *r = render_split(6700, 8);

	(void)state;
	check_all(r);
	assert_int_equal(split_sum(r, "cpu", 0, "main"), 2000);
	assert_int_equal(split_sum(r, "cpu", 1, "main"), 3000);
	assert_int_equal(split_sum(r, "cpu", 1, ""), 1000);
	assert_int_equal(split_sum(r, "cpu", -1, ""), 700);
	assert_int_equal(split_sum(r, "samples", 0, "main"), 4);
	assert_int_equal(split_sum(r, "samples", 1, "main"), 4);
	otlp__export_request__free_unpacked(r, NULL);
}

/* Whatever is divided, the sum stays what it was. */
static void test_division_is_exact(void **state)
{
	static const uint64_t all[] = {1, 2, 3, 66, 101, 997, UINT64_C(0x0fffffffffffffff)};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		Otlp__ExportRequest *r = render_split(all[i], all[i] / 2 + 1);

		assert_int_equal(sum_of(r, 0, "cpu", NULL, ""), all[i]);
		assert_int_equal(sum_of(r, 0, "samples", NULL, ""), all[i] / 2 + 1);
		otlp__export_request__free_unpacked(r, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_pyroscope_takes_all),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_resource),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_division_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

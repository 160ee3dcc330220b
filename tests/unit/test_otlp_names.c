/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names in OTLP profiles: the process as a resource, and the code. */
#include "test_otlp_kit.h"

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

/* A service is named without its suffix, and with the manager that it belongs to. */
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

static void check_fib(const Otlp__ExportRequest *r, const Otlp__Location *fib)
{
	const Otlp__Function *function =
		r->dictionary->function_table[fib->lines[0]->function_index];
	const Otlp__Mapping *exe = r->dictionary->mapping_table[fib->mapping_index];

	assert_string_equal(name_of(r, fib), "Data.Fib.fib");
	assert_string_equal(type_of(r, fib), "haskell");
	assert_int_equal(fib->lines[0]->line, 7);
	assert_string_equal(string_of(r, function->filename_strindex), "src/Data/Fib.hs");
	assert_string_equal(file_mapped(r, fib), service_target.exe);
	assert_string_equal(attribute(r, exe->attribute_indices, exe->n_attribute_indices,
				      "process.executable.build_id.gnu")
				    ->string_value,
			    service_target.build_id);
}

static void test_frames(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);
	const Otlp__Profile *cpu = profile_of(r, 0, "cpu"), *safe = profile_of(r, 0, "off_cpu");
	size_t running = 0, asleep = 0;

	(void)state;
	for (size_t i = 0; i < cpu->n_samples && !running; i++)
		if (!strcmp(text_of(r, cpu->samples[i], "ghc.state"), "haskell")) {
			/* the leaf comes first: the state, then the function */
			assert_string_equal(name_of(r, leaf(r, cpu->samples[i], 0)), "[Haskell]");
			assert_string_equal(type_of(r, leaf(r, cpu->samples[i], 0)), "synthetic");
			check_fib(r, leaf(r, cpu->samples[i], 1));
			running++;
		}
	assert_int_equal(running, 1);
	for (size_t i = 0; i < safe->n_samples; i++) {
		const Otlp__Location *sleep;

		if (strcmp(text_of(r, safe->samples[i], "ghc.state"), "safe_call_blocked") != 0)
			continue;
		sleep = leaf(r, safe->samples[i], 1);
		assert_string_equal(name_of(r, sleep), "usleep");
		assert_string_equal(type_of(r, sleep), "native");
		assert_string_equal(file_mapped(r, sleep), "libc.so.6");
		asleep++;
	}
	assert_true(asleep > 0);
	otlp__export_request__free_unpacked(r, NULL);
}

static bool is_mapped(const Otlp__ExportRequest *r, const char *path)
{
	for (size_t i = 0; i < r->dictionary->n_mapping_table; i++) {
		const Otlp__Mapping *m = r->dictionary->mapping_table[i];

		if (!strcmp(r->dictionary->string_table[m->filename_strindex], path))
			return true;
	}
	return false;
}

/* A function known from calls alone has its library's base name. If that library is known from
 * other code, it is the same one; if several have that name, it may be any of them. */
static void test_library_of_calls(void **state)
{
#define AT(file, id)                                                                               \
	{                                                                                          \
		.address = 0x7f0000000100, .start = 0x7f0000000000, .end = 0x7f0000010000,         \
		.path = (file), .build_id = (id)                                                   \
	}
	struct pic_place places[ARRAY_SIZE(service_frames)] = {
		[F_HASH] = AT("/lib/libc.so.6", "ab01"),
		[F_SERVE] = AT("/opt/libother.so", ""),
	};
	struct sketch one = service;
	Otlp__ExportRequest *r;

	(void)state;
	one.places = places;
	r = render(&one, &plain);
	assert_true(is_mapped(r, "/lib/libc.so.6"));
	assert_false(is_mapped(r, "libc.so.6"));
	otlp__export_request__free_unpacked(r, NULL);
	places[F_SERVE] = (struct pic_place)AT("/opt/libc.so.6", "cd02");
	r = render(&one, &plain);
	assert_true(is_mapped(r, "libc.so.6"));
	otlp__export_request__free_unpacked(r, NULL);
}

/* Text from other people is sent as text that is safe to show. */
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

/* A name that becomes too long by its escapes is cut between characters: a collector refuses a
 * whole request with a string that is not UTF-8. */
static void test_long_name(void **state)
{
	static char name[STRTAB_MAX_STRING] = "\x01";
	static struct pic_frame frames[ARRAY_SIZE(hostile_frames)];
	struct sketch sketch = hostile;
	Otlp__ExportRequest *r;
	size_t longest = 0;

	(void)state;
	for (size_t i = 1; i + 2 < sizeof(name); i += 2)
		memcpy(name + i, "é", 2);
	memcpy(frames, hostile_frames, sizeof(frames));
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i].name = name;
	sketch.frames = frames;
	r = render(&sketch, &plain);
	for (size_t i = 0; i < r->dictionary->n_string_table; i++) {
		char *clean = utf8__clean(r->dictionary->string_table[i]);

		assert_string_equal(r->dictionary->string_table[i], clean);
		longest = MAX(longest, strlen(clean));
		free(clean);
	}
	assert_in_range(longest, STRTAB_MAX_STRING - 3, STRTAB_MAX_STRING);
	otlp__export_request__free_unpacked(r, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resource),     cmocka_unit_test(test_services),
		cmocka_unit_test(test_frames),	     cmocka_unit_test(test_library_of_calls),
		cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_long_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

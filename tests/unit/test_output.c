/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where output goes, and what it may replace. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "output/places_priv.h"
#include "test_export_pictures.h"

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

static void assert_place(const char *to, const struct export_format *const *formats, size_t n,
			 const char *want)
{
	struct output_opts opts = {.n_formats = n, .path = to};
	char path[PATH_MAX];

	for (size_t i = 0; i < n; i++)
		opts.formats[i] = formats[i];
	assert_int_equal(place__choose(&opts, formats[0], n, "made-of-names", path), 0);
	assert_string_equal(path, want);
}

static void test_names(void **state)
{
	const struct export_format *const json[] = {&export_json, &export_folded};
	const struct export_format *const chrome[] = {&export_chrome, &export_json};
	const struct export_format *const text[] = {&export_text, &export_json};
	const struct export_format *const pprof[] = {&export_pprof};

	(void)state;
	assert_place("precious", json, 1, "precious.json");
	assert_place("one.json", json, 1, "one.json");
	assert_place("one.json", json, 2, "one.json");
	assert_place("one.json", chrome, 2, "one.trace.json");
	assert_place("one.json", chrome, 1, "one.trace.json");
	assert_place("one.speedscope.json", json, 2, "one.json");
	assert_place("my.pb.gz", pprof, 1, "my.pb.gz");
	assert_place("v1.2", pprof, 1, "v1.2.pb.gz");
	assert_place(".json", json, 2, ".json.json");
	assert_place("d/.json", json, 2, "d/.json.json");
	assert_place("/", json, 2, "/made-of-names.json");
	assert_place("nowhere/", json, 1, "nowhere/made-of-names.json");
	assert_place(NULL, json, 2, "made-of-names.json");
	assert_place("/dev/null", json, 1, "/dev/null");
	assert_place("-", json, 1, "-");
	assert_place(NULL, text, 1, "-");
	assert_place("report", text, 2, "-");
	assert_place("report", text, 1, "report.txt");
}

static void test_too_long(void **state)
{
	char path[PATH_MAX], long_name[PATH_MAX];
	struct output_opts opts = {.formats = {&export_json}, .n_formats = 1, .path = long_name};

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(place__choose(&opts, &export_json, 1, "", path), -ENAMETOOLONG);
}

/* ── what is there ───────────────────────────────────────────────────────────────────────── */

static const struct export_format *const formats[] = {
	&export_speedscope, &export_folded, &export_json, &export_text,
	&export_chrome,	    &export_pprof,  &export_html};

static void write_file(const char *path, const char *bytes, size_t len)
{
	FILE *out = fopen(path, "w");

	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, len, out), len);
	assert_int_equal(fclose(out), 0);
}

static void test_what_may_be_replaced(void **state)
{
	static const char *const precious[] = {"my notes\n", "{\"mine\": 1}\n",
					       "\x7f"
					       "ELF",
					       "<html>;"};
	char path[] = "/tmp/safescoped-test-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t len;
		const struct export_opts opts = {.weight = WEIGHT_WALL};
		char *ours = kit_render(formats[i]->name, &service, &opts, &len);

		write_file(path, "", 0);
		assert_int_equal(output__may_replace(path, formats[i]), 0);
		write_file(path, ours, len);
		for (size_t k = 0; k < ARRAY_SIZE(formats); k++)
			assert_int_equal(output__may_replace(path, formats[k]),
					 k == i ? 0 : -EEXIST);
		assert_int_equal(output__may_replace(path, NULL), -EEXIST);
		free(ours);
		for (size_t k = 0; k < ARRAY_SIZE(precious); k++) {
			write_file(path, precious[k], strlen(precious[k]));
			assert_int_equal(output__may_replace(path, formats[i]), -EEXIST);
		}
	}
	unlink(path);
	assert_int_equal(output__may_replace(path, &export_json), 0);
}

/* ── what counts bytes ───────────────────────────────────────────────────────────────────── */

/* Flame graphs of bytes count bytes, and there is none if no allocation is known. */
static void test_bytes(void **state)
{
	char dir[] = "/tmp/safescoped-test-XXXXXX", stem[64], path[64];
	struct output_opts opts = {
		.formats = {&export_folded}, .n_formats = 1, .path = stem, .weight = WEIGHT_ALLOC};

	(void)state;
	assert_non_null(strstr(place__hint(&export_folded, WEIGHT_ALLOC), "--countname bytes"));
	assert_non_null(strstr(place__hint(&export_folded, WEIGHT_SAMPLES), "samples"));
	assert_non_null(strstr(place__hint(&export_folded, WEIGHT_CPU), "--countname µs"));
	assert_non_null(mkdtemp(dir));
	snprintf(stem, sizeof(stem), "%s/p", dir);
	snprintf(path, sizeof(path), "%s/p.folded", dir);
	for (unsigned known = 0; known < 2; known++) {
		struct pic_target target = service_target;
		struct sketch sketch = service;
		struct outputs *outputs;
		struct picture *pic;

		target.alloc.known = known;
		sketch.targets = &target;
		pic = kit_picture(&sketch, NULL);
		assert_int_equal(outputs__plan(&opts, "x", 1, &outputs), 0);
		assert_int_equal(outputs__write(outputs, pic, NULL, NULL), 0);
		assert_int_equal(access(path, F_OK), known ? 0 : -1);
		outputs__free(outputs);
		picture__free(pic);
	}
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_what_may_be_replaced),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

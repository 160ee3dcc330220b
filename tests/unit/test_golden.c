/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real sessions, kept in tests/data/capture/, must give the same output as when it was last
 * reviewed: the folded stacks in full, the other formats by a CRC in `digests`. With
 * SAFESCOPED_UPDATE=1 in the environment both are rewritten: read the diff before committing it.
 * tests/data/capture/record makes fresh captures if the format of records has changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/base.h"
#include "capture/capture.h"
#include "export/export.h"

static const char *const captures[] = {"calls", "centres"};
/* without pprof, whose bytes depend on the zlib that compresses them */
static const char *const formats[] = {"speedscope", "chrome", "json", "text"};

static FILE *open_data(const char *name, const char *suffix, const char *mode)
{
	const char *slash = strrchr(__FILE__, '/');
	char path[512];

	snprintf(path, sizeof(path), "%.*s/../data/capture/%s%s",
		 slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".", name, suffix);
	return fopen(path, mode);
}

static char *render(const char *format, const struct picture *pic, size_t *ret_len)
{
	const struct export_format *f = export__find(format, strlen(format));
	const struct export_opts opts = {.weight = WEIGHT_WALL};
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	assert_non_null(f);
	assert_non_null(out);
	assert_int_equal(f->write(out, pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

static struct replay *replay(const char *name)
{
	FILE *in = open_data(name, "", "r");
	struct replay *r;
	int err;

	assert_non_null(in);
	err = replay__read(in, name, NULL, &r);
	fclose(in);
	if (err)
		fail_msg("%s cannot be replayed: record it anew by tests/data/capture/record",
			 name);
	assert_true(replay__notes(r)->complete);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	return r;
}

/* Returns the file's content; when updating, writes `text` to the file first. */
static char *expected(const char *name, const char *suffix, const char *text, size_t len)
{
	char *have = calloc(1, len + 65536);
	FILE *file;

	assert_non_null(have);
	if (getenv("SAFESCOPED_UPDATE")) {
		file = open_data(name, suffix, "w");
		assert_non_null(file);
		assert_int_equal(fwrite(text, 1, len, file), len);
		assert_int_equal(fclose(file), 0);
	}
	file = open_data(name, suffix, "r");
	assert_non_null(file);
	assert_true(fread(have, 1, len + 65535, file) > 0);
	fclose(file);
	return have;
}

static void test_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(captures); i++) {
		struct replay *r = replay(captures[i]);
		size_t len;
		char *got = render("folded", replay__picture(r), &len);
		char *want = expected(captures[i], ".folded", got, len);

		assert_true(len > 200);
		assert_string_equal(got, want);
		free(want);
		free(got);
		replay__free(r);
	}
}

static void test_digests(void **state)
{
	struct buf digests;
	char *want;

	(void)state;
	buf__init(&digests, 65536);
	for (size_t i = 0; i < ARRAY_SIZE(captures); i++) {
		struct replay *r = replay(captures[i]);

		for (size_t k = 0; k < ARRAY_SIZE(formats); k++) {
			size_t len;
			char *text = render(formats[k], replay__picture(r), &len);

			buf__addf(&digests, "%s %s %zu %08lx\n", captures[i], formats[k], len,
				  crc32(0, (const void *)text, (uInt)len));
			free(text);
		}
		replay__free(r);
	}
	want = expected("digests", "", digests.data, digests.len);
	assert_string_equal(digests.data, want);
	free(want);
	buf__free(&digests);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of options, and the lines of a configuration file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/config.h"
#include "cli/options_priv.h"
#include "temp_dir.h"

static bool by_itself(int key)
{
	/* handled by the command line's parser */
	return key == OPT_CHECK_CONFIG || key == OPT_COMPLETION || key == 'h';
}

/* Every option is handled by some source file, whatever its value. */
static void test_every_row_is_handled(void **state)
{
	static struct options o;

	(void)state;
	for (const struct option_row *row = option_rows; row->doc; row++) {
		struct option_input in = {.o = &o};

		memset(&o, 0, sizeof(o));
		if (row->key && !by_itself(row->key))
			assert_int_not_equal(options__set(&in, row->key, row->arg ? "" : NULL),
					     -ENOENT);
		buf__free(&in.wrong);
	}
}

static void test_rows_are_unique(void **state)
{
	(void)state;
	for (const struct option_row *row = option_rows; row->doc; row++) {
		const struct option_row *first = row->key ? option_table__of_key(row->key) : row;
		char doc[64];

		assert_non_null(first);
		/* an alias of the first row */
		if (first != row) {
			snprintf(doc, sizeof(doc), "as --%s", first->name);
			assert_string_equal(row->doc, doc);
			assert_string_equal(row->arg, first->arg);
			assert_int_equal(row->flags, first->flags);
		}
		if (option_table__is_long(row))
			assert_ptr_equal(option_table__find(row->name), row);
	}
	assert_null(option_table__find("nosuch"));
	assert_null(option_table__find(""));
}

static void test_defaults_are_right(void **state)
{
	static struct options o;

	(void)state;
	for (const struct option_row *row = option_rows; row->doc; row++) {
		struct option_input in = {.o = &o};

		if (row->def)
			assert_int_equal(options__set(&in, row->key, row->def), 0);
		buf__free(&in.wrong);
	}
}

static void lines_of(const char *text, const char *const want[][2], size_t n)
{
	struct config *c = NULL;

	assert_int_equal(config__parse(text, strlen(text), &c), 0);
	assert_int_equal(c->n, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(c->lines[i].name, want[i][0]);
		if (want[i][1])
			assert_string_equal(c->lines[i].value, want[i][1]);
		else
			assert_null(c->lines[i].value);
	}
	config__free(c);
}

static void test_lines(void **state)
{
	static const char *const want[][2] = {
		{"a", NULL}, {"b", "1 2"}, {"c", "=d"},	 {"e", "f=g"},
		{"h", ""},   {"", "i"},	   {"j", "# k"},
	};

	(void)state;
	lines_of("a\n b  1 2 \r\n#x\n\n c = =d\ne=f=g\nh =\n=i\nj # k", want, ARRAY_SIZE(want));
	lines_of("", NULL, 0);
	lines_of("\n\n", NULL, 0);
}

static void test_line_numbers(void **state)
{
	struct config *c = NULL;

	(void)state;
	assert_int_equal(config__parse("\na\n\n#\nb", 7, &c), 0);
	assert_int_equal(c->n, 2);
	assert_int_equal(c->lines[0].number, 2);
	assert_int_equal(c->lines[1].number, 5);
	config__free(c);
}

static void test_limits(void **state)
{
	struct config *c = NULL;
	char *text = malloc(CONFIG_MAX_BYTES + 1);

	(void)state;
	assert_non_null(text);
	memset(text, '#', CONFIG_MAX_BYTES + 1);
	assert_int_equal(config__parse(text, CONFIG_MAX_BYTES, &c), 0);
	config__free(c);
	assert_int_equal(config__parse(text, CONFIG_MAX_BYTES + 1, &c), -EFBIG);
	for (size_t i = 0; i < CONFIG_MAX_LINES + 1; i++)
		memcpy(text + 2 * i, "a\n", 2);
	assert_int_equal(config__parse(text, 2UL * CONFIG_MAX_LINES, &c), 0);
	config__free(c);
	assert_int_equal(config__parse(text, 2UL * CONFIG_MAX_LINES + 2, &c), -EFBIG);
	assert_int_equal(config__parse("a\0b", 3, &c), -EILSEQ);
	free(text);
}

/* An option that only a session with an end can have shows that a configuration is no daemon's; a
 * log alone may be from another host. */
static void test_daemon(void **state)
{
	static const struct {
		const char *text;
		bool daemon, elsewhere;
	} files[] = {
		{"format json\n", true, false},	   {"eventlog none\n", true, false},
		{"eventlog auto\n", false, false}, {"duration 60\n", false, false},
		{"save x.sscap\n", false, false},  {"eventlog x.eventlog\n", false, true},
	};
	char path[96];

	(void)state;
	snprintf(path, sizeof(path), "%s/conf", dir);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct options *o = NULL;
		struct buf wrong = {};
		FILE *out = fopen(path, "w");

		assert_non_null(out);
		assert_true(fputs(files[i].text, out) >= 0);
		assert_int_equal(fclose(out), 0);
		assert_int_equal(options__read_config(path, &wrong, &o), 0);
		assert_int_equal(o->window_ns != 0, files[i].daemon);
		assert_int_equal(o->output.of_this_host, !files[i].elsewhere);
		options__free(o);
		buf__free(&wrong);
	}
}

/* A list may have blanks after its commas, as people write it in a file. */
static void test_blanks_in_lists(void **state)
{
	char path[96];
	struct options *o = NULL;
	struct buf wrong = {};
	FILE *out;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf", dir);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs("format json , pprof\nlanes thread,\tcapability\n", out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(options__read_config(path, &wrong, &o), 0);
	assert_int_equal(o->output.n_formats, 2);
	assert_int_equal(o->output.lanes, 1U << LANE_THREAD | 1U << LANE_CAPABILITY);
	options__free(o);
	buf__free(&wrong);
	/* a part that is missing is wrong all the same */
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs("format json, , pprof\n", out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(options__read_config(path, &wrong, &o), -EINVAL);
	buf__free(&wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_row_is_handled),
		cmocka_unit_test(test_rows_are_unique),
		cmocka_unit_test(test_defaults_are_right),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_line_numbers),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_daemon),
		cmocka_unit_test(test_blanks_in_lists),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

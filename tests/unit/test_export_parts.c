/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared parts of the exporters: safe text, readable numbers, tables, sums by stack, carriers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "export/carriers.h"
#include "export/sums.h"
#include "test_export_kit.h"

/* ── text ────────────────────────────────────────────────────────────────────────────────── */

static void test_utf8_bounds(void **state)
{
	static const struct {
		const char *text;
		uint32_t cp; /* first code point */
	} cases[] = {
		{"", 0},
		{"\x7f", 0x7f},
		{"\xc2\x80", 0x80},
		{"\xdf\xbf", 0x7ff},
		{"\xe0\xa0\x80", 0x800},
		{"\xed\x9f\xbf", 0xd7ff},
		{"\xee\x80\x80", 0xe000},
		{"\xef\xbf\xbf", NO_CAP},
		{"\xf0\x90\x80\x80", 0x10000},
		{"\xf4\x8f\xbf\xbf", 0x10ffff},
		/* lone, overlong, surrogate, too high, truncated */
		{"\x80", UTF8_REPLACEMENT},
		{"\xc1\xbf", UTF8_REPLACEMENT},
		{"\xe0\x9f\xbf", UTF8_REPLACEMENT},
		{"\xed\xa0\x80", UTF8_REPLACEMENT},
		{"\xf0\x8f\xbf\xbf", UTF8_REPLACEMENT},
		{"\xf4\x90\x80\x80", UTF8_REPLACEMENT},
		{"\xf5\x80\x80\x80", UTF8_REPLACEMENT},
		{"\xc2", UTF8_REPLACEMENT},
		{"\xe2\x82", UTF8_REPLACEMENT},
		{"\xf0\x9f\x98", UTF8_REPLACEMENT},
		{"\xff", UTF8_REPLACEMENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *s = cases[i].text;

		assert_int_equal(utf8__next(&s), cases[i].cp);
		if (cases[i].cp && cases[i].cp != UTF8_REPLACEMENT) {
			char out[4];

			assert_int_equal(*s, '\0');
			assert_int_equal(text__encode(cases[i].cp, out), strlen(cases[i].text));
			assert_memory_equal(out, cases[i].text, strlen(cases[i].text));
		} else if (cases[i].cp) {
			assert_ptr_equal(s, cases[i].text + 1);
		}
	}
}

/* All pairs of bytes, through the writer and back through an independent parser. */
static void test_json_strings(void **state)
{
	(void)state;
	for (unsigned pair = 0x0101; pair <= NO_CAP; pair++) {
		char in[3] = {(char)(pair >> 8), (char)pair, '\0'}, *text = NULL, *clean;
		cJSON *parsed;
		size_t len;
		FILE *out;

		if (!in[0] || !in[1])
			continue;
		out = open_memstream(&text, &len);
		json__put_string(out, in);
		fclose(out);
		parsed = cJSON_Parse(text);
		clean = utf8__clean(in);
		assert_non_null(clean);
		assert_true(cJSON_IsString(parsed));
		assert_string_equal(parsed->valuestring, clean);
		for (size_t i = 0; i < len; i++)
			assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
		cJSON_Delete(parsed);
		free(clean);
		free(text);
	}
}

/* ── numbers ─────────────────────────────────────────────────────────────────────────────── */

static void test_durations(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 s"},
		{1, "1 ns"},
		{999, "999 ns"},
		{1000, "1.00 µs"},
		{9994, "9.99 µs"},
		{9996, "10.0 µs"},
		{99960, "100 µs"},
		{999499, "999 µs"},
		{999500, "1.00 ms"},
		{1234567, "1.23 ms"},
		{999499999, "999 ms"},
		{999500000, "1.00 s"},
		{59999999999, "60.0 s"},
		{599999999999, "600 s"},
		{600000000000, "10 min 0 s"},
		{5999999999999, "99 min 59 s"},
		{6000000000000, "1 h 40 min"},
		{360000000000000, "4 d 4 h"},
		{UINT64_MAX, "213503 d 23 h"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(human__duration(cases[i].ns).s, cases[i].text);
}

static void test_counts(void **state)
{
	(void)state;
	assert_string_equal(human__count(0).s, "0");
	assert_string_equal(human__count(999).s, "999");
	assert_string_equal(human__count(1000).s, "1 000");
	assert_string_equal(human__count(UINT64_MAX).s, "18 446 744 073 709 551 615");
	assert_string_equal(human__bytes(33554432).s, "33.6 MB");
	assert_string_equal(human__bytes(999).s, "999 B");
	assert_true(human__percent(1, 0) == 0);
	assert_true(human__percent(1, 4) == 25);
	assert_int_equal(human__whole(2.75), 2);
	assert_int_equal(human__whole(-1), 0);
	assert_int_equal(human__whole(0.0 / 0.0), 0);
	assert_int_equal(human__whole(1e300), 1000000000000000000);
	assert_int_equal(human__per_second(5, 2000000000), 2);
	assert_int_equal(human__per_second(5, 0), 0);
	assert_int_equal(human__per_second(UINT64_MAX, 1), 1000000000000000000);
}

/* ── tables ──────────────────────────────────────────────────────────────────────────────── */

static char *print_table(struct table *table, unsigned width)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(table__print(table, out, width, false), 0);
	fclose(out);
	table__free(table);
	return text;
}

static struct table *small_table(void)
{
	static const struct table_column columns[] = {{"name", COL_FLEX, NULL, 0},
						      {"never", COL_LEFT, NULL, 0},
						      {"n", COL_RIGHT, NULL, 0}};
	struct table *table;

	assert_int_equal(table__new(columns, ARRAY_SIZE(columns), &table), 0);
	table__cell(table, "Data.Map.Internal.insertWithKey");
	table__cell(table, "");
	table__cell(table, "1");
	table__cell(table, "λ\x1b");
	table__cell(table, "");
	table__cellf(table, "%d", 22);
	return table;
}

static void test_table(void **state)
{
	char *text = print_table(small_table(), 80);

	(void)state;
	assert_string_equal(text, "  name                              n\n"
				  "  Data.Map.Internal.insertWithKey   1\n"
				  "  λ\\u{1b}                          22\n");
	free(text);
}

static void test_table_cut(void **state)
{
	char *text = print_table(small_table(), 26);

	(void)state;
	assert_string_equal(text, "  name                   n\n"
				  "  Data.Map.I…rtWithKey   1\n"
				  "  λ\\u{1b}               22\n");
	free(text);
	/* Too narrow for anything: names keep enough to be recognised. */
	text = print_table(small_table(), 3);
	assert_string_equal(text, "  name           n\n"
				  "  Data.M…thKey   1\n"
				  "  λ\\u{1b}       22\n");
	free(text);
}

/* The least useful columns are left out first, before names are cut too short, and a line lists
 * them. */
static void test_table_leaves_out(void **state)
{
	static const struct table_column columns[] = {
		{"name", COL_FLEX, NULL, 0},
		{"one", COL_RIGHT | COL_SPARE, "all of", 7},
		{"two", COL_RIGHT | COL_SPARE | COL_SAMPLED, "all of", 0},
		{"three", COL_RIGHT | COL_SPARE, "all of", 8}};
	struct table *t;
	char *text;

	(void)state;
	assert_int_equal(table__new(columns, ARRAY_SIZE(columns), &t), 0);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		table__cell(t, c ? "12345" : "Data.Map.Internal.insertWithKey");
	text = print_table(t, 36);
	assert_string_equal(text, "                        ── all of ──\n"
				  "  name                    one  three\n"
				  "  Data.Map.I…rtWithKey  12345  12345\n"
				  "  no room for: all of ~two\n");
	free(text);
}

/* A group title above a single narrow column is not cut. */
static void test_table_group_of_one(void **state)
{
	static const struct table_column columns[] = {{"name", COL_LEFT, NULL, 0},
						      {"one", COL_RIGHT, "on CPU", 0},
						      {"two", COL_RIGHT | COL_SPARE, "on CPU", 1},
						      {"n", COL_RIGHT, NULL, 0}};
	struct table *t;
	char *text;

	(void)state;
	assert_int_equal(table__new(columns, ARRAY_SIZE(columns), &t), 0);
	for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
		table__cell(t, c ? "1" : "thread");
	text = print_table(t, 20);
	assert_string_equal(text, "          on CPU\n"
				  "  name       one  n\n"
				  "  thread       1  1\n"
				  "  no room for: on CPU two\n");
	free(text);
}

/* ── sums ────────────────────────────────────────────────────────────────────────────────── */

static void test_sums(void **state)
{
	struct sums sums = {0};
	uint64_t expected[2][7][WEIGHTS] = {0};

	(void)state;
	for (uint32_t i = 0; i < 5000; i++) {
		const struct sum sum = {i / 3 % 2, i * 7919 % 7, {i, i % 5, 1}};

		assert_int_equal(sums__add(&sums, &sum), 0);
		for (unsigned w = 0; w < WEIGHTS; w++)
			expected[sum.owner][sum.stack][w] += sum.by[w];
	}
	sums__merge(&sums);
	assert_int_equal(sums.n, 14);
	for (size_t i = 0; i < sums.n; i++) {
		assert_int_equal(sums.v[i].owner, i / 7);
		assert_int_equal(sums.v[i].stack, i % 7);
		assert_memory_equal(sums.v[i].by, expected[i / 7][i % 7], sizeof(expected[0][0]));
	}
	sums__free(&sums);
	sums__merge(&sums);
	assert_int_equal(sums.n, 0);
}

static int cmp_mod_3(uint32_t a, uint32_t b, void *ctx)
{
	(void)ctx;
	return (a + 1) % 3 < (b + 1) % 3 ? -1 : (a + 1) % 3 > (b + 1) % 3;
}

static void test_frame_numbers(void **state)
{
	uint32_t *map, distinct;

	(void)state;
	assert_int_equal(frames__number(7, cmp_mod_3, NULL, true, &map, &distinct), 0);
	assert_int_equal(distinct, 3);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(map[i], i % 3);
	free(map);
	assert_int_equal(frames__number(7, cmp_mod_3, NULL, false, &map, &distinct), 0);
	assert_int_equal(distinct, 3);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(map[i], (i + 1) % 3);
	free(map);
	assert_int_equal(frames__number(0, cmp_mod_3, NULL, true, &map, &distinct), 0);
	assert_int_equal(distinct, 0);
	free(map);
}

/* The line in a place, which may be a cost centre's. */
static void test_places(void **state)
{
	static const struct {
		const char *src, *file;
		uint32_t line;
	} cases[] = {
		{"src/Data/Fib.hs:7", "src/Data/Fib.hs", 7},
		{"Zoo/Ops.hs:7:1-25", "Zoo/Ops.hs", 7},
		{"Zoo/Ops.hs:7:12", "Zoo/Ops.hs", 7},
		{"Zoo/Ops.hs:(49,1)-(52,73)", "Zoo/Ops.hs", 49},
		{"a:b/C.hs:3", "a:b/C.hs", 3},
		{"src/Data/Fib.hs", "src/Data/Fib.hs", 0},
		{"<entire-module>", "<entire-module>", 0},
		{"x:99999999999", "x:99999999999", 0},
		{"12:x:", "12:x:", 0},
		{"x:(", "x:(", 0},
		{":", ":", 0},
		{":3", "", 3},
		{"", "", 0},
	};
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(src__line(cases[i].src, &len), cases[i].line);
		assert_int_equal(len, strlen(cases[i].file));
	}
}

/* Every cause that the kernel side can report has a name and a title. */
static void test_causes(void **state)
{
	(void)state;
	assert_null(broken__name(0));
	for (unsigned cause = 1; cause <= 9; cause++) {
		assert_non_null(broken__name(cause));
		assert_non_null(broken__title(cause));
	}
	assert_null(broken__name(PIC_CAUSES));
	assert_null(broken__title(UINT32_MAX));
}

/* ── carriers ────────────────────────────────────────────────────────────────────────────── */

/* A lane's slices by state and stack, subdivided by capability and Haskell thread. */
static void test_carriers(void **state)
{
	static const struct pic_slice slices[] = {
		{.start_ns = 10,
		 .end_ns = 30,
		 .samples = 2,
		 .tso = 7,
		 .stack = 4,
		 .cap = 1,
		 .state = 2},
		{.start_ns = 30, .end_ns = 35, .tso = 7, .stack = 4, .cap = 0, .state = 2},
		{.start_ns = 35, .end_ns = 36, .samples = 1, .stack = 4, .cap = NO_CAP, .state = 3},
		{.start_ns = 40,
		 .end_ns = 47,
		 .samples = 1,
		 .tso = 7,
		 .stack = 4,
		 .cap = 1,
		 .state = 2},
		{.start_ns = 50, .end_ns = 52, .tso = 9, .stack = 4, .cap = 1, .state = 2},
		{.start_ns = 60, .end_ns = 61, .tso = 9, .stack = 5, .cap = 1, .state = 2},
	};
	const struct pic_lane lane = {.slices = (struct pic_slice *)slices,
				      .n_slices = ARRAY_SIZE(slices)};
	const struct pic_lane idle = {0};
	struct carriers carriers;
	const struct carrier *its;
	size_t n;

	(void)state;
	assert_int_equal(carriers__of(&lane, &carriers), 0);
	its = carriers__find(&carriers, 2, 4, &n);
	assert_int_equal(n, 3);
	assert_true(its[0].cap == 0 && its[0].tso == 7 && its[0].ns == 5 && its[0].samples == 0);
	assert_true(its[1].cap == 1 && its[1].tso == 7 && its[1].ns == 27 && its[1].samples == 3);
	assert_true(its[2].cap == 1 && its[2].tso == 9 && its[2].ns == 2);
	its = carriers__find(&carriers, 3, 4, &n);
	assert_true(n == 1 && its->cap == NO_CAP && its->tso == 0 && its->ns == 1);
	assert_null(carriers__find(&carriers, 3, 5, &n));
	assert_int_equal(n, 0);
	carriers__free(&carriers);
	carriers__free(&carriers);

	assert_int_equal(carriers__of(&idle, &carriers), 0);
	assert_null(carriers__find(&carriers, 2, 4, &n));
	assert_int_equal(n, 0);
	carriers__free(&carriers);
}

/* Shares add up to the whole even if the product does not fit into 64 bits. */
static void test_carriers_divide(void **state)
{
	uint64_t whole = UINT64_MAX - 5, all = UINT64_MAX - 1, third = all / 3;
	uint64_t a = carriers__upto(whole, third, all), b = carriers__upto(whole, 2 * third, all);

	(void)state;
	assert_true(a > whole / 3 - 2 && a <= whole / 3);
	assert_true(b > a && b - a > whole / 3 - 2);
	assert_true(carriers__upto(whole, all, all) == whole);
	assert_int_equal(carriers__upto(whole, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8_bounds),
		cmocka_unit_test(test_json_strings),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_cut),
		cmocka_unit_test(test_table_leaves_out),
		cmocka_unit_test(test_table_group_of_one),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_frame_numbers),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_carriers),
		cmocka_unit_test(test_carriers_divide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

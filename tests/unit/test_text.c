/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text that is safe to show: what is escaped and what is not, compared with lists that are not the
 * program's own, and with glibc's decoder and character classes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include <cmocka.h>

#include "base/base.h"

static size_t put_utf8(char out[5], uint32_t cp)
{
	mbstate_t state = {0};
	size_t n = wcrtomb(out, (wchar_t)cp, &state);

	if (n != (size_t)-1)
		out[n] = '\0';
	return n;
}

static void assert_escaped(const char *text, const char *want)
{
	char *got = text__escaped(text);

	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void test_what_a_terminal_obeys(void **state)
{
	(void)state;
	assert_escaped("", "");
	assert_escaped("plain \\ text", "plain \\ text");
	assert_escaped("a\tb\nc\033[31m\x7f", "a\\u{9}b\\u{a}c\\u{1b}[31m\\u{7f}");
	/* 8-bit CSI: in UTF-8, and as a raw byte */
	assert_escaped("\xc2\x9b"
		       "31m",
		       "\\u{9b}31m");
	assert_escaped("\x9b"
		       "31m",
		       "\\x9b31m");
	assert_escaped("\xff\xc0\xaf\xed\xa0\x80", "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
	assert_escaped("cut \xe2\x82", "cut \\xe2\\x82");
	assert_escaped("gpj.\xe2\x80\xae", "gpj.\\u{202e}");
	assert_escaped("\xf3\xa0\x81\x81", "\\u{e0041}");
	assert_escaped("\xc3\xa4 \xce\xbb \xe4\xb8\x80 \xf0\x9f\x98\x80",
		       "\xc3\xa4 \xce\xbb \xe4\xb8\x80 \xf0\x9f\x98\x80");
}

static void test_every_character(void **state)
{
	/* the list: bidirectional controls, zero width, separators */
	static const uint32_t bad[][2] = {{0x00, 0x1f},	    {0x7f, 0x9f},     {0x061c, 0x061c},
					  {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2060},
					  {0x2066, 0x2069}, {0xfeff, 0xfeff}};
	size_t hidden = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (uint32_t cp = bad[i][0]; cp <= bad[i][1]; cp++)
			assert_true(text__is_hidden(cp));
	for (uint32_t cp = 1; cp <= 0x10ffff; cp++) {
		char utf8[5], *shown;
		uint32_t decoded;
		size_t n = put_utf8(utf8, cp);

		if (n == (size_t)-1)
			continue;
		assert_int_equal(text__decode(utf8, n, &decoded), n);
		assert_int_equal(decoded, cp);
		assert_int_equal(text__decode(utf8, n - 1, &decoded), 0);
		if (iswcntrl((wint_t)cp))
			assert_true(text__is_hidden(cp));
		shown = text__escaped(utf8);
		assert_non_null(shown);
		if (text__is_hidden(cp)) {
			char *end;

			assert_memory_equal(shown, "\\u{", 3);
			assert_int_equal(strtoul(shown + 3, &end, 16), cp);
			assert_string_equal(end, "}");
			hidden++;
		} else {
			assert_string_equal(shown, utf8);
		}
		free(shown);
	}
	/* the alphabets are not hidden along with them */
	assert_true(hidden < 4300);
}

static void test_every_pair_of_bytes(void **state)
{
	(void)state;
	for (unsigned pair = 0x0101; pair <= 0xffff; pair++) {
		char in[3] = {(char)(pair >> 8), (char)pair, '\0'}, *shown;
		mbstate_t mb = {0};
		const char *s;
		wchar_t wide[32] = L"";
		size_t n;

		if (!in[0] || !in[1])
			continue;
		shown = text__escaped(in);
		assert_non_null(shown);
		s = shown;
		n = mbsrtowcs(wide, &s, ARRAY_SIZE(wide), &mb);
		assert_true(n != (size_t)-1);
		for (size_t i = 0; i < n; i++)
			assert_false(iswcntrl((wint_t)wide[i]));
		free(shown);
	}
}

/*
 * No buffer size cuts a character or an escape in half; the result is the length of the whole text.
 */
static void test_sizes(void **state)
{
	static const char text[] = "a\xce\xbb\x1b\xe2\x80\xae\xff.";
	static const char whole[] = "a\xce\xbb\\u{1b}\\u{202e}\\xff.";
	/* where each item ends: a, lambda, the escapes, the full stop */
	static const size_t ends[] = {0, 1, 3, 9, 17, 21, 22};
	char nul[16];

	(void)state;
	assert_int_equal(strlen(whole), 22);
	for (size_t size = 1; size < 40; size++) {
		size_t want = 0;
		char out[64];

		memset(out, 'x', sizeof(out));
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
			want = ends[i] < size ? ends[i] : want;
		assert_int_equal(text__escape(text, strlen(text), out, size), strlen(whole));
		assert_memory_equal(out, whole, want);
		assert_int_equal(out[want], '\0');
		for (size_t i = size; i < sizeof(out); i++)
			assert_int_equal(out[i], 'x');
	}
	assert_int_equal(text__escape(text, strlen(text), NULL, 0), strlen(whole));
	assert_int_equal(text__escape("", 0, NULL, 0), 0);
	/* the length counts, not a NUL */
	assert_int_equal(text__escape("a\0b", 3, nul, sizeof(nul)), 7);
	assert_string_equal(nul, "a\\u{0}b");
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(text__width("", 0), 0);
	assert_int_equal(text__width("abc", 2), 2);
	assert_int_equal(text__width("\xce\xbb.", 3), 2);
	assert_int_equal(text__width("\xe4\xb8\x80\xe4\xba\x8c", 6), 4);
	assert_int_equal(text__width("e\xcc\x81", 3), 1);
	assert_int_equal(text__width("\xff\xff", 2), 2);
}

static void test_shell_word(void **state)
{
	static const char *const words[][2] = {
		{"/usr/bin/a-b_c+1.2", "/usr/bin/a-b_c+1.2"},
		{"", "''"},
		{"a b", "'a b'"},
		{"$(id);~", "'$(id);~'"},
		{"it's", "'it'\\''s'"},
		{"µs", "'µs'"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char *word = text__shell_word(words[i][0]);

		assert_string_equal(word, words[i][1]);
		free(word);
	}
}

/* What is written is read back; what UTF-8 does not have is U+FFFD. */
static void test_encode(void **state)
{
	static const uint32_t wrong[] = {0xd800, 0xdfff, 0x110000, UINT32_MAX};
	char s[4];
	uint32_t back;

	(void)state;
	for (uint32_t cp = 0; cp < 0x110000; cp++) {
		size_t len = text__encode(cp, s);

		assert_int_equal(text__decode(s, len, &back), len);
		assert_int_equal(back, cp >= 0xd800 && cp < 0xe000 ? 0xfffd : cp);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(text__encode(wrong[i], s), 3);
		assert_memory_equal(s, "\xef\xbf\xbd", 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_what_a_terminal_obeys),
		cmocka_unit_test(test_every_character),
		cmocka_unit_test(test_every_pair_of_bytes),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_shell_word),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text: makes bytes written by others safe to show, and computes their width; file names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base.h"

/* "\u{10ffff}" */
#define ITEM_MAX 10

/*
 * Invisible code points in ascending order: Unicode's control characters, its separators of lines
 * and paragraphs, and Default_Ignorable_Code_Point (DerivedCoreProperties.txt), which includes the
 * zero-width characters and most of the bidirectional controls.
 */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{0x0000, 0x001f},   {0x007f, 0x009f},	{0x00ad, 0x00ad},   {0x034f, 0x034f},
	{0x061c, 0x061c},   {0x115f, 0x1160},	{0x17b4, 0x17b5},   {0x180b, 0x180f},
	{0x200b, 0x200f},   {0x2028, 0x202e},	{0x2060, 0x206f},   {0x3164, 0x3164},
	{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},	{0xffa0, 0xffa0},   {0xfff0, 0xfffb},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool text__is_hidden(uint32_t cp)
{
	if (cp >= 0x20 && cp < 0x7f)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(hidden) && hidden[i].first <= cp; i++)
		if (cp <= hidden[i].last)
			return true;
	return false;
}

/*
 * The bounds of the second byte are from Unicode's table 3-7: no overlong forms, no surrogates,
 * nothing above U+10FFFF.
 */
size_t text__decode(const char *s, size_t len, uint32_t *ret_cp)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)s;
	unsigned char lo = 0x80, hi = 0xbf;
	uint32_t cp;
	size_t n;

	if (!len)
		return 0;
	n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n > 1 && (p[0] < 0xc2 || p[0] > 0xf4))
		return 0;
	cp = p[0] & first_bits[n];
	lo = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : lo;
	hi = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : hi;
	for (size_t i = 1; i < n; i++, lo = 0x80, hi = 0xbf) {
		if (i == len || p[i] < lo || p[i] > hi)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	*ret_cp = cp;
	return n;
}

size_t text__encode(uint32_t cp, char out[4])
{
	static const unsigned char first_byte[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n;

	if ((cp >= 0xd800 && cp < 0xe000) || cp > 0x10ffff)
		cp = 0xfffd;
	n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, cp >>= 6)
		out[i] = (char)(0x80 | (cp & 0x3f));
	out[0] = (char)(first_byte[n] | cp);
	return n;
}

/* The next character or byte as it is shown; returns how many bytes of s it takes. */
static size_t show(const char *s, size_t len, char ret_item[ITEM_MAX + 1])
{
	uint32_t cp;
	size_t n = text__decode(s, len, &cp);

	if (!n) {
		snprintf(ret_item, ITEM_MAX + 1, "\\x%02x", (unsigned char)*s);
		return 1;
	}
	if (text__is_hidden(cp)) {
		snprintf(ret_item, ITEM_MAX + 1, "\\u{%x}", (unsigned)cp);
	} else {
		memcpy(ret_item, s, n);
		ret_item[n] = '\0';
	}
	return n;
}

size_t text__escape(const char *s, size_t len, char *out, size_t size)
{
	size_t need = 0, at = 0;

	while (len > 0) {
		char item[ITEM_MAX + 1];
		size_t n = show(s, len, item), shown = strlen(item);

		/* output stops at the first item that does not fit */
		if (at == need && shown < size - MIN(at, size)) {
			memcpy(out + at, item, shown);
			at += shown;
		}
		need += shown;
		s += n;
		len -= n;
	}
	if (size)
		out[at] = '\0';
	return need;
}

char *text__escaped(const char *s)
{
	size_t len = strlen(s), need = text__escape(s, len, NULL, 0);
	char *out = malloc(need + 1);

	if (out)
		text__escape(s, len, out, need + 1);
	return out;
}

bool text__starts_with(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(s, prefix, n) == 0;
}

bool text__ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	return len >= n && memcmp(s + len - n, suffix, n) == 0;
}

char *text__shell_word(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+./:,@%=";
	char *word, *to;

	if (*s && !s[strspn(s, plain)])
		return strdup(s);
	/* a quote becomes four characters */
	to = word = malloc(4 * strlen(s) + 3);
	if (!word)
		return NULL;
	*to++ = '\'';
	for (; *s; s++) {
		if (*s == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *s;
	}
	*to++ = '\'';
	*to = '\0';
	return word;
}

size_t text__width_of(uint32_t cp)
{
	int n = wcwidth((wchar_t)cp);

	return n < 0 ? 1 : (size_t)n;
}

size_t text__width(const char *s, size_t len)
{
	size_t width = 0;

	while (len > 0) {
		uint32_t cp = 0;
		size_t n = text__decode(s, len, &cp);

		width += n ? text__width_of(cp) : 1;
		n = MAX(n, (size_t)1);
		s += n;
		len -= n;
	}
	return width;
}

const char *path__base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

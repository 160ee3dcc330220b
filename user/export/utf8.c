/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text from somebody else's file made safe to print: valid UTF-8, escaped for JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "export_priv.h"

/*
 * Length of the valid sequence that s begins, 0 if there is none. Bounds of the second byte are
 * Unicode's table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
static size_t sequence(const unsigned char *s)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	lo = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : lo;
	hi = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : hi;
	if (s[1] < lo || s[1] > hi)
		return 0;
	/* The NUL at the end is no continuation byte, so this never reads past it. */
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

uint32_t utf8__next(const char **s)
{
	static const unsigned char first_bits[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)*s;
	uint32_t cp;
	size_t len;

	if (!*p)
		return 0;
	len = sequence(p);
	if (!len) {
		(*s)++;
		return UTF8_REPLACEMENT;
	}
	cp = p[0] & first_bits[len];
	for (size_t i = 1; i < len; i++)
		cp = cp << 6 | (p[i] & 0x3f);
	*s += len;
	return cp;
}

size_t utf8__put(char *out, uint32_t cp)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n;

	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i; i--, cp >>= 6)
		out[i] = (char)(0x80 | (cp & 0x3f));
	out[0] = (char)(lead[n] | cp);
	return n;
}

bool utf8__is_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
}

size_t utf8__count(const char *s, size_t len)
{
	size_t n = 0;

	/* all bytes of a code point but the first one are 10xxxxxx */
	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

static char *clean(const char *s, bool controls)
{
	/* One bad byte becomes the three of U+FFFD. */
	char *out = malloc(strlen(s) * 3 + 1);
	size_t len = 0;
	uint32_t cp;

	if (!out)
		return NULL;
	while ((cp = utf8__next(&s)))
		len += utf8__put(out + len, controls || !utf8__is_control(cp) ? cp : '?');
	out[len] = '\0';
	return out;
}

char *utf8__clean(const char *s)
{
	return clean(s, true);
}

char *utf8__printable(const char *s)
{
	return clean(s, false);
}

static void put_json(FILE *out, const char *s, bool in_html)
{
	uint32_t cp;

	fputc('"', out);
	while (s && (cp = utf8__next(&s))) {
		char utf8[4] = {0};

		if (cp == '"' || cp == '\\')
			fprintf(out, "\\%c", (char)cp);
		else if (utf8__is_control(cp) || (in_html && (cp == '<' || cp == '>' || cp == '&')))
			fprintf(out, "\\u%04x", cp);
		else
			fwrite(utf8, 1, utf8__put(utf8, cp), out);
	}
	fputc('"', out);
}

void json__put_string(FILE *out, const char *s)
{
	put_json(out, s, false);
}

void json__put_in_html(FILE *out, const char *s)
{
	put_json(out, s, true);
}

char *u64__put(char *out, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	memcpy(out, digits + at, sizeof(digits) - at);
	return out + sizeof(digits) - at;
}

void put_u64(FILE *out, uint64_t n)
{
	char digits[20];

	fwrite_unlocked(digits, 1, (size_t)(u64__put(digits, n) - digits), out);
}

struct pic_target_name pic_target__name(const struct pic_target *target)
{
	struct pic_target_name name;

	snprintf(name.s, sizeof(name.s), "%s (pid %d)", or_empty(target->comm), (int)target->pid);
	return name;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes untrusted text safe to write: valid UTF-8, escaped for JSON. */
#include <stdlib.h>
#include <string.h>

#include "export_priv.h"

/* The longest sequence: the decoder stops at the NUL, which never continues one. */
#define UTF8_MAX 4

uint32_t utf8__next(const char **s)
{
	uint32_t cp;
	size_t len;

	if (!**s)
		return 0;
	len = text__decode(*s, UTF8_MAX, &cp);
	*s += MAX(len, (size_t)1);
	return len ? cp : UTF8_REPLACEMENT;
}

char *utf8__clean(const char *s)
{
	/* One invalid byte becomes U+FFFD, three bytes. */
	char *out = malloc(strlen(s) * 3 + 1);
	size_t len = 0;
	uint32_t cp;

	if (!out)
		return NULL;
	while ((cp = utf8__next(&s)))
		len += text__encode(cp, out + len);
	out[len] = '\0';
	return out;
}

/* JSON escapes are UTF-16: code points beyond 16 bits are a surrogate pair. */
static void put_code(FILE *out, uint32_t cp)
{
	if (cp >= 0x10000)
		fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
			0xdc00 + ((cp - 0x10000) & 0x3ff));
	else
		fprintf(out, "\\u%04x", cp);
}

void json__put_string(FILE *out, const char *s)
{
	uint32_t cp;

	fputc('"', out);
	while (s && (cp = utf8__next(&s))) {
		char utf8[4] = {0};

		if (cp == '"' || cp == '\\')
			fprintf(out, "\\%c", (char)cp);
		else if (text__is_hidden(cp))
			put_code(out, cp);
		else
			fwrite(utf8, 1, text__encode(cp, utf8), out);
	}
	fputc('"', out);
}

void json__put_in_html(FILE *out, const char *s)
{
	fputc('"', out);
	for (size_t n; s && *s; s += n) {
		char shown[16];
		uint32_t cp;

		n = text__decode(s, UTF8_MAX, &cp);
		if (n && (cp == '"' || cp == '\\' || cp == '<' || cp == '>' || cp == '&')) {
			put_code(out, cp);
			continue;
		}
		n = MAX(n, (size_t)1);
		text__escape(s, n, shown, sizeof(shown));
		fprintf(out, "%s%s", *shown == '\\' ? "\\" : "", shown);
	}
	fputc('"', out);
}

/* Such characters occur only in strings, where an escape means the same character. */
void json__put_text(FILE *out, const char *json)
{
	const char *from = json, *at = json, *next = json;

	for (uint32_t cp; (cp = utf8__next(&next)); at = next) {
		if (cp == '\n' || cp == '\t' || !text__is_hidden(cp))
			continue;
		fwrite(from, 1, (size_t)(at - from), out);
		put_code(out, cp);
		from = next;
	}
	fputs(from, out);
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

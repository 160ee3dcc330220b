/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text: somebody else's bytes made safe for a terminal; names of files. */
#include <string.h>

#include "base.h"

/*
 * How many bytes at s are one character of UTF-8 that a terminal shows; 0: a control character
 * (C0, DEL, or C1, which some terminals obey as they obey ESC [) or not UTF-8 at all.
 */
static size_t printable(const unsigned char *s, size_t len)
{
	size_t n, i;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f ? 1 : 0;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > len)
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if (s[0] == 0xc2 && s[1] < 0xa0)
		return 0;
	return n;
}

void text__sanitise(char *text, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t n = printable((const unsigned char *)text + i, len - i);

		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
		i += n;
	}
}

const char *path__base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

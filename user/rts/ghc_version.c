/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ghc_version: each part is checked as it grows, so that no text overflows. */
#include "ghc_version.h"

#include <errno.h>
#include <string.h>

#define PARTS 4

int ghc_version__parse(const char *text, size_t len, ghc_version_t *ret_version)
{
	static const struct {
		uint32_t max;
		uint8_t shift;
	} parts[PARTS] = {
		{GHC_VERSION_MAX_MAJOR, 60},
		{GHC_VERSION_MAX_MINOR, 54},
		{GHC_VERSION_MAX_PATCH, 27},
		{GHC_VERSION_MAX_PATCH, 0},
	};
	ghc_version_t version = 0;
	size_t n = 0, at = 0;

	for (;; at++) {
		uint32_t value = 0;
		size_t start = at;

		if (n == PARTS)
			return -EINVAL;
		for (; at < len && text[at] >= '0' && text[at] <= '9'; at++) {
			value = value * 10 + (uint32_t)(text[at] - '0');
			if (value > parts[n].max)
				return -EINVAL;
		}
		if (at == start)
			return -EINVAL;
		version |= (ghc_version_t)value << parts[n++].shift;
		if (at == len)
			break;
		if (text[at] != '.')
			return -EINVAL;
	}
	if (n < 2)
		return -EINVAL;
	*ret_version = version;
	return 0;
}

ghc_version_t ghc_version__of(const char *text)
{
	ghc_version_t version;

	return ghc_version__parse(text, strlen(text), &version) == 0 ? version : 0;
}

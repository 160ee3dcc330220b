/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any string as a symbol: its parts are bounded, NUL-terminated and without control characters. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "names/zname_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *part, size_t size, const char *sym)
{
	size_t len = strnlen(part, size), i;

	if (len == size)
		abort();
	/*
	 * z-encoded text cannot smuggle in anything that the symbol does not already contain in
	 * plain text
	 */
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)part[i];

		if ((c < 0x20 || c == 0x7f) && !strchr(sym, c))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *sym = malloc(size + 1);
	struct zname z;
	int err;

	if (!sym)
		return 0;
	memcpy(sym, data, size);
	sym[size] = '\0';
	err = zname__decode(sym, &z);
	if ((err == 0) != (z.is_haskell || z.is_rts))
		abort();
	check(z.package, sizeof(z.package), sym);
	check(z.module, sizeof(z.module), sym);
	check(z.name, sizeof(z.name), sym);
	check(z.unique, sizeof(z.unique), sym);
	if (zname__wrapper(sym, &z)) {
		if (!z.is_haskell || !z.module[0])
			abort();
		check(z.package, sizeof(z.package), sym);
		check(z.module, sizeof(z.module), sym);
		check(z.name, sizeof(z.name), sym);
	}
	free(sym);
	return 0;
}

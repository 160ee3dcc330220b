/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any string as a C++ or Rust symbol: it ends soon, and what comes out is a string in its buffer.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "names/demangle_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Few inputs would begin by themselves as a mangled name does. */
static void try_with(const char *prefix, const uint8_t *data, size_t size)
{
	size_t n = strlen(prefix);
	char *name = malloc(n + size + 1), buf[64];

	if (!name)
		return;
	memcpy(name, prefix, n);
	memcpy(name + n, data, size);
	name[n + size] = '\0';
	memset(buf, 'x', sizeof(buf));
	if (demangle_here(name, buf, sizeof(buf)) == 0 && strnlen(buf, sizeof(buf)) == sizeof(buf))
		abort();
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_with("", data, size);
	try_with("_Z", data, size);
	try_with("_R", data, size);
	return 0;
}

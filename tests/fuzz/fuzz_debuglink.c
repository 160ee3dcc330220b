/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a .gnu_debuglink section. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "process/debugfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[DEBUGLINK_NAME];
	uint32_t crc;

	if (debugfile__parse_link(data, size, name, &crc))
		return 0;
	if (!name[0] || strnlen(name, sizeof(name)) == sizeof(name) || strchr(name, '/') ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		abort();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any bytes as a static archive, followed by others as a program's code; four bytes hold the
 * archive's length. What is found must pass the daemon's check.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "archives/files_priv.h"
#include "archives/known_priv.h"

#define TEXT 0x400000ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_as(const uint8_t *archive, size_t len, const struct code *code,
		    enum archive_kind kind)
{
	static struct known_raw known[KNOWN_MAX];
	static char strings[KNOWN_MAX_STRINGS];
	struct archive_file file = {.size = len, .kind = kind};
	struct known_out out = {.v = known, .strings = strings};

	/* exactly this long, so that a read beyond it is detected */
	file.data = malloc(len + !len);
	if (!file.data)
		return;
	memcpy(file.data, archive, len);
	if (!known__read(&file, 1, false, code, &out) &&
	    (out.n > KNOWN_MAX || out.strings_len > KNOWN_MAX_STRINGS ||
	     !known__check(known, out.n, strings, out.strings_len)))
		abort();
	free(file.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_range range = {.start = TEXT};
	const struct code code = {&range, 1};
	uint32_t len;

	if (size < sizeof(len))
		return 0;
	memcpy(&len, data, sizeof(len));
	data += sizeof(len);
	size -= sizeof(len);
	if (len > size)
		return 0;
	range.bytes = data + len;
	range.len = size - len;
	read_as(data, len, &code, ARCHIVE_OTHER);
	read_as(data, len, &code, ARCHIVE_HASKELL);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a file whose modules are looked for. What is found must pass the daemon's check. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "elf/elf.h"
#include "names/modules_read_priv.h"

#define PIECES	256
#define STRINGS 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const struct elf_file *elf, bool profiled)
{
	static struct modules_raw pieces[PIECES];
	static char strings[STRINGS];
	struct modules_out out = {
		.pieces = pieces, .strings = strings, .max_pieces = PIECES, .max_strings = STRINGS};

	if (modules_read(elf, profiled, &out))
		return;
	if (out.n > PIECES || out.strings_len > STRINGS ||
	    !modules__check(pieces, out.n, strings, out.strings_len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *elf;

	if (elf__open_bytes(data, size, "fuzz", &elf))
		return 0;
	read_file(elf, false);
	read_file(elf, true);
	elf__free(elf);
	return 0;
}

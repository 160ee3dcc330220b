/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * twin: names code of a process that is gone, from a file with the symbols that the process's own
 * file lacked: the unstripped executable, or its separate debug file.
 */
#ifndef SAFESCOPED_NAMES_TWIN_H
#define SAFESCOPED_NAMES_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include "code_name.h"

struct names_helpers;
struct twin;

/* `helpers` (names.h) must outlive it. -ENODATA: no symbols; -ENOEXEC and others as elf__open_fd().
 * Prints nothing. */
int twin__open(const char *path, struct names_helpers *helpers, struct twin **ret_twin);
void twin__free(struct twin *twin);
/* Hex, at most 40 digits and NUL; false if there is none. */
bool twin__build_id(const struct twin *twin, char out[41]);

/* Addresses of the runtime's functions in the process, or of a place in their first bytes; 0: not
 * known. */
struct twin_marks {
	uint64_t suspend, resume;
};
/*
 * The load bias of the executable in the process. -ENOENT: it is position-independent, and nothing
 * shows its bias.
 */
int twin__bias(const struct twin *twin, const struct twin_marks *marks, uint64_t *ret_bias);

/*
 * Names a frame (wire.h) of that executable's code; name->code is what is known of it. False: the
 * file has no name for it, and *name is unchanged. The strings live as long as the twin; name->file
 * is never changed.
 */
bool twin__name(struct twin *twin, uint64_t bias, uint64_t frame, struct code_name *name);
/* Names the Haskell code that makes the call returning to addr. Otherwise as twin__name(). */
bool twin__caller(struct twin *twin, uint64_t bias, uint64_t addr, struct code_name *name);
/* Names the C function that begins at a file offset. Otherwise as twin__name(). */
bool twin__function(struct twin *twin, uint64_t offset, struct code_name *name);

#endif

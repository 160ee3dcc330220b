/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * twin: names for the code of a process that is gone, from a file that has the symbols which the
 * process's own did not have: the unstripped executable, or its separate debug file.
 */
#ifndef SAFESCOPED_NAMES_TWIN_H
#define SAFESCOPED_NAMES_TWIN_H

#include <stdbool.h>
#include <stdint.h>

#include "code_name.h"

struct names_helpers;
struct twin;

/* `helpers`: of names.h, which outlive it. -ENODATA: it has no symbols; -ENOEXEC and others as
 * elf__open_fd. Prints nothing. */
int twin__open(const char *path, struct names_helpers *helpers, struct twin **ret_twin);
void twin__free(struct twin *twin);
/* Hex, at most 40 digits and NUL; false if there is none. */
bool twin__build_id(const struct twin *twin, char out[41]);

/* Where a process had the runtime's functions, or a place in their first bytes; 0: not known. */
struct twin_marks {
	uint64_t suspend, resume;
};
/*
 * How far the process had moved the executable. -ENOENT: it can be moved, and nothing shows how
 * far.
 */
int twin__bias(const struct twin *twin, const struct twin_marks *marks, uint64_t *ret_bias);

/*
 * Names a frame (wire.h) of that executable's code, `code` being what is known of it. False: the
 * file has no name for it, and *name stays. Its strings live as long as the twin; name->file
 * stays in any case.
 */
bool twin__name(struct twin *twin, uint64_t bias, uint64_t frame, struct code_name *name);
/* The Haskell code that makes the call which returns to addr. The same. */
bool twin__caller(struct twin *twin, uint64_t bias, uint64_t addr, struct code_name *name);
/* The C function that begins at an offset of the file. The same. */
bool twin__function(struct twin *twin, uint64_t offset, struct code_name *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* symfile: names without a process. */
#ifndef SAFESCOPED_NAMES_SYMFILE_H
#define SAFESCOPED_NAMES_SYMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code_name.h"

/* An executable that names the functions of a process that is gone (an eventlog's addresses). */
struct symfile;

/* -ENODATA: no symbols; -ENOEXEC and others as elf__open_fd(). Prints nothing. */
int symfile__open(const char *path, struct symfile **ret_file);
void symfile__free(struct symfile *file);
/* Finds the load bias of the process, from addresses of functions in it. */
void symfile__place(struct symfile *file, const uint64_t *addrs, size_t n);
/* False: no function at addr. The strings live as long as the file. */
bool symfile__name(const struct symfile *file, uint64_t addr, struct code_name *ret_name);

#endif

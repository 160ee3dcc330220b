/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++ (and Rust) symbols as they were written: by GNU libiberty, in a process without rights
 * (confine). A symbol of 600 bytes may stand for more text than there is memory, and what is made
 * of it is kept short by the process's limits. What is not demangled is shown as it is.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DEMANGLE_PRIV_H
#define SAFESCOPED_NAMES_DEMANGLE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Longer ones take too long to read, and may be made to take long to take apart. */
#define DEMANGLE_MAX_MANGLED 2048
/* Text that is longer is nobody's name; the symbol is shown. */
#define DEMANGLE_MAX_TEXT 65536
/* What is kept of it. */
#define DEMANGLE_MAX_PLAIN 1024

/* The helper processes, one for each user that has asked lately, and what they answered. */
struct demangler;
int demangler__new(struct demangler **ret_demangler);
void demangler__free(struct demangler *demangler);

/*
 * name itself if it is no mangled one or could not be demangled, else what it stands for, in buf.
 * `user`: whose symbol it is, and who is not listened to any more when symbols take too long
 * (CONFINE_NOBODY: all who are not known). *later becomes true where there was no time to ask, and
 * otherwise stays. For the thread that uses confine.
 */
const char *demangle(struct demangler *demangler, uid_t user, const char *name, char *buf,
		     size_t size, bool *later);

/* What the helper does, without the helper (tests, fuzzing). -ENOENT: no mangled name; -E2BIG. */
int demangle_here(const char *name, char *buf, size_t size);

#endif

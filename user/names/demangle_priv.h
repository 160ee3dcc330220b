/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Demangles C++ (and Rust) symbols with GNU libiberty, in a process without rights (confine): a
 * symbol of 600 bytes can expand to more text than there is memory, so the process's limits bound
 * the result. A symbol that cannot be demangled is shown as it is.
 *
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_NAMES_DEMANGLE_PRIV_H
#define SAFESCOPED_NAMES_DEMANGLE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Longer symbols take too long to read, and can be crafted to take long to demangle. */
#define DEMANGLE_MAX_MANGLED 2048
/* A longer result is no real name: the symbol is shown instead. */
#define DEMANGLE_MAX_TEXT 65536
/* How much of the result is kept. */
#define DEMANGLE_MAX_PLAIN 1024

/* The helper processes, one for each recent user, and the answers so far. */
struct demangler;
int demangler__new(struct demangler **ret_demangler);
void demangler__free(struct demangler *demangler);

/*
 * Returns the demangled name, in buf, or `name` itself if it is not mangled or could not be
 * demangled. `user`: the owner of the symbol; once his symbols have taken too long they are not
 * demangled (CONFINE_NOBODY: all unknown users). Sets *later if there was no time to ask, and
 * otherwise leaves it alone. Only for the thread that uses confine.
 */
const char *demangle(struct demangler *demangler, uid_t user, const char *name, char *buf,
		     size_t size, bool *later);

/* The helper's work, done in this process (tests, fuzzing). -ENOENT: not mangled; -E2BIG. */
int demangle_here(const char *name, char *buf, size_t size);

#endif

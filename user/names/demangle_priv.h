/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C++ (and Rust) symbols as they were written. Shared by the files of this room only. */
#ifndef SAFESCOPED_NAMES_DEMANGLE_PRIV_H
#define SAFESCOPED_NAMES_DEMANGLE_PRIV_H

#include <stddef.h>

/* name itself if it is no mangled one, else what it stands for, in buf. */
const char *demangle(const char *name, char *buf, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* demangle: by GNU libiberty, which bounds its own recursion. */
#include "demangle_priv.h"

#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer ones take too long to read, and may be made to take long to take apart. */
#define MAX_MANGLED 2048

const char *demangle(const char *name, char *buf, size_t size)
{
	char *plain;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') ||
	    strnlen(name, MAX_MANGLED) == MAX_MANGLED)
		return name;
	plain = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (!plain)
		return name;
	snprintf(buf, size, "%s", plain);
	free(plain);
	return buf;
}

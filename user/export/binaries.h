/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * binaries: the files that a picture's code is in, each where a process maps it. The processes'
 * executables come first, including those without a frame in the picture. Part of the export room.
 */
#ifndef SAFESCOPED_EXPORT_BINARIES_H
#define SAFESCOPED_EXPORT_BINARIES_H

#include "picture/picture.h"

struct binary {
	uint64_t start, end, offset; /* end 0: the mapping is not known */
	const char *path, *build_id; /* "": not known or none */
};

struct binaries {
	struct binary *v;
	size_t n, cap;
	uint32_t *of_frame;  /* an index into v, plus 1; 0: the frame is in no file */
	uint32_t *of_target; /* the index of its executable, plus 1; 0: not known */
};

int binaries__collect(const struct picture *pic, struct binaries *ret_binaries);
void binaries__free(struct binaries *binaries);

#endif

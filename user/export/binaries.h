/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * binaries: the files that a picture's code is in, each where a process maps it. The executables of
 * its processes come first, also those of which no frame was seen. Part of the export room.
 */
#ifndef SAFESCOPED_EXPORT_BINARIES_H
#define SAFESCOPED_EXPORT_BINARIES_H

#include "picture/picture.h"

struct binary {
	uint64_t start, end, offset; /* end 0: where it is mapped is not known */
	const char *path, *build_id; /* "": not known, none */
};

struct binaries {
	struct binary *v;
	size_t n, cap;
	uint32_t *of_frame;  /* a number in v, from 1; 0: the frame is in no file */
	uint32_t *of_target; /* of its executable, from 1; 0: not known */
};

int binaries__collect(const struct picture *pic, struct binaries *ret_binaries);
void binaries__free(struct binaries *binaries);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libraries: the libraries that a picture's code was seen in, by their base names. A function that
 * is known only from calls to it has no more than that name.
 */
#ifndef SAFESCOPED_OTLP_LIBRARIES_H
#define SAFESCOPED_OTLP_LIBRARIES_H

#include "../export_priv.h"

struct libraries;

/* True if a file of that name is a shared library. */
bool libraries__is_one(const char *path);

/* The picture must outlive the result. */
int libraries__new(const struct picture *pic, struct libraries **ret_libraries);
void libraries__free(struct libraries *libraries);
/* A place in the only library with that base name; NULL: there is none, or there are several. */
const struct pic_place *libraries__find(const struct libraries *libraries, const char *base);

#endif

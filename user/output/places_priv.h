/* SPDX-License-Identifier: GPL-2.0-or-later */
/* places: where a format's file goes, and what may already be there. */
#ifndef SAFESCOPED_OUTPUT_PLACES_PRIV_H
#define SAFESCOPED_OUTPUT_PLACES_PRIV_H

#include <limits.h>
#include <stdbool.h>

#include "output.h"

/*
 * Chooses the path of a format's file, "-" for a standard stream. `stem` is the name made from the
 * session; n_files: how many files there will be. A given path is a stem as well: it gets the
 * format's suffix unless it already has it; another format's suffix is replaced. -ENAMETOOLONG.
 */
int place__choose(const struct output_opts *opts, const struct export_format *format,
		  size_t n_files, const char *stem, char path[PATH_MAX]);
/* The formats' suffixes, such as ".json", by an index below 32; NULL: there are no more. */
const char *place__suffix(size_t i);
/* The index of the suffix that `text` is; -1: it is none. */
int place__find_suffix(const char *text);
/* True if something has that path; "-" is a stream. */
bool place__is_taken(const char *path);
/* True for a directory, or a path that ends with a slash. */
bool place__is_directory(const char *path);
/* How to open such a file, for people: "open it in a browser". A constant in which `%s` stands for
 * the path. */
const char *place__hint(const struct export_format *format, enum export_weight weight);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series: names that are few enough to be labels of a server's series. A server keeps a series for
 * each set of labels it was ever sent, and limits their number. Names that a program gives to
 * short-lived things, such as a thread for each connection, would each add another series.
 */
#ifndef SAFESCOPED_EXPORT_SERIES_H
#define SAFESCOPED_EXPORT_SERIES_H

#include "picture/picture.h"

/* Programs name threads either by their role, of which there are at most this many, or by the
 * object they serve. */
#define SERIES_NAMES 16

struct series_names {
	const char *v[SERIES_NAMES];
	size_t n;
};

/* The distinct names of lanes; none if there are more than SERIES_NAMES. */
struct series_names series__names(const struct pic_lanes *lanes);
/* The name's position, from 1; 0: it is not among them. */
size_t series__find(const struct series_names *names, const char *name);

#endif

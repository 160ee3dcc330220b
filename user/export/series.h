/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * series: names that are few enough to be labels of a server's series. A server has a series for
 * each set of labels that it was ever sent, and refuses more than so many. Names that a program
 * gives to what comes and goes, a thread for each connection, would be another series each time.
 */
#ifndef SAFESCOPED_EXPORT_SERIES_H
#define SAFESCOPED_EXPORT_SERIES_H

#include "picture/picture.h"

/* A program names its threads by what they do, of which there is no more than this, or by what they
 * do it for. */
#define SERIES_NAMES 16

struct series_names {
	const char *v[SERIES_NAMES];
	size_t n;
};

/* The names of lanes, each once; none where there are more than so many. */
struct series_names series__names(const struct pic_lanes *lanes);
/* Which one it is, from 1 on; 0: none of them. */
size_t series__find(const struct series_names *names, const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prof: what prof.c and prof_json.c share. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_PROF_PRIV_H
#define SAFESCOPED_EVENTLOG_PROF_PRIV_H

#include "cctree.h"

int prof__parse_json(const char *data, size_t len, struct cctree *tree, struct prof_info *info);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prof: shared by prof.c and prof_json.c. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_PROF_PRIV_H
#define SAFESCOPED_EVENTLOG_PROF_PRIV_H

#include "cctree.h"

int prof__parse_json(const char *data, size_t len, struct cctree *tree, struct prof_info *info);

#endif

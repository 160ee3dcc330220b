/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One profiling session, from the command line to the files. Private to the cli room. */
#ifndef SAFESCOPED_CLI_SESSION_H
#define SAFESCOPED_CLI_SESSION_H

#include "options.h"

/* Runs it to its end; the process's exit code. */
int session__run(const struct options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --eventlog FILE`: a log, or a report of GHC's, alone. Private to the cli room. */
#ifndef SAFESCOPED_CLI_LOG_MODE_H
#define SAFESCOPED_CLI_LOG_MODE_H

#include "options.h"

/* Returns the exit code. */
int log_mode__run(const struct options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `safescoped --replay FILE`: the output of a session that was kept. Private to the cli room. */
#ifndef SAFESCOPED_CLI_REPLAY_MODE_H
#define SAFESCOPED_CLI_REPLAY_MODE_H

#include "options.h"

/* Returns the exit code. */
int replay_mode__run(const struct options *options);

#endif

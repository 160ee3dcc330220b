/* SPDX-License-Identifier: GPL-2.0-or-later */
/* off_switch: a session that can be switched off and on. Private to the cli room. */
#ifndef SAFESCOPED_CLI_OFF_SWITCH_H
#define SAFESCOPED_CLI_OFF_SWITCH_H

#include "session/session.h"

/*
 * As session__run, but when the session ends because the file opts->off_path exists, another one
 * begins once that is removed. All of them together last for opts->duration_ns.
 */
int off_switch__run(const struct session_opts *opts);

#endif

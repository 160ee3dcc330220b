/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service: a session for as long as the machine runs. A file switches it off and on, SIGHUP makes
 * it read its configuration again, and a service manager is informed of its state. Private to the
 * cli room.
 */
#ifndef SAFESCOPED_CLI_SERVICE_H
#define SAFESCOPED_CLI_SERVICE_H

#include "options.h"

/* True if the options ask for a session that may end and begin again: one in windows that
 * neither starts a program nor writes a capture. */
bool service__wanted(const struct options *options);
/*
 * Runs sessions with these options, one after the other, until a signal, or until the duration,
 * which covers all of them, is over. *options are replaced when the configuration has been read
 * again. Returns the process's exit code (base.h, EXIT_…).
 */
int service__run(struct options **options);

#endif

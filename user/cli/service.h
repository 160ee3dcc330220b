/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service: a session for as long as the machine runs. A file switches it off and on, SIGHUP has it
 * read its configuration again, and a service manager learns how it is. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_SERVICE_H
#define SAFESCOPED_CLI_SERVICE_H

#include "options.h"

/* Whether the options ask for a session that may end and begin again: one in windows, that neither
 * starts a program nor is kept. */
bool service__wanted(const struct options *options);
/*
 * Runs sessions of these options, one after the other, until a signal, or the end of the duration:
 * all of them together last that long. *options are replaced by those of the configuration when it
 * was read again. Returns the process's exit code (base.h, EXIT_…).
 */
int service__run(struct options **options);

#endif

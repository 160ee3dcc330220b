/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --list. Private to the cli room. */
#ifndef SAFESCOPED_CLI_LIST_H
#define SAFESCOPED_CLI_LIST_H

#include "options.h"

/* Prints the list; the process's exit code. */
int list__run(const struct options *options);

#endif

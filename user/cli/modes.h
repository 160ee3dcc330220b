/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modes that need no session. Each runs to its end and returns the process's exit code
 * (base.h, EXIT_…); what fails is printed. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_MODES_H
#define SAFESCOPED_CLI_MODES_H

#include "options.h"

/* How long --list and --doctor look for one process's eventlog. */
#define MODES_TRAITS_TIMEOUT_MS 500

/* --list: the GHC processes of this host. */
int list__run(const struct options *options);
/* --doctor: what this host, and the processes of --pid, allow. EXIT_FAILED: a need is not met. */
int doctor__run(const struct options *options);
/* --eventlog FILE without a process: a log, or a report of GHC's, alone. Needs no privilege. */
int log_mode__run(const struct options *options);
/* --replay FILE: the outputs of a session that --save kept. Needs no privilege. */
int replay_mode__run(const struct options *options);

/*
 * --top: a live screen of what `run_inside` runs, a session or a replay. Needs a terminal.
 */
int top_mode__run(const struct options *options, int (*run_inside)(const struct options *options));
/* --diff A B: what changed from one session to the other. Needs no privilege. */
int diff_mode__run(const struct options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modes that need no session. Each runs to its end and returns the process's exit code
 * (base.h, EXIT_…); what fails is printed. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_MODES_H
#define SAFESCOPED_CLI_MODES_H

#include "options.h"

struct session_opts;

/* How long --list and --doctor look for one process's eventlog. */
#define MODES_TRAITS_TIMEOUT_MS 500

/* --list: the GHC processes of this host. */
int list__run(const struct options *options);
/* --doctor: what this host, and the processes of --pid, allow. EXIT_FAILED: a need is not met. */
int doctor__run(const struct options *options);
/* --eventlog FILE without a process: a log, or a report of GHC's, alone. Needs no privilege. */
int log_mode__run(const struct options *options);
/* A session of the host, of processes or of a command. *options may be replaced by those of a
 * configuration that is read again. */
int session_mode__run(struct options **options);
/* What of them is for a session. Points into `options`. */
void session_mode__opts(const struct options *options, struct session_opts *ret_opts);
/* --replay FILE: the outputs of a session that --save kept. Needs no privilege. */
int replay_mode__run(const struct options *options);

/*
 * --top: a live screen of what `run_inside` runs, a session or a replay. Needs a terminal.
 */
int top_mode__run(const struct options *options, int (*run_inside)(struct options **options));
/* --diff A B: what changed from one session to the other. Needs no privilege. */
int diff_mode__run(const struct options *options);

#endif

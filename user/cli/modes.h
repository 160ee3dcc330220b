/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modes. Each runs to its end and returns the process's exit code (base.h, EXIT_…); failures
 * are printed. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_MODES_H
#define SAFESCOPED_CLI_MODES_H

#include "options.h"

struct session_opts;

/* How long --list and --doctor search for the eventlog of one process. */
#define MODES_TRAITS_TIMEOUT_MS 500

/* --list: the GHC processes of this host. */
int list__run(const struct options *options);
/* --doctor: what this host, and the processes of --pid, allow. EXIT_FAILED: something needed is
 * missing. */
int doctor__run(const struct options *options);
/* --eventlog FILE without a process: shows a log, or a report of GHC's, by itself. Needs no
 * privileges. */
int log_mode__run(const struct options *options);
/* A session on the host, on processes or on a command. *options may be replaced when the
 * configuration is read again. */
int session_mode__run(struct options **options);
/* The options that concern a session. The result points into `options`. */
void session_mode__opts(const struct options *options, struct session_opts *ret_opts);
/* --replay FILE: the outputs of a session that --save kept. Needs no privileges. */
int replay_mode__run(const struct options *options);

/* --top: a live screen of what `run_inside` runs, a session or a replay. Needs a terminal. */
int top_mode__run(const struct options *options, int (*run_inside)(struct options **options));
/* --diff A B: what changed from one session to the other. Needs no privileges. */
int diff_mode__run(const struct options *options);

#endif

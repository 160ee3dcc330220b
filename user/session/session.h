/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session: one live profiling session. Processes join it (named by their pids, found on the host,
 * or started by it), become ready when their runtime is initialised, map further code, and end.
 * What the kernel side records of them goes into a timeline, and the finished profile into the
 * outputs.
 */
#ifndef SAFESCOPED_SESSION_H
#define SAFESCOPED_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "intake/intake.h"
#include "output/output.h"
#include "process/select.h"
#include "push/push.h"

struct metrics_server;

/* Which processes the session profiles, and when it ends by itself. */
enum session_kind {
	SESSION_SYSTEM,	 /* every GHC process of the host; never ends by itself */
	SESSION_PIDS,	 /* processes that run already; ends with the last of them */
	SESSION_COMMAND, /* a program that it starts, and its descendants; ends with the program */
};

/* Strings and arrays pointed to must live as long as the session. */
struct session_opts {
	enum session_kind kind;
	const char *mode;  /* the same as a name for the report: "system", … */
	const pid_t *pids; /* SESSION_PIDS: at least one, no duplicates */
	size_t n_pids;
	char *const *command; /* SESSION_COMMAND: argv, NULL-terminated */
	uint64_t duration_ns; /* 0: until it ends by itself or is stopped by a signal */

	const struct select_rules *select; /* SESSION_SYSTEM: which processes; NULL: all */
	uint64_t window_ns; /* the output is cut into windows of this length; 0: a single one */

	uint32_t frequency_hz; /* samples per second and CPU */
	double max_overhead_percent;
	double max_cpu_percent; /* of one CPU, for safescoped itself; 0: no limit */
	enum intake_stacks stacks;
	bool kernel_stacks;
	bool heap_census; /* take one after a major collection, and after each SIGUSR1 */
	int freeze_ms;	  /* stop the process for it, for no longer than this; 0: do not stop it */
	bool plumbing;	  /* see struct intake_opts */

	const char *symbols;	     /* an unstripped twin of the executable; NULL: none */
	bool force;		     /* a twin with another build-id is accepted */
	const char *const *archives; /* directories of static archives */
	size_t n_archives;
	bool archives_may_lack;	       /* go on without archives if there are none */
	const char *const *debuginfod; /* servers; none: those of DEBUGINFOD_URLS */
	size_t n_debuginfod;
	bool no_eventlogs;    /* join no eventlog */
	const char *eventlog; /* the log to join: a file, FIFO or socket; NULL: whatever log each
				 process writes */
	bool eventlog_asked;  /* a log was asked for; if there is none, report it as missing */
	const char *save;     /* path of the capture to write; NULL: none */

	struct metrics_server *metrics; /* serves the session's metrics; NULL: none */

	const char *off_path; /* the session ends when a file of this name exists */

	const struct push_opts *push;	  /* NULL: nothing is pushed */
	const struct output_opts *output; /* also determines which lanes are made */
	bool quiet;			  /* no progress line */
	/* Called once everything is attached, and each second while the loop turns. NULL: not
	 * needed. */
	void (*alive)(void *ctx);
	void *alive_ctx;
	/* After this time the session may end with SESSION_RENEWED if it cannot go on as before,
	 * and another session follows. 0: it may not. */
	uint64_t renew_after_ns;
	/* SESSION_COMMAND: return the command's exit status once it has ended. */
	bool propagate_exit;
};

/* Return values of session__run() besides EXIT_…, outside the range of exit statuses: it ended
 * because of opts->off_path; it ended by itself so that the next session can start. */
#define SESSION_SWITCHED_OFF 256 /* ORed with EXIT_PARTIAL if it was not complete */
#define SESSION_RENEWED	     512 /* likewise */

/*
 * Runs the session to its end and writes the outputs; returns the process's exit code (base.h,
 * EXIT_…). Failures are printed. Signal dispositions and RLIMIT_NOFILE of the process stay changed.
 */
int session__run(const struct session_opts *opts);
/* True if that file exists and belongs to root or the current user: others cannot switch anything
 * off, even where they may create files. */
bool session__is_off(const char *off_path);

#endif

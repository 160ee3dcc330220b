/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session: one live profiling session. Processes join it (named by their pids, found on the host,
 * or started by it), become ready when their runtime is initialised, map further code, and end;
 * what the kernel side records of them goes into a timeline, and the finished profile into the
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

/* Whom the session is about, and when it ends by itself. */
enum session_kind {
	SESSION_SYSTEM,	 /* every GHC process of the host: never */
	SESSION_PIDS,	 /* processes that run already: with the last of them */
	SESSION_COMMAND, /* a program that it starts, and what that starts: with the program */
};

/* What the strings and arrays point at must live as long as the session. */
struct session_opts {
	enum session_kind kind;
	const char *mode;  /* the same by name, for the report: "system", … */
	const pid_t *pids; /* SESSION_PIDS: at least one, none twice */
	size_t n_pids;
	char *const *command; /* SESSION_COMMAND: argv, NULL at its end */
	uint64_t duration_ns; /* 0: until it ends by itself or is stopped by a signal */

	const struct select_rules *select; /* SESSION_SYSTEM: which of all; NULL: all */
	uint64_t window_ns; /* the output is cut into windows of this length; 0: it is one */

	uint32_t frequency_hz; /* samples per second and CPU */
	double max_overhead_percent;
	double max_cpu_percent; /* of one CPU, for safescoped itself; 0: no limit */
	enum intake_stacks stacks;
	bool kernel_stacks;
	bool heap_census; /* after a major collection, and after each SIGUSR1 */
	int freeze_ms;	  /* the process is stopped for it, no longer than this; 0: it is not */
	bool plumbing;	  /* see struct intake_opts */

	const char *symbols;	     /* an unstripped twin of the executable; NULL: none */
	bool force;		     /* a twin with another build-id is accepted */
	const char *const *archives; /* directories of static archives */
	size_t n_archives;
	bool archives_may_lack;	       /* the session goes on without them where there are none */
	const char *const *debuginfod; /* servers; none: those of DEBUGINFOD_URLS */
	size_t n_debuginfod;
	bool no_eventlogs;    /* none is joined */
	const char *eventlog; /* the log to join, a file, FIFO or socket; NULL: whatever log each
				 process writes */
	bool eventlog_asked;  /* that one is joined was asked for: it is missing if there is none */
	const char *save;     /* the capture to make; NULL: none */

	struct metrics_server *metrics; /* who asks for the session's metrics; NULL: nobody */

	const char *off_path; /* when there is a file of this name the session ends */

	const struct push_opts *push;	  /* NULL: nothing is pushed */
	const struct output_opts *output; /* also which lanes are made */
	bool quiet;			  /* no progress line */
	/* Called once everything is attached, and each second while the loop turns. NULL: nobody
	 * watches. */
	void (*alive)(void *ctx);
	void *alive_ctx;
	/* Another session follows where this one cannot go on as it was: after so long it may end
	 * with SESSION_RENEWED. 0: it may not. */
	uint64_t renew_after_ns;
	/* SESSION_COMMAND: once it has ended, its exit status is ours. */
	bool propagate_exit;
};

/* What session__run returns beside EXIT_…, no program's exit status: it ended by opts->off_path; by
 * itself, and the next one may begin. */
#define SESSION_SWITCHED_OFF 256 /* with EXIT_PARTIAL, if it was not complete */
#define SESSION_RENEWED	     512 /* the same */

/*
 * Runs it to its end and writes the outputs; returns the process's exit code (base.h, EXIT_…).
 * What fails is printed. Signals and RLIMIT_NOFILE of the process are changed for good.
 */
int session__run(const struct session_opts *opts);
/* Whether that file is there, and root's or our own user's: others switch nothing off, wherever
 * they may make files. */
bool session__is_off(const char *off_path);

#endif

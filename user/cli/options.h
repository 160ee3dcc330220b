/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, checked. Private to the cli room. */
#ifndef SAFESCOPED_CLI_OPTIONS_H
#define SAFESCOPED_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "intake/intake.h"
#include "logs/logs.h"
#include "output/output.h"
#include "process/select.h"
#include "push/push.h"

#define OPTIONS_MAX_PIDS    256
#define OPTIONS_MAX_GLOBS   64
#define OPTIONS_MAX_SERVERS 8
#define OPTIONS_MAX_DIRS    8

#define OPTIONS_OFF_PATH    "/run/safescoped/off"
#define OPTIONS_CONFIG_PATH "/etc/safescoped.conf"

/* What to do. */
enum mode {
	MODE_SYSTEM,
	MODE_PID,
	MODE_COMMAND,
	MODE_LIST,
	MODE_DOCTOR,
	MODE_EVENTLOG,
	MODE_REPLAY,
	MODE_DIFF
};

struct config;
struct command_line;

/* The strings are the command line's, and the configuration file's as it was read. */
struct options {
	const struct command_line *line;
	const char *config_path; /* NULL: no file was given */
	struct config *config;
	enum mode mode;
	char **command; /* MODE_COMMAND: argv of what to start, NULL at its end */
	pid_t pids[OPTIONS_MAX_PIDS];
	size_t n_pids;
	uint64_t duration_ns; /* 0: until stopped */
	struct select_rules select;
	const char *off_path; /* while this file exists nothing is profiled */
	bool top;	      /* a live screen, of windows */
	uint64_t window_ns;   /* 0: the session is one */
	const char *metrics;  /* where they are asked for; NULL: nowhere */
	uint32_t frequency_hz;
	struct output_opts output;
	const char *symbols;
	const char *symbols_dir; /* MODE_REPLAY */
	const char *debuginfod[OPTIONS_MAX_SERVERS];
	size_t n_debuginfod;
	const char *archives[OPTIONS_MAX_DIRS];
	size_t n_archives;
	const char *save;     /* NULL: the capture is not kept */
	const char *replay;   /* MODE_REPLAY */
	const char *live;     /* an option that was given and that only a session can honour */
	const char *diff[2];  /* MODE_DIFF; NULL: fewer were given */
	const char *per;      /* MODE_DIFF: the event that is counted; NULL: CPU time */
	const char *eventlog; /* FILE, "auto", "none"; NULL: not given */
	struct log_part part; /* MODE_EVENTLOG */
	const char *hide[OPTIONS_MAX_GLOBS], *only[OPTIONS_MAX_GLOBS]; /* cost centres */
	size_t n_hide, n_only;
	bool open; /* the page is served when it is there */
	bool force;
	double max_overhead_percent;
	double max_cpu_percent; /* 0: no limit */
	enum intake_stacks stacks;
	bool kernel_stacks;
	bool heap_census;
	int freeze_ms;	       /* 0: no */
	bool propagate_exit;   /* MODE_COMMAND */
	struct push_opts push; /* n 0: nothing is pushed */
	uint64_t push_stamp;   /* push__stamp(), as the options were made */
	bool quiet;
	int verbose; /* how many times -v was given */
};

/* "pid", "system", …: session.mode of the report. */
const char *options__mode(enum mode mode);

/*
 * Reads the command line, and the file that it names. Exits by itself on --help, --version,
 * --completion and wrong usage (64), where the file cannot be read (EXIT_FAILED), and after
 * --check-config. The caller frees the options.
 */
struct options *options__parse(int argc, char **argv);
/*
 * The same command line, with what is in the file now. Needs `old`->config_path. -EINVAL: something
 * is wrong; -EIO: the file cannot be read; either is printed. -ENOMEM.
 */
int options__again(const struct options *old, struct options **ret_options);
/* Whether they were made of the same lines, and the files for --push have not changed since. */
bool options__same(const struct options *a, const struct options *b);
/* How much is logged from now on. */
void options__set_log_level(const struct options *options);
void options__free(struct options *options);

#endif

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

/* Strings point into the command line and into the configuration file as it was read. */
struct options {
	const struct command_line *line;
	const char *config_path; /* NULL: no file was given */
	struct config *config;
	enum mode mode;
	char **command; /* MODE_COMMAND: argv of the command, NULL-terminated */
	pid_t pids[OPTIONS_MAX_PIDS];
	size_t n_pids;
	uint64_t duration_ns; /* 0: until stopped */
	struct select_rules select;
	const char *off_path; /* while this file exists, nothing is profiled */
	bool top;	      /* a live screen, updated by windows */
	uint64_t window_ns;   /* 0: the session is not divided into windows */
	const char *metrics;  /* the address to serve metrics at; NULL: none */
	uint32_t frequency_hz;
	struct output_opts output;
	const char *symbols;
	const char *symbols_dir; /* MODE_REPLAY */
	const char *debuginfod[OPTIONS_MAX_SERVERS];
	size_t n_debuginfod;
	const char *archives[OPTIONS_MAX_DIRS];
	size_t n_archives;
	const char *save;     /* NULL: no capture is written */
	const char *replay;   /* MODE_REPLAY */
	const char *live;     /* an option given that only a live session can honour */
	const char *diff[2];  /* MODE_DIFF; NULL: not given */
	const char *per;      /* MODE_DIFF: the event to normalise by; NULL: CPU time */
	const char *eventlog; /* FILE, "auto", "none"; NULL: not given */
	struct log_part part; /* MODE_EVENTLOG */
	const char *hide[OPTIONS_MAX_GLOBS], *only[OPTIONS_MAX_GLOBS]; /* cost centres */
	size_t n_hide, n_only;
	bool open; /* serve the html page once it is written */
	bool force;
	double max_overhead_percent;
	double max_cpu_percent; /* 0: no limit */
	enum intake_stacks stacks;
	bool kernel_stacks;
	bool heap_census;
	int freeze_ms;	       /* 0: do not stop the process */
	bool propagate_exit;   /* MODE_COMMAND */
	struct push_opts push; /* n 0: nothing is pushed */
	uint64_t push_stamp;   /* push__stamp() when the options were made */
	bool quiet;
	int verbose; /* number of times -v was given */
};

/* "pid", "system", …: session.mode in the report. */
const char *options__mode(enum mode mode);

/*
 * Reads the command line, and the file that it names. Exits on --help, --version, --completion and
 * wrong usage (64), if the file cannot be read (EXIT_FAILED), and after --check-config. The caller
 * frees the result.
 */
struct options *options__parse(int argc, char **argv);
/*
 * The same command line, with the current content of the file. Needs `old`->config_path. -EINVAL:
 * something is wrong; -EIO: the file cannot be read; both are printed. -ENOMEM.
 */
int options__again(const struct options *old, struct options **ret_options);
/* True if both were made from the same lines, and the files for --push have not changed in
 * between. */
bool options__same(const struct options *a, const struct options *b);
/* Sets the log level. */
void options__set_log_level(const struct options *options);
void options__free(struct options *options);

#endif

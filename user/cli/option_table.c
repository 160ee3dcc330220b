/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of options. */
#include "option_table.h"

#include <string.h>

#include "base/base.h"
#include "options.h"

const struct option_row option_rows[] = {
	{NULL, 0, NULL, 0, "What is profiled:", 1, NULL},
	{"pid", 'p', "PID[,PID...]", OPTION_PID | OPTION_MANY,
	 "these processes (default: every GHC process of this host)", 1, NULL},
	{"comm", OPT_COMM, "GLOB", OPTION_MANY | OPTION_LIVE,
	 "of the host's processes, only those with this name; also with --list (several: any of "
	 "them)",
	 1, NULL},
	{"exe", OPT_EXE, "GLOB", OPTION_FILE | OPTION_MANY | OPTION_LIVE,
	 "those whose program has this path", 1, NULL},
	{"user", OPT_USER, "NAME", OPTION_USER_NAME | OPTION_MANY | OPTION_LIVE,
	 "those of this user", 1, NULL},
	{"cgroup", OPT_CGROUP, "GLOB", OPTION_MANY | OPTION_LIVE,
	 "those whose control group has this path", 1, NULL},
	{"exclude", OPT_EXCLUDE, "KIND=GLOB", OPTION_MANY | OPTION_LIVE,
	 "leave these out; KIND: comm, exe, user or cgroup", 1, NULL},
	{"eventlog", 'e', "FILE|auto|none", OPTION_FILE,
	 "without a process: show a finished eventlog (also -, a FIFO, a Unix socket, gzip), or a "
	 ".prof or -pj report, alone; with a process: the log to join with it, also a FIFO or a "
	 "Unix socket; auto (default): the one it writes",
	 1, NULL},
	{"from", OPT_FROM, "MARKER|TIME", OPTION_NOT_IN_FILE,
	 "with a log alone: only what comes after the first marker or message that begins with "
	 "this, or after this time (1.5s, 200ms)",
	 1, NULL},
	{"to", OPT_TO, "MARKER|TIME", OPTION_NOT_IN_FILE,
	 "with a log alone: only what comes before", 1, NULL},
	{"hide", OPT_HIDE, "GLOB", OPTION_NOT_IN_FILE | OPTION_MANY,
	 "with a log alone: cost centres (module, label, or Module.label) to leave out; their time "
	 "goes to the caller",
	 1, NULL},
	{"only", OPT_ONLY, "GLOB", OPTION_NOT_IN_FILE | OPTION_MANY,
	 "with a log alone: leave out all other cost centres", 1, NULL},
	{"replay", OPT_REPLAY, "FILE", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "write the output of a session kept by --save, on any machine", 1, NULL},
	{"diff", OPT_DIFF, "A B", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "compare two captures or JSON reports: what is slower or faster in the second than in the "
	 "first, and what allocates more or less, beyond noise (text; for captures also folded, "
	 "html)",
	 1, NULL},
	{"per", OPT_PER, "FUNCTION|gc", OPTION_NOT_IN_FILE,
	 "with --diff: compare per safe call of this function, or per collection (default: per "
	 "second of CPU time)",
	 1, NULL},
	{"list", OPT_LIST, NULL, OPTION_NOT_IN_FILE,
	 "list the GHC processes of this host and what can be found out about each (also -f json)",
	 1, NULL},
	{"doctor", OPT_DOCTOR, NULL, OPTION_NOT_IN_FILE,
	 "report what this kernel, these privileges and the process of --pid allow, and what is "
	 "missing",
	 1, NULL},
	{NULL, 0, NULL, 0, "How it is profiled:", 2, NULL},
	{"config", OPT_CONFIG, "FILE", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "read options from this file, one per line (window 60); those on the command line are "
	 "applied after them; SIGHUP reloads it; without --duration, run as a daemon, with windows "
	 "of 60 s",
	 2, NULL},
	{"check-config", OPT_CHECK_CONFIG, NULL, OPTION_NOT_IN_FILE,
	 "check the file of --config for errors (default " OPTIONS_CONFIG_PATH
	 "), and do nothing else",
	 2, NULL},
	{"duration", 'd', "TIME", OPTION_LIVE,
	 "stop after this long: 10, 10s, 5m, 1h30m (default: Ctrl-C, or the last target's exit)", 2,
	 NULL},
	{"window", OPT_WINDOW, "TIME", 0,
	 "write a whole report for each part of the session of this length, in the directory of "
	 "--output (also with --replay)",
	 2, NULL},
	{"top", OPT_TOP, NULL, OPTION_NOT_IN_FILE,
	 "a live screen: processes, states, functions, calls, collections, updated every second or "
	 "--window; h shows the keys (also with --replay)",
	 2, NULL},
	{"off-file", OPT_OFF_FILE, "PATH", OPTION_FILE | OPTION_LIVE,
	 "while this file exists, nothing is profiled", 2, OPTIONS_OFF_PATH},
	{"frequency", 'F', "HZ", OPTION_LIVE,
	 "samples per second and CPU on average, 1 to 9999; 19 for a daemon, see --config", 2,
	 "99"},
	{"stacks", OPT_STACKS, "auto|stg|ccs|both", OPTION_LIVE,
	 "what the Haskell part of a stack consists of: the Haskell stack's frames, the cost "
	 "centres, or the cost centres with the frames below them (auto: cost centres in profiled "
	 "programs)",
	 2, "auto"},
	{"kernel-stacks", OPT_KERNEL_STACKS, NULL, OPTION_LIVE,
	 "include kernel frames on top of stacks", 2, NULL},
	{"heap-census", OPT_HEAP_CENSUS, NULL, OPTION_LIVE,
	 "report what the heap is made of, after a major collection (with --window: again after "
	 "SIGUSR1)",
	 2, NULL},
	{"freeze", OPT_FREEZE, "TIME", OPTION_LIVE,
	 "with --heap-census: stop the process while its heap is read, for at most this long, such "
	 "as 100ms",
	 2, NULL},
	{"symbols", OPT_SYMBOLS, "FILE", OPTION_FILE,
	 "an unstripped twin of the target's executable (default: debug files by build-id and "
	 "debuglink)",
	 2, NULL},
	{"symbols-dir", OPT_SYMBOLS_DIR, "DIR", OPTION_DIR | OPTION_NOT_IN_FILE,
	 "with --replay: unstripped twins and debug files, found by build-id", 2, NULL},
	{"debuginfod", OPT_DEBUGINFOD, "URL", OPTION_MANY,
	 "get debug files by build-id from this server (default: those in DEBUGINFOD_URLS)", 2,
	 NULL},
	{"archives", OPT_ARCHIVES, "DIR", OPTION_DIR | OPTION_MANY | OPTION_LIVE,
	 "static archives (lib*.a), to name code linked from them in programs without symbols", 2,
	 NULL},
	{"force", OPT_FORCE, NULL, 0, "accept --symbols with another build-id", 2, NULL},
	{"max-overhead", OPT_MAX_OVERHEAD, "PERCENT", OPTION_LIVE,
	 "share of one CPU that the probes may cost a target before they come off", 2, "2"},
	{"max-cpu", OPT_MAX_CPU, "PERCENT", 0,
	 "share of one CPU that safescoped itself may use before it takes fewer samples", 2, NULL},
	{"propagate-exit", OPT_PROPAGATE_EXIT, NULL, OPTION_NOT_IN_FILE,
	 "with a command: exit with its status, or with 128 plus the signal's number if one killed "
	 "it",
	 2, NULL},
	{"save", OPT_SAVE, "FILE", OPTION_FILE, "also save everything recorded, for --replay", 2,
	 NULL},
	{NULL, 0, NULL, 0, "What is written:", 3, NULL},
	{"format", 'f', "LIST", OPTION_FORMATS, "comma-separated formats (default speedscope,text)",
	 3, NULL},
	{"output", 'o', "PATH", OPTION_FILE,
	 "where to write (default safescope-COMM-PID-TIME here; text goes to standard output, or "
	 "to standard error with a command)",
	 3, NULL},
	{"host-name", OPT_HOST_NAME, "NAME", 0,
	 "name of the host, in formats that have one (default: its own name)", 3, NULL},
	{"keep", OPT_KEEP, "N", 0, "with --window: keep only the last N windows", 3, NULL},
	{"keep-bytes", OPT_KEEP_BYTES, "SIZE", 0,
	 "with --window: keep only as many as fit into this (500M, 2G)", 3, NULL},
	{"keep-for", OPT_KEEP_FOR, "TIME", 0,
	 "with --window: keep only those that began within this time (12h, 7d)", 3, NULL},
	{"push", OPT_PUSH, "URL", OPTION_MANY,
	 "send the profile, or each window, to otlp+http://HOST, otlp+https://HOST, "
	 "pyroscope+http://HOST or pyroscope+https://HOST; files are written only if -f or -o is "
	 "given (several: to each)",
	 3, NULL},
	{"push-headers", OPT_PUSH_HEADERS, "FILE", OPTION_FILE | OPTION_MANY,
	 "lines 'Name: value' to send with each request of the --push before it", 3, NULL},
	{"push-ca", OPT_PUSH_CA, "FILE", OPTION_FILE | OPTION_MANY,
	 "certificates that the --push before it trusts, instead of the system's", 3, NULL},
	{"push-queue", OPT_PUSH_QUEUE, "DIR", OPTION_DIR,
	 "where undelivered requests are kept (default " PUSH_QUEUE_DIR ")", 3, NULL},
	{"push-queue-bytes", OPT_PUSH_QUEUE_BYTES, "SIZE", 0,
	 "keep at most this much for each --push, then drop the oldest (default 256M)", 3, NULL},
	{"push-timeout", OPT_PUSH_TIMEOUT, "TIME", 0,
	 "time limit of one attempt to send (default 30s)", 3, NULL},
	{"metrics", OPT_METRICS, "ADDRESS", 0,
	 "serve metrics for Prometheus at PORT (of 127.0.0.1), HOST:PORT or unix:PATH", 3, NULL},
	{"open", OPT_OPEN, NULL, OPTION_NOT_IN_FILE,
	 "afterwards serve the html page on 127.0.0.1 until Ctrl-C, and open a browser if there is "
	 "a display",
	 3, NULL},
	{"lanes", OPT_LANES, "LIST", OPTION_LANES,
	 "comma-separated lanes to show: thread, capability, haskell (default thread,capability; "
	 "for an eventlog alone, all)",
	 3, NULL},
	{"weight", OPT_WEIGHT, "wall|cpu|samples|alloc", 0,
	 "what flame graphs (folded, html) and pprof's default value count", 3, "cpu"},
	{"quiet", 'q', NULL, 0, "no progress, no warnings", 3, NULL},
	{"verbose", 'v', NULL, OPTION_MANY, "report more (twice: debug)", 3, NULL},
	{"push-header-file", OPT_PUSH_HEADERS, "FILE", OPTION_FILE | OPTION_MANY,
	 "as --push-headers", -1, NULL},
	{"queue", OPT_PUSH_QUEUE, "DIR", OPTION_DIR, "as --push-queue", -1, NULL},
	{"queue-bytes", OPT_PUSH_QUEUE_BYTES, "SIZE", 0, "as --push-queue-bytes", -1, NULL},
	{"completion", OPT_COMPLETION, "bash|zsh", OPTION_NOT_IN_FILE,
	 "print a script with which this shell completes the options", -1, NULL},
	{NULL, 'h', NULL, OPTION_NOT_IN_FILE, "as --help", -1, NULL},
	{0},
};
_Static_assert(ARRAY_SIZE(option_rows) <= OPTION_MAX_ROWS, "places in the table are array indices");

bool option_table__is_long(const struct option_row *row)
{
	return row->key && row->name;
}

bool option_table__has_letter(const struct option_row *row)
{
	return row->key && row->key < 128;
}

const struct option_row *option_table__find(const char *name)
{
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (option_table__is_long(row) && !strcmp(row->name, name))
			return row;
	return NULL;
}

const struct option_row *option_table__of_key(int key)
{
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (row->key && row->key == key)
			return row;
	return NULL;
}

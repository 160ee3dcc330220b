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
	 "of the host's processes only those of this name, also with --list (several: any of them)",
	 1, NULL},
	{"exe", OPT_EXE, "GLOB", OPTION_FILE | OPTION_MANY | OPTION_LIVE,
	 "those whose program has this path", 1, NULL},
	{"user", OPT_USER, "NAME", OPTION_USER_NAME | OPTION_MANY | OPTION_LIVE,
	 "those of this user", 1, NULL},
	{"cgroup", OPT_CGROUP, "GLOB", OPTION_MANY | OPTION_LIVE,
	 "those whose control group has this path", 1, NULL},
	{"exclude", OPT_EXCLUDE, "KIND=GLOB", OPTION_MANY | OPTION_LIVE,
	 "leave these out; KIND is comm, exe, user or cgroup", 1, NULL},
	{"eventlog", 'e', "FILE|auto|none", OPTION_FILE,
	 "without a process: a finished eventlog (also -, a FIFO, a Unix socket, gzip), or a .prof "
	 "or -pj report, alone; with a process: the log to join with it, also a FIFO or a Unix "
	 "socket; auto (default): the one that it writes",
	 1, NULL},
	{"from", OPT_FROM, "MARKER|TIME", OPTION_NOT_IN_FILE,
	 "with a log alone: only what comes after the first marker or message that begins with "
	 "this, or after this time (1.5s, 200ms)",
	 1, NULL},
	{"to", OPT_TO, "MARKER|TIME", OPTION_NOT_IN_FILE,
	 "with a log alone: only what comes before", 1, NULL},
	{"hide", OPT_HIDE, "GLOB", OPTION_NOT_IN_FILE | OPTION_MANY,
	 "with a log alone: cost centres (module, label, or Module.label) to leave out; their time "
	 "is the caller's",
	 1, NULL},
	{"only", OPT_ONLY, "GLOB", OPTION_NOT_IN_FILE | OPTION_MANY,
	 "with a log alone: leave all other cost centres out", 1, NULL},
	{"replay", OPT_REPLAY, "FILE", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "make the output of a session that --save kept, on any machine", 1, NULL},
	{"diff", OPT_DIFF, "A B", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "with two captures or JSON reports: what is slower or faster in the second one than in "
	 "the first, and what allocates more or less, beyond noise (text; of captures also "
	 "folded, html)",
	 1, NULL},
	{"per", OPT_PER, "FUNCTION|gc", OPTION_NOT_IN_FILE,
	 "with --diff: for each safe call of this function, or each collection (default: for each "
	 "second of CPU time)",
	 1, NULL},
	{"list", OPT_LIST, NULL, OPTION_NOT_IN_FILE,
	 "the GHC processes of this host and what can be found out about each (also -f json)", 1,
	 NULL},
	{"doctor", OPT_DOCTOR, NULL, OPTION_NOT_IN_FILE,
	 "what this kernel, these privileges and the process of --pid allow, and what is missing",
	 1, NULL},
	{NULL, 0, NULL, 0, "How it is profiled:", 2, NULL},
	{"config", OPT_CONFIG, "FILE", OPTION_FILE | OPTION_NOT_IN_FILE,
	 "read options from this file, one a line (window 60); those given here come after them; "
	 "SIGHUP reads it again; without --duration it makes a daemon, with windows of 60 s",
	 2, NULL},
	{"check-config", OPT_CHECK_CONFIG, NULL, OPTION_NOT_IN_FILE,
	 "report what is wrong in the file of --config (default " OPTIONS_CONFIG_PATH
	 "), and do nothing else",
	 2, NULL},
	{"duration", 'd', "TIME", OPTION_LIVE,
	 "stop after this long: 10, 10s, 5m, 1h30m (default: Ctrl-C, or the last target's exit)", 2,
	 NULL},
	{"window", OPT_WINDOW, "TIME", 0,
	 "a whole report for each such part of the session, in the directory of --output (also "
	 "with --replay)",
	 2, NULL},
	{"top", OPT_TOP, NULL, OPTION_NOT_IN_FILE,
	 "a live screen: processes, states, functions, calls, collections, renewed each second or "
	 "--window; h shows the keys (also with --replay)",
	 2, NULL},
	{"off-file", OPT_OFF_FILE, "PATH", OPTION_FILE | OPTION_LIVE,
	 "while this file exists nothing is profiled", 2, OPTIONS_OFF_PATH},
	{"frequency", 'F', "HZ", OPTION_LIVE,
	 "samples per second and CPU in the mean, 1 to 9999; a daemon, see --config, takes 19", 2,
	 "99"},
	{"stacks", OPT_STACKS, "auto|stg|ccs|both", OPTION_LIVE,
	 "what the Haskell part of a stack is made of: the Haskell stack's frames, the cost "
	 "centres, or those and below them the frames (auto: cost centres in profiled programs)",
	 2, "auto"},
	{"kernel-stacks", OPT_KERNEL_STACKS, NULL, OPTION_LIVE, "kernel frames on top of stacks", 2,
	 NULL},
	{"heap-census", OPT_HEAP_CENSUS, NULL, OPTION_LIVE,
	 "what the heap is made of, after a major collection (with --window: and again after "
	 "SIGUSR1)",
	 2, NULL},
	{"freeze", OPT_FREEZE, "TIME", OPTION_LIVE,
	 "with --heap-census: stop the process while its heap is read, for no longer than this, "
	 "such as 100ms",
	 2, NULL},
	{"symbols", OPT_SYMBOLS, "FILE", OPTION_FILE,
	 "an unstripped twin of the target's executable (default: debug files by build-id and "
	 "debuglink)",
	 2, NULL},
	{"symbols-dir", OPT_SYMBOLS_DIR, "DIR", OPTION_DIR | OPTION_NOT_IN_FILE,
	 "with --replay: unstripped twins and debug files by their build-ids", 2, NULL},
	{"debuginfod", OPT_DEBUGINFOD, "URL", OPTION_MANY,
	 "debug files by their build-ids from this server (default: those of DEBUGINFOD_URLS)", 2,
	 NULL},
	{"archives", OPT_ARCHIVES, "DIR", OPTION_DIR | OPTION_MANY | OPTION_LIVE,
	 "static archives (lib*.a) that name what was linked from them in programs without symbols",
	 2, NULL},
	{"force", OPT_FORCE, NULL, 0, "accept --symbols of another build-id", 2, NULL},
	{"max-overhead", OPT_MAX_OVERHEAD, "PERCENT", OPTION_LIVE,
	 "share of one CPU that the probes may cost a target before they come off", 2, "2"},
	{"max-cpu", OPT_MAX_CPU, "PERCENT", 0,
	 "share of one CPU that safescoped itself may take before it takes fewer samples", 2, NULL},
	{"propagate-exit", OPT_PROPAGATE_EXIT, NULL, OPTION_NOT_IN_FILE,
	 "with a command: end with its exit status, or with 128 and the signal's number if one "
	 "killed it",
	 2, NULL},
	{"save", OPT_SAVE, "FILE", OPTION_FILE, "also keep all that was seen, for --replay", 2,
	 NULL},
	{NULL, 0, NULL, 0, "What is written:", 3, NULL},
	{"format", 'f', "LIST", OPTION_FORMATS, "comma-separated formats (default speedscope,text)",
	 3, NULL},
	{"output", 'o', "PATH", OPTION_FILE,
	 "where to (default safescope-COMM-PID-TIME here; text goes to standard output, with a "
	 "command to standard error)",
	 3, NULL},
	{"host-name", OPT_HOST_NAME, "NAME", 0,
	 "what formats that name the host call it (default: its own name)", 3, NULL},
	{"keep", OPT_KEEP, "N", 0, "with --window: keep only the last N windows", 3, NULL},
	{"keep-bytes", OPT_KEEP_BYTES, "SIZE", 0,
	 "with --window: only as many as take up no more than this (500M, 2G)", 3, NULL},
	{"keep-for", OPT_KEEP_FOR, "TIME", 0,
	 "with --window: only those that began no longer ago (12h, 7d)", 3, NULL},
	{"push", OPT_PUSH, "URL", OPTION_MANY,
	 "send it, or each window, to otlp+http://HOST, otlp+https://HOST, pyroscope+http://HOST "
	 "or "
	 "pyroscope+https://HOST; files only if -f or -o is given (several: to each)",
	 3, NULL},
	{"push-headers", OPT_PUSH_HEADERS, "FILE", OPTION_FILE | OPTION_MANY,
	 "lines 'Name: value' that go with each request of the --push before it", 3, NULL},
	{"push-ca", OPT_PUSH_CA, "FILE", OPTION_FILE | OPTION_MANY,
	 "certificates that the --push before it trusts, instead of the system's", 3, NULL},
	{"push-queue", OPT_PUSH_QUEUE, "DIR", OPTION_DIR,
	 "what is not taken is kept there (default " PUSH_QUEUE_DIR ")", 3, NULL},
	{"push-queue-bytes", OPT_PUSH_QUEUE_BYTES, "SIZE", 0,
	 "as much of it, for each --push; then the oldest go (default 256M)", 3, NULL},
	{"push-timeout", OPT_PUSH_TIMEOUT, "TIME", 0, "of one attempt to send (default 30s)", 3,
	 NULL},
	{"metrics", OPT_METRICS, "ADDRESS", 0,
	 "answer Prometheus at PORT (of 127.0.0.1), HOST:PORT or unix:PATH", 3, NULL},
	{"open", OPT_OPEN, NULL, OPTION_NOT_IN_FILE,
	 "afterwards serve the html page on 127.0.0.1 until Ctrl-C, and open a browser where there "
	 "is a display",
	 3, NULL},
	{"lanes", OPT_LANES, "LIST", OPTION_LANES,
	 "comma-separated lanes to show: thread, capability, haskell (default thread,capability; "
	 "of an eventlog alone all)",
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
	 "print what makes this shell complete the options", -1, NULL},
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

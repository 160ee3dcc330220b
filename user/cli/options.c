/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line, by glibc's argp. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "options_priv.h"

const char *argp_program_version = "safescoped " SAFESCOPED_VERSION;

static const char doc[] =
	"Where every moment of a running Haskell program went: Haskell functions with their real "
	"stacks, safe and unsafe foreign calls, waiting for a capability, GC, blocked, idle. "
	"Attaches to processes compiled by GHC as they are.\v"
	"Formats: speedscope, folded, json, text, chrome, pprof, html. PATH of -o is a directory, "
	"a stem (PATH.speedscope.json, PATH.folded, ...; a suffix that it already has is not added "
	"again) or - for standard output (one format); with --window a directory or -.\n\n"
	"Exit codes: 0 complete, 1 finished but something was lost or something that was asked for "
	"is missing, 2 failed, 64 wrong usage.\n\n"
	"Examples:\n"
	"  safescoped --pid 1234 -d 10\n"
	"  safescoped -p 1234,1235 -F 999 -f speedscope,folded,text -o out/\n"
	"  safescoped -d 60 -f json -o host.json\n"
	"  safescoped -e prog.eventlog --from 'START load' --to 10s\n"
	"  safescoped -- hledger -f big.journal balance";

static const char args_doc[] =
	"\n-- COMMAND [ARG...]\n--eventlog FILE\n--replay FILE\n--list\n--doctor";

static const struct argp_option argp_options[] = {
	{NULL, 0, NULL, 0, "What is profiled:", 1},
	{"pid", 'p', "PID[,PID...]", 0, "these processes (default: every GHC process of this host)",
	 1},
	{"comm", OPT_COMM, "GLOB", 0,
	 "of the host's processes, also with --list, those of this name (several: any of them)", 1},
	{"exe", OPT_EXE, "GLOB", 0, "those whose program has this path", 1},
	{"user", OPT_USER, "NAME", 0, "those of this user", 1},
	{"cgroup", OPT_CGROUP, "GLOB", 0, "those whose control group has this path", 1},
	{"exclude", OPT_EXCLUDE, "KIND=GLOB", 0,
	 "leave these out; KIND is comm, exe, user or cgroup", 1},
	{"eventlog", 'e', "FILE|auto|none", 0,
	 "without a process: a finished eventlog (also -, a FIFO, a Unix socket, gzip), or a .prof "
	 "or -pj report, alone; with a process: the log to join with it, also a FIFO or a Unix "
	 "socket; auto (default): the one that it writes",
	 1},
	{"from", OPT_FROM, "MARKER|TIME", 0,
	 "with a log alone: only what comes after the first marker or message that begins with "
	 "this, or after this time (1.5s, 200ms)",
	 1},
	{"to", OPT_TO, "MARKER|TIME", 0, "with a log alone: only what comes before", 1},
	{"hide", OPT_HIDE, "GLOB", 0,
	 "with a log alone: cost centres (module, label, or Module.label) to leave out; their time "
	 "is the caller's",
	 1},
	{"only", OPT_ONLY, "GLOB", 0, "with a log alone: leave all other cost centres out", 1},
	{"replay", OPT_REPLAY, "FILE", 0,
	 "make the output of a session that --save kept, on any machine", 1},
	{"list", OPT_LIST, NULL, 0,
	 "the GHC processes of this host and what can be learnt of each (also -f json)", 1},
	{"doctor", OPT_DOCTOR, NULL, 0,
	 "what this kernel, these privileges and the process of --pid allow, and what is missing",
	 1},
	{NULL, 0, NULL, 0, "How it is profiled:", 2},
	{"duration", 'd', "TIME", 0,
	 "stop after this long: 10, 10s, 5m, 1h30m (default: Ctrl-C, or the last target's exit)",
	 2},
	{"window", OPT_WINDOW, "TIME", 0,
	 "a whole report for each such part of the session, in the directory of --output (also "
	 "with --replay)",
	 2},
	{"off-file", OPT_OFF_FILE, "PATH", 0,
	 "while this file exists nothing is profiled (default " OPTIONS_OFF_PATH ")", 2},
	{"frequency", 'F', "HZ", 0, "samples per second and CPU, 1 to 9999 (default 99)", 2},
	{"stacks", OPT_STACKS, "auto|stg|ccs|both", 0,
	 "what the Haskell part of a stack is made of: the Haskell stack's frames, the cost "
	 "centres, or those and below them the frames (auto: cost centres in profiled programs)",
	 2},
	{"kernel-stacks", OPT_KERNEL_STACKS, NULL, 0, "kernel frames on top of stacks", 2},
	{"symbols", OPT_SYMBOLS, "FILE", 0,
	 "an unstripped twin of the target's executable (default: debug files by build-id and "
	 "debuglink)",
	 2},
	{"force", OPT_FORCE, NULL, 0, "accept --symbols of another build-id", 2},
	{"max-overhead", OPT_MAX_OVERHEAD, "PERCENT", 0,
	 "share of one CPU that the probes may cost a target before they come off (default 2)", 2},
	{"propagate-exit", OPT_PROPAGATE_EXIT, NULL, 0,
	 "with a command: end with its exit status, or with 128 and the signal's number if one "
	 "killed it",
	 2},
	{"save", OPT_SAVE, "FILE", 0, "also keep all that was seen, for --replay", 2},
	{NULL, 0, NULL, 0, "What is written:", 3},
	{"format", 'f', "LIST", 0, "comma-separated formats (default speedscope,text)", 3},
	{"output", 'o', "PATH", 0,
	 "where to (default safescope-COMM-PID-TIME here; text goes to standard output, with a "
	 "command to standard error)",
	 3},
	{"keep", OPT_KEEP, "N", 0, "with --window: keep only the last N windows", 3},
	{"keep-bytes", OPT_KEEP_BYTES, "SIZE", 0,
	 "with --window: only as many as take up no more than this (500M, 2G)", 3},
	{"keep-for", OPT_KEEP_FOR, "TIME", 0,
	 "with --window: only those that began no longer ago (12h, 7d)", 3},
	{"lanes", OPT_LANES, "LIST", 0,
	 "comma-separated lanes to show: thread, capability, haskell (default thread,capability; "
	 "of an eventlog alone all)",
	 3},
	{"weight", OPT_WEIGHT, "wall|cpu|samples|alloc", 0,
	 "what flame graphs (folded, html) and pprof's default value count (default cpu)", 3},
	{"quiet", 'q', NULL, 0, "no progress, no warnings", 3},
	{"verbose", 'v', NULL, 0, "report more (twice: debug)", 3},
	{NULL, 'h', NULL, 0, "as --help", -1},
	{0},
};

/* ── the options' values ─────────────────────────────────────────────────────────────────── */

static void parse_pids(struct argp_state *state, struct options *o, const char *arg)
{
	const char *p = arg;

	do {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (errno || end == p || pid < 1 || pid > 0x3fffffff || (*end && *end != ','))
			options__usage_error(state, "--pid %s: not a list of process ids", arg);
		if (o->n_pids == OPTIONS_MAX_PIDS)
			options__usage_error(state, "--pid: more than %d processes",
					     OPTIONS_MAX_PIDS);
		for (size_t i = 0; i < o->n_pids; i++)
			if (o->pids[i] == pid)
				pid = 0;
		if (pid)
			o->pids[o->n_pids++] = (pid_t)pid;
		p = *end ? end + 1 : NULL;
	} while (p);
}

/* The word's number in the list, which ends with NULL. */
static unsigned parse_word(struct argp_state *state, const char *what, const char *arg, size_t len,
			   const char *const *words)
{
	char all[64] = "";

	for (unsigned i = 0; words[i]; i++) {
		if (strlen(words[i]) == len && !strncmp(words[i], arg, len))
			return i;
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 !i		? ""
			 : words[i + 1] ? ", "
					: " or ",
			 words[i]);
	}
	options__usage_error(state, "%s %.*s: %s", what, (int)len, arg, all);
}

/* Steps over the next part of a comma-separated list; false: there are no more. */
static bool next_part(const char **list, const char **ret_part, size_t *ret_len)
{
	*ret_part = *list;
	if (!*list)
		return false;
	*ret_len = strcspn(*list, ",");
	*list = (*list)[*ret_len] ? *list + *ret_len + 1 : NULL;
	return true;
}

static void parse_formats(struct argp_state *state, struct output_opts *o, const char *arg)
{
	const char *name;
	size_t len;

	o->n_formats = 0;
	while (next_part(&arg, &name, &len)) {
		const struct export_format *format = export__find(name, len);

		if (!format)
			options__usage_error(state, "--format %.*s: no such format; there are %s",
					     (int)len, name, export__names());
		for (size_t i = 0; i < o->n_formats; i++)
			if (o->formats[i] == format)
				format = NULL;
		if (format && o->n_formats < OUTPUT_MAX_FORMATS)
			o->formats[o->n_formats++] = format;
	}
}

static void parse_lanes(struct argp_state *state, struct output_opts *o, const char *arg)
{
	static const char *const words[] = {[LANE_CAPABILITY] = "capability",
					    [LANE_THREAD] = "thread",
					    [LANE_HASKELL] = "haskell",
					    NULL};
	const char *name;
	size_t len;

	o->lanes = 0;
	while (next_part(&arg, &name, &len))
		o->lanes |= 1U << parse_word(state, "--lanes", name, len, words);
}

static void parse_weight(struct argp_state *state, struct output_opts *o, const char *arg)
{
	static const char *const words[] = {[WEIGHT_WALL] = "wall",
					    [WEIGHT_CPU] = "cpu",
					    [WEIGHT_SAMPLES] = "samples",
					    [WEIGHT_ALLOC] = "alloc",
					    NULL};

	o->weight = (enum export_weight)parse_word(state, "--weight", arg, strlen(arg), words);
}

static void parse_stacks(struct argp_state *state, struct options *o, const char *arg)
{
	static const char *const words[] = {[STACKS_AUTO] = "auto",
					    [STACKS_STG] = "stg",
					    [STACKS_CCS] = "ccs",
					    [STACKS_BOTH] = "both",
					    NULL};

	o->stacks = (enum intake_stacks)parse_word(state, "--stacks", arg, strlen(arg), words);
}

static void check_windows(struct argp_state *state, const struct options *o)
{
	const struct output_opts *out = &o->output;

	if (o->window_ns &&
	    (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		options__usage_error(state, "--window: needs a session, or --replay");
	if (o->window_ns && o->eventlog && strcmp(o->eventlog, "none") != 0)
		options__usage_error(state, "--window: eventlogs are not joined with windows");
	if ((out->keep || out->keep_bytes || out->keep_for_ns) &&
	    (!o->window_ns || (out->path && !strcmp(out->path, "-"))))
		options__usage_error(state,
				     "--keep, --keep-bytes, --keep-for: need --window, and a "
				     "directory");
}

/* One end of the part of a log: a time, or else the beginning of a marker. */
static void parse_end(struct argp_state *state, const char *what, const char *arg, uint64_t *ns,
		      const char **marker)
{
	if (!*arg)
		options__usage_error(state, "%s: an empty text", what);
	*ns = 0;
	*marker = NULL;
	if (!options__parse_time(arg, ns))
		*marker = arg;
}

static void parse_glob(struct argp_state *state, const char *what, const char *arg,
		       const char **globs, size_t *n)
{
	if (*n == OPTIONS_MAX_GLOBS)
		options__usage_error(state, "%s: given more than %d times", what,
				     OPTIONS_MAX_GLOBS);
	globs[(*n)++] = arg;
}

/* A log without a process is looked at by itself. */
static void check_eventlog(struct argp_state *state, struct options *o)
{
	const struct log_part *part = &o->part;
	bool file =
		o->eventlog && strcmp(o->eventlog, "auto") != 0 && strcmp(o->eventlog, "none") != 0;

	if (o->eventlog && !*o->eventlog)
		options__usage_error(state, "--eventlog: an empty path");
	if (file && (o->mode == MODE_LIST || o->mode == MODE_DOCTOR))
		options__usage_error(state, "--eventlog FILE: not with --list or --doctor");
	if (file && o->n_pids > 1)
		options__usage_error(state,
				     "--eventlog FILE: belongs to one process; more were given");
	if (file && !o->n_pids && !o->command)
		o->mode = MODE_EVENTLOG;
	if (o->mode != MODE_EVENTLOG && (part->from_ns || part->to_ns || part->from_marker ||
					 part->to_marker || o->n_hide || o->n_only))
		options__usage_error(state, "--from, --to, --hide, --only: need --eventlog FILE");
}

static void check_capture(struct argp_state *state, struct options *o)
{
	if (o->replay && (o->n_pids || o->command || o->eventlog || o->save))
		options__usage_error(state, "--replay: takes no process, command, log or --save");
	if (o->save && (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		options__usage_error(state, "--save: needs a session");
	if ((o->save && !*o->save) || (o->replay && !*o->replay))
		options__usage_error(state, "--save, --replay: an empty path");
}

static void check_mode(struct argp_state *state, struct options *o)
{
	const struct output_opts *out = &o->output;

	if (o->mode == MODE_LIST && (o->n_pids || o->command))
		options__usage_error(state, "--list: takes no process and no command");
	if (o->mode == MODE_DOCTOR && o->command)
		options__usage_error(state, "--doctor: takes no command");
	if (o->propagate_exit && !o->command)
		options__usage_error(state, "--propagate-exit: needs a command");
	if (o->command && o->n_pids)
		options__usage_error(state, "either --pid or a command");
	if (o->mode == MODE_SYSTEM && o->command)
		o->mode = MODE_COMMAND;
	else if (o->mode == MODE_SYSTEM && o->n_pids)
		o->mode = MODE_PID;
	if (o->symbols && (o->mode == MODE_SYSTEM || o->mode == MODE_LIST))
		options__usage_error(state, "--symbols: needs --pid or a command");
	for (size_t i = 0; i < out->n_formats; i++)
		if (o->mode == MODE_LIST &&
		    (out->n_formats > 1 ||
		     (out->formats[i] != &export_json && out->formats[i] != &export_text)))
			options__usage_error(state,
					     "--list: takes one of the formats text and json");
	if (o->mode == MODE_DOCTOR && (out->n_formats || out->path))
		options__usage_error(state, "--doctor: prints to standard output, as text");
}

static void check(struct argp_state *state, struct options *o)
{
	struct output_opts *out = &o->output;

	/* else a script whose command is an empty variable would profile the whole host */
	if (state->quoted && !o->command)
		options__usage_error(state, "--: a command belongs after it");
	check_eventlog(state, o);
	check_capture(state, o);
	check_mode(state, o);
	check_windows(state, o);
	if (o->select.n && o->mode != MODE_SYSTEM && o->mode != MODE_LIST)
		options__usage_error(state,
				     "--comm, --exe, --user, --cgroup, --exclude: only for all "
				     "processes of the host, or with --list");
	if (!out->n_formats && o->mode == MODE_LIST)
		out->formats[out->n_formats++] = &export_text;
	if (!out->n_formats) {
		out->formats[out->n_formats++] = &export_speedscope;
		out->formats[out->n_formats++] = &export_text;
	}
	if (!out->lanes)
		out->lanes = EXPORT_LANES_THREAD | EXPORT_LANES_CAPABILITY |
			     (o->mode == MODE_EVENTLOG ? EXPORT_LANES_HASKELL : 0);
	if (out->path && !strcmp(out->path, "-") && out->n_formats > 1)
		options__usage_error(state, "-o -: takes one format; choose it with -f");
	out->beside_command = o->command != NULL;
	if (out->path && !strcmp(out->path, "-") && o->command)
		options__usage_error(state, "-o -: standard output is the command's; give a file");
	if (out->path && !out->path[0])
		options__usage_error(state, "-o: an empty path");
}

/* Options of what is shown. */
static error_t parse_view_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_KERNEL_STACKS:
		o->kernel_stacks = true;
		break;
	case OPT_STACKS:
		parse_stacks(state, o, arg);
		break;
	case OPT_LANES:
		parse_lanes(state, &o->output, arg);
		break;
	case 'e':
		o->eventlog = arg;
		break;
	case OPT_FROM:
		parse_end(state, "--from", arg, &o->part.from_ns, &o->part.from_marker);
		break;
	case OPT_TO:
		parse_end(state, "--to", arg, &o->part.to_ns, &o->part.to_marker);
		break;
	case OPT_HIDE:
		parse_glob(state, "--hide", arg, o->hide, &o->n_hide);
		break;
	case OPT_ONLY:
		parse_glob(state, "--only", arg, o->only, &o->n_only);
		break;
	default:
		return options__parse_service(key, arg, state);
	}
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* getopt has said what is wrong; argp would add a line of advice */
		state->err_stream = fopen("/dev/null", "we") ?: state->err_stream;
		break;
	case 'p':
		parse_pids(state, o, arg);
		break;
	case 'd':
		o->duration_ns = options__parse_duration(state, "--duration", arg);
		break;
	case 'F':
		o->frequency_hz =
			(uint32_t)options__parse_number(state, "--frequency", arg, 1, 9999);
		break;
	case 'f':
		parse_formats(state, &o->output, arg);
		break;
	case 'o':
		o->output.path = arg;
		break;
	case OPT_WEIGHT:
		parse_weight(state, &o->output, arg);
		break;
	case OPT_SYMBOLS:
		o->symbols = arg;
		break;
	case OPT_FORCE:
		o->force = true;
		break;
	case OPT_MAX_OVERHEAD:
		o->max_overhead_percent =
			options__parse_number(state, "--max-overhead", arg, 0, 1e6);
		break;
	case 'h':
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose++;
		o->output.verbose = true;
		break;
	case OPT_SAVE:
		o->save = arg;
		break;
	case OPT_PROPAGATE_EXIT:
		o->propagate_exit = true;
		break;
	case OPT_REPLAY:
		if (o->mode != MODE_SYSTEM)
			options__usage_error(state, "only one of --list, --doctor and --replay");
		o->mode = MODE_REPLAY;
		o->replay = arg;
		break;
	case OPT_LIST:
	case OPT_DOCTOR:
		if (o->mode != MODE_SYSTEM)
			options__usage_error(state, "only one of --list, --doctor and --replay");
		o->mode = key == OPT_LIST ? MODE_LIST : MODE_DOCTOR;
		break;
	case ARGP_KEY_ARG:
		/* what follows -- is taken as a whole, by ARGP_KEY_ARGS */
		if (state->quoted && state->next > state->quoted)
			return ARGP_ERR_UNKNOWN;
		options__usage_error(
			state,
			"%s: unexpected; a process is given as --pid PID, a command after --", arg);
		break;
	case ARGP_KEY_ARGS:
		o->command = state->argv + state->next;
		break;
	case ARGP_KEY_END:
		check(state, o);
		break;
	default:
		return parse_view_option(key, arg, state);
	}
	return 0;
}

const char *options__mode(enum mode mode)
{
	static const char *const names[] = {
		[MODE_SYSTEM] = "system", [MODE_PID] = "pid",	    [MODE_COMMAND] = "command",
		[MODE_LIST] = "list",	  [MODE_DOCTOR] = "doctor", [MODE_EVENTLOG] = "eventlog",
		[MODE_REPLAY] = "replay",
	};

	return names[mode];
}

void options__parse(int argc, char **argv, struct options *ret_options)
{
	static const struct argp argp = {argp_options, parse_option, args_doc, doc,
					 NULL,	       NULL,	     NULL};

	/* messages begin with the program's name, not with the path by which it was started */
	static char name[] = "safescoped";

	if (argc > 0)
		argv[0] = name;
	program_invocation_name = program_invocation_short_name = name;
	*ret_options = (struct options){.frequency_hz = 99,
					.max_overhead_percent = 2,
					.output.weight = WEIGHT_CPU,
					.off_path = OPTIONS_OFF_PATH};
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, ret_options);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects options that conflict, and derives options from others. */
#include <string.h>

#include "options_priv.h"

#define TOP_EVERY_NS 1000000000ULL

static int check_diff(struct option_input *in)
{
	struct options *o = in->o;
	struct output_opts *out = &o->output;

	if (o->per && (o->mode != MODE_DIFF || !*o->per))
		return options__wrong(in, "--per: needs --diff, and the name of a function, or gc");
	if (o->mode != MODE_DIFF)
		return 0;
	if (!o->diff[0] || !o->diff[1])
		return options__wrong(in, "--diff: takes two captures or reports");
	if (o->n_pids || o->command || o->eventlog || o->save || o->window_ns || o->push.n)
		return options__wrong(
			in, "--diff: takes no process, command, log, --save, --window or --push");
	/* a configuration is a daemon's */
	if (o->symbols && !options__in_file(in, OPT_SYMBOLS))
		return options__wrong(in, "--diff: takes no --symbols; compare the JSON reports "
					  "of two --replay with --symbols");
	if (out->weight != WEIGHT_CPU && out->weight != WEIGHT_ALLOC)
		return options__wrong(in, "--diff: takes only the weights cpu and alloc");
	if (!out->n_formats)
		out->formats[out->n_formats++] = &export_text;
	for (size_t i = 0; i < out->n_formats; i++)
		if (out->formats[i] != &export_text && out->formats[i] != &export_folded &&
		    out->formats[i] != &export_html)
			return options__wrong(
				in, "--diff: takes only the formats text, folded and html");
	return 0;
}

static int check_top(struct option_input *in)
{
	struct options *o = in->o;

	if (!o->top)
		return 0;
	if (o->mode != MODE_SYSTEM && o->mode != MODE_PID && o->mode != MODE_REPLAY)
		return options__wrong(in, "--top: needs a session without a command, or --replay");
	if (o->output.path && !strcmp(o->output.path, "-"))
		return options__wrong(in, "-o -: standard output is the screen; give a directory");
	if (o->push.n)
		return options__wrong(in, "--top: takes no --push");
	if (!o->window_ns)
		o->window_ns = TOP_EVERY_NS;
	o->output.windows = true;
	return 0;
}

static int check_windows(struct option_input *in)
{
	const struct options *o = in->o;
	const struct output_opts *out = &o->output;

	if (o->window_ns &&
	    (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		return options__wrong(in, "--window: needs a session, or --replay");
	if (o->window_ns && o->eventlog && strcmp(o->eventlog, "none") != 0)
		return options__wrong(
			in, "--window: eventlogs cannot be joined when there are windows");
	if ((out->keep || out->keep_bytes || out->keep_for_ns) &&
	    (!o->window_ns || (out->path && !strcmp(out->path, "-"))))
		return options__wrong(in, "--keep, --keep-bytes, --keep-for: need --window, and a "
					  "directory");
	return 0;
}

/* A log given without a process is shown by itself. */
static int check_eventlog(struct option_input *in)
{
	struct options *o = in->o;
	const struct log_part *part = &o->part;
	bool file =
		o->eventlog && strcmp(o->eventlog, "auto") != 0 && strcmp(o->eventlog, "none") != 0;

	if (o->eventlog && !*o->eventlog)
		return options__wrong(in, "--eventlog: an empty path");
	if (file && (o->mode == MODE_LIST || o->mode == MODE_DOCTOR))
		return options__wrong(in, "--eventlog FILE: not with --list or --doctor");
	if (file && o->n_pids > 1)
		return options__wrong(in, "--eventlog FILE: is for one process; more were given");
	if (file && !o->n_pids && !o->command && o->mode != MODE_REPLAY)
		o->mode = MODE_EVENTLOG;
	if (o->mode != MODE_EVENTLOG && (part->from_ns || part->to_ns || part->from_marker ||
					 part->to_marker || o->n_hide || o->n_only))
		return options__wrong(in, "--from, --to, --hide, --only: need --eventlog FILE");
	return 0;
}

static int check_capture(struct option_input *in)
{
	const struct options *o = in->o;

	if (o->replay && (o->n_pids || o->command || o->eventlog || o->save))
		return options__wrong(in, "--replay: takes no process, command, log or --save");
	if (o->replay && o->live)
		return options__wrong(
			in, "--replay: the session is over, and --%s cannot change it", o->live);
	if (o->symbols_dir && !o->replay)
		return options__wrong(in, "--symbols-dir: needs --replay");
	if (o->n_debuginfod && o->mode != MODE_REPLAY && o->mode != MODE_SYSTEM &&
	    o->mode != MODE_PID && o->mode != MODE_COMMAND)
		return options__wrong(in, "--debuginfod: needs a session, or --replay");
	if (o->symbols_dir && !*o->symbols_dir)
		return options__wrong(in, "--symbols-dir: an empty path");
	if (o->save && (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		return options__wrong(in, "--save: needs a session");
	if (o->save && o->max_cpu_percent > 0)
		return options__wrong(in, "--max-cpu: not with --save");
	if (o->freeze_ms && !o->heap_census)
		return options__wrong(in, "--freeze: needs --heap-census");
	if (o->max_cpu_percent > 0 && o->mode != MODE_SYSTEM && o->mode != MODE_PID &&
	    o->mode != MODE_COMMAND)
		return options__wrong(in, "--max-cpu: needs a session");
	if ((o->save && !*o->save) || (o->replay && !*o->replay))
		return options__wrong(in, "--save, --replay: an empty path");
	return 0;
}

static int check_list(struct option_input *in)
{
	const struct options *o = in->o;
	const struct output_opts *out = &o->output;

	if (o->mode != MODE_LIST)
		return 0;
	if (o->n_pids || o->command)
		return options__wrong(in, "--list: takes no process and no command");
	if (out->n_formats > 1 ||
	    (out->n_formats && out->formats[0] != &export_json && out->formats[0] != &export_text))
		return options__wrong(in, "--list: takes one format, text or json");
	return 0;
}

static int check_mode(struct option_input *in)
{
	struct options *o = in->o;
	const struct output_opts *out = &o->output;

	if (o->mode == MODE_DOCTOR && o->command)
		return options__wrong(in, "--doctor: takes no command");
	if (o->propagate_exit && !o->command)
		return options__wrong(in, "--propagate-exit: needs a command");
	if (o->command && o->n_pids)
		return options__wrong(in, "use either --pid or a command, not both");
	if (o->mode == MODE_SYSTEM && o->command)
		o->mode = MODE_COMMAND;
	else if (o->mode == MODE_SYSTEM && o->n_pids)
		o->mode = MODE_PID;
	if (o->symbols && (o->mode == MODE_SYSTEM || o->mode == MODE_LIST))
		return options__wrong(in, "--symbols: needs --pid or a command");
	if (o->force && !o->symbols)
		return options__wrong(in, "--force: needs --symbols");
	if (o->metrics && o->mode != MODE_SYSTEM && o->mode != MODE_PID && o->mode != MODE_COMMAND)
		return options__wrong(in, "--metrics: needs a session");
	if (o->mode == MODE_DOCTOR && (out->n_formats || out->path))
		return options__wrong(in, "--doctor: prints to standard output, as text");
	if (o->select.n && o->mode != MODE_SYSTEM && o->mode != MODE_LIST)
		return options__wrong(in,
				      "--comm, --exe, --user, --cgroup, --exclude: only for all "
				      "processes of the host, or with --list");
	return 0;
}

/* True if an option with OPTION_LIVE also has an effect in this mode, which has no session. */
static bool has_effect(enum mode mode, int key)
{
	/* check_mode() handles the options that choose processes */
	if (key >= OPT_COMM && key <= OPT_EXCLUDE)
		return true;
	switch (mode) {
	case MODE_LIST:
		return key == OPT_ARCHIVES;
	case MODE_DOCTOR:
		return key == OPT_FORCE;
	case MODE_EVENTLOG: /* a log may come through a pipe that does not end */
		return key == 'd';
	default:
		return false;
	}
}

/*
 * Refuses options that only affect a session where there is none. A configuration may have them,
 * since it is a daemon's.
 */
static int check_no_session(struct option_input *in)
{
	enum mode mode = in->o->mode;

	if (mode != MODE_LIST && mode != MODE_DOCTOR && mode != MODE_DIFF && mode != MODE_EVENTLOG)
		return 0;
	for (const struct option_row *row = option_rows; row->doc; row++)
		if (row->flags & OPTION_LIVE && options__given(in, row->key) &&
		    !options__in_file(in, row->key) && !has_effect(mode, row->key))
			return options__wrong(in, "--%s: needs a session", row->name);
	return 0;
}

/* --open needs an html page in a file, and adds that format. */
static int check_open(struct option_input *in)
{
	const struct options *o = in->o;
	struct output_opts *out = &in->o->output;

	if (!o->open)
		return 0;
	if (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_DIFF || o->top ||
	    o->window_ns)
		return options__wrong(
			in, "--open: not with --list, --doctor, --diff, --top or --window");
	if (out->path && !strcmp(out->path, "-"))
		return options__wrong(in, "--open: the page needs a file; not with -o -");
	for (size_t i = 0; i < out->n_formats; i++)
		if (out->formats[i] == &export_html)
			return 0;
	if (!out->n_formats)
		out->formats[out->n_formats++] = &export_text;
	if (out->n_formats == OUTPUT_MAX_FORMATS)
		return options__wrong(in, "--open: too many formats besides html");
	out->formats[out->n_formats++] = &export_html;
	return 0;
}

/* True if files are wanted: not if only a push, or a daemon's metrics, was asked for. */
static bool writes_files(const struct options *o)
{
	bool elsewhere = o->push.n || (o->metrics && o->config_path && o->window_ns);

	return o->output.path || !elsewhere;
}

static int check_output(struct option_input *in)
{
	struct options *o = in->o;
	struct output_opts *out = &o->output;

	if (!out->n_formats && o->mode == MODE_LIST)
		out->formats[out->n_formats++] = &export_text;
	if (!out->n_formats && writes_files(o)) {
		out->formats[out->n_formats++] = &export_speedscope;
		out->formats[out->n_formats++] = &export_text;
	}
	if (!out->lanes)
		out->lanes = EXPORT_LANES_THREAD | EXPORT_LANES_CAPABILITY |
			     (o->mode == MODE_EVENTLOG ? EXPORT_LANES_HASKELL : 0);
	if (out->path && !strcmp(out->path, "-") && out->n_formats > 1)
		return options__wrong(in, "-o -: takes one format; choose it with -f");
	out->beside_command = o->command != NULL;
	if (out->path && !strcmp(out->path, "-") && o->command)
		return options__wrong(in, "-o -: standard output is the command's; give a file");
	if (out->path && !out->path[0])
		return options__wrong(in, "-o: an empty path");
	return 0;
}

int options__check(struct option_input *in)
{
	int err = check_diff(in);

	if (!err)
		err = check_eventlog(in);
	if (!err)
		err = check_capture(in);
	if (!err)
		err = check_list(in);
	if (!err)
		err = check_mode(in);
	if (!err)
		err = check_no_session(in);
	if (!err)
		err = check_top(in);
	if (!err)
		err = check_windows(in);
	if (!err)
		err = options__check_push(in);
	if (!err)
		err = check_open(in);
	return err ? err : check_output(in);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of long sessions: windows, which processes, the off file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "metrics/server.h"
#include "options_priv.h"

#define WINDOW_LEAST_NS 100000000ULL

/* Bytes, with a unit of 1024s. */
static uint64_t parse_size(struct argp_state *state, const char *what, const char *arg)
{
	static const char units[] = "KMGT";
	const char *unit;
	double v, is = 1;
	char *end;

	errno = 0;
	v = strtod(arg, &end);
	unit = *end ? strchr(units, *end) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		is *= 1024;
	if (errno || end == arg || (*end && (!unit || end[1])) || !isfinite(v) || v * is < 1 ||
	    v * is > 1e18)
		options__usage_error(state, "%s %s: not a size, such as 500M or 2G", what, arg);
	return (uint64_t)(v * is);
}

static void add_rule(struct argp_state *state, enum select_kind kind, const char *text,
		     bool exclude)
{
	struct options *o = state->input;
	int err = select__add(&o->select, kind, text, exclude);

	if (err == -ENOENT)
		options__usage_error(state, "%s: no such user", text);
	if (err)
		options__usage_error(
			state, "more than %d of --comm, --exe, --user, --cgroup and --exclude",
			SELECT_MAX_RULES);
}

static error_t parse_select_option(int key, char *arg, struct argp_state *state)
{
	size_t len;

	switch (key) {
	case OPT_COMM:
	case OPT_EXE:
	case OPT_USER:
	case OPT_CGROUP:
		add_rule(state, (enum select_kind)(key - OPT_COMM), arg, false);
		return 0;
	case OPT_EXCLUDE:
		len = strcspn(arg, "=");
		if (!arg[len] || select__kind(arg, len) == SELECT_KINDS)
			options__usage_error(
				state,
				"--exclude %s: KIND=GLOB, where KIND is comm, exe, user "
				"or cgroup",
				arg);
		add_rule(state, select__kind(arg, len), arg + len + 1, true);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void options__check_open(struct argp_state *state, struct options *o)
{
	struct output_opts *out = &o->output;

	if (!o->open)
		return;
	if (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->window_ns)
		options__usage_error(state, "--open: needs a session that is one, --replay or "
					    "--eventlog");
	if (out->path && !strcmp(out->path, "-"))
		options__usage_error(state, "--open: the page needs a file; not with -o -");
	for (size_t i = 0; i < out->n_formats; i++)
		if (out->formats[i] == &export_html)
			return;
	if (!out->n_formats)
		out->formats[out->n_formats++] = &export_text;
	if (out->n_formats == OUTPUT_MAX_FORMATS)
		options__usage_error(state, "--open: too many formats beside html");
	out->formats[out->n_formats++] = &export_html;
}

error_t options__parse_service(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_WINDOW:
		o->window_ns = options__parse_duration(state, "--window", arg);
		if (o->window_ns < WINDOW_LEAST_NS)
			options__usage_error(state, "--window %s: less than 100ms", arg);
		o->output.windows = true;
		break;
	case OPT_OFF_FILE:
		if (!*arg)
			options__usage_error(state, "--off-file: an empty path");
		o->off_path = arg;
		break;
	case OPT_METRICS:
		if (!metrics_server__is_address(arg))
			options__usage_error(state,
					     "--metrics %s: not PORT, ADDRESS:PORT with an address "
					     "of numbers, or unix:PATH",
					     arg);
		o->metrics = arg;
		break;
	case OPT_OPEN:
		o->open = true;
		break;
	case OPT_KEEP:
		o->output.keep = (uint64_t)options__parse_number(state, "--keep", arg, 1, 1e6);
		break;
	case OPT_KEEP_BYTES:
		o->output.keep_bytes = parse_size(state, "--keep-bytes", arg);
		break;
	case OPT_KEEP_FOR:
		o->output.keep_for_ns = options__parse_duration(state, "--keep-for", arg);
		break;
	default:
		return parse_select_option(key, arg, state);
	}
	return 0;
}

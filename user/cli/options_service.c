/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of long sessions: windows, which processes, the off file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/server.h"
#include "options_priv.h"

#define WINDOW_LEAST_NS 100000000ULL

/* A daemon's defaults, if the configuration does not set them. */
#define DAEMON_WINDOW_NS    60000000000ULL
#define DAEMON_FREQUENCY_HZ 19
#define DAEMON_KEEP_BYTES   (1ULL << 30)
#define DAEMON_KEEP_NS	    (24 * 3600000000000ULL)

int options__parse_size(struct option_input *in, const char *what, const char *arg,
			uint64_t *ret_bytes)
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
		return options__wrong(in, "%s %s: not a size, such as 500M or 2G", what, arg);
	*ret_bytes = (uint64_t)(v * is);
	return 0;
}

static int add_rule(struct option_input *in, enum select_kind kind, const char *text, bool exclude)
{
	int err = select__add(&in->o->select, kind, text, exclude);

	if (err == -ENOENT)
		return options__wrong(in, "%s%s: no such user",
				      exclude ? "--exclude user=" : "--user ", text);
	if (err == -EINVAL)
		return options__wrong(in, "%s%s: an empty pattern", exclude ? "--exclude " : "--",
				      select__kind_name(kind));
	if (err == -ENAMETOOLONG)
		return options__wrong(
			in,
			"%s%s: matches nothing: the kernel keeps only %d bytes of a process's name",
			exclude ? "--exclude comm=" : "--comm ", text, SELECT_COMM_MOST);
	if (err == -EDOM)
		return options__wrong(
			in, "--%s%s%s%s: matches nothing: a whole path begins with /; use */%s",
			exclude ? "exclude " : "", select__kind_name(kind), exclude ? "=" : " ",
			text, text);
	if (err)
		return options__wrong(
			in, "more than %d of --comm, --exe, --user, --cgroup and --exclude",
			SELECT_MAX_RULES);
	return 0;
}

static int set_select(struct option_input *in, int key, const char *arg)
{
	size_t len;

	switch (key) {
	case OPT_COMM:
	case OPT_EXE:
	case OPT_USER:
	case OPT_CGROUP:
		return add_rule(in, (enum select_kind)(key - OPT_COMM), arg, false);
	case OPT_EXCLUDE:
		len = strcspn(arg, "=:");
		if (!arg[len] || select__kind(arg, len) == SELECT_KINDS)
			return options__wrong(
				in,
				"--exclude %s: KIND=GLOB, where KIND is comm, exe, user "
				"or cgroup",
				arg);
		return add_rule(in, select__kind(arg, len), arg + len + 1, true);
	default:
		return options__set_push(in, key, arg);
	}
}

static int set_window(struct option_input *in, const char *arg)
{
	uint64_t ns = 0;
	int err = options__parse_duration(in, "--window", arg, &ns);

	if (err)
		return err;
	if (ns < WINDOW_LEAST_NS)
		return options__wrong(in, "--window %s: less than 100ms", arg);
	in->o->window_ns = ns;
	in->o->output.windows = true;
	return 0;
}

int options__set_service(struct option_input *in, int key, const char *arg)
{
	struct options *o = in->o;

	switch (key) {
	case OPT_WINDOW:
		return set_window(in, arg);
	case OPT_OFF_FILE:
		if (!*arg)
			return options__wrong(in, "--off-file: an empty path");
		o->off_path = arg;
		return 0;
	case OPT_METRICS:
		if (!metrics_server__is_address(arg))
			return options__wrong(in,
					      "--metrics %s: not PORT, ADDRESS:PORT with a numeric "
					      "address, or unix:PATH",
					      arg);
		o->metrics = arg;
		return 0;
	case OPT_OPEN:
		o->open = true;
		return 0;
	case OPT_KEEP:
		return options__parse_count(in, "--keep", arg, 1, 1e6, &o->output.keep);
	case OPT_KEEP_BYTES:
		return options__parse_size(in, "--keep-bytes", arg, &o->output.keep_bytes);
	case OPT_KEEP_FOR:
		return options__parse_duration(in, "--keep-for", arg, &o->output.keep_for_ns);
	default:
		return set_select(in, key, arg);
	}
}

/* Uses the directory made by the service manager, if no other one was asked for. Windows are
 * kept there for a day, within a limit of bytes. */
static void use_state_directory(struct options *o)
{
	const char *state = getenv("STATE_DIRECTORY");
	struct output_opts *out = &o->output;

	/* several directories: not from our unit */
	if (out->path || !state || !*state || strchr(state, ':'))
		return;
	if (!out->n_formats && (o->push.n || o->metrics))
		return;
	out->path = state;
	if (out->keep || out->keep_bytes || out->keep_for_ns)
		return;
	out->keep_bytes = DAEMON_KEEP_BYTES;
	out->keep_for_ns = DAEMON_KEEP_NS;
}

void options__daemon(struct option_input *in)
{
	struct options *o = in->o;

	if (!o->config_path || o->mode != MODE_SYSTEM || o->command || o->top ||
	    options__given(in, 'd') || options__given(in, OPT_SAVE) ||
	    (o->eventlog && strcmp(o->eventlog, "none") != 0))
		return;
	if (!o->window_ns)
		o->window_ns = DAEMON_WINDOW_NS;
	o->output.windows = true;
	if (!options__given(in, 'F'))
		o->frequency_hz = DAEMON_FREQUENCY_HZ;
	use_state_directory(o);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of long sessions: windows, whom to profile, the switch. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "options_priv.h"

#define WINDOW_LEAST_NS 100000000ULL

/* A number and a unit: what one unit of the table is. */
struct unit {
	const char *name;
	double is;
};

static uint64_t parse_amount(struct argp_state *state, const char *what, const char *arg,
			     const struct unit *units, size_t n_units, double max)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	for (size_t i = 0; i < n_units && end != arg && !errno; i++) {
		double all = v * units[i].is;

		if (!strcmp(end, units[i].name) && isfinite(all) && all >= 1 && all <= max)
			return (uint64_t)all;
	}
	options__usage_error(state, "%s %s: not an amount", what, arg);
}

static void add_rule(struct argp_state *state, enum select_kind kind, const char *text,
		     bool exclude)
{
	struct options *o = state->input;
	int err = select__add(&o->select, kind, text, exclude);

	if (err == -ENOENT)
		options__usage_error(state, "%s: there is no such user", text);
	if (err)
		options__usage_error(state, "more than %d rules of whom to profile", SELECT_MAX_RULES);
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
			options__usage_error(state,
				   "--exclude %s: KIND=GLOB, where KIND is comm, exe, user "
				   "or cgroup",
				   arg);
		add_rule(state, select__kind(arg, len), arg + len + 1, true);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t options__parse_service(int key, char *arg, struct argp_state *state)
{
	static const struct unit sizes[] = {
		{"", 1}, {"K", 1024}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1024.0 * (1 << 30)}};
	static const struct unit times[] = {
		{"", 1e9}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}};
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
	case OPT_KEEP:
		o->output.keep = (uint64_t)options__parse_number(state, "--keep", arg, 1, 1e6);
		break;
	case OPT_KEEP_BYTES:
		o->output.keep_bytes =
			parse_amount(state, "--keep-bytes", arg, sizes, ARRAY_SIZE(sizes), 1e18);
		break;
	case OPT_KEEP_FOR:
		o->output.keep_for_ns =
			parse_amount(state, "--keep-for", arg, times, ARRAY_SIZE(times), 1e18);
		break;
	default:
		return parse_select_option(key, arg, state);
	}
	return 0;
}

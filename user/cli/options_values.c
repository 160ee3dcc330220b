/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of options: numbers and times, and the recording of errors in them. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options_priv.h"

int options__wrong(struct option_input *in, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* one line per error: the value may contain newlines */
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	if (in->file && in->line)
		buf__addf(&in->wrong, "%s:%u: ", in->file, in->line);
	else if (in->file)
		buf__addf(&in->wrong, "%s: ", in->file);
	buf__addf(&in->wrong, "%s\n", text);
	return -EINVAL;
}

/* ── times ───────────────────────────────────────────────────────────────────────────────── */

/* Takes a number with its unit from the text; without a unit it is seconds. */
static bool take_time(const char **arg, double *ret_ns, double *ret_unit_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ms", 1e6}, {"us", 1e3}, {"µs", 1e3},   {"ns", 1},
		     {"s", 1e9},  {"m", 6e10}, {"h", 3.6e12}, {"d", 8.64e13}};
	char *end;
	double v;

	if (**arg < '0' || **arg > '9')
		return false;
	errno = 0;
	v = strtod(*arg, &end);
	if (errno || !isfinite(v))
		return false;
	*arg = end;
	*ret_ns = v * 1e9;
	*ret_unit_ns = 1e9;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t len = strlen(units[i].unit);

		if (strncmp(end, units[i].unit, len) != 0)
			continue;
		*arg = end + len;
		*ret_ns = v * units[i].ns;
		*ret_unit_ns = units[i].ns;
		return true;
	}
	return !*end;
}

bool options__parse_time(const char *arg, uint64_t *ret_ns)
{
	double sum = 0, ns, unit, before = INFINITY;

	do {
		/* a number without a unit must stand alone; larger units come before smaller
		 * ones */
		if (!take_time(&arg, &ns, &unit) || (sum > 0 && arg[-1] <= '9') || unit >= before)
			return false;
		before = unit;
		sum += ns;
	} while (*arg);
	if (sum > 1e18)
		return false;
	*ret_ns = (uint64_t)(sum + 0.5);
	return true;
}

int options__parse_duration(struct option_input *in, const char *what, const char *arg,
			    uint64_t *ret_ns)
{
	uint64_t ns;

	if (!options__parse_time(arg, &ns) || ns < 1000000 || ns > 100000000000000000ULL)
		return options__wrong(in,
				      "%s %s: not a time from 1ms to 1157d, such as 10s, 5m, 1h30m",
				      what, arg);
	*ret_ns = ns;
	return 0;
}

int options__parse_number(struct option_input *in, const char *what, const char *arg, double min,
			  double max, double *ret_number)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(arg, &end);
	if (errno || end == arg || *end || !isfinite(v) || v < min || v > max)
		return options__wrong(in, "%s %s: not a number from %.7g to %.7g", what, arg, min,
				      max);
	*ret_number = v;
	return 0;
}

int options__parse_count(struct option_input *in, const char *what, const char *arg, double min,
			 double max, uint64_t *ret_count)
{
	double v = 0;
	int err = options__parse_number(in, what, arg, min, max, &v);

	if (err)
		return err;
	if (v != floor(v))
		return options__wrong(in, "%s %s: not a whole number", what, arg);
	*ret_count = (uint64_t)v;
	return 0;
}

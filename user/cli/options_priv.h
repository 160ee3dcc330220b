/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the command line only. */
#ifndef SAFESCOPED_CLI_OPTIONS_PRIV_H
#define SAFESCOPED_CLI_OPTIONS_PRIV_H

#include <argp.h>

#include "options.h"

enum {
	OPT_SYMBOLS = 1000,
	OPT_FORCE,
	OPT_MAX_OVERHEAD,
	OPT_WEIGHT,
	OPT_LANES,
	OPT_STACKS,
	OPT_KERNEL_STACKS,
	OPT_LIST,
	OPT_DOCTOR,
	OPT_FROM,
	OPT_TO,
	OPT_HIDE,
	OPT_ONLY,
	OPT_SAVE,
	OPT_REPLAY,
	OPT_WINDOW,
	OPT_KEEP,
	OPT_KEEP_BYTES,
	OPT_KEEP_FOR,
	OPT_OFF_FILE,
	OPT_COMM,
	OPT_EXE,
	OPT_USER,
	OPT_CGROUP,
	OPT_EXCLUDE,
	OPT_PROPAGATE_EXIT,
	OPT_METRICS,
	OPT_OPEN,
};

/* Prints one line, without argp's advice on another one, and exits. */
void options__usage_error(struct argp_state *state, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
/* "10", "1.5s", "200ms", "5m", "1h30m", "7d", "3us", "40ns"; a number alone is seconds. False: not
 * a time. */
bool options__parse_time(const char *arg, uint64_t *ret_ns);
/* In ns, at least 1 ms; anything else is wrong usage. */
uint64_t options__parse_duration(struct argp_state *state, const char *what, const char *arg);
/* A number from min to max; anything else is wrong usage. */
double options__parse_number(struct argp_state *state, const char *what, const char *arg,
			     double min, double max);
/* The options of long sessions. ARGP_ERR_UNKNOWN: not one of them. */
error_t options__parse_service(int key, char *arg, struct argp_state *state);
/* --open needs one html page, in a file; it is added to what is written. */
void options__check_open(struct argp_state *state, struct options *o);

#endif

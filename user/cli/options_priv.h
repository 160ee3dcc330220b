/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files that parse the command line. */
#ifndef SAFESCOPED_CLI_OPTIONS_PRIV_H
#define SAFESCOPED_CLI_OPTIONS_PRIV_H

#include "base/base.h"
#include "option_table.h"
#include "options.h"

/* The options being made, and the position of the one being read. */
struct option_input {
	struct options *o;
	const char *file; /* NULL: the command line */
	unsigned line;	  /* 0: refers to the file as a whole */
	struct buf wrong; /* the errors, one per line */
	/* by index in the table: the line of the file that has the option; 0: none */
	unsigned in_line[OPTION_MAX_ROWS];
	bool given[OPTION_MAX_ROWS]; /* the same, given in the file or on the command line */
};

/* True if the option with that key was given in the file or on the command line. */
bool options__given(const struct option_input *in, int key);
/* True if it was given in the file. */
bool options__in_file(const struct option_input *in, int key);

/* Records an error with its position. Returns -EINVAL. */
int options__wrong(struct option_input *in, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "10", "1.5s", "200ms", "5m", "1h30m", "7d", "3us", "40ns"; a bare number is seconds. False:
 * not a time. */
bool options__parse_time(const char *arg, uint64_t *ret_ns);
/* In ns, at least 1 ms. -EINVAL: anything else, which is recorded. */
int options__parse_duration(struct option_input *in, const char *what, const char *arg,
			    uint64_t *ret_ns);
/* A number from min to max. -EINVAL: anything else, which is recorded. */
int options__parse_number(struct option_input *in, const char *what, const char *arg, double min,
			  double max, double *ret_number);
/* The same for what has no fractions. max: at most 2^53. */
int options__parse_count(struct option_input *in, const char *what, const char *arg, double min,
			 double max, uint64_t *ret_count);

/*
 * Sets the option with that key. `arg` must live as long as the options; it is NULL if and only if
 * the table gives the option no value. -EINVAL: it is wrong, which is recorded.
 */
int options__set(struct option_input *in, int key, const char *arg);
/* Options of long sessions; passes others on to options__set_push(). -ENOENT: not one of them. */
int options__set_service(struct option_input *in, int key, const char *arg);
/* Options of --push. -ENOENT: not one of them. */
int options__set_push(struct option_input *in, int key, const char *arg);
/* Checks that the options of --push fit together. */
int options__check_push(struct option_input *in);
/* Bytes, with a unit that is a power of 1024: 500M. -EINVAL: anything else, which is recorded. */
int options__parse_size(struct option_input *in, const char *what, const char *arg,
			uint64_t *ret_bytes);

/*
 * Sets a daemon's defaults for options that were not given: windows, a lower frequency, and the
 * service manager's directory for the windows. A configuration for all processes of the host, or
 * for those of --pid, makes a daemon, unless it has a duration or keeps a capture.
 */
void options__daemon(struct option_input *in);

/* To be called when all are set: reports options that conflict (-EINVAL, recorded), and derives
 * others. */
int options__check(struct option_input *in);

/*
 * The options made by the file alone. -EINVAL: `wrong`, which the caller frees, has a line for each
 * error in it; -EIO: a line for why it cannot be read; -ENOMEM.
 */
int options__read_config(const char *path, struct buf *wrong, struct options **ret_options);

#endif

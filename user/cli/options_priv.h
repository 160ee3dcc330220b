/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the command line only. */
#ifndef SAFESCOPED_CLI_OPTIONS_PRIV_H
#define SAFESCOPED_CLI_OPTIONS_PRIV_H

#include "base/base.h"
#include "option_table.h"
#include "options.h"

/* What is made of the options, and where the one that is looked at stands. */
struct option_input {
	struct options *o;
	const char *file; /* NULL: the command line */
	unsigned line;	  /* 0: the file as a whole */
	struct buf wrong; /* what is wrong, a line each */
	/* by their place in the table: the file's line that has it; 0: none */
	unsigned in_line[OPTION_MAX_ROWS];
	bool given[OPTION_MAX_ROWS]; /* the same for the file and the command line */
};

/* Whether the option with that key was given, here or there. */
bool options__given(const struct option_input *in, int key);

/* Notes what is wrong, with the place. Returns -EINVAL. */
int options__wrong(struct option_input *in, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "10", "1.5s", "200ms", "5m", "1h30m", "7d", "3us", "40ns"; a number alone is seconds. False: not
 * a time. */
bool options__parse_time(const char *arg, uint64_t *ret_ns);
/* In ns, at least 1 ms. -EINVAL: anything else, which is noted. */
int options__parse_duration(struct option_input *in, const char *what, const char *arg,
			    uint64_t *ret_ns);
/* A number from min to max. -EINVAL: anything else, which is noted. */
int options__parse_number(struct option_input *in, const char *what, const char *arg, double min,
			  double max, double *ret_number);

/*
 * Sets the option with that key. `arg`, which must live as long as the options, is NULL exactly
 * where the table gives it no value. -EINVAL: it is wrong, which is noted.
 */
int options__set(struct option_input *in, int key, const char *arg);
/* Those of what is written and shown. -ENOENT, as below: not one of them. */
int options__set_view(struct option_input *in, int key, const char *arg);
/* Those of long sessions. */
int options__set_service(struct option_input *in, int key, const char *arg);
/* Those of --push. */
int options__set_push(struct option_input *in, int key, const char *arg);
/* Whether they go together. */
int options__check_push(struct option_input *in);
/* Bytes, with a unit of 1024s: 500M. -EINVAL: anything else, which is noted. */
int options__parse_size(struct option_input *in, const char *what, const char *arg,
			uint64_t *ret_bytes);

/*
 * What a daemon has where nothing else was given: windows, a lower frequency, and the service
 * manager's directory for them. A configuration for all processes of the host, or for those of
 * --pid, makes a daemon, unless it is to end, or to keep a capture.
 */
void options__daemon(struct option_input *in);

/* Once all are set: what does not go together (-EINVAL, noted), and what follows from others. */
int options__check(struct option_input *in);

/*
 * What the file alone makes. -EINVAL: `wrong`, which the caller frees, has a line for everything
 * that is wrong in it; -EIO: one for why it cannot be read; -ENOMEM.
 */
int options__read_config(const char *path, struct buf *wrong, struct options **ret_options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option_table: every option, once. The command line, the usage text, the configuration file and
 * the shells' completions are made from it; the tests compare it with the manual page. Private to
 * the cli room.
 */
#ifndef SAFESCOPED_CLI_OPTION_TABLE_H
#define SAFESCOPED_CLI_OPTION_TABLE_H

#include <stdbool.h>

/* Keys of options without a letter. */
enum {
	OPT_SYMBOLS = 1000,
	OPT_FORCE,
	OPT_SYMBOLS_DIR,
	OPT_DEBUGINFOD,
	OPT_ARCHIVES,
	OPT_MAX_OVERHEAD,
	OPT_MAX_CPU,
	OPT_WEIGHT,
	OPT_LANES,
	OPT_STACKS,
	OPT_KERNEL_STACKS,
	OPT_HEAP_CENSUS,
	OPT_FREEZE,
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
	OPT_CONFIG,
	OPT_CHECK_CONFIG,
	OPT_COMPLETION,
	OPT_PUSH,
	OPT_PUSH_HEADERS,
	OPT_PUSH_CA,
	OPT_PUSH_QUEUE,
	OPT_PUSH_QUEUE_BYTES,
	OPT_PUSH_TIMEOUT,
	OPT_HOST_NAME,
	OPT_METRICS,
	OPT_DIFF,
	OPT_PER,
	OPT_TOP,
	OPT_OPEN,
};

/* What completion offers for the value, in addition to the words in `arg`; and where an option
 * may be given. */
enum option_flags {
	OPTION_FILE = 1 << 0,
	OPTION_DIR = 1 << 1,
	OPTION_PID = 1 << 2,
	OPTION_USER_NAME = 1 << 3,
	OPTION_FORMATS = 1 << 4, /* a comma-separated list of the formats */
	OPTION_LANES = 1 << 5,	 /* … of the kinds of lanes */
	/* Only on the command line, not in the configuration file. */
	OPTION_NOT_IN_FILE = 1 << 6,
	OPTION_MANY = 1 << 7, /* may be given several times, and each adds to the earlier ones */
	OPTION_LIVE = 1 << 8, /* only a session can honour it: --replay refuses it */
};

struct option_row {
	const char *name; /* without the dashes; NULL: only a letter, or a heading */
	int key;	  /* the letter, or OPT_…; 0: a heading, whose text is `doc` */
	const char *arg;  /* the value's name in the usage text; those of its parts, separated by
			     `|`, that are in lower case are literal values. NULL: no value */
	unsigned flags;
	const char *doc;
	int group;	 /* group in the usage text */
	const char *def; /* the default value; NULL: none, or it depends on other options */
};

#define OPTION_MAX_ROWS 128

/* The rows in the order of the usage text; the last one has neither name, key nor doc. */
extern const struct option_row option_rows[];

/* The option of that name, or NULL. */
const struct option_row *option_table__find(const char *name);
/* The first option with that key, or NULL; others with the same key are aliases. */
const struct option_row *option_table__of_key(int key);
/* True if the option may be written as --NAME. */
bool option_table__is_long(const struct option_row *row);
/* … as -X. */
bool option_table__has_letter(const struct option_row *row);

#endif

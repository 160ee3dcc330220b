/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config: a configuration file, as lines of names and values. A line is `NAME`, `NAME VALUE` or
 * `NAME = VALUE`; the value is the rest of the line without surrounding blanks. Empty lines and
 * lines whose first non-blank character is `#` are skipped. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_CONFIG_H
#define SAFESCOPED_CLI_CONFIG_H

#include <stddef.h>
#include <sys/types.h>

#define CONFIG_MAX_BYTES (1U << 20)
#define CONFIG_MAX_LINES 10000

struct config_line {
	unsigned number; /* line number in the file, from 1 */
	const char *name;
	const char *value; /* NULL: none */
};

struct config {
	char *text; /* the buffer that the lines point into */
	struct config_line *lines;
	size_t n;
};

/*
 * Reads the file; the caller frees the result. -EFBIG: larger than CONFIG_MAX_BYTES, or more than
 * CONFIG_MAX_LINES non-empty lines; -EINVAL: not a regular file; -EILSEQ: a NUL byte, so not text;
 * otherwise errors of open() and read().
 */
int config__read(const char *path, uid_t user, struct config **ret_config);
/* The same for bytes in memory. */
int config__parse(const char *data, size_t len, struct config **ret_config);
void config__free(struct config *config);

#endif

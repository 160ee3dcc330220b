/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config: the lines of a configuration file. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/read.h"

#define BLANKS " \t\r\f\v"

static void cut_blanks(char *text)
{
	size_t len = strlen(text);

	while (len && strchr(BLANKS, text[len - 1]))
		text[--len] = '\0';
}

/* Splits the line into its parts, in place. False: there is nothing in it. */
static bool take_line(char *text, struct config_line *ret_line)
{
	char *value;

	text += strspn(text, BLANKS);
	cut_blanks(text);
	if (!*text || *text == '#')
		return false;
	ret_line->name = text;
	ret_line->value = NULL;
	value = text + strcspn(text, BLANKS "=");
	if (!*value)
		return true;
	if (*value != '=') {
		*value++ = '\0';
		value += strspn(value, BLANKS);
	}
	if (*value == '=') {
		*value++ = '\0';
		value += strspn(value, BLANKS);
	}
	ret_line->value = value;
	return true;
}

static int take_lines(struct config *c)
{
	size_t cap = 0;
	unsigned number = 0;

	for (char *text = c->text, *next; text; text = next) {
		struct config_line line = {0};
		int err;

		line.number = ++number;
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		if (!take_line(text, &line))
			continue;
		err = ARRAY_RESERVE(c->lines, cap, c->n + 1, CONFIG_MAX_LINES);
		if (err)
			return err == -E2BIG ? -EFBIG : err;
		c->lines[c->n++] = line;
	}
	return 0;
}

int config__parse(const char *data, size_t len, struct config **ret_config)
{
	struct config *c;
	int err;

	if (len > CONFIG_MAX_BYTES)
		return -EFBIG;
	if (len && memchr(data, '\0', len))
		return -EILSEQ;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->text = malloc(len + 1);
	if (!c->text) {
		config__free(c);
		return -ENOMEM;
	}
	if (len)
		memcpy(c->text, data, len);
	c->text[len] = '\0';
	err = take_lines(c);
	if (err) {
		config__free(c);
		return err;
	}
	*ret_config = c;
	return 0;
}

int config__read(const char *path, uid_t user, struct config **ret_config)
{
	char *text = NULL;
	size_t len = 0;
	int fd = -1, err = fd__open_own(path, user, &fd);

	if (!err)
		err = read__all(fd, CONFIG_MAX_BYTES, &text, &len);
	if (!err)
		err = config__parse(text, len, ret_config);
	free(text);
	fd__close(&fd);
	return err;
}

void config__free(struct config *config)
{
	if (!config)
		return;
	free(config->lines);
	free(config->text);
	free(config);
}

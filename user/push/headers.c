/* SPDX-License-Identifier: GPL-2.0-or-later */
/* headers: the headers from a file that are added to each request: credentials, tenants. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"
#include "push_priv.h"

#define FILE_MAX 65536

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *s, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		bool plain =
			(c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

		if (!plain && !strchr(others, c))
			return false;
	}
	return len > 0;
}

/* A value must have no control characters but tabs, so that no line break starts another header. */
static bool is_header(const char *line)
{
	size_t name = strcspn(line, ":");

	if (line[name] != ':' || !is_token(line, name))
		return false;
	for (const char *c = line + name; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return false;
	return true;
}

/* True for headers that describe the message itself, which only the sender knows. */
static bool is_framing(const char *line)
{
	static const char *const names[] = {"Content-Length", "Content-Type", "Content-Encoding",
					    "Transfer-Encoding", "Expect"};
	size_t len = strcspn(line, ":");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && !strncasecmp(line, names[i], len))
			return true;
	return false;
}

static int parse(const char *path, struct push_headers *h)
{
	unsigned number = 0;

	for (char *line = h->text, *next; line && *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line[len] ? line + len + 1 : NULL;
		line[len] = '\0';
		number++;
		while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
			line[--len] = '\0';
		if (!*line || *line == '#')
			continue;
		/* does not print the line, which may be a secret */
		if (!is_header(line)) {
			log_error("%s: line %u is not a header (Name: value)", path, number);
			return -EINVAL;
		}
		if (is_framing(line)) {
			log_error("%s: line %u: %.*s: this header is set for each request", path,
				  number, (int)strcspn(line, ":"), line);
			return -EINVAL;
		}
		if (h->n == HEADERS_MAX) {
			log_error("%s: more than %d headers", path, HEADERS_MAX);
			return -E2BIG;
		}
		h->lines[h->n++] = line;
	}
	return 0;
}

int push_headers__read(const char *path, uid_t user, struct push_headers *ret_headers)
{
	struct push_headers h = {.n = 0};
	int err;

	if (!path) {
		*ret_headers = h;
		return 0;
	}
	err = push_file__read(path, FILE_MAX, user, &h.text, &h.len);
	if (!err && memchr(h.text, '\0', h.len)) {
		log_error("%s: not a text file", path);
		err = -EINVAL;
	}
	if (!err)
		err = parse(path, &h);
	if (err)
		push_headers__free(&h);
	else
		*ret_headers = h;
	return err;
}

void push_headers__free(struct push_headers *h)
{
	if (h->text)
		explicit_bzero(h->text, h->len);
	free(h->text);
	*h = (struct push_headers){.n = 0};
}

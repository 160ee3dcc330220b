/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of --push. */
#include <errno.h>
#include <string.h>

#include "options_priv.h"

static int add_one(struct option_input *in, const char *url)
{
	struct push_opts *push = &in->o->push;
	const char *why = push__url_error(url);
	char shown[256];

	if (why)
		return options__wrong(in, "--push %s: %s",
				      push__url_shown(url, shown, sizeof(shown)), why);
	for (size_t i = 0; i < push->n; i++)
		if (push__is_same(push->to[i].url, url))
			return options__wrong(in, "--push %s: given twice%s%s", url,
					      strcmp(push->to[i].url, url) != 0 ? ", as " : "",
					      strcmp(push->to[i].url, url) != 0 ? push->to[i].url
										: "");
	if (push->n == PUSH_MAX_DESTINATIONS)
		return options__wrong(in, "--push: given more than %d times",
				      PUSH_MAX_DESTINATIONS);
	push->to[push->n++] = (struct push_to){.url = url};
	return 0;
}

static int set_path(struct option_input *in, const char *what, const char *arg, const char **path)
{
	if (!*arg)
		return options__wrong(in, "%s: an empty path", what);
	*path = arg;
	return 0;
}

/* An option that belongs to the --push before it. */
static int set_of_last(struct option_input *in, int key, const char *arg)
{
	struct push_opts *push = &in->o->push;
	const char *what = key == OPT_PUSH_CA ? "--push-ca" : "--push-headers";
	const char **path;

	if (!push->n)
		return options__wrong(in, "%s: must come after the --push it is for", what);
	path = key == OPT_PUSH_CA ? &push->to[push->n - 1].ca : &push->to[push->n - 1].headers;
	if (*path)
		return options__wrong(in, "%s: %s already has one", what,
				      push->to[push->n - 1].url);
	return set_path(in, what, arg, path);
}

int options__set_push(struct option_input *in, int key, const char *arg)
{
	struct push_opts *push = &in->o->push;

	switch (key) {
	case OPT_PUSH:
		return add_one(in, arg);
	case OPT_PUSH_HEADERS:
	case OPT_PUSH_CA:
		return set_of_last(in, key, arg);
	case OPT_PUSH_QUEUE:
		return set_path(in, "--push-queue", arg, &push->queue_dir);
	case OPT_PUSH_QUEUE_BYTES:
		return options__parse_size(in, "--push-queue-bytes", arg, &push->queue_bytes);
	case OPT_PUSH_TIMEOUT:
		return options__parse_duration(in, "--push-timeout", arg, &push->timeout_ns);
	default:
		return -ENOENT;
	}
}

int options__check_push(struct option_input *in)
{
	const struct options *o = in->o;
	const struct push_opts *push = &o->push;

	if (!push->n && (push->queue_dir || push->queue_bytes || push->timeout_ns))
		return options__wrong(in, "--push-queue, --push-queue-bytes, --push-timeout: "
					  "need --push");
	if (push->n && (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		return options__wrong(in, "--push: needs a session, or --replay");
	return 0;
}

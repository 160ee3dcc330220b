/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of --push. */
#include <string.h>

#include "options_priv.h"

/* What belongs to the --push before it. */
static struct push_to *last_one(struct argp_state *state, const char *what)
{
	struct options *o = state->input;

	if (!o->push.n)
		options__usage_error(state, "%s: belongs after the --push that it is for", what);
	return &o->push.to[o->push.n - 1];
}

static void add_one(struct argp_state *state, const char *url)
{
	struct options *o = state->input;
	const char *why = push__url_error(url);

	if (why)
		options__usage_error(state, "--push %s: %s", url, why);
	for (size_t i = 0; i < o->push.n; i++)
		if (!strcmp(o->push.to[i].url, url))
			options__usage_error(state, "--push %s: given twice", url);
	if (o->push.n == PUSH_MAX_DESTINATIONS)
		options__usage_error(state, "--push: given more than %d times",
				     PUSH_MAX_DESTINATIONS);
	o->push.to[o->push.n++] = (struct push_to){.url = url};
}

static const char *path_of(struct argp_state *state, const char *what, const char *arg)
{
	if (!*arg)
		options__usage_error(state, "%s: an empty path", what);
	return arg;
}

error_t options__parse_push(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case OPT_PUSH:
		add_one(state, arg);
		break;
	case OPT_PUSH_HEADERS:
		last_one(state, "--push-headers")->headers = path_of(state, "--push-headers", arg);
		break;
	case OPT_PUSH_CA:
		last_one(state, "--push-ca")->ca = path_of(state, "--push-ca", arg);
		break;
	case OPT_PUSH_QUEUE:
		o->push.queue_dir = path_of(state, "--push-queue", arg);
		break;
	case OPT_PUSH_QUEUE_BYTES:
		o->push.queue_bytes = options__parse_size(state, "--push-queue-bytes", arg);
		break;
	case OPT_PUSH_TIMEOUT:
		o->push.timeout_ns = options__parse_duration(state, "--push-timeout", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void options__check_push(struct argp_state *state, const struct options *o)
{
	if (!o->push.n && (o->push.queue_dir || o->push.queue_bytes || o->push.timeout_ns))
		options__usage_error(state, "--push-queue, --push-queue-bytes, --push-timeout: "
					    "need --push");
	if (o->push.n &&
	    (o->mode == MODE_LIST || o->mode == MODE_DOCTOR || o->mode == MODE_EVENTLOG))
		options__usage_error(state, "--push: needs a session, or --replay");
}

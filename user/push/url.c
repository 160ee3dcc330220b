/* SPDX-License-Identifier: GPL-2.0-or-later */
/* url: where to post to, from a destination's URL; uses libcurl's parser. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/base.h"
#include "push_priv.h"

static const struct protocol {
	const char *prefix;
	enum push_protocol protocol;
	const char *path; /* path of the request, appended to the URL's own */
	const char *port; /* default port */
} protocols[] = {
	{"otlp+", PUSH_OTLP, "/v1development/profiles", "4318"},
	{"pyroscope+", PUSH_PYROSCOPE, "/ingest", "4040"},
};

static const struct protocol *protocol_of(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (!strncmp(text, protocols[i].prefix, strlen(protocols[i].prefix)))
			return &protocols[i];
	return NULL;
}

static bool has(CURLU *u, CURLUPart part)
{
	char *text = NULL;
	bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK && text && *text;

	curl_free(text);
	return there;
}

static bool is_port_zero(CURLU *u)
{
	char *text = NULL;
	bool zero = curl_url_get(u, CURLUPART_PORT, &text, 0) == CURLUE_OK && text &&
		    strspn(text, "0") == strlen(text);

	curl_free(text);
	return zero;
}

/* What is wrong with the URL, or NULL. */
static const char *judge(CURLU *u)
{
	if (has(u, CURLUPART_USER) || has(u, CURLUPART_PASSWORD))
		return "credentials belong in a file of headers, not in a URL";
	if (is_port_zero(u))
		return "port 0 cannot be used";
	if (has(u, CURLUPART_QUERY) || has(u, CURLUPART_FRAGMENT))
		return "cannot have a query or a fragment";
	return NULL;
}

/* The caller frees the text; NULL: no memory. */
static char *text_of(const char *prefix, CURLU *u, const char *path)
{
	char *url = NULL, *text = NULL;
	size_t len;

	if (curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK)
		return NULL;
	len = strlen(url);
	while (len && url[len - 1] == '/')
		len--;
	if (asprintf(&text, "%s%.*s%s", prefix, (int)len, url, path) < 0)
		text = NULL;
	curl_free(url);
	return text;
}

static int set_port(CURLU *u, const char *port)
{
	if (has(u, CURLUPART_PORT))
		return 0;
	return curl_url_set(u, CURLUPART_PORT, port, 0) == CURLUE_OK ? 0 : -ENOMEM;
}

int push_url__parse(const char *text, struct push_url *ret_url, const char **ret_why)
{
	const struct protocol *p = protocol_of(text);
	const char *http = p ? text + strlen(p->prefix) : "";
	struct push_url url = {.protocol = p ? p->protocol : PUSH_OTLP};
	CURLU *u;
	int err;

	*ret_why = "must be otlp+http://HOST, otlp+https://HOST, pyroscope+http://HOST or "
		   "pyroscope+https://HOST";
	if (strncmp(http, "http://", 7) != 0 && strncmp(http, "https://", 8) != 0)
		return -EINVAL;
	u = curl_url();
	if (!u)
		return -ENOMEM;
	err = curl_url_set(u, CURLUPART_URL, http, 0) == CURLUE_OK ? 0 : -EINVAL;
	if (!err) {
		const char *why = judge(u);

		*ret_why = why ? why : "";
		err = why ? -EINVAL : set_port(u, p->port);
	}
	if (!err) {
		url.request = text_of("", u, p->path);
		url.shown = text_of(p->prefix, u, "");
		err = url.request && url.shown ? 0 : -ENOMEM;
	}
	curl_url_cleanup(u);
	if (err)
		push_url__free(&url);
	else
		*ret_url = url;
	return err;
}

void push_url__free(struct push_url *url)
{
	free(url->request);
	free(url->shown);
	url->request = url->shown = NULL;
}

const char *push__url_error(const char *text)
{
	struct push_url url;
	const char *why;
	int err = push_url__parse(text, &url, &why);

	if (!err)
		push_url__free(&url);
	return !err ? NULL : err == -ENOMEM ? "no memory" : why;
}

const char *push__url_shown(const char *url, char *buf, size_t size)
{
	const char *end = strstr(url, "://");

	if (!strpbrk(url, "@?#"))
		snprintf(buf, size, "%s", url);
	else
		snprintf(buf, size, "%.*s…", end ? (int)(end + 3 - url) : 0, url);
	return buf;
}

/* Compares queues rather than URLs: two paths on a server may map to the same queue name. */
bool push__is_same(const char *a, const char *b)
{
	const struct push_opts none = {};
	char paths[2][PATH_MAX];
	struct push_url urls[2] = {};
	const char *why;
	bool same = false;

	if (!push_url__parse(a, &urls[0], &why) && !push_url__parse(b, &urls[1], &why) &&
	    !queues__path(&none, urls[0].shown, paths[0]) &&
	    !queues__path(&none, urls[1].shown, paths[1]))
		same = !strcmp(paths[0], paths[1]);
	push_url__free(&urls[0]);
	push_url__free(&urls[1]);
	return same;
}

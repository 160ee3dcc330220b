/* SPDX-License-Identifier: GPL-2.0-or-later */
/* servers: which servers are asked and where files are kept, as for debuginfod's client library. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "debuginfod_priv.h"

/* As in the client library, though there it is counted from the last bytes received. */
#define TIMEOUT_S 90

/* The last one is systemd's, for a service without a home directory. "": no place. */
static void find_cache(char cache[PATH_MAX])
{
	const struct {
		const char *variable, *below;
	} places[] = {{"DEBUGINFOD_CACHE_PATH", ""},
		      {"XDG_CACHE_HOME", "/debuginfod_client"},
		      {"HOME", "/.cache/debuginfod_client"},
		      {"CACHE_DIRECTORY", "/debuginfod_client"}};

	cache[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places) && !cache[0]; i++) {
		const char *value = getenv(places[i].variable);

		if (value && *value &&
		    snprintf(cache, PATH_MAX, "%s%s", value, places[i].below) >= PATH_MAX)
			cache[0] = '\0';
	}
}

const char *debuginfod__url_error(const char *url)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return "neither http:// nor https://";
	if (strlen(url) >= DEBUGINFOD_URL_MAX)
		return "too long";
	return NULL;
}

static int timeout_ms(void)
{
	const char *text = getenv("DEBUGINFOD_TIMEOUT");
	long s = text ? strtol(text, NULL, 10) : 0;

	return (int)(s > 0 && s < 86400 ? s : TIMEOUT_S) * 1000;
}

/* Splits the text in place. */
static void list_servers(char *all, struct debuginfod_opts *opts)
{
	char *url;

	while (all && opts->n < DEBUGINFOD_MAX_URLS && (url = strsep(&all, " ")))
		if (*url && !debuginfod__url_error(url))
			opts->urls[opts->n++] = url;
}

/* Files can be found without servers too, so a failure only counts for URLs that were given
 * explicitly. */
int debuginfod__open(const char *const *urls, size_t n, struct debuginfod **ret_debuginfod)
{
	const char *environment = getenv("DEBUGINFOD_URLS");
	struct debuginfod_opts opts = {.timeout_ms = timeout_ms(), .none_ms = DEBUGINFOD_NONE_MS};
	char cache[PATH_MAX], *all = NULL;
	int err = 0;

	*ret_debuginfod = NULL;
	for (size_t i = 0; i < MIN(n, (size_t)DEBUGINFOD_MAX_URLS); i++)
		opts.urls[opts.n++] = urls[i];
	if (!n && environment && *environment) {
		all = strdup(environment);
		list_servers(all, &opts);
	}
	if (opts.n) {
		find_cache(cache);
		opts.cache = cache;
		if (cache[0])
			err = debuginfod__new(&opts, ret_debuginfod);
		else
			err = -ENOENT;
		if (!cache[0])
			log_warn("debuginfod: neither HOME nor DEBUGINFOD_CACHE_PATH is set");
	}
	free(all);
	return n ? err : 0;
}

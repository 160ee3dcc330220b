/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "places_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define FOLDED "\n;" /* not a text to search for: is_folded() is used instead */
#define HEAD   4096  /* bytes of a file that are read to identify it */

/* How a file of the format begins, what its first bytes contain, and how to open it. */
static const struct kind {
	const struct export_format *format;
	const char *begins, *has;
	const char *hint;
} kinds[] = {
	{&export_speedscope, "{", "file-format-schema.json",
	 "open it in https://www.speedscope.app"},
	{&export_chrome, "{\"traceEvents\":", "", "open it in https://ui.perfetto.dev"},
	{&export_html, "<!DOCTYPE html>", "safescoped", "open it in a browser"},
	{&export_pprof, "\x1f\x8b", "", "go tool pprof -http=: %s"},
	{&export_otlp, "\x1f\x8b", "",
	 "POST it to http://COLLECTOR:4318/v1development/profiles, as protobuf and gzip"},
	{&export_folded, "", FOLDED, "flamegraph.pl --countname µs %s > flamegraph.svg"},
	{&export_json, "{", "\"safescope\":", "jq . %s"},
	{&export_text, "safescoped: ", "", "less %s"},
};

static const struct kind *kind_of(const struct export_format *format)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].format == format)
			return &kinds[i];
	return NULL;
}

const char *place__hint(const struct export_format *format, enum export_weight weight)
{
	const struct kind *kind = kind_of(format);

	if (format == &export_folded && weight == WEIGHT_SAMPLES)
		return "flamegraph.pl --countname samples %s > flamegraph.svg";
	if (format == &export_folded && weight == WEIGHT_ALLOC)
		return "flamegraph.pl --countname bytes %s > flamegraph.svg";
	return kind ? kind->hint : "";
}

/* ── where it goes ───────────────────────────────────────────────────────────────────────── */

bool place__is_directory(const char *path)
{
	struct stat st;
	size_t len = strlen(path);

	return (len && path[len - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

/* True for /dev/null and other devices, which get no suffix. */
static bool is_device(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool ends_with(const char *s, size_t len, const char *suffix)
{
	size_t n = strlen(suffix);

	/* a name that consists of the suffix alone counts as a name */
	return len > n && s[len - n - 1] != '/' && !memcmp(s + len - n, suffix, n);
}

const char *place__suffix(size_t i)
{
	return i < ARRAY_SIZE(kinds) ? kinds[i].format->suffix : NULL;
}

int place__find_suffix(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(text, kinds[i].format->suffix))
			return (int)i;
	return -1;
}

/* The length of the path without the longest suffix that belongs to a format. */
static size_t stem_length(const char *path)
{
	size_t len = strlen(path), longest = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (ends_with(path, len, kinds[i].format->suffix))
			longest = MAX(longest, strlen(kinds[i].format->suffix));
	return len - longest;
}

static int join(char path[PATH_MAX], const char *dir, const char *stem, const char *suffix)
{
	size_t len = strlen(dir);
	const char *slash = len && dir[len - 1] != '/' ? "/" : "";
	int n = snprintf(path, PATH_MAX, "%s%s%s%s", dir, slash, stem, suffix);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int place__choose(const struct output_opts *opts, const struct export_format *format,
		  size_t n_files, const char *stem, char path[PATH_MAX])
{
	const char *to = opts->path;
	char given[PATH_MAX];
	int n;

	if (to && !strcmp(to, "-"))
		return join(path, "", "-", "");
	if (opts->windows)
		return join(path, to ? to : "", stem, format->suffix);
	/* text is for immediate reading, unless it is all that was asked for */
	if (format == &export_text && (!to || opts->n_formats > 1))
		return join(path, "", "-", "");
	if (!to)
		return join(path, "", stem, format->suffix);
	if (place__is_directory(to))
		return join(path, to, stem, format->suffix);
	if (n_files == 1 && (is_device(to) || ends_with(to, strlen(to), format->suffix)))
		return join(path, "", to, "");
	n = snprintf(given, sizeof(given), "%.*s", (int)MIN(stem_length(to), (size_t)PATH_MAX), to);
	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	return join(path, "", given, format->suffix);
}

/* ── what is there ───────────────────────────────────────────────────────────────────────── */

bool place__is_taken(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && lstat(path, &st) == 0;
}

/* Reads the beginning of a regular file, NUL-terminated; 0: it is empty, or does not exist. */
static ssize_t read_head(const char *path, char head[HEAD + 1])
{
	ssize_t n = 0;
	int fd;

	if (fd__open_regular(path, &fd))
		return 0;
	n = read(fd, head, HEAD);
	fd__close(&fd);
	head[MAX(n, (ssize_t)0)] = '\0';
	return n;
}

/* True if the first line is like "a;b;c 42". */
static bool is_folded(const char *head)
{
	size_t len = strcspn(head, "\n"), digits = 0;

	while (digits < len && head[len - digits - 1] >= '0' && head[len - digits - 1] <= '9')
		digits++;
	return digits && len > digits + 1 && head[len - digits - 1] == ' ' &&
	       memchr(head, ';', len) && head[len];
}

static bool is_there_another(const char *path, const char *begins, const char *has)
{
	char head[HEAD + 1];
	ssize_t n = read_head(path, head);

	if (n > 0 && !strcmp(has, FOLDED))
		return !is_folded(head);
	return n > 0 &&
	       (strncmp(head, begins, strlen(begins)) != 0 || (*has && !strstr(head, has)));
}

int output__may_replace(const char *path, const struct export_format *format)
{
	const struct kind *kind = format ? kind_of(format) : NULL;

	if (!kind && format)
		return 0;
	if (!is_there_another(path, kind ? kind->begins : "safescoped capture",
			      kind ? kind->has : ""))
		return 0;
	log_error("%s: already exists and is not a %s file by safescoped; not replacing it: choose "
		  "another name, or remove it",
		  path, format ? format->name : "capture");
	return -EEXIST;
}

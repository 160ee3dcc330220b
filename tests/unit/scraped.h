/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scraped: a parser of the Prometheus text format for these tests; it fails on malformed input. */
#ifndef SAFESCOPED_TEST_SCRAPED_H
#define SAFESCOPED_TEST_SCRAPED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"
#include "picture/make.h"

struct series {
	char *key; /* name and labels */
	char *name;
	double value;
	bool counter;
};

struct scraped {
	struct series *v;
	size_t n, cap;
};

static inline void scraped_free(struct scraped *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].key);
		free(s->v[i].name);
	}
	free(s->v);
	*s = (struct scraped){0};
}

static inline const struct series *find(const struct scraped *s, const char *key)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].key, key))
			return &s->v[i];
	return NULL;
}

static inline double value_of(const struct scraped *s, const char *key)
{
	const struct series *found = find(s, key);

	if (!found)
		print_message("          no series %s\n", key);
	assert_non_null(found);
	return found->value;
}

/* The sum of all series with this name whose labels contain `label`. */
static inline double sum_of(const struct scraped *s, const char *name, const char *label)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->v[i].name, name) && strstr(s->v[i].key, label))
			sum += s->v[i].value;
	return sum;
}

static inline size_t name_length(const char *p)
{
	size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");

	assert_true(n > 0);
	return n;
}

/* Takes the text after the opening brace; returns what follows the closing one. */
static inline const char *skip_labels(const char *p)
{
	while (*p != '}') {
		p += name_length(p);
		assert_int_equal(*p++, '=');
		assert_int_equal(*p++, '"');
		for (; *p != '"'; p++) {
			uint32_t cp;
			size_t len = text__decode(p, strlen(p), &cp);

			assert_true(len > 0);
			assert_false(text__is_hidden(cp));
			p += len - 1;
			if (*p != '\\')
				continue;
			p++;
			assert_true(*p == '\\' || *p == '"' || *p == 'n');
		}
		p++;
		if (*p == ',')
			p++;
		else
			assert_int_equal(*p, '}');
	}
	return p + 1;
}

/* A series has its family's name; a histogram's series add a suffix. */
static inline bool is_of(const char *name, const char *family, const char *type)
{
	size_t len = strlen(family);
	const char *suffix = name + len;

	if (strncmp(name, family, len) != 0)
		return false;
	if (strcmp(type, "histogram") != 0)
		return !*suffix;
	return !strcmp(suffix, "_bucket") || !strcmp(suffix, "_sum") || !strcmp(suffix, "_count");
}

static inline void add_series(struct scraped *s, const char *line, const char *family,
			      const char *type)
{
	size_t len = name_length(line);
	const char *rest = line[len] == '{' ? skip_labels(line + len + 1) : line + len;
	struct series new = {.key = strndup(line, (size_t)(rest - line)),
			     .name = strndup(line, len),
			     .counter = strcmp(type, "gauge") != 0};
	char *end;

	assert_true(is_of(new.name, family, type));
	assert_int_equal(*rest++, ' ');
	new.value = strtod(rest, &end);
	assert_true(end > rest && !*end);
	assert_null(find(s, new.key));
	assert_int_equal(ARRAY_RESERVE(s->v, s->cap, s->n + 1, 1 << 20), 0);
	s->v[s->n++] = new;
}

/* Each family must occur once, with its help, its type and its series. */
static inline struct scraped read_text(char *text)
{
	char family[128] = "", type[16] = "", name[130];
	struct scraped s = {0};
	struct buf seen = {0};
	char *line = text, *next;

	for (; *line; line = next) {
		next = strchr(line, '\n');
		assert_non_null(next);
		*next++ = '\0';
		if (!strncmp(line, "# HELP ", 7)) {
			assert_int_equal(sscanf(line, "# HELP %127s", family), 1);
			snprintf(name, sizeof(name), " %s ", family);
			assert_null(seen.data ? strstr(seen.data, name) : NULL);
			assert_int_equal(buf__adds(&seen, name), 0);
			type[0] = '\0';
		} else if (!strncmp(line, "# TYPE ", 7)) {
			assert_int_equal(sscanf(line, "# TYPE %129s %15s", name, type), 2);
			assert_string_equal(name, family);
		} else {
			assert_true(type[0]);
			add_series(&s, line, family, type);
		}
	}
	buf__free(&seen);
	return s;
}

static inline struct scraped scrape(const struct metrics *m)
{
	struct buf out = {0};
	struct scraped s;

	assert_int_equal(metrics__write(m, &out), 0);
	s = read_text(out.data);
	buf__free(&out);
	return s;
}

/* For every histogram: the buckets never decrease, and the last one equals its count. */
static inline void check_histograms(const struct scraped *s)
{
	double before = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct series *one = &s->v[i];

		if (strstr(one->key, "_bucket{")) {
			n++;
			assert_true(one->value >= before);
			before = one->value;
		} else if (strstr(one->key, "_count{")) {
			assert_true(one->value == before);
			assert_int_equal(n, FIGURES_HIST);
			before = 0;
			n = 0;
		}
	}
}

/* Every earlier counter is still there and not lower. */
static inline void check_grown(const struct scraped *before, const struct scraped *now)
{
	for (size_t i = 0; i < before->n; i++) {
		if (!before->v[i].counter)
			continue;
		if (value_of(now, before->v[i].key) < before->v[i].value)
			print_message("          %s\n", before->v[i].key);
		assert_true(value_of(now, before->v[i].key) >= before->v[i].value);
	}
}

/* The error left by rounding to doubles. */
#define EXACT 1e-9

/* True if `a` seconds equal ns within `rest` seconds. */
static inline bool near(double a, uint64_t ns, double rest)
{
	double seconds = (double)ns / 1e9, gap = a > seconds ? a - seconds : seconds - a;

	return gap <= rest;
}

/* A made-up process. */
static inline struct pic_target target_of(pid_t pid, const char *comm)
{
	return (struct pic_target){.pid = pid,
				   .comm = comm,
				   .exe = "/bin/x",
				   .ghc_version = "9.0.2",
				   .way = "rts_thr"};
}

#endif

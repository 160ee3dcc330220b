/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a configuration file: it becomes options, or each error message names the file. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/config.h"
#include "cli/options_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

/* Names and values lie in the text, in order, and without blanks around them. */
static void check_lines(const struct config *config, size_t size)
{
	const char *end = config->text + size;
	unsigned last = 0;

	for (size_t i = 0; i < config->n; i++) {
		const struct config_line *l = &config->lines[i];
		const char *last_of = l->value ?: l->name;

		check(l->number > last && l->name >= config->text && last_of <= end);
		check(!strpbrk(l->name, " \t\n=") && !strchr(last_of, '\n'));
		check(!*last_of || !strchr(" \t\r", last_of[strlen(last_of) - 1]));
		last = l->number;
	}
}

static void check_wrong(const char *path, const struct buf *wrong)
{
	for (const char *line = wrong->data; *line; line = strchr(line, '\n') + 1) {
		check(!strncmp(line, path, strlen(path)));
		check(strchr(line, '\n') != NULL);
	}
}

static void check_options(const struct options *o)
{
	check(o->frequency_hz >= 1 && o->frequency_hz <= 9999);
	check(o->n_pids <= OPTIONS_MAX_PIDS && o->select.n <= SELECT_MAX_RULES);
	check(o->output.n_formats >= 1 && o->output.n_formats <= OUTPUT_MAX_FORMATS);
	check(o->output.lanes != 0);
	check(!o->window_ns || o->window_ns >= 100000000);
	check(o->mode == MODE_SYSTEM || o->mode == MODE_PID || o->mode == MODE_EVENTLOG);
	check(options__same(o, o));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("config", MFD_CLOEXEC);
	struct options *options;
	struct config *config;
	struct buf wrong = {};
	char path[32];
	int err;

	/* a file that others may write is not read at all */
	check(fd >= 0 && !fchmod(fd, 0600));
	check(write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!config__parse((const char *)data, size, &config)) {
		check_lines(config, size);
		config__free(config);
	}
	err = options__read_config(path, &wrong, &options);
	check(err == 0 || err == -EINVAL);
	check((err == 0) == (wrong.len == 0));
	if (err) {
		check_wrong(path, &wrong);
	} else {
		check_options(options);
		options__free(options);
	}
	buf__free(&wrong);
	close(fd);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* safescoped: where every moment of a running Haskell program went. */
#include <capstone/capstone.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/base.h"
#include "modes.h"
#include "options.h"
#include "service.h"
#include "show/show.h"

static int run_mode(struct options **options)
{
	const struct options *o = *options;

	switch (o->mode) {
	case MODE_LIST:
		return list__run(o);
	case MODE_DOCTOR:
		return doctor__run(o);
	case MODE_EVENTLOG:
		return log_mode__run(o);
	case MODE_REPLAY:
		return replay_mode__run(o);
	case MODE_DIFF:
		return diff_mode__run(o);
	case MODE_PID:
	case MODE_COMMAND:
	case MODE_SYSTEM:
		break;
	}
	return session_mode__run(options);
}

static int run(struct options **options)
{
	return (*options)->top ? top_mode__run(*options, run_mode) : run_mode(options);
}

/* ── the page in a browser ───────────────────────────────────────────────────────────────── */

struct opened {
	struct show *show;
	char *page; /* the written file; NULL: none (yet) */
};

static void remember_page(void *ctx, const struct export_format *format, const char *path)
{
	struct opened *opened = ctx;

	if (format != &export_html)
		return;
	free(opened->page);
	opened->page = strdup(path);
}

/* Returns the session's exit status: ending the server of the page is not a failure, and failing
 * to serve it counts only if the session succeeded. */
static int run_and_show(struct options **options)
{
	struct output_opts *output = &(*options)->output;
	struct opened opened = {0};
	int code, err = show__open(&opened.show);

	if (err)
		return EXIT_FAILED;
	output->written = remember_page;
	output->written_ctx = &opened;
	code = run(options);
	output->written_ctx = NULL;
	if (opened.page && !show__page(opened.show, opened.page))
		err = show__wait(opened.show, opened.page);
	show__free(opened.show);
	free(opened.page);
	return err && code == 0 ? EXIT_FAILED : code;
}

/* ── memory for capstone, which does not check whether it got what it asked for ────────── */

/* Whatever is attached goes with the process. */
static void *or_end(void *memory, size_t size)
{
	if (!memory && size) {
		log_error("no memory");
		_exit(EXIT_FAILED);
	}
	return memory;
}

static void *memory_new(size_t size)
{
	return or_end(malloc(size), size);
}

static void *memory_zeroed(size_t n, size_t size)
{
	return or_end(calloc(n, size), n && size);
}

static void *memory_resized(void *old, size_t size)
{
	return or_end(realloc(old, size), size);
}

static void give_capstone_memory(void)
{
	static cs_opt_mem memory = {.malloc = memory_new,
				    .calloc = memory_zeroed,
				    .realloc = memory_resized,
				    .free = free,
				    .vsnprintf = vsnprintf};

	cs_option(0, CS_OPT_MEM, (size_t)&memory);
}

/*
 * If whoever started us closed standard input, output or error, the next file opened would get that
 * number, and receive our messages. /dev/null opened read-only takes the number instead, so that
 * writes to it fail as before.
 */
static void hold_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	fd__close(&fd);
}

int main(int argc, char **argv)
{
	struct options *options;
	uid_t owner;
	gid_t group;
	int code;

	signals__hold();
	/* all output is UTF-8, whatever the user's locale is */
	setlocale(LC_CTYPE, "C.UTF-8");
	hold_standard_fds();
	give_capstone_memory();
	log__find_journal();
	options = options__parse(argc, argv);
	options__set_log_level(options);
	signals__ignore_harmless();
	if (!service__wanted(options))
		signals__release();
	/* before doing anything as root that was meant for another user */
	if (output__owner(&owner, &group))
		code = EX_USAGE;
	else
		code = options->open ? run_and_show(&options) : run(&options);
	options__free(options);
	return code;
}

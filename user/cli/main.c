/* SPDX-License-Identifier: GPL-2.0-or-later */
/* safescoped: where every moment of a running Haskell program went. */
#include <capstone/capstone.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/base.h"
#include "modes.h"
#include "options.h"

static int run(struct options **options)
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
	case MODE_PID:
	case MODE_COMMAND:
	case MODE_SYSTEM:
		break;
	}
	return session_mode__run(options);
}

/* ── memory for capstone, which writes to what it asked for without looking whether it got it ── */

/* What has been attached is gone with the process. */
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
 * Where standard input, output or error was closed by whoever started us, a file that is opened
 * would get its number, and what is said to people. This one can only be read, and is empty: what
 * is written there fails as before.
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

	/* all output is UTF-8, whatever the user's locale is */
	setlocale(LC_CTYPE, "C.UTF-8");
	hold_standard_fds();
	give_capstone_memory();
	log__find_journal();
	options = options__parse(argc, argv);
	options__set_log_level(options);
	signals__ignore_harmless();
	/* before anything is done as root that was meant for somebody else */
	code = output__owner(&owner, &group) ? EX_USAGE : run(&options);
	options__free(options);
	return code;
}

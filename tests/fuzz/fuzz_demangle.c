/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Any string as a C++ or Rust symbol: the result is a string within its buffer. libiberty takes
 * exponential time for some Rust symbols; the daemon's helper process is killed then, and here the
 * input is abandoned.
 */
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "names/demangle_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LONGEST_MS 500

static sigjmp_buf too_long;

/* No memory is held at this point: libiberty's functions with a callback allocate none. */
static void on_timer(int number)
{
	(void)number;
	siglongjmp(too_long, 1);
}

static void set_timer(int ms)
{
	const struct itimerval timer = {.it_value.tv_usec = ms * 1000};

	signal(SIGVTALRM, on_timer);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

/* Adds a prefix, since few inputs would begin as a mangled name does. */
static void try_with(const char *prefix, const uint8_t *data, size_t size)
{
	size_t n = strlen(prefix);
	char *volatile name = malloc(n + size + 1);
	char buf[64];

	if (!name)
		return;
	if (sigsetjmp(too_long, 1)) {
		free(name);
		return;
	}
	memcpy(name, prefix, n);
	memcpy(name + n, data, size);
	name[n + size] = '\0';
	memset(buf, 'x', sizeof(buf));
	set_timer(LONGEST_MS);
	if (demangle_here(name, buf, sizeof(buf)) == 0 && strnlen(buf, sizeof(buf)) == sizeof(buf))
		abort();
	set_timer(0);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_with("", data, size);
	try_with("_Z", data, size);
	try_with("_R", data, size);
	return 0;
}

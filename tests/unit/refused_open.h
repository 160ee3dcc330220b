/* SPDX-License-Identifier: GPL-2.0-or-later */
/* refused_open: an open() that fails for chosen paths, for the library's callers too. Include
 * after cmocka.h. */
#ifndef SAFESCOPED_TEST_REFUSED_OPEN_H
#define SAFESCOPED_TEST_REFUSED_OPEN_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *refused; /* part of the path to refuse; NULL: refuse none */
static int refused_err;

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (refused && strstr(path, refused)) {
		errno = refused_err;
		return -1;
	}
	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void refuse(const char *what, int err)
{
	refused = what;
	refused_err = err;
}

#endif

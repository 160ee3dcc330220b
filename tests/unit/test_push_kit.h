/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tests of --push: a directory for each test. */
#ifndef SAFESCOPED_TEST_PUSH_KIT_H
#define SAFESCOPED_TEST_PUSH_KIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "picture/make.h"
#include "push/push_priv.h"

static char dir[64];

static inline int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/safescoped-push-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static inline const char *in_dir(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static inline void put_text(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

/* The number of files waiting in a queue. */
static inline size_t count_queued(const char *queue)
{
	DIR *d = opendir(in_dir(queue));
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)))
		n += queue__is_name(entry->d_name);
	closedir(d);
	return n;
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* temp_dir: a directory for the files of a group's tests. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_TEMP_DIR_H
#define SAFESCOPED_TEST_TEMP_DIR_H

#include <stdio.h>
#include <stdlib.h>

static char dir[64];

/* The group's setup and teardown. */
static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/safescoped-test.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

#endif

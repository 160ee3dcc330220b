/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capture_folder: a temporary folder for one capture, made and removed by a group's setup and
 * teardown. */
#ifndef SAFESCOPED_TEST_CAPTURE_FOLDER_H
#define SAFESCOPED_TEST_CAPTURE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The folder, the path of the capture in it, and the capture's path until it is finished. */
static char folder[] = "/tmp/safescoped-capture-XXXXXX";
static char path[128], partial[160];

static inline int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/c", folder);
	snprintf(partial, sizeof(partial), "%s/c.partial", folder);
	return 0;
}

static inline int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(partial);
	return rmdir(folder);
}

#endif

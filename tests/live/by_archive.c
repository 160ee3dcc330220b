/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_archive FILE DIRECTORY…: prints which functions of the directories' archives the file has, as
 * a session with -v -v does. For files that are not GHC programs.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archives/archives.h"
#include "base/base.h"
#include "confine/confine.h"
#include "elf/elf.h"
#include "process/image.h"

static int look(const struct archives *archives, const struct elf_file *elf)
{
	struct archives_known *known = NULL;
	struct confine_job *job;
	int err = archives__start(archives, elf, false, &job);

	if (err)
		return err;
	while ((err = archives__await(archives, elf, job, &known)) == -EBUSY)
		usleep(1000);
	confine_job__free(job);
	archives_known__free(known);
	/* it has none of them */
	return err == -ENOENT ? 0 : err;
}

int main(int argc, char **argv)
{
	struct archives *archives = NULL;
	struct images images = {0};
	int fd = -1, err;

	if (argc < 3)
		return 2;
	log__set_level(LOG_LVL_DEBUG);
	err = archives__open((const char *const *)argv + 2, (size_t)argc - 2, &archives);
	if (!err)
		err = fd__open_regular(argv[1], &fd);
	if (!err)
		err = images__of_file(&images, fd, argv[1], path__base(argv[1]), true);
	fd__close(&fd);
	if (!err && !images.images[0]->elf)
		err = -ENOEXEC;
	if (!err)
		err = look(archives, images.images[0]->elf);
	if (err)
		log_error("%s: %s", argv[1], strerror(-err));
	images__free(&images);
	archives__free(archives);
	return err ? 1 : 0;
}

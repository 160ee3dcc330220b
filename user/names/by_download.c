/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_download: gets the symbols that a file lacks from a server, by build-id. A file from a server
 * is used for names only, never to find the runtime.
 */
#include "names_priv.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/base.h"
#include "base/retry.h"
#include "debuginfod/debuginfod.h"
#include "process/debugfile.h"
#include "process/file.h"

const struct elf_file *names__debug_file(const struct image *image)
{
	return image->debug_is_own ? image->debug : image->file->debug ?: image->file->downloaded;
}

/* For the pause after there was no time to read the downloaded file. */
static const struct slot_key download_key;

/* Returns 0 even if the file is useless; one of retry__shows_nothing()'s errors if there was no
 * time to look. */
static int open_file(struct file *file, const char *path, const char *build_id)
{
	struct elf_file *elf;
	char id[41];
	int fd, err = fd__open_regular(path, &fd);

	if (!err)
		err = elf__open_fd(fd, path, &elf);
	if (err) {
		log_verbose("%s: %s", path, strerror(-err));
		return retry__shows_nothing(err) ? err : 0;
	}
	if (elf__build_id(elf, id) && !strcmp(id, build_id) && elf__n_symbols(elf, ELF_SYMTAB) > 1)
		file->downloaded = elf;
	else
		elf__free(elf);
	return 0;
}

/* Not downloaded, but it may still be. */
static bool may_be_downloaded(const struct names *names, const struct image *image)
{
	return names->of.debuginfod && !image->file->download_over;
}

bool names__awaits_download(struct names *names, struct image *image)
{
	struct file *file = image->file;
	char id[41], path[PATH_MAX];
	int err;

	if (!may_be_downloaded(names, image) || time__monotonic_ns() < file->download_ns ||
	    names__waits(names, &file->slots, &download_key))
		return false;
	debugfile__look(names->of.pid, image);
	if (image->debug || elf__n_symbols(image->elf, ELF_SYMTAB) > 1 ||
	    !elf__build_id(image->elf, id)) {
		/* its own debug file is not used for other processes */
		file->download_over = !image->debug_is_own;
		return false;
	}
	err = debuginfod__find(names->of.debuginfod, image->account, id, path);
	/* a failure may be temporary, like a server that is down: names made without the file must
	 * not be final */
	if (err && err != -ENOENT)
		return true;
	/* no server has it: until it is asked for again, names made without it are final */
	if (err) {
		file->download_ns = time__monotonic_ns() + DEBUGINFOD_NONE_MS * 1000000ULL;
		return false;
	}
	/* it can be read later */
	if (names__put_off(names, &file->slots, &download_key, open_file(file, path, id)))
		return false;
	file->download_over = true;
	if (file->downloaded)
		log_verbose("%s: symbols from %s", image->base, path);
	return false;
}

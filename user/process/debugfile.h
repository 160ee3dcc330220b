/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the separate file with a stripped file's symbols: given by --symbols, or found by build-id
 * or .gnu_debuglink, as GDB does ("Debugging Information in Separate Files"). The host's own paths
 * come first, and apply to all processes that map the file. If a process has its own root or
 * mounts, those come next; whoever made them may have put anything there, so a file found there is
 * used only for the names of that process.
 */
#ifndef SAFESCOPED_PROCESS_DEBUGFILE_H
#define SAFESCOPED_PROCESS_DEBUGFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf.h"
#include "image.h"

/*
 * Looks for the debug file of an image that has no .symtab. Sets image->debug, or leaves it NULL;
 * image->debug_is_own shows whether it came from the process's own root. Looks once for each image,
 * since another process may map the same file at a path that leads to a debug file. -EBUSY: there
 * was no time to look everywhere; call it again.
 */
int debugfile__look(pid_t pid, struct image *image);

/*
 * Uses --symbols FILE for the image. Its build-id must match the image's, or if neither has one,
 * its code; `force` accepts any file. Prints the reason if it cannot be used, and returns -EINVAL.
 */
int debugfile__take(const char *path, bool force, struct image *image);

/* The image with the same build-id as the file at path; NULL if there is none. */
struct image *debugfile__image_of(const char *path, const struct images *images);

/* Parses the name and checksum in a .gnu_debuglink section. -EINVAL. */
#define DEBUGLINK_NAME 256
int debugfile__parse_link(const uint8_t *data, uint64_t size, char ret_name[DEBUGLINK_NAME],
			  uint32_t *ret_crc);

#endif

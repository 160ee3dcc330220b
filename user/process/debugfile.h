/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The separate file with a stripped file's symbols: given by --symbols, or found by build-id or by
 * .gnu_debuglink, as GDB does ("Debugging Information in Separate Files"). First by the host's own
 * paths, for all processes that map the file; then, where a process has a root or mounts of its
 * own, by these: whoever made them may have put anything there, so that this one is for the names
 * of that process and for nothing else.
 */
#ifndef SAFESCOPED_PROCESS_DEBUGFILE_H
#define SAFESCOPED_PROCESS_DEBUGFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/elf.h"
#include "image.h"

/*
 * Looks for the debug file of an image that has no .symtab; image->debug is it, or stays NULL, and
 * image->debug_is_own shows whose. Looks once for each image: another process of the same file may
 * have it at a place that leads to one. -EBUSY: there was no time to look everywhere, and it is to
 * be called again.
 */
int debugfile__look(pid_t pid, struct image *image);

/*
 * Takes --symbols FILE for the image. Its build-id must be the image's, or without build-ids its
 * code the same; `force` accepts any. Prints why it cannot be used: -EINVAL.
 */
int debugfile__take(const char *path, bool force, struct image *image);

/* The image that has the build-id of the file at path; NULL. */
struct image *debugfile__image_of(const char *path, const struct images *images);

/* The name and checksum in a .gnu_debuglink section's bytes. -EINVAL. */
#define DEBUGLINK_NAME 256
int debugfile__parse_link(const uint8_t *data, uint64_t size, char ret_name[DEBUGLINK_NAME],
			  uint32_t *ret_crc);

#endif

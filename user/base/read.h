/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read: reads whole files, or whole parts of them, whatever the size of the single reads. */
#ifndef SAFESCOPED_BASE_READ_H
#define SAFESCOPED_BASE_READ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the rest of an open file whose length is not known; adds a NUL; the caller frees. -EFBIG:
 * more than `max` bytes; -ENOMEM; otherwise read()'s errors.
 */
int read__all(int fd, size_t max, char **ret_text, size_t *ret_len);

/* Reads `len` bytes at `at`, or up to the end of the file. pread()'s errors. */
int read__at(int fd, void *buf, size_t len, uint64_t at, size_t *ret_got);

#endif

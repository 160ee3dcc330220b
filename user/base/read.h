/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read: files whole, or a part of them whole, however few bytes come at a time. */
#ifndef SAFESCOPED_BASE_READ_H
#define SAFESCOPED_BASE_READ_H

#include <stddef.h>
#include <stdint.h>

/*
 * What is left of an open file whose length is not known; with a NUL after it, the caller frees.
 * -EFBIG: more than `max` bytes; -ENOMEM; else read()'s errors.
 */
int read__all(int fd, size_t max, char **ret_text, size_t *ret_len);

/* `len` bytes at `at`, or those up to the file's end. pread()'s errors. */
int read__at(int fd, void *buf, size_t len, uint64_t at, size_t *ret_got);

#endif

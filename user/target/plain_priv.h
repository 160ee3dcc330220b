/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plain: executables that were looked at and are none of GHC's. On a host that runs a build the
 * same few begin hundreds of times a second; they need no place among the files that are kept open.
 */
#ifndef SAFESCOPED_TARGET_PLAIN_PRIV_H
#define SAFESCOPED_TARGET_PLAIN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Beyond that all are forgotten, and found again: about 100 bytes each. */
#define PLAIN_PROGRAMS_MAX 16384U

struct plain;

int plain__new(struct plain **ret_plain); /* -ENOMEM */
void plain__free(struct plain *plain);	  /* NULL is fine */
/* A file that has changed since is another one: by its size, and the times of its last changes. */
bool plain__knows(const struct plain *plain, const struct stat *st);
/* Without memory for it the file is merely looked at again. */
void plain__add(struct plain *plain, const struct stat *st);
size_t plain__count(const struct plain *plain);

#endif

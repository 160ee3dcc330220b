/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pack_priv: shared by the models' packing. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_PACK_PRIV_H
#define SAFESCOPED_EVENTLOG_PACK_PRIV_H

#include "pack.h"

struct slices;
struct strtab;

/* Requires that the parts add up without overflow, as the parts of one span do. */
void unpack__parts(struct unpack *u, const uint64_t *parts, size_t n);

/* n elements of one size, preceded by n. */
void pack__array(struct pack *p, const void *array, size_t n, size_t elem);
/*
 * Sets *ret_array and *ret_n in any case; *ret_array is NULL if there are none. -EBADMSG: more than
 * `max`, or more than there is.
 */
int unpack__array(struct unpack *u, void **ret_array, size_t *ret_n, size_t max, size_t elem);
/* The same for a typed pointer, through void * to obey the aliasing rules. */
#define UNPACK_ARRAY(u, array, n, max)                                                             \
	({                                                                                         \
		void *array_ = NULL;                                                               \
		int err_ = unpack__array((u), &array_, &(n), (max), sizeof(*(array)));             \
		(array) = array_;                                                                  \
		err_;                                                                              \
	})

/* A text, at most STRTAB_MAX_STRING long. Unpacked, it points into the message, without a NUL. */
void pack__text(struct pack *p, const char *text);
const char *unpack__text(struct unpack *u, size_t *ret_len);

/* All strings; their ids stay the same. *strings is empty, or has the first of them already. */
void pack__strings(struct pack *p, const struct strtab *strings);
int unpack__strings(struct unpack *u, struct strtab *strings);

/* Limits for a lane's slices. */
struct slices_kind {
	unsigned states; /* of its kind */
	uint32_t stacks; /* `stack` must be below it */
	size_t max;	 /* how many there may be */
};
void pack__slices(struct pack *p, const struct slices *slices);
/* Sets *ret_slices in any case. */
int unpack__slices(struct unpack *u, const struct slices_kind *kind, struct slices *ret_slices);

#endif

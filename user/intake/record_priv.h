/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records whose sizes are known to be consistent, and the records of threads. Shared by record.c
 * and thread_record.c only. */
#ifndef SAFESCOPED_INTAKE_RECORD_PRIV_H
#define SAFESCOPED_INTAKE_RECORD_PRIV_H

#include <errno.h>
#include <string.h>

#include "intake_priv.h"

/* A record and its frames, once its sizes are known to be consistent. */
struct view {
	const uint8_t *rec;
	size_t size;
	uint64_t frames[WIRE_FRAMES_MAX];
};

/* Copies the fixed part of the record; size_fits() has checked that it is there. */
static inline void view__fixed(const struct view *view, void *ret, size_t size)
{
	memcpy(ret, view->rec, size);
}

static inline int view__stack(struct view *view, size_t fixed, const struct wire_stack *head)
{
	size_t bytes = (size_t)head->nframes * sizeof(uint64_t);

	if (head->nframes > WIRE_FRAMES_MAX || view->size - fixed < bytes ||
	    head->end > WIRE_END_BROKEN)
		return -EBADMSG;
	if (bytes)
		memcpy(view->frames, view->rec + fixed, bytes);
	return 0;
}

/* ── thread_record.c: each is kept with its thread ───────────────────────────────────────── */

int record__sample(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view);
int record__off(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view);
int record__call(struct intake *in, struct seen *s, struct seen_thread *th, struct view *view);
/* A thread's start or end, or a process's end. */
int record__event(struct intake *in, struct seen *s, struct seen_thread *th,
		  const struct view *view);

#endif

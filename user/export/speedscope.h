/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the speedscope format share: speedscope.c, speedscope_sum.c. */
#ifndef SAFESCOPED_EXPORT_SPEEDSCOPE_H
#define SAFESCOPED_EXPORT_SPEEDSCOPE_H

#include "view.h"

struct extra_frame;

struct speedscope {
	FILE *out;
	const struct timeline *tl;
	const struct tl_session *session;
	size_t n_targets;
	struct views views;
	uint64_t grain_ns;	/* shorter neighbours are merged */
	uint32_t *map;		/* of a timeline's frame: index in the file */
	uint32_t n_frames;	/* in the file, of the timeline's */
	uint32_t process_frame; /* several targets: index of the first one's frame */
	uint32_t next_frame;	/* after all that have an index already */
	uint32_t state_frames[LANE_KINDS][ST_MAX];
	struct extra_frame *extras; /* Haskell threads and capabilities within others' lanes */
};

/* A profile up to its samples. */
void speedscope__put_head(struct speedscope *w, const char *name, uint64_t end);
/* The frames of a stack; comma: one goes in front. */
void speedscope__put_stack(const struct speedscope *w, struct tl_stack stack, bool comma);
/* The profile of all threads. */
int speedscope__put_sum(struct speedscope *w);

#endif

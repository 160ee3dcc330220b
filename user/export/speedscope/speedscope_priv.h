/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the speedscope format share: profile.c, sum.c (what is added up), lanes.c
 * (frames, lanes). */
#ifndef SAFESCOPED_EXPORT_SPEEDSCOPE_H
#define SAFESCOPED_EXPORT_SPEEDSCOPE_H

#include "export/sums.h"

struct extra_frame;

/* A stack as it is written. A lane's stacks come again and again, and are long. */
#define STACK_TEXTS 512
struct stack_text {
	const uint32_t *frames; /* of the picture's stack; NULL: none */
	uint32_t n;
	struct buf text; /* ",12,345": with a comma in front */
};

struct speedscope {
	FILE *out;
	const struct picture *pic;
	size_t n_targets;
	struct views views;
	struct sums sums; /* by target */
	const char *sum_title;
	enum export_weight weight; /* of the profile that comes first, if it is allocation */
	uint32_t *map;		   /* of a picture's frame: index in the file */
	uint32_t n_frames;	   /* in the file, of the picture's */
	uint32_t process_frame;	   /* several targets: index of the first one's frame */
	struct lane_frames {	   /* of a kind: the first n views of it, and one for all others */
		size_t first;	   /* view */
		uint32_t frame;	   /* of the first view */
		uint32_t n, others;
	} lane_frames[LANE_KINDS];
	uint32_t next_frame; /* after all that have an index already */
	uint32_t state_frames[LANE_KINDS][LANE_STATES];
	struct stack_text *texts;   /* STACK_TEXTS of them, by where the stack lies */
	struct extra_frame *extras; /* Haskell threads and capabilities within others' lanes */
	int err;		    /* of putting stacks */
};

/* A profile up to its samples; `unit`: "nanoseconds", "bytes". */
void speedscope__put_head(struct speedscope *w, const char *name, const char *unit, uint64_t end);
/* The frames of a stack; comma: one goes in front. */
void speedscope__put_stack(struct speedscope *w, struct pic_stack stack, bool comma);
/* Of a row or a slice: without its state, which is shown above it. */
struct pic_stack speedscope__below_state(const struct speedscope *w, uint32_t id);
/* Numbers the frames that stand for lanes where they are added up, and writes them; how many. */
void speedscope__number_lanes(struct speedscope *w);
uint32_t speedscope__put_lane_frames(struct speedscope *w);
/* The profile of all threads, and one for each kind of lanes. */
int speedscope__put_sums(struct speedscope *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the speedscope format share: profile.c (heads, stacks), sum.c (sums), lanes.c
 * (frames, lanes). */
#ifndef SAFESCOPED_EXPORT_SPEEDSCOPE_H
#define SAFESCOPED_EXPORT_SPEEDSCOPE_H

#include "export/sums.h"

struct extra_frame;

/* A stack's text, cached: a lane's stacks recur all the time, and are long. */
#define STACK_TEXTS 512
struct stack_text {
	const uint32_t *frames; /* of the picture's stack; NULL: empty entry */
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
	enum export_weight weight; /* WEIGHT_ALLOC: the profile of allocation comes first */
	uint32_t *map;		   /* maps a picture's frame to its index in the file */
	uint32_t n_frames;	   /* the picture's frames in the file */
	uint32_t process_frame;	   /* several targets: index of the first one's frame */
	struct lane_frames {  /* of a kind: one for each of its first n views, one for all others */
		size_t first; /* the first view of the kind */
		uint32_t frame; /* the frame of that view */
		uint32_t n, others;
	} lane_frames[LANE_KINDS];
	uint32_t next_frame; /* the first index not yet assigned */
	uint32_t state_frames[LANE_KINDS][LANE_STATES];
	struct stack_text *texts;   /* STACK_TEXTS of them, hashed by the stack's address */
	struct extra_frame *extras; /* Haskell threads and capabilities shown in other lanes */
	int err;		    /* from writing stacks */
};

/* Writes a profile up to its samples; `unit`: "nanoseconds", "bytes". */
void speedscope__put_head(struct speedscope *w, const char *name, const char *unit, uint64_t end);
/* Writes the frames of a stack, preceded by a comma if `comma`. */
void speedscope__put_stack(struct speedscope *w, struct pic_stack stack, bool comma);
/* The stack of a row or a slice without its state, which is shown above it. */
struct pic_stack speedscope__below_state(const struct speedscope *w, uint32_t id);
/* The next of the Haskell threads that have an account but are not drawn, as most of an eventlog's;
 * NULL: there is none, or Haskell threads are not shown. *at: zero at first. */
struct undrawn {
	size_t target, lane;
};
const struct pic_lane *speedscope__undrawn(const struct speedscope *w, struct undrawn *at);
/* Number the frames that stand for lanes in the sums, and write them, returning how many. */
void speedscope__number_lanes(struct speedscope *w);
uint32_t speedscope__put_lane_frames(struct speedscope *w);
/* Writes the profiles of all threads, and one for each kind of lanes. */
int speedscope__put_sums(struct speedscope *w);

#endif

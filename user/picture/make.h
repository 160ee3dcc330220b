/* SPDX-License-Identifier: GPL-2.0-or-later */
/* make: building a picture, for the rooms that do so; all others use picture.h. */
#ifndef SAFESCOPED_PICTURE_MAKE_H
#define SAFESCOPED_PICTURE_MAKE_H

#include "picture.h"

/* Holds up to `max_stacks` distinct stacks; all further ones are shown as one. */
int picture__new(size_t max_stacks, struct picture **ret_picture);
void picture__free(struct picture *pic);

struct pic_session *picture__edit_session(struct picture *pic);
/* Sets the time between two samples on a busy CPU, and the frequency from it; 0: no sampling. */
void picture__set_period(struct picture *pic, uint64_t period_ns);
/* Adds a zeroed process, whose address is stable until it is removed. -E2BIG. */
int picture__add_target(struct picture *pic, struct pic_target **ret_target);
/* Removes a target. What it points at is freed with the picture. */
void picture__remove_target(struct picture *pic, struct pic_target *target);

/* The number of allocations that the picture owns (picture__alloc, picture__keep). */
size_t picture__n_kept(const struct picture *pic);
/*
 * Replaces a finished target, whose process has ended, by sums, which are added to those of its
 * program. Frees everything kept since picture__n_kept() was `n_kept`: all of it must be the
 * target's. On failure (-ENOMEM) the sums are lost as well.
 */
int picture__retire_target(struct picture *pic, struct pic_target *target, size_t n_kept);

/* Returns a copy that lives as long as the picture; equal strings share one copy. "" on allocation
 * failure. */
const char *picture__string(struct picture *pic, const char *s);
/* Copies the strings of *frame. -E2BIG: too many frames. */
int picture__add_frame(struct picture *pic, const struct pic_frame *frame, uint32_t *ret_frame);
/* Sets where a frame was seen, unless that is already set. Copies the strings. */
int picture__set_place(struct picture *pic, uint32_t frame, const struct pic_place *place);
/* Adds a frame that is not code: kind TF_STATE or TF_MARK. */
int picture__add_text(struct picture *pic, enum pic_frame_kind kind, const char *name,
		      uint32_t *ret_frame);
/* `frames` has the root first. */
int picture__add_stack(struct picture *pic, const uint32_t *frames, uint32_t n,
		       uint32_t *ret_stack);
/* The stack that replaces those beyond the limit, and how often it did. */
uint32_t picture__full_stack(const struct picture *pic);
uint64_t picture__stacks_left_out(const struct picture *pic);

/* Zeroed memory that lives as long as the picture; NULL on allocation failure. */
void *picture__alloc(struct picture *pic, size_t n, size_t size);
/* Gives `array` to the picture, which frees it. NULL on allocation failure; the caller still owns
 * it then. */
void *picture__keep(struct picture *pic, void *array);
/* Adds a sentence to the target's `missing`. -E2BIG: too many sentences. */
int picture__add_missing(struct picture *pic, struct pic_target *target, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* False: the target does not have the sentence. */
bool picture__drop_missing(struct pic_target *target, const char *text);
/* Sets the target's losses from `cause`, replacing an earlier number. -ENOSPC: too many causes. */
int picture__set_lost(struct picture *pic, struct pic_target *target, const char *cause,
		      uint64_t n);

/*
 * Sets an OS thread lane's `housekeeping` and `asleep` from its sums. managed_ns: how long it
 * waited for the events or timer ticks that it manages.
 */
void lane__judge(struct pic_lane *lane, uint64_t managed_ns);

/* Marks calls as not counted while the target's probes were off, up to end_ns or the session's end,
 * whichever is earlier. */
void picture__mark_paused(const struct picture *pic, struct pic_target *target, uint64_t end_ns);

/* Frames for what is not the program's code, and for what is not known. */
enum pic_fixed_frame {
	MARK_GC,
	MARK_RTS,
	MARK_FOREIGN,
	MARK_NO_STACK,	/* the thread ran, but its stack could not be walked */
	MARK_NO_SAMPLE, /* the thread ran, but no sample fell into that time */
	MARK_TRUNCATED,
	MARK_TOO_MANY,
	MARK_STG,
	MARK_MAX,
};
uint32_t picture__mark(const struct picture *pic, enum pic_fixed_frame mark);
/* The frame of a thread's state off the CPU: "[waiting for GC]"; UINT32_MAX: the state has none. */
uint32_t picture__state_frame(const struct picture *pic, enum thread_state state);
/* The stack for time in a state without any sample: "[TITLE]", then "[no sample]". */
int picture__unsampled(struct picture *pic, const char *title, uint32_t *ret_stack);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* make: how a picture is made. For the rooms that make one; others read picture.h. */
#ifndef SAFESCOPED_PICTURE_MAKE_H
#define SAFESCOPED_PICTURE_MAKE_H

#include "picture.h"

/* `max_stacks` distinct stacks; beyond it all are shown as one. */
int picture__new(size_t max_stacks, struct picture **ret_picture);
void picture__free(struct picture *pic);

struct pic_session *picture__edit_session(struct picture *pic);
/* Between two samples on a busy CPU; 0: there are none. The frequency goes by it. */
void picture__set_period(struct picture *pic, uint64_t period_ns);
/* A process, zeroed. Its address stays until it is removed. -E2BIG. */
int picture__add_target(struct picture *pic, struct pic_target **ret_target);
/* What was added last. What it points at goes with the picture. */
void picture__remove_target(struct picture *pic, struct pic_target *target);

/* How much of what picture__alloc and picture__keep made there is. */
size_t picture__n_kept(const struct picture *pic);
/*
 * Only sums stay of a target that has ended and is finished: they go to those of its program. Frees
 * what was kept since there was `n_kept`: all of that is the target's. On failure (-ENOMEM) not
 * even the sums stay.
 */
int picture__retire_target(struct picture *pic, struct pic_target *target, size_t n_kept);

/* A copy that lives as long as the picture, the same for equal ones; "" without memory. */
const char *picture__string(struct picture *pic, const char *s);
/* The strings of *frame are copied. -E2BIG: too many frames. */
int picture__add_frame(struct picture *pic, const struct pic_frame *frame, uint32_t *ret_frame);
/* Where a frame was seen; what is there already stays. The strings are copied. */
int picture__set_place(struct picture *pic, uint32_t frame, const struct pic_place *place);
/* A frame without code: kind TF_STATE or TF_MARK. */
int picture__add_text(struct picture *pic, enum pic_frame_kind kind, const char *name,
		      uint32_t *ret_frame);
/* Root first. */
int picture__add_stack(struct picture *pic, const uint32_t *frames, uint32_t n,
		       uint32_t *ret_stack);
/* What stands for stacks beyond the limit; how often it had to. */
uint32_t picture__full_stack(const struct picture *pic);
uint64_t picture__stacks_left_out(const struct picture *pic);

/* Zeroed memory that lives as long as the picture; NULL without memory. */
void *picture__alloc(struct picture *pic, size_t n, size_t size);
/* Frees `array` with the picture; NULL without memory, then it is still the caller's. */
void *picture__keep(struct picture *pic, void *array);
/* Adds a sentence to the target's `missing`. -E2BIG: there are enough of them. */
int picture__add_missing(struct picture *pic, struct pic_target *target, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Adds to the target's losses by cause; the latest number counts. -ENOSPC: too many causes. */
int picture__set_lost(struct picture *pic, struct pic_target *target, const char *cause,
		      uint64_t n);

/*
 * Judges an OS thread's lane by its sums: housekeeping, asleep. managed_ns: how long it waited for
 * events, or ticks, to manage.
 */
void lane__judge(struct pic_lane *lane, uint64_t managed_ns);

/* Until end_ns, or the session's end: while its probes were off its calls were not counted. */
void picture__mark_paused(const struct picture *pic, struct pic_target *target, uint64_t end_ns);

/* Frames that stand for what is no code of the program's, or for missing knowledge. */
enum pic_fixed_frame {
	MARK_GC,
	MARK_RTS,
	MARK_FOREIGN,
	MARK_NO_STACK,	/* it ran, and its stack could not be walked */
	MARK_NO_SAMPLE, /* it ran, and no sample fell into that time */
	MARK_TRUNCATED,
	MARK_TOO_MANY,
	MARK_STG,
	MARK_MAX,
};
uint32_t picture__mark(const struct picture *pic, enum pic_fixed_frame mark);
/* "[waiting for GC]", of a thread's state off the CPU; UINT32_MAX: it has none. */
uint32_t picture__state_frame(const struct picture *pic, enum thread_state state);
/* For time in a state of which there is no sample: "[TITLE]", then "[no sample]". */
int picture__unsampled(struct picture *pic, const char *title, uint32_t *ret_stack);

#endif

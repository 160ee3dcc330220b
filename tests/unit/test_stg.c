/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The STG walk on memory images: every frame type, both ways, deep and broken stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "image.h"

#define N(a) (u32)(sizeof(a) / sizeof((a)[0]))

struct fixture {
	struct image im;
	struct wire_layout l;
	struct stg_walk w;
	struct stg g;
	u64 frames[STG_FRAMES_ROOM];
	int profiled;
	u64 stop, upd, small1, small3;
};

static struct fixture *make(int profiled)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	image_init(&f->im, 0x4200000000);
	f->profiled = profiled;
	f->l = image_layout(profiled);
	/* a profiled frame's header has two more words, which its size includes */
	f->stop = image_info(&f->im, STG_STOP_FRAME, profiled ? 2 : 0);
	f->upd = image_info(&f->im, STG_UPDATE_FRAME, profiled ? 3 : 1);
	f->small1 = image_info(&f->im, STG_RET_SMALL, 1 | (0x1 << 6));
	f->small3 = image_info(&f->im, STG_RET_SMALL, 3 | (0x5 << 6));
	f->g = (struct stg){.mem = &f->im.mem, .w = &f->w, .frames = f->frames};
	stg_init(&f->g, &f->l, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	return f;
}

static u64 new_stack(struct fixture *f, u32 words)
{
	u64 obj = image_stack(&f->im, &f->l, words);

	assert_int_not_equal(obj, 0);
	return obj;
}

static void push(struct fixture *f, u64 obj, u64 info, u32 payload)
{
	u64 words[64] = {info};

	assert_true(payload < N(words));
	for (u32 i = 1; i <= payload; i++)
		words[i] = 0xdead0000 + 8 * i;
	image_push(&f->im, &f->l, obj, words, payload + 1);
}

static void push_stop(struct fixture *f, u64 obj)
{
	push(f, obj, f->stop, f->profiled ? 2 : 0);
}

static void walk(struct fixture *f, u64 obj, int exact)
{
	assert_int_equal(stg_enter(&f->g, obj), WIRE_CAUSE_NONE);
	stg_run(&f->g, exact);
}

static u64 ret(u64 info)
{
	return info | ((u64)WIRE_FRAME_HS_RET << WIRE_FRAME_KIND_SHIFT);
}

static void assert_frames(struct fixture *f, const u64 *want, u32 n)
{
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, n);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(f->frames[i], ret(want[i]));
}

/* Every frame type in one stack, leaf to root. */
static void every_type(int profiled)
{
	struct fixture *f = make(profiled);
	struct image *im = &f->im;
	u32 hdr = profiled ? 2 : 0;
	u64 obj = new_stack(f, 256), bitmap, big, fun, bco_info, bco, catch, atomically, retry, stm,
	    ann;
	u64 want[12];
	u32 n = 0;

	catch = image_info(im, STG_CATCH_FRAME, hdr + 2);
	atomically = image_info(im, STG_ATOMICALLY_FRAME, hdr + 2);
	retry = image_info(im, STG_CATCH_RETRY_FRAME, hdr + 3);
	stm = image_info(im, STG_CATCH_STM_FRAME, hdr + 2);
	ann = image_info(im, STG_ANN_FRAME, hdr + 1);
	/* here the large bitmap lies before its info table: the offset is negative */
	bitmap = image_alloc(im, 3);
	image_put(im, bitmap, 70);
	big = image_info(im, STG_RET_BIG, 0);
	image_put(im, big - 16, (u32)(s32)(bitmap - big));
	fun = image_info(im, STG_RET_FUN, 0);
	bco_info = image_info(im, STG_RET_BCO, 0);
	bco = image_alloc(im, 12);
	image_put(im, bco + f->l.bco_bitmap, 5);

	push_stop(f, obj);
	want[11] = f->stop;
	push(f, obj, ann, hdr + 1);
	want[10] = ann;
	push(f, obj, stm, hdr + 2);
	want[9] = stm;
	push(f, obj, retry, hdr + 3);
	want[8] = retry;
	push(f, obj, atomically, hdr + 2);
	want[7] = atomically;
	push(f, obj, catch, hdr + 2);
	want[6] = catch;
	push(f, obj, f->upd, hdr + 1);
	want[5] = f->upd;
	{
		u64 words[7] = {bco_info, bco, 1, 2, 3, 4, 5};

		image_push(im, &f->l, obj, words, N(words));
		want[4] = bco_info;
	}
	{
		u64 words[7] = {fun, 4, 0x4200001001, 1, 2, 3, 4};

		image_push(im, &f->l, obj, words, N(words));
		want[3] = fun;
	}
	{
		u64 words[71] = {big};

		image_push(im, &f->l, obj, words, N(words));
		want[2] = big;
	}
	push(f, obj, f->small3, 3);
	want[1] = f->small3;
	push(f, obj, f->small1, 1);
	want[0] = f->small1;
	n = 12;
	walk(f, obj, 1);
	assert_frames(f, want, n);
	free(f);
}

static void test_every_type_vanilla(void **state)
{
	(void)state;
	every_type(0);
}

static void test_every_type_profiled(void **state)
{
	(void)state;
	every_type(1);
}

/* Chains chunks with n_frames RET_SMALL frames in each; returns the leafmost chunk. */
static u64 chain(struct fixture *f, u32 chunks, u32 n_frames)
{
	u64 under = image_info(&f->im, STG_UNDERFLOW_FRAME, 1), below = 0, obj = 0;

	for (u32 c = 0; c < chunks; c++) {
		obj = new_stack(f, 2 * n_frames + 8);
		if (c == 0) {
			push_stop(f, obj);
		} else {
			u64 words[2] = {under, below};

			image_push(&f->im, &f->l, obj, words, 2);
		}
		for (u32 i = 0; i < n_frames; i++)
			push(f, obj, f->small1, 1);
		below = obj;
	}
	return obj;
}

static void underflow(int profiled)
{
	struct fixture *f = make(profiled);
	u64 obj = chain(f, 3, 10);

	walk(f, obj, 1);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 31);
	assert_int_equal(f->w.in_tail, 0);
	free(f);
}

static void test_underflow(void **state)
{
	(void)state;
	underflow(0);
	underflow(1);
}

/* More frames than are kept: the leafmost ones, a mark for the chunks left out, the last chunk. */
static void deep(int profiled)
{
	struct fixture *f = make(profiled);
	u64 obj = chain(f, 12, 50);
	struct wire_stack s = {};

	walk(f, obj, 1);
	stg_result(&f->w, &s);
	assert_int_equal(s.end, WIRE_END_COMPLETE);
	assert_int_equal(s.elided, 3);
	assert_int_equal(s.turn, 0);
	assert_int_equal(s.nframes, WIRE_FRAMES_LEAF + 1 + 51);
	/* frame 384 is in the eighth chunk: that one and three whole ones are left out */
	assert_int_equal(f->frames[WIRE_FRAMES_LEAF],
			 4 | ((u64)WIRE_FRAME_ELIDED << WIRE_FRAME_KIND_SHIFT));
	assert_int_equal(f->frames[s.nframes - 1], ret(f->stop));
	free(f);
}

static void test_deep(void **state)
{
	(void)state;
	deep(0);
	deep(1);
}

/* One huge chunk: the rootmost frames come as a ring. */
static void test_deep_one_chunk(void **state)
{
	struct fixture *f = make(0);
	u64 obj = new_stack(f, 4096), marks[3];
	struct wire_stack s = {};
	u32 rootmost;

	(void)state;
	for (u32 i = 0; i < 3; i++)
		marks[i] = image_info(&f->im, STG_RET_SMALL, 0);
	push_stop(f, obj);
	push(f, obj, marks[0], 0);
	push(f, obj, marks[1], 0);
	for (u32 i = 0; i < 1000; i++)
		push(f, obj, f->small1, 1);
	walk(f, obj, 1);
	stg_result(&f->w, &s);
	assert_int_equal(s.end, WIRE_END_COMPLETE);
	assert_int_equal(s.elided, 3);
	assert_int_equal(s.nframes, WIRE_FRAMES_LEAF + 1 + WIRE_FRAMES_ROOT);
	/* 1003 - 384 frames went through the ring of 64 */
	assert_int_equal(s.turn, (1003 - WIRE_FRAMES_LEAF) % WIRE_FRAMES_ROOT);
	rootmost = WIRE_FRAMES_LEAF + 1 + (s.turn + WIRE_FRAMES_ROOT - 1) % WIRE_FRAMES_ROOT;
	assert_int_equal(f->frames[rootmost], ret(f->stop));
	assert_int_equal(f->frames[rootmost - 1], ret(marks[0]));
	assert_int_equal(f->frames[rootmost - 2], ret(marks[1]));
	free(f);
}

/* Arguments above the first frame, some of which look like pointers. */
static void test_resync(void **state)
{
	(void)state;
	for (u32 skip = 0; skip <= STG_RESYNC_WORDS + 1; skip++) {
		struct fixture *f = make(0);
		u64 obj = new_stack(f, 64);

		push_stop(f, obj);
		push(f, obj, f->small3, 3);
		for (u32 i = 0; i < skip; i++) {
			/* a heap pointer with a tag, a number, a pointer to a thunk's table */
			u64 junk[3] = {obj | 1, 42, image_info(&f->im, 15, 0)};

			image_push(&f->im, &f->l, obj, &junk[i % 3], 1);
		}
		walk(f, obj, 0);
		if (skip <= STG_RESYNC_WORDS) {
			assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
			assert_int_equal(f->w.resync, skip);
			assert_int_equal(f->w.n, 2);
		} else {
			assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
			assert_int_equal(f->w.cause, WIRE_CAUSE_NO_FRAME);
		}
		free(f);
	}
}

static void broken(u8 cause, void (*damage)(struct fixture *f, u64 obj))
{
	struct fixture *f = make(0);
	u64 obj = new_stack(f, 64);

	push_stop(f, obj);
	push(f, obj, f->small1, 1);
	push(f, obj, f->small3, 3);
	damage(f, obj);
	walk(f, obj, 1);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, cause);
	free(f);
}

static void no_table(struct fixture *f, u64 obj)
{
	image_put(&f->im, image_sp(&f->im, &f->l, obj) + 32, 0x7fff12345678);
}

static void no_frame_type(struct fixture *f, u64 obj)
{
	image_put(&f->im, image_sp(&f->im, &f->l, obj) + 32, image_info(&f->im, STG_TSO, 0));
}

static void misaligned(struct fixture *f, u64 obj)
{
	image_put(&f->im, image_sp(&f->im, &f->l, obj) + 32, f->small1 + 1);
}

static void early_stop(struct fixture *f, u64 obj)
{
	image_put(&f->im, image_sp(&f->im, &f->l, obj) + 32, f->stop);
}

static void too_large(struct fixture *f, u64 obj)
{
	image_put(&f->im, image_sp(&f->im, &f->l, obj) + 32, image_info(&f->im, STG_RET_SMALL, 63));
}

static void huge_fun(struct fixture *f, u64 obj)
{
	u64 sp = image_sp(&f->im, &f->l, obj);

	image_put(&f->im, sp, image_info(&f->im, STG_RET_FUN, 0));
	image_put(&f->im, sp + 8, UINT64_MAX - 1);
}

static void no_end(struct fixture *f, u64 obj)
{
	u64 sp = image_sp(&f->im, &f->l, obj);

	/* the last frame reaches to the end of the stack, but is no STOP_FRAME */
	image_put(&f->im, sp + 32, f->small3 - 0);
	image_put(&f->im, sp + 32, image_info(&f->im, STG_RET_SMALL, 2));
}

static void bad_chunk(struct fixture *f, u64 obj)
{
	u64 sp = image_sp(&f->im, &f->l, obj);

	image_put(&f->im, sp, image_info(&f->im, STG_UNDERFLOW_FRAME, 1));
	image_put(&f->im, sp + 8, sp);
}

static void test_broken(void **state)
{
	(void)state;
	broken(WIRE_CAUSE_FAULT, no_table);
	broken(WIRE_CAUSE_BAD_TYPE, no_frame_type);
	broken(WIRE_CAUSE_BAD_TYPE, misaligned);
	broken(WIRE_CAUSE_STOP_NOT_END, early_stop);
	broken(WIRE_CAUSE_BAD_SIZE, too_large);
	broken(WIRE_CAUSE_BAD_SIZE, huge_fun);
	broken(WIRE_CAUSE_SP_RANGE, no_end);
	broken(WIRE_CAUSE_BAD_TYPE, bad_chunk);
}

/* A ring of chunks must not hold the walk for ever. */
static void test_circle(void **state)
{
	struct fixture *f = make(0);
	u64 under = image_info(&f->im, STG_UNDERFLOW_FRAME, 1), a = new_stack(f, 8),
	    words[2] = {under, a};

	(void)state;
	image_push(&f->im, &f->l, a, words, 2);
	walk(f, a, 1);
	assert_int_equal(f->w.end_state, WIRE_END_TRUNCATED);
	free(f);
}

/* A collection has moved the STACK: its old place holds a forwarding pointer. */
static void test_forwarded(void **state)
{
	struct fixture *f = make(0);
	u64 obj = new_stack(f, 16), old = image_alloc(&f->im, 4);

	(void)state;
	push_stop(f, obj);
	image_put(&f->im, old, obj | 1);
	walk(f, old, 1);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	free(f);
}

/* A STACK whose fields contradict each other is not entered. */
static void test_bad_stack(void **state)
{
	struct fixture *f = make(0);
	u64 obj = new_stack(f, 16);

	(void)state;
	image_put(&f->im, obj + f->l.stack_sp, obj);
	assert_int_equal(stg_enter(&f->g, obj), WIRE_CAUSE_SP_RANGE);
	image_put(&f->im, obj + f->l.stack_sp, obj + f->l.stack_stack + 4);
	assert_int_equal(stg_enter(&f->g, obj), WIRE_CAUSE_SP_RANGE);
	image_put(&f->im, obj + f->l.stack_size, 0xffffffff);
	assert_int_equal(stg_enter(&f->g, obj), WIRE_CAUSE_SP_RANGE);
	assert_int_equal(stg_enter(&f->g, 0x10), WIRE_CAUSE_BAD_TYPE);
	free(f);
}

/* An update frame is followed by the thunk that it will update, if this was requested. */
static void test_updatee(void **state)
{
	struct fixture *f = make(0);
	u64 obj = new_stack(f, 16), thunk_info = image_info(&f->im, 15, 0),
	    thunk = image_alloc(&f->im, 2), words[2] = {f->upd, thunk};

	(void)state;
	image_put(&f->im, thunk, thunk_info);
	push_stop(f, obj);
	image_push(&f->im, &f->l, obj, words, 2);
	f->w.updatees = 1;
	walk(f, obj, 1);
	assert_int_equal(f->w.n, 3);
	assert_int_equal(f->frames[1],
			 thunk_info | ((u64)WIRE_FRAME_UPDATEE << WIRE_FRAME_KIND_SHIFT));
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_type_vanilla),
		cmocka_unit_test(test_every_type_profiled),
		cmocka_unit_test(test_underflow),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_deep_one_chunk),
		cmocka_unit_test(test_resync),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_forwarded),
		cmocka_unit_test(test_bad_stack),
		cmocka_unit_test(test_updatee),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The complete walk of a thread, by its registers and the runtime's state, on memory images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "image.h"
#include "walk.bpf.h"

#define FSBASE	   0x4200070000ULL
#define STGRUN_RET 0x47a000ULL
#define CSTACK_TOP 0x4200060000ULL

struct fixture {
	struct image im;
	struct wire_target t;
	struct rts_thread th;
	struct wire_rts rts;
	struct stg_walk w;
	struct cstack_scan scan;
	struct unw unw;
	struct walk_state state;
	struct stg g;
	u64 frames[STG_FRAMES_ROOM];
	u64 cap, task, incall, tso, stack, stop, small, code;
};

static void put32(struct image *im, u64 addr, u32 v)
{
	memcpy((char *)im->words + (addr - im->base), &v, sizeof(v));
}

/* A threaded process: one capability, one Task with its InCall, one TSO with a STACK. */
static struct fixture *make(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct image *im;
	struct wire_layout *l;

	assert_non_null(f);
	im = &f->im;
	l = &f->t.layout;
	image_init(im, 0x4200000000);
	*l = image_layout(0);
	f->t.flags = WIRE_TARGET_THREADED;
	f->t.my_task_tls = -8;
	f->t.stgrun_ret = STGRUN_RET;
	f->th = (struct rts_thread){.fsbase = FSBASE, .tid = 11, .tgid = 10};
	f->stop = image_info(im, STG_STOP_FRAME, 0);
	f->small = image_info(im, STG_RET_SMALL, 1);
	f->stack = image_stack(im, l, 64);
	image_push(im, l, f->stack, &f->stop, 1);
	{
		u64 words[2] = {f->small, 7};

		image_push(im, l, f->stack, words, 2);
	}
	f->code = image_alloc(im, 4);
	f->cap = image_alloc(im, 1024 / 8);
	f->task = image_alloc(im, 32);
	f->incall = image_alloc(im, 9);
	f->tso = image_alloc(im, 16);
	image_put(im, f->tso, image_info(im, STG_TSO, 0));
	image_put(im, f->tso + l->tso_stackobj, f->stack);
	image_put(im, f->tso + l->tso_id, 77);
	image_put(im, FSBASE - 8, f->task);
	image_put(im, f->task + l->task_id, FSBASE);
	image_put(im, f->task + l->task_cap, f->cap);
	image_put(im, f->task + l->task_incall, f->incall);
	image_put(im, f->incall + l->incall_task, f->task);
	image_put(im, f->cap + l->cap_running_task, f->task);
	image_put(im, f->cap + l->cap_in_haskell, 1);
	image_put(im, f->cap + l->cap_current_tso, f->tso);
	put32(im, f->cap + l->cap_no, 5);
	f->g = (struct stg){
		.mem = &im->mem, .w = &f->w, .frames = f->frames, .scan = &f->scan, .unw = &f->unw};
	stg_init(&f->g, l, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	return f;
}

/* Puts a return address at `sp`, and a direct call of `callee` in front of that address. */
static void put_call(struct fixture *f, u64 sp, u64 ra, u64 callee)
{
	u8 *code = (u8 *)f->im.words + (ra - f->im.base);
	s32 rel = (s32)(callee - ra);

	image_put(&f->im, f->code, 0);
	image_put(&f->im, f->code + 8, 0);
	code[-5] = 0xe8;
	memcpy(code - 4, &rel, sizeof(rel));
	image_put(&f->im, sp, ra);
}

static void run(struct fixture *f, u64 site, const struct walk_regs *regs)
{
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	walk_thread(&f->g, &f->t, &f->th, &f->state, &f->rts, site, regs);
}

static u64 frame(u64 kind, u64 addr)
{
	return addr | (kind << WIRE_FRAME_KIND_SHIFT);
}

/* The C stack below Haskell code: StgRun's return address is where it always is. */
static u64 haskell_rsp(struct fixture *f)
{
	u64 rsp = CSTACK_TOP;

	for (u64 a = rsp - 4096; a < rsp + 20000; a += 8)
		image_put(&f->im, a, 0);
	image_put(&f->im, rsp + CSTACK_STGRUN_FRAME, STGRUN_RET);
	return rsp;
}

static void test_in_haskell(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x40e6b8};

	(void)state;
	regs.sp = haskell_rsp(f);
	regs.fp = image_sp(&f->im, &f->t.layout, f->stack);
	regs.base = f->cap + 24;
	run(f, 0, &regs);
	assert_int_equal(f->rts.where, WIRE_WHERE_HASKELL);
	assert_int_equal(f->rts.cap_no, 5);
	assert_int_equal(f->rts.tso_id, 77);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 3);
	assert_int_equal(f->frames[0], frame(WIRE_FRAME_HS_IP, 0x40e6b8));
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_HS_RET, f->small));
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_HS_RET, f->stop));
	free(f);
}

/*
 * C code that has pushed rbp and uses it for something else; the call has left its return address.
 */
static void test_in_unsafe_call(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x7f0000001000};
	u64 code = image_alloc(&f->im, 4), rsp = haskell_rsp(f);

	(void)state;
	/* e8 rel32, then the return address */
	image_put(&f->im, code, 0xe800000000000000ULL >> 8 << 8);
	((u8 *)f->im.words)[code - f->im.base + 3] = 0xe8;
	image_put(&f->im, rsp - 16, code + 8);
	image_put(&f->im, rsp - 24, image_sp(&f->im, &f->t.layout, f->stack));
	regs.sp = rsp - 400;
	regs.fp = 0x1234;
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->frames[0], frame(WIRE_FRAME_C_IP, 0x7f0000001000));
	/* without unwind rows it is not known what is in between */
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_GAP, 0x7f0000001000));
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_HS_CALL, code + 8));
	assert_int_equal(f->frames[3], frame(WIRE_FRAME_HS_RET, f->small));
	assert_int_equal(f->w.n, 5);
	free(f);
}

/* A leaf function that never touched rbp: the register is still Sp. */
static void test_in_leaf_call(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x7f0000001000};

	(void)state;
	regs.sp = haskell_rsp(f) - 8;
	image_put(&f->im, regs.sp, 0x40e700);
	regs.sp -= 32;
	regs.fp = image_sp(&f->im, &f->t.layout, f->stack);
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->frames[0], frame(WIRE_FRAME_C_IP, 0x7f0000001000));
	free(f);
}

/* A C function with twenty arguments on the stack, which the caller removes. */
static void test_many_arguments(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {};
	u64 rsp = haskell_rsp(f);

	(void)state;
	put_call(f, rsp - 8 * 20 - 8, f->code + 16, f->code);
	image_put(&f->im, f->code + 16, 0xa0c48148); /* add $160,%rsp */
	regs.ip = f->code + 4;
	regs.sp = rsp - 8 * 20 - 8;
	regs.fp = image_sp(&f->im, &f->t.layout, f->stack);
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->frames[0], frame(WIRE_FRAME_C_IP, f->code + 4));
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_HS_CALL, f->code + 16));
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_HS_RET, f->small));
	assert_int_equal(f->w.n, 4);
	free(f);
}

/* rbp is as Haskell code left it; what an earlier call saved lies above it. */
static void test_live_rbp_comes_first(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x7f0000001000};
	u64 rsp = haskell_rsp(f);

	(void)state;
	image_put(&f->im, rsp - 24, image_sp(&f->im, &f->t.layout, f->stack) + 8);
	regs.sp = rsp - 400;
	regs.fp = image_sp(&f->im, &f->t.layout, f->stack);
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_GAP, 0x7f0000001000));
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_HS_RET, f->small));
	free(f);
}

/*
 * A thread without Haskell code: musl's __clone, to which the first function returns, has no rows.
 */
static void test_thread_bottom(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.sp = FSBASE - 512, .fp = 0x42};

	(void)state;
	image_put(&f->im, f->task + f->t.layout.task_incall, 0);
	put_call(f, regs.sp, f->code + 16, f->code);
	regs.ip = f->code + 4;
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 2);
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_C_RET, f->code + 16));
	free(f);
}

/* The same code deeper in the stack: what lies above it is not known. */
static void test_not_the_bottom(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.sp = FSBASE - 8192, .fp = 0x42};

	(void)state;
	image_put(&f->im, FSBASE - 8, 0);
	put_call(f, regs.sp, f->code + 16, f->code);
	regs.ip = f->code + 4;
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, WIRE_CAUSE_C_NO_MAP);
	free(f);
}

/* The first thread's stack begins where exec put the arguments: _start has no rows. */
static void test_main_bottom(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.sp = CSTACK_TOP - 64, .fp = 0x42};

	(void)state;
	f->th.tid = f->th.tgid;
	f->th.stack_start = CSTACK_TOP;
	image_put(&f->im, FSBASE - 8, 0);
	put_call(f, regs.sp, f->code + 16, f->code);
	regs.ip = f->code + 4;
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 2);
	f->th.stack_start = CSTACK_TOP + 4096;
	stg_init(&f->g, &f->t.layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	free(f);
}

/*
 * The word at a leaf's rsp is its return address only if the call in front of that address leads to
 * the leaf.
 */
static void test_leaf_of_another_call(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.sp = FSBASE - 512, .fp = 0x42};

	(void)state;
	image_put(&f->im, FSBASE - 8, 0);
	put_call(f, regs.sp, f->code + 16, f->code + 8);
	regs.ip = f->code + 4;
	regs.sp -= 8192;
	image_put(&f->im, regs.sp, f->code + 16);
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.n, 1);
	free(f);
}

static void test_no_sp(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x7f0000001000};

	(void)state;
	regs.sp = haskell_rsp(f) - 400;
	regs.fp = 0x1234;
	run(f, 0, &regs);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, WIRE_CAUSE_NO_SP);
	free(f);
}

static void suspend(struct fixture *f)
{
	const struct wire_layout *l = &f->t.layout;

	image_put(&f->im, f->incall + l->incall_suspended_tso, f->tso);
	image_put(&f->im, f->incall + l->incall_suspended_cap, f->cap);
	image_put(&f->im, f->cap + l->cap_current_tso, 0);
	image_put(&f->im, f->cap + l->cap_running_task, 0);
}

/* In a safe call the Haskell part is the suspended thread's, whatever the registers contain. */
static void test_in_safe_call(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = 0x7f0000001000, .fp = 0x42, .sp = 0x43, .base = f->cap + 24};

	(void)state;
	suspend(f);
	run(f, 0x40f000, &regs);
	assert_int_equal(f->rts.where, WIRE_WHERE_SAFE_CALL);
	assert_int_equal(f->rts.cap_no, 5);
	assert_int_equal(f->rts.tso_id, 77);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 5);
	assert_int_equal(f->frames[0], frame(WIRE_FRAME_C_IP, 0x7f0000001000));
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_GAP, 0x7f0000001000));
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_SITE, 0x40f000));
	free(f);
}

static void test_states(void **state)
{
	struct fixture *f = make();
	const struct wire_layout *l = &f->t.layout;

	(void)state;
	image_put(&f->im, f->cap + l->cap_in_haskell, 0);
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_RTS);
	image_put(&f->im, f->cap + l->cap_running_task, 0);
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_NO_CAP);
	/* the one that it had last */
	assert_int_equal(f->rts.cap_no, 5);
	image_put(&f->im, f->task + l->task_cap, 0);
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_NO_CAP);
	assert_int_equal(f->rts.cap_no, WIRE_NO_CAP);
	/* a Task that belongs to another thread proves that the offset is wrong */
	image_put(&f->im, f->task + l->task_id, FSBASE + 64);
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_UNKNOWN);
	image_put(&f->im, FSBASE - 8, 0);
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_FOREIGN);
	f->th.fsbase = 0x10;
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_UNKNOWN);
	free(f);
}

/*
 * Code without rows: in Haskell code StgRun's return address is where it always is, even before the
 * runtime shows that the thread runs Haskell; in C code it is further up.
 */
static void test_class_of_leaf(void **state)
{
	static const struct {
		u64 pushed;
		u8 in_haskell;
		u64 kind;
	} cases[] = {
		{0, 1, WIRE_FRAME_HS_IP}, {0, 0, WIRE_FRAME_HS_IP},  {16, 1, WIRE_FRAME_C_IP},
		{16, 0, WIRE_FRAME_C_IP}, {200, 1, WIRE_FRAME_C_IP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = make();
		struct walk_regs regs = {.ip = 0x40e6b8};

		image_put(&f->im, f->cap + f->t.layout.cap_in_haskell, cases[i].in_haskell);
		regs.sp = haskell_rsp(f) - cases[i].pushed;
		regs.fp = image_sp(&f->im, &f->t.layout, f->stack);
		run(f, 0, &regs);
		assert_int_equal(f->frames[0], frame(cases[i].kind, 0x40e6b8));
		free(f);
	}
}

/* At StgRun's first instructions and StgReturn's last ones the stack goes on with schedule(). */
static void test_at_stgrun(void **state)
{
	(void)state;
	for (int saved = 0; saved < 2; saved++) {
		struct fixture *f = make();
		u64 at = haskell_rsp(f) + CSTACK_STGRUN_FRAME;
		struct walk_regs regs = {.ip = 0x47a800,
					 .sp = saved ? at - CSTACK_STGRUN_SAVED : at,
					 .fp = image_sp(&f->im, &f->t.layout, f->stack)};

		/* rbx, rbp, r12, … as rts/StgCRun.c saves them */
		image_put(&f->im, at - 40, 0x123450);
		f->th.tid = f->th.tgid;
		f->th.stack_start = at + 64;
		run(f, 0, &regs);
		assert_int_equal(f->rts.where, WIRE_WHERE_HASKELL);
		assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
		assert_int_equal(f->w.n, 2);
		assert_int_equal(f->frames[0], frame(WIRE_FRAME_C_IP, 0x47a800));
		assert_int_equal(f->frames[1], frame(WIRE_FRAME_C_RET, STGRUN_RET));
		assert_int_equal(f->unw.bp, saved ? 0x123450 : regs.fp);
		free(f);
	}
}

/* While the layout is not confirmed, a proof of it for the one thread is enough. */
static void test_early(void **state)
{
	enum { FINE, NO_TLS, OTHER_TASK, NO_TSO, OTHER_PLACE, CASES };

	(void)state;
	for (int what = FINE; what < CASES; what++) {
		struct fixture *f = make();
		struct wire_layout *l = &f->t.layout;
		struct walk_regs regs = {.ip = 0x40e6b8};

		regs.sp = haskell_rsp(f);
		regs.fp = image_sp(&f->im, l, f->stack);
		f->t.flags |= WIRE_TARGET_UNCONFIRMED;
		if (what == NO_TLS)
			f->t.my_task_tls = 0;
		if (what == OTHER_TASK)
			image_put(&f->im, f->incall + l->incall_task, f->task + 8);
		if (what == NO_TSO)
			image_put(&f->im, f->tso, f->small);
		if (what == OTHER_PLACE) {
			/* both are 8 bytes earlier than in the first layout */
			l->alt_task_incall = l->task_incall;
			l->task_incall += 8;
			l->task_cap += 8;
			image_put(&f->im, f->task + l->task_incall, f->task);
		}
		run(f, 0, &regs);
		if (what == FINE || what == OTHER_PLACE) {
			assert_int_equal(f->rts.where, WIRE_WHERE_HASKELL);
			assert_int_equal(f->rts.tso_id, 77);
			assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
			assert_int_equal(f->w.n, 3);
		} else {
			assert_int_equal(f->rts.where, WIRE_WHERE_NOT_READY);
			assert_int_equal(f->rts.tso, 0);
			assert_int_equal(f->rts.cap_no, WIRE_NO_CAP);
		}
		free(f);
	}
}

/* The thread is resumed during the walk: what was seen may be of another moment. */
static void test_resumed_meanwhile(void **state)
{
	struct fixture *f = make();

	(void)state;
	stg_put(&f->g, WIRE_FRAME_C_IP, 1);
	rts_walk_suspended(&f->g, &f->t, f->incall, f->tso);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, WIRE_CAUSE_GC_RACE);
	free(f);
}

/*
 * A few words show whether what was read is still valid: not if anything that it depends on has
 * changed.
 */
static void test_same_again(void **state)
{
	struct fixture *f = make();
	const struct wire_layout *l = &f->t.layout;
	const struct {
		u64 at, other;
	} words[] = {
		{f->task + l->task_id, FSBASE + 64},
		{f->cap + l->cap_running_task, f->task + 8},
		{f->cap + l->cap_in_haskell, 0},
		{f->cap + l->cap_current_tso, f->stack},
		{f->tso + l->tso_id, 78},
	};
	struct wire_rts rts;
	u64 task;

	(void)state;
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	task = f->th.task;
	assert_int_equal(task, f->task);
	assert_true(rts_same(&f->im.mem, &f->t, &f->th, task, &f->rts));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		u64 was = 0;

		assert_int_equal(mem_u64(&f->im.mem, &was, words[i].at), 0);
		image_put(&f->im, words[i].at, words[i].other);
		assert_false(rts_same(&f->im.mem, &f->t, &f->th, task, &f->rts));
		image_put(&f->im, words[i].at, was);
	}
	assert_true(rts_same(&f->im.mem, &f->t, &f->th, task, &f->rts));
	assert_false(rts_same(&f->im.mem, &f->t, &f->th, 0, &f->rts));
	rts = f->rts;
	rts.where = WIRE_WHERE_RTS;
	assert_false(rts_same(&f->im.mem, &f->t, &f->th, task, &rts));
	/* a profiled program's cost centres differ each time */
	f->t.flags |= WIRE_TARGET_PROFILED;
	assert_false(rts_same(&f->im.mem, &f->t, &f->th, task, &f->rts));
	free(f);
}

/* The non-threaded RTS has no thread-local Task: the process's first thread runs Haskell. */
static void test_non_threaded(void **state)
{
	struct fixture *f = make();

	(void)state;
	f->t.flags = 0;
	f->t.main_cap = f->cap;
	f->th = (struct rts_thread){.tid = 10, .tgid = 10};
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_HASKELL);
	assert_int_equal(f->rts.tso_id, 77);
	f->th = (struct rts_thread){.tid = 12, .tgid = 10};
	rts_read(&f->im.mem, &f->t, &f->th, &f->rts);
	assert_int_equal(f->rts.where, WIRE_WHERE_FOREIGN);
	free(f);
}

/* The three bytes at f->code + 7, and where walk_unprobe() finds the one in the middle to be. */
static u64 unprobed(struct fixture *f, u8 before, u8 at, u8 after)
{
	const u8 bytes[] = {before, at, after};
	struct walk_regs regs = {.ip = f->code + 8, .sp = FSBASE - 64, .fp = 0x42};

	memcpy((u8 *)f->im.words + (f->code + 7 - f->im.base), bytes, sizeof(bytes));
	image_put(&f->im, regs.sp, f->stop);
	walk_unprobe(&f->im.mem, &regs);
	return regs.ip - f->code;
}

static void test_in_trap(void **state)
{
	struct fixture *f = make();

	(void)state;
	assert_int_equal(unprobed(f, 0xcc, 0x57, 0x41), 7);
	/* at the breakpoint, after lld's padding */
	assert_int_equal(unprobed(f, 0xcc, 0xcc, 0x57), 8);
	assert_int_equal(unprobed(f, 0x90, 0xcc, 0x57), 8);
	assert_int_equal(unprobed(f, 0x90, 0x41, 0x57), 8);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_haskell),
		cmocka_unit_test(test_in_unsafe_call),
		cmocka_unit_test(test_in_leaf_call),
		cmocka_unit_test(test_no_sp),
		cmocka_unit_test(test_in_safe_call),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_resumed_meanwhile),
		cmocka_unit_test(test_non_threaded),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_many_arguments),
		cmocka_unit_test(test_live_rbp_comes_first),
		cmocka_unit_test(test_thread_bottom),
		cmocka_unit_test(test_not_the_bottom),
		cmocka_unit_test(test_main_bottom),
		cmocka_unit_test(test_leaf_of_another_call),
		cmocka_unit_test(test_class_of_leaf),
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_at_stgrun),
		cmocka_unit_test(test_in_trap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C stacks by unwind rows, alone and mixed with Haskell frames, on memory images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "image.h"
#include "walk.bpf.h"

#define CODE	   0x400000ULL /* of the only mapping */
#define CODE_SIZE  0x10000ULL
#define STGRUN_RET (CODE + 0x3010)
#define HASKELL	   0x600000ULL /* code outside of any mapping */
#define FSBASE	   0x4200050000ULL
#define STACK_TOP  0x4200060000ULL

struct fixture {
	struct image im;
	struct wire_target t;
	struct rts_thread th;
	struct wire_rts rts;
	struct stg_walk w;
	struct cstack_scan scan;
	struct unw unw;
	struct walk_state state;
	struct wire_unwind_maps maps;
	struct unw_file files[WIRE_UNWIND_FILES];
	u64 rows[1024];
	u32 n_buckets, n_rows;
	struct stg g;
	u64 frames[STG_FRAMES_ROOM];
	u64 small, stop;
};

static u64 frame(u64 kind, u64 addr)
{
	return addr | (kind << WIRE_FRAME_KIND_SHIFT);
}

static u32 rule(u32 kind, u32 offset, u32 bp)
{
	return kind | offset / 8 << 4 | bp << 20;
}

/* Adds a row; rows must come in ascending order. */
static void add_row(struct fixture *f, u64 pc, u32 r)
{
	u64 rel = pc - CODE;
	u64 *bucket = &f->rows[rel >> WIRE_UNWIND_BUCKET_SHIFT];

	f->rows[f->n_buckets + f->n_rows] = rel << 32 | r;
	*bucket += 1ULL << 32;
	for (u64 k = (rel >> WIRE_UNWIND_BUCKET_SHIFT) + 1; k < f->n_buckets; k++)
		f->rows[k]++;
	f->n_rows++;
	f->files[1].n = f->n_buckets + f->n_rows;
}

/*
 *  CODE + 0x1000   push rbp at +1, 24 bytes of locals at +4
 *       + 0x1100   frame pointer: rbp at CFA − 16 from +4 on
 *       + 0x1200   end
 *       + 0x2000   where threads start
 *       + 0x2100   a signal's return point
 *       + 0x3000   calls StgRun (see STGRUN_RET), frame of 32 bytes
 *       + 0x3100   StgRun
 *       + 0x3200   nothing from here on
 */
static struct fixture *make(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	image_init(&f->im, 0x4200000000);
	f->n_buckets = CODE_SIZE >> WIRE_UNWIND_BUCKET_SHIFT;
	f->files[1].rows = f->rows;
	f->maps.n = 1;
	f->maps.v[0] = (struct wire_unwind_map){.start = CODE,
						.end = CODE + CODE_SIZE,
						.base = CODE,
						.file = 1,
						.buckets = f->n_buckets};
	add_row(f, CODE + 0x1000, rule(WIRE_CFI_RSP, 8, 0));
	add_row(f, CODE + 0x1001, rule(WIRE_CFI_RSP, 16, 2));
	add_row(f, CODE + 0x1004, rule(WIRE_CFI_RSP, 40, 2));
	add_row(f, CODE + 0x1100, rule(WIRE_CFI_RSP, 8, 0));
	add_row(f, CODE + 0x1101, rule(WIRE_CFI_RSP, 16, 2));
	add_row(f, CODE + 0x1104, rule(WIRE_CFI_RBP, 16, 2));
	add_row(f, CODE + 0x1200, WIRE_CFI_NONE);
	add_row(f, CODE + 0x2000, WIRE_CFI_END);
	add_row(f, CODE + 0x2100, rule(WIRE_CFI_SIGNAL, 0, 0));
	add_row(f, CODE + 0x2110, WIRE_CFI_NONE);
	add_row(f, CODE + 0x3000, rule(WIRE_CFI_RSP, 32, 0));
	add_row(f, CODE + 0x3100, rule(WIRE_CFI_STGRUN, 0, 0));
	add_row(f, CODE + 0x3200, WIRE_CFI_NONE);
	f->t.layout = image_layout(0);
	f->t.flags = WIRE_TARGET_THREADED;
	f->t.my_task_tls = -8;
	f->t.stgrun_ret = STGRUN_RET;
	f->th = (struct rts_thread){.fsbase = FSBASE, .tid = 11, .tgid = 10};
	f->stop = image_info(&f->im, STG_STOP_FRAME, 0);
	f->small = image_info(&f->im, STG_RET_SMALL, 1);
	f->g = (struct stg){.mem = &f->im.mem,
			    .w = &f->w,
			    .frames = f->frames,
			    .scan = &f->scan,
			    .unw = &f->unw,
			    .maps = &f->maps,
			    .files = f->files};
	stg_init(&f->g, &f->t.layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	for (u64 a = STACK_TOP - 8192; a < STACK_TOP + 65536; a += 8)
		image_put(&f->im, a, 0);
	return f;
}

static void run(struct fixture *f, u64 ip, u64 sp, u64 bp)
{
	struct walk_regs regs = {.ip = ip, .sp = sp, .fp = bp};

	walk_thread(&f->g, &f->t, &f->th, &f->state, &f->rts, 0, &regs);
}

static void expect(const struct fixture *f, const u64 *frames, u32 n)
{
	assert_int_equal(f->w.n, n);
	for (u32 i = 0; i < n; i++)
		assert_int_equal(f->frames[i], frames[i]);
}

/*
 * Three frames in C down to the thread's start; the middle one's CFA depends on the restored rbp.
 */
static void test_to_the_start(void **state)
{
	struct fixture *f = make();
	u64 sp = STACK_TOP, fp = sp + 40 + 64;
	u64 want[] = {frame(WIRE_FRAME_C_IP, CODE + 0x1050), frame(WIRE_FRAME_C_RET, CODE + 0x1150),
		      frame(WIRE_FRAME_C_RET, CODE + 0x2000 + 1)};

	(void)state;
	f->rts.where = WIRE_WHERE_RTS;
	image_put(&f->im, sp + 24, fp);
	image_put(&f->im, sp + 32, CODE + 0x1150);
	image_put(&f->im, fp, 0x77);
	image_put(&f->im, fp + 8, CODE + 0x2001);
	run(f, CODE + 0x1050, sp, 0xdead);
	expect(f, want, 3);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->unw.bp, 0x77);
	free(f);
}

/* A call that is a function's last instruction returns to an address of the next function. */
static void test_return_address_is_behind_the_call(void **state)
{
	struct fixture *f = make();
	u64 sp = STACK_TOP;

	(void)state;
	f->rts.where = WIRE_WHERE_FOREIGN;
	image_put(&f->im, sp, CODE + 0x1100); /* the byte before it has the rule with 40 bytes */
	image_put(&f->im, sp + 8 + 32, CODE + 0x2001);
	run(f, CODE + 0x1000, sp, 0);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 3);
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_C_RET, CODE + 0x1100));
	free(f);
}

/* vfork() keeps its return address in a register, which is known for the innermost frame only. */
static void test_return_address_in_register(void **state)
{
	struct fixture *f = make();
	struct walk_regs regs = {.ip = CODE + 0x3280, .sp = STACK_TOP, .rdi = CODE + 0x1000 + 1};
	u64 want[] = {frame(WIRE_FRAME_C_IP, CODE + 0x3280), frame(WIRE_FRAME_C_RET, CODE + 0x1001),
		      frame(WIRE_FRAME_C_RET, CODE + 0x2001)};

	(void)state;
	add_row(f, CODE + 0x3240, rule(WIRE_CFI_LEAF_RDI, 0, 0));
	f->rts.where = WIRE_WHERE_FOREIGN;
	image_put(&f->im, STACK_TOP, CODE + 0x2001);
	walk_thread(&f->g, &f->t, &f->th, &f->state, &f->rts, 0, &regs);
	expect(f, want, 3);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	regs.rdi = 0;
	stg_init(&f->g, &f->t.layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	walk_thread(&f->g, &f->t, &f->th, &f->state, &f->rts, 0, &regs);
	assert_int_not_equal(f->w.end_state, WIRE_END_COMPLETE);
	/* as a caller: its rdi is no longer known */
	image_put(&f->im, STACK_TOP, CODE + 0x3281);
	run(f, CODE + 0x1000, STACK_TOP, 0);
	assert_int_not_equal(f->w.end_state, WIRE_END_COMPLETE);
	free(f);
}

/* An interrupted program counter is no return address: it is looked up as it is. */
static void test_signal_frame(void **state)
{
	struct fixture *f = make();
	u64 sp = STACK_TOP, old = sp + 4096;

	(void)state;
	f->rts.where = WIRE_WHERE_FOREIGN;
	image_put(&f->im, sp, CODE + 0x2101);
	image_put(&f->im, sp + 8 + WIRE_CFI_SIGNAL_IP, CODE + 0x1000);
	image_put(&f->im, sp + 8 + WIRE_CFI_SIGNAL_SP, old);
	image_put(&f->im, sp + 8 + WIRE_CFI_SIGNAL_BP, 0x99);
	image_put(&f->im, old, CODE + 0x2001);
	run(f, CODE + 0x1100, sp, 0);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 4);
	assert_int_equal(f->frames[2], frame(WIRE_FRAME_C_RET, CODE + 0x1000));
	assert_int_equal(f->unw.bp, 0x99);
	free(f);
}

struct rule_case {
	u32 rule;
	u64 bp, at, word; /* a word in memory */
	u64 cfa;
};

static void test_rules(void **state)
{
	const u64 sp = STACK_TOP;
	const struct rule_case cases[] = {
		{rule(WIRE_CFI_PLT, 8 * 11, 0), 0, 0, 0, sp + 8}, /* pc at byte 0 of an entry */
		{rule(WIRE_CFI_PLT, 0, 0), 0, 0, 0, sp + 16},
		{rule(WIRE_CFI_RBP_DEREF, 16, 0), sp + 400, sp + 384, sp + 800, sp + 800},
		{rule(WIRE_CFI_RSP_DEREF, 16, 0), 0, sp + 16, sp + 640, sp + 640},
		{rule(WIRE_CFI_RSP_DEREF8, 16, 0), 0, sp + 16, sp + 640, sp + 648},
		{rule(WIRE_CFI_RSP, 64, 5), 0, sp + 24, 0x1234, sp + 64},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = make();

		f->rts.where = WIRE_WHERE_FOREIGN;
		add_row(f, CODE + 0x4000, cases[i].rule);
		if (cases[i].at)
			image_put(&f->im, cases[i].at, cases[i].word);
		image_put(&f->im, cases[i].cfa - 8, CODE + 0x2001);
		run(f, CODE + 0x4000, sp, cases[i].bp);
		assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
		assert_int_equal(f->unw.sp, cases[i].cfa);
		if (WIRE_CFI_BP(cases[i].rule) == 5)
			assert_int_equal(f->unw.bp, 0x1234);
		free(f);
	}
}

static void broken(u64 ip, u64 sp, u32 extra, u64 at, u64 word, u8 cause)
{
	struct fixture *f = make();

	f->rts.where = WIRE_WHERE_NO_CAP;
	add_row(f, CODE + 0x4000, extra);
	if (at)
		image_put(&f->im, at, word);
	run(f, ip, sp, sp);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, cause);
	free(f);
}

static void test_causes(void **state)
{
	const u64 sp = STACK_TOP, there = CODE + 0x4000;

	(void)state;
	broken(0x10, sp, 0, 0, 0, WIRE_CAUSE_C_NO_MAP);
	broken(CODE + CODE_SIZE, sp, 0, 0, 0, WIRE_CAUSE_C_NO_MAP);
	broken(CODE + 0x10, sp, 0, 0, 0, WIRE_CAUSE_C_NO_ROW); /* before the first row */
	broken(CODE + 0x1200, sp, 0, 0, 0, WIRE_CAUSE_C_NO_ROW);
	broken(there, sp, WIRE_CFI_UNKNOWN, 0, 0, WIRE_CAUSE_C_RULE);
	broken(there, sp, 15, 0, 0, WIRE_CAUSE_C_RULE); /* an unknown kind of rule */
	broken(there, sp, rule(WIRE_CFI_RSP, 0, 0), 0, 0, WIRE_CAUSE_C_RULE);
	broken(there, 0x1000, rule(WIRE_CFI_RSP, 8, 0), 0, 0, WIRE_CAUSE_C_FAULT);
	broken(there, sp, rule(WIRE_CFI_RSP, 8, 0), sp, 0x12345, WIRE_CAUSE_C_NO_MAP);
	/* its rbp is lost, and the caller's CFA needs it */
	broken(there, sp, rule(WIRE_CFI_RSP, 8, WIRE_CFI_BP_UNKNOWN), sp, CODE + 0x1150,
	       WIRE_CAUSE_C_RULE);
}

static void test_too_deep(void **state)
{
	struct fixture *f = make();

	(void)state;
	f->rts.where = WIRE_WHERE_FOREIGN;
	for (u64 a = STACK_TOP; a < STACK_TOP + 4096; a += 8)
		image_put(&f->im, a, CODE + 0x1001);
	run(f, CODE + 0x1000, STACK_TOP, 0);
	assert_int_equal(f->w.end_state, WIRE_END_BROKEN);
	assert_int_equal(f->w.cause, WIRE_CAUSE_C_TOO_DEEP);
	assert_int_equal(f->w.n, UNW_MAX_FRAMES);
	free(f);
}

/* Every address finds the row that covers it, even in a bucket without rows of its own. */
static void test_search(void **state)
{
	struct fixture *f = make();
	u32 rows[300];

	(void)state;
	for (u32 i = 0; i < 300; i++) {
		rows[i] = 0x4000 + i * 7 + (i > 250 ? 0x3000 : 0);
		add_row(f, CODE + rows[i], rule(WIRE_CFI_RSP, 8 * (i + 1), 0));
	}
	for (u64 rel = 0x4000; rel < CODE_SIZE; rel++) {
		u32 want = 299;

		while (rows[want] > rel)
			want--;
		f->unw.pc = CODE + rel;
		unw_find(&f->g);
		assert_int_equal(f->unw.rule, rule(WIRE_CFI_RSP, 8 * (want + 1), 0));
	}
	free(f);
}

static void test_search_maps(void **state)
{
	struct fixture *f = make();

	(void)state;
	f->maps.n = WIRE_UNWIND_MAPS;
	for (u32 i = 0; i < WIRE_UNWIND_MAPS; i++)
		f->maps.v[i] = (struct wire_unwind_map){
			.start = 0x1000 + 0x20 * i, .end = 0x1010 + 0x20 * i, .file = i};
	for (u64 pc = 0; pc < 0x1000 + 0x20 * (WIRE_UNWIND_MAPS + 1); pc++) {
		const struct wire_unwind_map *m;
		u64 i = (pc - 0x1000) / 0x20;

		f->unw.pc = pc;
		m = unw_map(&f->g);
		if (pc < 0x1000 || i >= WIRE_UNWIND_MAPS || (pc & 0x1f) >= 0x10)
			assert_null(m);
		else
			assert_int_equal(m->file, i);
	}
	free(f);
}

/* ── with Haskell frames ─────────────────────────────────────────────────────────────────── */

/* A Haskell thread with one frame above its STOP_FRAME; *ret_sp is its Sp. */
static u64 make_tso(struct fixture *f, u64 *ret_sp)
{
	const struct wire_layout *l = &f->t.layout;
	u64 stack = image_stack(&f->im, l, 64), tso = image_alloc(&f->im, 16),
	    words[2] = {f->small, 7};

	image_push(&f->im, l, stack, &f->stop, 1);
	image_push(&f->im, l, stack, words, 2);
	image_put(&f->im, tso, image_info(&f->im, STG_TSO, 0));
	image_put(&f->im, tso + l->tso_stackobj, stack);
	*ret_sp = image_sp(&f->im, l, stack);
	return tso;
}

/* C code that Haskell called, which has saved Sp and uses rbp for something else. */
static void test_into_haskell(void **state)
{
	struct fixture *f = make();
	u64 sp = STACK_TOP, hs_rsp, hs_sp;
	u64 want[] = {frame(WIRE_FRAME_C_IP, CODE + 0x1050), frame(WIRE_FRAME_C_RET, CODE + 0x1050),
		      frame(WIRE_FRAME_HS_CALL, HASKELL), 0, 0};

	(void)state;
	f->rts.where = WIRE_WHERE_HASKELL;
	f->rts.tso = make_tso(f, &hs_sp);
	want[3] = frame(WIRE_FRAME_HS_RET, f->small);
	want[4] = frame(WIRE_FRAME_HS_RET, f->stop);
	image_put(&f->im, sp + 24, 0x55);
	image_put(&f->im, sp + 32, CODE + 0x1050);
	image_put(&f->im, sp + 40 + 24, hs_sp);
	image_put(&f->im, sp + 40 + 32, HASKELL);
	hs_rsp = sp + 80 + 8; /* the call was aligned */
	image_put(&f->im, hs_rsp + CSTACK_STGRUN_FRAME, STGRUN_RET);
	run(f, CODE + 0x1050, sp, 0xbad);
	expect(f, want, 5);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.gap, 0);
	assert_int_equal(f->th.stgrun_at, hs_rsp + CSTACK_STGRUN_FRAME);
	assert_int_equal(f->state.differs, 0);
	/* a remembered place that is contradicted */
	f->th.stgrun_at += 64;
	image_put(&f->im, f->th.stgrun_at, STGRUN_RET);
	stg_init(&f->g, &f->t.layout, WIRE_FRAMES_LEAF, WIRE_FRAMES_ROOT);
	run(f, CODE + 0x1050, sp, 0xbad);
	assert_int_equal(f->state.differs, 1);
	free(f);
}

/* C → Haskell → C → Haskell: an in-call inside another one's safe call. */
static void test_callback(void **state)
{
	struct fixture *f = make();
	const struct wire_layout *l = &f->t.layout;
	u64 sp = STACK_TOP, inner_sp, outer_sp, at, outer, incall, prev;
	u64 want[10];

	(void)state;
	f->rts.where = WIRE_WHERE_HASKELL;
	f->rts.tso = make_tso(f, &inner_sp);
	outer = make_tso(f, &outer_sp);
	incall = image_alloc(&f->im, 16);
	prev = image_alloc(&f->im, 16);
	image_put(&f->im, incall + l->incall_prev_stack, prev);
	image_put(&f->im, prev + l->incall_suspended_tso, outer);
	f->th.incall = incall;
	/* the inner Haskell code, StgRun's reserve, schedule(), a C function, the outer code */
	at = sp + CSTACK_STGRUN_FRAME;
	image_put(&f->im, at, STGRUN_RET);
	image_put(&f->im, at - WIRE_CFI_STGRUN_IP + WIRE_CFI_STGRUN_BP, 0x33);
	image_put(&f->im, at + 8 + 24, CODE + 0x1050);
	image_put(&f->im, at + 8 + 32 + 24, outer_sp);
	image_put(&f->im, at + 8 + 32 + 32, HASKELL + 0x100);
	image_put(&f->im, at + 8 + 32 + 40 + 8 + CSTACK_STGRUN_FRAME, STGRUN_RET);
	run(f, HASKELL, sp, inner_sp);
	want[0] = frame(WIRE_FRAME_HS_IP, HASKELL);
	want[1] = want[6] = frame(WIRE_FRAME_HS_RET, f->small);
	want[2] = want[7] = frame(WIRE_FRAME_HS_RET, f->stop);
	want[3] = frame(WIRE_FRAME_C_RET, STGRUN_RET);
	want[4] = frame(WIRE_FRAME_C_RET, CODE + 0x1050);
	want[5] = frame(WIRE_FRAME_HS_CALL, HASKELL + 0x100);
	expect(f, want, 8);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	free(f);
}

/*
 * The scheduler of an in-call that C code in a safe call has made: Haskell code is only below it.
 */
static void test_scheduler_of_callback(void **state)
{
	struct fixture *f = make();
	const struct wire_layout *l = &f->t.layout;
	u64 sp = STACK_TOP, outer_sp, outer, incall, prev;

	(void)state;
	f->rts.where = WIRE_WHERE_RTS;
	outer = make_tso(f, &outer_sp);
	incall = image_alloc(&f->im, 16);
	prev = image_alloc(&f->im, 16);
	image_put(&f->im, incall + l->incall_prev_stack, prev);
	image_put(&f->im, prev + l->incall_suspended_tso, outer);
	f->th.incall = incall;
	image_put(&f->im, sp + 32, HASKELL);
	image_put(&f->im, sp + 40 + CSTACK_STGRUN_FRAME, STGRUN_RET);
	run(f, CODE + 0x1050, sp, 0);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 4);
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_HS_CALL, HASKELL));
	assert_int_equal(f->frames[3], frame(WIRE_FRAME_HS_RET, f->stop));
	free(f);
}

/*
 * According to the capability the inner thread runs, but it is only about to be entered: the C
 * stack leads to the thread whose call made the in-call.
 */
static void test_before_entering(void **state)
{
	struct fixture *f = make();
	const struct wire_layout *l = &f->t.layout;
	u64 sp = STACK_TOP, inner_sp, outer_sp, outer, incall, prev;

	(void)state;
	f->rts.where = WIRE_WHERE_HASKELL;
	f->rts.tso = make_tso(f, &inner_sp);
	outer = make_tso(f, &outer_sp);
	incall = image_alloc(&f->im, 16);
	prev = image_alloc(&f->im, 16);
	image_put(&f->im, incall + l->incall_prev_stack, prev);
	image_put(&f->im, prev + l->incall_suspended_tso, outer);
	f->th.incall = incall;
	image_put(&f->im, sp + 24, outer_sp);
	image_put(&f->im, sp + 32, HASKELL);
	image_put(&f->im, sp + 40 + CSTACK_STGRUN_FRAME, STGRUN_RET);
	run(f, CODE + 0x1050, sp, 0);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 4);
	assert_int_equal(f->frames[1], frame(WIRE_FRAME_HS_CALL, HASKELL));
	/* the place that was found is not the inner in-call's */
	assert_int_equal(f->th.stgrun_at, 0);
	free(f);
}

/* From StgRun's own code, on the way in or out. */
static void test_stgrun(void **state)
{
	struct fixture *f = make();
	u64 sp = STACK_TOP;

	(void)state;
	f->rts.where = WIRE_WHERE_RTS;
	image_put(&f->im, sp + WIRE_CFI_STGRUN_IP, STGRUN_RET);
	image_put(&f->im, sp + WIRE_CFI_STGRUN_BP, 0x66);
	image_put(&f->im, sp + WIRE_CFI_STGRUN_IP + 8 + 24, CODE + 0x2001);
	run(f, CODE + 0x3150, sp, 0);
	assert_int_equal(f->w.end_state, WIRE_END_COMPLETE);
	assert_int_equal(f->w.n, 3);
	assert_int_equal(f->unw.bp, 0x66);
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_the_start),
		cmocka_unit_test(test_return_address_is_behind_the_call),
		cmocka_unit_test(test_return_address_in_register),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_too_deep),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_search_maps),
		cmocka_unit_test(test_into_haskell),
		cmocka_unit_test(test_callback),
		cmocka_unit_test(test_scheduler_of_callback),
		cmocka_unit_test(test_before_entering),
		cmocka_unit_test(test_stgrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

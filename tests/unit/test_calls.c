/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stack of open safe calls: nesting, calls that never return, overflow; hand-over time; and
 * what is still known of the stack after the probes were off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "calls.bpf.h"

#define SP 0x7ffc1000ULL /* address of suspendThread's return address */

static struct wire_thread *make(void)
{
	struct wire_thread *th = calloc(1, sizeof(*th));

	assert_non_null(th);
	return th;
}

static void test_one_call(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	th->blocked_ns = 100;
	th->runnable_ns = 10;
	assert_int_equal(calls_begin(th, 1000, 0x401, SP, 0xa, 3, WIRE_CALL_INTERRUPTIBLE, &gone),
			 CALLS_OK);
	assert_int_equal(gone, 0);
	assert_int_equal(calls_top(th)->site, 0x401);
	th->blocked_ns = 350;
	th->runnable_ns = 15;
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(gone, 0);
	assert_int_equal(call.start_ns, 1000);
	assert_int_equal(call.blocked_ns, 250);
	assert_int_equal(call.runnable_ns, 5);
	assert_int_equal(call.cap_no, 3);
	assert_int_equal(call.flags, WIRE_CALL_INTERRUPTIBLE);
	assert_null(calls_top(th));
	free(th);
}

/* A foreign function calls back, and the Haskell code called makes another safe call. */
static void test_nested(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	for (u32 i = 0; i < WIRE_OPEN_MAX; i++)
		assert_int_equal(calls_begin(th, i, 0x400 + i, SP, 0x10 + i, 0, 0, &gone),
				 CALLS_OK);
	assert_int_equal(calls_begin(th, 99, 0x999, SP, 0x99, 0, 0, &gone), CALLS_OVERFLOW);
	assert_int_equal(th->depth, WIRE_OPEN_MAX);
	assert_int_equal(calls_end(th, 0x99, &call, &gone), CALLS_UNMATCHED);
	for (u32 i = WIRE_OPEN_MAX; i-- > 0;) {
		assert_int_equal(calls_top(th)->site, 0x400 + i);
		assert_int_equal(calls_end(th, 0x10 + i, &call, &gone), CALLS_OK);
		assert_int_equal(gone, 0);
		assert_int_equal(call.site, 0x400 + i);
		assert_int_equal(call.start_ns, i);
	}
	assert_int_equal(calls_end(th, 0x10, &call, &gone), CALLS_UNMATCHED);
	free(th);
}

/* longjmp out of the inner call: the end of the outer call closes both. */
static void test_inner_abandoned(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, SP, 0xa, 0, 0, &gone);
	calls_begin(th, 2, 0x402, SP, 0xb, 0, 0, &gone);
	calls_begin(th, 3, 0x403, SP, 0xc, 0, 0, &gone);
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(gone, 2);
	assert_int_equal(call.site, 0x401);
	assert_int_equal(th->depth, 0);
	free(th);
}

/* The same InCall begins again: its previous call and those above it never returned. */
static void test_begin_again(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, SP, 0xa, 0, 0, &gone);
	calls_begin(th, 2, 0x402, SP, 0xb, 0, 0, &gone);
	assert_int_equal(calls_begin(th, 3, 0x403, SP, 0xa, 0, 0, &gone), CALLS_OK);
	assert_int_equal(gone, 2);
	assert_int_equal(th->depth, 1);
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(call.start_ns, 3);
	free(th);
}

/* An end without a begin leaves the open calls unchanged. */
static void test_unmatched(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	calls_begin(th, 1, 0x401, SP, 0xa, 0, 0, &gone);
	assert_int_equal(calls_end(th, 0xb, &call, &gone), CALLS_UNMATCHED);
	assert_int_equal(th->depth, 1);
	assert_int_equal(calls_top(th)->site, 0x401);
	free(th);
}

/* An impossible depth is ignored. */
static void test_bad_depth(void **state)
{
	struct wire_thread *th = make();

	(void)state;
	th->depth = WIRE_OPEN_MAX + 1;
	assert_null(calls_top(th));
	free(th);
}

/* ── hand-over ───────────────────────────────────────────────────────────────────────────── */

/* Memory with one readable word. */
struct one_word {
	struct mem mem; /* must be first */
	u64 addr, value;
	unsigned reads;
};

static int read_word(struct mem *mem, void *dst, u32 size, u64 addr)
{
	struct one_word *w = (struct one_word *)mem;

	w->reads++;
	if (addr != w->addr || size != sizeof(w->value))
		return -14;
	memcpy(dst, &w->value, sizeof(w->value));
	return 0;
}

static struct one_word word(u64 addr, u64 value)
{
	return (struct one_word){.mem.read = read_word, .addr = addr, .value = value};
}

/* Off the CPU twice in suspendThread, then once in the foreign function. */
static void test_handover(void **state)
{
	struct wire_thread *th = make();
	struct one_word w = word(SP, 0x401);
	struct wire_open call = {};
	u32 gone;

	(void)state;
	th->blocked_ns = 100;
	th->runnable_ns = 10;
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
	/* at suspendThread's first instruction, and deeper */
	assert_true(calls_suspending(&w.mem, th, SP));
	calls_off(th, 30, 20, 1);
	assert_true(calls_suspending(&w.mem, th, SP - 200));
	calls_off(th, 0, 7, 1);
	/* the foreign function was called from the same stack position */
	w.value = 0x409;
	assert_false(calls_suspending(&w.mem, th, SP - 8));
	calls_off(th, 400, 5, 0);
	assert_int_equal(th->blocked_ns, 530);
	assert_int_equal(th->runnable_ns, 42);
	assert_int_equal(calls_end(th, 0xa, &call, &gone), CALLS_OK);
	assert_int_equal(call.handover_ns, 57);
	assert_int_equal(call.blocked_ns, 400);
	assert_int_equal(call.runnable_ns, 5);
	assert_int_equal(calls_wall(&call, 2000), 943);
	/* clocks that disagree */
	assert_int_equal(calls_wall(&call, 1010), 0);
	free(th);
}

/* Once the foreign function has begun, it stays begun whatever is at that address later, and no
 * more memory is read for it. */
static void test_begun_for_good(void **state)
{
	/* suspendThread returned; an argument on the stack; unreadable */
	const struct {
		u64 sp;
		struct one_word w;
		unsigned reads;
	} cases[] = {
		{SP + 8, word(SP, 0x401), 0},
		{SP - 24, word(SP, 77), 1},
		{SP - 8, word(SP + 8, 0x401), 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wire_thread *th = make();
		struct one_word w = cases[i].w;
		u32 gone;

		calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
		assert_false(calls_suspending(&w.mem, th, cases[i].sp));
		assert_int_equal(w.reads, cases[i].reads);
		w = word(SP, 0x401);
		assert_false(calls_suspending(&w.mem, th, SP - 8));
		assert_int_equal(w.reads, 0);
		free(th);
	}
}

/* The inner call's hand-over counts as time of the outer call, off the CPU. */
static void test_handover_nested(void **state)
{
	struct wire_thread *th = make();
	struct one_word w = word(SP - 4096, 0x402);
	struct wire_open call = {};
	u32 gone;

	(void)state;
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
	calls_begin(th, 1100, 0x402, SP - 4096, 0xb, 0, 0, &gone);
	assert_true(calls_suspending(&w.mem, th, SP - 4200));
	calls_off(th, 40, 2, 1);
	calls_end(th, 0xb, &call, &gone);
	assert_int_equal(call.handover_ns, 42);
	assert_int_equal(call.blocked_ns, 0);
	assert_int_equal(calls_wall(&call, 1200), 58);
	/* no switch-out has shown that the outer call's function began, but its callback has */
	w = word(SP, 0x401);
	assert_false(calls_suspending(&w.mem, th, SP - 8));
	calls_end(th, 0xa, &call, &gone);
	assert_int_equal(call.handover_ns, 0);
	assert_int_equal(call.blocked_ns, 40);
	assert_int_equal(call.runnable_ns, 2);
	assert_int_equal(calls_wall(&call, 1300), 300);
	free(th);
}

/* A call too deep to be tracked is not mistaken for the one below it. */
static void test_handover_overflow(void **state)
{
	struct wire_thread *th = make();
	struct one_word w = word(SP, 0x401);
	u32 gone;

	(void)state;
	for (u32 i = 0; i < WIRE_OPEN_MAX; i++)
		calls_begin(th, i, 0x401, SP, 0x10 + i, 0, 0, &gone);
	assert_int_equal(calls_begin(th, 99, 0x401, SP, 0x99, 0, 0, &gone), CALLS_OVERFLOW);
	assert_false(calls_suspending(&w.mem, th, SP - 8));
	free(th);
}

/* A call within another one shows that the other called back, and so does another InCall. */
static void test_callback(void **state)
{
	struct wire_thread *th = make();
	struct wire_open call;
	u32 gone;

	(void)state;
	assert_false(calls_in_callback(calls_top(th), 0xa));
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, WIRE_CALL_INTERRUPTIBLE, &gone);
	assert_false(calls_in_callback(calls_top(th), 0xa));
	assert_false(calls_in_callback(calls_top(th), 0)); /* not known */
	assert_true(calls_in_callback(calls_top(th), 0xb));
	calls_begin(th, 1100, 0x402, SP - 100, 0xb, 0, 0, &gone);
	assert_false(calls_in_callback(calls_top(th), 0xb));
	calls_end(th, 0xb, &call, &gone);
	assert_int_equal(call.flags, 0);
	calls_end(th, 0xa, &call, &gone);
	assert_int_equal(call.flags, WIRE_CALL_INTERRUPTIBLE | WIRE_CALL_CALLED_BACK);
	/* one in its place, as after a jump, is not within it */
	calls_begin(th, 1200, 0x401, SP, 0xa, 0, 0, &gone);
	calls_begin(th, 1300, 0x403, SP, 0xa, 0, 0, &gone);
	assert_int_equal(gone, 1);
	calls_end(th, 0xa, &call, &gone);
	assert_int_equal(call.flags, 0);
	free(th);
}

static void test_short_cpu(void **state)
{
	struct wire_thread *th = make();

	(void)state;
	th->short_wall_ns = 1000;
	th->short_blocked_ns = 300;
	th->short_runnable_ns = 50;
	assert_int_equal(calls_short_cpu(th), 650);
	th->short_runnable_ns = 701;
	assert_int_equal(calls_short_cpu(th), 0);
	free(th);
}

/* ── while the probes are off ────────────────────────────────────────────────────────────── */

/* The probes are taken off while the thread runs: its call ends unseen. */
static void test_pause_awake(void **state)
{
	struct wire_target t = {.epoch = 1};
	struct wire_thread *th = make();
	u32 gone;

	(void)state;
	calls_sync(&t, th);
	assert_int_equal(th->epoch, 1);
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
	th->resume_incall = 0xa;
	t.flags = WIRE_TARGET_PROBES_OFF;
	assert_false(calls_known(&t, th));
	/* no switch-out in the whole pause */
	t.flags = 0;
	t.epoch = 2;
	assert_false(calls_known(&t, th));
	calls_sync(&t, th);
	assert_int_equal(th->epoch, 0);
	assert_null(calls_top(th));
	assert_int_equal(th->suspend_sp, 0);
	assert_int_equal(th->resume_incall, 0);
	/* nor do the calls become known by sleeping */
	assert_false(calls_carry(&t, th));
	assert_false(calls_known(&t, th));
	free(th);
}

/* The thread sleeps in its call from before the pause until after it. */
static void test_pause_asleep(void **state)
{
	struct wire_target t = {.epoch = 1};
	struct wire_thread *th = make();
	u32 gone;

	(void)state;
	calls_sync(&t, th);
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
	calls_sync(&t, th); /* switched out */
	t.flags = WIRE_TARGET_PROBES_OFF;
	t.flags = 0;
	t.epoch = 2;
	assert_true(calls_carry(&t, th));
	assert_true(calls_known(&t, th));
	assert_int_equal(calls_top(th)->site, 0x401);
	assert_false(calls_carry(&t, th));
	free(th);
}

/* The thread is woken during the pause. */
static void test_pause_woken(void **state)
{
	struct wire_target t = {.epoch = 1};
	struct wire_thread *th = make();
	u32 gone;

	(void)state;
	calls_sync(&t, th);
	calls_begin(th, 1000, 0x401, SP, 0xa, 0, 0, &gone);
	calls_sync(&t, th);
	t.flags = WIRE_TARGET_PROBES_OFF;
	assert_false(calls_carry(&t, th));
	assert_false(calls_known(&t, th));
	t.flags = 0;
	t.epoch = 2;
	assert_false(calls_known(&t, th));
	calls_sync(&t, th);
	assert_null(calls_top(th));
	free(th);
}

/* The calls of a thread not seen before are known as long as there was no pause. */
static void test_first_epoch(void **state)
{
	struct wire_target t = {.epoch = 0, .flags = WIRE_TARGET_PROBES_OFF};
	struct wire_thread *th = make();

	(void)state;
	assert_false(calls_known(&t, th));
	t = (struct wire_target){.epoch = 1};
	assert_true(calls_known(&t, th));
	t.epoch = 2;
	assert_false(calls_known(&t, th));
	free(th);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_call),	cmocka_unit_test(test_nested),
		cmocka_unit_test(test_inner_abandoned), cmocka_unit_test(test_begin_again),
		cmocka_unit_test(test_unmatched),	cmocka_unit_test(test_bad_depth),
		cmocka_unit_test(test_handover),	cmocka_unit_test(test_begun_for_good),
		cmocka_unit_test(test_handover_nested), cmocka_unit_test(test_handover_overflow),
		cmocka_unit_test(test_callback),	cmocka_unit_test(test_short_cpu),
		cmocka_unit_test(test_pause_awake),	cmocka_unit_test(test_pause_asleep),
		cmocka_unit_test(test_pause_woken),	cmocka_unit_test(test_first_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

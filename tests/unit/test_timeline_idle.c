/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Without -threaded the scheduler itself waits for files, timers and signals, with it the event
 * managers do: that is idleness.
 */
#include <sys/syscall.h>

#include "test_timeline_kit.h"

struct wait {
	bool threaded;
	unsigned where;
	long syscall;
	enum thread_state expect;
	enum cap_state cap; /* of the capability meanwhile */
};

static void check_wait(const struct wait *wait)
{
	struct timeline_opts opts = {.start_ns = T0, .start_unix_ns = 1};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;
	size_t i = 0;

	kit_new_timeline(&kit, &opts);
	kit_add_way(&kit, PID, T0, 1, wait->threaded);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 200, T0 + 1900, T0 + 2000, wait->where, STOP);
	r.off.syscall = (uint32_t)wait->syscall;
	r.off.ip = CFN(1);
	r.off.rts.cap_no = 0;
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 2200));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->states_ns[wait->expect], 1700);
	assert_int_equal(lane->states_ns[ST_PREEMPTED], 100);
	/* it runs for more than a tenth of its time: that is the program's work */
	assert_false(lane->housekeeping);
	lane = lane_by(picture__target(kit.pic, 0), LANE_CAPABILITY, 0);
	while (i < lane->n_slices && lane->slices[i].end_ns <= T0 + 200)
		i++;
	assert_true(i < lane->n_slices);
	assert_int_equal(lane->slices[i].state, wait->cap);
	assert_in_range(lane->slices[i].end_ns, T0 + 1900, T0 + 2000);
	timeline__free(kit.tl);
}

static void test_schedulers_wait(void **state)
{
	static const struct wait waits[] = {
		{false, WIRE_WHERE_RTS, SYS_select, ST_IDLE, CS_IDLE},
		{false, WIRE_WHERE_RTS, SYS_pselect6, ST_IDLE, CS_IDLE},
		{false, WIRE_WHERE_RTS, SYS_poll, ST_IDLE, CS_IDLE},
		{false, WIRE_WHERE_RTS, SYS_ppoll, ST_IDLE, CS_IDLE},
		{false, WIRE_WHERE_RTS, SYS_pause, ST_IDLE, CS_IDLE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		check_wait(&waits[i]);
}

/*
 * Not idle: waits for a lock or for the kernel's memory, in a call of the program's own, and where
 * the runtime has other threads that wait for events.
 */
static void test_other_waits(void **state)
{
	static const struct wait waits[] = {
		{false, WIRE_WHERE_RTS, SYS_futex, ST_RTS_BLOCKED, CS_RTS},
		{false, WIRE_WHERE_RTS, SYS_madvise, ST_RTS_BLOCKED, CS_RTS},
		{false, WIRE_WHERE_RTS, WIRE_NO_SYSCALL, ST_RTS_BLOCKED, CS_RTS},
		{false, WIRE_WHERE_HASKELL, SYS_poll, ST_UNSAFE_CALL_BLOCKED, CS_UNSAFE_CALL},
		{false, WIRE_WHERE_SAFE_CALL, SYS_poll, ST_SAFE_CALL_BLOCKED, CS_IDLE},
		{true, WIRE_WHERE_RTS, SYS_poll, ST_RTS_BLOCKED, CS_RTS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		check_wait(&waits[i]);
}

struct manager_wait {
	unsigned site;	/* 0: not known, as while the call probes are off */
	uint64_t frame; /* of the Haskell thread; 0: no room for a stack */
	uint64_t tso;
	enum thread_state expect;
};

/* Waits of several Haskell threads, one after the other, on one OS thread. */
static void test_managers_waits(void **state)
{
	static const struct manager_wait waits[] = {
		{0, 0, 3, ST_SAFE_CALL_BLOCKED}, /* nothing shows it yet */
		{0, RET(MANAGER), 3, ST_IDLE},
		{0, 0, 3, ST_IDLE}, /* it did before */
		{0, RET(HS(1)), 4, ST_SAFE_CALL_BLOCKED},
		{0, 0, 4, ST_SAFE_CALL_BLOCKED},
		{1, RET(MANAGER), 5, ST_SAFE_CALL_BLOCKED}, /* the site is what counts */
		{99, 0, 6, ST_IDLE},
		{0, 0, 6, ST_IDLE},
		{0, 0, 0, ST_SAFE_CALL_BLOCKED},
	};
	static const uint32_t syscalls[] = {SYS_epoll_wait, SYS_poll, SYS_restart_syscall};
	uint64_t expect[ST_MAX] = {0};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < ARRAY_SIZE(waits); i++) {
		const struct manager_wait *w = &waits[i];
		uint64_t at = T0 + 1000 * (uint64_t)(i + 1);

		mk_off(&r, 7, at, at + (1U << i), at + (1U << i), WIRE_WHERE_SAFE_CALL, w->frame,
		       STOP);
		r.off.syscall = syscalls[i % ARRAY_SIZE(syscalls)];
		r.off.ip = w->frame ? CFN(1) : 0;
		r.off.rts.tso = w->tso * 0x1000;
		r.off.rts.tso_id = w->tso;
		r.off.rts.flags = w->site ? 0 : WIRE_RTS_CALLS_UNKNOWN;
		r.off.site = w->site ? SITE(w->site) : 0;
		r.off.call_start_ns = w->site ? at : 0;
		put(&kit, &r);
		expect[w->expect] += 1U << i;
	}
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 20000));
	lane = lane_of(finish(&kit), 7);
	assert_int_equal(lane->states_ns[ST_IDLE], expect[ST_IDLE]);
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_BLOCKED], expect[ST_SAFE_CALL_BLOCKED]);
	timeline__free(kit.tl);
}

/* Its Haskell thread is in a call, which is no idleness of a Haskell thread. */
static void test_managers_thread(void **state)
{
	const struct timeline_opts opts = {.haskell_lanes = true};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 1000, T0 + 8000, T0 + 9000, WIRE_WHERE_SAFE_CALL, RET(MANAGER), STOP);
	r.off.syscall = SYS_epoll_wait;
	r.off.rts.tso = 0x1000;
	r.off.rts.tso_id = 5;
	r.off.site = SITE(99);
	r.off.call_start_ns = T0 + 500;
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 9000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->states_ns[ST_IDLE], 7000);
	lane = lane_by(picture__target(kit.pic, 0), LANE_HASKELL, 5);
	assert_int_equal(lane->states_ns[HS_SAFE_CALL], 8500);
	assert_int_equal(lane->states_ns[HS_UNKNOWN], 0);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedulers_wait),
		cmocka_unit_test(test_other_waits),
		cmocka_unit_test(test_managers_waits),
		cmocka_unit_test(test_managers_thread),
	};

	return cmocka_run_group_tests_name("the scheduler's waits", tests, NULL, NULL);
}

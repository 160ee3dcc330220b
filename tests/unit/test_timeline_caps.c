/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capability lanes: a capability does what the thread that holds it does. */
#include "test_timeline_kit.h"

static const struct pic_lane *cap_of(const struct pic_target *t, uint32_t no)
{
	return lane_by(t, LANE_CAPABILITY, no);
}

static void check_cap_slice(const struct pic_lane *lane, size_t i, uint64_t start, uint64_t end,
			    enum cap_state state, pid_t tid, uint64_t tso)
{
	assert_true(i < lane->n_slices);
	assert_string_equal(state__name(LANE_CAPABILITY, lane->slices[i].state),
			    state__name(LANE_CAPABILITY, state));
	assert_int_equal(lane->slices[i].start_ns, start);
	assert_int_equal(lane->slices[i].end_ns, end);
	assert_int_equal(lane->slices[i].tid, tid);
	assert_int_equal(lane->slices[i].tso, tso);
}

static union rec *with_cap(union rec *r, uint32_t cap, uint64_t tso)
{
	struct wire_rts *rts = r->h.type == WIRE_SAMPLE ? &r->sample.rts
			       : r->h.type == WIRE_OFF	? &r->off.rts
							: &r->call.rts;

	rts->cap_no = cap;
	rts->tso = tso ? 0x1000 : 0;
	rts->tso_id = tso;
	return r;
}

static union rec *mk_tick(union rec *r, uint64_t ns, uint32_t n, uint64_t disabled)
{
	rec_head(r, WIRE_TICK, 99, ns, sizeof(r->tick) + n * sizeof(struct wire_tick_cap));
	r->tick.ncaps = r->tick.enabled = n;
	for (uint32_t i = 0; i < n; i++) {
		r->tick.caps[i].no = i;
		r->tick.caps[i].disabled = disabled >> i & 1;
	}
	return r;
}

/* Beyond the budget of slices, collections that were merged into others still count. */
static void test_coarse(void **state)
{
	struct timeline_opts opts = {.max_slices = 256};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t t = T0 + i * 1000;

		put(&kit,
		    with_cap(mk_sample(&r, 7, t + 500, WIRE_WHERE_HASKELL, HS(1), STOP), 0, 3));
		put(&kit, mk_gc(&r, 7, WIRE_GC_START, t + 800));
		put(&kit, mk_gc(&r, 7, WIRE_GC_END, t + 1000));
	}
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 1000000));
	lane = cap_of(finish(&kit), 0);
	assert_true(lane->merged_ns);
	assert_int_equal(lane->states_ns[CS_GC], 200000);
	assert_int_equal(lane->states_ns[CS_HASKELL], 800000);
	timeline__free(kit.tl);
}

/* Thread 7 makes a recorded safe call; thread 8 has the capability meanwhile. */
static void test_hand_over(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put(&kit, with_cap(mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP),
			   0, 3));
	put(&kit, with_cap(mk_off(&r, 8, T0, T0 + 10000, T0 + 20000, WIRE_WHERE_NO_CAP, STOP),
			   WIRE_NO_CAP, 0));
	put(&kit,
	    with_cap(mk_off(&r, 7, T0 + 10500, T0 + 90000, T0 + 90000, WIRE_WHERE_SAFE_CALL, STOP),
		     0, 3));
	put(&kit,
	    with_cap(mk_call(&r, 7, T0 + 10000, T0 + 95000, SITE(1), RET(HS(1)), STOP), 0, 3));
	put(&kit, with_cap(mk_off(&r, 8, T0 + 60000, T0 + 61000, T0 + 70000, WIRE_WHERE_HASKELL,
				  RET(HS(2)), STOP),
			   0, 4));
	put(&kit, with_cap(mk_off(&r, 8, T0 + 80000, 0, END, WIRE_WHERE_NO_CAP, STOP), 0, 0));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	check_cap_slice(lane, 0, T0, T0 + 10000, CS_HASKELL, 7, 3);
	check_cap_slice(lane, 1, T0 + 10000, T0 + 20000, CS_IDLE, 0, 0);
	/* 8 has it from its switch-in on; what ran is known from where 8 was switched out */
	check_cap_slice(lane, 2, T0 + 20000, T0 + 60000, CS_HASKELL, 8, 4);
	check_cap_slice(lane, 3, T0 + 60000, T0 + 61000, CS_HASKELL, 8, 4); /* a page fault */
	check_cap_slice(lane, 4, T0 + 61000, T0 + 70000, CS_PREEMPTED, 8, 4);
	/* and after that by the capability that it had last */
	check_cap_slice(lane, 5, T0 + 70000, T0 + 80000, CS_HASKELL, 8, 4);
	check_cap_slice(lane, 6, T0 + 80000, T0 + 95000, CS_IDLE, 0, 0);
	check_cap_slice(lane, 7, T0 + 95000, T0 + 100000, CS_HASKELL, 7, 3);
	check_cap_slice(lane, 8, T0 + 100000, END, CS_IDLE, 0, 0);
	assert_int_equal(lane->n_slices, 9);
	lane = cap_of(picture__target(kit.pic, 0), 1);
	assert_int_equal(lane->states_ns[CS_IDLE], END - T0);
	timeline__free(kit.tl);
}

/* Which capability a thread held between two events is inferred from its neighbours. */
static void test_inferred(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	/* no sample before the call: the thread gave capability 1 away */
	put(&kit,
	    with_cap(mk_call(&r, 7, T0 + 10000, T0 + 30000, SITE(1), RET(HS(1)), STOP), 1, 3));
	/* nor after it: it ran on the capability that the next sample shows */
	put(&kit,
	    with_cap(mk_call(&r, 7, T0 + 40000, T0 + 60000, SITE(1), RET(HS(1)), STOP), 0, 3));
	put(&kit, with_cap(mk_sample(&r, 7, T0 + 80000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP),
			   1, 3));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 1);
	check_cap_slice(lane, 0, T0, T0 + 10000, CS_HASKELL, 7, 3);
	check_cap_slice(lane, 1, T0 + 10000, T0 + 60000, CS_IDLE, 0, 0);
	check_cap_slice(lane, 2, T0 + 60000, T0 + 90000, CS_HASKELL, 7, 3);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	check_cap_slice(lane, 1, T0 + 30000, T0 + 40000, CS_HASKELL, 7, 3);
	timeline__free(kit.tl);
}

static void test_states(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, with_cap(mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, CFN(3), CIP(CFN(3)),
				     CALLED(HS(1)), STOP),
			   0, 3));
	mk_off(&r, 7, T0 + 10000, T0 + 20000, T0 + 20000, WIRE_WHERE_HASKELL, CIP(CFN(3)),
	       CALLED(HS(1)), STOP);
	r.off.syscall = 35;
	r.off.ip = CFN(3);
	put(&kit, with_cap(&r, 0, 3));
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 30000));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 40000));
	put(&kit, with_cap(mk_sample(&r, 7, T0 + 45000, WIRE_WHERE_RTS, RTS(1), CIP(RTS(1)), STOP),
			   0, 0));
	put(&kit, with_cap(mk_off(&r, 7, T0 + 50000, 0, END, WIRE_WHERE_NO_CAP, STOP), 0, 0));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	/* the 30 us outside the collection and the sleep are divided between the two samples */
	assert_int_equal(lane->states_ns[CS_UNSAFE_CALL], 15000 + 10000);
	assert_int_equal(lane->states_ns[CS_GC], 10000);
	assert_int_equal(lane->states_ns[CS_RTS], 15000);
	/* nobody holds capability 1, but it is stopped for the collection */
	lane = cap_of(picture__target(kit.pic, 0), 1);
	check_cap_slice(lane, 0, T0, T0 + 30000, CS_IDLE, 0, 0);
	check_cap_slice(lane, 1, T0 + 30000, T0 + 40000, CS_GC, 0, 0);
	check_cap_slice(lane, 2, T0 + 40000, END, CS_IDLE, 0, 0);
	timeline__free(kit.tl);
}

/* setNumCapabilities: a third capability, then two again. */
static void test_number_changes(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_tick(&r, T0 + 1000, 2, 0));
	put(&kit, mk_tick(&r, T0 + 20000, 3, 0));
	put(&kit, mk_tick(&r, T0 + 30000, 3, 0));
	put(&kit, mk_tick(&r, T0 + 40000, 3, 4));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	t = finish(&kit);
	assert_int_equal(t->lanes[LANE_CAPABILITY].n, 3);
	lane = cap_of(t, 2);
	check_cap_slice(lane, 0, T0 + 20000, T0 + 40000, CS_IDLE, 0, 0);
	check_cap_slice(lane, 1, T0 + 40000, END, CS_DISABLED, 0, 0);
	assert_int_equal(cap_of(t, 1)->start_ns, T0);
	assert_int_equal(t->capabilities, 3);
	timeline__free(kit.tl);
}

/* During calls without a record the capability was free, whatever else the thread did. */
static void short_calls(uint64_t ip, enum cap_state expect)
{
	struct wire_thread th = {.tgid = PID};
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
	put(&kit, with_cap(mk_sample(&r, 7, END - 500, WIRE_WHERE_HASKELL, ip, STOP), 0, 3));
	th.on_since_ns = END - 1000;
	th.short_calls = 3;
	th.short_wall_ns = 300;
	assert_int_equal(intake__thread_state(kit.in, 7, &th), 0);
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	assert_int_equal(lane->states_ns[expect], 700);
	assert_int_equal(lane->states_ns[CS_IDLE], END - T0 - 700);
	timeline__free(kit.tl);
}

static void test_short_calls(void **state)
{
	(void)state;
	short_calls(HS(1), CS_HASKELL);
	short_calls(CFN(1), CS_UNSAFE_CALL);
}

/* A sample of Haskell code on a capability. */
static void sampled(struct kit *kit, pid_t tid, uint64_t at, uint32_t cap)
{
	union rec r;

	put(kit, with_cap(mk_sample(&r, tid, at, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP), cap,
			  (uint64_t)tid));
}

/*
 * Two threads claim one capability: the one that is seen with it later has it, and the other one
 * again after that.
 */
static void test_overlap(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	for (pid_t tid = 7; tid <= 8; tid++) {
		uint64_t from = T0 + (tid == 7 ? 0 : 20000);

		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, from));
		sampled(&kit, tid, from + 1000, 0);
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, tid, tid == 7 ? END : from + 10000));
	}
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	check_cap_slice(lane, 0, T0, T0 + 20000, CS_HASKELL, 7, 7);
	check_cap_slice(lane, 1, T0 + 20000, T0 + 30000, CS_HASKELL, 8, 8);
	check_cap_slice(lane, 2, T0 + 30000, END, CS_HASKELL, 7, 7);
	timeline__free(kit.tl);
}

/* A thread is preempted in the scheduler; its Task has the capability `task_cap`. */
static void preempted(struct kit *kit, pid_t tid, uint64_t from, uint64_t to, uint32_t task_cap)
{
	union rec r;

	mk_off(&r, tid, from, 0, to, WIRE_WHERE_NO_CAP, STOP);
	r.off.prev_state = 0;
	put(kit, with_cap(&r, task_cap, 0));
}

/* The thread slept in the scheduler, was woken, and got a CPU. */
static void woken(struct kit *kit, pid_t tid, uint64_t from, uint64_t wake, uint64_t to,
		  uint32_t task_cap)
{
	union rec r;

	mk_off(&r, tid, from, wake, to, WIRE_WHERE_NO_CAP, STOP);
	put(kit, with_cap(&r, task_cap, 0));
}

/*
 * A capability whose thread was woken for it waits for a CPU, as the thread does; but not if it was
 * woken for the collection, nor while another thread has the capability.
 */
static void test_awaited(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	sampled(&kit, 7, T0 + 1000, 0);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 30000));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 40000));
	woken(&kit, 8, T0, T0 + 10000, T0 + 20000, 1);
	sampled(&kit, 8, T0 + 22000, 1);
	/* it gave way to the collection, and had no CPU to go on after it */
	preempted(&kit, 8, T0 + 29000, T0 + 50000, 1);
	sampled(&kit, 8, T0 + 52000, 1);
	/* woken for the capability that 7 has taken meanwhile */
	woken(&kit, 8, T0 + 60000, T0 + 70000, T0 + 80000, 0);
	sampled(&kit, 7, T0 + 85000, 0);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 80000));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 1);
	check_cap_slice(lane, 0, T0, T0 + 10000, CS_IDLE, 0, 0);
	check_cap_slice(lane, 1, T0 + 10000, T0 + 20000, CS_PREEMPTED, 8, 0);
	check_cap_slice(lane, 2, T0 + 20000, T0 + 29000, CS_HASKELL, 8, 8);
	check_cap_slice(lane, 3, T0 + 29000, T0 + 30000, CS_PREEMPTED, 8, 0);
	check_cap_slice(lane, 4, T0 + 30000, T0 + 40000, CS_GC, 0, 0);
	check_cap_slice(lane, 5, T0 + 40000, T0 + 50000, CS_PREEMPTED, 8, 0);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	assert_int_equal(lane->states_ns[CS_PREEMPTED], 0);
	timeline__free(kit.tl);
}

/* A collection's leader gives the others' capability back, and still has its own. */
static void test_leader_preempted(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	sampled(&kit, 7, T0 + 1000, 0);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 30000));
	/* woken because the other capability is there: for the collection */
	woken(&kit, 7, T0 + 31000, T0 + 32000, T0 + 33000, 1);
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 40000));
	/* twice */
	preempted(&kit, 7, T0 + 41000, T0 + 50000, 1);
	preempted(&kit, 7, T0 + 50500, T0 + 60000, 1);
	sampled(&kit, 7, T0 + 62000, 0);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, END));
	finish(&kit);
	lane = cap_of(picture__target(kit.pic, 0), 0);
	check_cap_slice(lane, 0, T0, T0 + 30000, CS_HASKELL, 7, 7);
	check_cap_slice(lane, 4, T0 + 40000, T0 + 41000, CS_RTS, 7, 0);
	check_cap_slice(lane, 5, T0 + 41000, T0 + 50000, CS_PREEMPTED, 7, 0);
	check_cap_slice(lane, 6, T0 + 50000, T0 + 50500, CS_RTS, 7, 0);
	check_cap_slice(lane, 7, T0 + 50500, T0 + 60000, CS_PREEMPTED, 7, 0);
	assert_int_equal(lane->states_ns[CS_GC], 10000);
	assert_int_equal(lane->states_ns[CS_PREEMPTED], 18500);
	assert_int_equal(lane->states_ns[CS_IDLE], 0);
	lane = cap_of(picture__target(kit.pic, 0), 1);
	assert_int_equal(lane->states_ns[CS_PREEMPTED], 0);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coarse),		 cmocka_unit_test(test_hand_over),
		cmocka_unit_test(test_inferred),	 cmocka_unit_test(test_states),
		cmocka_unit_test(test_number_changes),	 cmocka_unit_test(test_short_calls),
		cmocka_unit_test(test_overlap),		 cmocka_unit_test(test_awaited),
		cmocka_unit_test(test_leader_preempted),
	};

	return cmocka_run_group_tests_name("timeline_caps", tests, NULL, NULL);
}

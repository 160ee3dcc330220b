/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Safe calls in a picture: their hand-over, callbacks in them, and what is known of them after a
 * pause of the probes.
 */
#include "hist.bpf.h"
#include "picture/figures.h"
#include "picture/make.h"
#include "test_timeline_kit.h"

/* In suspendThread: waits are the runtime's, and the function has not begun. */
static void test_handover(void **state)
{
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	mk_off(&r, 7, T0 + 11000, T0 + 13000, T0 + 14000, WIRE_WHERE_SAFE_CALL, CIP(RTS(1)),
	       CALLED(HS(2)), STOP);
	r.off.rts.flags = WIRE_RTS_SUSPENDING;
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 10000;
	put(&kit, &r);
	mk_off(&r, 7, T0 + 20000, T0 + 60000, T0 + 61000, WIRE_WHERE_SAFE_CALL, STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = T0 + 10000;
	put(&kit, &r);
	put(&kit, mk_call(&r, 7, T0 + 10000, T0 + 70000, SITE(1), RET(HS(2)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 90000));
	t = finish(&kit);
	lane = lane_of(t, 7);
	check_slice(kit.pic, lane, 1, T0 + 10000, T0 + 11000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	check_slice(kit.pic, lane, 2, T0 + 11000, T0 + 13000, ST_RTS_BLOCKED,
		    "Main.h2;[RTS];r1;[RTS, blocked]");
	check_slice(kit.pic, lane, 3, T0 + 13000, T0 + 14000, ST_PREEMPTED,
		    "Main.h2;[RTS];r1;[preempted]");
	check_slice(kit.pic, lane, 4, T0 + 14000, T0 + 20000, ST_SAFE_CALL_CPU, "Main.h2;c1");
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_BLOCKED], 40000);
	timeline__free(kit.tl);
}

/*
 * A call that was open at the attach, and whose thread has run while no probe was on: only a
 * snapshot at the end can show whether it is still the same call.
 */
static void paused(bool at_end, bool asleep, uint64_t want_open, uint64_t want_wall)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct wire_thread final = {.tgid = PID, .on_since_ns = T0 + 50000, .off_state = 1};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	snap.site = SITE(1);
	put_snap(&kit, &snap, 1, false);
	for (uint64_t at = T0; at < T0 + 50000; at += 10000) {
		mk_off(&r, 7, at, at + 4000, at + 4000, WIRE_WHERE_SAFE_CALL, STOP);
		if (at > T0)
			r.off.rts.flags = WIRE_RTS_CALLS_UNKNOWN;
		put(&kit, &r);
	}
	if (asleep) {
		final.off_since_ns = T0 + 60000;
		final.off_rts.where = WIRE_WHERE_SAFE_CALL;
		final.off_rts.flags = WIRE_RTS_CALLS_UNKNOWN;
	}
	assert_int_equal(intake__thread_state(kit.in, 7, &final), 0);
	if (at_end)
		put_snap(&kit, &snap, 1, true);
	t = finish(&kit);
	check_lane(kit.pic, lane_of(t, 7));
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].open_at_start, 1);
	assert_int_equal(t->calls[0].open_at_end, want_open);
	assert_int_equal(t->calls[0].open_wall_ns, want_wall);
	timeline__free(kit.tl);
}

/* The snapshot at the end may fail to show what a thread does: nothing has happened to this one. */
static void test_unknown_at_end(void **state)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	snap.site = SITE(1);
	put_snap(&kit, &snap, 1, false);
	snap = kit_snap(7, WIRE_WHERE_UNKNOWN, 'S');
	put_snap(&kit, &snap, 1, true);
	t = finish(&kit);
	check_lane(kit.pic, lane_of(t, 7));
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].open_at_start, 1);
	assert_int_equal(t->calls[0].open_at_end, 1);
	assert_int_equal(t->calls[0].open_wall_ns, END - T0);
	timeline__free(kit.tl);
}

static void test_paused(void **state)
{
	(void)state;
	paused(false, false, 0, 0);
	paused(true, false, 1, 0);
	/* it has slept in the call since then, if not for longer */
	paused(true, true, 1, END - T0 - 60000);
}

/* If the kernel has seen all calls of a thread, the last snapshot is no evidence against that. */
static void test_known_at_end(void **state)
{
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct wire_thread final = {.tgid = PID, .on_since_ns = T0 + 50000};

	(void)state;
	for (uint32_t epoch = 0; epoch < 2; epoch++) {
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		snap.site = SITE(1);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		final.epoch = epoch;
		assert_int_equal(intake__thread_state(kit.in, 7, &final), 0);
		put_snap(&kit, &snap, 1, true);
		t = finish(&kit);
		assert_int_equal(t->n_calls, !epoch);
		if (!epoch)
			assert_int_equal(t->calls[0].open_at_end, 1);
		timeline__free(kit.tl);
	}
}

/*
 * The kernel counts the short calls of the time when its probes were on; samples in calls of the
 * other time stand for time that is not in that count.
 */
static void test_uncounted(void **state)
{
	struct wire_thread final = {.tgid = PID,
				    .on_since_ns = T0,
				    .epoch = 1,
				    .short_calls = 3,
				    .short_wall_ns = 4000};
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 50000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	for (unsigned i = 1; i < 10; i++) {
		mk_sample(&r, 7, T0 + 50000 + i * 100000, WIRE_WHERE_SAFE_CALL, CFN(1), CIP(CFN(1)),
			  CALLED(HS(1)), STOP);
		r.sample.rts.flags = WIRE_RTS_CALLS_UNKNOWN;
		put(&kit, &r);
	}
	assert_int_equal(intake__thread_state(kit.in, 7, &final), 0);
	lane = lane_of(finish(&kit), 7);
	assert_int_equal(lane->cpu_ns, END - T0);
	/* nine of ten samples, apart from the short calls */
	assert_in_range(lane->states_ns[ST_SAFE_CALL_CPU], 890000, 910000);
	assert_in_range(lane->states_ns[ST_HASKELL], 90000, 110000);
	timeline__free(kit.tl);
}

/* The row has both parts of the time. */
static void test_row(void **state)
{
	struct wire_site_key key = {.site = SITE(2), .tgid = PID};
	struct wire_site site = {.calls = 3,
				 .wall_ns = 9000,
				 .handover_ns = 700,
				 .blocked_ns = 4000,
				 .runnable_ns = 1000,
				 .min_ns = 2000,
				 .max_ns = 4000};
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].wall_ns, 9000);
	assert_int_equal(t->calls[0].handover_ns, 700);
	assert_int_equal(t->calls[0].cpu_ns, 4000);
	timeline__free(kit.tl);
}

struct counted {
	uint64_t calls, first; /* of the part that goes on, in all and below 1 µs */
};

static void take_figures(void *ctx, const struct figures *f, bool closed)
{
	struct counted *counted = ctx;

	*counted = (struct counted){0};
	if (closed || !f->n_sites)
		return;
	assert_int_equal(f->n_sites, 1);
	counted->first = f->sites[0].hist[0];
	for (unsigned i = 0; i < FIGURES_HIST; i++)
		counted->calls += f->sites[0].hist[i];
}

static void put_hist(struct kit *kit, uint64_t short_calls, uint64_t long_calls)
{
	struct wire_site_key key = {.site = SITE(2), .tgid = PID};
	struct wire_site site = {.calls = short_calls + long_calls, .min_ns = 1, .max_ns = 5000000};

	site.wall_ns = site.calls * 1000;
	site.hist[0] = (uint32_t)short_calls;
	site.hist[hist_slot(4000000)] = (uint32_t)long_calls;
	assert_int_equal(intake__site_counters(kit->in, &key, &site, 0), 0);
}

/* Late enough for the counters to be of the part that goes on (seen__counters_are_of). */
#define LATER (T0 + 2000000000)

/* The kernel's histogram has 32-bit counts. */
static void test_many_calls(void **state)
{
	struct counted counted = {0};
	const struct pic_target *t;
	struct picture *window;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	timeline__set_figures(kit.tl, take_figures, &counted);
	for (uint64_t n = 0; n <= 9; n++) {
		put_hist(&kit, n << 30, n);
		assert_int_equal(timeline__figures(kit.tl, LATER + n), 0);
		assert_int_equal(counted.first, n << 30);
		assert_int_equal(counted.calls, (n << 30) + n);
	}
	/* after a cut: nothing from before it, even if the count was about to wrap at the cut */
	put_hist(&kit, (12ULL << 30) - 5, 9);
	assert_int_equal(timeline__window(kit.tl, LATER + 20000, &window), 0);
	t = picture__target(window, 0);
	assert_int_equal(t->n_calls, 1);
	/* the wrapped count of short calls would put the median among the long ones */
	assert_true(t->calls[0].p50_ns < 100);
	picture__free(window);
	put_hist(&kit, (12ULL << 30) + 5, 9);
	assert_int_equal(timeline__figures(kit.tl, LATER + 30000), 0);
	assert_int_equal(counted.calls, 10);
	for (uint64_t n = 13; n <= 17; n++)
		put_hist(&kit, n << 30, 9);
	assert_int_equal(timeline__figures(kit.tl, LATER + 40000), 0);
	assert_int_equal(counted.calls, (5ULL << 30) + 5);
	timeline__free(kit.tl);
}

/* A wait that begins at `from` and is woken after `waited`, but gets a CPU only after `all`. */
static void put_cap_wait(struct kit *kit, uint64_t from, uint64_t waited, uint64_t all)
{
	union rec r;

	mk_off(&r, 7, from, from + waited, from + all, WIRE_WHERE_RESUMING, RET(HS(2)), STOP);
	r.off.site = SITE(1);
	put(kit, &r);
}

/*
 * The kernel's counter includes the time in which a thread had no CPU; each window has its own
 * part.
 */
static void test_cap_waits(void **state)
{
	struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	struct wire_site site = {.calls = 2, .wall_ns = 2000, .cap_wait_ns = 9000};
	const struct pic_target *t;
	struct picture *window;
	struct kit kit;
	union rec r;
	/* before that, counters have to wait for what was held back since the process joined */
	const uint64_t cut = T0 + 2000000000ULL;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_cap_wait(&kit, T0 + 10000, 1000, 5000);
	put_cap_wait(&kit, T0 + 20000, 2000, 4000);
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	assert_int_equal(timeline__window(kit.tl, cut, &window), 0);
	t = picture__target(window, 0);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].cap_wait_ns, 9000);
	assert_int_equal(t->calls[0].cap_only_ns, 3000);
	picture__free(window);
	put_cap_wait(&kit, cut + 40000, 500, 3000);
	site.calls++;
	site.cap_wait_ns += 3000;
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, cut + 60000));
	assert_int_equal(timeline__window(kit.tl, 2 * cut, &window), 0);
	t = picture__target(window, 0);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].cap_wait_ns, 3000);
	assert_int_equal(t->calls[0].cap_only_ns, 500);
	picture__free(window);
	timeline__free(kit.tl);
}

/*
 * No event shows when C code calls back into Haskell and when that returns: the samples alone
 * divide the time of such a call, together with what the thread did around it.
 */
static void test_divided_by_samples(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 10000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	for (int i = 0; i < 3; i++) {
		if (i < 2)
			mk_sample(&r, 7, T0 + 80000 + 5000 * i, WIRE_WHERE_SAFE_CALL, CFN(9),
				  CIP(CFN(9)), RET(HS(2)), STOP);
		else
			mk_sample(&r, 7, T0 + 90000, WIRE_WHERE_HASKELL, HS(5), IP(HS(5)), STOP);
		r.sample.site = SITE(1);
		r.sample.call_start_ns = T0 + 20000;
		put(&kit, &r);
	}
	put(&kit, mk_call(&r, 7, T0 + 20000, T0 + 96000, SITE(1), RET(HS(2)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 7);
	assert_int_equal(lane->cpu_ns, 100000);
	assert_int_equal(lane->states_ns[ST_SAFE_CALL_CPU], 50000);
	assert_int_equal(lane->states_ns[ST_HASKELL], 50000);
	assert_true(lane->sampled_states & 1U << ST_SAFE_CALL_CPU);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handover),	   cmocka_unit_test(test_paused),
		cmocka_unit_test(test_unknown_at_end),	   cmocka_unit_test(test_known_at_end),
		cmocka_unit_test(test_uncounted),	   cmocka_unit_test(test_row),
		cmocka_unit_test(test_many_calls),	   cmocka_unit_test(test_cap_waits),
		cmocka_unit_test(test_divided_by_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

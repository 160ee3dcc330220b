/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Captures that are unfinished because the session was killed: replayed in windows, they add up to
 * what they have in one report.
 */
#include "capture_kit.h"
#include "picture/make.h"

#define MS	1000000ULL
#define LAST_MS 1000 /* time of the last record */

static const struct timeline_opts opts = {.frequency_hz = 99, .start_ns = T0, .start_unix_ns = 1};

/* What all reports together have of thread 7. */
struct sums {
	unsigned reports;
	uint64_t states_ns[LANE_STATES], cpu_ns;
	uint64_t calls, call_ns, blocked_ns; /* of all threads, including open calls */
	uint64_t p50_ns;		     /* of a report with one site */
	uint64_t gc_ns;			     /* pauses of collections */
	bool exact;
};

static void add(void *ctx, const struct picture *pic)
{
	struct sums *sums = ctx;
	const struct pic_target *t = picture__target(pic, 0);
	const struct pic_lanes *threads = &t->lanes[LANE_THREAD];

	sums->reports++;
	sums->gc_ns += t->gc.inferred ? 0 : t->gc.pause_ns;
	for (size_t i = 0; i < t->n_calls; i++) {
		sums->calls += t->calls[i].calls;
		sums->call_ns += t->calls[i].wall_ns + t->calls[i].open_wall_ns;
		sums->blocked_ns += t->calls[i].blocked_ns;
		sums->p50_ns = t->calls[i].p50_ns;
		sums->exact &= t->calls[i].exact;
	}
	for (size_t i = 0; i < threads->n; i++) {
		check_lane(pic, &threads->v[i]);
		if (threads->v[i].tid != 7)
			continue;
		sums->cpu_ns += threads->v[i].cpu_ns;
		for (unsigned k = 0; k < LANE_STATES; k++)
			sums->states_ns[k] += threads->v[i].states_ns[k];
	}
}

static struct sums replay(uint64_t window_ns)
{
	struct sums sums = {.exact = true};

	replay_windows(window_ns, false, add, &sums);
	return sums;
}

static void begin(struct kit *kit, struct capture **ret_capture)
{
	union rec r;

	kit_capture(kit, &opts, ret_capture);
	kit_add(kit, PID, T0);
	for (pid_t tid = 7; tid <= 8; tid++)
		put(kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
}

/* Samples of thread 8, which is on the CPU all the time. */
static void put_samples(struct kit *kit, unsigned from_ms, unsigned to_ms)
{
	union rec r;

	for (unsigned at = from_ms; at <= to_ms; at += 10)
		put(kit,
		    mk_sample(&r, 8, T0 + at * MS, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
}

/* Thread 7 wakes after 195 ms. */
static void put_wake(struct kit *kit, unsigned where)
{
	union rec r;

	put_samples(kit, 10, 190);
	put(kit,
	    mk_off(&r, 7, T0 + 5 * MS, T0 + 195 * MS, T0 + 195 * MS, where, CIP(CFN(1)), STOP));
}

static struct sums check_same(void)
{
	static const uint64_t windows[] = {30 * MS, 100 * MS, 197 * MS, 240 * MS, 300 * MS};
	struct sums whole = replay(0), sums;

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		sums = replay(windows[i]);
		assert_true(sums.reports > 3);
		assert_int_equal(sums.cpu_ns, whole.cpu_ns);
		assert_int_equal(sums.gc_ns, whole.gc_ns);
		assert_int_equal(sums.calls, whole.calls);
		assert_int_equal(sums.call_ns, whole.call_ns);
		assert_int_equal(sums.exact, whole.exact);
		/* each window divides time on the CPU by its own samples */
		for (unsigned k = ST_FOREIGN_CPU + 1; k < LANE_STATES; k++)
			assert_int_equal(sums.states_ns[k], whole.states_ns[k]);
	}
	return whole;
}

/*
 * Ends the capture; returns the sums of the whole, after checking that those of windows are the
 * same.
 */
static struct sums end(struct kit *kit, struct capture *capture)
{
	capture__abort(capture, true);
	assert_int_equal(rename(partial, path), 0);
	timeline__free(kit->tl);
	return check_same();
}

/* Thread 7 wakes after 195 ms; `more` is another record of it, or NULL. */
static struct sums after_wake(const union rec *more)
{
	struct capture *capture;
	struct kit kit;

	begin(&kit, &capture);
	put_wake(&kit, WIRE_WHERE_NO_CAP);
	if (more)
		put(&kit, more);
	put_samples(&kit, 200, LAST_MS);
	return end(&kit, capture);
}

/*
 * A thread on the CPU would have been sampled, whether a cut comes soon after its last record or
 * not.
 */
static void test_silent(void **state)
{
	struct sums whole = after_wake(NULL);

	(void)state;
	assert_int_equal(whole.cpu_ns, 5 * MS);
	assert_int_equal(whole.states_ns[ST_IDLE], 995 * MS);
}

/* A thread that ends before its next sample has nothing missing. */
static void test_ends(void **state)
{
	union rec r;

	(void)state;
	assert_int_equal(after_wake(mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 245 * MS)).cpu_ns,
			 55 * MS);
}

/* Nor has one that is seen again. */
static void test_goes_on(void **state)
{
	struct sums whole;
	union rec r;

	(void)state;
	whole = after_wake(
		mk_sample(&r, 7, T0 + 335 * MS, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	assert_int_equal(whole.cpu_ns, 145 * MS);
	assert_int_equal(whole.states_ns[ST_IDLE], 855 * MS);
}

/* A thread's first record is of a call: it shows what the thread did before an earlier cut. */
static void test_begins(void **state)
{
	struct capture *capture;
	struct sums whole;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, &capture);
	put(&kit, mk_off(&r, 7, T0, T0, T0 + 25 * MS, WIRE_WHERE_UNKNOWN, STOP));
	put(&kit, mk_call(&r, 7, T0 + 35 * MS, T0 + 45 * MS, SITE(1), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 46 * MS));
	put_samples(&kit, 50, LAST_MS);
	whole = end(&kit, capture);
	assert_int_equal(whole.cpu_ns, 21 * MS);
	assert_int_equal(whole.states_ns[ST_UNKNOWN], 0);
}

/* A thread that sleeps in the runtime waits for none of the collections that come much later. */
static void test_later_collection(void **state)
{
	struct capture *capture;
	struct sums whole;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, &capture);
	put_wake(&kit, WIRE_WHERE_RTS);
	put_samples(&kit, 200, 690);
	put(&kit, mk_gc(&r, 8, WIRE_GC_START, T0 + 691 * MS));
	put(&kit, mk_gc(&r, 8, WIRE_GC_END, T0 + 695 * MS));
	put_samples(&kit, 700, LAST_MS);
	whole = end(&kit, capture);
	assert_int_equal(whole.states_ns[ST_GC_WAIT], 0);
	assert_int_equal(whole.states_ns[ST_RTS_BLOCKED], 995 * MS);
}

/* A collection that still goes on at the end is no pause, in any window. */
static void test_open_collection(void **state)
{
	struct capture *capture;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, &capture);
	put(&kit, mk_gc(&r, 8, WIRE_GC_START, T0 + 191 * MS));
	put(&kit, mk_gc(&r, 8, WIRE_GC_END, T0 + 205 * MS));
	put(&kit, mk_gc(&r, 8, WIRE_GC_START, T0 + 691 * MS));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 9, T0 + LAST_MS * MS));
	assert_int_equal(end(&kit, capture).gc_ns, 14 * MS);
}

static const struct wire_site_key key = {.site = SITE(1), .tgid = PID};

/* A call of thread 7, which sleeps for the first half of it. */
static void put_call(struct kit *kit, unsigned from_ms, unsigned to_ms)
{
	const uint64_t from = T0 + from_ms * MS, wake = from + (to_ms - from_ms) * MS / 2;
	union rec r;

	mk_off(&r, 7, from, wake, wake, WIRE_WHERE_SAFE_CALL, STOP);
	r.off.site = SITE(1);
	r.off.call_start_ns = from;
	put(kit, &r);
	mk_call(&r, 7, from, T0 + to_ms * MS, SITE(1), STOP);
	r.call.blocked_ns = (to_ms - from_ms) * MS / 2;
	put(kit, &r);
}

/*
 * Calls that are not in the counters are taken from the records: one within a window, others across
 * cuts. The counters have the first call, and one that was too short for a record.
 */
static void test_calls(void **state)
{
	static const struct wire_site counters = {
		.calls = 2, .wall_ns = 6 * MS, .blocked_ns = 2 * MS};
	struct capture *capture;
	struct sums whole;
	struct kit kit;

	(void)state;
	for (int counted = 0; counted <= 1; counted++) {
		begin(&kit, &capture);
		put_call(&kit, 2, 6);
		if (counted)
			assert_int_equal(intake__site_counters(kit.in, &key, &counters, 0), 0);
		put_call(&kit, 31, 59);
		put_call(&kit, 85, 125);
		put_call(&kit, 130, 330);
		put_samples(&kit, 200, LAST_MS);
		whole = end(&kit, capture);
		assert_int_equal(whole.calls, 4 + counted);
		assert_int_equal(whole.call_ns, (272 + 2 * counted) * MS);
		assert_int_equal(whole.blocked_ns, 136 * MS);
		assert_false(whole.exact);
		/* of 4, 28, 40 and 200 ms, in steps of an eighth */
		if (!counted)
			assert_in_range(whole.p50_ns, 28 * MS * 7 / 8, 28 * MS * 9 / 8);
	}
}

/*
 * A call that ends right before its counters are read, and whose record comes right after, counts
 * once.
 */
static void test_late_record(void **state)
{
	static const struct wire_site counters = {
		.calls = 2, .wall_ns = 34 * MS, .blocked_ns = 17 * MS};
	struct capture *capture;
	struct sums whole;
	struct kit kit;

	(void)state;
	begin(&kit, &capture);
	put_call(&kit, 2, 6);
	assert_int_equal(intake__site_counters(kit.in, &key, &counters, T0 + 62 * MS), 0);
	put_call(&kit, 31, 61);
	put_call(&kit, 85, 125);
	put_samples(&kit, 200, LAST_MS);
	whole = end(&kit, capture);
	assert_int_equal(whole.calls, 3);
	assert_int_equal(whole.call_ns, 74 * MS);
	assert_int_equal(whole.blocked_ns, 37 * MS);
	assert_false(whole.exact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_begins),
		cmocka_unit_test(test_later_collection),
		cmocka_unit_test(test_open_collection),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_late_record),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

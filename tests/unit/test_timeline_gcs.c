/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collections: their parts, who waits for them, and what they wait for. */
#include "picture/figures.h"
#include "picture/make.h"
#include "test_timeline_gc.h"

static void test_parts(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 10000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 15000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 35000);
	/* the end of this collection is lost, and the start of the next one */
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 40000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 41000);
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 50000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 51000);
	/* a runtime without threads has nobody to wait for */
	put_gc(&kit, 7, WIRE_GC_START, T0 + 60000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 61000);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	t = finish(&kit);
	assert_int_equal(t->n_gcs, 2);
	assert_int_equal(t->gcs[0].start_ns, T0 + 15000);
	assert_int_equal(t->gcs[0].end_ns, T0 + 35000);
	assert_int_equal(t->gcs[0].sync_ns, 5000);
	assert_int_equal(t->gcs[0].generation, 1);
	assert_int_equal(t->gcs[0].number, 42);
	assert_int_equal(t->gcs[0].tid, 7);
	assert_true(t->gcs[1].sync_ns == UINT64_MAX);
	assert_int_equal(t->gc.count, 2);
	assert_int_equal(t->gc.pause_ns, 21000);
	assert_int_equal(t->gc.max_pause_ns, 20000);
	/* the leader works for the collection from the first moment on */
	assert_int_equal(lane_of(t, 7)->states_ns[ST_GC_WORK], 26000);
	timeline__free(kit.tl);
}

/* With a probe on the end alone: the rest comes from the runtime's own notes. */
static void test_by_ends(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put_end(&kit, 7, T0 + 10000, T0 + 15000, T0 + 35000);
	/* the runtime's time of the start counts, even if the start was seen */
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 40000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 45000);
	put_end(&kit, 7, T0 + 40000, T0 + 46000, T0 + 50000);
	/* the note is of an older collection */
	put_end(&kit, 7, T0 + 40000, T0 + 60000, T0 + 61000);
	/* the start was seen before the probe on starts came off */
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 70000);
	put_end(&kit, 7, T0 + 70000, T0 + 71000, T0 + 75000);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	t = finish(&kit);
	assert_int_equal(t->n_gcs, 4);
	assert_int_equal(t->gcs[0].start_ns, T0 + 15000);
	assert_int_equal(t->gcs[0].sync_ns, 5000);
	assert_int_equal(t->gcs[1].start_ns, T0 + 46000);
	assert_true(t->gcs[2].sync_ns == UINT64_MAX);
	assert_int_equal(t->gcs[3].sync_ns, 1000);
	assert_true(t->gc.known && !t->gc.inferred);
	assert_int_equal(t->gc.count, 4);
	assert_int_equal(t->gc.pause_ns, 20000 + 4000 + 1000 + 4000);
	timeline__free(kit.tl);
}

/*
 * More collections than there is room for: as if the probes had come off, and reported as missing.
 */
static void test_too_many(void **state)
{
	const uint64_t room = 1 << 20, n = room + 5;
	struct kit kit;
	union rec r;
	const struct pic_target *t;
	bool said = false;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 50, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	for (uint64_t i = 1; i <= n; i++)
		put_end(&kit, 7, 0, T0 + i * 1000, T0 + i * 1000 + 100);
	put_gc(&kit, 7, WIRE_GC_START, T0 + (n + 1) * 1000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + (n + 1) * 1000 + 100);
	put_gc(&kit, 7, WIRE_GC_OFF, T0 + (n + 2) * 1000);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + (n + 3) * 1000));
	t = finish(&kit);
	assert_int_equal(t->n_gcs, room);
	assert_false(t->gc.known);
	assert_int_equal(t->gc.observed_count, room);
	assert_int_equal(t->gc.observed_pause_ns, 100 * room);
	assert_int_equal(t->gc.observed_ns, 1000 * (room + 1));
	for (size_t i = 0; i < t->n_missing; i++)
		said |= strstr(t->missing[i], "more than a million") != NULL;
	assert_true(said);
	timeline__free(kit.tl);
}

/*
 * The worker gives its capability up, and waits for the end of the collection without being idle.
 */
static void test_given_up(void **state)
{
	struct kit kit;
	union rec r;
	const struct pic_lane *lane;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	mk_sample(&r, 8, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	put(&kit, &r);
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 10000);
	mk_off(&r, 8, T0 + 12000, T0 + 40000, T0 + 40000, WIRE_WHERE_NO_CAP, STOP);
	put(&kit, &r);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 15000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 35000);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 8, T0 + 40000));
	finish(&kit);
	lane = lane_of(picture__target(kit.pic, 0), 8);
	check_slice(kit.pic, lane, lane->n_slices - 2, T0 + 12000, T0 + 35000, ST_GC_WAIT,
		    "[GC];[waiting for GC]");
	check_slice(kit.pic, lane, lane->n_slices - 1, T0 + 35000, T0 + 40000, ST_IDLE, "");
	assert_int_equal(picture__target(kit.pic, 0)->gc.wait_ns, 23000);
	timeline__free(kit.tl);
}

/*
 * Thread 8 is in an unsafe call when 7 wants to collect; 9 was in one, too, but came back earlier.
 */
static void held_up(bool synced, uint64_t want8, uint64_t want9)
{
	struct kit kit;
	union rec r;
	const struct pic_target *t;

	kit_new(&kit);
	for (pid_t tid = 8; tid <= 9; tid++) {
		uint64_t back = T0 + (tid == 8 ? 60000 : 30000);

		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
		mk_off(&r, tid, T0 + 2000, back, back, WIRE_WHERE_HASKELL, CIP(CFN(tid)),
		       CALLED(HS(1)), STOP);
		r.off.syscall = 35;
		r.off.ip = CFN(tid);
		r.off.rts.cap_no = (uint32_t)(tid - 8);
		put(&kit, &r);
		mk_off(&r, tid, back + 1000, T0 + 70000, T0 + 70000, WIRE_WHERE_RTS, STOP);
		r.off.rts.cap_no = (uint32_t)(tid - 8);
		put(&kit, &r);
	}
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	if (synced)
		put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 10000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 61000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 70000);
	t = finish(&kit);
	assert_int_equal(t->n_unsafe_calls, 2);
	assert_string_equal(t->unsafe_calls[0].function, "c8");
	assert_int_equal(t->unsafe_calls[0].held_up_gc_ns, want8);
	assert_int_equal(t->unsafe_calls[1].held_up_gc_ns, want9);
	timeline__free(kit.tl);
}

static void test_held_up(void **state)
{
	(void)state;
	held_up(true, 50000, 0);
	/* the time of the request is not known */
	held_up(false, UINT64_MAX, UINT64_MAX);
}

/* `samples` samples of each of two threads, of which the first `runtime` are in the runtime. */
static const struct pic_target *without_probes(struct kit *kit, size_t runtime, size_t samples)
{
	union rec r;

	kit_new(kit);
	for (pid_t tid = 7; tid <= 8; tid++) {
		put(kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
		for (size_t i = 0; i < samples; i++) {
			bool in = i < runtime;
			uint64_t ip = in ? RTS(1) : HS(1);

			mk_sample(&r, tid, T0 + 5000 + i * 10000,
				  in ? WIRE_WHERE_RTS : WIRE_WHERE_HASKELL, ip, IP(ip), STOP);
			r.sample.rts.cap_no = (uint32_t)(tid - 7);
			put(kit, &r);
		}
		put(kit, mk_event(&r, WIRE_THREAD_EXIT, tid, T0 + 10000 * samples));
	}
	return finish(kit);
}

/*
 * Without probes: an upper limit of the time that collections took, and nothing about their number.
 */
static void test_inferred(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	double share;

	(void)state;
	/* both threads are in the runtime, or neither: no longer than each of them */
	t = without_probes(&kit, 10, 40);
	assert_true(t->gc.known && t->gc.inferred);
	assert_int_equal(t->gc.count, 0);
	assert_int_equal(t->gc.max_pause_ns, 0);
	assert_int_equal(t->n_gcs, 0);
	share = (double)t->gc.pause_ns / 400000;
	assert_true(share > 0.35 && share < 0.42);
	timeline__free(kit.tl);

	/* no sample in the runtime: a short pause may have been missed, but not a long one */
	t = without_probes(&kit, 0, 40);
	assert_true(t->gc.known && t->gc.pause_ns > 0 && t->gc.pause_ns < 400000 / 10);
	timeline__free(kit.tl);
	/* all samples in the runtime: the whole time */
	t = without_probes(&kit, 40, 40);
	assert_int_equal(t->gc.pause_ns, 400000);
	timeline__free(kit.tl);
	/* too few samples for any conclusion */
	t = without_probes(&kit, 2, 4);
	assert_false(t->gc.known);
	timeline__free(kit.tl);
}

/* While one thread is in the runtime, another one has no CPU for a while: if it lost its CPU in
 * Haskell code, there is no collection at that time. */
static uint64_t other_off(enum wire_where where, uint64_t ip)
{
	const struct pic_target *t;
	struct kit kit;
	uint64_t pause;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	for (size_t i = 0; i < 40; i++)
		put(&kit, mk_sample(&r, 7, T0 + 5000 + i * 10000, WIRE_WHERE_RTS, RTS(1),
				    IP(RTS(1)), STOP));
	/* it was runnable all the time */
	mk_off(&r, 8, T0 + 100, T0 + 100, T0 + 399000, where, IP(ip), STOP);
	r.off.rts.cap_no = 1;
	put(&kit, &r);
	for (pid_t tid = 7; tid <= 8; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, tid, T0 + 400000));
	t = finish(&kit);
	assert_true(t->gc.known && t->gc.inferred);
	assert_true(lane_of(t, 8)->states_ns[ST_PREEMPTED] > 390000);
	pause = t->gc.pause_ns;
	timeline__free(kit.tl);
	return pause;
}

/* Half of what ran was in the runtime, also when it lost its CPU for three times as long. */
static void check_alone_off(void)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (size_t i = 0; i < 40; i++)
		put(&kit, mk_sample(&r, 7, T0 + 5000 + i * 10000,
				    i % 2 ? WIRE_WHERE_RTS : WIRE_WHERE_HASKELL,
				    i % 2 ? RTS(1) : HS(1), IP(i % 2 ? RTS(1) : HS(1)), STOP));
	put(&kit, mk_off(&r, 7, T0 + 400000, T0 + 400000, T0 + 1600000, WIRE_WHERE_RTS, IP(RTS(1)),
			 STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 1600000));
	t = finish(&kit);
	assert_true(t->gc.known && t->gc.inferred);
	assert_true(t->gc.pause_ns >= 800000 && t->gc.pause_ns <= 1450000);
	timeline__free(kit.tl);
}

static void test_inferred_while_preempted(void **state)
{
	(void)state;
	check_alone_off();
	assert_true(other_off(WIRE_WHERE_RTS, RTS(1)) > 390000);
	assert_true(other_off(WIRE_WHERE_HASKELL, HS(1)) < 60000);
}

/* The probes came off in the middle of a collection. */
static void test_came_off(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_gc(&kit, 7, WIRE_GC_START, T0 + 15000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 35000);
	put_gc(&kit, 7, WIRE_GC_START, T0 + 40000);
	put_gc(&kit, 7, WIRE_GC_OFF, T0 + 45000);
	for (size_t i = 0; i < 40; i++)
		put(&kit, mk_sample(&r, 7, T0 + 50000 + i * 1000,
				    i % 2 ? WIRE_WHERE_RTS : WIRE_WHERE_HASKELL,
				    i % 2 ? RTS(1) : HS(1), IP(i % 2 ? RTS(1) : HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 100000));
	t = finish(&kit);
	assert_true(t->gc.known && t->gc.inferred);
	assert_int_equal(t->gc.count, 0);
	/* the one that is known, and the share of the time after it that the samples allow */
	assert_true(t->gc.pause_ns >= 20000 + 65000 / 2);
	assert_true(t->gc.pause_ns <= 20000 + 65000 * 3 / 4);
	assert_int_equal(t->gc.observed_count, 1);
	assert_int_equal(t->gc.observed_pause_ns, 20000);
	assert_int_equal(t->gc.observed_ns, 45000);
	assert_int_equal(t->n_gcs, 1);
	/* the time after it is not all one collection */
	assert_true(lane_of(t, 7)->states_ns[ST_HASKELL] > 20000);
	timeline__free(kit.tl);
}

/* A collection begins and its end never comes; the caller puts what is seen meanwhile. */
static void begin_without_end(struct kit *kit)
{
	union rec r;

	kit_new(kit);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put(kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put_gc(kit, 7, WIRE_GC_SYNC, T0 + 10000);
	put_gc(kit, 7, WIRE_GC_START, T0 + 15000);
}

/* Checks the leader's time in the collection, and the pause, up to the cut. */
static void check_without_end(struct kit *kit, uint64_t work, uint64_t pause)
{
	const struct pic_target *t;
	struct picture *window;

	assert_int_equal(timeline__window(kit->tl, T0 + 100000, &window), 0);
	t = picture__target(window, 0);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_GC_WORK], work);
	assert_int_equal(lane_of(t, 8)->states_ns[ST_GC_WORK], 0);
	assert_int_equal(t->gc.count, 0);
	assert_int_equal(t->gc.pause_ns, pause);
	picture__free(window);
	timeline__free(kit->tl);
}

/* The leader runs Haskell code again: the end was lost. */
static void test_end_lost(void **state)
{
	struct kit kit;
	union rec r;

	(void)state;
	begin_without_end(&kit);
	for (uint64_t at = T0 + 30000; at < T0 + 100000; at += 10000)
		put(&kit, mk_sample(&r, 7, at, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	check_without_end(&kit, 0, 0);

	/* shown by where it was switched out */
	begin_without_end(&kit);
	mk_off(&r, 7, T0 + 30000, T0 + 30000, T0 + 40000, WIRE_WHERE_HASKELL, IP(HS(1)), STOP);
	r.off.prev_state = 0;
	r.off.ip = HS(1);
	put(&kit, &r);
	check_without_end(&kit, 0, 0);

	/* the other probe's record is lost, too */
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 10000);
	put(&kit, mk_sample(&r, 7, T0 + 30000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	check_without_end(&kit, 0, 0);
}

/*
 * The collection goes on: what is seen is older, or another thread's, or no Haskell code that runs.
 */
static void test_goes_on(void **state)
{
	struct kit kit;
	union rec r;

	(void)state;
	begin_without_end(&kit);
	put(&kit, mk_sample(&r, 7, T0 + 14000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 15000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 30000, WIRE_WHERE_RTS, GCFN(1), CIP(GCFN(1)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 40000, WIRE_WHERE_RTS, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_sample(&r, 8, T0 + 50000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	/* short stays from before the collection, which the kernel held back */
	mk_off(&r, 7, T0 + 60000, T0 + 60000, T0 + 61000, WIRE_WHERE_HASKELL, STOP);
	r.off.prev_state = 0;
	r.off.ip = HS(1);
	put(&kit, &r);
	check_without_end(&kit, 89000, 85000);
}

/*
 * The thread was switched out at the probe on the start, and a cut came meanwhile: the runtime
 * noted a later start than the probe, and the windows together have no more of the pause than that.
 */
static void test_cut_before_start(void **state)
{
	/*
	 * relative to the cut: the probe, the runtime's start, the end; then each window's part of
	 * the pause
	 */
	static const struct {
		int64_t probe, start, end;
		uint64_t before, after;
	} v[] = {
		{-20000, -20000, 10000, 20000, 10000}, {-20000, -12000, 10000, 20000, 2000},
		{-5000, 1000, 20000, 5000, 14000},     {-5000, 18000, 20000, 5000, 0},
		{-20000, -21000, 10000, 20000, 10000},
	};
	const uint64_t cut = T0 + 50000;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		const struct pic_target *t;
		struct picture *window;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
		put_gc(&kit, 7, WIRE_GC_SYNC, T0 + 20000);
		put_gc(&kit, 7, WIRE_GC_START, cut + (uint64_t)v[i].probe);
		assert_int_equal(timeline__window(kit.tl, cut, &window), 0);
		t = picture__target(window, 0);
		assert_int_equal(t->gc.count, 0);
		assert_int_equal(t->gc.pause_ns, v[i].before);
		picture__free(window);
		put_end(&kit, 7, T0 + 20000, cut + (uint64_t)v[i].start, cut + (uint64_t)v[i].end);
		kit.pic = timeline__picture(kit.tl);
		t = finish(&kit);
		assert_int_equal(t->gc.count, 1);
		assert_int_equal(t->gc.pause_ns, v[i].after);
		timeline__free(kit.tl);
	}
}

struct parts {
	uint64_t off_ns, now_ns; /* of the closed parts, and of the one that goes on */
	uint64_t missed, now_missed;
	bool off;
};

static void take_figures(void *ctx, const struct figures *f, bool closed)
{
	struct parts *parts = ctx;

	parts->off_ns += closed ? f->gc_off_ns : 0;
	parts->now_ns = closed ? 0 : f->gc_off_ns;
	parts->missed += closed ? f->gc_missed : 0;
	parts->now_missed = closed ? 0 : f->gc_missed;
	parts->off = f->gc_off;
}

/* The time since the probes came off; each window has its part. */
static void test_figures_when_off(void **state)
{
	struct parts parts = {0};
	struct picture *window;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	timeline__set_figures(kit.tl, take_figures, &parts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_gc(&kit, 7, WIRE_GC_START, T0 + 15000);
	put_gc(&kit, 7, WIRE_GC_END, T0 + 35000);
	assert_int_equal(timeline__figures(kit.tl, T0 + 40000), 0);
	assert_false(parts.off);
	assert_int_equal(parts.now_ns, 0);
	put_gc(&kit, 7, WIRE_GC_OFF, T0 + 45000);
	assert_int_equal(timeline__figures(kit.tl, T0 + 50000), 0);
	assert_true(parts.off);
	assert_int_equal(parts.now_ns, 5000);
	assert_int_equal(timeline__window(kit.tl, T0 + 60000, &window), 0);
	assert_int_equal(parts.off_ns, 15000);
	picture__free(window);
	assert_int_equal(timeline__figures(kit.tl, T0 + 70000), 0);
	assert_true(parts.off);
	assert_int_equal(parts.now_ns, 10000);
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, T0 + 80000));
	assert_int_equal(timeline__figures(kit.tl, T0 + 90000), 0);
	assert_int_equal(parts.now_ns, 20000);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(parts.off_ns, 35000);
	timeline__free(kit.tl);
}

static void put_number(struct kit *kit, uint64_t number, uint64_t end)
{
	union rec r;

	mk_gc(&r, 7, WIRE_GC_END, end);
	r.gc.start_ns = end - 1000;
	r.gc.number = number;
	put(kit, &r);
}

/* What the runtime counted, and no probe saw, is in the figures as soon as an end shows it; each
 * window has its part. */
static void test_figures_of_missed(void **state)
{
	struct parts parts = {0};
	struct picture *window;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	timeline__set_figures(kit.tl, take_figures, &parts);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_number(&kit, 10, T0 + 10000);
	put_number(&kit, 11, T0 + 20000);
	assert_int_equal(timeline__figures(kit.tl, T0 + 25000), 0);
	assert_int_equal(parts.now_missed, 0);
	put_number(&kit, 17, T0 + 30000);
	assert_int_equal(timeline__figures(kit.tl, T0 + 35000), 0);
	assert_int_equal(parts.now_missed, 5);
	assert_int_equal(timeline__window(kit.tl, T0 + 40000, &window), 0);
	assert_int_equal(parts.missed, 5);
	assert_int_equal(picture__target(window, 0)->gc.missed, 5);
	picture__free(window);
	put_number(&kit, 18, T0 + 50000);
	assert_int_equal(timeline__figures(kit.tl, T0 + 55000), 0);
	assert_int_equal(parts.now_missed, 0);
	put_number(&kit, 20, T0 + 60000);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(parts.missed, 6);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures_of_missed),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_by_ends),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_inferred),
		cmocka_unit_test(test_inferred_while_preempted),
		cmocka_unit_test(test_came_off),
		cmocka_unit_test(test_figures_when_off),
		cmocka_unit_test(test_cut_before_start),
		cmocka_unit_test(test_end_lost),
		cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests_name("timeline_gcs", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Windows, and what is reported late: records that were held back while a process was looked at
 * come after a cut that they precede, and the ends of some threads never come.
 */
#include "intake/seen.h"
#include "test_timeline_kit.h"

#define CUT (T0 + 500000)

static void put_counters(struct kit *kit, uint64_t calls, uint64_t wall_ns)
{
	const struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	const struct wire_site site = {
		.calls = calls, .wall_ns = wall_ns, .min_ns = 1, .max_ns = wall_ns};

	assert_int_equal(intake__site_counters(kit->in, &key, &site, 0), 0);
}

/* What the kernel had counted of a call by the cut is not subtracted from what it counts later. */
static void test_call(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;
	/* before that, counters have to wait for what was held back since the process joined */
	const uint64_t cut = T0 + 2000000000ULL;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put_counters(&kit, 1, 300000);
	t = kit_window(&kit, cut, &pic);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].wall_ns, 300000);
	picture__free(pic);
	put(&kit, mk_call(&r, 7, cut - 310000, cut - 10000, SITE(1), STOP));
	put(&kit, mk_call(&r, 7, cut + 10000, cut + 110000, SITE(1), STOP));
	put_counters(&kit, 2, 400000);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 1);
	assert_int_equal(t->calls[0].calls, 1);
	assert_int_equal(t->calls[0].wall_ns, 100000);
	for (size_t i = 0; i < t->n_flows; i++)
		assert_true(t->flows[i].start_ns <= t->flows[i].end_ns);
	timeline__free(kit.tl);
}

static void put_state(struct kit *kit, uint64_t open_since, uint64_t blocked_ns)
{
	struct wire_thread state = {.tgid = PID, .epoch = 1, .on_since_ns = T0 + 1};

	if (open_since) {
		state.depth = 1;
		state.open[0] = (struct wire_open){
			.start_ns = open_since, .site = SITE(1), .incall = 0x1000};
	}
	state.blocked_ns = blocked_ns;
	assert_int_equal(intake__thread_state(kit->in, 7, &state), 0);
}

/*
 * Whenever a call ends, and whether a record or only the counters show it, the windows' parts of it
 * add up to what the counters have. seen_open: the states at the cut showed it. drained: its record
 * came after those, and before the window was made.
 */
static void call_over_a_cut(bool seen_open, bool recorded, bool at_exit, bool drained)
{
	const uint64_t cut = T0 + 2000000000ULL, begin = cut - 300000, end = cut + 100000;
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	uint64_t wall;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_call(&r, 7, T0 + 1000, T0 + 51000, SITE(1), STOP));
	put_counters(&kit, 1, 50000);
	put_state(&kit, seen_open ? begin : 0, 0);
	if (drained)
		put(&kit, mk_call(&r, 7, begin, end, SITE(1), STOP));
	t = kit_window(&kit, cut, &pic);
	assert_int_equal(t->calls[0].calls, 1);
	assert_int_equal(t->calls[0].open_at_end, seen_open || drained);
	wall = t->calls[0].wall_ns + t->calls[0].open_wall_ns;
	assert_int_equal(wall, seen_open || drained ? 350000 : 50000);
	picture__free(pic);
	if (recorded && !drained)
		put(&kit, mk_call(&r, 7, begin, end, SITE(1), STOP));
	put_counters(&kit, 2, 450000);
	if (at_exit)
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, end + 1000));
	else
		put_state(&kit, 0, 0);
	t = finish(&kit);
	assert_int_equal(t->calls[0].calls, 1);
	assert_int_equal(t->calls[0].open_at_start, seen_open || recorded);
	assert_int_equal(wall + t->calls[0].wall_ns, 450000);
	timeline__free(kit.tl);
}

static void test_call_over_a_cut(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++)
		if (!(i & 8) || i & 2)
			call_over_a_cut(i & 1, i & 2, i & 4, i & 8);
}

/* The calls of a picture's only site, and their time. */
static struct pic_call calls_of(const struct picture *pic)
{
	const struct pic_target *t = picture__target(pic, 0);

	assert_true(t->n_calls <= 1);
	return t->n_calls ? t->calls[0] : (struct pic_call){0};
}

/*
 * A call that goes on at the cut, and ends before the records are drained and the counters are
 * read: the counters include it, so that no window has it as an open call. In the first second the
 * counters are not used, and each window has its part. early: it was open at an earlier cut, too.
 */
static void call_ends_before_the_drain(bool first_second, bool early)
{
	const uint64_t cut = T0 + (first_second ? 500000ULL : 3000000000ULL);
	const uint64_t begin = early ? cut - 900000000 : cut - 300000, end = cut + 100000;
	const uint64_t whole = end - begin;
	struct pic_call before = {0}, now, after;
	struct picture *pic;
	struct kit kit;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	if (early) {
		put_state(&kit, begin, 0);
		kit_window(&kit, cut - 800000000, &pic);
		before = calls_of(pic);
		assert_int_equal(before.open_at_end, 1);
		assert_int_equal(before.open_wall_ns, 100000000);
		picture__free(pic);
	}
	put(&kit, mk_call(&r, 7, begin, end, SITE(1), STOP));
	put_counters(&kit, 1, whole);
	put_state(&kit, 0, 0);
	kit_window(&kit, cut, &pic);
	now = calls_of(pic);
	picture__free(pic);
	put_counters(&kit, 1, whole);
	put_state(&kit, 0, 0);
	if (first_second) {
		kit_window(&kit, T0 + 2000000000, &pic);
		after = calls_of(pic);
		picture__free(pic);
	} else {
		assert_int_equal(timeline__finish(kit.tl, cut + 1000000), 0);
		after = calls_of(kit.pic);
	}
	assert_int_equal(now.calls, !first_second);
	assert_int_equal(now.open_at_start, early);
	assert_int_equal(now.open_at_end, first_second);
	assert_int_equal(now.open_wall_ns, first_second ? 300000 : 0);
	assert_int_equal(after.calls, first_second);
	assert_int_equal(after.open_at_start, first_second);
	assert_int_equal(after.open_at_end, 0);
	assert_int_equal(before.wall_ns + before.open_wall_ns + now.wall_ns + now.open_wall_ns +
				 after.wall_ns + after.open_wall_ns,
			 whole);
	timeline__free(kit.tl);
}

static void test_call_ends_before_the_drain(void **state)
{
	(void)state;
	call_ends_before_the_drain(false, false);
	call_ends_before_the_drain(false, true);
	call_ends_before_the_drain(true, false);
}

/*
 * The call is open at two cuts, and ends after the counters and states for the second one were
 * read, which do not include the end.
 */
static void test_call_ends_in_the_drain(void **state)
{
	const uint64_t cut = T0 + 3000000000ULL, begin = cut - 1300000000, end = cut + 100000;
	struct pic_call calls;
	struct picture *pic;
	uint64_t wall = 0;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_call(&r, 7, T0 + 1000, T0 + 51000, SITE(1), STOP));
	for (uint64_t at = cut - 1000000000; at <= cut; at += 1000000000) {
		put_counters(&kit, 1, 50000);
		put_state(&kit, begin, 0);
		if (at == cut)
			put(&kit, mk_call(&r, 7, begin, end, SITE(1), STOP));
		kit_window(&kit, at, &pic);
		calls = calls_of(pic);
		assert_int_equal(calls.open_at_end, 1);
		wall += calls.wall_ns + calls.open_wall_ns;
		assert_int_equal(wall, 50000 + at - begin);
		picture__free(pic);
	}
	put_counters(&kit, 2, 50000 + end - begin);
	put_state(&kit, 0, 0);
	assert_int_equal(timeline__finish(kit.tl, cut + 1000000), 0);
	calls = calls_of(kit.pic);
	assert_int_equal(wall + calls.wall_ns + calls.open_wall_ns, 50000 + end - begin);
	timeline__free(kit.tl);
}

/* The end of a process that was held back, too. */
static void test_end(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	t = kit_window(&kit, CUT, &pic);
	assert_non_null(t);
	picture__free(pic);
	put(&kit, mk_sample(&r, 7, CUT - 20000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_off(&r, 7, CUT - 15000, CUT - 12000, CUT - 11000, WIRE_WHERE_HASKELL, STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, CUT - 10000));
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, CUT - 10000));
	t = finish(&kit);
	assert_string_equal(t->end, "exited");
	assert_int_equal(t->quality.samples, 1);
	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		assert_int_equal(t->lanes[LANE_THREAD].v[i].end_ns, CUT);
	timeline__free(kit.tl);
}

/* A process's end that was drained by the cut but is later: both windows show how it ended. */
static void end_after_the_cut(const char *end, const char *status, const char *word, int code,
			      int signal)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, CUT - 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	assert_int_equal(intake__end_target(kit.in, PID, end, CUT + 1000), 0);
	t = kit_window(&kit, CUT, &pic);
	assert_string_equal(t->end, word);
	picture__free(pic);
	if (status)
		assert_int_equal(intake__end_target(kit.in, PID, status, CUT + 2000), 0);
	t = finish(&kit);
	assert_string_equal(t->end, status && !strncmp(status, "killed", 6) ? "killed" : word);
	assert_int_equal(t->exit_code, code);
	assert_int_equal(t->exit_signal, signal);
	timeline__free(kit.tl);
}

static void test_end_after_the_cut(void **state)
{
	(void)state;
	end_after_the_cut("exited", "exited 3", "exited", 3, 0);
	end_after_the_cut("exited", "killed 9", "exited", -1, 9);
	end_after_the_cut("exited", NULL, "exited", -1, 0);
	end_after_the_cut("exited 4", NULL, "exited", 4, 0);
	end_after_the_cut("killed 15", NULL, "killed", -1, 15);
	end_after_the_cut("exec", NULL, "exec", -1, 0);
}

static size_t lanes_of(const struct pic_target *t, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		n += t->lanes[LANE_THREAD].v[i].tid == tid;
	return n;
}

/*
 * A thread that begins while the kernel's map is read at the cut is in the map before its record
 * comes.
 */
static void test_begin(void **state)
{
	const struct wire_thread born = {.tgid = PID, .off_since_ns = CUT - 1000, .epoch = 1};
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_FOREIGN, 'S');
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;
	union rec r;

	(void)state;
	kit_new(&kit);
	put_snap(&kit, &snap, 1, false);
	assert_int_equal(intake__thread_state(kit.in, 9, &born), 0);
	t = kit_window(&kit, CUT, &pic);
	assert_int_equal(lanes_of(t, 9), 1);
	assert_int_equal(lane_of(t, 9)->start_ns, CUT - 1000);
	picture__free(pic);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 9, CUT - 1000));
	put(&kit, mk_sample(&r, 9, CUT + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 9, CUT + 9000));
	/* and another thread with that tid */
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 9, CUT + 20000));
	t = finish(&kit);
	assert_int_equal(lanes_of(t, 9), 2);
	timeline__free(kit.tl);
}

/*
 * After an exec the thread that called it has no end of its own; its records are dropped all the
 * same.
 */
static void test_room(void **state)
{
	struct kit kit;
	struct picture *pic;
	union rec r;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t at = T0 + 10000 * i;

		for (uint64_t k = 1; k < 10; k++)
			put(&kit, mk_sample(&r, PID, at + 1000 * k, WIRE_WHERE_HASKELL, HS(1),
					    IP(HS(1)), STOP));
		assert_int_equal(intake__n_records(kit.in), 9);
		put(&kit, mk_event(&r, WIRE_EXEC, PID, at + 9500));
		kit_window(&kit, at + 10000, &pic);
		picture__free(pic);
		assert_int_equal(intake__n_targets(kit.in), 0);
		assert_int_equal(intake__n_records(kit.in), 0);
		kit_add(&kit, PID, at + 10000);
	}
	timeline__free(kit.tl);
}

/* What the session has cost by a cut is not in later windows, whoever joins or has left. */
static void test_cost(void **state)
{
	struct intake_cost cost = {.user_cpu_ns = 7000, .bpf_ns = 900, .bpf_ns_known = true};
	struct kit kit;
	struct picture *pic;
	const struct pic_target *t;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(intake__end_target(kit.in, PID, "exited 0", CUT - 5), 0);
	t = kit_window(&kit, CUT, &pic);
	assert_int_equal(t->user_cpu_ns, 7000);
	assert_int_equal(t->bpf_ns, 900);
	picture__free(pic);
	kit_add(&kit, PID, CUT + 10);
	cost.user_cpu_ns += 300;
	cost.bpf_ns += 20;
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = finish(&kit);
	assert_int_equal(t->user_cpu_ns, 300);
	assert_int_equal(t->bpf_ns, 20);
	timeline__free(kit.tl);
}

/* ── anything, in any order ──────────────────────────────────────────────────────────────── */

#define ROUNDS 300
#define EVENTS 400
#define GCS    60 /* of which there are three records each */

struct late {
	uint64_t comes_ns;
	union rec r;
};

static uint64_t below(uint64_t n)
{
	return n ? (uint64_t)random() % n : 0;
}

static int by_coming(const void *pa, const void *pb)
{
	const struct late *a = pa, *b = pb;

	return (a->comes_ns > b->comes_ns) - (a->comes_ns < b->comes_ns);
}

static void make(union rec *r, uint64_t at)
{
	static const unsigned types[] = {WIRE_THREAD_NEW, WIRE_THREAD_EXIT, WIRE_PROC_EXIT};
	uint64_t start = at - below(at - T0);
	pid_t tid = (pid_t)(7 + below(4));

	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		mk_sample(r, tid, at, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
		break;
	case 3:
		mk_sample(r, tid, at, WIRE_WHERE_SAFE_CALL, CFN(2), CIP(CFN(2)), STOP);
		break;
	case 4:
	case 5:
	case 6:
		mk_off(r, tid, start, start + below(at - start), at, (unsigned)below(6), STOP);
		break;
	case 7:
	case 8:
		mk_call(r, tid, start, at, SITE(below(3)), STOP);
		break;
	default:
		mk_event(r, types[below(20) ? below(2) : 2], tid, at);
		break;
	}
}

/* Collections: in their own order, but some of them late. */
static void make_gcs(struct late *v, size_t n)
{
	static const unsigned points[] = {WIRE_GC_SYNC, WIRE_GC_START, WIRE_GC_END};
	uint64_t at = T0, comes = T0;

	for (size_t i = 0; i < n; i++) {
		at += 1 + below((END - T0) / n);
		comes = MAX(comes, at + (below(8) ? 0 : below(200000))) + 1;
		mk_gc(&v[i].r, (pid_t)(7 + i / 3 % 4), points[i % 3], at);
		v[i].comes_ns = comes;
	}
}

static void check_window(const struct picture *pic)
{
	const struct pic_session *session = picture__session(pic);
	uint64_t wall = session->end_ns - session->start_ns;

	check_all(pic);
	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *t = picture__target(pic, i);

		assert_true(t->gc.pause_ns <= wall);
		for (size_t k = 0; k < t->n_gcs; k++) {
			assert_true(t->gcs[k].start_ns <= t->gcs[k].end_ns);
			assert_true(t->gcs[k].start_ns >= session->start_ns);
		}
		for (size_t k = 0; k < t->n_flows; k++)
			assert_true(t->flows[k].start_ns <= t->flows[k].end_ns);
		for (size_t k = 0; k < t->n_calls; k++)
			assert_true(t->calls[k].open_wall_ns <= 64 * wall);
		assert_true(t->overlaps.active_ns <= wall);
	}
}

static void test_any(void **state)
{
	const struct timeline_opts opts = {.haskell_lanes = true, .frequency_hz = 99};
	struct late *v = calloc(EVENTS, sizeof(*v));

	(void)state;
	assert_non_null(v);
	srandom(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t cut = T0 + 1 + below(END - T0), every = 1 + below((END - T0) / 3);
		struct picture *pic;
		struct kit kit;

		kit_new_opts(&kit, &opts);
		make_gcs(v, GCS);
		for (size_t i = GCS; i < EVENTS; i++) {
			uint64_t at = T0 + 1 + below(END - T0 - 1);

			make(&v[i].r, at);
			v[i].comes_ns = at + (below(4) ? below(2000) : below(300000));
		}
		qsort(v, EVENTS, sizeof(*v), by_coming);
		for (size_t i = 0; i < EVENTS; i++) {
			for (; cut < END && v[i].comes_ns > cut; cut += every) {
				assert_int_equal(timeline__window(kit.tl, cut, &pic), 0);
				check_window(pic);
				picture__free(pic);
				if (!intake__find(kit.in, PID))
					kit_add(&kit, PID, cut);
			}
			intake__record(kit.in, &v[i].r, v[i].r.h.size);
		}
		assert_int_equal(timeline__finish(kit.tl, END), 0);
		check_window(timeline__picture(kit.tl));
		timeline__free(kit.tl);
	}
	free(v);
}

/*
 * A window has the frames of its own samples and of the previous window's, not all that ever
 * occurred.
 */
static void test_addresses(void **state)
{
	struct kit kit;
	struct picture *pic;
	const struct pic_lane *lane;
	uint32_t before = 0;
	bool named = false;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 40; i++) {
		uint64_t from = T0 + i * 10000;

		for (unsigned k = 0; k < 5; k++) {
			unsigned n = 5 * (i % 4) + k;

			put(&kit, mk_sample(&r, 7, from + k * 500, WIRE_WHERE_HASKELL, HS(n),
					    IP(HS(n)), STOP));
		}
		put(&kit,
		    mk_sample(&r, 7, from + 6000, WIRE_WHERE_HASKELL, HS(30), IP(HS(30)), STOP));
		kit_window(&kit, from + 10000, &pic);
		if (i == 1)
			before = picture__n_frames(pic);
		assert_true(i < 2 || picture__n_frames(pic) == before);
		picture__free(pic);
	}
	/* when it occurs again it has its name */
	put(&kit, mk_sample(&r, 7, T0 + 400500, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	lane = lane_of(finish(&kit), 7);
	for (size_t i = 0; i < lane->n_slices; i++)
		named |= strstr(stack_text(kit.pic, lane->slices[i].stack), "Main.h1") != NULL;
	assert_true(named);
	timeline__free(kit.tl);
}

/* After the clock was set, the current window and later ones have the new time. */
static void test_clock(void **state)
{
	struct kit kit;
	struct picture *pic;
	uint64_t unix_ns;

	(void)state;
	kit_new(&kit);
	unix_ns = timeline__unix_ns(kit.tl, T0);
	assert_int_equal(picture__session(kit.pic)->start_unix_ns, unix_ns);
	timeline__set_clock(kit.tl, T0 + 1000, unix_ns + 3600000001000);
	kit_window(&kit, CUT, &pic);
	assert_int_equal(picture__session(pic)->start_unix_ns, unix_ns + 3600000000000);
	picture__free(pic);
	finish(&kit);
	assert_int_equal(picture__session(kit.pic)->start_unix_ns,
			 unix_ns + 3600000000000 + CUT - T0);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_call_over_a_cut),
		cmocka_unit_test(test_call_ends_before_the_drain),
		cmocka_unit_test(test_call_ends_in_the_drain),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_end_after_the_cut),
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_clock),
	};

	return cmocka_run_group_tests_name("windows_late", tests, NULL, NULL);
}

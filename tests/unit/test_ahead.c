/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a replay in windows reads ahead before its first window. If it cannot keep everything it
 * needs from a capture, each of its reports has a note about what is missing.
 */
#include "capture_kit.h"
#include "picture/make.h"

#define WINDOW	    ((END - T0) / 4)
#define CAPTURE	    "the capture has "
#define THREADS	    3
#define EITHER_SIDE 50000

static struct timeline_opts opts = {.frequency_hz = 99, .start_ns = T0, .start_unix_ns = 1};

static void begin(struct kit *kit, bool haskell, struct capture **ret_capture)
{
	opts.haskell_lanes = haskell;
	kit_capture(kit, &opts, ret_capture);
	kit_add(kit, PID, T0);
}

static void begin_with_thread(struct kit *kit, struct capture **ret_capture)
{
	union rec r;

	begin(kit, false, ret_capture);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
}

static void end(struct kit *kit, struct capture *capture)
{
	assert_int_equal(timeline__finish(kit->tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit->tl);
}

/* The number of reports that have a note about something missing. */
struct lacks {
	const char *what;
	unsigned reports, with, threads;
	uint64_t open; /* calls that are open at the end of their report */
	uint64_t open_ns, gc_wait_ns;
	uint64_t call_ns;   /* in calls that ended */
	uint64_t stacks_ns; /* of threads off the CPU whose stacks have h5 */
	int exit_code;
};

static void look_at_stacks(struct lacks *lacks, const struct picture *pic,
			   const struct pic_lanes *threads)
{
	for (size_t i = 0; i < threads->n; i++)
		for (size_t k = 0; k < threads->v[i].n_rows; k++) {
			const struct pic_row *row = &threads->v[i].rows[k];

			if (!row->on_cpu && strstr(stack_text(pic, row->stack), "Main.h5"))
				lacks->stacks_ns += row->ns;
		}
}

static void look(struct lacks *lacks, const struct picture *pic)
{
	const struct pic_target *t = picture__target(pic, 0);

	lacks->reports++;
	lacks->exit_code = MAX(lacks->exit_code, picture__session(pic)->exit_code);
	if (!t)
		return;
	for (size_t i = 0; i < t->n_missing; i++)
		lacks->with += strstr(t->missing[i], lacks->what) != NULL;
	lacks->threads += t->lanes[LANE_THREAD].n;
	lacks->gc_wait_ns += t->gc.wait_ns;
	look_at_stacks(lacks, pic, &t->lanes[LANE_THREAD]);
	for (size_t i = 0; i < t->n_calls; i++) {
		lacks->open += t->calls[i].open_at_end;
		lacks->open_ns += t->calls[i].open_wall_ns;
		lacks->call_ns += t->calls[i].wall_ns;
	}
}

static int take_window(void *ctx, struct picture *pic)
{
	look(ctx, pic);
	picture__free(pic);
	return 0;
}

static bool haskell_lanes; /* set if lanes of Haskell threads are requested */

static struct lacks replay(const char *what, uint64_t window_ns, size_t max_kept,
			   struct replay_notes *ret_notes)
{
	struct lacks lacks = {.what = what};
	const struct replay_hooks hooks = {.ctx = &lacks,
					   .window_ns = window_ns,
					   .window = take_window,
					   .max_kept = max_kept,
					   .haskell_lanes = haskell_lanes};
	struct replay *r;

	assert_int_equal(read_capture(&hooks, &r), 0);
	look(&lacks, replay__picture(r));
	*ret_notes = *replay__notes(r);
	replay__free(r);
	return lacks;
}

/* All four windows have the note, or none. */
static void check_lacks(const char *what, size_t max_kept, bool lacks)
{
	struct replay_notes notes;
	struct lacks found = replay(what, WINDOW, max_kept, &notes);

	assert_int_equal(found.reports, 4);
	assert_int_equal(found.with, lacks ? 4 : 0);
	assert_int_equal(found.exit_code, lacks);
	assert_int_equal(notes.short_ahead, lacks);
	assert_int_equal(notes.refused_inputs, 0);
}

/* Calls across each cut, with room for only one of them. */
static void test_records(void **state)
{
	struct capture *capture;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, false, &capture);
	for (pid_t tid = 7; tid < 7 + THREADS; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
	for (uint64_t at = T0 + WINDOW; at < END; at += WINDOW)
		for (pid_t tid = 7; tid < 7 + THREADS; tid++)
			put(&kit,
			    mk_call(&r, tid, at - EITHER_SIDE, at + EITHER_SIDE, SITE(1), STOP));
	end(&kit, capture);
	check_lacks("at the ends of windows: " CAPTURE "8 more records", 1, true);
	check_lacks(CAPTURE, 0, false);
}

static void put_state(struct kit *kit, pid_t tid)
{
	const struct wire_thread thread = {.tgid = PID, .epoch = 1, .off_since_ns = T0 + 1000};

	assert_int_equal(intake__thread_state(kit->in, tid, &thread), 0);
}

/* What threads never returned from is known from their final states. */
static void test_states(void **state)
{
	struct capture *capture;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, false, &capture);
	for (pid_t tid = 7; tid < 7 + THREADS; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
	put(&kit, mk_off(&r, 7, END - 3, END - 2, END - 1, 1, 0, HS(1), IP(HS(1)), STOP));
	for (pid_t tid = 7; tid < 7 + THREADS; tid++)
		put_state(&kit, tid);
	end(&kit, capture);
	check_lacks("at the ends of windows: " CAPTURE "2 more records", 1, true);
	check_lacks(CAPTURE, 0, false);
}

static void test_names(void **state)
{
	struct capture *capture;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, false, &capture);
	for (unsigned i = 0; i < THREADS; i++)
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7 + (pid_t)i, T0 + i * WINDOW));
	end(&kit, capture);
	check_lacks("took later: " CAPTURE "2 more thread starts", 1, true);
	check_lacks(CAPTURE, 0, false);
}

static void put_look(struct kit *kit, uint64_t id, uint64_t at_ns)
{
	const struct target_living_thread thread = {.id = id};

	assert_int_equal(intake__living(kit->in, PID, &thread, 1, at_ns, at_ns), 0);
}

/* Haskell threads: looks at the living ones, and records that show that they are alive. */
static void test_haskell(void **state)
{
	struct capture *capture;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, true, &capture);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (uint64_t id = 1; id <= THREADS; id++) {
		mk_sample(&r, 7, T0 + id * WINDOW, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
		r.sample.rts.tso = id;
		r.sample.rts.tso_id = id;
		put(&kit, &r);
		put_look(&kit, id, T0 + id * WINDOW + 10);
	}
	end(&kit, capture);
	check_lacks("Haskell threads waited: " CAPTURE "4 more records", 1, true);
	check_lacks(CAPTURE, 0, false);
}

/* THREADS samples, each in another function that has a name. */
static void put_named(struct kit *kit)
{
	union rec r;

	for (unsigned i = 1; i <= THREADS; i++)
		put(kit,
		    mk_sample(&r, 7, T0 + i * WINDOW, WIRE_WHERE_HASKELL, HS(i), IP(HS(i)), STOP));
}

static void test_answers(void **state)
{
	struct capture *capture;
	struct replay_notes notes;
	struct lacks found;
	struct kit kit;

	(void)state;
	begin(&kit, false, &capture);
	put_named(&kit);
	end(&kit, capture);
	for (uint64_t window = 0; window <= WINDOW; window += WINDOW) {
		found = replay(CAPTURE "2 more names and processes", window, 1, &notes);
		assert_int_equal(found.with, 1);
		assert_int_equal(found.exit_code, 1);
		assert_int_equal(notes.no_room, 2);
		assert_int_equal(notes.refused_inputs, 0);
		found = replay(CAPTURE, window, 0, &notes);
		assert_int_equal(found.with, 0);
		assert_int_equal(notes.no_room, 0);
		assert_int_equal(found.exit_code, 0);
	}
}

/* An invalid name loses nothing else: the first pass still finds what follows it. */
static void test_refused(void **state)
{
	const struct intake_input bad = {.kind = TI_NAME, .target = 0, .a = HS(5)};
	struct capture *capture;
	struct replay_notes notes;
	struct lacks one, many;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	capture__take(capture, &bad);
	put(&kit, mk_call(&r, 7, T0 + 1000, END - 1000, SITE(1), STOP));
	end(&kit, capture);
	one = replay("1 of the capture's records", 0, 0, &notes);
	assert_int_equal(notes.refused_inputs, 1);
	assert_int_equal(one.with, 1);
	assert_int_equal(one.exit_code, 1);
	many = replay("1 of the capture's records", WINDOW, 0, &notes);
	assert_int_equal(notes.refused_inputs, 1);
	assert_int_equal(many.with, 1);
	assert_int_equal(many.exit_code, 1);
	assert_int_equal(one.open, 0);
	assert_int_equal(many.open, 3);
}

/* Records too late for any window. */
static void test_too_far(void **state)
{
	struct capture *capture;
	struct replay_notes notes;
	struct lacks found;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0 + WINDOW * 100002));
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 9, T0 + WINDOW * 100003));
	end(&kit, capture);
	found = replay("2 records that come too many windows late", WINDOW, 0, &notes);
	assert_int_equal(found.with, 1);
	assert_int_equal(found.exit_code, 1);
	assert_int_equal(notes.too_far, 2);
	assert_int_equal(notes.refused_inputs, 0);
	found = replay("too many windows", 0, 0, &notes);
	assert_int_equal(found.with, 0);
	assert_int_equal(notes.too_far, 0);
}

/* Lanes that the session did not make, of a process that ends before the last window. */
static void test_no_lanes(void **state)
{
	struct capture *capture;
	struct replay_notes notes;
	struct lacks found;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, T0 + WINDOW / 2));
	assert_int_equal(intake__end_target(kit.in, PID, "exited", T0 + WINDOW / 2), 0);
	end(&kit, capture);
	haskell_lanes = true;
	found = replay("no lanes of Haskell threads", 0, 0, &notes);
	assert_true(notes.no_haskell_lanes);
	assert_int_equal(found.with, 1);
	found = replay("no lanes of Haskell threads", WINDOW, 0, &notes);
	assert_true(notes.no_haskell_lanes);
	assert_int_equal(found.with, 1);
	assert_int_equal(found.exit_code, 1);
	haskell_lanes = false;
	found = replay("no lanes of Haskell threads", WINDOW, 0, &notes);
	assert_false(notes.no_haskell_lanes);
	assert_int_equal(found.with, 0);
}

/* Only the end of the collection was seen: threads wait for it from its request on, across the
 * cut. */
static void test_collection(void **state)
{
	const uint64_t cut = T0 + WINDOW;
	struct capture *capture;
	struct replay_notes notes;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 1000));
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 2000));
	put(&kit,
	    mk_off(&r, 8, cut - 8000, cut - 6000, cut - 6000, WIRE_WHERE_RTS, CIP(CFN(1)), STOP));
	mk_gc(&r, 7, WIRE_GC_END, cut + 9000);
	r.gc.sync_ns = cut - 10000;
	r.gc.start_ns = cut + 5000;
	put(&kit, &r);
	end(&kit, capture);
	assert_int_equal(replay("", 0, 0, &notes).gc_wait_ns, 2000);
	assert_int_equal(replay("", WINDOW, 0, &notes).gc_wait_ns, 2000);
}

/* A thread that was asleep in a call when its process joined. No record of it follows, and no
 * snapshot at the end, since the session was killed: it sleeps in that call throughout. */
static void test_asleep(void **state)
{
	struct snap_thread asleep = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct capture *capture;
	struct replay_notes notes;
	struct lacks one, many;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, false, &capture);
	asleep.site = SITE(1);
	put_snap(&kit, &asleep, 1, false);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 8, T0));
	end(&kit, capture);
	one = replay("", 0, 0, &notes);
	assert_int_equal(one.open, 1);
	assert_int_equal(one.open_ns, END - T0);
	many = replay("", WINDOW, 0, &notes);
	assert_int_equal(many.open, 4);
	assert_int_equal(many.open_ns, END - T0);
}

/* A call that ends, and whose record arrives, after the session's last counters and states were
 * read. */
static void test_ends_late(void **state)
{
	static const struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	static const struct wire_site counters = {.calls = 1, .wall_ns = 2 * WINDOW};
	const uint64_t start = END - WINDOW - EITHER_SIDE;
	const struct wire_thread open = {.tgid = PID,
					 .epoch = 1,
					 .on_since_ns = T0 + 1,
					 .depth = 1,
					 .open = {{.start_ns = start, .site = SITE(1)}}};
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'R');
	struct capture *capture;
	struct replay_notes notes;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	put(&kit, mk_call(&r, 7, T0 + 1000, T0 + 1000 + 2 * WINDOW, SITE(1), STOP));
	put_snap(&kit, &snap, 1, true);
	assert_int_equal(intake__site_counters(kit.in, &key, &counters, END), 0);
	assert_int_equal(intake__thread_state(kit.in, 7, &open), 0);
	put(&kit, mk_call(&r, 7, start, END + EITHER_SIDE, SITE(1), STOP));
	end(&kit, capture);
	for (uint64_t window = 0; window <= WINDOW; window += WINDOW) {
		struct lacks found = replay("", window, 0, &notes);

		assert_int_equal(found.reports, window ? 4 : 1);
		assert_int_equal(found.call_ns + found.open_ns, 2 * WINDOW + END - start);
	}
}

/* The stack of a call that is open throughout may be only in the session's last snapshot. */
static void test_last_stack(void **state)
{
	const uint64_t start = T0 + 1000;
	const struct wire_thread open = {.tgid = PID,
					 .epoch = 1,
					 .on_since_ns = T0 + 1,
					 .off_since_ns = start + 1000,
					 .off_state = 1,
					 .off_rts = {.where = WIRE_WHERE_SAFE_CALL},
					 .depth = 1,
					 .open = {{.start_ns = start, .site = SITE(1)}}};
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_SAFE_CALL, 'S');
	struct capture *capture;
	struct replay_notes notes;
	struct kit kit;

	(void)state;
	snap.site = SITE(1);
	snap.stack.nframes = 1;
	snap.frames[0] = RET(HS(5));
	begin_with_thread(&kit, &capture);
	put_snap(&kit, &snap, 1, true);
	assert_int_equal(intake__thread_state(kit.in, 7, &open), 0);
	end(&kit, capture);
	for (uint64_t window = 0; window <= WINDOW; window += WINDOW) {
		struct lacks found = replay("", window, 0, &notes);

		assert_int_equal(found.reports, window ? 4 : 1);
		assert_int_equal(found.stacks_ns, END - start - 1000);
	}
}

/* The cost of a process is reported again at the end of the session; in windows, the process has
 * been released by then. */
static void test_gone(void **state)
{
	const struct intake_cost cost = {.probe_hits = 5};
	struct capture *capture;
	struct replay_notes notes;
	struct kit kit;
	union rec r;

	(void)state;
	begin_with_thread(&kit, &capture);
	kit_add(&kit, PID + 1, T0);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 1000));
	put(&kit, mk_event(&r, WIRE_PROC_EXIT, 7, T0 + 1000));
	for (uint64_t at = T0 + 2000; at < END; at += WINDOW) {
		mk_sample(&r, 8, at, WIRE_WHERE_HASKELL, HS(1), STOP);
		r.h.tgid = PID + 1;
		put(&kit, &r);
	}
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(intake__set_lost_share(kit.in, PID, 0.0), 0);
	end(&kit, capture);
	for (uint64_t window = 0; window <= WINDOW; window += WINDOW) {
		assert_int_equal(replay("", window, 0, &notes).exit_code, 0);
		assert_int_equal(notes.refused_inputs, 0);
	}
}

/* A call of which only the end was seen has no start, but is not older than its thread. */
static void test_only_end(void **state)
{
	const uint64_t born = T0 + WINDOW + 1000;
	struct capture *capture;
	struct replay_notes notes;
	struct kit kit;
	union rec r;

	(void)state;
	begin(&kit, false, &capture);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, born));
	put(&kit, mk_call(&r, 7, born + 1000, born + 2000, SITE(1), STOP));
	mk_call(&r, 7, 0, born + WINDOW, SITE(1), STOP);
	r.call.flags = WIRE_CALL_UNMATCHED;
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, born + WINDOW + 1000));
	end(&kit, capture);
	assert_int_equal(replay("", 0, 0, &notes).threads, 1);
	assert_int_equal(replay("", WINDOW, 0, &notes).threads, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),	   cmocka_unit_test(test_states),
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_haskell),
		cmocka_unit_test(test_answers),	   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_far),	   cmocka_unit_test(test_no_lanes),
		cmocka_unit_test(test_collection), cmocka_unit_test(test_asleep),
		cmocka_unit_test(test_ends_late),  cmocka_unit_test(test_last_stack),
		cmocka_unit_test(test_gone),	   cmocka_unit_test(test_only_end),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

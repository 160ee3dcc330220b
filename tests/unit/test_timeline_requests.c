/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_timeline_requests: logs of servers that fork a thread for each request. */
#include "intake/tap.h"
#include "timeline_log_kit.h"

#define MAIN 1000000 /* the thread that waits for all of them */

/*
 * One request after the other, a millisecond each: it runs, waits for a variable, waits for its
 * turn, runs, ends.
 */
static void write_requests(struct writer *w, uint32_t n)
{
	w_header(w);
	w_block(w, 0, 1);
	w_event(w, EL_WALL_CLOCK_TIME, 1, "wlw", 1, 1700000000ul, 1);
	w_event(w, EL_RUN_THREAD, 1000, "w", MAIN);
	w_event(w, EL_STOP_THREAD, 2000, "whw", MAIN, EL_STOP_MVAR, 0);
	for (uint32_t i = 1; i <= n; i++) {
		uint64_t at = i * MS;

		w_event(w, EL_CREATE_THREAD, at, "w", i);
		w_event(w, EL_RUN_THREAD, at, "w", i);
		w_event(w, EL_STOP_THREAD, at + MS / 4, "whw", i, EL_STOP_MVAR, 0);
		w_event(w, EL_THREAD_WAKEUP, at + MS / 2, "wh", i, 0);
		w_event(w, EL_RUN_THREAD, at + 3 * MS / 4, "w", i);
		w_event(w, EL_STOP_THREAD, at + MS - 1, "whw", i, EL_STOP_FINISHED, 0);
	}
	w_block_end(w, (n + 1) * MS);
	w_end(w);
}

static size_t count_with_slices(const struct kit *k)
{
	const struct pic_lanes *lanes = &k->target->lanes[LANE_HASKELL];
	size_t n = 0;

	for (size_t i = 0; i < lanes->n; i++) {
		const struct pic_lane *lane = &lanes->v[i];

		n += lane->n_slices > 0;
		if (lane->tso == MAIN) {
			assert_int_equal(lane->slices[lane->n_slices - 1].state, HS_BLOCKED_MVAR);
			continue;
		}
		assert_int_equal(lane->states_ns[HS_BLOCKED_MVAR], MS / 4);
		if (!lane->n_slices)
			continue;
		assert_int_equal(lane->n_slices, 4);
		assert_int_equal(lane->slices[1].state, HS_BLOCKED_MVAR);
		assert_int_equal(lane->slices[1].start_ns, lane->tso * MS + MS / 4);
	}
	return n;
}

/*
 * The first threads have lanes with slices, and so has the one that waited all the time; the others
 * have sums only.
 */
static void t_requests(void **state)
{
	static const struct {
		uint64_t from_ns;
		size_t lanes, with_slices;
		const char *missing;
	} parts[] = {
		{901 * MS, 101, 101, NULL},
		{501 * MS, 501, 257, "when 244 Haskell threads ran"},
		{0, 1001, 256, "when 745 Haskell threads ran"},
	};
	struct writer w = {0};

	(void)state;
	write_requests(&w, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct kit k = {.part = {.from_ns = parts[i].from_ns}};

		kit_read(&k, &w);
		check_picture(&k);
		assert_int_equal(k.target->lanes[LANE_HASKELL].n, parts[i].lanes);
		assert_int_equal(count_with_slices(&k), parts[i].with_slices);
		assert_int_equal(is_missing(&k, "only the eventlog's sums"),
				 parts[i].missing != NULL);
		assert_true(!parts[i].missing || is_missing(&k, parts[i].missing));
		kit_free(&k);
	}
	w_free(&w);
}

/*
 * Wall-clock times have a margin of a second: threads that ended in it take no lane from the
 * session's.
 */
static void t_requests_joined(void **state)
{
	/* the log began at 50 s, the session at 52 s */
	const struct intake_log_join how = {
		.session_ns = 52000 * MS, .now_ns = 100000 * MS, .now_wall_ns = 1700000050000 * MS};
	struct log_models *m;
	struct join_log log = {0};
	struct writer w = {0};
	uint64_t lost;
	int fd;

	(void)state;
	write_requests(&w, 2200);
	fd = w_file(w.data, w.len);
	assert_int_equal(log_models__new_joined(&how, &m), 0);
	assert_int_equal(log_models__read(m, fd, false, &lost), 0);
	log_models__fill(m, &log);
	assert_int_equal(log.offset_ns, 50000 * MS);
	for (uint32_t i = 2000; i <= 2200; i++) {
		const struct el_thread *t = el_sched__find_thread(log.sched, i);

		assert_non_null(t);
		assert_non_null(t->lane);
		assert_int_equal(t->lane->n, 4);
		assert_int_equal(t->lane->v[0].start_ns, i * MS);
	}
	log_models__free(m);
	close(fd);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_requests),
					   cmocka_unit_test(t_requests_joined)};

	return cmocka_run_group_tests_name("timeline_requests", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_join_buffers: a process's records and its eventlog, in which GHC has not yet written every
 * capability's buffer. Both are generated from the same calls.
 */
#include "eventlog_writer.h"
#include "intake/tap.h"
#include "logs/logs.h"
#include "test_timeline_kit.h"

#define MS     UINT64_C(1000000)
#define WALL   UINT64_C(1700000000000000000) /* wall clock when CLOCK_MONOTONIC was 0 */
#define BEGIN  (1000 * MS)
#define UNTIL  (1200 * MS)
#define OFFSET (500 * MS) /* CLOCK_MONOTONIC - the log's time */
#define CALLS  40

/* Start of call number i of a capability's Haskell thread, which runs between its calls. */
static uint64_t call_start(unsigned cap, unsigned i)
{
	return BEGIN + 10 * MS + i * 4 * MS + i * i * 1000 + cap * 300000;
}

static uint64_t call_end(unsigned cap, unsigned i)
{
	return call_start(cap, i) + 2 * MS;
}

/* ── the records ─────────────────────────────────────────────────────────────────────────── */

static void put_records(struct kit *kit)
{
	union rec r;

	for (unsigned cap = 0; cap < 2; cap++)
		put(kit, mk_event(&r, WIRE_THREAD_NEW, 7 + (int)cap, BEGIN));
	for (unsigned i = 0; i < CALLS; i++)
		for (unsigned cap = 0; cap < 2; cap++) {
			mk_call(&r, 7 + (int)cap, call_start(cap, i), call_end(cap, i), SITE(1),
				RET(HS(2)), STOP);
			r.call.rts.cap_no = cap;
			r.call.rts.cap = 0x1000 * (cap + 1);
			r.call.rts.tso = 0x2000 * (cap + 1);
			r.call.rts.tso_id = 1 + cap;
			put(kit, &r);
			mk_sample(&r, 7 + (int)cap, call_end(cap, i) + MS, WIRE_WHERE_HASKELL,
				  HS(2), IP(HS(2)), STOP);
			r.sample.rts.cap_no = cap;
			r.sample.rts.cap = 0x1000 * (cap + 1);
			r.sample.rts.tso = 0x2000 * (cap + 1);
			r.sample.rts.tso_id = 1 + cap;
			put(kit, &r);
		}
}

/* ── the log ─────────────────────────────────────────────────────────────────────────────── */

/* Each capability leads a collection of its own; the first one creates both threads. */
static void write_begin(struct writer *w, unsigned cap)
{
	uint64_t at = BEGIN - OFFSET + (1 + cap) * MS;

	for (unsigned i = 0; i < 2 && !cap; i++)
		w_event(w, EL_CREATE_THREAD, at + i, "w", 1 + i);
	w_event(w, EL_GC_START, at + 1000, "");
	w_event(w, EL_GC_GLOBAL_SYNC, at + 2000, "");
	w_event(w, EL_GC_END, at + 3000, "");
	w_event(w, EL_RUN_THREAD, at + 4000, "w", 1 + cap);
}

static void write_cap(struct writer *w, unsigned cap, bool empty)
{
	w_block(w, (uint16_t)cap, 200);
	if (!empty)
		write_begin(w, cap);
	for (unsigned i = 0; i < CALLS && !empty; i++) {
		w_event(w, EL_STOP_THREAD, call_start(cap, i) - OFFSET + 200, "whw", 1 + cap,
			EL_STOP_FOREIGN_CALL, 0);
		w_event(w, EL_RUN_THREAD, call_end(cap, i) - OFFSET + 200, "w", 1 + cap);
	}
	if (!empty)
		w_event(w, EL_STOP_THREAD, UNTIL - OFFSET - 1, "whw", 1 + cap, EL_STOP_YIELDING, 0);
	w_block_end(w, UNTIL - OFFSET);
}

enum buffer { WRITTEN, UNWRITTEN, EMPTY };

/* The log of a program that is still running: it has no end mark. */
static int make_log(enum buffer second)
{
	struct writer w = {0};
	int fd;

	w_header(&w);
	w_block(&w, EL_CAP_GLOBAL, 1);
	w_event(&w, EL_WALL_CLOCK_TIME, 100, "wlw", 1, (WALL + OFFSET) / 1000000000,
		(uint32_t)((WALL + OFFSET) % 1000000000 + 100));
	w_event(&w, EL_CAP_CREATE, 101, "h", 0);
	w_event(&w, EL_CAP_CREATE, 102, "h", 1);
	w_block_end(&w, UNTIL - OFFSET);
	write_cap(&w, 0, false);
	if (second != UNWRITTEN)
		write_cap(&w, 1, second == EMPTY);
	fd = w_file(w.data, w.len);
	w_free(&w);
	return fd;
}

/* ── both ────────────────────────────────────────────────────────────────────────────────── */

static bool is_missing(const struct pic_target *t, const char *text)
{
	for (size_t i = 0; i < t->n_missing; i++)
		if (strstr(t->missing[i], text))
			return true;
	return false;
}

static void join(enum buffer second, double calls, double caps, bool missing)
{
	const struct timeline_opts opts = {.frequency_hz = 99,
					   .start_ns = BEGIN,
					   .start_unix_ns = WALL + BEGIN,
					   .haskell_lanes = true};
	const struct intake_log_join how = {.session_ns = BEGIN,
					    .observed_ns = BEGIN + 1,
					    .now_ns = UNTIL,
					    .now_wall_ns = WALL + UNTIL};
	struct joined_logs logs = {0};
	const struct pic_target *t;
	const struct pic_lane *lane;
	struct kit kit;
	int fd = make_log(second);

	kit_new_timeline(&kit, &opts);
	kit_add(&kit, PID, BEGIN);
	assert_int_equal(joined_logs__join(&logs, kit.tl, PID, "/l.eventlog", fd, &how), 0);
	put_records(&kit);
	assert_int_equal(timeline__finish(kit.tl, UNTIL), 0);
	t = picture__target(kit.pic, 0);
	assert_int_equal(t->n_flows, 2 * CALLS);
	assert_true(t->eventlog.known);
	assert_true(t->eventlog.offset_error_ns < 1000000);
	assert_true(t->eventlog.agreement_safe_calls == calls);
	assert_true(t->eventlog.agreement_caps == caps);
	assert_int_equal(is_missing(t, "the buffer of capability 1 in the eventlog"), missing);
	assert_int_equal(t->gc.known && !t->gc.inferred, second != UNWRITTEN);
	assert_int_equal(t->gc.count, second == WRITTEN ? 2 : second == EMPTY);
	/* the second thread's calls in the records are kept */
	lane = lane_by(t, LANE_HASKELL, 2);
	if (second != EMPTY)
		assert_in_range(lane->states_ns[HS_SAFE_CALL], CALLS * 2 * MS - CALLS * 1000,
				CALLS * 2 * MS + CALLS * 1000);
	timeline__free(kit.tl);
	joined_logs__free(&logs);
	close(fd);
}

/* The log is complete and agrees. */
static void t_written(void **state)
{
	(void)state;
	join(WRITTEN, 1, 1, false);
}

/* Events that GHC cannot have written yet do not count as disagreement. */
static void t_unwritten(void **state)
{
	(void)state;
	join(UNWRITTEN, 1, 1, true);
}

/* The buffer is written but has nothing of what the records have: a disagreement. */
static void t_empty(void **state)
{
	(void)state;
	/* for the first thread it has the capability of each call and sample */
	join(EMPTY, 0.5, 2.0 / 3, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_written),
					   cmocka_unit_test(t_unwritten),
					   cmocka_unit_test(t_empty)};

	return cmocka_run_group_tests_name("join_buffers", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_join: a process's records and its eventlog in one picture, both generated. */
#include "eventlog_writer.h"
#include "join/join.h"
#include "logs/logs.h"
#include "intake/tap.h"
#include "test_timeline_kit.h"

#define US	 UINT64_C(1000)
#define MS	 UINT64_C(1000000)
#define S	 UINT64_C(1000000000)
#define RTS_AT	 (40 * S) /* CLOCK_MONOTONIC when the runtime started: the log's time 0 */
#define ATTACH	 (46 * S)
#define DURATION (5 * S)
#define LEAVE	 (ATTACH + DURATION)
#define WALL	 UINT64_C(1700000000) /* wall clock when the runtime started, in s */

struct joined {
	struct kit kit;
	struct log_models *models;
	const struct pic_target *t;
};

/* Converts CLOCK_MONOTONIC to the log's time. */
static uint64_t in_log(uint64_t ns)
{
	return ns - RTS_AT;
}

static void begin(struct joined *j)
{
	const struct timeline_opts opts = {.start_ns = ATTACH, .start_unix_ns = 1};

	kit_new_timeline(&j->kit, &opts);
	kit_add_with(&j->kit, PID, ATTACH, 1);
}

static void log_begin(struct writer *w)
{
	w_header(w);
	w_block(w, 0, 1);
	w_event(w, EL_WALL_CLOCK_TIME, 2, "wlw", 1, WALL, 2);
}

/* What happened to the clocks since the program's start. */
struct clocks {
	uint64_t suspended_ns; /* how long the system was suspended since the start … */
	uint64_t before_ns;    /* … and before it */
	int64_t set_ns;	       /* how far the wall clock was set forward */
	bool no_start;	       /* the process's start time is unknown */
	bool during;	       /* suspended during the session */
};

/* Joins the log, which is read `after_ns` after the session's end. */
static void finish_clocks(struct joined *j, struct writer *w, uint64_t after_ns,
			  const struct clocks *c)
{
	uint64_t start = RTS_AT - 20 * MS + c->before_ns,
		 suspended = c->before_ns + c->suspended_ns;
	const struct intake_log_join how = {.session_ns = ATTACH,
					    .observed_ns = ATTACH,
					    .now_ns = LEAVE + after_ns,
					    .now_wall_ns = WALL * S + in_log(LEAVE) + after_ns +
							   c->suspended_ns + (uint64_t)c->set_ns,
					    .start_ns = c->during ? RTS_AT - 20 * MS
							: c->no_start || start < suspended
								? 0
								: start - suspended,
					    .suspended_ns = suspended};
	struct join_log in = {.path = "some.eventlog", .observed_ns = ATTACH};
	int fd = w_file(w->data, w->len);
	uint64_t lost;

	w_free(w);
	assert_int_equal(log_models__new_joined(&how, &j->models), 0);
	assert_int_equal(log_models__read(j->models, fd, false, &lost), 0);
	fd__close(&fd);
	assert_true(log_models__has_wall_clock(j->models));
	assert_true(log_models__has_clock(j->models));
	log_models__fill(j->models, &in);
	assert_int_equal(timeline__join_log(j->kit.tl, PID, &in), 0);
	assert_int_equal(timeline__finish(j->kit.tl, LEAVE), 0);
	check_all(j->kit.pic);
	j->t = picture__target(j->kit.pic, 0);
}

static void finish_join(struct joined *j, struct writer *w, uint64_t after_ns)
{
	static const struct clocks good;

	finish_clocks(j, w, after_ns, &good);
	assert_true(j->t->eventlog.known);
}

static void end_join(struct joined *j)
{
	timeline__free(j->kit.tl);
	log_models__free(j->models);
}

static bool is_missing(const struct pic_target *t, const char *what)
{
	for (size_t i = 0; i < t->n_missing; i++)
		if (strstr(t->missing[i], what))
			return true;
	return false;
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

#define PAUSE (2 * US)

/* Writes n collections, evenly spaced. */
static void collect(struct writer *w, uint64_t from_ns, uint64_t to_ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = in_log(from_ns + (to_ns - from_ns) / n * i + 10 * US);

		w_event(w, EL_GC_START, at, "");
		w_event(w, EL_GC_GLOBAL_SYNC, at + 1, "");
		w_event(w, EL_GC_END, at + PAUSE, "");
	}
}

/* A program whose collections no probe reports: a quarter of its samples are in the runtime. */
static void begin_without_probes(struct joined *j)
{
	union rec r;

	begin(j);
	put(&j->kit, mk_event(&r, WIRE_THREAD_NEW, 7, ATTACH));
	for (uint64_t at = ATTACH + 5 * MS; at < LEAVE; at += 10 * MS) {
		bool in = at / (10 * MS) % 4 == 0;
		uint64_t ip = in ? RTS(1) : HS(1);

		put(&j->kit, mk_sample(&r, 7, at, in ? WIRE_WHERE_RTS : WIRE_WHERE_HASKELL, ip,
				       IP(ip), STOP));
	}
}

/* Only the collections of the session are summed up. */
static void test_gcs_of_session(void **state)
{
	struct joined j;
	struct writer w = {0};

	(void)state;
	begin_without_probes(&j);
	log_begin(&w);
	collect(&w, ATTACH - 500 * MS, ATTACH, 7);
	collect(&w, ATTACH, LEAVE, 1000);
	collect(&w, LEAVE, LEAVE + 300 * MS, 3);
	w_block_end(&w, in_log(LEAVE + 300 * MS));
	finish_join(&j, &w, 300 * MS);
	assert_true(j.t->gc.known && !j.t->gc.inferred);
	assert_int_equal(j.t->gc.count, 1000);
	assert_int_equal(j.t->n_gcs, 1000);
	assert_int_equal(j.t->gc.pause_ns, 1000 * PAUSE);
	assert_int_equal(j.t->gc.max_pause_ns, PAUSE);
	for (size_t i = 0; i < j.t->n_gcs; i++) {
		assert_true(j.t->gcs[i].start_ns >= ATTACH);
		assert_true(j.t->gcs[i].end_ns <= LEAVE);
	}
	end_join(&j);
}

/* More collections than are kept: neither their total number nor their total time is known. */
static void test_too_many_gcs(void **state)
{
	struct joined j;
	struct writer w = {0};

	(void)state;
	begin_without_probes(&j);
	log_begin(&w);
	collect(&w, ATTACH, LEAVE, 140000);
	w_block_end(&w, in_log(LEAVE + MS));
	w_end(&w);
	finish_join(&j, &w, MS);
	assert_true(j.t->gc.known && j.t->gc.inferred);
	assert_int_equal(j.t->gc.count, 0);
	assert_in_range(j.t->gc.pause_ns, 140000 * PAUSE, DURATION);
	assert_true(is_missing(j.t, "8928 of 140000 collections in the eventlog"));
	end_join(&j);
}

/* If a log ends long before the session, the number of collections is unknown. */
static void test_gcs_of_lagging_log(void **state)
{
	struct joined j;
	struct writer w = {0};

	(void)state;
	begin_without_probes(&j);
	log_begin(&w);
	collect(&w, ATTACH, LEAVE - 2 * S, 600);
	w_block_end(&w, in_log(LEAVE - 2 * S));
	finish_join(&j, &w, MS);
	assert_true(j.t->gc.known && j.t->gc.inferred);
	assert_int_equal(j.t->gc.count, 0);
	assert_true(j.t->gc.pause_ns >= 1000 * PAUSE);
	assert_true(is_missing(j.t, "the last 2.0 s of the session"));
	end_join(&j);
}

/* The probes see one collection and are taken off; the log has n more, until `until_ns`. */
static void check_came_off(unsigned n, uint64_t until_ns)
{
	struct joined j;
	struct writer w = {0};
	union rec r;

	begin_without_probes(&j);
	put(&j.kit, mk_gc(&r, 7, WIRE_GC_START, ATTACH + 15 * MS));
	put(&j.kit, mk_gc(&r, 7, WIRE_GC_END, ATTACH + 35 * MS));
	put(&j.kit, mk_gc(&r, 7, WIRE_GC_OFF, ATTACH + 45 * MS));
	log_begin(&w);
	if (n)
		collect(&w, ATTACH, until_ns, n);
	w_block_end(&w, in_log(until_ns));
	finish_join(&j, &w, 300 * MS);
	assert_true(j.t->gc.known && j.t->gc.inferred);
	assert_int_equal(j.t->gc.count, 0);
	assert_int_equal(j.t->gc.observed_count, 1);
	assert_int_equal(j.t->n_gcs, 1);
	assert_int_equal(j.t->gcs[0].end_ns - j.t->gcs[0].start_ns, 20 * MS);
	end_join(&j);
}

/* What the probes saw before they were taken off is kept unchanged if the log has only part of
 * the rest, or nothing: with +RTS -l-g GHC writes no collections. */
static void test_gcs_came_off(void **state)
{
	(void)state;
	check_came_off(600, LEAVE - 2 * S);
	check_came_off(0, LEAVE + 200 * MS);
}

/* ── agreement ───────────────────────────────────────────────────────────────────────────── */

#define STEP (5 * MS)

/* Not evenly spaced, so that no wrong clock offset fits. */
static uint64_t call_at(unsigned i)
{
	return ATTACH + i * STEP + (i * i) % 97 * 10 * US;
}

/* Writes calls `from` to `to` of Haskell thread 1, of 1 ms each. */
static void log_calls(struct writer *w, unsigned from, unsigned to)
{
	w_event(w, EL_CREATE_THREAD, in_log(call_at(from)) - 3 * US, "w", 1);
	w_event(w, EL_RUN_THREAD, in_log(call_at(from)) - 2 * US, "w", 1);
	for (unsigned i = from; i < to; i++) {
		w_event(w, EL_STOP_THREAD, in_log(call_at(i)) + US, "whw", 1, EL_STOP_FOREIGN_CALL,
			0);
		w_event(w, EL_RUN_THREAD, in_log(call_at(i)) + MS + US, "w", 1);
	}
}

static void put_call(struct joined *j, unsigned i)
{
	union rec r;

	mk_call(&r, 7, call_at(i), call_at(i) + MS, SITE(1), RET(HS(1)), STOP);
	r.call.rts.tso = 0x1000;
	r.call.rts.tso_id = 1;
	put(&j->kit, &r);
}

/* n calls in the session; every `lack`th is missing from the records. The log continues
 * afterwards. */
static void join_calls(struct joined *j, unsigned n, unsigned lack, const struct clocks *clocks)
{
	const struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	struct wire_site site = {.min_ns = MS, .max_ns = MS};
	struct writer w = {0};
	union rec r;

	begin(j);
	put(&j->kit, mk_event(&r, WIRE_THREAD_NEW, 7, ATTACH));
	for (unsigned i = 0; i < n; i++) {
		if (lack && i % lack == 0)
			continue;
		put_call(j, i);
		site.calls++;
		site.wall_ns += MS;
	}
	assert_int_equal(intake__site_counters(j->kit.in, &key, &site, 0), 0);
	log_begin(&w);
	log_calls(&w, 0, n + 60);
	w_block_end(&w, in_log(call_at(n + 60)));
	finish_clocks(j, &w, 300 * MS, clocks);
}

/* The log's time 0 is determined from what both saw, with the precision that allows. */
static void check_matched(const struct joined *j)
{
	assert_true(j->t->eventlog.known);
	assert_true(j->t->eventlog.offset_error_ns != UINT64_MAX);
	assert_in_range(j->t->eventlog.offset_ns, RTS_AT - 20 * US, RTS_AT + 20 * US);
}

/* The program runs and makes calls until its log is read: all calls of the session match. */
static void test_calls_after_session(void **state)
{
	const struct clocks good = {0};
	struct joined j;

	(void)state;
	join_calls(&j, DURATION / STEP, 0, &good);
	check_matched(&j);
	assert_int_equal(j.t->calls[0].calls, DURATION / STEP);
	assert_true(j.t->eventlog.agreement_safe_calls == 1);
	end_join(&j);
	join_calls(&j, DURATION / STEP, 10, &good);
	check_matched(&j);
	assert_true(j.t->eventlog.agreement_safe_calls == 0.9);
	end_join(&j);
}

static void message(struct writer *w, uint64_t ns, const char *text)
{
	w_event(w, EL_USER_MSG, in_log(ns), "t", text);
}

/* ── clocks ──────────────────────────────────────────────────────────────────────────────── */

/* The system was suspended since the program's start, or its wall clock was set: the log is
 * joined. */
static void test_clocks(void **state)
{
	static const struct clocks cases[] = {
		/* suspended before the program began, as on every laptop */
		{.before_ns = 36000 * S},
		/* and since: by the wall clock the log ends before the session, or before the
		 * boot */
		{.suspended_ns = 30 * S},
		{.suspended_ns = 30 * S, .no_start = true},
		{.suspended_ns = 3600 * S},
		{.before_ns = 36000 * S, .suspended_ns = 30 * S, .during = true},
		/* as on a virtual machine that has just learnt the time */
		{.set_ns = 3600 * (int64_t)S},
		{.set_ns = 30 * (int64_t)S},
		{.set_ns = -20 * (int64_t)S},
		{.set_ns = 3600 * (int64_t)S, .before_ns = 36000 * S},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct joined j;

		print_message("          %zu\n", i);
		join_calls(&j, DURATION / STEP, 0, &cases[i]);
		check_matched(&j);
		assert_true(j.t->eventlog.agreement_safe_calls == 1);
		assert_false(is_missing(j.t, "eventlog"));
		end_join(&j);
	}
}

/* Suspended both before and since, the latter for an unknown time. GHC is not reported as late. */
static void test_clocks_differ(void **state)
{
	const struct clocks both = {.before_ns = 3600 * S, .suspended_ns = 30 * S};
	const struct clocks set = {.set_ns = 3600 * (int64_t)S}, idle = {.before_ns = 8 * S};
	struct joined j;
	struct writer w = {0};

	(void)state;
	join_calls(&j, DURATION / STEP, 0, &both);
	assert_true(j.t->eventlog.offset_error_ns == UINT64_MAX);
	assert_true(is_missing(j.t, "its clock and the system clock do not match"));
	assert_false(is_missing(j.t, "of the session in the eventlog"));
	end_join(&j);
	/* nor reported as the only cause, if a buffer that is not yet full may be the reason */
	begin(&j);
	put(&j.kit, mk_event(&(union rec){0}, WIRE_THREAD_NEW, 7, ATTACH));
	log_begin(&w);
	message(&w, RTS_AT + S, "the last that was written");
	w_block_end(&w, in_log(RTS_AT + S));
	finish_clocks(&j, &w, MS, &idle);
	assert_true(is_missing(j.t, "GHC writes a buffer only when it is full, or its clock"));
	end_join(&j);
	/* nothing seen by both confirms that the log begins at the process's start */
	begin(&j);
	put(&j.kit, mk_event(&(union rec){0}, WIRE_THREAD_NEW, 7, ATTACH));
	log_begin(&w);
	log_calls(&w, 0, DURATION / STEP);
	w_block_end(&w, in_log(LEAVE));
	finish_clocks(&j, &w, MS, &set);
	assert_false(j.t->eventlog.known);
	assert_true(is_missing(j.t, "its clock and the system clock do not match"));
	end_join(&j);
}

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

static const struct pic_window *window(const struct pic_target *t, const char *label)
{
	for (size_t i = 0; i < t->n_windows; i++)
		if (!strcmp(t->windows[i].label, label))
			return &t->windows[i];
	return NULL;
}

/* Of each interval the part within the session counts; intervals outside do not count. */
static void test_windows_of_session(void **state)
{
	const struct pic_window *v;
	struct joined j;
	struct writer w = {0};

	(void)state;
	begin(&j);
	put(&j.kit, mk_event(&(union rec){0}, WIRE_THREAD_NEW, 7, ATTACH));
	log_begin(&w);
	message(&w, RTS_AT + S, "START main");
	message(&w, ATTACH - 500 * MS, "START early");
	message(&w, ATTACH - 400 * MS, "STOP early");
	message(&w, ATTACH - 300 * MS, "START step");
	message(&w, ATTACH + 100 * MS, "STOP step");
	message(&w, ATTACH + 1000 * MS, "START step");
	message(&w, ATTACH + 1700 * MS, "STOP step");
	message(&w, LEAVE - 50 * MS, "START step");
	message(&w, LEAVE + 200 * MS, "STOP step");
	message(&w, LEAVE + 210 * MS, "START step");
	message(&w, LEAVE + 220 * MS, "STOP step");
	message(&w, LEAVE + 230 * MS, "START late");
	w_block_end(&w, in_log(LEAVE + 300 * MS));
	finish_join(&j, &w, 300 * MS);
	assert_int_equal(j.t->n_windows, 2);
	v = window(j.t, "main");
	assert_non_null(v);
	assert_int_equal(v->count, 1);
	assert_int_equal(v->total_ns, DURATION);
	assert_int_equal(v->unfinished, 1);
	v = window(j.t, "step");
	assert_non_null(v);
	assert_int_equal(v->count, 3);
	assert_int_equal(v->total_ns, 850 * MS);
	assert_int_equal(v->min_ns, 50 * MS);
	assert_int_equal(v->max_ns, 700 * MS);
	assert_int_equal(v->unfinished, 1);
	end_join(&j);
}

#define MANY 300000

/* More intervals than are kept: the sums include all of them, and a note explains it. */
static void test_too_many_windows(void **state)
{
	const struct pic_window *v;
	struct joined j;
	struct writer w = {0};

	(void)state;
	begin(&j);
	put(&j.kit, mk_event(&(union rec){0}, WIRE_THREAD_NEW, 7, ATTACH));
	log_begin(&w);
	message(&w, ATTACH - 500 * MS, "START early");
	message(&w, ATTACH - 400 * MS, "STOP early");
	message(&w, ATTACH - 300 * MS, "START main");
	for (unsigned i = 0; i < MANY; i++) {
		message(&w, ATTACH + i * 10 * US, "START step");
		message(&w, ATTACH + i * 10 * US + US, "STOP step");
	}
	w_block_end(&w, in_log(LEAVE));
	w_end(&w);
	finish_join(&j, &w, MS);
	assert_null(window(j.t, "early"));
	v = window(j.t, "step");
	assert_non_null(v);
	assert_int_equal(v->count, MANY);
	assert_int_equal(v->total_ns, MANY * US);
	assert_int_equal(v->min_ns, US);
	assert_int_equal(v->max_ns, US);
	v = window(j.t, "main");
	assert_non_null(v);
	assert_true(v->max_ns <= DURATION);
	assert_true(is_missing(j.t, "of 300002 intervals between START and STOP messages"));
	end_join(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gcs_of_session),
		cmocka_unit_test(test_too_many_gcs),
		cmocka_unit_test(test_gcs_of_lagging_log),
		cmocka_unit_test(test_gcs_came_off),
		cmocka_unit_test(test_calls_after_session),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_clocks_differ),
		cmocka_unit_test(test_windows_of_session),
		cmocka_unit_test(test_too_many_windows),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}

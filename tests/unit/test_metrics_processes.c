/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of made-up processes: which are shown, what remains of the others, bounds, labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics_priv.h"
#include "picture/make.h"
#include "scraped.h"

#define MS UINT64_C(1000000)

static void give(struct metrics *m, uint32_t no, pid_t pid, uint64_t haskell_ns, bool ended,
		 bool closed)
{
	struct pic_target t = target_of(pid, "prog");
	struct figures f = {.no = no, .target = &t, .ended = ended};

	f.thread_ns[ST_HASKELL] = haskell_ns;
	metrics__take(m, &f, closed);
}

#define HASKELL "safescoped_thread_seconds_total{pid=\"1\",program=\"prog\",state=\"haskell\"}"

static void estimates_that_sink(void **state)
{
	/*
	 * ms: of the part that goes on (negative: of a closed part); shown: the counter after that,
	 * in s
	 */
	static const struct {
		int ms;
		double shown;
	} steps[] = {{10, .010}, {5, .010}, {12, .012}, {-11, .012}, {0, .012},
		     {1, .012},	 {2, .013}, {-3, .014}, {4, .018}};
	struct metrics *m;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct scraped s;

		give(m, 7, 1, (uint64_t)abs(steps[i].ms) * MS, false, steps[i].ms < 0);
		s = scrape(m);
		assert_true(near(value_of(&s, HASKELL), (uint64_t)(steps[i].shown * 1e9), EXACT));
		scraped_free(&s);
	}
	metrics__free(m);
}

/* Time that turns out to be another state's is not counted twice, and no sum decreases. */
static void estimates_that_move(void **state)
{
	/* of the part that goes on, in ms: what is taken for Haskell code, collecting and idle */
	static const struct {
		uint64_t haskell, gc, idle;
		bool closed;
	} steps[] = {
		{50, 0, 0, false},  {20, 40, 10, false}, {25, 40, 10, true}, {10, 0, 0, false},
		{2, 15, 25, false}, {5, 25, 25, true},	 {40, 0, 30, false},
	};
	uint64_t over = 0, idle = 0;
	struct scraped before = {0};
	struct metrics *m;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct pic_target t = target_of(1, "prog");
		struct figures f = {.no = 7, .target = &t};
		uint64_t on = over + steps[i].haskell + steps[i].gc, off = idle + steps[i].idle;
		struct scraped s;

		f.thread_ns[ST_HASKELL] = steps[i].haskell * MS;
		f.thread_ns[ST_GC_WORK] = steps[i].gc * MS;
		f.thread_ns[ST_IDLE] = steps[i].idle * MS;
		metrics__take(m, &f, steps[i].closed);
		s = scrape(m);
		check_grown(&before, &s);
		assert_true(near(sum_of(&s, "safescoped_thread_seconds_total", "haskell") +
					 sum_of(&s, "safescoped_thread_seconds_total", "gc_work"),
				 on * MS, EXACT));
		assert_true(near(sum_of(&s, "safescoped_thread_seconds_total", "idle"), off * MS,
				 EXACT));
		over = steps[i].closed ? on : over;
		idle = steps[i].closed ? off : idle;
		scraped_free(&before);
		before = s;
	}
	scraped_free(&before);
	metrics__free(m);
}

#define COUNT_OF(name, labels) "safescoped_" name "{pid=\"1\",program=\"prog\"," labels "}"

/* Prometheus has no rate of a series' first value: what has not occurred yet is shown as 0, unless
 * it could not be seen. */
static void what_has_not_occurred(void **state)
{
	static const char *const gcs[] = {
		COUNT_OF("gc_collections_total", "generation=\"0\""),
		COUNT_OF("gc_collections_total", "generation=\"1\""),
		COUNT_OF("gc_pause_seconds_total", "generation=\"1\""),
		COUNT_OF("gc_sync_seconds_total", "generation=\"1\""),
	};
	const char *wait = COUNT_OF("thread_seconds_total", "state=\"cap_wait\"");
	const char *preempted = COUNT_OF("capability_seconds_total", "state=\"preempted\"");

	(void)state;
	for (int counted = 0; counted < 2; counted++) {
		struct pic_target t = target_of(1, "prog");
		struct figures f = {.no = 7, .target = &t, .gc_counted = counted};
		struct metrics *m;
		struct scraped s;

		f.thread_ns[ST_IDLE] = 10 * MS;
		f.cap_ns[CS_IDLE] = counted * 10 * MS;
		assert_int_equal(metrics__new(&m), 0);
		metrics__take(m, &f, false);
		s = scrape(m);
		assert_true(value_of(&s, wait) == 0);
		assert_int_equal(find(&s, preempted) != NULL, counted);
		for (size_t i = 0; i < ARRAY_SIZE(gcs); i++) {
			assert_int_equal(find(&s, gcs[i]) != NULL, counted);
			assert_true(!counted || value_of(&s, gcs[i]) == 0);
		}
		assert_null(find(&s, COUNT_OF("gc_collections_total", "generation=\"2\"")));
		assert_null(find(&s, COUNT_OF("gc_collections_total", "generation=\"unknown\"")));
		assert_null(find(&s, COUNT_OF("thread_seconds_total", "state=\"safe_call\"")));
		scraped_free(&s);
		metrics__free(m);
	}
}

static void stale_processes_go(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	give(m, 0, 1, 10 * MS, false, false);
	give(m, 0, 1, 11 * MS, true, true);
	metrics__forget_stale(m, 1000);
	s = scrape(m);
	assert_true(near(value_of(&s, HASKELL), 11 * MS, EXACT));
	scraped_free(&s);
	metrics__forget_stale(m, 1000 + METRICS_STALE_NS - 1);
	/* still reported, since it is in the session's picture */
	give(m, 0, 1, 0, true, false);
	s = scrape(m);
	assert_non_null(find(&s, HASKELL));
	scraped_free(&s);
	metrics__forget_stale(m, 1000 + METRICS_STALE_NS);
	give(m, 0, 1, 12 * MS, true, false);
	s = scrape(m);
	assert_null(find(&s, HASKELL));
	assert_true(sum_of(&s, "safescoped_target_info", "") == 0);
	scraped_free(&s);
	metrics__free(m);
}

static bool is_shown_at(struct metrics *m, uint64_t now_ns)
{
	struct scraped s;
	bool shown;

	metrics__forget_stale(m, now_ns);
	s = scrape(m);
	shown = find(&s, HASKELL) != NULL;
	scraped_free(&s);
	return shown;
}

/* The time until an ended process goes stale counts from its end, however late metrics are read. */
static void stale_since_the_end(void **state)
{
	/* the time from the end to the first reading after it */
	static const uint64_t late_ns[] = {0, 1, METRICS_STALE_NS - 1, METRICS_STALE_NS,
					   10 * METRICS_STALE_NS};
	const uint64_t end_ns = 5000 * MS;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(late_ns); i++) {
		struct pic_target t = target_of(1, "prog");
		struct figures f = {.target = &t};
		struct metrics *m;

		f.thread_ns[ST_HASKELL] = MS;
		assert_int_equal(metrics__new(&m), 0);
		metrics__take(m, &f, false);
		f.ended = true;
		f.ended_ns = end_ns;
		metrics__take(m, &f, i % 2);
		/* a reading that had begun before the end */
		assert_true(is_shown_at(m, end_ns - 1));
		assert_int_equal(is_shown_at(m, end_ns + late_ns[i]),
				 late_ns[i] < METRICS_STALE_NS);
		assert_false(is_shown_at(m, end_ns + METRICS_STALE_NS));
		metrics__free(m);
	}
}

/* The same pid with the same program again: never two series of the same name, and the one goes on.
 */
static void another_program(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	give(m, 0, 1, 10 * MS, false, false);
	give(m, 0, 1, 10 * MS, true, false);
	give(m, 1, 1, 3 * MS, false, false);
	/* the previous program is still in the session's picture */
	give(m, 0, 1, 10 * MS, true, false);
	s = scrape(m);
	assert_true(near(value_of(&s, HASKELL), 13 * MS, EXACT));
	scraped_free(&s);
	metrics__free(m);
}

/*
 * A process execs another program: what it did before stays for as long as that of one that has
 * ended, and both add up. After a second exec of the same program its series goes on.
 */
static void another_name(void **state)
{
	struct pic_target before = target_of(1, "before"), after = target_of(1, "after");
	struct figures was = {.no = 1, .target = &before}, is = {.no = 2, .target = &after};
	const char *name = "safescoped_thread_seconds_total";
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	was.thread_ns[ST_HASKELL] = 10 * MS;
	metrics__take(m, &was, false);
	was.thread_ns[ST_HASKELL] = 16 * MS;
	was.ended = true;
	was.ended_ns = 5;
	is.thread_ns[ST_HASKELL] = 3 * MS;
	for (int i = 0; i < 2; i++) {
		metrics__take(m, &was, i);
		metrics__take(m, &is, i);
		metrics__forget_stale(m, METRICS_STALE_NS);
		s = scrape(m);
		assert_true(near(sum_of(&s, name, "program=\"before\""), 16 * MS, EXACT));
		assert_true(near(sum_of(&s, name, "program=\"after\""), 3 * MS, EXACT));
		scraped_free(&s);
	}
	is.no = 3;
	is.thread_ns[ST_HASKELL] = 1 * MS;
	metrics__take(m, &is, false);
	metrics__forget_stale(m, METRICS_STALE_NS + 5);
	s = scrape(m);
	assert_true(near(sum_of(&s, name, ""), 4 * MS, EXACT));
	scraped_free(&s);
	metrics__free(m);
}

static void only_so_many_processes(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (unsigned i = 0; i < METRICS_MAX_TARGETS + 100; i++)
		give(m, i, (pid_t)i + 1, MS, false, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "") == METRICS_MAX_TARGETS);
	scraped_free(&s);
	/* ended processes make room */
	give(m, 3, 4, MS, true, false);
	give(m, 5000, 5001, MS, false, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "") == METRICS_MAX_TARGETS);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"5001\"") == 1);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"4\"") == 0);
	scraped_free(&s);
	metrics__free(m);
}

static void end_at(struct metrics *m, uint32_t no, uint64_t ns)
{
	struct pic_target t = target_of((pid_t)no + 1, "prog");
	struct figures f = {.no = no, .target = &t, .ended = true, .ended_ns = ns};

	metrics__take(m, &f, false);
}

/* The one that has just ended, of which nobody has scraped the last values, is not the first to
 * make room. */
static void the_first_that_ended_goes(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (unsigned i = 0; i < METRICS_MAX_TARGETS; i++)
		give(m, i, (pid_t)i + 1, MS, false, false);
	end_at(m, 100, 2000);
	end_at(m, 3, 1000);
	metrics__forget_stale(m, 3000);
	end_at(m, 200, 5000);
	/* its end has no time yet */
	give(m, 150, 151, MS, true, false);
	for (unsigned i = 0; i < 2; i++)
		give(m, 5000 + i, (pid_t)(5001 + i), MS, false, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "") == METRICS_MAX_TARGETS);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"4\"") == 0);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"101\"") == 0);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"201\"") == 1);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"151\"") == 1);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"5002\"") == 1);
	scraped_free(&s);
	metrics__free(m);
}

/* Pids 1 to 9999 belong to one user, 10000 to 19999 to the next one, and so on. */
static uid_t user_of_pid(void *ctx, pid_t pid)
{
	(void)ctx;
	return (uid_t)pid / 10000;
}

static double shown_of(struct metrics *m, const char *pid)
{
	struct scraped s = scrape(m);
	double n = sum_of(&s, "safescoped_target_info", pid);

	scraped_free(&s);
	return n;
}

static double hidden_of(struct metrics *m)
{
	struct scraped s;
	double n;

	metrics__forget_stale(m, 1000);
	s = scrape(m);
	n = value_of(&s, "safescoped_targets_hidden");
	scraped_free(&s);
	return n;
}

/* One user's processes do not use up the room of another's. */
static void users_share_the_room(void **state)
{
	const unsigned n = METRICS_MAX_TARGETS + 100;
	struct metrics *m;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	metrics__set_places(m, NULL, user_of_pid, NULL);
	for (unsigned i = 0; i < n; i++)
		give(m, i, (pid_t)i + 1, MS, false, false);
	assert_true(hidden_of(m) == 100);
	for (unsigned i = 0; i < n; i++)
		give(m, n + i, (pid_t)(10000 + i), MS, false, false);
	assert_true(shown_of(m, "") == METRICS_MAX_TARGETS);
	assert_true(shown_of(m, "pid=\"1\"") == 1);
	assert_true(shown_of(m, "pid=\"10000\"") == 1);
	give(m, 2 * n, 20000, MS, false, false);
	assert_true(shown_of(m, "pid=\"20000\"") == 1);
	/* all are reported repeatedly: a process that has a place keeps it */
	for (unsigned k = 0; k < 3; k++) {
		struct scraped s;

		hidden_of(m);
		for (unsigned i = 0; i < n; i++) {
			give(m, i, (pid_t)i + 1, MS, false, false);
			give(m, n + i, (pid_t)(10000 + i), MS, false, false);
		}
		give(m, 2 * n, 20000, MS, false, false);
		assert_true(hidden_of(m) == 2.0 * n + 1 - METRICS_MAX_TARGETS);
		s = scrape(m);
		for (unsigned i = 0; i < METRICS_MAX_TARGETS / 2 - 1; i++) {
			char pid[32];

			snprintf(pid, sizeof(pid), "pid=\"%u\"", 10000 + i);
			assert_true(sum_of(&s, "safescoped_target_info", pid) == 1);
		}
		assert_true(sum_of(&s, "safescoped_target_info", "pid=\"20000\"") == 1);
		scraped_free(&s);
	}
	/* an ended process gives way first, even to a user who has more */
	give(m, 2 * n, 20000, MS, true, false);
	give(m, 2 * n + 1, 30000, MS, false, false);
	assert_true(shown_of(m, "pid=\"20000\"") == 0);
	assert_true(shown_of(m, "pid=\"30000\"") == 1);
	metrics__free(m);
}

/* Thousands of short-lived programs leave no entries. */
static void short_lives(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	for (unsigned i = 0; i < 10000; i++)
		give(m, i, (pid_t)i + 1, MS, true, i % 2);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "") == 0);
	scraped_free(&s);
	metrics__free(m);
}

static void find_nasty_place(void *ctx, pid_t pid, struct metrics_place *ret_place)
{
	(void)ctx;
	assert_int_equal(pid, 1);
	*ret_place = (struct metrics_place){.container = "", .pod = "p", .service = "a\"b\\c\n"};
}

/* The parser above rejects what is not escaped. */
static void names_of_any_bytes(void **state)
{
	static const char *const names[] = {"a\"b",	    "a\\", "a\nb", "\xff\xfe",
					    "\xe2\x80\xae", "{}",  "",	   "a,b=\"c\"} 1\nx 2",
					    "\x1b[2J"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct pic_target t = target_of(1, names[i]);
		struct figures_site site = {
			.addr = 1, .function = names[i], .caller = names[i], .place = names[i]};
		struct figures f = {.no = 1, .target = &t, .sites = &site, .n_sites = 1};
		struct metrics *m;
		struct scraped s;

		t.exe = t.way = t.ghc_version = names[i];
		site.hist[3] = 1;
		assert_int_equal(metrics__new(&m), 0);
		metrics__set_places(m, find_nasty_place, NULL, NULL);
		metrics__take(m, &f, false);
		s = scrape(m);
		assert_true(sum_of(&s, "safescoped_target_info", "pod=\"p\"") == 1);
		assert_true(sum_of(&s, "safescoped_target_info", "service=\"a\\\"b\\\\c\\\\x0a\"") +
				    sum_of(&s, "safescoped_target_info",
					   "service=\"a\\\"b\\\\c\\\\u{a}\"") ==
			    1);
		assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "") == 1);
		scraped_free(&s);
		metrics__free(m);
	}
}

/* A long path keeps its end, with the program's name; no character is cut in half. */
static void long_path(void **state)
{
	struct pic_target t = target_of(1, "web");
	struct figures f = {.no = 1, .target = &t};
	struct metrics *m;
	struct scraped s;
	char path[300] = "";
	size_t n = 0;

	(void)state;
	while (n < 250)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "/\xc3\xa4");
	snprintf(path + n, sizeof(path) - n, "/bin/web");
	t.exe = path;
	assert_int_equal(metrics__new(&m), 0);
	metrics__take(m, &f, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "\xc3\xa4/bin/web\"") == 1);
	assert_true(sum_of(&s, "safescoped_target_info", "exe=\"\xc3\xa4/") +
			    sum_of(&s, "safescoped_target_info", "exe=\"/\xc3\xa4/") ==
		    1);
	scraped_free(&s);
	metrics__free(m);
}

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/* URLs that differ only beyond the length of a process's name have separate series. */
static void pushes_by_url(struct metrics *m)
{
	char url[METRICS_MAX_LABEL + 1];
	struct scraped s;

	for (size_t n = METRICS_MAX_LABEL - 2; n <= METRICS_MAX_LABEL; n++) {
		memset(url, 'x', n);
		url[n] = '\0';
		metrics__set_labelled(m, METRICS_PUSH_DELIVERED, url, n);
	}
	metrics__set_labelled(m, METRICS_PUSH_LAG_NS, "otlp+http://a:1", 2500000000);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_push_delivered_total", "url=\"xxx") ==
		    2 * METRICS_MAX_LABEL - 3);
	assert_true(value_of(&s, "safescoped_push_lag_seconds{url=\"otlp+http://a:1\"}") == 2.5);
	scraped_free(&s);
}

static void own_numbers(void **state)
{
	static const char cause[] = "lost \"ring\"";
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	s = scrape(m);
	assert_true(value_of(&s, "safescoped_build_info{version=\"" SAFESCOPED_VERSION "\"}") == 1);
	assert_null(find(&s, "safescoped_targets"));
	scraped_free(&s);
	for (unsigned i = 0; i < METRICS_VALUES; i++)
		metrics__set(m, (enum metrics_value)i, 1500000000 + i);
	metrics__set(m, METRICS_BPF_NS, 5);
	metrics__set(m, METRICS_TARGETS, 5);
	metrics__set_labelled(m, METRICS_LOST, cause, 4);
	metrics__set_labelled(m, METRICS_LOST, cause, 5);
	s = scrape(m);
	assert_true(value_of(&s, "safescoped_lost_total{cause=\"lost \\\"ring\\\"\"}") == 5);
	/* a gauge may decrease; a counter does not, even if it is an estimate */
	assert_true(value_of(&s, "safescoped_targets") == 5);
	assert_true(near(value_of(&s, "safescoped_bpf_seconds_total"), 1500000000 + METRICS_BPF_NS,
			 EXACT));
	assert_true(near(value_of(&s, "safescoped_cpu_seconds_total{process=\"helpers\"}"),
			 1500000000 + METRICS_HELPERS_NS, EXACT));
	assert_int_equal(s.n, METRICS_VALUES + 2);
	assert_true(sum_of(&s, "safescoped_push_delivered_total", "") == 0);
	scraped_free(&s);
	pushes_by_url(m);
	/* the number of labels is limited */
	for (unsigned i = 0; i < 3 * METRICS_MAX_LABELLED; i++) {
		char label[16];

		snprintf(label, sizeof(label), "cause %u", i);
		metrics__set_labelled(m, METRICS_LOST, label, 1);
	}
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_lost_total", "cause ") == METRICS_MAX_LABELLED - 4);
	scraped_free(&s);
	metrics__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_that_sink),
		cmocka_unit_test(estimates_that_move),
		cmocka_unit_test(what_has_not_occurred),
		cmocka_unit_test(stale_processes_go),
		cmocka_unit_test(stale_since_the_end),
		cmocka_unit_test(another_program),
		cmocka_unit_test(another_name),
		cmocka_unit_test(only_so_many_processes),
		cmocka_unit_test(the_first_that_ended_goes),
		cmocka_unit_test(users_share_the_room),
		cmocka_unit_test(short_lives),
		cmocka_unit_test(names_of_any_bytes),
		cmocka_unit_test(long_path),
		cmocka_unit_test(own_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

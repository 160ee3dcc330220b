/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of processes that are made up: who is shown, what stays of the others, bounds, labels. */
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

static struct pic_target target_of(pid_t pid, const char *comm)
{
	return (struct pic_target){.pid = pid,
				   .comm = comm,
				   .exe = "/bin/x",
				   .ghc_version = "9.0.2",
				   .way = "rts_thr"};
}

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
	/* of the part that goes on (negative: it is over), and what is shown then */
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
	/* still given, since the session has it in its picture */
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

/* However late anybody asks, its time begins at its end. */
static void stale_since_the_end(void **state)
{
	/* when the first text after the end is asked for, and for how long it is there from then on
	 */
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
		/* a reading that had begun by then */
		assert_true(is_shown_at(m, end_ns - 1));
		assert_int_equal(is_shown_at(m, end_ns + late_ns[i]),
				 late_ns[i] < METRICS_STALE_NS);
		assert_false(is_shown_at(m, end_ns + METRICS_STALE_NS));
		metrics__free(m);
	}
}

/* The same pid, another program: never two series of the same name. */
static void another_program(void **state)
{
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	give(m, 0, 1, 10 * MS, false, false);
	give(m, 0, 1, 10 * MS, true, false);
	give(m, 1, 1, 3 * MS, false, false);
	/* the one before is still in the session's picture */
	give(m, 0, 1, 10 * MS, true, false);
	s = scrape(m);
	assert_true(near(value_of(&s, HASKELL), 3 * MS, EXACT));
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
	/* those that end make room */
	give(m, 3, 4, MS, true, false);
	give(m, 5000, 5001, MS, false, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_target_info", "") == METRICS_MAX_TARGETS);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"5001\"") == 1);
	assert_true(sum_of(&s, "safescoped_target_info", "pid=\"4\"") == 0);
	scraped_free(&s);
	metrics__free(m);
}

/* pid 1 to 9999 are one user's, 10000 to 19999 another one's, and so on. */
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

/* One user's processes take no room that another one's need. */
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
	/* all are given again and again: who has his place keeps it */
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
	/* what has ended goes first, whoever has more */
	give(m, 2 * n, 20000, MS, true, false);
	give(m, 2 * n + 1, 30000, MS, false, false);
	assert_true(shown_of(m, "pid=\"20000\"") == 0);
	assert_true(shown_of(m, "pid=\"30000\"") == 1);
	metrics__free(m);
}

/* Programs that begin and end by the thousand leave nothing. */
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

/* The reader above refuses what is not escaped. */
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

/* ── places of safe calls ────────────────────────────────────────────────────────────────── */

#define SITES 30

static double count_of(const struct scraped *s, unsigned n)
{
	char label[32];

	snprintf(label, sizeof(label), "site=\"f+%u\"", n);
	return sum_of(s, "safescoped_safe_call_seconds_count", label);
}

/*
 * As many places as there are slots have series; the others are one. Which ones are the busiest
 * changes, and what all series grow by, one that is new from 0, are the calls since: none of them
 * sinks, and none is counted twice.
 */
static void busiest_places(void **state)
{
	struct figures_site v[SITES] = {0};
	struct figures f = {.sites = v, .n_sites = SITES};
	char names[SITES][16];
	struct sites sites = {0};
	uint64_t was[SITES + 1] = {0}, others = 0;
	unsigned seed = 11, ended = 0;

	(void)state;
	for (unsigned i = 0; i < SITES; i++) {
		snprintf(names[i], sizeof(names[i]), "f+%u", i);
		v[i].addr = i + 1;
		v[i].function = v[i].caller = v[i].place = names[i];
	}
	for (unsigned step = 0; step < 2000; step++) {
		bool closed = step % 37 == 36, has[SITES + 1] = {false};
		uint64_t calls = 0, grown = 0;
		unsigned used = 0;

		/* each has its time in which it is busy */
		for (unsigned i = 0; i < SITES; i++) {
			unsigned n = (unsigned)rand_r(&seed) % (step / 50 % SITES == i ? 90 : 3);

			v[i].hist[0] += n;
			v[i].wall_ns += n * MS;
			calls += n;
		}
		if (step % 5 == 4)
			sites__choose(&sites, &f);
		sites__take(&sites, &f, closed);
		for (unsigned i = 0; i < METRICS_MAX_SITES; i++) {
			const struct site_slot *slot = &sites.slots[i];

			if (!slot->used)
				continue;
			used++;
			has[slot->addr] = true;
			assert_true(slot->sums.hist[0].shown >= was[slot->addr]);
			grown += slot->sums.hist[0].shown - was[slot->addr];
			was[slot->addr] = slot->sums.hist[0].shown;
		}
		assert_int_equal(used, METRICS_MAX_SITES);
		for (unsigned i = 1; i <= SITES; i++) {
			ended += was[i] && !has[i];
			was[i] = has[i] ? was[i] : 0;
		}
		assert_true(sites.others.hist[0].shown >= others);
		grown += sites.others.hist[0].shown - others;
		others = sites.others.hist[0].shown;
		assert_int_equal(grown, calls);
		for (unsigned i = 0; closed && i < SITES; i++) {
			v[i].hist[0] = 0;
			v[i].wall_ns = 0;
		}
	}
	assert_true(ended > 20);
	sites__free(&sites);
}

/* The first ones are those that are busiest then. */
static void first_places(void **state)
{
	struct figures_site v[SITES] = {0};
	struct pic_target t = target_of(1, "prog");
	struct figures f = {.target = &t, .sites = v, .n_sites = SITES};
	char names[SITES][16];
	struct metrics *m;
	struct scraped s;

	(void)state;
	for (unsigned i = 0; i < SITES; i++) {
		snprintf(names[i], sizeof(names[i]), "f+%u", i);
		v[i] = (struct figures_site){.addr = i + 1,
					     .function = "f",
					     .caller = "g",
					     .place = names[i],
					     .wall_ns = i * MS};
		v[i].hist[5] = i;
	}
	assert_int_equal(metrics__new(&m), 0);
	metrics__take(m, &f, false);
	s = scrape(m);
	for (unsigned i = 0; i < SITES; i++)
		assert_true(count_of(&s, i) == (i >= SITES - METRICS_MAX_SITES ? i : 0));
	assert_true(2 * sum_of(&s, "safescoped_safe_call_seconds_count", "[others]") ==
		    (SITES - METRICS_MAX_SITES) * (SITES - METRICS_MAX_SITES - 1));
	/* 1.048576 ms: 2^20 ns */
	assert_true(2 * sum_of(&s, "safescoped_safe_call_seconds_bucket", "le=\"0.001048576\"") ==
		    SITES * (SITES - 1));
	assert_true(sum_of(&s, "safescoped_safe_call_seconds_bucket", "le=\"0.000262144\"") == 0);
	scraped_free(&s);
	metrics__free(m);
}

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/* Two that differ beyond what a process's name may have are two. */
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
	/* a gauge sinks, and a counter, which may be estimated, does not */
	assert_true(value_of(&s, "safescoped_targets") == 5);
	assert_true(near(value_of(&s, "safescoped_bpf_seconds_total"), 1500000000 + METRICS_BPF_NS,
			 EXACT));
	assert_true(near(value_of(&s, "safescoped_cpu_seconds_total{process=\"helpers\"}"),
			 1500000000 + METRICS_HELPERS_NS, EXACT));
	assert_int_equal(s.n, METRICS_VALUES + 2);
	assert_true(sum_of(&s, "safescoped_push_delivered_total", "") == 0);
	scraped_free(&s);
	pushes_by_url(m);
	/* of those there are so many only */
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

/* Two places in files of odd names, of which only the offsets differ, stay two. */
static void places_of_odd_names(void **state)
{
	struct figures_site v[2] = {0};
	char places[2][120];
	struct metrics *m;
	struct scraped s;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		memset(places[i], '\x01', 100);
		snprintf(places[i] + 100, 20, "+0x%x", 0x100 + i);
		v[i] = (struct figures_site){
			.addr = i + 1, .function = "f", .caller = "g", .place = places[i]};
		v[i].hist[0] = i + 1;
		v[i].wall_ns = MS;
	}
	assert_int_equal(metrics__new(&m), 0);
	{
		struct pic_target t = target_of(1, "prog");
		struct figures f = {.target = &t, .sites = v, .n_sites = 2};

		metrics__take(m, &f, false);
	}
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "+0x100\"") == 1);
	assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "+0x101\"") == 2);
	scraped_free(&s);
	metrics__free(m);
}

/* A file that is mapped twice has two series of one place. */
static void places_of_one_name(void **state)
{
	struct figures_site v[2] = {0};
	struct metrics *m;
	struct scraped s;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		v[i] = (struct figures_site){.addr = 0x1000 * (i + 1),
					     .function = "f",
					     .caller = "g",
					     .place = "a.so+0x1"};
		v[i].hist[0] = i + 1;
		v[i].wall_ns = (2 - i) * MS;
	}
	assert_int_equal(metrics__new(&m), 0);
	{
		struct pic_target t = target_of(1, "prog");
		struct figures f = {.target = &t, .sites = v, .n_sites = 2};

		metrics__take(m, &f, false);
	}
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "\"a.so+0x1\"") == 1);
	assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "\"a.so+0x1@0x2000\"") == 2);
	scraped_free(&s);
	metrics__free(m);
}

/* The longest there may be has room. */
static void longest_text(void **state)
{
	struct figures_site v[SITES] = {0};
	char name[20000], labels[40000];
	struct buf out = {0};
	struct metrics *m;

	(void)state;
	memset(name, '\x1f', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memset(labels, 'x', sizeof(labels) - 1);
	labels[sizeof(labels) - 1] = '\0';
	assert_int_equal(metrics__new(&m), 0);
	for (unsigned i = 0; i < SITES; i++) {
		v[i] = (struct figures_site){.addr = i + 1,
					     .function = labels,
					     .caller = labels,
					     .place = name,
					     .interruptible = true};
		v[i].hist[0] = UINT64_MAX / 64;
		v[i].wall_ns = UINT64_MAX / 64;
	}
	for (unsigned i = 0; i < METRICS_MAX_TARGETS; i++) {
		/* the beginning of its file's name */
		struct pic_target t =
			target_of((pid_t)i + 1, "\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f\x1f"
						"\x1f\x1f\x1f");
		struct figures f = {.no = i, .target = &t, .sites = v, .n_sites = SITES};

		t.exe = name;
		for (unsigned k = 0; k < ST_MAX; k++)
			f.thread_ns[k] = UINT64_MAX / 2;
		metrics__take(m, &f, false);
	}
	buf__init(&out, METRICS_MAX_TEXT);
	assert_int_equal(metrics__write(m, &out), 0);
	buf__free(&out);
	metrics__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimates_that_sink),
		cmocka_unit_test(stale_processes_go),
		cmocka_unit_test(stale_since_the_end),
		cmocka_unit_test(another_program),
		cmocka_unit_test(only_so_many_processes),
		cmocka_unit_test(users_share_the_room),
		cmocka_unit_test(short_lives),
		cmocka_unit_test(names_of_any_bytes),
		cmocka_unit_test(busiest_places),
		cmocka_unit_test(first_places),
		cmocka_unit_test(own_numbers),
		cmocka_unit_test(places_of_odd_names),
		cmocka_unit_test(places_of_one_name),
		cmocka_unit_test(longest_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

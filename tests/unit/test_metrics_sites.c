/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics of safe calls by call site: which sites have series, what is shown of them, bounds. */
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

#define MS    UINT64_C(1000000)
#define SITES 30

static double count_of(const struct scraped *s, unsigned n)
{
	char label[32];

	snprintf(label, sizeof(label), "site=\"f+%u\"", n);
	return sum_of(s, "safescoped_safe_call_seconds_count", label);
}

/*
 * There are as many series as slots; all other sites share one. The set of the busiest sites
 * changes. All series together grow by the calls since the last reading, and a new one grows from
 * 0: none decreases, and no call is counted twice.
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

		/* each site has a time in which it is the busiest */
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

/* Two sites get better names after they were shown: their series go on under these, and stay
 * distinct. */
static void better_names(void **state)
{
	struct figures_site v[2] = {
		{.addr = 1, .function = "[prog]+0x1", .caller = "g", .place = "f+1"},
		{.addr = 2, .function = "[prog]+0x2", .caller = "g", .place = "f+1"}};
	struct pic_target t = target_of(1, "prog");
	struct figures f = {.target = &t, .sites = v, .n_sites = ARRAY_SIZE(v)};
	const char *count = "safescoped_safe_call_seconds_count";
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	v[0].hist[3] = 5;
	v[1].hist[3] = 7;
	metrics__take(m, &f, true);
	s = scrape(m);
	assert_true(sum_of(&s, count, "function=\"[prog]+0x1\"") == 5);
	scraped_free(&s);
	v[0].function = v[1].function = "read";
	v[1].caller = v[0].caller = "Main.load";
	v[0].hist[3] = 1;
	v[1].hist[3] = 0;
	for (int i = 0; i < 2; i++) {
		metrics__take(m, &f, false);
		s = scrape(m);
		assert_true(sum_of(&s, count, "[prog]") == 0);
		assert_true(sum_of(&s, count, "function=\"read\",caller=\"Main.load\"") == 13);
		assert_true(sum_of(&s, count, "site=\"f+1\"") == 6);
		assert_true(sum_of(&s, count, "site=\"f+1@0x2\"") == 7);
		scraped_free(&s);
	}
	metrics__free(m);
}

/*
 * The pid becomes the same program again: the series of its sites go on, at whatever addresses the
 * sites are now. That of a site that has not been called again stands still.
 */
static void the_same_program(void **state)
{
	struct figures_site v[2] = {{.addr = 1, .function = "f", .caller = "g", .place = "f+1"},
				    {.addr = 2, .function = "f", .caller = "g", .place = "f+2"}};
	struct figures_site w[2] = {{.addr = 2, .function = "f", .caller = "g", .place = "f+1"},
				    {.addr = 1, .function = "f", .caller = "h", .place = "f+3"}};
	struct pic_target t = target_of(1, "prog");
	struct figures was = {.no = 1, .target = &t, .sites = v, .n_sites = ARRAY_SIZE(v)};
	struct figures is = {.no = 2, .target = &t, .sites = w, .n_sites = ARRAY_SIZE(w)};
	struct metrics *m;
	struct scraped s;

	(void)state;
	assert_int_equal(metrics__new(&m), 0);
	v[0].hist[3] = 5;
	v[1].hist[3] = 7;
	metrics__take(m, &was, true);
	v[0].hist[3] = 2;
	v[1].hist[3] = 0;
	w[0].hist[3] = 1;
	w[1].hist[3] = 3;
	was.ended = true;
	for (int i = 0; i < 2; i++) {
		metrics__take(m, &was, i);
		metrics__take(m, &is, i);
		s = scrape(m);
		assert_true(count_of(&s, 1) == 8);
		assert_true(count_of(&s, 2) == 7);
		assert_true(count_of(&s, 3) == 3);
		assert_true(sum_of(&s, "safescoped_safe_call_seconds_count", "") == 18);
		scraped_free(&s);
	}
	metrics__free(m);
}

/* The first sites with series are those that are busiest at the first reading. */
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

/* Two sites in files of odd names stay distinct if only their offsets differ. */
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

/* A file that is mapped twice has two series for one place. */
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

/* The longest possible text fits. */
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
		/* a prefix of the file's name: the whole file name is shown */
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
		cmocka_unit_test(busiest_places),      cmocka_unit_test(better_names),
		cmocka_unit_test(the_same_program),    cmocka_unit_test(first_places),
		cmocka_unit_test(places_of_odd_names), cmocka_unit_test(places_of_one_name),
		cmocka_unit_test(longest_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of the text report: it fits on one screen, keeps to its width, and repeats nothing.
 */
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/text/text_priv.h"
#include "output/output.h"
#include "picture/lost.h"
#include "test_export_pictures.h"

static const unsigned widths[] = {80, 100, 120, 160, 200};

/* noinline: otherwise gcc mistakes part of the text for open_memstream's variable */
__attribute__((noinline)) static char *render(const struct sketch *sketch,
					      const struct export_opts *opts)
{
	size_t len;

	return kit_render("text", sketch, opts, &len);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Steps over a line; returns NULL at the end. */
static char *next_line(char **text)
{
	return **text ? strsep(text, "\n") : NULL;
}

/* ── a host with eleven processes ────────────────────────────────────────────────────────── */

#define HOST 11

static struct pic_target host_targets[HOST];
static char host_names[HOST][16];
static struct pic_lane host_lanes[HOST][2];

/* Later processes used more CPU time. */
static struct sketch host(void)
{
	struct sketch sketch = service;

	for (size_t i = 0; i < HOST; i++) {
		struct pic_target *t = &host_targets[i];

		*t = service_target;
		t->pid = 1000 + (pid_t)i;
		snprintf(host_names[i], sizeof(host_names[i]), "server-%zu", i);
		t->comm = host_names[i];
		memcpy(host_lanes[i], service_lanes, sizeof(host_lanes[i]));
		host_lanes[i][0].cpu_ns = (100 + i) * MS;
		t->lanes[LANE_THREAD].v = host_lanes[i];
	}
	sketch.session.mode = "system";
	sketch.targets = host_targets;
	sketch.n_targets = HOST;
	return sketch;
}

/* The length is that of the observed threads; the lane of ended threads adds up all of theirs
 * and does not count. */
static void test_length(void **state)
{
	const struct export_opts opts = {.width = 160};
	struct pic_lane lanes[ARRAY_SIZE(service_lanes) + 1];
	struct sketch sketch = service;
	struct pic_target target = service_target;
	char *text;

	(void)state;
	memcpy(lanes, service_lanes, sizeof(service_lanes));
	lanes[2] = (struct pic_lane){.kind = LANE_THREAD,
				     .name = "[ended threads]",
				     .threads = 70000,
				     .start_ns = T0,
				     .end_ns = T0 + 700000 * MS,
				     .states_ns = {[ST_IDLE] = 700000 * MS}};
	target.lanes[LANE_THREAD] = (struct pic_lanes)LANES(lanes);
	sketch.targets = &target;
	text = render(&sketch, &opts);
	assert_non_null(strstr(text, "\n  1.00 s at "));
	free(text);
}

/* Growth smaller than its error is not shown; the rarity of collections is stated. */
static void test_heap_and_samples(void **state)
{
	const struct export_opts opts = {.width = 200};
	struct sketch sketch = service;
	struct pic_target target = service_target;
	char *text;

	(void)state;
	sketch.targets = &target;
	target.heap = (struct pic_heap){.known = true,
					.majors = 5,
					.growth_known = true,
					.growth = -2e6,
					.growth_error = 1e6};
	target.alloc = (struct pic_alloc){.known = true,
					  .bytes = 1000,
					  .samples = 246,
					  .sampled_bytes = 1000,
					  .tick_samples = 3};
	text = render(&sketch, &opts);
	assert_non_null(strstr(text, "major collections, −2.00 MB ± 1.00 MB a minute; at most"));
	assert_non_null(strstr(text,
			       "; 3 of the samples are the sampler's, where collections were over "
			       "50 ms apart: it favours"));
	free(text);
	target.heap.growth_error = 2.1e6;
	text = render(&sketch, &opts);
	assert_non_null(strstr(text, "major collections; at most"));
	assert_null(strstr(text, "a minute"));
	free(text);
}

/* Four major collections, the last one at the exit; the heap is known after two of them. */
static void test_major_collections(void **state)
{
	const struct export_opts opts = {.width = 200};
	static const struct pic_gc_event gcs[] = {
		{.start_ns = T0 + 1 * MS, .end_ns = T0 + 2 * MS, .generation = 1},
		{.start_ns = T0 + 3 * MS, .end_ns = T0 + 4 * MS, .generation = 1},
		{.start_ns = T0 + 4 * MS, .end_ns = T0 + 5 * MS, .generation = 0},
		{.start_ns = T0 + 5 * MS, .end_ns = T0 + 6 * MS, .generation = 1},
		{.start_ns = T0 + 7 * MS, .end_ns = T0 + 8 * MS, .generation = 1},
	};
	struct sketch sketch = service;
	struct pic_target target = service_target;
	char *text;

	(void)state;
	sketch.targets = &target;
	target.end = "exited";
	target.gcs = gcs;
	target.n_gcs = ARRAY_SIZE(gcs);
	target.gc = (struct pic_gc){.known = true, .count = ARRAY_SIZE(gcs)};
	target.heap = (struct pic_heap){.known = true, .majors = 2, .last.ns = T0 + 6 * MS};
	text = render(&sketch, &opts);
	assert_non_null(strstr(
		text, "live after the last of 3 major collections before the one at its end; "));
	free(text);
	target.gc.missed = 7;
	target.n_gcs = 4;
	text = render(&sketch, &opts);
	assert_non_null(strstr(text, "live after the last of at least 3 major collections; "));
	free(text);
}

/* A number for the whole session is not attributed to a number of processes. */
static void test_missing_of_all(void **state)
{
	static const char *missing[] = {"its names", "14 context switches" PIC_OF_ALL};
	const struct export_opts opts = {.width = 160};
	struct sketch sketch = host();
	char each[64], *text;

	(void)state;
	for (size_t i = 0; i < HOST; i++) {
		host_targets[i].missing = missing;
		host_targets[i].n_missing = ARRAY_SIZE(missing);
	}
	text = render(&sketch, &opts);
	snprintf(each, sizeof(each), "its names (%d processes)\n", (int)HOST);
	assert_non_null(strstr(text, each));
	assert_non_null(strstr(text, "14 context switches" PIC_OF_ALL "\n"));
	free(text);
}

static void test_a_host_on_one_page(void **state)
{
	const struct sketch sketch = host();

	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
		const struct export_opts opts = {.width = widths[w]};
		char *text = render(&sketch, &opts);
		const char *at = strstr(text, "by process");

		if (count(text, "\n") > 60 + 10 * (widths[w] < 100))
			fail_msg("%zu lines at %u columns:\n%s", count(text, "\n"), widths[w],
				 text);
		assert_non_null(at);
		for (size_t i = HOST; i-- > 0;) {
			char row[32];

			snprintf(row, sizeof(row), "\n  %zu %s ", 1000 + i, host_names[i]);
			at = strstr(at, row);
			assert_non_null(at);
		}
		assert_int_equal(count(text, "the program has no symbols"), 1);
		assert_non_null(strstr(text, "(11"));
		free(text);
	}
}

/* Each process has the session's losses, which are counted once; what one process alone lost, and
 * the bytes of its log, are not. */
static void test_losses_of_several(void **state)
{
	static const struct {
		bool unknown;
		const char *cause, *expect;
	} cases[] = {
		{false, "ring_full", ", 17 records were lost"},
		{false, PIC_LOST_BEYOND_LIMIT, ", 51 records were lost"},
		{false, PIC_LOST_OF_LOG "damaged_bytes",
		 ", nothing but parts of the eventlog was lost"},
		{true, "ring_full", ", losses are not known"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pic_target targets[3] = {service_target, service_target, service_target};
		struct sketch sketch = service;
		char *text;

		for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
			targets[k].pid += (pid_t)k;
			targets[k].lost[0].cause = cases[i].cause;
			targets[k].lost[0].n = 17;
			targets[k].n_lost = 1;
			targets[k].cost_known = true;
		}
		targets[1].lost_unknown = cases[i].unknown;
		sketch.targets = targets;
		sketch.n_targets = ARRAY_SIZE(targets);
		text = render(&sketch, &(struct export_opts){.width = 400});
		if (!strstr(text, cases[i].expect))
			fail_msg("no `%s` in:\n%s", cases[i].expect, text);
		free(text);
	}
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* A row shows the service or container, and as much of its owner as fits. */
static void test_where_it_runs(void **state)
{
	static const struct {
		const char *service, *container, *shown;
	} cases[] = {
		{"nginx.service", ID, "@nginx "},
		{"a.service.b.service", "", "@a.service.b "},
		{"postgresql-of-somebody.service", "", "@postgresql-of-so "},
		{"user@1000.service/nginx.service", "", "@user@1000/nginx "},
		{"0123456789ab/ssh.service", ID, "@0123456789ab/ssh "},
		{"", ID, "@0123456789ab "},
		{"", "user@1000.service/" ID, "@user@1000/012345 "},
	};
	const struct export_opts opts = {.width = 120};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sketch sketch = host();
		char row[64], *text;

		host_targets[3].service = cases[i].service;
		host_targets[3].container = cases[i].container;
		snprintf(row, sizeof(row), "\n  1003 server-3 %s", cases[i].shown);
		text = render(&sketch, &opts);
		if (!strstr(text, row))
			fail_msg("no %s in %s", row, text);
		free(text);
	}
}

/* The same after a name, where there is more room. */
static void test_place_after_a_name(void **state)
{
	struct pic_target target = {.service = "user@1000.service/nginx.service",
				    .container = "user@1000.service/" ID};

	(void)state;
	assert_string_equal(pic_target__place(&target).s,
			    ", user@1000.service/nginx.service, container "
			    "user@1000.service/0123456789ab");
	target.service = "";
	target.container = ID;
	assert_string_equal(pic_target__place(&target).s, ", container 0123456789ab");
}

/* ── one process ─────────────────────────────────────────────────────────────────────────── */

static void test_one_process_on_one_screen(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
		const struct export_opts opts = {.width = widths[w]};
		char *text = render(&service, &opts);

		assert_in_range(count(text, "\n"), 20, 50);
		free(text);
	}
}

/* The service's first lane is half in Haskell code, and half asleep in a safe call. */
static void test_bars_show_shares(void **state)
{
	(void)state;
	for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
		const struct export_opts opts = {.width = widths[w]};
		char *text = render(&service, &opts);
		const char *bar = strstr(text, "\n  4242 service ");
		size_t h, s;

		assert_non_null(bar);
		bar = strpbrk(bar, "H");
		assert_non_null(bar);
		h = strspn(bar, "H");
		s = strspn(bar + h, "s");
		assert_in_range(h + s, 16, 100);
		assert_in_range(h, s - 1, s + 1);
		assert_int_equal(bar[h + s], '\n');
		free(text);
	}
}

/* Every letter in a bar is explained, however rare it is. */
static void test_letters_are_explained(void **state)
{
	size_t drawn = 0;

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		const uint64_t haskell = 500 * MS + i * 300000, foreign = 400000;
		const struct export_opts opts = {.width = 120};
		struct pic_target target = service_target;
		struct sketch sketch = service;
		struct pic_lane lane = {
			.tid = 4242,
			.name = "service",
			.start_ns = T0,
			.end_ns = T0 + 1000 * MS,
			.cpu_ns = haskell + foreign,
			.states_ns = {[ST_HASKELL] = haskell,
				      [ST_FOREIGN_CPU] = foreign,
				      [ST_SAFE_CALL_BLOCKED] = 1000 * MS - haskell - foreign}};
		char *text;

		target.lanes[LANE_THREAD] = (struct pic_lanes){.v = &lane, .n = 1};
		sketch.targets = &target;
		text = render(&sketch, &opts);
		if (strstr(text, "HF")) {
			drawn++;
			assert_non_null(strstr(text, "F foreign code 0.0 %"));
		}
		free(text);
	}
	assert_true(drawn > 0);
}

static void test_where_functions_are_from(void **state)
{
	const struct export_opts opts = {.width = 120};
	char *text = render(&service, &opts), *rest = text, *line;
	size_t seen = 0;

	(void)state;
	while ((line = next_line(&rest))) {
		if (strstr(line, " hash_block ") && strstr(line, "90.0 ms")) {
			assert_non_null(strstr(line, " demo"));
			seen++;
		}
		if (strstr(line, " __gmpn_mul_1 ") && strstr(line, " 121 ms")) {
			assert_non_null(strstr(line, " libgmp.so.10"));
			seen++;
		}
	}
	assert_int_equal(seen, 2);
	free(text);
}

/* A call of the I/O manager that is open throughout is shown only with -v. */
static void test_calls_without_news(void **state)
{
	struct pic_call calls[] = {service_calls[0], service_calls[0]};
	struct pic_target target = service_target;
	struct sketch sketch = service;

	(void)state;
	calls[1].function = "epoll_wait";
	calls[1].caller = "GHC.Event.EPoll.new10";
	calls[1].calls = 0;
	calls[1].open_at_end = 1;
	target.calls = calls;
	target.n_calls = ARRAY_SIZE(calls);
	sketch.targets = &target;
	for (int verbose = 0; verbose < 2; verbose++) {
		const struct export_opts opts = {.width = 160, .verbose = verbose};
		char *text = render(&sketch, &opts);

		assert_non_null(strstr(text, calls[0].function));
		assert_int_equal(count(text, " epoll_wait "), verbose);
		free(text);
	}
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static void check_width(const struct sketch *sketch, bool verbose)
{
	for (size_t w = 0; w < ARRAY_SIZE(widths); w++) {
		const struct export_opts opts = {.width = widths[w], .verbose = verbose};
		char *text = render(sketch, &opts), *rest = text, *line;

		while ((line = next_line(&rest)))
			if (text__width(line, strlen(line)) > widths[w])
				fail_msg("wider than %u: %s", widths[w], line);
		free(text);
	}
}

static void test_no_line_is_too_wide(void **state)
{
	const struct sketch of_a_host = host();
	struct pic_target killed = service_target;
	struct sketch with_a_long_head = service;

	(void)state;
	killed.end = "killed";
	killed.exit_signal = SIGSYS;
	with_a_long_head.targets = &killed;
	for (int verbose = 0; verbose < 2; verbose++) {
		check_width(&service, verbose);
		check_width(&of_a_host, verbose);
		check_width(&with_a_long_head, verbose);
	}
}

/* A number, its digits and its unit stay on one line. */
static void test_no_line_ends_within_a_number(void **state)
{
	static const char text[] = "it took 1 234 567 times 12.5 ms (99.5 %), 7 min 5 s in all";
	static const char *const whole[] = {"1 234 567", "12.5 ms", "99.5 %", "7 min", "5 s"};
	char *lines = NULL;
	size_t size;

	(void)state;
	for (unsigned width = 12; width < 80; width++) {
		struct text t = {.width = width};

		t.out = open_memstream(&lines, &size);
		assert_non_null(t.out);
		assert_int_equal(text__paragraph(&t, "", text), 0);
		assert_int_equal(fclose(t.out), 0);
		for (size_t i = 0; i < ARRAY_SIZE(whole); i++)
			if (!strstr(lines, whole[i]))
				fail_msg("%s is broken at %u:\n%s", whole[i], width, lines);
		free(lines);
	}
}

/* Titles are two blanks apart and all different. */
static void check_titles(char *line)
{
	char *titles[32], *at = line + strspn(line, " ");
	size_t n = 0;

	while (*at && n < ARRAY_SIZE(titles)) {
		char *end = strstr(at, "  ");

		titles[n++] = at;
		if (!end)
			break;
		*end = '\0';
		at = end + 2 + strspn(end + 2, " ");
	}
	assert_true(n > 1);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(titles[i], titles[k]))
				fail_msg("two columns are called %s", titles[i]);
}

/* With colours, title lines are faint. */
static void test_no_title_heads_two_columns(void **state)
{
	const struct export_opts opts[] = {{.width = 200, .colour = true},
					   {.width = 200, .colour = true, .verbose = true}};
	size_t heads = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(opts); i++) {
		char *text = render(&service, &opts[i]), *at = text;

		while ((at = strstr(at, "\033[2m"))) {
			char *end = strstr(at, "\033[0m"), *line;

			assert_non_null(end);
			*end = '\0';
			line = strrchr(at, '\n');
			check_titles(line ? line + 1 : at + 4);
			heads++;
			at = end + 1;
		}
		free(text);
	}
	assert_true(heads >= 6);
}

/* If output is not a terminal; a COLUMNS that is not a number is ignored. */
static void test_columns_of_the_environment(void **state)
{
	static const struct {
		const char *columns;
		unsigned width;
	} cases[] = {{"91", 91}, {"0", 0}, {"", 0}, {"-5", 0}, {"80x", 0}, {"99999999999", 0}};
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv("COLUMNS", cases[i].columns, 1);
		assert_int_equal(output__page_width(fds[1]), cases[i].width);
	}
	unsetenv("COLUMNS");
	assert_int_equal(output__page_width(fds[1]), 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_host_on_one_page),
		cmocka_unit_test(test_losses_of_several),
		cmocka_unit_test(test_where_it_runs),
		cmocka_unit_test(test_place_after_a_name),
		cmocka_unit_test(test_one_process_on_one_screen),
		cmocka_unit_test(test_bars_show_shares),
		cmocka_unit_test(test_letters_are_explained),
		cmocka_unit_test(test_missing_of_all),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_heap_and_samples),
		cmocka_unit_test(test_major_collections),
		cmocka_unit_test(test_where_functions_are_from),
		cmocka_unit_test(test_calls_without_news),
		cmocka_unit_test(test_no_line_is_too_wide),
		cmocka_unit_test(test_no_line_ends_within_a_number),
		cmocka_unit_test(test_no_title_heads_two_columns),
		cmocka_unit_test(test_columns_of_the_environment),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}

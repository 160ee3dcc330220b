/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Formats with a time axis and lanes of all kinds: speedscope's and Chrome's, byte for byte as in
 * tests/data/export/ (SAFESCOPED_UPDATE=1 rewrites the files), and by the rules of the trace event
 * format; and files that would be too large.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "export/lanes.h"
#include "test_export_lanes.h"

static const struct export_opts plain = {.weight = WEIGHT_WALL};

static char *render(const char *format, const struct sketch *sketch)
{
	size_t len;

	return kit_render(format, sketch, &plain, &len);
}

static void test_golden(void **state)
{
	(void)state;
	assert_golden("lanes.speedscope.json", "speedscope", &lanes, &plain);
	assert_golden("lanes.trace.json", "chrome", &lanes, &plain);
}

/* ── the rules of the trace event format ─────────────────────────────────────────────────── */

static double number(const cJSON *event, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(event, key);

	if (!cJSON_IsNumber(item))
		fail_msg("no number %s", key);
	return item->valuedouble;
}

static const char *string(const cJSON *event, const char *key)
{
	const cJSON *item = cJSON_GetObjectItem(event, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static bool same_track(const cJSON *a, const cJSON *b)
{
	return number(a, "pid") == number(b, "pid") && number(a, "tid") == number(b, "tid");
}

/* In nanoseconds: microseconds with three decimals are exact within a double's precision. */
static int64_t ns_of(const cJSON *event, const char *key)
{
	return (int64_t)(number(event, key) * 1000 + 0.5);
}

static int64_t end_of(const cJSON *slice)
{
	return ns_of(slice, "ts") + ns_of(slice, "dur");
}

/* Checks a slice against the earlier ones on its track: they are in time order, outer ones
 * first, and each is within the open ones. */
static void check_nesting(const cJSON *events, const cJSON *until)
{
	int64_t open[8], at = 0;
	const cJSON *e;
	size_t n = 0;

	for (e = events->child; e; e = e->next) {
		if (!strcmp(string(e, "ph"), "X") && same_track(e, until)) {
			assert_true(ns_of(e, "ts") >= at && ns_of(e, "dur") > 0);
			at = ns_of(e, "ts");
			while (n && open[n - 1] <= at)
				n--;
			assert_true(n < 8 && (!n || end_of(e) <= open[n - 1]));
			open[n++] = end_of(e);
		}
		if (e == until)
			break;
	}
}

/* Perfetto truncates to nanoseconds. */
static void check_digits(const cJSON *event, const char *key)
{
	assert_int_equal((int64_t)(number(event, key) * 1000), ns_of(event, key));
}

/* True if a slice is open at the arrow's end, which the viewer binds it to. */
static bool has_slice(const cJSON *events, const cJSON *flow)
{
	int64_t ts = ns_of(flow, "ts");
	const cJSON *e;

	cJSON_ArrayForEach (e, events)
		if (!strcmp(string(e, "ph"), "X") && same_track(e, flow) && ns_of(e, "ts") <= ts &&
		    ts < end_of(e))
			return true;
	return false;
}

static void check_event(const cJSON *events, const cJSON *e)
{
	const char *ph = string(e, "ph");

	assert_true(number(e, "pid") > 0);
	assert_true(cJSON_IsString(cJSON_GetObjectItem(e, "name")));
	number(e, "tid");
	if (!strcmp(ph, "M")) {
		assert_non_null(cJSON_GetObjectItem(e, "args"));
		return;
	}
	assert_true(number(e, "ts") >= 0);
	check_digits(e, "ts");
	if (!strcmp(ph, "X")) {
		check_digits(e, "dur");
		check_nesting(events, e);
	} else if (!strcmp(ph, "s") || !strcmp(ph, "f")) {
		assert_true(has_slice(events, e));
		number(e, "id");
	} else if (!strcmp(ph, "C")) {
		assert_true(cJSON_IsNumber(cJSON_GetObjectItem(e, "args")->child));
	} else if (!strcmp(ph, "i")) {
		assert_int_equal(strlen(string(e, "s")), 1);
	} else {
		fail_msg("phase %s", ph);
	}
}

static size_t count(const cJSON *events, const char *ph)
{
	const cJSON *e;
	size_t n = 0;

	cJSON_ArrayForEach (e, events)
		n += !strcmp(string(e, "ph"), ph);
	return n;
}

/* A function's `sf` leads through parents, which come before their children, from the function
 * to the root; the argument lists its callers. */
static void check_stacks(const cJSON *root)
{
	const cJSON *frames = cJSON_GetObjectItem(root, "stackFrames"), *e;
	size_t n = 0;

	cJSON_ArrayForEach (e, cJSON_GetObjectItem(root, "traceEvents")) {
		const cJSON *callers =
			cJSON_GetObjectItem(cJSON_GetObjectItem(e, "args"), "called_from");
		const cJSON *sf = cJSON_GetObjectItem(e, "sf"), *frame, *caller;
		char id[32];

		if (!sf)
			continue;
		n++;
		snprintf(id, sizeof(id), "%d", sf->valueint);
		frame = cJSON_GetObjectItem(frames, id);
		assert_string_equal(string(frame, "name"), string(e, "name"));
		cJSON_ArrayForEach (caller, callers) {
			assert_true(strtol(string(frame, "parent"), NULL, 10) <
				    strtol(frame->string, NULL, 10));
			frame = cJSON_GetObjectItem(frames, string(frame, "parent"));
			assert_string_equal(string(frame, "name"), caller->valuestring);
		}
		assert_null(cJSON_GetObjectItem(frame, "parent"));
	}
	assert_true(n > 3);
}

static void test_chrome_rules(void **state)
{
	char *text = render("chrome", &lanes);
	cJSON *root = cJSON_Parse(text);
	const cJSON *events = cJSON_GetObjectItem(root, "traceEvents"), *e;

	(void)state;
	assert_non_null(root);
	cJSON_ArrayForEach (e, events)
		check_event(events, e);
	check_stacks(root);
	/* of the flows only the first process's first one has both ends */
	assert_int_equal(count(events, "s"), 1);
	assert_int_equal(count(events, "f"), 1);
	/* collections, marks */
	assert_int_equal(count(events, "i"), 2 + 2 + 2);
	/* one before the axis is moved to its start, one after its end is left out */
	assert_int_equal(count(events, "C"), 3 + 1);
	cJSON_Delete(root);
	free(text);
}

/* The slices of a lane cover all of it except idle time. */
static void test_chrome_covers(void **state)
{
	char *text = render("chrome", &lanes);
	cJSON *root = cJSON_Parse(text);
	const cJSON *e;
	int64_t ns = 0;

	(void)state;
	cJSON_ArrayForEach (e, cJSON_GetObjectItem(root, "traceEvents")) {
		if (number(e, "pid") != 4242)
			continue;
		/* the upper row, whose states have their own colours */
		if (!strcmp(string(e, "ph"), "X") && *string(e, "cname"))
			ns += ns_of(e, "dur");
	}
	assert_int_equal(ns, 90 * MS);
	cJSON_Delete(root);
	free(text);
}

/* ── pprof ───────────────────────────────────────────────────────────────────────────────── */

/* ── a session of hours ──────────────────────────────────────────────────────────────────── */

#define MANY 1500000

static struct pic_slice *make_many(void)
{
	struct pic_slice *v = calloc(MANY, sizeof(*v));

	assert_non_null(v);
	for (size_t i = 0; i < MANY; i++)
		v[i] = (struct pic_slice){.start_ns = T0 + i * 1000,
					  .end_ns = T0 + (i + 1) * 1000,
					  .stack = i % 2 ? S_FIB : S_SLEEP,
					  .state = i % 2 ? ST_HASKELL : ST_SAFE_CALL_BLOCKED,
					  .exact = 1};
	/* a long slice, which must not be merged */
	v[MANY - 1].end_ns += 5000 * MS;
	return v;
}

struct seen {
	uint64_t ns, longest;
	size_t n, merged;
};

static struct seen walk(const struct pic_lane *lane, uint64_t grain_ns)
{
	struct walk walk = {.lane = lane, .grain_ns = grain_ns};
	struct seen seen = {0};
	struct pic_slice slice;
	uint64_t at = lane->start_ns;

	while (walk__next(&walk, &slice)) {
		assert_int_equal(slice.start_ns, at);
		at = slice.end_ns;
		seen.n++;
		seen.ns += slice.end_ns - slice.start_ns;
		/* a merged slice has no exact ends */
		if (slice.exact)
			seen.longest = MAX(seen.longest, slice.end_ns - slice.start_ns);
		else
			seen.merged++;
	}
	return seen;
}

static void test_many_slices(void **state)
{
	struct pic_slice *slices = make_many();
	const struct pic_lane many[] = {{.tid = 1,
					 .name = "t",
					 .start_ns = T0,
					 .end_ns = slices[MANY - 1].end_ns,
					 .slices = slices,
					 .n_slices = MANY}};
	const struct pic_target target = {.pid = 1, .comm = "t", .lanes[LANE_THREAD] = LANES(many)};
	const struct sketch sketch = {
		.session = {.version = "1", .start_ns = T0, .end_ns = many[0].end_ns},
		.targets = &target,
		.n_targets = 1,
		.frames = lanes_frames,
		.n_frames = ARRAY_SIZE(lanes_frames),
		.stacks = lanes_stacks,
		.n_stacks = ARRAY_SIZE(lanes_stacks),
	};
	struct seen seen = walk(many, 0);
	char *text;

	(void)state;
	assert_int_equal(seen.n, MANY);
	assert_int_equal(seen.merged, 0);
	seen = walk(many, 65536);
	assert_int_equal(seen.ns, many[0].end_ns - T0);
	assert_true(seen.n <= MERGE_PARTS * (2 + (uint64_t)MANY * 1000 / 65536));
	assert_true(seen.merged + 1 == seen.n);
	assert_int_equal(seen.longest, 5000 * MS + 1000);
	text = render("chrome", &sketch);
	assert_true(strlen(text) < 100000000);
	assert_null(strstr(text, "\"merged_under_ns\":\"0\""));
	free(text);
	free(slices);
}

/* ── which lanes, in which order ─────────────────────────────────────────────────────────── */

static const char *const with_lanes[] = {"json", "speedscope", "chrome", "html", "text"};

/* Returns true if a format's output has a lane of that kind, by the label that the format uses. */
static bool shows(const char *format, const char *text, enum lane_kind kind)
{
	static const struct {
		const char *format, *marks[LANE_KINDS];
	} formats[] = {
		{"json",
		 {"\"kind\":\t\"capability\"", "\"kind\":\t\"thread\"", "\"kind\":\t\"haskell\""}},
		{"speedscope",
		 {"\"sampled\",\"name\":\"capability 0", "\"sampled\",\"name\":\"42 worker",
		  "\"sampled\",\"name\":\"Haskell thread 7 (main λ)"}},
		{"chrome",
		 {"\"capability 0\"", "\"42 worker\"", "\"Haskell thread 7 (main λ), bound\""}},
		{"html",
		 {"\"capability 0\"", "\"42 worker\"", "\"Haskell thread 7 (main λ), bound\""}},
		{"text", {"What each capability", "Where the time went", "What Haskell threads"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].format, format))
			return strstr(text, formats[i].marks[kind]);
	return false;
}

/* An eventlog alone shows all kinds of lanes; --lanes applies to all formats. */
static void test_lanes_of_all_formats(void **state)
{
	struct sketch sketch = lanes;

	(void)state;
	sketch.n_targets = 1;
	sketch.session.mode = "eventlog";
	for (size_t f = 0; f < ARRAY_SIZE(with_lanes); f++)
		for (unsigned asked = 0; asked < 1U << LANE_KINDS; asked++) {
			const struct export_opts opts = {.lanes = asked};
			size_t len;
			char *text = kit_render(with_lanes[f], &sketch, &opts, &len);

			for (unsigned k = 0; k < LANE_KINDS; k++)
				if (shows(with_lanes[f], text, (enum lane_kind)k) !=
				    (!asked || asked >> k & 1))
					fail_msg("%s, lanes %u: kind %u", with_lanes[f], asked, k);
			free(text);
		}
}

/* The weight of all samples of the profile of Haskell threads' sums; the last `hidden` threads are
 * not drawn. */
static double haskell_sum(size_t hidden, bool *ret_others)
{
	const struct pic_lane *one = &lanes_targets[0].lanes[LANE_HASKELL].v[0];
	struct pic_lane two[2] = {*one, *one};
	struct pic_target target = lanes_targets[0];
	struct sketch sketch = lanes;
	struct picture *pic;
	const struct pic_lanes *haskell;
	const cJSON *profile, *weight;
	char *text = NULL;
	double sum = 0;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	cJSON *json;

	two[1].tso++;
	target.lanes[LANE_HASKELL] = (struct pic_lanes){.v = two, .n = 2};
	sketch.targets = &target;
	sketch.n_targets = 1;
	pic = kit_picture(&sketch, NULL);
	haskell = &picture__target(pic, 0)->lanes[LANE_HASKELL];
	assert_true(haskell->n > hidden);
	for (size_t i = 0; i < hidden; i++)
		((struct pic_lane *)haskell->v)[haskell->n - 1 - i].n_slices = 0;
	assert_non_null(out);
	assert_int_equal(export_speedscope.write(
				 out, pic, &(struct export_opts){.lanes = EXPORT_LANES_HASKELL}),
			 0);
	assert_int_equal(fclose(out), 0);
	*ret_others = strstr(text, "[other Haskell threads]") != NULL;
	json = cJSON_Parse(text);
	cJSON_ArrayForEach (profile, cJSON_GetObjectItem(json, "profiles"))
		if (!strcmp(string(profile, "name"), "sums of Haskell threads"))
			cJSON_ArrayForEach (weight, cJSON_GetObjectItem(profile, "weights"))
				sum += weight->valuedouble;
	cJSON_Delete(json);
	free(text);
	picture__free(pic);
	return sum;
}

/* Haskell threads that are not drawn, as most of an eventlog's, are in the sums as others. */
static void test_undrawn_threads(void **state)
{
	bool others;
	double all = haskell_sum(0, &others);

	(void)state;
	assert_true(all > 0);
	assert_false(others);
	assert_true(haskell_sum(1, &others) == all);
	assert_true(others);
}

/* Housekeeping threads come last, even after a thread that ran for only a moment. */
static void test_idle_threads_are_last(void **state)
{
	static const struct pic_slice idle[] = {
		{.start_ns = T0, .end_ns = T0 + 99 * MS, .state = ST_IDLE},
		{.start_ns = T0 + 99 * MS,
		 .end_ns = T0 + 100 * MS,
		 .stack = S_GC,
		 .state = ST_PREEMPTED}};
	static const struct pic_slice brief[] = {{.start_ns = T0 + 50 * MS,
						  .end_ns = T0 + 50 * MS + 1000,
						  .stack = S_MAIN,
						  .state = ST_HASKELL}};
	static const struct pic_lane threads[] = {
		{.tid = 7,
		 .name = "ticker",
		 .start_ns = T0,
		 .end_ns = T0 + 100 * MS,
		 .states_ns = {[ST_IDLE] = 99 * MS, [ST_PREEMPTED] = 1 * MS},
		 .housekeeping = true,
		 .slices = idle,
		 .n_slices = 2},
		{.tid = 8,
		 .name = "brief",
		 .start_ns = T0 + 50 * MS,
		 .end_ns = T0 + 50 * MS + 1000,
		 .cpu_ns = 1000,
		 .states_ns = {[ST_HASKELL] = 1000},
		 .slices = brief,
		 .n_slices = 1}};
	static const struct pic_target target = {
		.pid = 6, .comm = "t", .lanes[LANE_THREAD] = LANES(threads)};
	struct sketch sketch = lanes;

	(void)state;
	sketch.targets = &target;
	sketch.n_targets = 1;
	for (size_t f = 1; f < ARRAY_SIZE(with_lanes) - 1; f++) {
		char *text = render(with_lanes[f], &sketch), *last = strstr(text, "7 ticker");

		assert_non_null(last);
		assert_non_null(strstr(text, "8 brief"));
		assert_true(strstr(text, "8 brief") < last);
		if (!strcmp(with_lanes[f], "chrome"))
			assert_non_null(strstr(text, "\"t 6: idle OS threads\""));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_chrome_rules),
		cmocka_unit_test(test_chrome_covers),
		cmocka_unit_test(test_many_slices),
		cmocka_unit_test(test_lanes_of_all_formats),
		cmocka_unit_test(test_undrawn_threads),
		cmocka_unit_test(test_idle_threads_are_last),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exporters' output, byte for byte as in tests/data/export/, and what must hold of every
 * output. With SAFESCOPED_UPDATE=1 in the environment the files are rewritten: read the diff before
 * committing it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "test_export_pictures.h"

static const struct export_opts plain = {.weight = WEIGHT_WALL};

static char *render(const char *format, const struct sketch *sketch, const struct export_opts *opts)
{
	size_t len;

	return kit_render(format, sketch, opts, &len);
}

/* ── byte for byte ───────────────────────────────────────────────────────────────────────── */

static void test_golden_service(void **state)
{
	const struct export_opts cpu = {.weight = WEIGHT_CPU};
	const struct export_opts samples = {.weight = WEIGHT_SAMPLES};
	const struct export_opts terminal = {.verbose = true, .colour = true, .width = 100};

	(void)state;
	assert_golden("service.speedscope.json", "speedscope", &service, &plain);
	assert_golden("service.folded", "folded", &service, &plain);
	assert_golden("service.cpu.folded", "folded", &service, &cpu);
	assert_golden("service.samples.folded", "folded", &service, &samples);
	assert_golden("service.json", "json", &service, &plain);
	assert_golden("service.txt", "text", &service, &plain);
	assert_golden("service.colour.txt", "text", &service, &terminal);
}

static void test_golden_hostile(void **state)
{
	(void)state;
	assert_golden("hostile.speedscope.json", "speedscope", &hostile, &plain);
	assert_golden("hostile.folded", "folded", &hostile, &plain);
	assert_golden("hostile.json", "json", &hostile, &plain);
	assert_golden("hostile.txt", "text", &hostile, &plain);
}

static void test_golden_empty(void **state)
{
	(void)state;
	assert_golden("empty.speedscope.json", "speedscope", &empty, &plain);
	assert_golden("empty.folded", "folded", &empty, &plain);
	assert_golden("empty.json", "json", &empty, &plain);
	assert_golden("empty.txt", "text", &empty, &plain);
}

/* ── speedscope: what its importer insists on, and what is true ──────────────────────────── */

/* The sum of an array of integers, parsed from the text, since cJSON's doubles would be rounded. */
static uint64_t sum_of(const char *text, const char *key, size_t nth)
{
	const char *p = text;
	uint64_t sum = 0;

	for (size_t i = 0; i <= nth; i++) {
		p = strstr(p, key);
		assert_non_null(p);
		p += strlen(key);
	}
	for (assert_int_equal(*p, '['); *p != ']';) {
		char *end;

		p++;
		if (*p == ']')
			break;
		sum += strtoull(p, &end, 10);
		assert_ptr_not_equal(p, end);
		p = end;
	}
	return sum;
}

static uint64_t end_value(const char *text, size_t nth)
{
	static const char key[] = "\"endValue\":";

	for (size_t i = 0; i <= nth; i++) {
		text = strstr(text, key);
		assert_non_null(text);
		text += strlen(key);
	}
	return strtoull(text, NULL, 10);
}

static void check_profile(const cJSON *profile, int n_frames)
{
	const cJSON *samples = cJSON_GetObjectItem(profile, "samples"), *sample, *frame;
	const cJSON *weights = cJSON_GetObjectItem(profile, "weights"), *weight;

	assert_string_equal(cJSON_GetObjectItem(profile, "type")->valuestring, "sampled");
	assert_string_equal(cJSON_GetObjectItem(profile, "unit")->valuestring, "nanoseconds");
	assert_true(cJSON_GetObjectItem(profile, "startValue")->valuedouble == 0);
	assert_int_equal(cJSON_GetArraySize(samples), cJSON_GetArraySize(weights));
	cJSON_ArrayForEach (weight, weights)
		assert_true(weight->valuedouble > 0);
	cJSON_ArrayForEach (sample, samples) {
		/* Neighbours differ, or they would have been merged. */
		if (sample->next)
			assert_false(cJSON_Compare(sample, sample->next, true));
		cJSON_ArrayForEach (frame, sample)
			assert_true(frame->valueint >= 0 && frame->valueint < n_frames);
	}
}

static void check_frames(const cJSON *frames)
{
	const cJSON *frame, *other, *field;

	cJSON_ArrayForEach (frame, frames) {
		assert_true(cJSON_IsString(cJSON_GetObjectItem(frame, "name")));
		cJSON_ArrayForEach (field, frame)
			assert_false(cJSON_IsNull(field));
		for (other = frame->next; other; other = other->next)
			assert_false(cJSON_Compare(frame, other, true));
	}
}

/* The first profiles are sums: over all threads, and over each kind of lanes. */
static void check_speedscope(const struct sketch *sketch, size_t n_sums, size_t n_lanes)
{
	char *text = render("speedscope", sketch, &plain);
	cJSON *root = cJSON_Parse(text);
	const cJSON *frames, *profiles, *profile;

	assert_non_null(root);
	frames = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "shared"), "frames");
	check_frames(frames);
	profiles = cJSON_GetObjectItem(root, "profiles");
	assert_int_equal(cJSON_GetArraySize(profiles), n_sums + n_lanes);
	cJSON_ArrayForEach (profile, profiles)
		check_profile(profile, cJSON_GetArraySize(frames));
	for (size_t i = 0; i < n_sums + n_lanes; i++) {
		assert_int_equal(sum_of(text, "\"weights\":", i), end_value(text, i));
		if (i >= n_sums)
			assert_int_equal(end_value(text, i),
					 sketch->session.end_ns - sketch->session.start_ns);
	}
	cJSON_Delete(root);
	free(text);
}

static uint64_t busy_ns(const struct sketch *sketch, bool with_empty)
{
	uint64_t sum = 0;

	for (size_t t = 0; t < sketch->n_targets; t++) {
		const struct pic_lanes *lanes = &sketch->targets[t].lanes[LANE_THREAD];

		for (size_t i = 0; i < lanes->n; i++)
			for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
				const struct pic_slice *s = &lanes->v[i].slices[k];

				if (s->state != ST_IDLE &&
				    (with_empty || sketch->stacks[s->stack].n))
					sum += s->end_ns - s->start_ns;
			}
	}
	return sum;
}

static void test_speedscope(void **state)
{
	char *text;

	(void)state;
	check_speedscope(&service, 3, 2);
	check_speedscope(&hostile, 3, 2);
	check_speedscope(&empty, 1, 0);
	text = render("speedscope", &service, &plain);
	/* 500 ms of Haskell code, 10 in collections, 100 in a safe call */
	assert_int_equal((end_value(text, 0) + 500000) / MS, 610);
	assert_int_equal(end_value(text, 1), busy_ns(&service, false));
	free(text);
	text = render("speedscope", &hostile, &plain);
	assert_int_equal(end_value(text, 1), busy_ns(&hostile, false));
	free(text);
}

/* The index of a frame in the file. */
static int frame_number(const char *text, const char *name)
{
	cJSON *root = cJSON_Parse(text);
	const cJSON *frames = cJSON_GetObjectItem(cJSON_GetObjectItem(root, "shared"), "frames");
	const cJSON *frame;
	int n = 0;

	cJSON_ArrayForEach (frame, frames) {
		if (!strcmp(cJSON_GetObjectItem(frame, "name")->valuestring, name))
			break;
		n++;
	}
	assert_true(n < cJSON_GetArraySize(frames));
	cJSON_Delete(root);
	return n;
}

/* At every depth the heaviest branch comes first, whatever the stacks' numbers are. */
static void test_speedscope_order(void **state)
{
	static const struct pic_frame frames[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
	static const uint32_t a_b[] = {0, 1}, a_c[] = {0, 2}, b_a[] = {1, 0};
	static const struct pic_stack stacks[] = {
		{0},
		{.frames = a_b, .n = 2},
		{.frames = a_b + 1, .n = 1},
		{.frames = a_c, .n = 2},
		{.frames = a_b, .n = 1},
		{.frames = b_a, .n = 2},
	};
	static const struct pic_slice slices[] = {
		SLICE(0, 1, 1, ST_HASKELL, 0, 0),   SLICE(1, 41, 2, ST_HASKELL, 0, 0),
		SLICE(41, 71, 3, ST_HASKELL, 0, 0), SLICE(71, 91, 4, ST_HASKELL, 0, 0),
		SLICE(91, 92, 5, ST_HASKELL, 0, 0), SLICE(92, 93, 1, ST_HASKELL, 0, 0),
	};
	static const struct pic_lane lanes[] = {
		{.name = "t", .end_ns = 93, .slices = slices, .n_slices = ARRAY_SIZE(slices)}};
	static const struct pic_target target = {.comm = "t", .lanes[LANE_THREAD] = LANES(lanes)};
	static const struct sketch sketch = {
		.session = {.version = "1", .end_ns = 93},
		.targets = &target,
		.n_targets = 1,
		.frames = frames,
		.n_frames = 3,
		.stacks = stacks,
		.n_stacks = 6,
	};
	char *text = render("speedscope", &sketch, &plain), expected[256];
	int first;

	(void)state;
	/* a, b and c by their indices in the file, after the frames that are in every picture */
	first = frame_number(text, "a");
	snprintf(expected, sizeof(expected),
		 "\"samples\":[[%1$d,%3$d],[%1$d],[%1$d,%2$d],[%2$d],[%2$d,%1$d]],\n"
		 "\"weights\":[30,20,2,40,1]",
		 first, first + 1, first + 2);
	assert_non_null(strstr(text, expected));
	free(text);
}

/* ── folded: every line is what its readers take it for ──────────────────────────────────── */

static uint64_t folded_sum(const struct sketch *sketch, enum export_weight weight)
{
	const struct export_opts opts = {.weight = weight};
	char *text = render("folded", sketch, &opts), *save = NULL;
	uint64_t sum = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *count = strrchr(line, ' '), *blank;

		assert_non_null(count);
		*count++ = '\0';
		assert_int_equal(strspn(count, "0123456789"), strlen(count));
		assert_true(strtoull(count, NULL, 10) > 0);
		sum += strtoull(count, NULL, 10);
		/* A second number would make flamegraph.pl draw a differential graph. */
		blank = strrchr(line, ' ');
		if (blank)
			assert_true(strspn(blank + 1, "0123456789.") < strlen(blank + 1));
		assert_null(strstr(line, ";;"));
		for (char *c = line; *c; c++)
			assert_true((unsigned char)*c >= ' ');
	}
	free(text);
	return sum;
}

static void test_folded_totals(void **state)
{
	(void)state;
	assert_int_equal(folded_sum(&service, WEIGHT_WALL), (busy_ns(&service, true) + 500) / 1000);
	assert_int_equal(folded_sum(&hostile, WEIGHT_WALL), (busy_ns(&hostile, true) + 500) / 1000);
	assert_int_equal(folded_sum(&service, WEIGHT_SAMPLES), 30 + 9 + 9 + 1 + 9);
	assert_int_equal(folded_sum(&service, WEIGHT_CPU), 610000);
}

/* A long name, a deep recursion, and two paths that differ only in the part that is left out. */
static struct picture *deep_picture(char *name)
{
	struct pic_row *rows;
	struct pic_target *target;
	struct pic_lane *lane;
	struct picture *pic;
	uint32_t f, leaf, v[400];

	assert_int_equal(picture__new(1 << 20, &pic), 0);
	*picture__edit_session(pic) = service.session;
	assert_int_equal(picture__add_frame(pic,
					    &(struct pic_frame){.name = name,
								.module = "",
								.package = "",
								.file = "",
								.src = "",
								.kind = TF_HASKELL},
					    &f),
			 0);
	assert_int_equal(picture__add_frame(pic, &service_frames[F_FIB], &leaf), 0);
	rows = picture__alloc(pic, 3, sizeof(*rows));
	lane = picture__alloc(pic, 1, sizeof(*lane));
	assert_non_null(rows);
	assert_non_null(lane);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t n = i ? 300 + i : 40;

		for (uint32_t k = 0; k + 1 < n; k++)
			v[k] = f;
		v[n - 1] = leaf;
		rows[i] =
			(struct pic_row){.ns = 1000 * (i + 1), .state = ST_HASKELL, .on_cpu = true};
		assert_int_equal(picture__add_stack(pic, v, n, &rows[i].stack), 0);
	}
	*lane = (struct pic_lane){.kind = LANE_THREAD,
				  .tid = 1,
				  .name = "t",
				  .threads = 1,
				  .rows = rows,
				  .n_rows = 3};
	assert_int_equal(picture__add_target(pic, &target), 0);
	*target = (struct pic_target){
		.pid = 1, .comm = "t", .lanes[LANE_THREAD] = {.v = lane, .n = 1}};
	return pic;
}

static void test_folded_deep(void **state)
{
	static const char mark[] = ";[frames left out];";
	char name[1001], *text = NULL, *line;
	struct export_opts opts = {.weight = WEIGHT_WALL};
	struct picture *pic;
	size_t len;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 4, "end", 4);
	pic = deep_picture(name);
	for (int all = 0; all < 2; all++) {
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		opts.verbose = all;
		assert_int_equal(export_folded.write(out, pic, &opts), 0);
		fclose(out);
		assert_true((strstr(text, name) != NULL) == all);
		line = strstr(text, mark);
		if (all) {
			assert_null(line);
		} else {
			/* the two deep stacks are merged, and no time is lost */
			assert_non_null(line);
			assert_null(strstr(line + 1, mark));
			assert_non_null(strstr(line, "end;Data.Fib.fib 5\n"));
			assert_non_null(strstr(text, "end;Data.Fib.fib 1\n"));
			assert_true(len < 2 * 100 * 130);
		}
		free(text);
	}
	picture__free(pic);
}

/* ── json: the contract's fields ─────────────────────────────────────────────────────────── */

static void assert_fields(const cJSON *object, const char *fields)
{
	char *copy = strdup(fields), *save = NULL;

	assert_non_null(object);
	for (char *f = strtok_r(copy, " ", &save); f; f = strtok_r(NULL, " ", &save))
		if (!cJSON_HasObjectItem(object, f))
			fail_msg("no field \"%s\"", f);
	free(copy);
}

static void check_json(const struct sketch *sketch)
{
	static const struct {
		const char *object, *fields;
	} parts[] = {
		{"ghc", "version version_known way threaded profiled layout_checked rtsopts"},
		{"found_by", "suspendThread resumeThread tick capabilities"},
		{"gc", "count pause_ns pause_at_most_ns max_pause_ns observed_ns observed_count "
		       "observed_pause_ns wait_ns exact"},
		{"names", "ipe dwarf exact nearest description module strings archive none"},
		{"leaf_names", "ipe dwarf exact nearest description module strings archive none"},
		{"ledger", "cpu_ns wall_ns without_sample_ns housekeeping_ns unknown"},
		{"stacks", "samples complete elided gap resynchronised truncated broken"},
		{"cost", "probe_hits bpf_ns trap_ns_estimated user_cpu_ns max_rss_bytes "
			 "probes_paused_ns"},
	};
	static const struct {
		const char *list, *fields;
	} lists[] = {
		{"lanes", "kind tid name start_ns end_ns wall_ns cpu_ns states sampled_states "
			  "off_cpu housekeeping"},
		{"safe_calls",
		 "function caller site interruptible calls wall_ns handover_ns cpu_ns "
		 "blocked_ns cap_wait_ns min_ns p50_ns p99_ns max_ns "
		 "quantile_error open_at_start open_at_end exact observed_share"},
		{"unsafe_calls", "function caller samples cpu_ns blocked_ns held_up_gc_ns"},
		{"functions", "name module package self_samples total_samples approximate"},
	};
	char *text = render("json", sketch, &plain);
	cJSON *root = cJSON_Parse(text);
	const cJSON *target, *item;

	assert_non_null(root);
	assert_fields(cJSON_GetObjectItem(root, "safescope"), "version schema");
	assert_fields(cJSON_GetObjectItem(root, "session"),
		      "mode start_unix_ns duration_ns frequency_hz exit");
	cJSON_ArrayForEach (target, cJSON_GetObjectItem(root, "targets")) {
		assert_fields(target, "pid ns_pid start_time_ns comm exe build_id capabilities "
				      "attach_ns findings cost_centres eventlog lost lost_share "
				      "missing");
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			assert_fields(cJSON_GetObjectItem(target, parts[i].object),
				      parts[i].fields);
		for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
			assert_true(cJSON_IsArray(cJSON_GetObjectItem(target, lists[i].list)));
			cJSON_ArrayForEach (item, cJSON_GetObjectItem(target, lists[i].list))
				assert_fields(item, lists[i].fields);
		}
	}
	cJSON_Delete(root);
	free(text);
}

static void test_json_fields(void **state)
{
	(void)state;
	check_json(&service);
	check_json(&hostile);
	check_json(&empty);
}

/* ── text ────────────────────────────────────────────────────────────────────────────────── */

static void test_text_is_safe_for_a_terminal(void **state)
{
	char *text = render("text", &hostile, &plain);

	(void)state;
	assert_null(strchr(text, '\033'));
	for (char *c = text; *c; c++)
		assert_true((unsigned char)*c >= ' ' || *c == '\n');
	free(text);
}

static void test_text_no_blanks_at_the_ends(void **state)
{
	char *text = render("text", &service, &plain);

	(void)state;
	assert_null(strstr(text, " \n"));
	free(text);
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static void test_a_full_disk_is_reported(void **state)
{
	static const char *const formats[] = {"speedscope", "chrome", "folded", "pprof",
					      "json",	    "text",   "otlp"};

	struct picture *pic = kit_picture(&service, NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct export_format *f = export__find(formats[i], strlen(formats[i]));
		FILE *full = fopen("/dev/full", "w");

		assert_non_null(full);
		/* Unbuffered: the write itself must fail. */
		setvbuf(full, NULL, _IONBF, 0);
		assert_true(f->write(full, pic, &plain) < 0);
		fclose(full);
	}
	picture__free(pic);
}

static void test_find(void **state)
{
	(void)state;
	assert_ptr_equal(export__find("folded,json", 6), &export_folded);
	assert_null(export__find("folde", 5));
	assert_null(export__find("", 0));
	assert_null(export__find("pprof2", 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_service),
		cmocka_unit_test(test_golden_hostile),
		cmocka_unit_test(test_golden_empty),
		cmocka_unit_test(test_speedscope),
		cmocka_unit_test(test_speedscope_order),
		cmocka_unit_test(test_folded_totals),
		cmocka_unit_test(test_folded_deep),
		cmocka_unit_test(test_json_fields),
		cmocka_unit_test(test_text_is_safe_for_a_terminal),
		cmocka_unit_test(test_text_no_blanks_at_the_ends),
		cmocka_unit_test(test_a_full_disk_is_reported),
		cmocka_unit_test(test_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

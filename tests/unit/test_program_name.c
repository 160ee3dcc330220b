/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program's name as it appears as the name of a service, an application or a series. */

#include "metrics/metrics_priv.h"
#include "otlp.pb-c.h"
#include "picture/figures.h"
#include "pprof.pb-c.h"
#include "push/push_priv.h"
#include "scraped.h"
#include "test_export_kit.h"
#include "gunzip.h"

/* The kernel keeps 15 bytes of a process's name (proc(5)); the file's name is complete. */
#define CUT "payments-gatewa"
#define API "payments-gateway-api"

static void check(const char *comm, const char *exe, const char *want)
{
	const struct pic_target target = {.comm = comm, .exe = exe};

	assert_string_equal(pic_target__program(&target).s, want);
}

static void test_rule(void **state)
{
	char longest[400] = "/app/";

	(void)state;
	check(CUT, "/app/" API, API);
	check(CUT, "/app/payments-gateway-worker", "payments-gateway-worker");
	/* names that are not cut off, and names that a program gave itself */
	check(CUT, "/app/" CUT, CUT);
	check("payments-gatew", "/app/" API, "payments-gatew");
	check("payments-worker", "/app/" API, "payments-worker");
	check(CUT, "/payments-gateway/app", CUT);
	check(CUT "yy", "/app/" API, CUT "yy");
	/* a file that really has this name: paths here are without the kernel's suffix */
	check(CUT, "/app/" API " (deleted)", API " (deleted)");
	check(CUT, "/app/" CUT " (deleted)", CUT " (deleted)");
	check(CUT, "", CUT);
	check(CUT, NULL, CUT);
	check(NULL, "/app/" API, API);
	check(NULL, NULL, "");
	/* longer than any file name can be */
	memset(longest + 5, 'a', sizeof(longest) - 6);
	check("aaaaaaaaaaaaaaa", longest, longest + sizeof(longest) - 256);
}

/* ── where it is written ─────────────────────────────────────────────────────────────────── */

static const struct pic_frame frames[] = {{"f", "M", "", "", "", TF_HASKELL, false}};
static const struct pic_stack stacks[] = {{0}, STACK(0)};
static const struct pic_slice slices[] = {
	{.end_ns = 10, .stack = 1, .state = ST_HASKELL, .cap = NO_CAP, .samples = 1}};
static struct pic_lane threads[] = {
	{.tid = 7, .name = "w", .end_ns = 10, .slices = slices, .n_slices = 1}};
static const struct pic_target target = {
	.pid = 7, .comm = CUT, .exe = "/app/" API, .lanes[LANE_THREAD] = LANES(threads)};

static const struct sketch sketch = {
	.session = {.version = "1", .mode = "pid", .end_ns = 10, .period_ns = 10},
	.targets = &target,
	.n_targets = 1,
	.frames = frames,
	.n_frames = 1,
	.stacks = stacks,
	.n_stacks = 2,
};

static size_t render(const char *format, uint8_t *raw, size_t size)
{
	const struct export_opts opts = {.weight = WEIGHT_WALL};
	size_t len;
	char *text = kit_render(format, &sketch, &opts, &len);
	size_t got = gunzip(text, len, raw, size);

	free(text);
	return got;
}

static void test_otlp(void **state)
{
	static uint8_t raw[65536];
	Otlp__ExportRequest *r =
		otlp__export_request__unpack(NULL, render("otlp", raw, sizeof(raw)), raw);
	const char *name = NULL;

	(void)state;
	assert_non_null(r);
	for (size_t i = 0; i < r->resource_profiles[0]->resource->n_attributes; i++) {
		const Otlp__KeyValue *pair = r->resource_profiles[0]->resource->attributes[i];

		if (!strcmp(pair->key, "service.name"))
			name = pair->value->string_value;
	}
	assert_non_null(name);
	assert_string_equal(name, API);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_pprof(void **state)
{
	static uint8_t raw[65536];
	Pprof__Profile *p = pprof__profile__unpack(NULL, render("pprof", raw, sizeof(raw)), raw);

	(void)state;
	assert_non_null(p);
	assert_true(p->n_sample > 0);
	for (size_t i = 0; i < p->n_sample; i++) {
		const Pprof__Label *label = p->sample[i]->label[0];

		assert_string_equal(p->string_table[label->key], "process");
		assert_string_equal(p->string_table[label->str], API);
	}
	pprof__profile__free_unpacked(p, NULL);
}

static void test_pyroscope(void **state)
{
	const struct export_opts opts = {.weight = WEIGHT_WALL};
	static const char want[] = "name=" API "%7B";
	struct picture *pic = kit_picture(&sketch, NULL);
	struct buf query;

	(void)state;
	buf__init(&query, PUSH_QUERY_MAX);
	assert_int_equal(push_labels__query(pic, &target, &opts, &query), 0);
	assert_memory_equal(query.data, want, sizeof(want) - 1);
	buf__free(&query);
	picture__free(pic);
}

static void test_metrics(void **state)
{
	struct figures f = {.target = &target};
	struct metrics *m;
	struct scraped s;

	(void)state;
	f.thread_ns[ST_HASKELL] = 2000000000;
	assert_int_equal(metrics__new(&m), 0);
	metrics__take(m, &f, false);
	s = scrape(m);
	assert_true(sum_of(&s, "safescoped_thread_seconds_total", "program=\"" API "\"") == 2);
	scraped_free(&s);
	metrics__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule),	cmocka_unit_test(test_otlp),
		cmocka_unit_test(test_pprof),	cmocka_unit_test(test_pyroscope),
		cmocka_unit_test(test_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

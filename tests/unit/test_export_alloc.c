/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allocation and heap in the formats: what they show adds up to what was counted. */
#include <cjson/cJSON.h>

#include "export/export.h"
#include "otlp.pb-c.h"
#include "pprof.pb-c.h"
#include "test_export_alloc.h"
#include "top/top_priv.h"
#include "gunzip.h"

/* 15 MB: 8 by h1, 6 by h2, 1 without a sample. */
static struct picture *make(struct kit *kit)
{
	union rec r;

	kit_new(kit);
	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	put_alloc(kit, T0 + 100000, 0, 1);
	put_heap(kit, T0 + 110000, 0, 4 * MB, 20 * MB, false);
	put_alloc(kit, T0 + 200000, 0, 1);
	put_heap(kit, T0 + 210000, 1, 8 * MB, 30 * MB, false);
	put_alloc(kit, T0 + 300000, 0, 2);
	put_heap(kit, T0 + 310000, 2, 14 * MB, 10 * MB, true);
	put_heap(kit, T0 + 410000, 3, 15 * MB, 15 * MB, false);
	put(kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500000));
	assert_int_equal(timeline__finish(kit->tl, END), 0);
	return (struct picture *)timeline__picture(kit->tl);
}

static void test_folded(void **state)
{
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "folded", WEIGHT_ALLOC, false, &len);

	(void)state;
	assert_string_equal(text, "prog-100;Main.h0;Main.h1 8000000\n"
				  "prog-100;Main.h0;Main.h2 6000000\n"
				  "prog-100;[no sample] 1000000\n");
	free(text);
	/* weighted by time, allocation does not appear */
	text = render(kit.pic, "folded", WEIGHT_CPU, false, &len);
	assert_null(strstr(text, "h2"));
	free(text);
	timeline__free(kit.tl);
}

static void test_speedscope(void **state)
{
	const cJSON *profile, *weight;
	double sum = 0;
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "speedscope", WEIGHT_ALLOC, false, &len);
	cJSON *root = cJSON_Parse(text);

	(void)state;
	assert_non_null(root);
	profile = cJSON_GetArrayItem(at(root, "profiles"), 0);
	assert_string_equal(at(profile, "unit")->valuestring, "bytes");
	assert_string_equal(at(profile, "name")->valuestring, "allocation, all threads");
	cJSON_ArrayForEach (weight, at(profile, "weights"))
		sum += weight->valuedouble;
	assert_true(sum == 15e6);
	assert_true(at(profile, "endValue")->valuedouble == 15e6);
	profile = cJSON_GetArrayItem(at(root, "profiles"), 1);
	assert_string_equal(at(profile, "unit")->valuestring, "nanoseconds");
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

static void test_pprof(void **state)
{
	uint8_t *data = calloc(1, 1 << 20);
	int64_t sums[8] = {0};
	Pprof__Profile *profile;
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "pprof", WEIGHT_ALLOC, false, &len);

	(void)state;
	assert_non_null(data);
	len = gunzip(text, len, data, 1 << 20);
	profile = pprof__profile__unpack(NULL, len, data);
	assert_non_null(profile);
	assert_int_equal(profile->n_sample_type, 5);
	assert_string_equal(profile->string_table[profile->sample_type[4]->type], "alloc_space");
	assert_string_equal(profile->string_table[profile->sample_type[4]->unit], "bytes");
	assert_int_equal(profile->default_sample_type, profile->sample_type[4]->type);
	for (size_t i = 0; i < profile->n_sample; i++)
		for (size_t k = 0; k < 5; k++)
			sums[k] += profile->sample[i]->value[k];
	assert_int_equal(sums[0], 1);
	assert_int_equal(sums[4], 15 * MB);
	pprof__profile__free_unpacked(profile, NULL);
	free(data);
	free(text);
	timeline__free(kit.tl);
}

static void test_otlp(void **state)
{
	const Otlp__ExportRequest *request;
	const Otlp__ScopeProfiles *scope;
	uint8_t *data = calloc(1, 1 << 20);
	int64_t sum = 0;
	size_t n = 0, len;
	struct kit kit;
	char *text = render(make(&kit), "otlp", WEIGHT_CPU, false, &len);

	(void)state;
	assert_non_null(data);
	len = gunzip(text, len, data, 1 << 20);
	request = otlp__export_request__unpack(NULL, len, data);
	assert_non_null(request);
	scope = request->resource_profiles[0]->scope_profiles[0];
	for (size_t i = 0; i < scope->n_profiles; i++) {
		const Otlp__Profile *p = scope->profiles[i];
		char *const *strings = request->dictionary->string_table;

		if (strcmp(strings[p->sample_type->type_strindex], "alloc_space") != 0)
			continue;
		n++;
		assert_string_equal(strings[p->sample_type->unit_strindex], "bytes");
		for (size_t k = 0; k < p->n_samples; k++)
			sum += p->samples[k]->values[0];
	}
	assert_int_equal(n, 1);
	assert_int_equal(sum, 15 * MB);
	otlp__export_request__free_unpacked((Otlp__ExportRequest *)request, NULL);
	free(data);
	free(text);
	timeline__free(kit.tl);
}

/* The page's flame graph by bytes: all stacks together have all bytes. */
static void test_html(void **state)
{
	static const char mark[] = "<script type=\"application/json\" id=\"details\">";
	struct kit kit;
	double sum = 0;
	int n_nodes, samples = 0;
	size_t len;
	char *text = render(make(&kit), "html", WEIGHT_ALLOC, false, &len), *data, *end;
	const cJSON *item;
	cJSON *root;

	(void)state;
	assert_non_null(strstr(text, "\"weight\":\"alloc\""));
	data = strstr(text, mark);
	assert_non_null(data);
	data += strlen(mark);
	end = strchr(data, '<');
	assert_non_null(end);
	*end = '\0';
	root = cJSON_Parse(data);
	assert_non_null(root);
	n_nodes = cJSON_GetArraySize(at(root, "nodes")) / 2;
	assert_int_equal(cJSON_GetArraySize(at(root, "allocated")), 1);
	item = cJSON_GetArrayItem(at(root, "allocated"), 0)->child;
	for (; item; item = item->next->next->next) {
		assert_in_range(item->valueint, 1, n_nodes);
		sum += item->next->valuedouble;
		samples += item->next->next->valueint;
	}
	assert_true(sum == 15e6);
	assert_int_equal(samples, 3);
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

static void test_json(void **state)
{
	const cJSON *target, *o;
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "json", WEIGHT_CPU, false, &len);
	cJSON *root = cJSON_Parse(text);

	(void)state;
	assert_non_null(root);
	target = cJSON_GetArrayItem(at(root, "targets"), 0);
	o = at(target, "allocation");
	assert_true(at(o, "bytes")->valuedouble == 15e6);
	assert_true(at(o, "sampled_bytes")->valuedouble == 14e6);
	assert_true(at(o, "unsampled_bytes")->valuedouble == 1e6);
	assert_int_equal(at(o, "samples")->valueint, 3);
	assert_int_equal(at(at(o, "collections"), "nursery")->valueint, 4);
	assert_true(at(o, "error")->valuedouble > 0.577 && at(o, "error")->valuedouble < 0.578);
	o = cJSON_GetArrayItem(at(o, "functions"), 0);
	assert_string_equal(at(o, "name")->valuestring, "Main.h1");
	assert_true(at(o, "self_bytes")->valuedouble == 8e6);
	o = at(target, "heap");
	assert_true(at(o, "live_bytes")->valuedouble == 10e6);
	assert_true(cJSON_IsTrue(at(o, "after_major")));
	assert_true(at(o, "most_live_bytes")->valuedouble == 30e6);
	assert_true(at(o, "nursery_bytes")->valuedouble == 1 << 22);
	assert_true(at(o, "held_bytes")->valuedouble == 43 << 20);
	assert_true(at(o, "most_held_bytes")->valuedouble == 43 << 20);
	assert_int_equal(at(o, "haskell_threads")->valueint, WIRE_HEAP_THREADS);
	assert_true(cJSON_IsNull(at(o, "growth")));
	assert_int_equal(cJSON_GetArraySize(at(o, "generations")), 2);
	assert_int_equal(cJSON_GetArraySize(at(o, "points")), 4);
	/* time, live, major, the two generations, and the memory held */
	o = cJSON_GetArrayItem(at(o, "points"), 2);
	assert_int_equal(cJSON_GetArraySize(o), 6);
	assert_int_equal(cJSON_GetArrayItem(o, 5)->valueint, 42 << 20);
	assert_int_equal(cJSON_GetArrayItem(o, 0)->valueint, 310000);
	assert_int_equal(cJSON_GetArrayItem(o, 1)->valueint, 10000000);
	assert_int_equal(cJSON_GetArrayItem(o, 2)->valueint, 1);
	assert_int_equal(cJSON_GetArrayItem(o, 4)->valueint, 10000000);
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

static void test_text(void **state)
{
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "text", WEIGHT_CPU, false, &len);

	(void)state;
	/* in 410 µs */
	assert_has(text, "Allocation: 15.0 MB, 36.6 GB a second; large objects 0.0 %");
	assert_has(text, "by 3 samples of about 4.67 MB each, so shares are uncertain by "
			 "57.7 %; too few samples to rely on");
	assert_has(text, "53.3");
	assert_null(strstr(text, "no sample"));
	assert_has(text, "8.00 MB");
	assert_has(text, "10.0 MB live after the last of 1 major collection; at most 10.0 MB after "
			 "one, and 30.0 MB between them, including dead data");
	assert_has(text, "█");
	free(text);
	text = render(kit.pic, "text", WEIGHT_CPU, true, &len);
	assert_has(text, "Allocation, by module");
	assert_has(text, "nurseries");
	free(text);
	timeline__free(kit.tl);
}

static void test_chrome(void **state)
{
	double held = 0, sampled = 0, from = 0, rate = 0, all = 0;
	size_t n = 0, n_samples = 0, len;
	struct kit kit;
	char *text = render(make(&kit), "chrome", WEIGHT_CPU, false, &len);
	cJSON *root = cJSON_Parse(text);
	const cJSON *event;

	(void)state;
	assert_non_null(root);
	cJSON_ArrayForEach (event, at(root, "traceEvents")) {
		const char *name = at(event, "name")->valuestring;
		const char *ph = at(event, "ph")->valuestring;
		const cJSON *args = cJSON_GetObjectItem(event, "args");

		if (!strcmp(ph, "i") && !strcmp(at(event, "cat")->valuestring, "allocation")) {
			n_samples++;
			sampled += at(args, "bytes")->valuedouble;
			assert_string_equal(name, n_samples < 3 ? "Main.h1" : "Main.h2");
			assert_string_equal(at(args, "called_from")->child->valuestring, "Main.h0");
		}
		if (strcmp(ph, "C") != 0)
			continue;
		n += !strcmp(name, "heap: live");
		if (!strcmp(name, "heap: held from the system"))
			held = at(args, "bytes")->valuedouble;
		if (!strcmp(name, "allocation")) {
			all += rate * (at(event, "ts")->valuedouble - from) / 1e6;
			from = at(event, "ts")->valuedouble;
			rate = at(args, "bytes a second")->valuedouble;
		}
	}
	assert_int_equal(n, 4);
	assert_int_equal((uint64_t)held, 43 << 20);
	assert_int_equal(n_samples, 3);
	assert_int_equal((uint64_t)sampled, 14 * MB);
	/* from the end of the first collection to that of the last one, after which it is
	 * unknown */
	assert_int_equal((uint64_t)(all + 0.5), 11 * MB);
	assert_int_equal((uint64_t)rate, 0);
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

/* The data in the page's element with that id. */
static cJSON *data_of(const char *page, const char *id)
{
	char mark[64];
	const char *data;
	cJSON *root;

	snprintf(mark, sizeof(mark), "<script type=\"application/json\" id=\"%s\">", id);
	data = strstr(page, mark);
	assert_non_null(data);
	root = cJSON_Parse(data + strlen(mark));
	assert_non_null(root);
	return root;
}

static const cJSON *named(const cJSON *list, const char *key, const char *name)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list)
		if (!strcmp(at(item, key)->valuestring, name))
			return item;
	fail_msg("there is no %s", name);
	return NULL;
}

static double cell(const cJSON *table, int row, int column)
{
	return cJSON_GetArrayItem(cJSON_GetArrayItem(at(table, "rows"), row), column)->valuedouble;
}

/* From the end of each collection to the next request: 4, 4 and 6 MB of the thread and of the
 * capability, and the rest, of which no sample was taken. */
static void check_spans(const cJSON *spans)
{
	static const double want[][5] = {
		/* end relative to the previous one; length; whose; bytes; samples */
		{100000, 100000, 0, 4e6, 1},
		{100000, 90000, 0, 4e6, 1},
		{100000, 90000, 0, 6e6, 1},
		{110000, 100000, 1, 1e6, 0},
	};
	const cJSON *list = at(spans, "list"), *whose = at(spans, "whose");

	assert_int_equal(at(spans, "grain_ns")->valueint, 0);
	assert_int_equal(at(spans, "left_out")->valueint, 0);
	assert_int_equal(cJSON_GetArraySize(whose), 6);
	assert_int_equal(cJSON_GetArrayItem(whose, 0)->valueint, 0);
	assert_int_equal(cJSON_GetArrayItem(whose, 1)->valueint, 7);
	assert_int_equal(cJSON_GetArrayItem(whose, 3)->valueint, -1);
	assert_int_equal(cJSON_GetArrayItem(whose, 4)->valueint, 0);
	assert_int_equal(cJSON_GetArraySize(list), 6 * ARRAY_SIZE(want));
	for (int i = 0; i < (int)ARRAY_SIZE(want); i++) {
		assert_true(cJSON_GetArrayItem(list, 6 * i)->valuedouble == want[i][0]);
		assert_true(cJSON_GetArrayItem(list, 6 * i + 1)->valuedouble == want[i][1]);
		assert_true(cJSON_GetArrayItem(list, 6 * i + 2)->valuedouble == want[i][2]);
		assert_true(cJSON_GetArrayItem(list, 6 * i + 4)->valuedouble == want[i][3]);
		assert_true(cJSON_GetArrayItem(list, 6 * i + 5)->valuedouble == want[i][4]);
	}
}

static void test_page(void **state)
{
	struct kit kit;
	size_t len;
	char *text = render(make(&kit), "html", WEIGHT_CPU, false, &len);
	cJSON *data = data_of(text, "data"), *details = data_of(text, "details");
	const cJSON *target = cJSON_GetArrayItem(at(data, "targets"), 0), *table, *curve, *rows;

	(void)state;
	check_spans(cJSON_GetArrayItem(at(details, "spans"), 0));
	table = named(at(target, "tables"), "id", "allocation");
	assert_string_equal(
		cJSON_GetArrayItem(cJSON_GetArrayItem(at(table, "rows"), 0), 0)->valuestring,
		"Main.h1");
	assert_true(cell(table, 0, 2) == 8e6 && cell(table, 0, 3) == 8e6 && cell(table, 0, 4) == 2);
	assert_true(cell(table, 1, 2) == 6e6 && cell(table, 1, 4) == 1);
	curve = named(at(target, "curves"), "name", "live heap");
	assert_true(at(curve, "max")->valuedouble == 30e6);
	/* [time since the previous point, bytes, …] */
	rows = at(curve, "points");
	assert_int_equal(cJSON_GetArraySize(rows), 8);
	assert_true(cJSON_GetArrayItem(rows, 1)->valuedouble == 20e6);
	assert_true(cJSON_GetArrayItem(rows, 2)->valuedouble == 100e3);
	assert_true(cJSON_GetArrayItem(rows, 7)->valuedouble == 15e6);
	curve = named(at(target, "curves"), "name", "held from the system");
	assert_true(at(curve, "max")->valuedouble == 43 << 20);
	assert_int_equal(cJSON_GetArraySize(at(curve, "points")), 8);
	/* 4, 6 and 1 MB, each in 100 µs; [ns, bytes a second, …] */
	curve = named(at(target, "curves"), "name", "allocation");
	assert_true(at(curve, "max")->valuedouble == 60e9);
	rows = at(curve, "points");
	assert_int_equal(cJSON_GetArraySize(rows), 8);
	assert_true(cJSON_GetArrayItem(rows, 1)->valuedouble == 40e9);
	assert_true(cJSON_GetArrayItem(rows, 3)->valuedouble == 60e9);
	assert_true(cJSON_GetArrayItem(rows, 5)->valuedouble == 10e9);
	cJSON_Delete(data);
	cJSON_Delete(details);
	free(text);
	timeline__free(kit.tl);
}

/* The live screen shows what the report shows; without collections it shows no allocation. */
static void test_top(void **state)
{
	struct kit kit;
	const struct picture *pic = make(&kit);
	const struct pic_alloc *alloc = &picture__target(pic, 0)->alloc;
	const struct export_opts opts = {0};
	const struct top_process *p;
	struct top_view view = {.columns = 120, .rows = 40, .sort = TOP_BY_ALLOC};
	struct top_frame *frame;
	struct buf screen;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(export_top.write(out, pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	frame = (struct top_frame *)text;
	assert_int_equal(len, sizeof(*frame));
	assert_true(top_frame__check(frame));
	p = &frame->processes[0];
	assert_true(p->alloc_known);
	assert_int_equal(p->alloc_rate, 15 * MB * 1000000000 / (alloc->to_ns - alloc->from_ns));
	assert_int_equal(p->alloc_bytes, 15 * MB);
	assert_int_equal(p->live_bytes, 10 * MB);
	assert_int_equal(p->n_allocators, 2);
	assert_string_equal(p->allocators[0].name, "Main.h1");
	assert_int_equal(p->allocators[0].self, 8 * MB);
	assert_string_equal(p->allocators[1].name, "Main.h2");
	assert_int_equal(p->allocators[1].total, 6 * MB);
	buf__init(&screen, 1 << 20);
	view.frame = frame;
	assert_int_equal(top__draw(&view, &screen), 0);
	assert_int_equal(buf__addc(&screen, '\0'), 0);
	assert_non_null(strstr(screen.data, "(by allocation)"));
	assert_non_null(strstr(screen.data, "   53.3     53.3  Main.h1"));
	assert_non_null(strstr(screen.data, "live: 10.0 MB"));
	buf__free(&screen);
	free(text);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded), cmocka_unit_test(test_speedscope),
		cmocka_unit_test(test_pprof),  cmocka_unit_test(test_otlp),
		cmocka_unit_test(test_html),   cmocka_unit_test(test_json),
		cmocka_unit_test(test_text),   cmocka_unit_test(test_chrome),
		cmocka_unit_test(test_page),   cmocka_unit_test(test_top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collections in the reports if not all of them were seen. */
#include <math.h>

#include <cjson/cJSON.h>

#include "export/export.h"
#include "test_timeline_kit.h"

static char *render(const struct picture *pic, const char *format)
{
	const struct export_opts opts = {.weight = WEIGHT_CPU};
	const struct export_format *f = export__find(format, strlen(format));
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(f);
	assert_non_null(out);
	assert_int_equal(f->write(out, pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* Five collections: two were reported by probes, the runtime's count shows three more. */
static void test_missed(void **state)
{
	const cJSON *gc;
	struct kit kit;
	union rec r;
	cJSON *root;
	char *text;

	(void)state;
	kit_new(&kit);
	for (uint64_t i = 0; i < 2; i++) {
		put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 100000 * (i + 1)));
		mk_gc(&r, 7, WIRE_GC_END, T0 + 100000 * (i + 1) + 5000);
		r.gc.number = 4 * i;
		put(&kit, &r);
	}
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	text = render(timeline__picture(kit.tl), "text");
	assert_non_null(strstr(text, "the program was paused for at least 10.0 µs"));
	assert_non_null(strstr(text, "≥ 2"));
	assert_non_null(
		strstr(text, "3 more collections were missed, by the runtime's own count: 40.0 %"));
	free(text);
	text = render(kit.pic, "json");
	root = cJSON_Parse(text);
	assert_non_null(root);
	gc = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "targets"), 0), "gc");
	assert_true(cJSON_IsFalse(cJSON_GetObjectItem(gc, "exact")));
	assert_int_equal(cJSON_GetObjectItem(gc, "count")->valueint, 2);
	assert_int_equal(cJSON_GetObjectItem(gc, "missed")->valueint, 3);
	assert_true(fabs(cJSON_GetObjectItem(gc, "observed_share")->valuedouble - 0.4) < 1e-9);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(gc, "pause_at_most_ns")));
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_missed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

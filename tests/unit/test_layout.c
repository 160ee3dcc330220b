/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of offsets, compared with the JSON that it is generated from and with measured
 * values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "base/base.h"
#include "rts/layout.h"

#define JSON "scripts/ghc-layouts.json"

#define WIRE(field, json)                                                                          \
	{                                                                                          \
#field, json, offsetof(struct layout, wire.field),                                 \
			sizeof(((struct layout *)0)->wire.field)                                   \
	}
#define EXTRA(field, json)                                                                         \
	{                                                                                          \
#field, json, offsetof(struct layout, field), sizeof(((struct layout *)0)->field)  \
	}

/* Independent of the generator's own list, so that a mixed-up field is detected. */
static const struct {
	const char *field, *json;
	size_t offset, size;
} fields[] = {
	WIRE(cap_r, "Capability.r"),
	WIRE(cap_no, "Capability.no"),
	WIRE(cap_running_task, "Capability.running_task"),
	WIRE(cap_in_haskell, "Capability.in_haskell"),
	WIRE(cap_disabled, "Capability.disabled"),
	WIRE(cap_current_tso, "Capability.r.rCurrentTSO"),
	WIRE(cap_cccs, "Capability.r.rCCCS"),
	WIRE(task_id, "Task.id"),
	WIRE(task_cap, "Task.cap"),
	WIRE(task_incall, "Task.incall"),
	WIRE(incall_suspended_tso, "InCall.suspended_tso"),
	WIRE(incall_suspended_cap, "InCall.suspended_cap"),
	WIRE(incall_prev_stack, "InCall.prev_stack"),
	WIRE(incall_task, "InCall.task"),
	WIRE(tso_stackobj, "StgTSO.stackobj"),
	WIRE(tso_why_blocked, "StgTSO.why_blocked"),
	WIRE(tso_flags, "StgTSO.flags"),
	WIRE(tso_id, "StgTSO.id"),
	WIRE(tso_bound, "StgTSO.bound"),
	WIRE(tso_cccs, "StgTSO.prof.cccs"),
	WIRE(tso_label, "StgTSO.label"),
	WIRE(stack_size, "StgStack.stack_size"),
	WIRE(stack_sp, "StgStack.sp"),
	WIRE(stack_stack, "StgStack.stack"),
	WIRE(bco_bitmap, "StgBCO.bitmap"),
	WIRE(updframe_updatee, "StgUpdateFrame.updatee"),
	WIRE(tso_id_size, "width.StgTSO.id"),
	WIRE(tso_why_size, "width.StgTSO.why_blocked"),
	WIRE(cap_n_run_queue, "Capability.n_run_queue"),
	EXTRA(cap_suspended_ccalls, "Capability.suspended_ccalls"),
	EXTRA(cap_spare_workers, "Capability.spare_workers"),
	EXTRA(cap_returning_tasks, "Capability.returning_tasks_hd"),
	EXTRA(incall_next, "InCall.next"),
	EXTRA(task_next, "Task.next"),
	EXTRA(task_all_next, "Task.all_next"),
};

static cJSON *load(void)
{
	char *text;
	cJSON *json;
	long size;
	FILE *f = fopen(JSON, "r");

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, f), size);
	fclose(f);
	json = cJSON_Parse(text);
	free(text);
	assert_non_null(json);
	return json;
}

static unsigned int field_value(const struct layout *l, size_t i)
{
	const char *at = (const char *)l + fields[i].offset;

	return fields[i].size == 1 ? *(const uint8_t *)at : *(const uint16_t *)at;
}

/* Task fields of the other variant are in the group's Task_noclk. */
static int json_value(const cJSON *group, const char *key, bool noclk)
{
	const cJSON *item = NULL;

	if (noclk)
		item = cJSON_GetObjectItemCaseSensitive(
			cJSON_GetObjectItemCaseSensitive(group, "Task_noclk"), key);
	if (!item)
		item = cJSON_GetObjectItemCaseSensitive(
			cJSON_GetObjectItemCaseSensitive(group, "offsets"), key);
	return item ? item->valueint : 0;
}

static size_t check_version(const cJSON *group, const char *version, const char *way, bool array)
{
	bool threaded = strstr(way, "thr") != NULL;
	bool profiled = way[strlen(way) - 1] == 'p';
	bool has_noclk = cJSON_HasObjectItem(group, "Task_noclk");
	size_t checked = 0;

	for (int variant = LAYOUT_CLK; variant <= LAYOUT_NOCLK; variant++) {
		struct layout l;
		bool known = false;
		int err = layout__find(version, threaded, profiled, (enum layout_variant)variant,
				       &l, &known);

		if (variant == LAYOUT_NOCLK && !has_noclk) {
			assert_int_equal(err, -ENOENT);
			continue;
		}
		assert_int_equal(err, 0);
		assert_true(known);
		assert_int_equal(l.caps_array, array);
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			int want = json_value(group, fields[i].json, variant == LAYOUT_NOCLK);

			if ((unsigned int)want != field_value(&l, i))
				fail_msg("%s %s variant %d: %s is %u, the JSON says %d", version,
					 way, variant, fields[i].field, field_value(&l, i), want);
			checked++;
		}
	}
	return checked;
}

static void test_table_is_the_json(void **state)
{
	cJSON *json = load();
	const cJSON *forms = cJSON_GetObjectItem(json, "capabilities_symbol_form");
	const cJSON *way, *group, *version;
	size_t checked = 0, versions = 0;

	(void)state;
	cJSON_ArrayForEach (way, cJSON_GetObjectItem(json, "x86_64")) {
		cJSON_ArrayForEach (group, way) {
			cJSON_ArrayForEach (version, cJSON_GetObjectItem(group, "versions")) {
				const cJSON *form = cJSON_GetObjectItemCaseSensitive(
					forms, version->valuestring);

				assert_non_null(form);
				checked += check_version(group, version->valuestring, way->string,
							 strcmp(form->valuestring, "array") == 0);
				versions++;
			}
		}
	}
	/* 42 releases from 8.10.1 to 9.14, four ways each */
	assert_int_equal(versions, 4 * 42);
	assert_true(checked >= versions * ARRAY_SIZE(fields));
	cJSON_Delete(json);
}

/* Measured on live processes and taken from GHC's sources, not from the JSON. */
static void test_measured_values(void **state)
{
	struct layout l;
	bool known;

	(void)state;
	assert_int_equal(layout__find("9.0.2", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_int_equal(l.wire.cap_r, 24);
	assert_int_equal(l.wire.cap_no, 944);
	assert_int_equal(l.wire.cap_current_tso, 24 + 0x368);
	assert_int_equal(l.wire.cap_in_haskell, 24 + 0x3a8);
	assert_int_equal(l.wire.task_cap, 112);
	assert_int_equal(l.wire.task_incall, 120);
	assert_int_equal(l.wire.tso_stackobj, 0x18);
	assert_int_equal(l.wire.stack_sp, 0x10);
	assert_int_equal(l.wire.incall_task, 40);
	assert_int_equal(l.wire.tso_why_size, 2);
	assert_int_equal(l.wire.tso_label, 0);
	assert_false(l.caps_array);

	assert_int_equal(layout__find("8.10.7", false, false, LAYOUT_CLK, &l, &known), 0);
	assert_int_equal(l.wire.tso_id_size, 4);
	assert_int_equal(l.wire.task_incall, 8);

	assert_int_equal(layout__find("9.10.3", true, true, LAYOUT_CLK, &l, &known), 0);
	assert_int_equal(l.wire.task_cap, 120);
	assert_int_equal(l.wire.tso_why_blocked, 56);
	assert_int_equal(l.wire.tso_why_size, 4);
	assert_int_equal(l.wire.tso_cccs, 152);
	/* rts/include/rts/storage/TSO.h, 9.6 and later: bound, cap, trec, label */
	assert_int_equal(l.wire.tso_label, l.wire.tso_bound + 24);
	assert_false(l.caps_array);
	assert_int_equal(layout__find("9.10.3", true, true, LAYOUT_NOCLK, &l, &known), 0);
	assert_int_equal(l.wire.task_cap, 112);

	assert_int_equal(layout__find("9.10.1", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_true(l.caps_array);
	assert_int_equal(layout__find("9.6.7", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_false(l.caps_array);
}

static void test_unknown_versions(void **state)
{
	struct layout l, near;
	bool known = true;

	(void)state;
	/* a future point release, a development version, the release after a branch */
	assert_int_equal(layout__find("9.12.9", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_false(known);
	assert_int_equal(layout__find("9.12.2", true, false, LAYOUT_CLK, &near, &known), 0);
	assert_true(known);
	assert_memory_equal(&l, &near, sizeof(l));
	assert_int_equal(layout__find("9.15.20260101", true, false, LAYOUT_NOCLK, &l, &known), 0);
	assert_false(known);
	/* 9.9 became 9.10: the nearest release at or below it is 9.8.4 */
	assert_int_equal(layout__find("9.9.20240101", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_false(known);
	assert_int_equal(l.wire.tso_why_blocked, 34);
	/* older than all */
	assert_int_equal(layout__find("8.8.4", true, false, LAYOUT_CLK, &l, &known), 0);
	assert_false(known);
	assert_int_equal(l.wire.tso_id_size, 4);
	/* 9.0 has only one Task layout, and an unknown release of that series has no other */
	assert_int_equal(layout__find("9.0.2", true, false, LAYOUT_NOCLK, &l, &known), -ENOENT);
	assert_int_equal(layout__find("9.0.9", true, false, LAYOUT_NOCLK, &l, &known), -ENOENT);
}

static void test_no_version(void **state)
{
	static const char *const bad[] = {"",	    "9",     "9.",     ".0.2",	    "9.0.2x",
					  "9..2",   "a.b.c", "-9.0.2", "9.0.2.1.1", "99999999999.1",
					  "9.0.2\n"};
	struct layout l;
	bool known;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (layout__find(bad[i], true, false, LAYOUT_CLK, &l, &known) != -EINVAL)
			fail_msg("\"%s\" was taken for a version", bad[i]);
	}
}

static void test_generator(void **state)
{
	(void)state;
	assert_int_equal(system("scripts/gen-layouts --check"), 0);
	/* the headers of the installed GHC must give the same offsets as the JSON */
	if (system("ghc --version >/dev/null 2>&1") != 0)
		skip();
	assert_int_equal(
		system("scripts/gen-layouts --verify \"$(ghc --print-libdir)\" >/dev/null"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_the_json), cmocka_unit_test(test_measured_values),
		cmocka_unit_test(test_unknown_versions),  cmocka_unit_test(test_no_version),
		cmocka_unit_test(test_generator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which code's allocation the tables show, and for which part of the session. */
#include "test_export_alloc.h"
#include "top/top_priv.h"

static void check_width(const struct picture *pic, unsigned width)
{
	const struct export_opts opts = {.width = width};
	char *text = NULL, *rest, *line;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(export_text.write(out, pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	rest = text;
	assert_has(text, " after collections, 0 to ");
	while ((line = strsep(&rest, "\n")))
		/* a title stays whole */
		if (strncmp(line, "Garbage collection: ", 20) != 0 &&
		    text__width(line, strlen(line)) > width)
			fail_msg("wider than %u: %s", width, line);
	free(text);
}

/* The probes were taken off and the session went on: every figure states that it is for the time
 * before. */
static void test_came_off(void **state)
{
	const struct cJSON *o, *target;
	struct kit kit;
	union rec r;
	size_t len, curves = 0;
	cJSON *root;
	char *text;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 100000));
	put_alloc(&kit, T0 + 100000, 0, 1);
	put(&kit, mk_gc(&r, 7, WIRE_GC_END, T0 + 110000));
	put_heap(&kit, T0 + 110000, 0, 4 * MB, 20 * MB, false);
	for (unsigned i = 1; i < 6; i++)
		put_heap(&kit, T0 + 110000 + i * 10000, i, 4 * MB + i * MB, i * MB, true);
	mk_gc(&r, 7, WIRE_GC_OFF, T0 + 200000);
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500000));
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	text = render(timeline__picture(kit.tl), "text", WEIGHT_CPU, false, &len);
	assert_has(text, "Allocation: at least 9.00 MB");
	assert_has(text, "in the first 200 µs, before the probes on collections came off "
			 "(--max-overhead); later allocation");
	assert_has(text, "in the first 200 µs, before the probes on collections came off "
			 "(--max-overhead); what came later");
	/* the line ends here */
	assert_has(text, "; 56 % of the\n  bytes have no sample");
	assert_null(strstr(text, "a minute"));
	free(text);
	for (unsigned width = 80; width <= 160; width += 20)
		check_width(timeline__picture(kit.tl), width);
	text = render(kit.pic, "html", WEIGHT_CPU, false, &len);
	assert_has(text, "by samples of allocation, in the first 200 µs, before");
	/* after the last collection seen, live, held and rate are unknown */
	for (const char *at = text; (at = strstr(at, ",\"to\":160000}")); at++)
		curves++;
	assert_int_equal(curves, 3);
	free(text);
	/* a rate of 0 would mean that it is known */
	text = render(kit.pic, "chrome", WEIGHT_CPU, false, &len);
	assert_has(text, "\"bytes a second\":");
	assert_null(strstr(text, "\"bytes a second\":0}"));
	assert_has(text, "heap and allocation are not known from here on");
	cJSON_Delete(cJSON_Parse(text));
	free(text);
	text = render(kit.pic, "json", WEIGHT_CPU, false, &len);
	root = cJSON_Parse(text);
	assert_non_null(root);
	target = cJSON_GetArrayItem(at(root, "targets"), 0);
	o = at(target, "allocation");
	assert_true(cJSON_IsFalse(at(o, "exact")));
	assert_int_equal(at(o, "observed_ns")->valueint, 200000);
	assert_int_equal(at(at(target, "heap"), "observed_ns")->valueint, 200000);
	assert_int_equal(at(at(target, "heap"), "most_major_bytes")->valueint, 5 * MB);
	cJSON_Delete(root);
	free(text);
	timeline__free(kit.tl);
}

/* Checks `exact` in the JSON report of the only process. */
static void check_exact(const struct picture *pic, bool exact)
{
	const cJSON *target;
	size_t len;
	char *text = render(pic, "json", WEIGHT_CPU, false, &len);
	cJSON *root = cJSON_Parse(text);

	assert_non_null(root);
	target = cJSON_GetArrayItem(at(root, "targets"), 0);
	assert_int_equal(cJSON_IsTrue(at(at(target, "allocation"), "exact")), exact);
	cJSON_Delete(root);
	free(text);
}

/* All probes were off until `until`: 9 MB, or more if no collection was seen after that. */
static void check_held_up(uint64_t until, bool exact)
{
	struct intake_cost cost = {.held_up_until_ns = until};
	struct kit kit;
	union rec r;
	size_t len;
	char *text;

	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 6; i++)
		put_heap(&kit, T0 + 110000 + i * 10000, i, 4 * MB + i * MB, i * MB, true);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500000));
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	text = render(timeline__picture(kit.tl), "text", WEIGHT_CPU, false, &len);
	assert_has(text, exact ? "Allocation: 9.00 MB" : "Allocation: at least 9.00 MB");
	assert_int_equal(!strstr(text, "what was allocated from then on is not known"), exact);
	free(text);
	check_exact(kit.pic, exact);
	timeline__free(kit.tl);
}

static void test_held_up(void **state)
{
	(void)state;
	/* the last collection seen includes what was allocated meanwhile */
	check_held_up(T0 + 130000, true);
	check_held_up(T0 + 300000, false);
}

/* A process that began during the session: its first collections may have had no probe yet. */
static void test_began_unseen(void **state)
{
	const struct intake_cost cost = {.calls_missed = true};
	struct kit kit;
	union rec r;
	size_t len;
	char *text;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 6; i++)
		put_heap(&kit, T0 + 110000 + i * 10000, 30 + i, 4 * MB + i * MB, i * MB, true);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500000));
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	text = render(timeline__picture(kit.tl), "text", WEIGHT_CPU, false, &len);
	assert_has(text, "Allocation: at least 5.00 MB");
	assert_has(text, "before the first collection seen is not counted");
	free(text);
	check_exact(kit.pic, false);
	timeline__free(kit.tl);
}

/* Fails unless a line of the text has both. */
static void assert_row(const char *text, const char *name, const char *module)
{
	for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
		size_t len = strcspn(at, "\n");

		if (memmem(at, len, module, strlen(module)))
			return;
	}
	fail_msg("no row has `%s` and `%s`:\n%s", name, module, text);
}

/* The runtime's Cmm code counts as the runtime's, although it is compiled like Haskell code; so
 * does its C code. */
static void test_rts_code(void **state)
{
	const struct export_opts opts = {0};
	const struct pic_target *t;
	struct top_frame *frame;
	char *text = NULL;
	struct kit kit;
	union rec r;
	size_t len;
	FILE *out;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	put(&kit, mk_sample(&r, 7, T0 + 5000, WIRE_WHERE_HASKELL, CMM, IP(CMM), RET(HS(1)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 9000, WIRE_WHERE_RTS, GCFN(3), CIP(GCFN(3)), STOP));
	put_heap(&kit, T0 + 10000, 0, MB, MB, false);
	put_alloc(&kit, T0 + 100000, 0, 0);
	put_heap(&kit, T0 + 110000, 1, 4 * MB, 20 * MB, false);
	put_alloc(&kit, T0 + 200000, 0, 1);
	put_heap(&kit, T0 + 210000, 2, 6 * MB, 20 * MB, false);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500000));
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	kit.pic = timeline__picture(kit.tl);
	t = picture__target(kit.pic, 0);
	for (size_t i = 0; i < t->n_functions; i++)
		assert_string_equal(t->functions[i].package,
				    !strcmp(t->functions[i].name, "Main.h1") ? "" : "rts");
	text = render(kit.pic, "text", WEIGHT_CPU, true, &len);
	/* in both tables, by time and by allocation */
	assert_row(strstr(text, "Top functions"), " [RTS]+0x1230 ", " (RTS)");
	assert_row(strstr(text, "Top functions"), " g3 ", " (RTS)");
	assert_row(strstr(text, "Allocation: "), " [RTS]+0x1230 ", " (RTS)");
	assert_row(strstr(text, "Allocation, by module"), " (RTS) ", " rts");
	assert_null(strstr(text, "(no module)"));
	free(text);
	text = NULL;
	out = open_memstream(&text, &len);
	assert_int_equal(export_top.write(out, kit.pic, &opts), 0);
	assert_int_equal(fclose(out), 0);
	frame = (struct top_frame *)text;
	assert_string_equal(frame->processes[0].allocators[0].name, "[RTS]+0x1230");
	assert_string_equal(frame->processes[0].allocators[0].module, "(RTS)");
	for (unsigned i = 0; i < frame->processes[0].n_functions; i++)
		assert_string_equal(frame->processes[0].functions[i].module, "(RTS)");
	assert_int_equal(frame->processes[0].n_functions, 2);
	free(text);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_came_off),
		cmocka_unit_test(test_held_up),
		cmocka_unit_test(test_began_unseen),
		cmocka_unit_test(test_rts_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

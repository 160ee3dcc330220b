/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --diff if a session's data are incomplete: calls that were not all counted, and functions without
 * names.
 */
#include "test_diff_kit.h"

/* ── calls that were not all counted ─────────────────────────────────────────────────────── */

struct functions {
	char s[2048];
};

static struct functions some_functions(void)
{
	struct functions f = {""};
	size_t n = 0;

	for (unsigned i = 0; i < 6; i++)
		n += (size_t)snprintf(f.s + n, sizeof(f.s) - n,
				      "%s{\"name\":\"f%u\",\"module\":\"M\",\"kind\":\"haskell\","
				      "\"self_samples\":330,\"self_ns\":3333333333}",
				      i ? "," : "", i);
	return f;
}

/* A program that makes `calls` calls in 30 s, of which the probes saw `share`; `exact` is copied
 * to the JSON. */
static struct diff_report *counted(unsigned calls, double share, const char *exact, double paused)
{
	char json[4096];
	struct diff_report *r;

	snprintf(
		json, sizeof(json),
		"{\"safescope\":{},\"session\":{\"duration_ns\":3e10,\"frequency_hz\":99},"
		"\"targets\":[{\"comm\":\"Srv\",\"capabilities\":1,\"lanes\":[{\"kind\":\"thread\","
		"\"cpu_ns\":20000000000,\"states\":{}}],\"functions\":[%s],\"cost\":"
		"{\"probes_paused_ns\":%.0f},\"safe_calls\":[{\"function\":\"%s\",\"caller\":"
		"\"Main.q\",\"calls\":%.0f,\"cpu_ns\":%.0f,\"p50_ns\":10000,\"exact\":%s,"
		"\"observed_share\":%g}]}]}",
		some_functions().s, paused * 3e10, calls ? "step" : "other", calls * share,
		calls * share * 1e4, exact, share);
	assert_int_equal(read(json, &r), 0);
	return r;
}

static void compare_counted(struct diff_report *a, struct diff_report *b, const char *per,
			    struct diff **ret_d, char **ret_text)
{
	static const char *const names[2] = {"a", "b"};
	size_t len;
	FILE *out = open_memstream(ret_text, &len);

	assert_int_equal(diff__new(a, b, per, ret_d), 0);
	assert_int_equal(diff__put_text(out, *ret_d, names, true, false, 160), 0);
	fclose(out);
}

static void free_counted(struct diff_report *a, struct diff_report *b, struct diff *d, char *text)
{
	diff__free(d);
	diff_report__free(a);
	diff_report__free(b);
	free(text);
}

/* B makes four times as many calls, and its probes were taken off after a tenth of the time. */
static void test_calls_not_all_counted(void **state)
{
	struct diff_report *a = counted(100000, 1, "true", 0);
	struct diff_report *b = counted(400000, 0.1, "false", 0.9);
	const struct diff_row *row;
	struct diff *d;
	char *text;

	(void)state;
	compare_counted(a, b, NULL, &d, &text);
	row = find(d, DIFF_CALLS, "step");
	assert_true(fabs(row->a - 5000) < 1);
	assert_true(fabs(row->b - 20000) < 4);
	/* not certain: the rest of the time was not observed */
	assert_int_equal(row->verdict, 0);
	assert_true(row->noise >= 15000);
	assert_null(strstr(text, "fewer calls"));
	assert_non_null(strstr(text, "not all safe calls of B were counted"));
	assert_null(strstr(text, "not all safe calls of A were counted"));
	/* the cost of one call is known from the calls that were seen */
	assert_true(fabs(find(d, DIFF_CALL_CPU, "step")->b - 1e4) < 1);
	diff__free(d);
	free(text);
	/* per call everything else is a quarter, which is not reported as a change */
	compare_counted(a, b, "step", &d, &text);
	row = find(d, DIFF_FUNCTIONS, "f0");
	assert_true(fabs(row->b / row->a - 0.25) < 0.001);
	assert_int_equal(count_changes(d), 0);
	assert_non_null(strstr(text, "and so are all figures per call"));
	free_counted(a, b, d, text);
}

/* Calls were counted nearly all the time: a change is reported. */
static void test_calls_nearly_all_counted(void **state)
{
	struct diff_report *a = counted(100000, 1, "true", 0);
	struct diff_report *b = counted(400000, 0.98, "false", 0.02);
	struct diff *d;
	char *text;

	(void)state;
	compare_counted(a, b, NULL, &d, &text);
	assert_int_equal(find(d, DIFF_CALLS, "step")->verdict, 1);
	free_counted(a, b, d, text);
}

/* An unknown number of calls was missed before the probes were attached; or no calls were seen
 * at all. */
static void test_calls_missed(void **state)
{
	static const struct {
		unsigned calls;
		double share, paused;
	} cases[] = {{20000, 1, 0}, {0, 0, 1}, {0, 0.1, 0.9}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct diff_report *a = counted(100000, 1, "true", 0);
		struct diff_report *b =
			counted(cases[i].calls, cases[i].share, "false", cases[i].paused);
		struct diff *d;
		char *text;

		compare_counted(a, b, NULL, &d, &text);
		assert_int_equal(find(d, DIFF_CALLS, "step")->verdict, 0);
		free_counted(a, b, d, text);
	}
}

/* ── collections and allocation of which not all was seen ────────────────────────────────── */

/* `known`: "observed_ns" and "exact" of the allocation. */
static struct diff_report *collected_of(const char *gc, const char *known)
{
	char json[8192];
	struct diff_report *r;

	snprintf(json, sizeof(json),
		 "{\"safescope\":{},\"session\":{\"duration_ns\":3e10,\"frequency_hz\":99},"
		 "\"targets\":[{\"comm\":\"Srv\",\"capabilities\":1,\"lanes\":[{\"kind\":"
		 "\"thread\",\"cpu_ns\":20000000000,\"states\":{}}],\"functions\":[%s],"
		 "\"gc\":{%s},\"allocation\":{%s,\"bytes\":8e10,\"samples\":9000,"
		 "\"sampled_bytes\":8e10,\"functions\":[{\"name\":\"f0\",\"module\":\"M\","
		 "\"kind\":\"haskell\",\"self_samples\":9000,\"self_bytes\":8e10}]}}]}",
		 some_functions().s, gc, known);
	assert_int_equal(read(json, &r), 0);
	return r;
}

static struct diff_report *collected(const char *gc, const char *observed_ns)
{
	char known[64];

	snprintf(known, sizeof(known), "\"observed_ns\":%s", observed_ns);
	return collected_of(gc, known);
}

/* Missed collections count too; if their number is unknown, collections are not compared. */
static void test_collections_missed(void **state)
{
	static const char all[] = "\"count\":4000,\"missed\":0,\"pause_ns\":4e9,\"exact\":true";
	static const char some[] =
		"\"count\":1000,\"missed\":3000,\"pause_ns\":1e9,\"exact\":false";
	static const char unsure[] = "\"count\":null,\"missed\":null,\"observed_count\":1000,"
				     "\"pause_ns\":null,\"exact\":false";
	static const char unseen[] =
		"\"count\":null,\"missed\":null,\"pause_ns\":null,\"exact\":false";
	struct diff_report *a = collected(all, "null"), *b = collected(some, "null"), *c;

	(void)state;
	assert_int_equal(a->programs[0].gcs, 4000);
	assert_int_equal(b->programs[0].gcs, 4000);
	assert_int_equal(b->programs[0].gc_pause_ns, 4000000000);
	c = collected(unsure, "null");
	assert_int_equal(c->programs[0].gcs, 0);
	assert_true(c->programs[0].gcs_missed);
	assert_false(a->programs[0].gcs_missed || b->programs[0].gcs_missed);
	diff_report__free(c);
	c = collected(unseen, "null");
	assert_int_equal(c->programs[0].gcs, 0);
	assert_false(c->programs[0].gcs_missed);
	diff_report__free(a);
	diff_report__free(b);
	diff_report__free(c);
}

/* In B only the beginning of the allocation was observed. */
static void compare_with_part(const char *known)
{
	static const char all[] = "\"count\":4000,\"missed\":0,\"pause_ns\":4e9,\"exact\":true";
	struct diff_report *a = collected(all, "null"), *b = collected_of(all, known);
	struct diff *d;
	char *text;

	assert_int_equal(a->programs[0].alloc_samples, 9000);
	compare_counted(a, b, NULL, &d, &text);
	assert_non_null(strstr(text, "allocation is not compared: only part of it was seen "
				     "in B"));
	for (size_t i = 0; i < d->pairs[0].n_rows; i++)
		assert_true(d->pairs[0].rows[i].section != DIFF_ALLOC &&
			    d->pairs[0].rows[i].section != DIFF_ALLOC_FUNCTIONS);
	free_counted(a, b, d, text);
}

static void test_allocation_in_part(void **state)
{
	(void)state;
	/* the probes on collections were taken off, or all probes were off at the end */
	compare_with_part("\"observed_ns\":5e8,\"exact\":false");
	compare_with_part("\"observed_ns\":null,\"exact\":false");
}

/* ── functions without names ─────────────────────────────────────────────────────────────── */

/* A session's report from a program without symbols, whose code lies `shift` bytes higher. */
static struct diff_report *stripped(unsigned rounds, double factor, unsigned shift,
				    const char *build_id)
{
	struct diff_report *r = session(rounds, factor, 1), *read_back;
	char *json = NULL;
	size_t len;
	FILE *out = open_memstream(&json, &len);

	fprintf(out,
		"{\"safescope\":{},\"session\":{\"duration_ns\":%llu,\"frequency_hz\":99},"
		"\"targets\":[{\"comm\":\"x\",\"build_id\":%s,\"lanes\":[{\"kind\":\"thread\","
		"\"cpu_ns\":%llu}],\"functions\":[",
		(unsigned long long)r->duration_ns, build_id,
		(unsigned long long)r->programs[0].cpu_ns);
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		bool haskell = i % 5 > 1;
		const char *in = haskell ? "Mod" : "[lib";

		fprintf(out,
			"%s{\"name\":\"%s%u%s+0x%x\",\"module\":\"%s%u\",\"kind\":\"%s\","
			"\"self_samples\":%llu,\"self_ns\":%llu}",
			i ? "," : "", in, i % 5, haskell ? "" : "]", 0x1a30 + 0x80 * i + shift,
			haskell ? in : "", i % 5, haskell ? "haskell" : "foreign",
			(unsigned long long)r->functions[i].samples,
			(unsigned long long)r->functions[i].sum);
	}
	fputs("]}]}", out);
	fclose(out);
	assert_int_equal(read(json, &read_back), 0);
	free(json);
	free(r);
	return read_back;
}

/* Two builds: nothing is reported as new or gone, and the module that takes longer is found. */
static void other_build(const char *build_a, const char *build_b)
{
	unsigned wrong = 0;

	for (int i = 0; i < 20; i++) {
		struct diff_report *a = stripped(3000, 1, 0, build_a);
		struct diff_report *b = stripped(3000, i % 2 ? 6 : 1, 0x40, build_b);
		struct diff *d;
		char *text;

		compare_counted(a, b, NULL, &d, &text);
		assert_null(strstr(text, "+0x"));
		assert_null(strstr(text, " (new"));
		assert_null(strstr(text, " (gone"));
		assert_int_equal(find(d, DIFF_MODULES, "Mod3")->verdict, i % 2);
		if (i % 2) {
			assert_true(fabs(find(d, DIFF_MODULES, "Mod3")->b /
						 find(d, DIFF_MODULES, "Mod3")->a -
					 3.37) < 0.9);
			assert_non_null(strstr(text, "slower: module Mod3: "));
		}
		wrong += count_changes(d) > (size_t)(i % 2);
		free_counted(a, b, d, text);
	}
	/* as one comparison in a hundred may be wrong, one of these may be */
	assert_in_range(wrong, 0, 1);
}

static void test_other_build(void **state)
{
	(void)state;
	other_build("\"aa01\"", "\"aa02\"");
	/* it is unknown if the builds differ */
	other_build("null", "null");
}

/* A program of that name, whose runtime's Cmm code takes 2 s of 20 s. */
static struct diff_report *named(const char *comm)
{
	char json[2048];
	struct diff_report *r;

	snprintf(json, sizeof(json),
		 "{\"safescope\":{},\"session\":{\"duration_ns\":3e10,\"frequency_hz\":99},"
		 "\"targets\":[{\"comm\":\"%s\",\"capabilities\":1,\"lanes\":[{\"kind\":\"thread\","
		 "\"cpu_ns\":20000000000,\"states\":{}}],\"functions\":["
		 "{\"name\":\"stg_ap_pp_fast\",\"kind\":\"haskell\",\"module\":\"\",\"package\":"
		 "\"rts\","
		 "\"self_samples\":150,\"self_ns\":1500000000},"
		 "{\"name\":\"schedule\",\"kind\":\"rts\",\"module\":\"\",\"package\":\"rts\","
		 "\"self_samples\":50,\"self_ns\":500000000},"
		 "{\"name\":\"Main.f\",\"kind\":\"haskell\",\"module\":\"Main\",\"package\":"
		 "\"main\","
		 "\"self_samples\":1800,\"self_ns\":18000000000}]}]}",
		 comm);
	assert_int_equal(read(json, &r), 0);
	return r;
}

static void test_runtime_and_names(void **state)
{
	struct diff_report *a = named("old"), *b = named("new");
	const struct diff_row *row;
	struct diff *d;
	char *text;

	(void)state;
	compare_counted(a, b, NULL, &d, &text);
	row = find(d, DIFF_MODULES, "(RTS)");
	assert_non_null(row);
	assert_true(fabs(row->a - 1e8) < 1);
	assert_non_null(strstr(text, "\nold → new: per second"));
	free_counted(a, b, d, text);
}

/* In the same build a place is the same function. */
static void test_same_build(void **state)
{
	struct diff_report *a = stripped(3000, 1, 0, "\"aa01\"");
	struct diff_report *b = stripped(3000, 3, 0, "\"aa01\"");
	struct diff *d;
	char *text;

	(void)state;
	compare_counted(a, b, NULL, &d, &text);
	assert_int_equal(find(d, DIFF_FUNCTIONS, "Mod3+0x1bb0")->verdict, 1);
	assert_non_null(strstr(text, "slower: Mod3+0x1bb0"));
	assert_null(strstr(text, "slower: module"));
	free_counted(a, b, d, text);
}

/* Names that look like a place, and names that do not. */
static void test_places(void **state)
{
	(void)state;
	assert_int_equal(diff__place("[prog]+0x1a30"), strlen("[prog]"));
	assert_int_equal(diff__place("A.B+0x0"), strlen("A.B"));
	assert_int_equal(diff__place("A.+0x1a"), strlen("A."));
	assert_int_equal(diff__place("A.f"), 0);
	assert_int_equal(diff__place("A.+0x"), 0);
	assert_int_equal(diff__place("A.+0x1g"), 0);
	assert_int_equal(diff__place("A.+0x1a'"), 0);
	assert_int_equal(diff__place("+0x1a"), 0);
	assert_int_equal(diff__place(""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_not_all_counted),
		cmocka_unit_test(test_calls_nearly_all_counted),
		cmocka_unit_test(test_calls_missed),
		cmocka_unit_test(test_collections_missed),
		cmocka_unit_test(test_allocation_in_part),
		cmocka_unit_test(test_other_build),
		cmocka_unit_test(test_runtime_and_names),
		cmocka_unit_test(test_same_build),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

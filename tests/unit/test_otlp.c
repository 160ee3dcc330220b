/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OTLP profiles, unpacked by protobuf-c: their sums, and their references. */
#include "test_otlp_kit.h"

/* ── what refers to what ─────────────────────────────────────────────────────────────────── */

static void check_attributes(const Otlp__ProfilesDictionary *d, const int32_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_in_range(v[i], 1, d->n_attribute_table - 1);
}

static void check_code(const Otlp__ProfilesDictionary *d)
{
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		const Otlp__Mapping *m = d->mapping_table[i];

		assert_in_range(m->filename_strindex, i ? 1 : 0, i ? d->n_string_table - 1 : 0);
		check_attributes(d, m->attribute_indices, m->n_attribute_indices);
	}
	for (size_t i = 1; i < d->n_function_table; i++)
		assert_in_range(d->function_table[i]->name_strindex, 1, d->n_string_table - 1);
	for (size_t i = 1; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];

		assert_in_range(l->mapping_index, 0, d->n_mapping_table - 1);
		assert_int_equal(l->n_lines, 1);
		assert_in_range(l->lines[0]->function_index, 1, d->n_function_table - 1);
		assert_int_equal(l->n_attribute_indices, 1);
		check_attributes(d, l->attribute_indices, l->n_attribute_indices);
	}
	for (size_t i = 1; i < d->n_stack_table; i++) {
		assert_true(d->stack_table[i]->n_location_indices > 0);
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
			assert_in_range(d->stack_table[i]->location_indices[k], 1,
					d->n_location_table - 1);
	}
}

static void mark(bool *used, const Otlp__ValueType *type)
{
	if (type)
		used[type->type_strindex] = used[type->unit_strindex] = true;
}

/* Each string is referred to by some index, and no string is there twice. */
static void check_strings(const Otlp__ExportRequest *r)
{
	const Otlp__ProfilesDictionary *d = r->dictionary;
	bool *used = calloc(d->n_string_table, sizeof(*used));

	assert_non_null(used);
	for (size_t i = 0; i < d->n_attribute_table; i++)
		used[d->attribute_table[i]->key_strindex] = true;
	for (size_t i = 0; i < d->n_mapping_table; i++)
		used[d->mapping_table[i]->filename_strindex] = true;
	for (size_t i = 0; i < d->n_function_table; i++)
		used[d->function_table[i]->name_strindex] =
			used[d->function_table[i]->filename_strindex] = true;
	for (size_t i = 0; i < r->n_resource_profiles; i++)
		for (size_t k = 0; k < r->resource_profiles[i]->scope_profiles[0]->n_profiles;
		     k++) {
			const Otlp__Profile *p =
				r->resource_profiles[i]->scope_profiles[0]->profiles[k];

			mark(used, p->sample_type);
			mark(used, p->period_type);
		}
	for (size_t i = 1; i < d->n_string_table; i++) {
		if (!used[i])
			fail_msg("nothing has the string `%s`", d->string_table[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(d->string_table[i], d->string_table[k]);
	}
	free(used);
}

static bool same_stack(const Otlp__Stack *a, const Otlp__Stack *b)
{
	return a->n_location_indices == b->n_location_indices &&
	       !memcmp(a->location_indices, b->location_indices,
		       a->n_location_indices * sizeof(*a->location_indices));
}

static bool same_location(const Otlp__Location *a, const Otlp__Location *b)
{
	return a->mapping_index == b->mapping_index && a->lines[0]->line == b->lines[0]->line &&
	       a->lines[0]->function_index == b->lines[0]->function_index &&
	       a->attribute_indices[0] == b->attribute_indices[0];
}

static void check_no_doubles(const Otlp__ProfilesDictionary *d)
{
	for (size_t i = 1; i < d->n_location_table; i++)
		for (size_t k = 1; k < i; k++)
			assert_false(same_location(d->location_table[i], d->location_table[k]));
	for (size_t i = 1; i < d->n_stack_table; i++)
		for (size_t k = 1; k < i; k++)
			assert_false(same_stack(d->stack_table[i], d->stack_table[k]));
}

/* Entry 0 of each table is the zero value. */
static void check_zeros(const Otlp__ProfilesDictionary *d)
{
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(otlp__mapping__get_packed_size(d->mapping_table[0]), 0);
	assert_int_equal(otlp__location__get_packed_size(d->location_table[0]), 0);
	assert_int_equal(otlp__function__get_packed_size(d->function_table[0]), 0);
	assert_int_equal(otlp__link__get_packed_size(d->link_table[0]), 0);
	assert_int_equal(otlp__stack__get_packed_size(d->stack_table[0]), 0);
	assert_int_equal(otlp__key_value_and_unit__get_packed_size(d->attribute_table[0]), 0);
}

static bool same_key(const Otlp__Sample *a, const Otlp__Sample *b)
{
	return a->stack_index == b->stack_index &&
	       a->n_attribute_indices == b->n_attribute_indices &&
	       !memcmp(a->attribute_indices, b->attribute_indices,
		       a->n_attribute_indices * sizeof(int32_t));
}

static const char *const types[] = {"samples", "cpu", "off_cpu", "safe_call", "alloc_space"};

static void check_samples(const Otlp__ProfilesDictionary *d, const Otlp__Profile *p)
{
	assert_int_equal(p->profile_id.len, 16);
	check_attributes(d, p->attribute_indices, p->n_attribute_indices);
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Sample *s = p->samples[i];

		assert_in_range(s->stack_index, 0, d->n_stack_table - 1);
		assert_int_equal(s->link_index, 0);
		assert_int_equal(s->n_values, 1);
		assert_true(s->values[0] != 0);
		check_attributes(d, s->attribute_indices, s->n_attribute_indices);
		for (size_t k = 0; k < i; k++)
			assert_false(same_key(s, p->samples[k]));
	}
}

static void check_all(const Otlp__ExportRequest *r)
{
	const Otlp__Profile *seen[64];
	size_t n = 0;

	check_zeros(r->dictionary);
	check_code(r->dictionary);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__ScopeProfiles *s = r->resource_profiles[i]->scope_profiles[0];

		for (size_t k = 0; k < s->n_profiles; k++) {
			check_samples(r->dictionary, s->profiles[k]);
			assert_in_range(n, 0, ARRAY_SIZE(seen) - 1);
			seen[n++] = s->profiles[k];
		}
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(seen[i]->profile_id.data, seen[k]->profile_id.data,
						16);
	check_strings(r);
}

static void test_references(void **state)
{
	static const struct sketch *const sketches[] = {&service, &hostile, &empty};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sketches); i++) {
		Otlp__ExportRequest *r = render(sketches[i], &plain);

		check_all(r);
		otlp__export_request__free_unpacked(r, NULL);
	}
}

/* The mapping of the location that has this function's name; NULL: none. */
static const Otlp__Mapping *mapping_of(const Otlp__ExportRequest *r, const char *function)
{
	const Otlp__ProfilesDictionary *d = r->dictionary;

	for (size_t i = 1; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];
		int32_t name = d->function_table[l->lines[0]->function_index]->name_strindex;

		if (!strcmp(d->string_table[name], function))
			return l->mapping_index ? d->mapping_table[l->mapping_index] : NULL;
	}
	fail_msg("no location is of %s", function);
	return NULL;
}

/* Haskell code of a library has the library's mapping, with its build-id; a program's code has the
 * process's. */
static void test_places(void **state)
{
#define LIB 0x7f0000000000, 0x7f0000010000, 0x26000, "/lib/libHSfib-1.0-ghc9.0.2.so", "0a0b"
	static const struct pic_place places[ARRAY_SIZE(service_frames)] = {
		[F_FIB] = {0x7f0000000010, LIB},
		[F_MAIN] = {0x400010, 0x400000, 0x500000, 0x1000, "/bin/other", ""},
	};
	struct pic_target two[] = {service_target, service_target};
	struct sketch placed = service;
	const Otlp__Mapping *m;
	Otlp__ExportRequest *r;

	(void)state;
	placed.places = places;
	placed.targets = two;
	placed.n_targets = 2;
	two[1].pid++;
	two[1].exe = "/bin/other";
	r = render(&placed, &plain);
	check_all(r);
	check_no_doubles(r->dictionary);
	m = mapping_of(r, "Data.Fib.fib");
	assert_non_null(m);
	assert_string_equal(string_of(r, m->filename_strindex), places[F_FIB].path);
	assert_string_equal(attribute(r, m->attribute_indices, m->n_attribute_indices,
				      "process.executable.build_id.gnu")
				    ->string_value,
			    "0a0b");
	m = mapping_of(r, "Main.main");
	assert_non_null(m);
	assert_string_equal(string_of(r, m->filename_strindex), service_target.exe);
	otlp__export_request__free_unpacked(r, NULL);
}

/* ── what it adds up to ──────────────────────────────────────────────────────────────────── */

static void test_sums(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);

	(void)state;
	assert_int_equal(sum_of(r, 0, "cpu", NULL, ""), 610 * MS - 498);
	assert_int_equal(sum_of(r, 0, "off_cpu", NULL, ""), 500 * MS + 498);
	assert_int_equal(sum_of(r, 0, "safe_call", NULL, ""), 600 * MS + 491);
	assert_int_equal(sum_of(r, 0, "cpu", "ghc.state", "haskell"), 500 * MS - 498);
	assert_int_equal(sum_of(r, 0, "cpu", "thread.name", "ghc_worker"), 110 * MS);
	assert_int_equal(sum_of(r, 0, "off_cpu", "ghc.state", "idle"), 0);
	assert_int_equal(sum_of(r, 0, "samples", "ghc.state", "haskell"), 30 + 9 + 9);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_head(void **state)
{
	Otlp__ExportRequest *r = render(&service, &plain);
	const Otlp__Profile *cpu = profile_of(r, 0, "cpu"), *off = profile_of(r, 0, "off_cpu"),
			    *samples = profile_of(r, 0, "samples");

	(void)state;
	assert_int_equal(cpu->time_unix_nano, UINT64_C(1767225600123456789));
	assert_int_equal(cpu->duration_nano, 1000 * MS);
	assert_string_equal(string_of(r, cpu->sample_type->unit_strindex), "nanoseconds");
	assert_string_equal(string_of(r, samples->sample_type->unit_strindex), "count");
	assert_int_equal(samples->period, 1000000000 / 99);
	assert_string_equal(string_of(r, samples->period_type->type_strindex), "cpu");
	/* a type that is not sampled has no period */
	assert_null(off->period_type);
	assert_int_equal(off->period, 0);
	otlp__export_request__free_unpacked(r, NULL);
}

/*
 * The name under which Pyroscope files a profile, after its newProfileBuilder() and profileType()
 * (pkg/ingester/otlp/convert.go). "": its ValidateLabels() rejects the profile, and with it the
 * rest of the request.
 */
static const char *filed_under(const Otlp__ExportRequest *r, const Otlp__Profile *p)
{
	const char *type = string_of(r, p->sample_type->type_strindex);
	const char *unit = string_of(r, p->sample_type->unit_strindex);
	const char *period_type = "", *period_unit = "";

	if (p->period_type && p->period) {
		period_type = string_of(r, p->period_type->type_strindex);
		period_unit = string_of(r, p->period_type->unit_strindex);
	}
	if (!strcmp(type, "samples") && !strcmp(unit, "count") && !strcmp(period_type, "cpu") &&
	    !strcmp(period_unit, "nanoseconds"))
		return "process_cpu";
	if (!strcmp(type, "off_cpu") && !strcmp(unit, "nanoseconds") && !*period_type)
		return "off_cpu";
	return period_type;
}

/* period_ns 0: nothing was sampled. */
static void check_filed(uint64_t period_ns, const char *samples)
{
	static const struct pic_alloc_row rows[] = {{.stack = 1, .bytes = 4096}};
	const struct {
		const char *type, *under;
	} wanted[] = {{"samples", samples},
		      {"cpu", "cpu"},
		      {"off_cpu", "off_cpu"},
		      {"safe_call", "safe_call"},
		      {"alloc_space", "alloc_space"}};
	struct pic_target target = service_target;
	struct sketch with = service;
	Otlp__ExportRequest *r;

	target.alloc.known = true;
	target.alloc.rows = rows;
	target.alloc.n_rows = 1;
	with.targets = &target;
	with.session.period_ns = period_ns;
	r = render(&with, &plain);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const Otlp__Profile *p = profile_of(r, 0, wanted[i].type);

		assert_non_null(p);
		assert_string_equal(filed_under(r, p), wanted[i].under);
	}
	assert_int_equal(profile_of(r, 0, "alloc_space")->period, 1);
	assert_int_equal(profile_of(r, 0, "safe_call")->period, 1);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_pyroscope_takes_all(void **state)
{
	(void)state;
	check_filed(10101010, "process_cpu");
	check_filed(0, "samples");
}

/* Equal profiles have the same id; a different profile, or another host's, has a different one. */
static void test_ids(void **state)
{
	Otlp__ExportRequest *a = render(&service, &plain), *b = render(&service, &plain),
			    *c = render(&service, &on_host);
	const Otlp__Profile *cpu = profile_of(a, 0, "cpu");

	(void)state;
	assert_memory_equal(cpu->profile_id.data, profile_of(b, 0, "cpu")->profile_id.data, 16);
	assert_memory_not_equal(cpu->profile_id.data, profile_of(c, 0, "cpu")->profile_id.data, 16);
	otlp__export_request__free_unpacked(a, NULL);
	otlp__export_request__free_unpacked(b, NULL);
	otlp__export_request__free_unpacked(c, NULL);
}

/* Reports that GHC wrote have different ids, too, though they have no time and no process. */
static void test_ids_of_reports(void **state)
{
	const struct pic_cc_node nodes[2] = {{.stack = 1, .ticks = 5}, {.stack = 1, .ticks = 6}};
	uint8_t ids[4][16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct pic_target target = {
			.comm = i < 2 ? "a" : "b",
			.cc_nodes = &nodes[i % 2],
			.n_cc_nodes = 1,
			.tick_ns = 1000000,
		};
		struct sketch sketch = service;
		Otlp__ExportRequest *r;

		sketch.session = (struct pic_session){.version = "1", .mode = "eventlog"};
		sketch.targets = &target;
		r = render(&sketch, &plain);
		memcpy(ids[i], profile_of(r, 0, "cpu")->profile_id.data, sizeof(ids[i]));
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(ids[i], ids[k], sizeof(ids[i]));
		otlp__export_request__free_unpacked(r, NULL);
	}
}

/*
 * If the probes on collections came off, the profile of allocation covers only the time before, and
 * no other profile is affected.
 */
static void check_observed(uint64_t observed_ns)
{
	static const struct pic_alloc_row rows[] = {{.stack = 1, .bytes = 4096}};
	struct pic_target target = service_target;
	struct sketch with = service;
	Otlp__ExportRequest *r;
	size_t marked = 0;

	target.alloc = (struct pic_alloc){
		.known = true, .rows = rows, .n_rows = 1, .observed_ns = observed_ns};
	with.targets = &target;
	r = render(&with, &plain);
	check_all(r);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const Otlp__Profile *p = profile_of(r, 0, types[i]);
		const Otlp__AnyValue *value;

		assert_non_null(p);
		value = attribute(r, p->attribute_indices, p->n_attribute_indices,
				  "ghc.allocation.observed_ns");
		if (!value)
			continue;
		assert_string_equal(types[i], "alloc_space");
		assert_int_equal(value->int_value, observed_ns);
		marked++;
	}
	assert_int_equal(marked, observed_ns != 0);
	otlp__export_request__free_unpacked(r, NULL);
}

static void test_observed_part(void **state)
{
	(void)state;
	check_observed(200000);
	check_observed(0);
}

/* ── an eventlog alone ───────────────────────────────────────────────────────────────────── */

/* What a log does not record is in no profile, as it is in no other format's sums. */
static void test_not_recorded(void **state)
{
	static const struct pic_slice slices[] = {
		{.end_ns = 10, .stack = 1, .state = CS_HASKELL},
		{.start_ns = 10, .end_ns = 40, .state = CS_UNKNOWN},
		{.start_ns = 40, .end_ns = 45, .stack = 1, .state = CS_PREEMPTED},
	};
	static struct pic_lane cap = {
		.kind = LANE_CAPABILITY, .end_ns = 45, .slices = slices, .n_slices = 3};
	struct pic_target target = service_target;
	struct sketch log = service;
	Otlp__ExportRequest *r;

	(void)state;
	memset(target.lanes, 0, sizeof(target.lanes));
	target.lanes[LANE_CAPABILITY] = (struct pic_lanes){.v = &cap, .n = 1};
	log.targets = &target;
	log.session.mode = "eventlog";
	r = render(&log, &plain);
	check_all(r);
	assert_int_equal(sum_of(r, 0, "cpu", NULL, ""), 10);
	assert_int_equal(sum_of(r, 0, "off_cpu", "ghc.state", "unknown"), 0);
	assert_int_equal(sum_of(r, 0, "off_cpu", NULL, ""), 5);
	otlp__export_request__free_unpacked(r, NULL);
}

/* ── capabilities and labels ─────────────────────────────────────────────────────────────── */

#define SPLIT_SLICE(from, to, on, thread, n)                                                       \
	{                                                                                          \
		.start_ns = (from), .end_ns = (to), .stack = 1, .state = ST_HASKELL, .cap = (on),  \
		.tso = (thread), .samples = (n)                                                    \
	}

static const struct pic_slice split_slices[] = {
	SPLIT_SLICE(0, 10, 0, 7, 1),	   SPLIT_SLICE(10, 40, 1, 7, 2),
	SPLIT_SLICE(40, 50, 1, 8, 0),	   SPLIT_SLICE(50, 60, 0, 7, 1),
	SPLIT_SLICE(60, 67, NO_CAP, 0, 0),
};

static struct pic_lane split_threads[] = {
	{.tid = 5, .name = "w", .end_ns = 67, .slices = split_slices, .n_slices = 5}};

static const struct pic_slice label_slices[] = {{.end_ns = 1, .tso = 7}};
static struct pic_lane split_haskell[] = {
	{.tso = 7, .name = "main", .end_ns = 1, .slices = label_slices, .n_slices = 1}};

static const struct pic_target split_target = {
	.pid = 9,
	.comm = "split",
	.exe = "/split",
	.build_id = "",
	.lanes = {[LANE_THREAD] = LANES(split_threads), [LANE_HASKELL] = LANES(split_haskell)},
};

static const struct pic_stack split_stacks[] = {{0}, STACK(F_MAIN)};

static const struct sketch split = {
	.session = {.version = "1", .mode = "pid", .end_ns = 67},
	.targets = &split_target,
	.n_targets = 1,
	.frames = service_frames,
	.n_frames = ARRAY_SIZE(service_frames),
	.stacks = split_stacks,
	.n_stacks = ARRAY_SIZE(split_stacks),
};

/* The account has one row of 100 ns for what the slices show in five parts of 67 ns. */
static Otlp__ExportRequest *render_split(uint64_t ns, uint64_t samples)
{
	struct picture *pic = kit_picture(&split, NULL);
	struct pic_lane *lane = (struct pic_lane *)picture__target(pic, 0)->lanes[LANE_THREAD].v;
	struct pic_row *row = (struct pic_row *)lane->rows;
	Otlp__ExportRequest *r;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	row->ns = ns;
	row->samples = samples;
	lane->n_rows = 1;
	assert_non_null(out);
	assert_int_equal(export_otlp.write(out, pic, &plain), 0);
	assert_int_equal(fclose(out), 0);
	r = unzip_request(text, len);
	free(text);
	picture__free(pic);
	return r;
}

static int64_t split_sum(const Otlp__ExportRequest *r, const char *type, int64_t cap,
			 const char *label)
{
	const Otlp__Profile *p = profile_of(r, 0, type);
	int64_t sum = 0;

	for (size_t i = 0; p && i < p->n_samples; i++)
		if (number_of(r, p->samples[i], "ghc.capability") == cap &&
		    !strcmp(text_of(r, p->samples[i], "ghc.thread.label"), label))
			sum += p->samples[i]->values[0];
	return sum;
}

static void test_division(void **state)
{
	Otlp__ExportRequest *r = render_split(6700, 8);

	(void)state;
	check_all(r);
	assert_int_equal(split_sum(r, "cpu", 0, "main"), 2000);
	assert_int_equal(split_sum(r, "cpu", 1, "main"), 3000);
	assert_int_equal(split_sum(r, "cpu", 1, ""), 1000);
	assert_int_equal(split_sum(r, "cpu", -1, ""), 700);
	assert_int_equal(split_sum(r, "samples", 0, "main"), 4);
	assert_int_equal(split_sum(r, "samples", 1, "main"), 4);
	otlp__export_request__free_unpacked(r, NULL);
}

/* Dividing a row does not change the sum. */
static void test_division_is_exact(void **state)
{
	static const uint64_t all[] = {1, 2, 3, 66, 101, 997, UINT64_C(0x0fffffffffffffff)};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		Otlp__ExportRequest *r = render_split(all[i], all[i] / 2 + 1);

		assert_int_equal(sum_of(r, 0, "cpu", NULL, ""), all[i]);
		assert_int_equal(sum_of(r, 0, "samples", NULL, ""), all[i] / 2 + 1);
		otlp__export_request__free_unpacked(r, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_pyroscope_takes_all),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_ids_of_reports),
		cmocka_unit_test(test_observed_part),
		cmocka_unit_test(test_not_recorded),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_division_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

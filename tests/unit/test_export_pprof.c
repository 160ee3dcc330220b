/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pprof of a picture with all kinds of lanes, read back by protobuf-c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pprof.pb-c.h"
#include "test_export_lanes.h"
#include "gunzip.h"

static const struct export_opts plain = {.weight = WEIGHT_WALL};

static Pprof__Profile *unzip_profile(const char *text, size_t len)
{
	static uint8_t raw[65536];
	Pprof__Profile *profile =
		pprof__profile__unpack(NULL, gunzip(text, len, raw, sizeof(raw)), raw);

	assert_non_null(profile);
	return profile;
}

static void check_ids(const Pprof__Profile *p)
{
	for (size_t i = 0; i < p->n_location; i++) {
		assert_int_equal(p->location[i]->id, i + 1);
		assert_int_equal(p->function[i]->id, i + 1);
		assert_in_range(p->location[i]->line[0]->function_id, 1, p->n_function);
		assert_in_range(p->function[i]->name, 1, p->n_string_table - 1);
	}
	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i]->n_value, p->n_sample_type);
		for (size_t k = 0; k < p->sample[i]->n_location_id; k++)
			assert_in_range(p->sample[i]->location_id[k], 1, p->n_location);
	}
}

static bool has_label(const Pprof__Profile *p, const Pprof__Sample *sample, const char *key,
		      const char *text)
{
	for (size_t i = 0; i < sample->n_label; i++)
		if (!strcmp(p->string_table[sample->label[i]->key], key))
			return !strcmp(p->string_table[sample->label[i]->str], text);
	return false;
}

static void test_pprof(void **state)
{
	size_t len;
	char *text = kit_render("pprof", &lanes, &plain, &len);
	Pprof__Profile *p = unzip_profile(text, len);
	int64_t wall = 0, cpu = 0, safe = 0, haskell = 0, of_cap[2] = {0};

	(void)state;
	assert_string_equal(p->string_table[0], "");
	assert_int_equal(p->n_sample_type, 4);
	assert_string_equal(p->string_table[p->default_sample_type], "wall");
	assert_int_equal(p->duration_nanos, 100 * MS);
	assert_int_equal(p->n_mapping, 2);
	check_ids(p);
	for (size_t i = 0; i < p->n_sample; i++) {
		/* only the first process */
		if (p->sample[i]->label[3]->num != 42)
			continue;
		cpu += p->sample[i]->value[1];
		wall += p->sample[i]->value[2];
		safe += p->sample[i]->value[3];
		assert_string_equal(p->string_table[p->sample[i]->label[4]->key], "state");
		if (!strcmp(p->string_table[p->sample[i]->label[4]->str], "haskell"))
			haskell += p->sample[i]->value[2];
		for (unsigned cap = 0; cap < 2; cap++)
			if (has_label(p, p->sample[i], "capability", cap ? "1" : "0"))
				of_cap[cap] += p->sample[i]->value[2];
	}
	/* as in its slices: one before the call, the other after it, none during it */
	assert_int_equal(of_cap[0], 12 * MS);
	assert_int_equal(of_cap[1], 25 * MS);
	assert_int_equal(cpu, 37 * MS);
	assert_int_equal(wall, 90 * MS);
	assert_int_equal(safe, 48 * MS);
	assert_int_equal(haskell, 37 * MS);
	/* the leaf is first */
	assert_string_equal(p->string_table[p->function[p->sample[0]->location_id[0] - 1]->name],
			    "Main.main");
	pprof__profile__free_unpacked(p, NULL);
	free(text);
}

static const Pprof__Location *location_of(const Pprof__Profile *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_location; i++)
		if (p->location[i]->id == id)
			return p->location[i];
	return NULL;
}

static const Pprof__Mapping *mapping_of(const Pprof__Profile *p, const char *function)
{
	for (size_t i = 0; i < p->n_location; i++) {
		const Pprof__Location *l = p->location[i];

		if (strcmp(p->string_table[p->function[i]->name], function) != 0)
			continue;
		for (size_t k = 0; k < p->n_mapping; k++)
			if (p->mapping[k]->id == l->mapping_id) {
				assert_in_range(l->address, p->mapping[k]->memory_start,
						p->mapping[k]->memory_limit - 1);
				return p->mapping[k];
			}
		assert_int_equal(l->mapping_id, 0);
		assert_int_equal(l->address, 0);
	}
	return NULL;
}

/* Files are distinguished by where they are mapped; an executable is identified by its path. */
static void test_pprof_places(void **state)
{
#define EXE  0x400000, 0x500000, 0x1000, "/bin/service", "00ff"
#define LIBC 0x7f0000000000, 0x7f0000010000, 0x26000, "/lib/libc.so.6", ""
	static const struct pic_place places[ARRAY_SIZE(lanes_frames)] = {
		[F_FIB] = {0x400010, EXE},
		[F_SLEEP] = {0x7f000000ffff, LIBC},
		/* outside its mapping: treated as unknown */
		[F_EVIL] = {0x500000, EXE},
	};
	struct sketch placed = lanes;
	const Pprof__Mapping *m;
	Pprof__Profile *p;
	size_t len;
	char *text;

	(void)state;
	placed.places = places;
	text = kit_render("pprof", &placed, &plain, &len);
	p = unzip_profile(text, len);
	check_ids(p);
	assert_int_equal(p->n_mapping, 3);
	assert_ptr_equal(mapping_of(p, "Main.fib"), p->mapping[0]);
	assert_string_equal(p->string_table[p->mapping[0]->build_id], "00ff");
	assert_int_equal(p->mapping[0]->file_offset, 0x1000);
	/* the second process's mapping, in which no address was seen */
	assert_string_equal(p->string_table[p->mapping[1]->filename], "/bin/evil");
	assert_int_equal(p->mapping[1]->memory_limit, 0);
	m = mapping_of(p, "usleep");
	assert_non_null(m);
	assert_string_equal(p->string_table[m->filename], "/lib/libc.so.6");
	assert_int_equal(m->memory_start, 0x7f0000000000);
	assert_null(mapping_of(p, "Main.main"));
	pprof__profile__free_unpacked(p, NULL);
	free(text);
}

/* Of frames and executables only those of samples are there: the second process has none, and the
 * picture's frames are those of both. */
static void test_pprof_unused(void **state)
{
	struct pic_target targets[2] = {lanes_targets[0], lanes_targets[1]};
	bool used[ARRAY_SIZE(lanes_frames) + 1] = {false};
	struct sketch idle = lanes;
	Pprof__Profile *p;
	size_t len;
	char *text;

	(void)state;
	memset(targets[1].lanes, 0, sizeof(targets[1].lanes));
	targets[1].alloc = (struct pic_alloc){.known = false};
	targets[1].census = (struct pic_census){.n = 0};
	idle.targets = targets;
	text = kit_render("pprof", &idle, &plain, &len);
	p = unzip_profile(text, len);
	check_ids(p);
	assert_in_range(p->n_location, 1, ARRAY_SIZE(lanes_frames) - 1);
	assert_int_equal(p->n_function, p->n_location);
	for (size_t i = 0; i < p->n_sample; i++)
		for (size_t k = 0; k < p->sample[i]->n_location_id; k++)
			used[p->sample[i]->location_id[k]] = true;
	for (size_t i = 1; i <= p->n_location; i++)
		assert_true(used[i]);
	assert_int_equal(p->n_mapping, 1);
	assert_string_equal(p->string_table[p->mapping[0]->filename], "/bin/service");
	pprof__profile__free_unpacked(p, NULL);
	free(text);
}

/* One process of several: only its samples and their frames. */
static void test_pprof_of_one(void **state)
{
	struct export_opts one = plain;
	int64_t wall[2] = {0};
	size_t used = 0;

	(void)state;
	for (uint32_t t = 0; t < 2; t++) {
		Pprof__Profile *p;
		size_t len;
		char *text;

		one.target = t + 1;
		text = kit_render("pprof", &lanes, &one, &len);
		p = unzip_profile(text, len);
		assert_int_equal(p->n_mapping, 1);
		assert_true(p->n_sample > 0);
		for (size_t i = 0; i < p->n_sample; i++) {
			const Pprof__Sample *s = p->sample[i];

			assert_int_equal(s->label[1]->num, lanes_targets[t].pid);
			wall[t] += s->value[2];
			for (size_t k = 0; k < s->n_location_id; k++)
				assert_non_null(location_of(p, s->location_id[k]));
		}
		used += p->n_location;
		pprof__profile__free_unpacked(p, NULL);
		free(text);
	}
	assert_int_equal(wall[0], 90 * MS);
	assert_true(wall[1] > 0);
	assert_true(used < 2 * (size_t)ARRAY_SIZE(lanes_frames));
}

static void expect_same(struct pprof_source *source, const struct export_opts *opts)
{
	char *alone, *text = NULL;
	size_t alone_len, len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(export_pprof__write_any(out, source, opts, NULL), 0);
	assert_int_equal(fclose(out), 0);
	alone = kit_render("pprof", &lanes, opts, &alone_len);
	assert_int_equal(len, alone_len);
	assert_memory_equal(text, alone, len);
	free(text);
	free(alone);
}

/* After gathering once, the file of each process can be made in any order, and equals the one
 * made alone. */
static void test_gathered_once(void **state)
{
	static const uint32_t targets[] = {2, 1, 0, 1, 2, 2};
	struct picture *pic = kit_picture(&lanes, NULL);
	struct pprof_source *source;

	(void)state;
	assert_int_equal(export_pprof__gather(pic, &source), 0);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		for (unsigned pyroscope = 0; pyroscope < 2; pyroscope++) {
			const struct export_opts opts = {.weight = WEIGHT_WALL,
							 .target = targets[i],
							 .for_pyroscope = pyroscope};

			expect_same(source, &opts);
		}
	export_pprof__free(source);
	picture__free(pic);
}

/* Each capability's slice keeps its one sample, even if one slice is much longer. */
static void check_samples(uint64_t first_ns, uint64_t second_ns)
{
	const struct pic_slice slices[] = {
		{.end_ns = first_ns, .stack = S_FIB, .state = ST_HASKELL, .samples = 1},
		{.start_ns = first_ns,
		 .end_ns = first_ns + second_ns,
		 .stack = S_FIB,
		 .state = ST_HASKELL,
		 .cap = 1,
		 .samples = 1},
	};
	struct pic_lane thread = {
		.tid = 42, .name = "w", .end_ns = 200, .slices = slices, .n_slices = 2};
	const struct pic_target target = {
		.pid = 42, .comm = "x", .exe = "/x", .lanes[LANE_THREAD] = {.v = &thread, .n = 1}};
	struct sketch one = lanes;
	int64_t samples[2] = {0}, ns[2] = {0};
	Pprof__Profile *p;
	size_t len;
	char *text;

	one.targets = &target;
	one.n_targets = 1;
	text = kit_render("pprof", &one, &plain, &len);
	p = unzip_profile(text, len);
	for (size_t i = 0; i < p->n_sample; i++)
		for (unsigned cap = 0; cap < 2; cap++)
			if (has_label(p, p->sample[i], "capability", cap ? "1" : "0")) {
				samples[cap] += p->sample[i]->value[0];
				ns[cap] += p->sample[i]->value[1];
			}
	assert_int_equal(samples[0], 1);
	assert_int_equal(samples[1], 1);
	assert_int_equal(ns[0], first_ns);
	assert_int_equal(ns[1], second_ns);
	pprof__profile__free_unpacked(p, NULL);
	free(text);
}

static void test_samples_of_capabilities(void **state)
{
	(void)state;
	check_samples(198, 2);
	check_samples(2, 198);
}

/* A default that is not there is the CPU time, not whatever comes last. */
static void test_no_allocation(void **state)
{
	const struct export_opts bytes = {.weight = WEIGHT_ALLOC};
	size_t len;
	char *text = kit_render("pprof", &lanes, &bytes, &len);
	Pprof__Profile *p = unzip_profile(text, len);

	(void)state;
	assert_string_equal(p->string_table[p->default_sample_type], "cpu");
	pprof__profile__free_unpacked(p, NULL);
	free(text);
}

/* If the probes on collections were taken off, a comment states the part that the allocation is
 * for. */
static void test_observed_part(void **state)
{
	static const char note[] = "allocation: in the first 200 µs, before the probes on "
				   "collections came off (--max-overhead)";

	(void)state;
	for (uint64_t ns = 0; ns <= 200000; ns += 200000) {
		struct pic_target target = lanes_targets[0];
		struct sketch one = lanes;
		Pprof__Profile *p;
		size_t len;
		char *text;

		target.alloc = (struct pic_alloc){.known = true, .observed_ns = ns};
		one.targets = &target;
		one.n_targets = 1;
		text = kit_render("pprof", &one, &plain, &len);
		p = unzip_profile(text, len);
		assert_int_equal(p->n_comment, ns ? 2 : 1);
		if (ns)
			assert_string_equal(p->string_table[p->comment[1]], note);
		pprof__profile__free_unpacked(p, NULL);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pprof),
		cmocka_unit_test(test_pprof_places),
		cmocka_unit_test(test_pprof_unused),
		cmocka_unit_test(test_pprof_of_one),
		cmocka_unit_test(test_gathered_once),
		cmocka_unit_test(test_no_allocation),
		cmocka_unit_test(test_observed_part),
		cmocka_unit_test(test_samples_of_capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

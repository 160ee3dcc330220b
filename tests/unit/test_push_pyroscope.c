/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What waits in the queue for Pyroscope, and what Pyroscope makes of it. */
#include "test_push_kit.h"

#include <dirent.h>
#include <zlib.h>

#include "pprof.pb-c.h"
#include "test_export_lanes.h"

/* The only file of the queue: its query, and its profile. */
static Pprof__Profile *queued(char *query, size_t size)
{
	static uint8_t file[1 << 20], raw[1 << 22];
	z_stream z = {.next_out = raw, .avail_out = sizeof(raw)};
	struct dirent *entry;
	Pprof__Profile *p;
	FILE *in = NULL;
	char *body;
	size_t len;
	DIR *d = opendir(in_dir("queues/pyroscope+http___127.0.0.1_1"));

	assert_non_null(d);
	while ((entry = readdir(d))) {
		char path[PATH_MAX];

		if (!queue__is_name(entry->d_name))
			continue;
		assert_null(in);
		snprintf(path, sizeof(path), "%s/%s", in_dir("queues/pyroscope+http___127.0.0.1_1"),
			 entry->d_name);
		in = fopen(path, "r");
		assert_non_null(in);
	}
	closedir(d);
	assert_non_null(in);
	len = fread(file, 1, sizeof(file), in);
	fclose(in);
	body = memchr(file, '\n', len);
	assert_non_null(body);
	snprintf(query, size, "%.*s", (int)(body - (char *)file), (char *)file);
	z.next_in = (uint8_t *)body + 1;
	z.avail_in = (uInt)(len - (size_t)(body + 1 - (char *)file));
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	inflateEnd(&z);
	p = pprof__profile__unpack(NULL, sizeof(raw) - z.avail_out, raw);
	assert_non_null(p);
	return p;
}

/* A server that is not there: what is put stays in the queue. The caller frees. */
static Pprof__Profile *push_one(const struct sketch *sketch)
{
	const struct push_to to = {.url = "pyroscope+http://127.0.0.1:1"};
	const struct push_opts opts = {.queue_dir = in_dir("queues"), .owner = (uid_t)-1};
	const struct export_opts exported = {.weight = WEIGHT_WALL};
	struct picture *pic = kit_picture(sketch, NULL);
	char query[PUSH_QUERY_MAX];
	struct destination *d;
	Pprof__Profile *p;

	assert_int_equal(destination__open(&to, &opts, &d), 0);
	assert_int_equal(destination__put(d, pic, &exported), 0);
	p = queued(query, sizeof(query));
	assert_memory_equal(query, "name=service%7B", 15);
	destination__free(d);
	picture__free(pic);
	return p;
}

static struct sketch first_alone(void)
{
	struct sketch one = lanes;

	one.n_targets = 1;
	return one;
}

static int64_t sum_of(const Pprof__Profile *p, size_t value)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i]->n_value, p->n_sample_type);
		sum += p->sample[i]->value[value];
	}
	return sum;
}

/* ── types ───────────────────────────────────────────────────────────────────────────────── */

/*
 * Where Pyroscope files a profile, by the rules of its RawProfile.metricName()
 * (pkg/og/convert/pprof/profile.go), for which "samples" is another name of "cpu".
 */
static const char *filed_under(const Pprof__Profile *p)
{
	const char *type = "";

	for (size_t i = 0; i < p->n_sample_type; i++)
		if (!strcmp(p->string_table[p->sample_type[i]->type], "wall"))
			return "wall";
	for (size_t i = 0; i < p->n_sample_type; i++) {
		type = p->string_table[p->sample_type[i]->type];
		if (!strcmp(type, "samples") || strstr(type, "cpu"))
			return "process_cpu";
		if (strstr(type, "alloc_") || strstr(type, "inuse_"))
			return "memory";
	}
	return type;
}

static void test_types(void **state)
{
	const struct sketch one = first_alone();
	Pprof__Profile *p = push_one(&one);

	(void)state;
	assert_string_equal(filed_under(p), "process_cpu");
	assert_int_equal(p->n_sample_type, 4);
	assert_string_equal(p->string_table[p->sample_type[1]->type], "cpu");
	assert_string_equal(p->string_table[p->sample_type[1]->unit], "nanoseconds");
	assert_string_equal(p->string_table[p->sample_type[2]->type], "wall_time");
	assert_string_equal(p->string_table[p->default_sample_type], "wall_time");
	assert_int_equal(sum_of(p, 1), 37 * MS);
	assert_int_equal(sum_of(p, 2), 90 * MS);
	pprof__profile__free_unpacked(p, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is queued for Pyroscope, and what Pyroscope makes of it. */
#include "test_push_kit.h"

#include "pprof.pb-c.h"
#include "test_export_lanes.h"
#include "gunzip.h"

/* Returns the profile of the only file in the queue, and its query. */
static Pprof__Profile *queued(char *query, size_t size)
{
	static uint8_t file[1 << 20], raw[1 << 22];
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
	len = gunzip(body + 1, len - (size_t)(body + 1 - (char *)file), raw, sizeof(raw));
	p = pprof__profile__unpack(NULL, len, raw);
	assert_non_null(p);
	return p;
}

/* Pushes to a server that is not there, so that the file stays in the queue. The caller frees. */
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
 * The name under which Pyroscope files a profile, after its RawProfile.metricName()
 * (pkg/og/convert/pprof/profile.go), which treats "samples" as "cpu".
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

/* ── series ──────────────────────────────────────────────────────────────────────────────── */

#define MANY 40
#define CAPS 8

static char names[MANY][24];
static struct pic_slice many_slices[MANY];
static struct pic_slice thread_slices[MANY];
static struct pic_lane many_threads[MANY], many_tsos[MANY];
static struct pic_target many_target;

/*
 * MANY Haskell threads, a millisecond each, on alternating capabilities; `labelled` of them have
 * one of `labels` different labels.
 */
static struct sketch threads_of(unsigned labelled, unsigned labels)
{
	struct sketch many = lanes;

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "for 10.0.0.%u", labels ? i % labels : 0);
		many_slices[i] = (struct pic_slice){.start_ns = T0 + i * MS,
						    .end_ns = T0 + (i + 1) * MS,
						    .tso = 1000 + i,
						    .stack = S_FIB,
						    .state = ST_HASKELL,
						    .cap = (uint16_t)(i % CAPS),
						    .samples = 1};
		many_tsos[i] =
			(struct pic_lane){.tso = 1000 + i, .name = i < labelled ? names[i] : ""};
	}
	many_threads[0] = (struct pic_lane){.tid = 42,
					    .name = "ghc_worker",
					    .end_ns = T0 + MANY * MS,
					    .slices = many_slices,
					    .n_slices = MANY};
	many_target = lanes_targets[0];
	many_target.lanes[LANE_THREAD] = (struct pic_lanes){.v = many_threads, .n = 1};
	many_target.lanes[LANE_CAPABILITY] = (struct pic_lanes){.n = 0};
	many_target.lanes[LANE_HASKELL] = (struct pic_lanes){.v = many_tsos, .n = MANY};
	many.targets = &many_target;
	many.n_targets = 1;
	return many;
}

/*
 * Formats a sample's labels as Pyroscope's addSampleLabelsToLabelsBuilder() (pkg/pprof) takes them:
 * texts only.
 */
static void labels_of(const Pprof__Profile *p, const Pprof__Sample *s, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < s->n_label && at < size; i++)
		if (s->label[i]->str)
			at += (size_t)snprintf(text + at, size - at, "%s=%s;",
					       p->string_table[s->label[i]->key],
					       p->string_table[s->label[i]->str]);
	assert_true(at < size);
}

static unsigned series_of(const Pprof__Profile *p)
{
	static char seen[64][512];
	unsigned n = 0, k;

	for (size_t i = 0; i < p->n_sample; i++) {
		assert_true(n < ARRAY_SIZE(seen));
		labels_of(p, p->sample[i], seen[n], sizeof(seen[n]));
		for (k = 0; strcmp(seen[k], seen[n]) != 0; k++)
			;
		n += k == n;
	}
	return n;
}

/* The sum of a value over the samples with this label; "": over those without it. */
static int64_t labelled(const Pprof__Profile *p, size_t value, const char *key, const char *text)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->n_sample; i++) {
		const char *its = "";

		for (size_t k = 0; k < p->sample[i]->n_label; k++)
			if (!strcmp(p->string_table[p->sample[i]->label[k]->key], key))
				its = p->string_table[p->sample[i]->label[k]->str];
		if (!strcmp(its, text))
			sum += p->sample[i]->value[value];
	}
	return sum;
}

static void check_sums(const Pprof__Profile *p)
{
	assert_int_equal(sum_of(p, 0), MANY);
	assert_int_equal(sum_of(p, 1), MANY * MS);
	assert_int_equal(labelled(p, 1, "state", "haskell"), MANY * MS);
}

/* There is one series, however many Haskell threads and capabilities there are. */
static void test_one_series(void **state)
{
	const struct sketch many = threads_of(0, 0);
	Pprof__Profile *p = push_one(&many);

	(void)state;
	assert_int_equal(series_of(p), 1);
	check_sums(p);
	assert_int_equal(labelled(p, 1, "thread", "ghc_worker"), MANY * MS);
	pprof__profile__free_unpacked(p, NULL);
}

/* A few labels show what threads do: each of the three here is shared by ten threads. */
static void test_few_labels(void **state)
{
	const struct sketch many = threads_of(30, 3);
	Pprof__Profile *p = push_one(&many);

	(void)state;
	assert_int_equal(series_of(p), 4);
	check_sums(p);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(labelled(p, 1, "haskell_thread", names[i]), 10 * MS);
		assert_int_equal(labelled(p, 0, "haskell_thread", names[i]), 10);
	}
	assert_int_equal(labelled(p, 1, "haskell_thread", ""), 10 * MS);
	pprof__profile__free_unpacked(p, NULL);
}

/* Many labels show only whom or what each thread works for, and make no series. */
static void test_many_labels(void **state)
{
	const struct sketch many = threads_of(MANY, MANY);
	Pprof__Profile *p = push_one(&many);

	(void)state;
	assert_int_equal(series_of(p), 1);
	check_sums(p);
	pprof__profile__free_unpacked(p, NULL);
}

/* The same holds for the names of OS threads. */
static void test_many_threads(void **state)
{
	struct sketch many = threads_of(MANY, MANY);
	Pprof__Profile *p;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		thread_slices[i] = many_slices[i];
		many_threads[i] = (struct pic_lane){.tid = (pid_t)(100 + i),
						    .name = names[i],
						    .end_ns = T0 + MANY * MS,
						    .slices = &thread_slices[i],
						    .n_slices = 1};
	}
	many_target.lanes[LANE_THREAD].n = MANY;
	many_target.lanes[LANE_HASKELL].n = 0;
	p = push_one(&many);
	assert_int_equal(series_of(p), 1);
	check_sums(p);
	pprof__profile__free_unpacked(p, NULL);
}

/* A process that only slept makes no request; another one beside it does. */
static void test_idle(void **state)
{
	struct pic_target targets[2];
	struct pic_slice slice;
	struct pic_lane lane;
	struct sketch idle = idle_one(&slice, &lane, &targets[0]);
	const struct push_to to = {.url = "pyroscope+http://127.0.0.1:1"};
	const struct push_opts opts = {.queue_dir = in_dir("queues"), .owner = (uid_t)-1};
	const struct export_opts exported = {.weight = WEIGHT_WALL};
	struct picture *pic = kit_picture(&idle, NULL);
	struct destination *d;
	Pprof__Profile *p;

	(void)state;
	assert_int_equal(destination__open(&to, &opts, &d), 0);
	assert_int_equal(destination__put(d, pic, &exported), 0);
	assert_int_equal(count_queued("queues/pyroscope+http___127.0.0.1_1"), 0);
	destination__free(d);
	picture__free(pic);
	targets[1] = lanes_targets[0];
	idle.targets = targets;
	idle.n_targets = 2;
	p = push_one(&idle);
	assert_int_equal(sum_of(p, 1), 37 * MS);
	pprof__profile__free_unpacked(p, NULL);
}

/* ── labels ──────────────────────────────────────────────────────────────────────────────── */

static void check_query(const char *comm, const char *host, const char *want)
{
	const struct export_opts opts = {.host_name = host};
	struct pic_target *target;
	struct pic_session *session;
	struct picture *pic;
	struct buf query;

	assert_int_equal(picture__new(16, &pic), 0);
	session = picture__edit_session(pic);
	session->start_ns = 5;
	session->end_ns = 5 + UINT64_C(60000000000);
	session->start_unix_ns = UINT64_C(1767225600900000000);
	assert_int_equal(picture__add_target(pic, &target), 0);
	target->comm = comm;
	target->exe = "/srv/bin/app";
	target->pid = 42;
	target->ghc_version = "9.6.6";
	buf__init(&query, PUSH_QUERY_MAX);
	assert_int_equal(push_labels__query(pic, target, &opts, &query), 0);
	assert_string_equal(query.data, want);
	buf__free(&query);
	picture__free(pic);
}

/* A long value is cut after 200 bytes, or before a character that would be split. */
static void check_long_label(size_t plain, size_t left)
{
	char comm[300], want[600];

	memset(comm, 'n', plain);
	snprintf(comm + plain, sizeof(comm) - plain, "éé");
	snprintf(want, sizeof(want),
		 "name=%.*s%s%%7Bpid%%3D42%%2Cexe%%3Dapp%%2Cghc_version%%3D9.6.6%%7D"
		 "&from=1767225600&until=1767225661&format=pprof",
		 (int)plain, comm, left ? "%C3%A9" : "");
	check_query(comm, NULL, want);
}

static void test_labels(void **state)
{
	(void)state;
	check_long_label(199, 0);
	check_long_label(198, 2);
	check_query("app", "box",
		    "name=app%7Bhost%3Dbox%2Cpid%3D42%2Cexe%3Dapp%2Cghc_version%3D9.6.6%7D"
		    "&from=1767225600&until=1767225661&format=pprof");
	/* of a replay, and characters that would end a label or the query */
	check_query("a{b=c}&d,\"\n", NULL,
		    "name=a_b_c_%26d__%5Cu_a_%7Bpid%3D42%2Cexe%3Dapp%2Cghc_version%3D9.6.6%7D"
		    "&from=1767225600&until=1767225661&format=pprof");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels), WITH_DIR(test_types),
		WITH_DIR(test_one_series),     WITH_DIR(test_few_labels),
		WITH_DIR(test_many_labels),    WITH_DIR(test_many_threads),
		WITH_DIR(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

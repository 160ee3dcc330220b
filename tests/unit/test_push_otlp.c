/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A window that is too large for a collector to accept at once: several requests, each complete in
 * itself.
 */
#include "test_push_kit.h"

#include "otlp.pb-c.h"
#include "test_export_lanes.h"
#include "gunzip.h"

/*
 * The most that a collector accepts, before gzip: max_request_body_size of its confighttp, whose
 * default is 20 MiB.
 */
#define COLLECTOR_TAKES ((size_t)20 << 20)

static uint8_t raw[COLLECTOR_TAKES * 3];

/* *ret_len: the length of the body before gzip. */
static Otlp__ExportRequest *unzip(const uint8_t *body, size_t len, size_t *ret_len)
{
	Otlp__ExportRequest *r;

	*ret_len = gunzip(body, len, raw, sizeof(raw));
	r = otlp__export_request__unpack(NULL, *ret_len, raw);
	assert_non_null(r);
	assert_non_null(r->dictionary);
	return r;
}

#define MOST_PROFILES 400

/* The totals of all requests. */
struct all {
	int64_t sums[5];
	uint8_t ids[MOST_PROFILES][16];
	size_t n_ids, requests, resources, samples, most_bytes;
};

static const char *const types[] = {"samples", "cpu", "off_cpu", "safe_call", "alloc_space"};

/* Everything that a stack refers to is in the request's own dictionary. */
static void check_stack(const Otlp__ProfilesDictionary *d, int32_t index)
{
	assert_in_range(index, 0, d->n_stack_table - 1);
	for (size_t i = 0; i < d->stack_table[index]->n_location_indices; i++) {
		int32_t at = d->stack_table[index]->location_indices[i];

		assert_in_range(at, 1, d->n_location_table - 1);
		assert_in_range(d->location_table[at]->lines[0]->function_index, 1,
				d->n_function_table - 1);
	}
}

static void add_profile(struct all *all, const Otlp__ProfilesDictionary *d, const Otlp__Profile *p)
{
	const char *name = d->string_table[p->sample_type->type_strindex];
	size_t type = 0;

	while (strcmp(types[type], name) != 0)
		assert_true(++type < ARRAY_SIZE(types));
	assert_true(all->n_ids < MOST_PROFILES);
	for (size_t i = 0; i < all->n_ids; i++)
		assert_memory_not_equal(all->ids[i], p->profile_id.data, 16);
	memcpy(all->ids[all->n_ids++], p->profile_id.data, 16);
	all->samples += p->n_samples;
	for (size_t i = 0; i < p->n_samples; i++) {
		const Otlp__Sample *s = p->samples[i];

		check_stack(d, s->stack_index);
		for (size_t k = 0; k < s->n_attribute_indices; k++)
			assert_in_range(s->attribute_indices[k], 1, d->n_attribute_table - 1);
		all->sums[type] += s->values[0];
	}
}

static void add_request(struct all *all, const uint8_t *body, size_t len)
{
	size_t bytes;
	Otlp__ExportRequest *r = unzip(body, len, &bytes);

	all->requests++;
	all->most_bytes = MAX(all->most_bytes, bytes);
	assert_true(r->n_resource_profiles > 0);
	for (size_t i = 0; i < r->n_resource_profiles; i++) {
		const Otlp__ScopeProfiles *scope = r->resource_profiles[i]->scope_profiles[0];

		all->resources++;
		for (size_t k = 0; k < scope->n_profiles; k++)
			add_profile(all, r->dictionary, scope->profiles[k]);
	}
	otlp__export_request__free_unpacked(r, NULL);
}

/* ── cut anywhere ────────────────────────────────────────────────────────────────────────── */

static void write_all(const struct sketch *sketch, uint64_t max_bytes, struct all *all)
{
	const struct export_opts opts = {.weight = WEIGHT_WALL};
	struct picture *pic = kit_picture(sketch, NULL);
	struct export_cursor at = {0};

	*all = (struct all){.n_ids = 0};
	while (!at.done) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		assert_non_null(out);
		assert_int_equal(export_otlp__write_next(out, pic, &opts, max_bytes, &at), 0);
		assert_int_equal(fclose(out), 0);
		if (!at.empty)
			add_request(all, (uint8_t *)text, len);
		free(text);
	}
	picture__free(pic);
}

/* Wherever a window is cut, the sums equal those of the slices, and no two profiles share an id. */
static void test_cut_anywhere(void **state)
{
	struct pic_lane threads[3];
	struct pic_target targets[2];
	struct sketch two = lanes;
	struct all all = {.requests = 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = lanes_threads[0];
		threads[i].tid = (pid_t)(42 + i);
	}
	for (size_t i = 0; i < 2; i++) {
		targets[i] = lanes_targets[0];
		targets[i].pid = (pid_t)(100 + i);
		targets[i].lanes[LANE_THREAD] = (struct pic_lanes){.v = threads, .n = 3};
	}
	two.targets = targets;
	two.n_targets = 2;
	for (uint64_t most = 0; most < 4096; most += 64) {
		size_t before = all.requests;

		write_all(&two, most, &all);
		/* of each of the six threads */
		assert_int_equal(all.sums[1], 6 * 37 * MS);
		assert_int_equal(all.sums[2], 6 * 53 * MS);
		assert_int_equal(all.sums[3], 6 * 48 * MS);
		/*
		 * at first each request has one stack of a thread in one state, for three types at
		 * most
		 */
		if (!most)
			assert_in_range(all.samples, all.requests + 1, 3 * all.requests);
		else
			assert_in_range(all.requests, 1, before);
	}
	assert_int_equal(all.requests, 1);
	assert_int_equal(all.resources, 2);
}

/* ── a large window ──────────────────────────────────────────────────────────────────────── */

#define THREADS 40
#define EACH	200
#define NAME	4000

static char *names;
static struct pic_frame many_frames[THREADS * EACH];
static uint32_t many_numbers[THREADS * EACH];
static struct pic_stack many_stacks[THREADS * EACH];
static struct pic_slice many_slices[THREADS][EACH];
static struct pic_lane many_threads[THREADS];

/* A process whose functions' names alone take 32 MB. */
static struct sketch large_one(struct pic_target *target)
{
	struct sketch large = lanes;

	names = malloc((size_t)THREADS * EACH * (NAME + 1));
	assert_non_null(names);
	for (unsigned i = 0; i < THREADS * EACH; i++) {
		char *name = names + (size_t)i * (NAME + 1);
		struct pic_slice *slice = &many_slices[i / EACH][i % EACH];

		memset(name, 'x', NAME);
		snprintf(name + NAME - 8, 9, "%08u", i);
		many_frames[i] = (struct pic_frame){name, "M", "", "", "", TF_HASKELL, false};
		many_numbers[i] = i;
		many_stacks[i] = (struct pic_stack){.frames = &many_numbers[i], .n = 1};
		*slice = (struct pic_slice){.start_ns = T0 + (i % EACH) * MS,
					    .end_ns = T0 + (i % EACH + 1) * MS,
					    .stack = i,
					    .state = ST_HASKELL,
					    .samples = 1};
	}
	for (unsigned i = 0; i < THREADS; i++)
		many_threads[i] = (struct pic_lane){.tid = (pid_t)(1 + i),
						    .name = "w",
						    .end_ns = T0 + EACH * MS,
						    .slices = many_slices[i],
						    .n_slices = EACH};
	*target = (struct pic_target){.pid = 7,
				      .comm = "large",
				      .exe = "/large",
				      .lanes[LANE_THREAD] = {.v = many_threads, .n = THREADS}};
	large.targets = target;
	large.n_targets = 1;
	large.frames = many_frames;
	large.n_frames = THREADS * EACH;
	large.stacks = many_stacks;
	large.n_stacks = THREADS * EACH;
	return large;
}

static void add_queued(struct all *all)
{
	static uint8_t file[1 << 22];
	const char *queue = "queues/otlp+http___127.0.0.1_1";
	DIR *d = opendir(in_dir(queue));
	struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d))) {
		char path[PATH_MAX];
		size_t len;
		FILE *in;

		if (!queue__is_name(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", in_dir(queue), entry->d_name);
		in = fopen(path, "r");
		assert_non_null(in);
		len = fread(file, 1, sizeof(file), in);
		assert_true(len > 1 && len < sizeof(file));
		fclose(in);
		assert_int_equal(file[0], '\n');
		add_request(all, file + 1, len - 1);
	}
	closedir(d);
}

/* A window in which nothing happened makes no request. */
static void test_idle_window(void **state)
{
	const struct push_to to = {.url = "otlp+http://127.0.0.1:1"};
	const struct push_opts opts = {.queue_dir = in_dir("queues"), .owner = (uid_t)-1};
	const struct export_opts exported = {.weight = WEIGHT_WALL};
	struct pic_target target;
	struct pic_slice slice;
	struct pic_lane lane;
	struct sketch idle = idle_one(&slice, &lane, &target);
	struct picture *pic = kit_picture(&idle, NULL);
	struct destination *d;

	(void)state;
	assert_int_equal(destination__open(&to, &opts, &d), 0);
	assert_int_equal(destination__put(d, pic, &exported), 0);
	assert_int_equal(count_queued("queues/otlp+http___127.0.0.1_1"), 0);
	picture__free(pic);
	pic = kit_picture(&lanes, NULL);
	assert_int_equal(destination__put(d, pic, &exported), 0);
	assert_int_equal(count_queued("queues/otlp+http___127.0.0.1_1"), 1);
	destination__free(d);
	picture__free(pic);
}

static void test_large_window(void **state)
{
	const struct push_to to = {.url = "otlp+http://127.0.0.1:1"};
	const struct push_opts opts = {.queue_dir = in_dir("queues"), .owner = (uid_t)-1};
	const struct export_opts exported = {.weight = WEIGHT_WALL};
	struct pic_target target;
	struct sketch large = large_one(&target);
	struct picture *pic = kit_picture(&large, NULL);
	struct all all = {.n_ids = 0};
	struct destination *d;

	(void)state;
	assert_int_equal(destination__open(&to, &opts, &d), 0);
	assert_int_equal(destination__put(d, pic, &exported), 0);
	add_queued(&all);
	assert_true(all.most_bytes < COLLECTOR_TAKES);
	/* no more requests than necessary */
	assert_in_range(all.requests, 2, 5);
	assert_int_equal(all.sums[0], THREADS * EACH);
	assert_int_equal(all.sums[1], THREADS * EACH * MS);
	destination__free(d);
	picture__free(pic);
	free(names);
}

/* ── a large thread ──────────────────────────────────────────────────────────────────────── */

/* The limit for a request in destination.c. */
#define REQUEST_TAKES ((size_t)8 << 20)
#define STACKS	      3600
#define DEPTH	      1000
#define FUNCTIONS     20000

static char deep_names[FUNCTIONS][16];
static struct pic_frame deep_frames[FUNCTIONS];
static uint32_t deep_numbers[STACKS][DEPTH];
static struct pic_stack deep_stacks[STACKS];
static struct pic_slice deep_slices[STACKS];
static struct pic_alloc_row deep_rows[STACKS];
static struct pic_lane deep_thread[1];

/* A process with one thread, whose stacks are all different, and so are those of its allocation. */
static struct sketch deep_one(struct pic_target *target)
{
	struct sketch deep = lanes;

	for (unsigned i = 0; i < FUNCTIONS; i++) {
		snprintf(deep_names[i], sizeof(deep_names[i]), "f%u", i);
		deep_frames[i] =
			(struct pic_frame){deep_names[i], "M", "", "", "", TF_HASKELL, false};
	}
	for (unsigned i = 0; i < STACKS; i++) {
		for (unsigned k = 0; k < DEPTH; k++)
			deep_numbers[i][k] = (i * 7 + k * 13) % FUNCTIONS;
		deep_stacks[i] = (struct pic_stack){.frames = deep_numbers[i], .n = DEPTH};
		deep_slices[i] = (struct pic_slice){.start_ns = T0 + i * MS,
						    .end_ns = T0 + (i + 1) * MS,
						    .stack = i,
						    .state = ST_HASKELL,
						    .samples = 1};
		deep_rows[i] = (struct pic_alloc_row){.stack = i, .bytes = 1000 + i};
	}
	deep_thread[0] = (struct pic_lane){.tid = 1,
					   .name = "w",
					   .end_ns = T0 + STACKS * MS,
					   .slices = deep_slices,
					   .n_slices = STACKS};
	*target =
		(struct pic_target){.pid = 7,
				    .comm = "deep",
				    .exe = "/deep",
				    .lanes[LANE_THREAD] = {.v = deep_thread, .n = 1},
				    .alloc = {.known = true, .rows = deep_rows, .n_rows = STACKS}};
	deep.targets = target;
	deep.n_targets = 1;
	deep.frames = deep_frames;
	deep.n_frames = FUNCTIONS;
	deep.stacks = deep_stacks;
	deep.n_stacks = STACKS;
	return deep;
}

/* A single thread and its allocation are divided, too; nothing is lost or sent twice. */
static void test_large_thread(void **state)
{
	struct pic_target target;
	struct sketch deep = deep_one(&target);
	struct all all;

	(void)state;
	write_all(&deep, REQUEST_TAKES, &all);
	assert_in_range(all.most_bytes, REQUEST_TAKES / 4, REQUEST_TAKES);
	assert_in_range(all.requests, 2, 6);
	assert_int_equal(all.sums[0], STACKS);
	assert_int_equal(all.sums[1], STACKS * MS);
	assert_int_equal(all.sums[4], STACKS * 1000 + STACKS * (STACKS - 1) / 2);
	assert_int_equal(all.samples, 3 * STACKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_large_thread),
		WITH_DIR(test_large_window),
		WITH_DIR(test_idle_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HTML page: its data add up to the picture's, no text of a target can break out of its
 * element, nothing is loaded from elsewhere, and trees are within the requested bound.
 */
#include <setjmp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "export/html/html_priv.h"
#include "test_export_pictures.h"

/* Not inlined: gcc 12 mistakes what a stream allocated for a local variable of kit_render(). */
__attribute__((noinline)) static char *render(const struct sketch *sketch,
					      const struct export_opts *opts)
{
	size_t len;

	return kit_render("html", sketch, opts, &len);
}

/* The data in the element with that id; NULL if there is none. The data cannot contain the
 * element's end: a browser reads exactly what is read here. */
static cJSON *data_of(char *page, const char *id)
{
	char mark[64], *data, *end;
	cJSON *root;

	snprintf(mark, sizeof(mark), "<script type=\"application/json\" id=\"%s\">", id);
	data = strstr(page, mark);
	if (!data)
		return NULL;
	data += strlen(mark);
	end = strchr(data, '<');
	assert_non_null(end);
	assert_memory_equal(end, "</script>", strlen("</script>"));
	*end = '\0';
	assert_null(strpbrk(data, "<>&"));
	root = cJSON_Parse(data);
	*end = '<';
	assert_non_null(root);
	return root;
}

/* The sums of the rows of the lanes that count. */
struct added {
	double wall, cpu, samples;
};

static const cJSON *field(const cJSON *object, const char *name)
{
	const cJSON *value = cJSON_GetObjectItem(object, name);

	assert_non_null(value);
	return value;
}

static void check_nodes(const cJSON *details, int n_frames)
{
	const cJSON *node = field(details, "nodes")->child;
	int deepest = 0;

	for (; node; node = node->next->next) {
		/* its parent is the last node before it with a smaller depth */
		assert_true(node->valueint >= 0 && node->valueint <= deepest);
		deepest = node->valueint + 1;
		assert_true(node->next->valueint >= 0 && node->next->valueint < n_frames);
	}
}

static void add_rows(const cJSON *rows, int kind, int n_nodes, struct added *sums)
{
	for (const cJSON *row = rows->child; row; row = row->next->next->next->next) {
		unsigned state = (unsigned)row->next->valueint;
		double ns = row->next->next->valuedouble;

		assert_true(row->valueint >= 0 && row->valueint <= n_nodes);
		assert_true(state / 2 < state__count((enum lane_kind)kind));
		sums->wall += state__is_idle((enum lane_kind)kind, state / 2) ? 0 : ns;
		sums->cpu += state % 2 ? ns : 0;
		sums->samples += row->next->next->next->valuedouble;
	}
}

/* Returns the total length of a lane's drawn slices, which are in elements of their own. */
static double drawn_ns(char *page, int lane, int n_looks)
{
	double sum = 0;

	for (int part = 0;; part++) {
		char id[64];
		cJSON *slices;

		snprintf(id, sizeof(id), "slices-%d-%d", lane, part);
		slices = data_of(page, id);
		if (!slices)
			return sum;
		for (const cJSON *s = slices->child->next; s; s = s->next->next->next) {
			assert_true(s->valuedouble > 0);
			assert_true(s->next->valueint >= 0 && s->next->valueint <= n_looks);
			sum += s->next->valueint ? s->valuedouble : 0;
		}
		cJSON_Delete(slices);
	}
}

/* Runs of bins: repeat count, number of faces, and the face and share of each. Their total
 * length is that of what is drawn, within rounding. */
static void check_bins(const cJSON *lane, double bin_ns, double ns)
{
	double sum = 0, n = 0;

	for (const cJSON *run = field(lane, "bins")->child; run;) {
		double times = run->valuedouble;
		int faces = run->next->valueint;

		assert_true(times > 0 && faces >= 0);
		run = run->next->next;
		for (; faces > 0; faces--, run = run->next->next)
			sum += times * run->next->valuedouble / 100 * bin_ns;
		n += times;
	}
	assert_true(n > 0);
	assert_true(sum <= ns + n * bin_ns * 0.1 && sum >= ns - n * bin_ns * 0.1);
}

static void check_tables(const cJSON *target)
{
	const cJSON *table, *row;

	cJSON_ArrayForEach (table, field(target, "tables")) {
		int columns = cJSON_GetArraySize(field(table, "columns"));

		cJSON_ArrayForEach (row, field(table, "rows"))
			assert_int_equal(cJSON_GetArraySize(row), columns);
	}
}

/* The page makes no network request. */
static void check_alone(const char *page)
{
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_null(strstr(page, " src="));
	assert_null(strstr(page, " href="));
	assert_non_null(strstr(page, "default-src 'none'"));
}

/* Returns the sums of the lanes that count; all slices must be there. */
static struct added check_page(const struct sketch *sketch, const struct export_opts *opts)
{
	char *page = render(sketch, opts);
	cJSON *root = data_of(page, "data"), *details = data_of(page, "details");
	const cJSON *lane, *target, *rows;
	struct added sums = {0};
	int n_nodes, no = 0, n_looks;

	assert_non_null(root);
	assert_non_null(details);
	check_alone(page);
	check_nodes(details, cJSON_GetArraySize(field(details, "frames")));
	n_nodes = cJSON_GetArraySize(field(details, "nodes")) / 2;
	n_looks = cJSON_GetArraySize(field(details, "looks")) / 6;
	rows = field(details, "rows")->child;
	cJSON_ArrayForEach (lane, field(root, "lanes")) {
		int kind = field(lane, "kind")->valueint;

		if (field(lane, "counted")->valueint)
			add_rows(rows, kind, n_nodes, &sums);
		if (cJSON_GetObjectItem(lane, "bins"))
			check_bins(lane, field(root, "bin_ns")->valuedouble,
				   drawn_ns(page, no, n_looks));
		assert_int_equal(cJSON_GetArraySize(field(lane, "states")),
				 state__count((enum lane_kind)kind));
		rows = rows->next;
		no++;
	}
	assert_null(rows);
	assert_int_equal(cJSON_GetArraySize(field(root, "targets")), sketch->n_targets);
	cJSON_ArrayForEach (target, field(root, "targets"))
		check_tables(target);
	cJSON_Delete(root);
	cJSON_Delete(details);
	free(page);
	return sums;
}

static struct added wanted(const struct sketch *sketch)
{
	struct added sums = {0};

	for (size_t t = 0; t < sketch->n_targets; t++) {
		const struct pic_lanes *lanes = &sketch->targets[t].lanes[LANE_THREAD];

		for (size_t i = 0; i < lanes->n; i++)
			for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
				const struct pic_slice *s = &lanes->v[i].slices[k];
				double ns = (double)(s->end_ns - s->start_ns);

				sums.wall += s->state == ST_IDLE ? 0 : ns;
				sums.cpu += state__on_cpu(LANE_THREAD, s->state) ? ns : 0;
				sums.samples += s->samples;
			}
	}
	return sums;
}

static void check_sums(const struct sketch *sketch, const struct export_opts *opts)
{
	const struct added want = wanted(sketch), got = check_page(sketch, opts);

	assert_true(got.wall == want.wall);
	assert_true(got.cpu == want.cpu);
	assert_true(got.samples == want.samples);
}

static void test_pages(void **state)
{
	const struct export_opts all = {0}, capabilities = {.lanes = EXPORT_LANES_CAPABILITY};

	(void)state;
	check_sums(&service, &all);
	check_sums(&hostile, &all);
	check_sums(&empty, &all);
	/* threads count whether or not they are shown */
	check_sums(&service, &capabilities);
	assert_true(wanted(&service).cpu > 0 && wanted(&service).cpu < wanted(&service).wall);
}

/* Hostile names of a program and its functions. */
static void test_names_stay_text(void **state)
{
	static const char evil[] = "</script><script>alert(1)</script><!--&amp;";
	static const struct pic_frame frames[] = {{.name = evil, .file = evil}};
	static const uint32_t one[] = {0};
	static const struct pic_stack stacks[] = {{0}, {.frames = one, .n = 1}};
	static const struct pic_slice slice = SLICE(0, 9, 1, ST_HASKELL, 0, 0);
	static const struct pic_call call = {.function = evil, .caller = evil, .exact = true};
	static const struct pic_finding finding = {.kind = "k", .text = evil};
	static const char *missing[] = {evil};
	static const struct pic_lane lanes[] = {
		{.name = "</script>", .end_ns = 9, .slices = &slice, .n_slices = 1}};
	static const struct pic_target target = {
		.comm = evil,
		.way = evil,
		.ghc_version = evil,
		.lanes[LANE_THREAD] = LANES(lanes),
		.calls = &call,
		.n_calls = 1,
		.findings = &finding,
		.n_findings = 1,
		.missing = missing,
		.n_missing = 1,
	};
	static const struct sketch sketch = {
		.session = {.version = "1", .end_ns = 9},
		.targets = &target,
		.n_targets = 1,
		.frames = frames,
		.n_frames = 1,
		.stacks = stacks,
		.n_stacks = 2,
	};
	const struct export_opts wall = {.weight = WEIGHT_WALL};
	const cJSON *frame;
	cJSON *root;
	char *page;

	(void)state;
	assert_true(check_page(&sketch, &wall).wall == 9);
	page = render(&sketch, &wall);
	root = data_of(page, "details");
	frame = cJSON_GetArrayItem(field(root, "frames"), 1);
	assert_string_equal(frame->child->valuestring, evil);
	cJSON_Delete(root);
	free(page);
}

/* On a host with thousands of threads most have no lane of their own on the page, but what they
 * did is counted. */
static void test_many_lanes(void **state)
{
	enum { MANY = 1700 };
	static struct pic_slice slices[MANY];
	static struct pic_lane lanes[MANY];
	static const struct pic_frame frames[] = {{.name = "Main.work", .file = "Main"}};
	static const uint32_t one[] = {0};
	static const struct pic_stack stacks[] = {{0}, {.frames = one, .n = 1}};
	const struct pic_target target = {
		.comm = "many", .pid = 42, .lanes[LANE_THREAD] = LANES(lanes)};
	const struct sketch sketch = {
		.session = {.version = "1", .end_ns = MANY + 9},
		.targets = &target,
		.n_targets = 1,
		.frames = frames,
		.n_frames = 1,
		.stacks = stacks,
		.n_stacks = 2,
	};
	const struct export_opts all = {0};
	cJSON *root;
	char *page;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		slices[i] = (struct pic_slice)SLICE(0, i + 9ULL, 1, ST_HASKELL, 0, 0);
		lanes[i] = (struct pic_lane){.tid = (pid_t)(i + 1),
					     .name = "worker",
					     .end_ns = i + 9,
					     .states_ns = {[ST_HASKELL] = i + 9},
					     .slices = &slices[i],
					     .n_slices = 1};
	}
	check_sums(&sketch, &all);
	page = render(&sketch, &all);
	root = data_of(page, "data");
	assert_true(cJSON_GetArraySize(field(root, "lanes")) < MANY);
	cJSON_Delete(root);
	free(page);
}

/* Of very many collections only the longest are on the page; the others are there as a sum. */
static void test_many_collections(void **state)
{
	enum { MANY = 40000 };
	static struct pic_gc_event gcs[MANY];
	const struct pic_target target = {
		.comm = "many", .pid = 42, .gcs = gcs, .n_gcs = MANY, .gc = {.known = true}};
	const struct sketch sketch = {
		.session = {.version = "1", .end_ns = 1000ULL * MANY},
		.targets = &target,
		.n_targets = 1,
	};
	const struct export_opts all = {0};
	double pause_ns = 0, sync_ns = 0, want_pause_ns = 0, want_sync_ns = 0;
	const cJSON *shown, *rest, *gc;
	cJSON *root;
	char *page;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		gcs[i] = (struct pic_gc_event){.start_ns = 1000ULL * i,
					       .end_ns = 1000ULL * i + 1 + i % 700,
					       .sync_ns = i % 3 ? i % 5 : UINT64_MAX};
		want_pause_ns += 1 + i % 700;
		want_sync_ns += i % 3 ? i % 5 : 0;
	}
	page = render(&sketch, &all);
	root = data_of(page, "data");
	shown = field(field(root, "targets")->child, "gcs");
	rest = field(field(root, "targets")->child, "gcs_rest");
	cJSON_ArrayForEach (gc, shown) {
		pause_ns += gc->child->next->valuedouble - gc->child->valuedouble;
		sync_ns += gc->child->next->next->valuedouble;
	}
	assert_true(cJSON_GetArraySize(shown) < MANY);
	assert_true(pause_ns + rest->child->valuedouble == want_pause_ns);
	assert_true(sync_ns + rest->child->next->valuedouble == want_sync_ns);
	cJSON_Delete(root);
	free(page);
}

/* ── stacks ──────────────────────────────────────────────────────────────────────────────── */

#define WIDE	 3000	    /* stacks */
#define DEEP	 12	    /* frames in each */
#define N_STACKS (WIDE + 8) /* and those that every picture has */

/* Each stack's node is its last frame that is in the tree, or an HTML_SMALL below that. */
static void check_node(const struct html_stacks *tree, uint32_t node, const uint32_t *frames)
{
	const struct html_node *n = &tree->nodes[node - 1];
	uint32_t depth = n->depth;

	assert_true(node >= 1 && node <= tree->n);
	if (n->frame != HTML_SMALL)
		assert_int_equal(n->frame, frames[depth]);
	/* the parent is the last node before it with a smaller depth */
	while (depth-- > 0) {
		while (n->depth != depth)
			n--;
		assert_int_equal(n->frame, frames[depth]);
	}
}

static void frames_of(uint32_t i, uint32_t *frames)
{
	/* groups of 100 share a root */
	for (uint32_t d = 0; d < DEEP; d++)
		frames[d] = d ? i * DEEP + d : i / 100 * 100 * DEEP;
}

static void test_trees_are_bounded(void **state)
{
	static uint32_t frames[DEEP], map[WIDE * DEEP], stacks[WIDE];
	static uint64_t weights[N_STACKS];
	static const size_t bounds[] = {DEEP + 2, 50, 1000, WIDE * DEEP};
	struct html_stacks tree;
	struct picture *pic;
	uint64_t least;

	(void)state;
	assert_int_equal(picture__new(WIDE + 1, &pic), 0);
	for (uint32_t i = 0; i < WIDE * DEEP; i++)
		map[i] = i;
	/* the first is as heavy as all others together */
	for (uint32_t i = 0; i < WIDE; i++) {
		frames_of(i, frames);
		assert_int_equal(picture__add_stack(pic, frames, DEEP, &stacks[i]), 0);
		assert_true(stacks[i] < N_STACKS);
		weights[stacks[i]] = i ? 10 + i % 7 : 40000;
	}
	for (size_t b = 0; b < ARRAY_SIZE(bounds); b++) {
		assert_int_equal(html_stacks__build(pic, weights, N_STACKS, map, bounds[b], 1,
						    &tree, &least),
				 0);
		assert_true(tree.n > 0 && tree.n <= bounds[b]);
		for (uint32_t i = 0; i < WIDE; i++) {
			frames_of(i, frames);
			check_node(&tree, html_stacks__node(&tree, stacks[i]), frames);
		}
		/* heavy stacks are kept whole */
		assert_int_equal(tree.nodes[html_stacks__node(&tree, stacks[0]) - 1].depth,
				 DEEP - 1);
		assert_true((tree.small_ns != 0) == (least > 1));
		html_stacks__free(&tree);
	}
	/* everything fits: shared frames occur once */
	assert_int_equal(
		html_stacks__build(pic, weights, N_STACKS, map, WIDE * DEEP, 1, &tree, &least), 0);
	assert_int_equal(tree.n, WIDE * (DEEP - 1) + WIDE / 100);
	assert_int_equal(tree.small_ns, 0);
	html_stacks__free(&tree);
	/* no tree is small enough */
	memset(weights, 0, sizeof(weights));
	weights[stacks[0]] = 1;
	assert_int_equal(html_stacks__build(pic, weights, N_STACKS, map, 1, 1, &tree, &least),
			 -E2BIG);
	assert_int_equal(html_stacks__build(pic, weights, 0, map, 1, 1, &tree, &least), 0);
	assert_int_equal(tree.n, 0);
	html_stacks__free(&tree);
	picture__free(pic);
}

static void test_a_full_disk_is_reported(void **state)
{
	const struct export_opts wall = {.weight = WEIGHT_WALL};
	struct picture *pic = kit_picture(&service, NULL);
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(export_html.write(full, pic, &wall), -EIO);
	fclose(full);
	picture__free(pic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_names_stay_text),
		cmocka_unit_test(test_many_lanes),
		cmocka_unit_test(test_many_collections),
		cmocka_unit_test(test_trees_are_bounded),
		cmocka_unit_test(test_a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

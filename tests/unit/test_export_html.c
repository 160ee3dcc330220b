/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The html page: its data add up to the picture's, nothing of a target's can leave the element that
 * they are in, nothing is loaded from elsewhere, and trees are as small as they are asked to be.
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

#define DATA_BEGIN "<script type=\"application/json\" id=\"data\">\n"
#define DATA_END   "\n</script>"

static char *render(const struct sketch *sketch, const struct export_opts *opts)
{
	size_t len;

	return kit_render("html", sketch, opts, &len);
}

/* The page's data, which end where the page says: a browser would find no earlier end. */
static cJSON *data_of(char *page)
{
	char *data = strstr(page, DATA_BEGIN), *end;
	cJSON *root;

	assert_non_null(data);
	data += strlen(DATA_BEGIN);
	end = strchr(data, '<');
	assert_non_null(end);
	assert_memory_equal(end - 1, DATA_END, strlen(DATA_END));
	*end = '\0';
	assert_null(strpbrk(data, "<>&"));
	root = cJSON_Parse(data);
	*end = '<';
	assert_non_null(root);
	return root;
}

static double check_profile(const cJSON *profile, int n_frames)
{
	const cJSON *node = cJSON_GetObjectItem(profile, "nodes")->child;
	double sum = 0;
	int deepest = 0;

	assert_non_null(node);
	for (; node; node = node->next->next->next) {
		int depth = node->valueint, frame = node->next->valueint;

		/* its parent is the last one before it that is less deep */
		assert_true(depth >= 0 && depth <= deepest);
		deepest = depth + 1;
		assert_true(frame >= 0 && frame < n_frames);
		assert_true(node->next->next->valuedouble >= 0);
		sum += node->next->next->valuedouble;
	}
	return sum;
}

/* Returns the sum of the profiles of all threads; those of lanes come to the same. */
static double check_page(const struct sketch *sketch, const struct export_opts *opts)
{
	char *page = render(sketch, opts);
	cJSON *root = data_of(page);
	const cJSON *frames = cJSON_GetObjectItem(root, "frames"), *profile, *item;
	const cJSON *targets = cJSON_GetObjectItem(root, "targets");
	double all = 0, lanes = 0;
	int n_targets = 0;

	/* nothing is asked of any network */
	assert_null(strstr(page, "http:"));
	assert_null(strstr(page, "https:"));
	assert_null(strstr(page, " src="));
	assert_non_null(strstr(page, "default-src 'none'"));
	cJSON_ArrayForEach (profile, cJSON_GetObjectItem(root, "profiles")) {
		const char *name = cJSON_GetObjectItem(profile, "name")->valuestring;
		double sum = check_profile(profile, cJSON_GetArraySize(frames));

		if (!strncmp(name, "all threads", 11))
			all += sum;
		else if (name[0] >= '0' && name[0] <= '9')
			lanes += sum;
	}
	assert_true(all == lanes);
	cJSON_ArrayForEach (item, targets) {
		const cJSON *table, *row;

		cJSON_ArrayForEach (table, cJSON_GetObjectItem(item, "tables")) {
			int columns = cJSON_GetArraySize(cJSON_GetObjectItem(table, "columns"));

			cJSON_ArrayForEach (row, cJSON_GetObjectItem(table, "rows"))
				assert_int_equal(cJSON_GetArraySize(row), columns);
		}
		n_targets++;
	}
	assert_int_equal(n_targets, sketch->n_targets);
	cJSON_Delete(root);
	free(page);
	return all;
}

static double busy_ns(const struct sketch *sketch)
{
	double sum = 0;

	for (size_t t = 0; t < sketch->n_targets; t++) {
		const struct pic_lanes *lanes = &sketch->targets[t].lanes[LANE_THREAD];

		for (size_t i = 0; i < lanes->n; i++)
			for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
				const struct pic_slice *s = &lanes->v[i].slices[k];

				if (s->state != ST_IDLE && sketch->stacks[s->stack].n)
					sum += (double)(s->end_ns - s->start_ns);
			}
	}
	return sum;
}

static void test_pages(void **state)
{
	const struct export_opts wall = {.weight = WEIGHT_WALL};
	const struct export_opts cpu = {.weight = WEIGHT_CPU};
	const struct export_opts samples = {.weight = WEIGHT_SAMPLES};

	(void)state;
	assert_true(check_page(&service, &wall) == busy_ns(&service));
	assert_true(check_page(&service, &cpu) > 0);
	assert_true(check_page(&service, &cpu) < busy_ns(&service));
	assert_true(check_page(&service, &samples) > 0);
	assert_true(check_page(&hostile, &wall) == busy_ns(&hostile));
	assert_true(check_page(&empty, &wall) == 0);
}

/* Whatever a program calls itself and its functions. */
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
	assert_true(check_page(&sketch, &wall) == 9);
	page = render(&sketch, &wall);
	root = data_of(page);
	frame = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "frames"), 1);
	assert_string_equal(frame->child->valuestring, evil);
	cJSON_Delete(root);
	free(page);
}

/* ── trees ───────────────────────────────────────────────────────────────────────────────── */

#define WIDE 3000 /* stacks */
#define DEEP 12	  /* frames in each */

static uint64_t sum_of(const struct html_tree *tree)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < tree->n; i++)
		sum += tree->nodes[i].self;
	return sum;
}

static void test_trees_are_bounded(void **state)
{
	static uint32_t frames[DEEP], map[WIDE * DEEP];
	static struct sum sums[WIDE];
	static const size_t bounds[] = {DEEP + 2, 50, 1000, WIDE * DEEP};
	struct html_tree tree;
	struct picture *pic;
	uint64_t total = 0;

	(void)state;
	assert_int_equal(picture__new(WIDE, &pic), 0);
	for (uint32_t i = 0; i < WIDE * DEEP; i++)
		map[i] = i;
	/* the first is as heavy as all others; each shares its root with some */
	for (uint32_t i = 0; i < WIDE; i++) {
		for (uint32_t d = 0; d < DEEP; d++)
			frames[d] = d ? i * DEEP + d : i / 100 * 100 * DEEP;
		sums[i].by[WEIGHT_CPU] = i ? 10 + i % 7 : 40000;
		assert_int_equal(picture__add_stack(pic, frames, DEEP, &sums[i].stack), 0);
		total += sums[i].by[WEIGHT_CPU];
	}
	for (size_t b = 0; b < ARRAY_SIZE(bounds); b++) {
		assert_int_equal(
			html_tree__build(pic, sums, WIDE, WEIGHT_CPU, map, bounds[b], &tree), 0);
		assert_true(tree.n > 0 && tree.n <= bounds[b]);
		assert_int_equal(sum_of(&tree), total);
		assert_int_equal(tree.total, total);
		/* what is heavy stays */
		assert_int_equal(tree.nodes[DEEP - 1].self, 40000);
		html_tree__free(&tree);
	}
	/* all of it: what the stacks share is there once */
	assert_int_equal(html_tree__build(pic, sums, WIDE, WEIGHT_CPU, map, WIDE * DEEP, &tree), 0);
	assert_int_equal(tree.n, WIDE * (DEEP - 1) + WIDE / 100);
	html_tree__free(&tree);
	/* no tree is that small */
	sums[0].by[WEIGHT_CPU] = 1;
	assert_int_equal(html_tree__build(pic, sums, 1, WEIGHT_CPU, map, 1, &tree), -E2BIG);
	assert_int_equal(html_tree__build(pic, sums, 0, WEIGHT_CPU, map, 1, &tree), 0);
	assert_int_equal(tree.n, 0);
	html_tree__free(&tree);
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
		cmocka_unit_test(test_trees_are_bounded),
		cmocka_unit_test(test_a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

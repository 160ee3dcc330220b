/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --top: what the screen shows of a window, on terminals of all sizes, whatever names programs
 * have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test_export_lanes.h"
#include "export/faces.h"
#include "top/top_priv.h"

static struct top_frame *frame_of(const struct sketch *sketch)
{
	struct top_frame *frame = malloc(sizeof(*frame));
	struct picture *pic = kit_picture(sketch, NULL);
	const struct export_opts opts = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_true(frame && out);
	assert_int_equal(export_top.write(out, pic, &opts), 0);
	fclose(out);
	picture__free(pic);
	assert_int_equal(len, sizeof(*frame));
	memcpy(frame, text, len);
	free(text);
	assert_true(top_frame__check(frame));
	return frame;
}

/* The processes of a session with lanes of all kinds. */
static void test_frame(void **state)
{
	struct top_frame *frame = frame_of(&lanes);
	const struct top_process *p = &frame->processes[0];
	uint64_t wall = 0;

	(void)state;
	assert_int_equal(frame->n_all, lanes.n_targets);
	assert_int_equal(frame->n_processes, lanes.n_targets);
	assert_int_equal(frame->length_ns, lanes.session.end_ns - lanes.session.start_ns);
	assert_string_equal(p->comm, "service");
	assert_int_equal(p->pid, 4242);
	for (unsigned s = 0; s < ST_MAX; s++)
		wall += p->states_ns[s];
	for (size_t i = 0; i < lanes.targets[0].lanes[LANE_THREAD].n; i++) {
		const struct pic_lane *lane = &lanes.targets[0].lanes[LANE_THREAD].v[i];

		if (!lane->housekeeping)
			for (unsigned s = 0; s < ST_MAX; s++)
				wall -= lane->states_ns[s];
	}
	assert_int_equal(wall, 0);
	free(frame);
}

/* The line of this view that contains this text. */
static const char *line_of(const struct top_view *view, const char *text)
{
	static char line[512];
	struct buf out;
	const char *at;

	buf__init(&out, 1 << 20);
	assert_int_equal(top__draw(view, &out), 0);
	assert_int_equal(buf__addc(&out, '\0'), 0);
	at = strstr(out.data, text);
	assert_non_null(at);
	while (*at != '\033')
		at--;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at + 1, "\033"), at + 1);
	buf__free(&out);
	return line;
}

/* The line of the screen that contains this text. */
static const char *line_with(const struct top_frame *frame, const char *text)
{
	const struct top_view view = {.frame = frame, .columns = 120, .rows = 60};

	return line_of(&view, text);
}

/* The mean is of calls that have ended; those still open count in the time only. */
static void test_open_calls(void **state)
{
	struct pic_call calls[] = {
		{.function = "usleep",
		 .caller = "",
		 .calls = 2,
		 .wall_ns = 6 * MS,
		 .open_wall_ns = 50 * MS},
		{.function = "read",
		 .caller = "",
		 .calls = 2,
		 .wall_ns = UINT64_MAX,
		 .open_wall_ns = 10 * MS},
	};
	struct pic_target target = lanes.targets[0];
	struct sketch sketch = lanes;
	struct top_frame *frame;

	(void)state;
	target.calls = calls;
	target.n_calls = ARRAY_SIZE(calls);
	target.unsafe_calls = NULL;
	target.n_unsafe_calls = 0;
	sketch.targets = &target;
	sketch.n_targets = 1;
	frame = frame_of(&sketch);
	assert_int_equal(frame->processes[0].call_ns, 66 * MS);
	assert_int_equal(frame->processes[0].n_calls, 2);
	assert_int_equal(frame->processes[0].list[0].total_ns, 56 * MS);
	assert_non_null(strstr(line_with(frame, "usleep"), " 3.00 ms "));
	assert_int_equal(frame->processes[0].list[1].total_ns, 10 * MS);
	assert_null(strstr(line_with(frame, "  read"), " ms "));
	free(frame);
}

/* What was not counted, as the probes were off, is not shown as 0 a second. */
static void test_not_counted(void **state)
{
	struct pic_call call = {
		.function = "usleep", .caller = "", .calls = 1, .wall_ns = MS, .observed_share = 0};
	struct pic_target target = lanes.targets[0];
	struct sketch sketch = lanes;
	struct top_frame *frame;

	(void)state;
	target.calls = &call;
	target.n_calls = 1;
	target.unsafe_calls = NULL;
	target.n_unsafe_calls = 0;
	target.gc = (struct pic_gc){.known = true, .inferred = true, .pause_ns = MS};
	target.probes_paused_ns = lanes.session.end_ns - lanes.session.start_ns;
	sketch.targets = &target;
	sketch.n_targets = 1;
	frame = frame_of(&sketch);
	assert_non_null(
		strstr(line_with(frame, "collections: "), ": – a second, paused for at most "));
	assert_non_null(strstr(line_with(frame, "4242 service"), " –     – "));
	assert_non_null(strstr(line_with(frame, "  usleep"), "        – "));
	/* for a part of the time */
	target.probes_paused_ns /= 2;
	call.observed_share = 0.5;
	free(frame);
	frame = frame_of(&sketch);
	assert_non_null(strstr(line_with(frame, "4242 service"), " ≥ "));
	assert_non_null(strstr(line_with(frame, "  usleep"), "≥ "));
	free(frame);
	/* too few samples for a bound */
	target.gc = (struct pic_gc){0};
	target.found_suspend = "none";
	target.probes_paused_ns = 0;
	frame = frame_of(&sketch);
	assert_non_null(strstr(line_with(frame, "collections: "), ": not known"));
	assert_non_null(strstr(line_with(frame, "4242 service"), " –     –       – "));
	free(frame);
	/* there was none so far */
	target.gc.quiet = true;
	frame = frame_of(&sketch);
	assert_non_null(strstr(line_with(frame, "collections: "), ": 0 a second"));
	free(frame);
}

/* What comes through the pipe is a valid frame, or is rejected. */
static void test_check(void **state)
{
	struct top_frame *frame = frame_of(&lanes);

	(void)state;
	frame->magic++;
	assert_false(top_frame__check(frame));
	frame->magic--;
	frame->n_processes = TOP_PROCESSES + 1;
	assert_false(top_frame__check(frame));
	frame->n_processes = 1;
	frame->length_ns = 0;
	assert_false(top_frame__check(frame));
	frame->length_ns = 1;
	frame->processes[0].n_functions = TOP_FUNCTIONS + 1;
	assert_false(top_frame__check(frame));
	frame->processes[0].n_functions = TOP_FUNCTIONS;
	frame->processes[0].n_allocators = TOP_FUNCTIONS + 1;
	assert_false(top_frame__check(frame));
	frame->processes[0].n_allocators = TOP_FUNCTIONS;
	frame->processes[0].n_calls = TOP_CALLS;
	memset(frame->processes[0].allocators, 'x', sizeof(frame->processes[0].allocators));
	memset(frame->processes[0].functions, 'x', sizeof(frame->processes[0].functions));
	memset(frame->processes[0].list, 'x', sizeof(frame->processes[0].list));
	memset(frame->processes[0].comm, 'x', sizeof(frame->processes[0].comm));
	assert_true(top_frame__check(frame));
	assert_int_equal(strlen(frame->processes[0].comm), sizeof(frame->processes[0].comm) - 1);
	free(frame);
}

/* ── drawing ─────────────────────────────────────────────────────────────────────────────── */

/*
 * Only sequences that position, clear and colour; no line beyond the columns, none below the rows.
 */
static void check_screen(const char *s, unsigned columns, unsigned rows)
{
	size_t width = 0;

	while (*s) {
		uint32_t cp;
		size_t len;

		if (*s == '\033') {
			size_t n = strspn(s + 2, "0123456789;");

			assert_int_equal(s[1], '[');
			assert_non_null(strchr("HKJm", s[2 + n]));
			if (s[2 + n] == 'H') {
				assert_in_range(strtoul(s + 2, NULL, 10), 1, rows);
				width = 0;
			}
			s += 3 + n;
			continue;
		}
		len = text__decode(s, strlen(s), &cp);
		assert_true(len > 0 && !text__is_hidden(cp));
		width += text__width_of(cp);
		assert_in_range(width, 0, columns);
		s += len;
	}
}

static struct top_frame *full_frame(void)
{
	struct top_frame *frame = frame_of(&lanes);

	frame->n_processes = frame->n_all = TOP_PROCESSES;
	for (unsigned i = 0; i < TOP_PROCESSES; i++) {
		struct top_process *p = &frame->processes[i];

		p->pid = (int32_t)(100 + i);
		p->cpu_ns = 1000000ULL * (i % 7);
		p->call_ns = 1000000ULL * (i % 11);
		p->gc_ns = 1000000ULL * (i % 13);
		p->alloc_known = i % 5;
		p->alloc_rate = p->alloc_known ? 100000000ULL * (i % 17) : 0;
		p->alloc_bytes = p->live_bytes = p->alloc_rate;
		p->gcs = p->calls = 3;
		snprintf(p->comm, sizeof(p->comm), "%c\033[2J\u202e%u", 'z' - i % 26, i);
		p->n_functions = p->n_allocators = TOP_FUNCTIONS;
		p->n_calls = TOP_CALLS;
		for (unsigned k = 0; k < TOP_FUNCTIONS; k++)
			snprintf(p->functions[k].name, sizeof(p->functions[k].name),
				 "Mod.λ\033]0;title\a\n%u.%u", i, k);
		memcpy(p->allocators, p->functions, sizeof(p->allocators));
		for (unsigned k = 0; k < TOP_CALLS; k++) {
			snprintf(p->list[k].function, sizeof(p->list[k].function), "f\x9b%u", k);
			p->list[k].safe = k % 2;
			p->list[k].n = k;
		}
	}
	assert_true(top_frame__check(frame));
	return frame;
}

static void test_all_sizes(void **state)
{
	struct top_frame *frame = full_frame();
	struct buf out;

	(void)state;
	buf__init(&out, 1 << 22);
	for (unsigned columns = 1; columns <= 220; columns += columns < 100 ? 1 : 17)
		for (unsigned rows = 1; rows <= 70; rows += rows < 30 ? 1 : 9)
			for (unsigned how = 0; how < 8; how++) {
				struct top_view view = {.frame = how == 7 ? NULL : frame,
							.help = how & 1,
							.colour = how & 2,
							.frozen = how & 4,
							.columns = columns,
							.rows = rows,
							.message = " \033[2J"};

				view.selected = 150;
				assert_int_equal(top__draw(&view, &out), 0);
				check_screen(out.data, columns, rows);
			}
	buf__free(&out);
	free(frame);
}

/* A narrow screen has fewer numbers, and each of them is whole and apart from the others. */
static void test_narrow(void **state)
{
	static const char *const wanted[] = {"1234567", "99.9", "12345", "66.6", "1.23", "GB"};
	struct top_frame *frame = frame_of(&lanes);
	struct top_process *p = &frame->processes[0];

	(void)state;
	frame->n_processes = 1;
	frame->length_ns = 1000000000;
	*p = (struct top_process){.pid = 1234567,
				  .comm = "narrow",
				  .cpu_ns = 999000000,
				  .calls = 12345,
				  .gc_known = true,
				  .gc_ns = 666000000,
				  .alloc_known = true,
				  .alloc_rate = 1230000000};
	for (unsigned columns = 9; columns <= 120; columns++) {
		const struct top_view view = {.frame = frame, .columns = columns, .rows = 60};
		char line[512], *rest, *word;

		snprintf(line, sizeof(line), "%s", strchr(line_of(&view, ">"), '>') + 1);
		word = strtok_r(line, " ", &rest);
		for (size_t i = 0; word; word = strtok_r(NULL, " ", &rest)) {
			bool number = word[0] >= '1' && word[0] <= '9';

			if (!number && strcmp(word, "GB") != 0)
				continue;
			while (i < ARRAY_SIZE(wanted) && strcmp(word, wanted[i]) != 0)
				i++;
			if (i == ARRAY_SIZE(wanted))
				fail_msg("%u columns: %s", columns, word);
		}
	}
	free(frame);
}

/* Where allocation is not known, an empty list would look like nothing was allocated. */
static void test_allocation_not_known(void **state)
{
	struct top_frame *frame = frame_of(&lanes);
	const struct top_view view = {
		.frame = frame, .columns = 120, .rows = 60, .sort = TOP_BY_ALLOC};

	(void)state;
	for (uint32_t i = 0; i < frame->n_processes; i++)
		frame->processes[i].alloc_known = false;
	assert_non_null(strstr(line_of(&view, "no two of them were seen"), "not known"));
	free(frame);
}

/* However many processes there are, a small screen has room for all keys and states. */
static void test_help(void **state)
{
	struct top_frame *frame = full_frame();
	const struct top_view view = {.frame = frame, .help = true, .columns = 80, .rows = 24};
	struct buf out;

	(void)state;
	buf__init(&out, 1 << 20);
	assert_int_equal(top__draw(&view, &out), 0);
	assert_int_equal(buf__addc(&out, '\0'), 0);
	for (unsigned i = 0; i < FACES; i++)
		if (!strstr(out.data, face_looks[i].title))
			fail_msg("%s is not on the page", face_looks[i].title);
	buf__free(&out);
	free(frame);
}

static void check_order(struct top_view *view, enum top_sort sort)
{
	const struct top_process *order[TOP_PROCESSES];
	size_t n;

	view->sort = sort;
	n = top__order(view, order);
	assert_int_equal(n, TOP_PROCESSES);
	for (size_t i = 1; i < n; i++) {
		const struct top_process *a = order[i - 1], *b = order[i];

		assert_true(sort == TOP_BY_CPU	   ? a->cpu_ns >= b->cpu_ns
			    : sort == TOP_BY_CALLS ? a->call_ns >= b->call_ns
			    : sort == TOP_BY_GC	   ? a->gc_ns >= b->gc_ns
			    : sort == TOP_BY_ALLOC ? a->alloc_rate >= b->alloc_rate
						   : strcmp(a->comm, b->comm) <= 0);
	}
}

/* The selected process is on the screen, wherever it is in the order. */
static void test_sorts(void **state)
{
	struct top_frame *frame = full_frame();
	struct top_view view = {.frame = frame, .columns = 120, .rows = 30};
	struct buf out;
	char marked[32];

	(void)state;
	buf__init(&out, 1 << 22);
	for (unsigned sort = 0; sort < TOP_SORTS; sort++) {
		check_order(&view, (enum top_sort)sort);
		for (unsigned i = 0; i < TOP_PROCESSES; i++) {
			view.selected = frame->processes[i].pid;
			assert_int_equal(top__draw(&view, &out), 0);
			snprintf(marked, sizeof(marked), ">%7d ", view.selected);
			assert_non_null(strstr(out.data, marked));
			/* and the rows below it are its own */
			snprintf(marked, sizeof(marked), "%d.0", view.selected - 100);
			assert_non_null(strstr(out.data, marked));
		}
	}
	buf__free(&out);
	free(frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame),	    cmocka_unit_test(test_open_calls),
		cmocka_unit_test(test_check),	    cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_narrow),	    cmocka_unit_test(test_allocation_not_known),
		cmocka_unit_test(test_not_counted), cmocka_unit_test(test_help),
		cmocka_unit_test(test_sorts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No format outputs characters that a terminal would obey or that are invisible, wherever in a
 * process's texts they are. The output is read by glibc's decoder, and JSON by an independent
 * parser.
 */
#include "test_export_kit.h"
#include "gunzip.h"

#include <locale.h>
#include <wchar.h>
#include <wctype.h>

#include <cjson/cJSON.h>

/* ESC and CSI in both forms, a title, DEL, a newline; right-to-left, zero-width and line
 * separator characters; invalid UTF-8. */
#define EVIL                                                                                       \
	"x\x1b[2J\x1b]0;t\x07\x7f\n\xc2\x9b"                                                       \
	"31m\x9b"                                                                                  \
	"31m\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8b\xe2\x80\x8d\xef\xbb\xbf\xe2\x80\xa8\xff"

static const uint32_t one[] = {0};
static const struct pic_frame frames[] = {{EVIL, EVIL, EVIL, EVIL, EVIL, TF_HASKELL, false}};
static const struct pic_stack stacks[] = {{0}, {.frames = one, .n = 1}};
static const struct pic_slice slice = {
	.end_ns = 1000000, .stack = 1, .samples = 1, .state = ST_HASKELL, .cap = NO_CAP};
static const struct pic_off_cpu off = {EVIL, 500};
static const struct pic_lane threads[] = {{.tid = 7,
					   .name = EVIL,
					   .end_ns = 1000000,
					   .cpu_ns = 1000000,
					   .states_ns = {[ST_HASKELL] = 1000000},
					   .slices = &slice,
					   .n_slices = 1,
					   .off_cpu = &off,
					   .n_off_cpu = 1}};
static const struct pic_call call = {.function = EVIL,
				     .library = EVIL,
				     .caller = EVIL,
				     .site = EVIL,
				     .calls = 1,
				     .wall_ns = 9,
				     .exact = true};
static const struct pic_unsafe unsafe = {
	.function = EVIL, .library = EVIL, .caller = EVIL, .samples = 1, .cpu_ns = 9};
static const struct pic_function function = {
	.name = EVIL, .module = EVIL, .self_samples = 1, .total_samples = 1};
static const struct pic_mark mark = {.ns = 5, .text = EVIL};
static const struct pic_flow flow = {.start_ns = 1, .end_ns = 2, .back_ns = 3, .function = EVIL};
static const struct pic_point point = {1, 1};
static const struct pic_counter counters[] = {{.name = EVIL,
					       .unit = EVIL,
					       .kind = TC_HEAP,
					       .points = &point,
					       .n_points = 1,
					       .max_value = 1},
					      {.name = EVIL,
					       .unit = EVIL,
					       .kind = TC_TICKY,
					       .points = &point,
					       .n_points = 1,
					       .max_value = 1}};
static const struct pic_window window = {.label = EVIL, .count = 1};
static const struct pic_cost_centre centres[] = {
	{EVIL, EVIL, EVIL, "program", 5, 5, 0, 0, true, false},
	{EVIL, EVIL, EVIL, EVIL, 5, 5, 0, 0, true, false},
};
static const struct pic_cc_node node = {
	.parent = UINT32_MAX, .stack = 1, .ticks = 5, .inherited_ticks = 5};
static const struct pic_finding finding = {
	.id = EVIL, .kind = EVIL, .text = EVIL, .where = EVIL, .ns = 1, .longest = {1, 2, NULL}};
static const char *missing[] = {EVIL};

static struct pic_target two[] = {{
					  .pid = 1,
					  .comm = EVIL,
					  .exe = EVIL,
					  .build_id = EVIL,
					  .ghc_version = EVIL,
					  .way = EVIL,
					  .found_suspend = EVIL,
					  .found_resume = "none",
					  .found_tick = EVIL "2",
					  .found_caps = EVIL "3",
					  .end = EVIL,
					  .lanes[LANE_THREAD] = LANES(threads),
					  .calls = &call,
					  .n_calls = 1,
					  .unsafe_calls = &unsafe,
					  .n_unsafe_calls = 1,
					  .functions = &function,
					  .n_functions = 1,
					  .quality = {.samples = 1},
					  .marks = &mark,
					  .n_marks = 1,
					  .flows = &flow,
					  .n_flows = 1,
					  .counters = counters,
					  .n_counters = ARRAY_SIZE(counters),
					  .windows = &window,
					  .n_windows = 1,
					  .cost_centres = centres,
					  .n_cost_centres = ARRAY_SIZE(centres),
					  .cc_nodes = &node,
					  .n_cc_nodes = 1,
					  .findings = &finding,
					  .n_findings = 1,
					  .eventlog = {.known = true, .path = EVIL, .events = 1},
					  .lost = {{EVIL, 1}},
					  .n_lost = 1,
					  .cost_known = true,
					  .missing = missing,
					  .n_missing = 1,
				  },
				  {0}};

static const struct sketch evil = {
	.session = {.version = EVIL, .mode = EVIL, .end_ns = 1000000},
	.targets = two,
	.n_targets = 1,
	.frames = frames,
	.n_frames = 1,
	.stacks = stacks,
	.n_stacks = 2,
};

/* Rejects control characters, as glibc classifies them, and invisible ones. `formats`: control
 * characters that the format may use for layout. */
static void assert_shown(const char *what, const char *text, size_t len, const char *formats)
{
	mbstate_t state = {0};

	for (size_t at = 0; at < len;) {
		wchar_t c = 0;
		size_t n = mbrtowc(&c, text + at, len - at, &state);
		uint32_t cp = (uint32_t)c;

		if (n == (size_t)-1 || n == (size_t)-2 || n == 0)
			fail_msg("%s: no UTF-8 at %zu", what, at);
		if ((iswcntrl((wint_t)c) && !(cp < 0x80 && strchr(formats, (int)cp))) ||
		    cp == 0x61c || (cp >= 0x200b && cp <= 0x200f) ||
		    (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x2069) ||
		    cp == 0xfeff)
			fail_msg("%s: U+%04X at %zu: …%.40s", what, (unsigned)cp, at,
				 text + (at > 20 ? at - 20 : 0));
		at += n;
	}
}

/* Not inlined: the compiler considers what open_memstream() set uninitialised. */
static char *__attribute__((noinline)) render(const char *format, const struct sketch *sketch,
					      const struct export_opts *opts, size_t *ret_len)
{
	return kit_render(format, sketch, opts, ret_len);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void test_texts(void **state)
{
	static const char *const formats[] = {"text", "folded"};
	struct sketch several = evil;

	(void)state;
	two[1] = two[0];
	several.n_targets = 2;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		for (unsigned width = 0; width < 200; width += 66) {
			const struct export_opts opts = {.verbose = true, .width = width};
			size_t len;
			char *text = render(formats[i], &several, &opts, &len);

			assert_shown(formats[i], text, len, "\n");
			/* everything is there, visibly escaped */
			assert_true(count(text, "\\u{9b}") > 2);
			assert_true(count(text, "\\x9b") > 2);
			assert_true(count(text, "\\u{202e}") > 2);
			free(text);
		}
}

/* Valid JSON, from which a parser restores the same text, and safe to print to a terminal. */
static void test_json(void **state)
{
	static const char *const formats[] = {"json", "speedscope", "chrome"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct export_opts opts = {0};
		size_t len;
		char *text = render(formats[i], &evil, &opts, &len);
		cJSON *root = cJSON_Parse(text);

		assert_shown(formats[i], text, len, "\n\t");
		assert_non_null(root);
		if (i == 0) {
			const cJSON *t = cJSON_GetObjectItem(root, "targets")->child;
			const char *comm = cJSON_GetObjectItem(t, "comm")->valuestring;

			assert_non_null(strstr(comm, "\xe2\x80\xae"));
			assert_non_null(strstr(comm, "\x1b[2J"));
		}
		cJSON_Delete(root);
		free(text);
	}
}

/* The page shows its strings as they are, so they must contain the escapes. */
static void test_page(void **state)
{
	const struct export_opts opts = {0};
	size_t len;
	char *page = render("html", &evil, &opts, &len);
	char *data = strstr(page, "id=\"details\">"), *end;
	const cJSON *frame;
	bool any = false;
	cJSON *root;

	(void)state;
	assert_shown("html", page, len, "\n\t");
	assert_non_null(data);
	data = strchr(data, '>') + 1;
	end = strstr(data, "</script>");
	assert_non_null(end);
	*end = '\0';
	root = cJSON_Parse(data);
	assert_non_null(root);
	cJSON_ArrayForEach (frame, cJSON_GetObjectItem(root, "frames")) {
		const char *name = frame->child->valuestring;

		any = any || (strstr(name, "\\u{202e}") && strstr(name, "\\x9b"));
		assert_shown("a frame of the page", name, strlen(name), "");
	}
	assert_true(any);
	cJSON_Delete(root);
	free(page);
}

/* Readers of pprof print names as they are: all strings of the message are escaped. */
static void test_pprof(void **state)
{
	const struct export_opts opts = {0};
	size_t len;
	char *packed = render("pprof", &evil, &opts, &len);
	static unsigned char message[1 << 20];
	size_t n = gunzip(packed, len, message, sizeof(message) - 1);

	(void)state;
	assert_non_null(memmem(message, n, "\\u{202e}", 8));
	assert_null(memmem(message, n, "\xe2\x80\xae", 3));
	assert_null(memmem(message, n, "\x1b[2J", 4));
	assert_null(memmem(message, n, "\xc2\x9b", 2));
	assert_null(memmem(message, n,
			   "\x9b"
			   "31m",
			   4));
	free(packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_pprof),
	};

	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

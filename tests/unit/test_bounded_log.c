/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Logs crafted to exhaust memory: each has millions of something that GHC writes only a few of. A
 * log that is compressed or read from a FIFO may be arbitrarily long: nothing may grow with it
 * without bound, and what did not fit is counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog_writer.h"
#include "export/export.h"
#include "intake/tap.h"
#include "join/join.h"
#include "logs/logs.h"
#include "picture/picture.h"
#include "test_memory.h"
#include "timeline/timeline.h"

struct hostile {
	const char *what;
	unsigned n;
	void (*write)(struct writer *w, uint64_t at, unsigned i);
	bool fits; /* nothing is left out */
};

static void threads(struct writer *w, uint64_t at, unsigned i)
{
	w_event(w, EL_CREATE_THREAD, at, "w", i + 1);
}

static void labels(struct writer *w, uint64_t at, unsigned i)
{
	static char label[4001];

	memset(label, 'l', 4000);
	w_event(w, EL_THREAD_LABEL, at, "wt", i + 1, label);
}

static void run(struct writer *w, uint64_t at, uint32_t thread, unsigned status)
{
	w_event(w, EL_RUN_THREAD, at, "w", thread);
	w_event(w, EL_STOP_THREAD, at + 2, "whw", thread, status, 0);
}

/* Slices that cannot be merged with their neighbours, in as many lanes as are allowed. */
static void busy_threads(struct writer *w, uint64_t at, unsigned i)
{
	run(w, at, 1 + i / 7 % 300, EL_STOP_MVAR + i % 6);
}

static void markers(struct writer *w, uint64_t at, unsigned i)
{
	char text[32];

	snprintf(text, sizeof(text), "marker %u", i);
	w_event(w, i % 2 ? EL_USER_MARKER : EL_USER_MSG, at, "t", text);
}

static void big_markers(struct writer *w, uint64_t at, unsigned i)
{
	static char text[30001];

	memset(text, 'm', 30000);
	snprintf(text, sizeof(text), "%u", i);
	text[strlen(text)] = ' ';
	w_event(w, EL_USER_MARKER, at, "t", text);
}

static void intervals(struct writer *w, uint64_t at, unsigned i)
{
	char text[4][64];

	snprintf(text[0], sizeof(text[0]), "START l%u", i);
	snprintf(text[1], sizeof(text[1]), "ANN_TH l%u %u", i, i % 5000);
	snprintf(text[2], sizeof(text[2]), "ANN_CCS l%u [\"M%u.f (x)\"]", i, i);
	snprintf(text[3], sizeof(text[3]), "STOP l%u", i);
	for (unsigned k = 0; k < 4; k++)
		w_event(w, EL_USER_MSG, at + k, "t", text[k]);
}

static void open_intervals(struct writer *w, uint64_t at, unsigned i)
{
	char text[64];

	snprintf(text, sizeof(text), "START %u", i);
	w_event(w, EL_USER_MSG, at, "t", text);
	snprintf(text, sizeof(text), "STOP never%u", i);
	w_event(w, EL_USER_MSG, at, "t", text);
	snprintf(text, sizeof(text), "ANN_CALL_TO %x 0 %u", i, i);
	w_event(w, EL_USER_MSG, at, "t", text);
}

static void c_calls(struct writer *w, uint64_t at, unsigned i)
{
	char text[64];

	snprintf(text, sizeof(text), "ANN_CALL_TO %x 0 %u", i, i % 5000);
	w_event(w, EL_USER_MSG, at, "t", text);
	snprintf(text, sizeof(text), "ANN_CALL_RET %x 0 %u", i, i % 5000);
	w_event(w, EL_USER_MSG, at + 2, "t", text);
}

static void centres(struct writer *w, uint64_t at, unsigned i)
{
	char label[32], module[32], src[32];

	snprintf(label, sizeof(label), "l%u", i);
	snprintf(module, sizeof(module), "m%u", i);
	snprintf(src, sizeof(src), "s%u", i);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, at, "wsssb", i, label, module, src, 0);
	w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbw", i % 1000, (uint64_t)i, 1, i);
}

/* Each stack adds two hundred nodes. */
static void deep_stacks(struct writer *w, uint64_t at, unsigned i)
{
	size_t start = w->len;

	w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlb", 0, (uint64_t)i, 200);
	for (unsigned k = 0; k < 200; k++)
		w_32(w, (i * 7919 + k * 31) % 50000);
	w->data[start + 10] = 3; /* its length: 813 bytes */
	w->data[start + 11] = 0x2d;
}

static void bands(struct writer *w, uint64_t at, unsigned i)
{
	char name[64];

	snprintf(name, sizeof(name), "band %u", i);
	w_event(w, EL_HEAP_PROF_SAMPLE_STRING, at, "bls", 0, (uint64_t)i, name);
	snprintf(name, sizeof(name), "band %u", i % 15000);
	w_event(w, EL_HEAP_PROF_SAMPLE_STRING, at, "bls", 0, (uint64_t)i, name);
}

static void ticky(struct writer *w, uint64_t at, unsigned i)
{
	w_event(w, EL_TICKY_COUNTER_SAMPLE, at, "llll", (uint64_t)i % 50000, (uint64_t)i, 1ul, 1ul);
}

static void collections(struct writer *w, uint64_t at, unsigned i)
{
	(void)i;
	w_event(w, EL_GC_START, at, "");
	w_event(w, EL_GC_GLOBAL_SYNC, at + 1, "");
	w_event(w, EL_GC_END, at + 2, "");
}

static const struct hostile kinds[] = {
	{"threads", 2000000, threads, false},
	{"labels", 100000, labels, false},
	{"slices in threads' lanes", 2000000, busy_threads, true},
	{"markers", 1000000, markers, false},
	{"big markers", 10000, big_markers, false},
	{"intervals", 500000, intervals, false},
	{"open intervals", 500000, open_intervals, false},
	{"C calls", 1000000, c_calls, false},
	{"cost centres", 1000000, centres, false},
	{"deep stacks", 20000, deep_stacks, false},
	{"bands of a heap profile", 1000000, bands, false},
	{"ticky counters", 3000000, ticky, false},
	{"collections", 1000000, collections, true},
};

/* For each kind of log: models, picture and report together. */
#define LIMIT_MB 384

static void write_report(const struct log_models *m, const struct eventlog_stats *st)
{
	const struct timeline_opts opts = {.start_unix_ns = 1, .haskell_lanes = true};
	const struct export_opts all = {.verbose = true};
	struct join_log log = {.path = "log"};
	FILE *null = fopen("/dev/null", "w");
	struct timeline *tl;

	assert_non_null(null);
	log_models__fill(m, &log);
	assert_int_equal(timeline__new(&opts, "0", "eventlog", &tl), 0);
	assert_int_equal(timeline__add_log_target(tl, &log), 0);
	assert_int_equal(timeline__finish(tl, 0), 0);
	assert_int_equal(export_json.write(null, timeline__picture(tl), &all), 0);
	assert_true(picture__target(timeline__picture(tl), 0)->eventlog.events == st->events);
	timeline__free(tl);
	fclose(null);
}

static void one(const struct hostile *h)
{
	const struct log_part part = {0};
	const struct eventlog_stats *st;
	size_t before = memory_begin();
	struct log_models *m;
	struct eventlog *log;
	struct writer w = {0};
	uint64_t at = 1000;

	print_message("          %u %s\n", h->n, h->what);
	assert_int_equal(log_models__new(&part, &m), 0);
	log = log_models__reader(m);
	w_header(&w);
	for (unsigned i = 0; i < h->n;) {
		w_block(&w, 0, at);
		for (; w.len < 1000000 && i < h->n; i++, at += 10)
			h->write(&w, at, i);
		w_block_end(&w, at);
		assert_int_equal(eventlog__feed(log, w.data, w.len), 0);
		w.len = 0;
	}
	w_free(&w);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(log_models__finish(m), 0);
	st = eventlog__stats(log);
	assert_int_equal(st->lost_bytes + st->misfits, 0);
	write_report(m, st);
	if (h->fits)
		assert_int_equal(log_models__dropped(m), 0);
	else
		assert_true(log_models__dropped(m) > 0);
	log_models__free(m);
	assert_bounded(before, LIMIT_MB);
}

static void test_logs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		one(&kinds[i]);
}

/* All kinds in one log, with the wall clock that joining requires. */
static int everything(void)
{
	struct writer w = {0};
	uint64_t at = 1000;
	int fd;

	w_header(&w);
	w_block(&w, 0, at);
	w_event(&w, EL_WALL_CLOCK_TIME, at, "wlw", 1, 1700000000ul, 0);
	w_block_end(&w, at);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (unsigned i = 0; i < kinds[k].n / 8;) {
			size_t start = w.len;

			w_block(&w, 0, at);
			for (; w.len < start + 1000000 && i < kinds[k].n / 8; i++, at += 10)
				kinds[k].write(&w, at, i);
			w_block_end(&w, at);
		}
	w_end(&w);
	fd = w_file(w.data, w.len);
	w_free(&w);
	return fd;
}

/* The logs of several processes: the small one is joined, but not all of the others. */
static void test_joined(void **state)
{
	const struct intake_log_join how = {
		.session_ns = 1, .now_ns = 100000000000, .now_wall_ns = 1700000050ul * 1000000000};
	struct logs_held held = {.n_logs = 6};
	struct log_models *m[6] = {NULL};
	size_t before, joined = 0;
	int fd = everything();
	struct writer w = {0};
	uint64_t lost;

	(void)state;
	before = memory_begin();
	for (size_t i = 0; i < ARRAY_SIZE(m); i++) {
		if (i == 5) {
			close(fd);
			w_header(&w);
			w_block(&w, 0, 1);
			w_event(&w, EL_WALL_CLOCK_TIME, 2, "wlw", 1, 1700000000ul, 0);
			w_block_end(&w, 2);
			fd = w_file(w.data, w.len);
			w_free(&w);
		}
		assert_int_equal(log_models__new_joined(&how, &m[i]), 0);
		assert_int_equal(log_models__read(m[i], fd, false, &lost), 0);
		assert_true(log_models__has_clock(m[i]));
		if (log_models__hold(m[i], &held)) {
			joined++;
			assert_true(i == 5 || log_models__dropped(m[i]) > 0);
			continue;
		}
		assert_true(i != 5);
		log_models__free(m[i]);
		m[i] = NULL;
	}
	close(fd);
#ifndef SANITIZED
	assert_true(joined > 1 && joined < 6);
#endif
	print_message("          %zu joined, %zu MB of models\n", joined, held.bytes >> 20);
	assert_bounded(before, 560);
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		log_models__free(m[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_joined),
					   cmocka_unit_test(test_logs)};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

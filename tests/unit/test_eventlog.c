/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_eventlog: the reader, on generated logs: order, headers, damage. */
#include "eventlog_reading.h"

static void t_plain(void **state)
{
	struct seen a, b;
	struct writer w = {0};
	struct eventlog_stats st;

	(void)state;
	sample_log(&w, 5, 20);
	st = read_file(w.data, w.len, &a);
	assert_true(st.header);
	assert_true(st.ended);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(st.damages, 0);
	assert_int_equal(st.blocks, 15);
	assert_int_equal(st.events, 15 * 21);
	assert_int_equal(a.n, 15 * 21);
	assert_int_equal(st.by_id[EL_BLOCK_MARKER], 15);
	assert_int_equal(st.buffers, 3);
	assert_int_equal(st.late, 0);
	for (size_t i = 1; i < a.n; i++)
		assert_true(a.times[i] >= a.times[i - 1]);
	/* A stream of the same bytes gives the same events, however it is split. */
	for (size_t piece = 1; piece < 4000; piece = piece * 3 + 1) {
		st = read_stream(w.data, w.len, piece, NULL, &b);
		assert_int_equal(st.lost_bytes, 0);
		assert_int_equal(b.n, a.n);
		assert_int_equal(b.sum, a.sum);
	}
	w_free(&w);
}

/* A buffer that is last in the log but has the oldest events. */
static void t_order(void **state)
{
	const struct eventlog_opts prompt = {.prompt = true}, tight = {.hold_max = 1};
	struct writer w = {0};
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	w_header(&w);
	for (unsigned b = 0; b < 10; b++) {
		w_block(&w, 1, 1000 + b * 100);
		for (unsigned i = 0; i < 9; i++)
			w_event(&w, EL_RUN_THREAD, 1000 + b * 100 + i * 10 + 5, "w", 1);
		w_block_end(&w, 1000 + b * 100 + 99);
	}
	w_block(&w, 0, 900);
	for (unsigned i = 0; i < 100; i++)
		w_event(&w, EL_RUN_THREAD, 950 + i * 10, "w", 2);
	w_block_end(&w, 2000);
	w_end(&w);

	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.late, 0);
	assert_int_equal(a.n, 10 * 10 + 101);
	for (size_t i = 1; i < a.n; i++)
		assert_true(a.times[i] >= a.times[i - 1]);
	/* A stream that is held back is in order too; with little or no holding back, late
	 * events are counted. */
	st = read_stream(w.data, w.len, 100, NULL, &a);
	assert_int_equal(st.late, 0);
	st = read_stream(w.data, w.len, 100, &tight, &a);
	assert_true(st.late > 50);
	assert_int_equal(a.n, 201);
	st = read_stream(w.data, w.len, 100, &prompt, &a);
	assert_true(st.late > 50);
	assert_int_equal(a.n, 201);
	w_free(&w);
}

/* Sizes are taken from the header; unknown types are skipped. */
static void t_header_rules(void **state)
{
	struct writer w = {0};
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	w_header_begin(&w);
	w_type(&w, EL_BLOCK_MARKER, 14);
	w_type(&w, EL_RUN_THREAD, 7);  /* three bytes longer than in GHC 9.10 */
	w_type(&w, EL_STOP_THREAD, 3); /* too short to be valid */
	w_type(&w, 250, 5);
	w_type(&w, 251, 0xffff);
	w_type(&w, 4000, 0xffff);
	w_header_end(&w);
	w_block(&w, 0, 100);
	w_event(&w, 250, 101, "bbbbb", 1, 2, 3, 4, 5);
	w_16(&w, EL_RUN_THREAD), w_64(&w, 102), w_32(&w, 77), w_bytes(&w, "xyz", 3);
	w_16(&w, 251), w_64(&w, 103), w_16(&w, 6), w_bytes(&w, "abcdef", 6);
	w_16(&w, EL_STOP_THREAD), w_64(&w, 104), w_bytes(&w, "xyz", 3);
	w_16(&w, 4000), w_64(&w, 105), w_16(&w, 0);
	w_16(&w, EL_RUN_THREAD), w_64(&w, 106), w_32(&w, 78), w_bytes(&w, "xyz", 3);
	w_block_end(&w, 200);
	w_end(&w);
	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(st.events, 7);
	assert_int_equal(st.types, 6);
	assert_int_equal(st.unknown, 1);
	assert_int_equal(st.by_id[250], 1);
	assert_int_equal(st.misfits, 1);
	/* all but the one that is too short and the one with an id out of range */
	assert_int_equal(a.n, 5);
	assert_int_equal(a.tids[2], 77);
	assert_int_equal(a.tids[4], 78);
	w_free(&w);
}

static void t_not_a_log(void **state)
{
	static const char *const bad[] = {"hello, world, this is no eventlog", "hdrbhetbetb\0",
					  "hdrbxxxxxxxxxxxxxxxx"};
	struct eventlog *log;
	struct writer w = {0};
	struct seen a;

	(void)state;
	for (size_t i = 0; i < 3; i += 2) {
		assert_int_equal(eventlog__new(NULL, &log), 0);
		assert_int_equal(eventlog__feed(log, bad[i], strlen(bad[i])), -EBADMSG);
		eventlog__free(log);
	}
	/* Without block markers, or with markers of another size, nothing can be found. */
	w_header_begin(&w);
	w_type(&w, EL_RUN_THREAD, 4);
	w_header_end(&w);
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(eventlog__feed(log, w.data, w.len), -EBADMSG);
	eventlog__free(log);
	w_free(&w);
	/* An empty file, and only the header, as a killed program leaves it. */
	assert_false(read_file("", 0, &a).header);
	w_header(&w);
	assert_true(read_file(w.data, w.len, &a).header);
	assert_int_equal(a.n, 0);
	w_free(&w);
}

static void t_truncated_everywhere(void **state)
{
	struct writer w = {0};
	static struct seen full, a, b;

	(void)state;
	sample_log(&w, 2, 9);
	read_file(w.data, w.len, &full);
	for (size_t len = 0; len <= w.len; len++) {
		struct eventlog_stats f = read_file(w.data, len, &a);
		struct eventlog_stats s = read_stream(w.data, len, 97, NULL, &b);

		assert_int_equal(a.n, b.n);
		assert_int_equal(a.sum, b.sum);
		assert_int_equal(f.lost_bytes, s.lost_bytes);
		assert_true(a.n <= full.n);
		assert_true(f.damages <= 1);
		/* At most one event, one marker or the header is lost. */
		assert_true(f.lost_bytes <= (f.header ? 40 : len));
		if (len < w.len)
			assert_false(f.ended);
	}
	w_free(&w);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void t_damaged_at_random(void **state)
{
	struct writer w = {0};
	uint8_t *copy;
	uint32_t seed = 20240607;
	static struct seen a, b;
	uint64_t given = 0, lost = 0;

	(void)state;
	sample_log(&w, 4, 30);
	copy = malloc(2 * w.len);
	for (unsigned round = 0; round < 1500; round++) {
		size_t len = w.len, n = 1 + next_random(&seed) % 6;

		memcpy(copy, w.data, len);
		for (size_t i = 0; i < n; i++) {
			size_t at = next_random(&seed) % len;
			/* Mostly in the events, sometimes in the header. */
			size_t from = round % 8 && len > 3000 ? 1600 + at % (len - 1700) : at;
			size_t some = next_random(&seed) % 200;

			if (from + some > len)
				some = len - from;
			switch (next_random(&seed) % 4) {
			case 0:
				copy[from] = (uint8_t)next_random(&seed);
				break;
			case 1: /* bytes lost */
				memmove(copy + from, copy + from + some, len - from - some);
				len -= some;
				break;
			case 2: /* bytes written twice */
				if (len + some < 2 * w.len) {
					memmove(copy + from + some, copy + from, len - from);
					len += some;
				}
				break;
			default:
				for (size_t k = 0; k < some; k++)
					copy[from + k] = (uint8_t)next_random(&seed);
				break;
			}
		}
		lost += read_file(copy, len, &a).lost_bytes;
		read_stream(copy, len, 1 + next_random(&seed) % 5000, NULL, &b);
		given += a.n;
	}
	/* Resynchronising recovers most of the events. */
	assert_true(given > 1500ull * 300 / 2);
	assert_true(lost > 0);
	free(copy);
	w_free(&w);
}

/* A sparse file may have any size: what follows a hole is counted as lost without being read. */
static void t_hole(void **state)
{
	const uint64_t hole = 1ULL << 42;
	struct eventlog_stats whole;
	struct writer w = {0};
	struct eventlog *log;
	static struct seen a;
	int fd;

	(void)state;
	sample_log(&w, 4, 30);
	whole = read_file(w.data, w.len, &a);
	fd = w_file(w.data, w.len);
	assert_int_equal(ftruncate(fd, (off_t)(w.len + hole)), 0);
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(eventlog__open_fd(log, fd), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->bytes_in, w.len + hole);
	assert_int_equal(eventlog__stats(log)->blocks, whole.blocks);
	assert_int_equal(eventlog__stats(log)->event_bytes, whole.event_bytes);
	assert_int_equal(eventlog__stats(log)->lost_bytes, whole.lost_bytes + hole);
	eventlog__free(log);
	close(fd);
	w_free(&w);
}

/* Bytes missing in the middle of one block: the other blocks are complete, and most of that one
 * is recovered. */
static void t_lost_bytes(void **state)
{
	struct writer w = {0};
	size_t second = 0;
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	w_header(&w);
	for (unsigned b = 0; b < 3; b++) {
		if (b == 1)
			second = w.len;
		w_block(&w, 0, 1000 + b * 1000);
		for (unsigned i = 0; i < 50; i++)
			w_event(&w, EL_RUN_THREAD, 1001 + b * 1000 + i, "w", i);
		w_block_end(&w, 1999 + b * 1000);
	}
	w_end(&w);
	/* Remove 35 bytes, starting in the middle of an event. */
	memmove(w.data + second + 24 + 10 * 14 + 5, w.data + second + 24 + 10 * 14 + 40,
		w.len - second - 24 - 10 * 14 - 40);
	w.len -= 35;
	st = read_file(w.data, w.len, &a);
	assert_true(st.ended);
	assert_int_equal(st.blocks, 3);
	assert_true(st.damages >= 1);
	assert_true(st.lost_bytes < 40);
	assert_true(a.n >= 3 + 150 - 5);
	read_stream(w.data, w.len, 33, NULL, &a);
	assert_true(a.n >= 3 + 150 - 5);
	w_free(&w);
}

/* A length field that exceeds what is there, in a marker and in an event. */
static void t_lengths_not_trusted(void **state)
{
	struct writer w = {0};
	size_t at;
	uint32_t huge = 0xffffffff;
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	sample_log(&w, 3, 20);
	/* The first marker follows the header. */
	at = w.len;
	for (size_t i = 0; i + 24 < w.len; i++)
		if (!memcmp(w.data + i, "datb", 4)) {
			at = i + 4;
			break;
		}
	memcpy(w.data + at + 10, &huge, 4);
	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.blocks, 8);
	assert_true(st.ended);
	assert_int_equal(st.damages, 1);
	/* A plausible but wrong block size. */
	huge = htobe32(100000);
	memcpy(w.data + at + 10, &huge, 4);
	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.blocks, 9);
	assert_int_equal(st.lost_bytes, 0);
	huge = htobe32(60);
	memcpy(w.data + at + 10, &huge, 4);
	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.blocks, 9);
	assert_true(st.lost_bytes > 0);
	w_free(&w);
	/* A message that claims to be longer than its block. */
	w_header(&w);
	w_block(&w, 0, 100);
	w_event(&w, EL_USER_MSG, 101, "t", "short");
	w.data[w.len - 6] = 0xff; /* length 0xff05 */
	w.data[w.len - 7] = 0xff;
	for (unsigned i = 0; i < 10; i++)
		w_event(&w, EL_RUN_THREAD, 102 + i, "w", i);
	w_block_end(&w, 200);
	w_end(&w);
	st = read_file(w.data, w.len, &a);
	assert_int_equal(st.by_id[EL_RUN_THREAD], 10);
	assert_int_equal(st.by_id[EL_USER_MSG], 0);
	assert_int_equal(st.damages, 1);
	w_free(&w);
}

/* Two writers in one buffer: an event's bytes end up in the middle of another. */
static void t_two_writers(void **state)
{
	struct writer w = {0};
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	w_header(&w);
	w_block(&w, 0, 100);
	for (unsigned i = 0; i < 60; i++) {
		w_event(&w, EL_RUN_THREAD, 101 + i, "w", i);
		if (i % 20 == 10) {
			w.len -= 6; /* the next one overwrites its end */
			w_event(&w, EL_USER_MSG, 101 + i, "t", "ANN_TH 0 bar 12345");
		}
	}
	w_block_end(&w, 200);
	w_end(&w);
	st = read_file(w.data, w.len, &a);
	assert_true(st.ended);
	assert_true(st.damages >= 1 && st.damages <= 6);
	assert_true(st.by_id[EL_RUN_THREAD] >= 50);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_plain),
		cmocka_unit_test(t_order),
		cmocka_unit_test(t_header_rules),
		cmocka_unit_test(t_not_a_log),
		cmocka_unit_test(t_truncated_everywhere),
		cmocka_unit_test(t_hole),
		cmocka_unit_test(t_damaged_at_random),
		cmocka_unit_test(t_lost_bytes),
		cmocka_unit_test(t_lengths_not_trusted),
		cmocka_unit_test(t_two_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_eventlog: the reader, over logs made here: every type, order, damage, ways in. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <cmocka.h>
#include <zlib.h>

#include "eventlog_writer.h"

/* ── what comes out ──────────────────────────────────────────────────────────────────────── */

struct seen {
	size_t n;
	uint64_t times[4096];
	uint16_t ids[4096], caps[4096];
	uint32_t tids[4096];
	uint64_t sum; /* of everything, to compare runs */
};

static int on_any(void *ctx, const struct el_event *ev)
{
	struct seen *s = ctx;

	s->sum = s->sum * 1000003 + ev->time * 31 + ev->id * 7 + ev->cap;
	for (uint32_t i = 0; i < ev->len; i++)
		s->sum = s->sum * 33 + ev->payload[i];
	if (s->n < 4096) {
		s->times[s->n] = ev->time;
		s->ids[s->n] = ev->id;
		s->caps[s->n] = ev->cap;
		s->tids[s->n] = ev->id == EL_RUN_THREAD ? ev->thread.tid : 0;
	}
	s->n++;
	return 0;
}

static void settled(const struct eventlog_stats *st, size_t size)
{
	assert_int_equal(st->bytes_in, size);
	assert_int_equal(st->header_bytes + st->event_bytes + st->lost_bytes, st->bytes_in);
}

static struct eventlog_stats read_file(const void *data, size_t len, struct seen *seen)
{
	struct eventlog_stats st;
	struct eventlog *log;
	int fd = w_file(data, len), err;

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, seen), 0);
	assert_int_equal(eventlog__open_fd(log, fd), 0);
	err = eventlog__finish(log);
	st = *eventlog__stats(log);
	if (!err)
		settled(&st, len);
	else
		assert_int_equal(err, -EBADMSG);
	eventlog__free(log);
	close(fd);
	return st;
}

static struct eventlog_stats read_stream(const void *data, size_t len, size_t piece,
					 const struct eventlog_opts *opts, struct seen *seen)
{
	struct eventlog_stats st;
	struct eventlog *log;
	int err = 0;

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(eventlog__new(opts, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, seen), 0);
	for (size_t at = 0; at < len && !err; at += piece)
		err = eventlog__feed(log, (const char *)data + at,
				     len - at < piece ? len - at : piece);
	if (!err)
		err = eventlog__finish(log);
	st = *eventlog__stats(log);
	if (!err)
		settled(&st, len);
	else
		assert_int_equal(err, -EBADMSG);
	eventlog__free(log);
	return st;
}

/* Two capabilities and the global buffer, `blocks` blocks each, with `per` runs a block. */
static void sample_log(struct writer *w, unsigned blocks, unsigned per)
{
	w_header(w);
	for (unsigned b = 0; b < blocks; b++) {
		for (uint16_t cap = 0; cap < 3; cap++) {
			uint64_t t = 1000 + b * 100000ull + cap;

			w_block(w, cap == 2 ? EL_CAP_GLOBAL : cap, t);
			for (unsigned i = 0; i < per; i++) {
				t += 10;
				if (cap == 2)
					w_event(w, EL_PROF_SAMPLE_COST_CENTRE, t, "wlbww", i & 1,
						(uint64_t)i, 2, 7, 9);
				else if (i % 4 == 3)
					w_event(w, EL_USER_MSG, t, "t", "a message of some length");
				else if (i % 2)
					w_event(w, EL_STOP_THREAD, t, "whw", 3 + cap, 6, 0);
				else
					w_event(w, EL_RUN_THREAD, t, "w", 3 + cap);
			}
			w_block_end(w, t + 1);
		}
	}
	w_end(w);
}

/* ── tests ───────────────────────────────────────────────────────────────────────────────── */

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
	/* A stream of the same bytes, whatever the pieces, gives the same. */
	for (size_t piece = 1; piece < 4000; piece = piece * 3 + 1) {
		st = read_stream(w.data, w.len, piece, NULL, &b);
		assert_int_equal(st.lost_bytes, 0);
		assert_int_equal(b.n, a.n);
		assert_int_equal(b.sum, a.sum);
	}
	w_free(&w);
}

/* A buffer that comes last in the log and is oldest in time. */
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
	/* Held back, a stream is in order too; hurried, it says what came late. */
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

/* Sizes come from the header; types that nobody knows are skipped. */
static void t_header_rules(void **state)
{
	struct writer w = {0};
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	w_header_begin(&w);
	w_type(&w, EL_BLOCK_MARKER, 14);
	w_type(&w, EL_RUN_THREAD, 7);  /* three bytes more than today */
	w_type(&w, EL_STOP_THREAD, 3); /* too short to be one */
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
	/* all but the short one and the one of an id beyond */
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
	/* No block markers, or of another size: nothing could be found in it. */
	w_header_begin(&w);
	w_type(&w, EL_RUN_THREAD, 4);
	w_header_end(&w);
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(eventlog__feed(log, w.data, w.len), -EBADMSG);
	eventlog__free(log);
	w_free(&w);
	/* Empty, and the header alone as a killed program leaves it. */
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
		/* At most one event is cut, or one marker, or the header. */
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
			/* Mostly the events; sometimes the header. */
			size_t from = round % 8 && len > 3000 ? 1600 + at % (len - 1700) : at;
			size_t some = next_random(&seed) % 200;

			if (from + some > len)
				some = len - from;
			switch (next_random(&seed) % 4) {
			case 0:
				copy[from] = (uint8_t)next_random(&seed);
				break;
			case 1: /* lost */
				memmove(copy + from, copy + from + some, len - from - some);
				len -= some;
				break;
			case 2: /* written twice */
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
	/* Resynchronising keeps most of what is there. */
	assert_true(given > 1500ull * 300 / 2);
	assert_true(lost > 0);
	free(copy);
	w_free(&w);
}

/* Bytes missing in the middle of one block: the others are whole, most of that one too. */
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
	/* 35 bytes from the middle of an event on. */
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

/* A length field that claims what is not there, in the marker and in an event. */
static void t_lengths_not_trusted(void **state)
{
	struct writer w = {0};
	size_t at;
	uint32_t huge = 0xffffffff;
	struct seen a;
	struct eventlog_stats st;

	(void)state;
	sample_log(&w, 3, 20);
	/* The header is in front of the first marker. */
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
	/* A block of a plausible but wrong size. */
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

/* Two writers in one buffer: bytes of another event in the middle of one. */
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
			w.len -= 6; /* the next writes over its end */
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

/* ── every type ──────────────────────────────────────────────────────────────────────────── */

struct every {
	unsigned seen[EL_IDS];
};

#define STR_IS(str, text)                                                                          \
	(assert_int_equal((str).len, strlen(text)),                                                \
	 assert_memory_equal((str).s, text, strlen(text)))

static void check_scheduler(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_CREATE_THREAD:
	case EL_RUN_THREAD:
	case EL_THREAD_RUNNABLE:
		assert_int_equal(ev->thread.tid, 0x01020304);
		break;
	case EL_STOP_THREAD:
		assert_int_equal(ev->stop.tid, 5);
		assert_int_equal(ev->stop.status, EL_STOP_BLACKHOLE);
		assert_int_equal(ev->stop.info, 9);
		break;
	case EL_MIGRATE_THREAD:
	case EL_THREAD_WAKEUP:
		assert_int_equal(ev->thread.tid, 6);
		assert_int_equal(ev->thread.cap, 3);
		break;
	case EL_THREAD_LABEL:
		assert_int_equal(ev->label.tid, 8);
		STR_IS(ev->label.label, "worker");
		break;
	case EL_CAP_CREATE:
	case EL_CAP_DELETE:
	case EL_CAP_DISABLE:
	case EL_CAP_ENABLE:
		assert_int_equal(ev->cap_no, 11);
		break;
	default:
		break;
	}
}

static void check_process(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_USER_MSG:
	case EL_USER_MARKER:
		STR_IS(ev->text, "text");
		break;
	case EL_RTS_IDENTIFIER:
		STR_IS(ev->text, "GHC-9.0.2 rts_thr_p");
		break;
	case EL_PROGRAM_ARGS:
		assert_int_equal(ev->text.len, 6);
		break;
	case EL_OSPROCESS_PID:
		assert_int_equal(ev->pid, 4242);
		break;
	case EL_WALL_CLOCK_TIME:
		assert_int_equal(ev->wall.sec, 1700000000);
		assert_int_equal(ev->wall.ns, 5);
		break;
	default:
		break;
	}
}

static void check_heap(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_HEAP_ALLOCATED:
	case EL_HEAP_SIZE:
	case EL_HEAP_LIVE:
	case EL_BLOCKS_SIZE:
		assert_int_equal(ev->bytes, 1ull << 33);
		break;
	case EL_GC_STATS_GHC:
		assert_int_equal(ev->gen, 1);
		break;
	case EL_HEAP_PROF_SAMPLE_COST_CENTRE:
		assert_int_equal(ev->band.bytes, 99);
		assert_int_equal(ev->band.ccs.n, 2);
		assert_int_equal(el_u32s__get(ev->band.ccs, 1), 300);
		break;
	case EL_HEAP_PROF_SAMPLE_STRING:
		STR_IS(ev->band.name, "ARR_WORDS");
		break;
	case EL_HEAP_BIO_PROF_SAMPLE_BEGIN:
		assert_int_equal(ev->sample_time, 6);
		break;
	default:
		break;
	}
}

static int check_one(void *ctx, const struct el_event *ev)
{
	struct every *e = ctx;

	e->seen[ev->id]++;
	check_scheduler(ev);
	check_process(ev);
	check_heap(ev);
	switch (ev->id) {
	case EL_HEAP_PROF_COST_CENTRE:
		assert_int_equal(ev->cc.id, 200);
		STR_IS(ev->cc.label, "fib");
		STR_IS(ev->cc.module, "Main");
		STR_IS(ev->cc.srcloc, "Main.hs:1:1-9");
		assert_true(ev->cc.is_caf);
		break;
	case EL_PROF_SAMPLE_COST_CENTRE:
		assert_int_equal(ev->prof_sample.cap, 1);
		assert_int_equal(ev->prof_sample.ccs.n, 3);
		assert_int_equal(el_u32s__get(ev->prof_sample.ccs, 2), 202);
		break;
	case EL_PROF_BEGIN:
		assert_int_equal(ev->prof_interval, 1000000);
		break;
	case EL_TICKY_COUNTER_DEF:
		STR_IS(ev->ticky.name, "f{v r1}");
		assert_int_equal(ev->ticky.id, 9);
		break;
	case EL_TICKY_COUNTER_SAMPLE:
		assert_int_equal(ev->ticky.entries, 2);
		assert_int_equal(ev->ticky.allocs, 3);
		break;
	default:
		break;
	}
	return 0;
}

static void write_fixed(struct writer *w, uint64_t t)
{
	static const uint16_t empty[] = {9,  10, 11, 12, 20,  21,  22,	35,  36,  37, 38,
					 40, 41, 54, 59, 200, 202, 203, 204, 205, 212};
	static const uint16_t threads[] = {0, 1, 3, 15}, caps[] = {39, 45, 46, 47, 48, 206};
	static const uint16_t bytes[] = {49, 50, 51, 91};

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		w_event(w, empty[i], t, "");
	for (size_t i = 0; i < 4; i++)
		w_event(w, threads[i], t, "w", 0x01020304);
	for (size_t i = 0; i < 6; i++)
		w_event(w, caps[i], t, "h", 11);
	for (size_t i = 0; i < 4; i++)
		w_event(w, bytes[i], t, "wl", 1, 1ull << 33);
	w_event(w, 2, t, "whw", 5, 8, 9);
	w_event(w, 4, t, "wh", 6, 3);
	w_event(w, 8, t, "wh", 6, 3);
	w_event(w, 25, t, "wh", 1, 2);
	w_event(w, 26, t, "w", 1);
	w_event(w, 27, t, "wh", 1, 4);
	w_event(w, 28, t, "wh", 1, 4);
	w_event(w, 32, t, "ww", 1, 4242);
	w_event(w, 33, t, "ww", 1, 4242);
	w_event(w, 34, t, "lllllll", 1ul, 2ul, 3ul, 4ul, 5ul, 6ul, 7ul);
	w_event(w, 43, t, "wlw", 1, 1700000000ul, 5);
	w_event(w, 52, t, "whllll", 1, 2, 1ul, 2ul, 3ul, 4096ul);
	w_event(w, 53, t, "whlllwlll", 1, 1, 10ul, 11ul, 12ul, 2, 13ul, 14ul, 15ul);
	w_event(w, 55, t, "lhl", 0x7fff00001111ul, 2, 4321ul);
	w_event(w, 56, t, "lhh", 77ul, 1, 2);
	w_event(w, 57, t, "l", 78ul);
	w_event(w, 90, t, "wwww", 1, 1, 2, 3);
}

static void write_profile(struct writer *w, uint64_t t)
{
	w_event(w, 16, t, "t", "text");
	w_event(w, 19, t, "t", "text");
	w_event(w, 58, t, "t", "text");
	w_event(w, 29, t, "wt", 1, "GHC-9.0.2 rts_thr_p");
	w_event(w, 30, t, "wss", 1, "ab", "cd");
	w_event(w, 31, t, "ws", 1, "A=1");
	w_event(w, 42, t, "sw", "abc", 3);
	w_event(w, 44, t, "wt", 8, "worker");
	w_event(w, 160, t, "blwsssssss", 0, 100ul, 5, "a", "b", "c", "d", "e", "f", "g");
	w_event(w, 161, t, "wsssb", 200, "fib", "Main", "Main.hs:1:1-9", 1);
	w_event(w, 162, t, "l", 5ul);
	w_event(w, 163, t, "blbww", 0, 99ul, 2, 200, 300);
	w_event(w, 164, t, "bls", 0, 99ul, "ARR_WORDS");
	w_event(w, 165, t, "l", 5ul);
	w_event(w, 166, t, "ll", 5ul, 6ul);
	w_event(w, 167, t, "wlbwww", 1, 17ul, 3, 200, 201, 202);
	w_event(w, 168, t, "l", 1000000ul);
	w_event(w, 169, t, "lssssss", 0x400100ul, "x_info", "1", "t", "main.go", "Main",
		"Main.hs:3:4-5");
	w_event(w, 181, t, "bbb", 1, 0, 2);
	w_event(w, 201, t, "w", 12);
	w_event(w, 207, t, "hwww", 16, 1, 2, 3);
	w_event(w, 208, t, "ww", 1, 2);
	w_event(w, 210, t, "lhssls", 9ul, 2, "pp", "f{v r1}", 0x400200ul, "{}");
	w_event(w, 211, t, "llll", 9ul, 2ul, 3ul, 4ul);
}

static void t_every_type(void **state)
{
	struct writer w = {0};
	struct every e = {0};
	struct eventlog *log;

	(void)state;
	w_header(&w);
	w_block(&w, 5, 100);
	write_fixed(&w, 110);
	write_profile(&w, 120);
	w_block_end(&w, 200);
	w_end(&w);
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(w_subscribe_all(log, check_one, &e), 0);
	assert_int_equal(eventlog__feed(log, w.data, w.len), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->misfits, 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	for (unsigned id = 0; id < EL_IDS; id++)
		assert_int_equal(e.seen[id], w_size((uint16_t)id) < 0 ? 0 : 1);
	eventlog__free(log);
	w_free(&w);
}

/* ── ways in ─────────────────────────────────────────────────────────────────────────────── */

struct feeder {
	int fd;
	const uint8_t *data;
	size_t len;
};

static void *feed_fd(void *arg)
{
	struct feeder *f = arg;
	size_t at = 0;

	while (at < f->len) {
		size_t n = f->len - at < 777 ? f->len - at : 777;
		ssize_t got = write(f->fd, f->data + at, n);

		if (got <= 0)
			break;
		at += (size_t)got;
	}
	close(f->fd);
	return NULL;
}

static uint64_t sum_of_path(const char *path)
{
	struct seen a;
	struct eventlog *log;

	memset(&a, 0, sizeof(a));
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, &a), 0);
	assert_int_equal(w_read_path(log, path), 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	eventlog__free(log);
	return a.sum;
}

static void *serve(void *arg)
{
	struct feeder *f = arg;
	int conn = accept(f->fd, NULL, NULL);

	close(f->fd);
	f->fd = conn;
	return conn < 0 ? NULL : feed_fd(f);
}

static void t_ways_in(void **state)
{
	char dir[] = "/tmp/safescoped-test-XXXXXX", path[128];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct writer w = {0};
	struct feeder f;
	pthread_t thread;
	struct seen a;
	gzFile gz;
	FILE *out;

	(void)state;
	sample_log(&w, 30, 60);
	read_file(w.data, w.len, &a);
	assert_non_null(mkdtemp(dir));

	snprintf(path, sizeof(path), "%s/plain", dir);
	out = fopen(path, "w");
	assert_int_equal(fwrite(w.data, 1, w.len, out), w.len);
	fclose(out);
	assert_int_equal(sum_of_path(path), a.sum);
	unlink(path);

	/* Two members, as appended files have. */
	snprintf(path, sizeof(path), "%s/gz", dir);
	gz = gzopen(path, "wb");
	gzwrite(gz, w.data, 5000);
	gzclose(gz);
	gz = gzopen(path, "ab");
	gzwrite(gz, w.data + 5000, (unsigned)(w.len - 5000));
	gzclose(gz);
	assert_int_equal(sum_of_path(path), a.sum);
	unlink(path);

	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	f = (struct feeder){open(path, O_RDWR), w.data, w.len};
	assert_int_equal(pthread_create(&thread, NULL, feed_fd, &f), 0);
	assert_int_equal(sum_of_path(path), a.sum);
	pthread_join(thread, NULL);
	unlink(path);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	f = (struct feeder){socket(AF_UNIX, SOCK_STREAM, 0), w.data, w.len};
	assert_int_equal(bind(f.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f.fd, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &f), 0);
	assert_int_equal(sum_of_path(addr.sun_path), a.sum);
	pthread_join(thread, NULL);
	unlink(addr.sun_path);
	rmdir(dir);
	w_free(&w);
}

static void t_growing_file(void **state)
{
	const struct eventlog_opts opts = {.prompt = true};
	struct writer w = {0};
	static struct seen a, b;
	struct eventlog *log;
	int fd = w_file("", 0);
	size_t at = 0, early = 0;

	(void)state;
	sample_log(&w, 20, 30);
	read_file(w.data, w.len, &a);
	memset(&b, 0, sizeof(b));
	assert_int_equal(eventlog__new(&opts, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, &b), 0);
	assert_int_equal(eventlog__open_fd(log, fd), 0);
	while (at < w.len) {
		/* The first piece shows all buffers: one that is not known is not waited for. */
		size_t some = at ? 1234 : 8000, n = w.len - at < some ? w.len - at : some;

		assert_int_equal(write(fd, w.data + at, n), (ssize_t)n);
		at += n;
		assert_int_equal(eventlog__poll(log), 0);
		if (at < w.len * 3 / 4)
			early = b.n;
	}
	/* It comes out as it grows, in order, and the end brings the rest. */
	assert_true(early > a.n / 2);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(b.n, a.n);
	assert_int_equal(b.sum, a.sum);
	assert_int_equal(eventlog__stats(log)->late, 0);
	settled(eventlog__stats(log), w.len);
	eventlog__free(log);
	close(fd);
	w_free(&w);
}

/* A log much larger than what may be held back. */
static void t_bounded_stream(void **state)
{
	const struct eventlog_opts opts = {.hold_max = 20000};
	struct writer w = {0};
	static struct seen a, b;
	struct eventlog_stats st;

	(void)state;
	sample_log(&w, 200, 100);
	read_file(w.data, w.len, &a);
	st = read_stream(w.data, w.len, 4096, &opts, &b);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(b.n, a.n);
	/* The buffers of this log are never more than a block apart. */
	assert_int_equal(st.late, 0);
	assert_int_equal(b.sum, a.sum);
	w_free(&w);
}

/* More blocks than are indexed at once: window by window, nothing lost. */
static void t_many_blocks(void **state)
{
	const unsigned n = EVENTLOG_WINDOW_BLOCKS * 5 / 4;
	struct writer w = {0};
	struct eventlog_stats st;
	static struct seen a;

	(void)state;
	w_header(&w);
	for (unsigned i = 0; i < n; i++) {
		w_block(&w, i % 2, i * 10);
		w_event(&w, EL_GC_START, i * 10 + 1, "");
		w_block_end(&w, i * 10 + 2);
	}
	w_end(&w);
	st = read_file(w.data, w.len, &a);
	assert_true(st.ended);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(st.blocks, n);
	assert_int_equal(a.n, 2 * n);
	assert_int_equal(st.late, 0);
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
		cmocka_unit_test(t_damaged_at_random),
		cmocka_unit_test(t_lost_bytes),
		cmocka_unit_test(t_lengths_not_trusted),
		cmocka_unit_test(t_two_writers),
		cmocka_unit_test(t_every_type),
		cmocka_unit_test(t_ways_in),
		cmocka_unit_test(t_growing_file),
		cmocka_unit_test(t_bounded_stream),
		cmocka_unit_test(t_many_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

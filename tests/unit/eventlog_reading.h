/* SPDX-License-Identifier: GPL-2.0-or-later */
/* eventlog_reading: reads a generated log as a file or a stream and keeps the results. */
#ifndef SAFESCOPED_TEST_EVENTLOG_READING_H
#define SAFESCOPED_TEST_EVENTLOG_READING_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "eventlog_writer.h"

struct seen {
	size_t n;
	uint64_t times[4096];
	uint16_t ids[4096], caps[4096];
	uint32_t tids[4096];
	uint64_t sum; /* over all events, to compare runs */
};

static inline int on_any(void *ctx, const struct el_event *ev)
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

static inline void settled(const struct eventlog_stats *st, size_t size)
{
	assert_int_equal(st->bytes_in, size);
	assert_int_equal(st->header_bytes + st->event_bytes + st->lost_bytes, st->bytes_in);
}

static inline struct eventlog_stats read_file(const void *data, size_t len, struct seen *seen)
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

static inline struct eventlog_stats read_stream(const void *data, size_t len, size_t piece,
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

/* Two capabilities and the global buffer with `blocks` blocks each and `per` runs per block. */
static inline void sample_log(struct writer *w, unsigned blocks, unsigned per)
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

#endif

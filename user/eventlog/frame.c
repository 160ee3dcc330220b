/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame: finds where a log's blocks begin and end. Looks only at markers, so indexing a finished
 * file touches one page per block; what makes no sense between blocks counts as lost.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/read.h"
#include "reader_priv.h"

#define WIN_FULL  (256u << 10)
#define WIN_SMALL 4096u
/* The longest time that a buffer may span if only plausibility shows that it is one. */
#define BLOCK_TIME_MAX (30ull * 24 * 3600 * 1000000000)

struct marker {
	uint64_t time, end;
	uint32_t size;
	uint16_t cap;
};

/* Fills the window from `off`; at the end of the file it stays short. */
static int window_load(struct eventlog *log, uint64_t off, size_t len)
{
	size_t got;
	int err;

	if (!log->win) {
		log->win = malloc(WIN_FULL);
		if (!log->win)
			return -ENOMEM;
	}
	err = read__at(log->fd, log->win, len, off, &got);
	if (err)
		return err;
	log->win_off = off;
	log->win_len = got;
	return 0;
}

const uint8_t *frame__peek(struct eventlog *log, uint64_t off, size_t len)
{
	uint64_t last = log->win_off + log->win_len;
	size_t want;
	int err;

	if (off > log->avail || len > log->avail - off || len > WIN_FULL)
		return NULL;
	if (log->fd < 0)
		return off < log->mem_off ? NULL : log->mem + (off - log->mem_off);
	if (off >= log->win_off && len <= log->win_len && off - log->win_off <= log->win_len - len)
		return log->win + (off - log->win_off);
	/* Markers of full buffers are far apart: reading a lot around each would read all. */
	want = log->win_len && off >= log->win_off && off < last + WIN_FULL / 4 ? WIN_FULL
										: WIN_SMALL;
	if (want < len)
		want = len;
	if (want > log->avail - off)
		want = (size_t)(log->avail - off);
	err = window_load(log, off, want);
	if (err) {
		log->err = err;
		return NULL;
	}
	return log->win_len < len ? NULL : log->win;
}

/* Whether this is a plausible block marker. */
static bool marker_read(const uint8_t *p, struct marker *ret)
{
	if (be16_at(p) != EL_BLOCK_MARKER)
		return false;
	ret->time = be64_at(p + 2);
	ret->size = be32_at(p + 10);
	ret->end = be64_at(p + 14);
	ret->cap = be16_at(p + 22);
	return ret->size >= MARKER_BYTES && ret->size <= BLOCK_MAX && ret->end >= ret->time &&
	       ret->end < UINT64_MAX - TIME_SLACK &&
	       (ret->cap < CAPS_MAX || ret->cap == EL_CAP_GLOBAL);
}

enum verdict { V_NO, V_YES, V_WAIT };

/*
 * Whether the first events of the block make sense; checked if what follows the block does not
 * confirm the marker's size. Three in a row, each with a time inside the block's, do not occur by
 * chance.
 */
static enum verdict events_fit(struct eventlog *log, uint64_t off, const struct marker *m,
			       bool last)
{
	uint64_t at = off + MARKER_BYTES, time, len;
	const uint8_t *p;
	int32_t size;
	unsigned n;

	if (m->end - m->time > BLOCK_TIME_MAX)
		return V_NO;
	for (n = 0; n < 3 && at < off + m->size; n++) {
		p = frame__peek(log, at, EVENT_HEAD);
		if (!p)
			return !last ? V_WAIT : n ? V_YES : V_NO;
		size = log->size[be16_at(p)];
		time = be64_at(p + 2);
		if (size == SIZE_UNKNOWN || time + TIME_SLACK < m->time ||
		    time > m->end + TIME_SLACK)
			return V_NO;
		len = EVENT_HEAD + (uint64_t)MAX(size, 0);
		if (size == SIZE_VARIABLE) {
			p = frame__peek(log, at, EVENT_HEAD + 2);
			if (!p)
				return !last ? V_WAIT : n ? V_YES : V_NO;
			len += 2 + be16_at(p + EVENT_HEAD);
		}
		at += len;
	}
	return n ? V_YES : V_NO;
}

/* Whether a block, the end mark, or the end of the bytes is at `off`, after a block. */
static enum verdict successor_fits(struct eventlog *log, uint64_t off, bool last)
{
	struct marker m;
	const uint8_t *p;

	if (off == log->avail)
		return last ? V_YES : V_WAIT;
	if (off > log->avail)
		return last ? V_NO : V_WAIT;
	p = frame__peek(log, off, 2);
	if (p && be16_at(p) == EVENT_END)
		return V_YES;
	p = frame__peek(log, off, MARKER_BYTES);
	if (!p)
		return last ? V_NO : V_WAIT;
	return marker_read(p, &m) ? V_YES : V_NO;
}

/* The first place at or after `off` that may have a marker; `avail` if there is none. */
static uint64_t next_candidate(struct eventlog *log, uint64_t off)
{
	struct marker m;

	while (off < log->avail && log->avail - off >= MARKER_BYTES) {
		size_t len = (size_t)MIN(log->avail - off, (uint64_t)WIN_FULL / 2);
		const uint8_t *p = frame__peek(log, off, len);
		const uint8_t *q = p;

		if (!p)
			return log->avail;
		while ((size_t)(q - p) + MARKER_BYTES <= len) {
			size_t left = len - MARKER_BYTES + 2 - (size_t)(q - p);

			q = memmem(q, left, "\0\x12", 2);
			if (!q)
				break;
			if (marker_read(q, &m))
				return off + (uint64_t)(q - p);
			q++;
		}
		off += len - MARKER_BYTES + 1;
	}
	return log->avail;
}

/*
 * Finds the first block at or after `off`. V_YES: at *ret_at; V_WAIT: possibly there; V_NO: none in
 * the available bytes (*ret_at = avail).
 */
static enum verdict find_block(struct eventlog *log, uint64_t off, bool last, uint64_t *ret_at)
{
	uint64_t at = MAX(off, log->searched);
	enum verdict v = V_NO;
	const uint8_t *p;
	struct marker m;

	for (;; at++) {
		at = next_candidate(log, at);
		if (at >= log->avail || log->err)
			break;
		p = frame__peek(log, at, MARKER_BYTES);
		if (!p || !marker_read(p, &m))
			continue;
		v = events_fit(log, at, &m, last);
		if (v == V_NO && m.end - m.time <= BLOCK_TIME_MAX)
			v = successor_fits(log, at + m.size, last);
		if (v != V_NO)
			break;
	}
	/* A stream that trickles in must not be searched from the start each time. */
	log->searched = at;
	if (at >= log->avail && log->avail - off > MARKER_BYTES)
		log->searched = log->avail - MARKER_BYTES + 1;
	*ret_at = at;
	return v;
}

static void skip(struct eventlog *log, uint64_t bytes)
{
	log->stats.lost_bytes += bytes;
	log->pos += bytes;
}

/* There is no block at pos: moves on to the next one. Returns false if all available bytes have
 * been searched. */
static bool search(struct eventlog *log, bool last)
{
	uint64_t at;
	enum verdict v;

	/* One place of damage, however many pieces of a stream it spans. */
	if (!log->searching)
		log->stats.damages++;
	v = find_block(log, log->pos + (log->searching ? 0 : 1), last, &at);
	log->searching = v != V_YES;
	/* A marker may begin in the last bytes that a stream has brought so far. */
	if (v == V_NO && !last)
		at = MAX(log->pos, at > MARKER_BYTES ? at - MARKER_BYTES + 1 : 0);
	skip(log, at - log->pos);
	return v == V_YES;
}

/*
 * Takes one block at pos. Its length is the marker's if what follows the block confirms it;
 * otherwise the block extends to the next place where one begins. 1: taken; 0: needs more; -ENOMSG:
 * no block here; other negative values: error.
 */
static int take_block(struct eventlog *log, bool last)
{
	const uint8_t *p = frame__peek(log, log->pos, MARKER_BYTES);
	uint64_t len, next;
	enum verdict v;
	struct marker m;
	int err;

	if (!p)
		return last ? -ENOMSG : 0;
	if (!marker_read(p, &m))
		return -ENOMSG;
	len = m.size;
	v = successor_fits(log, log->pos + len, last);
	if (v == V_WAIT)
		return 0;
	if (v == V_NO) {
		/* The log ends inside the block, or bytes are lost inside or after it. */
		v = events_fit(log, log->pos, &m, last);
		if (v == V_NO && len <= log->avail - log->pos)
			return -ENOMSG;
		v = find_block(log, log->pos + MARKER_BYTES, last, &next);
		if (v != V_YES && !last && log->avail - log->pos < 2 * BLOCK_MAX)
			return 0;
		len = MIN(len, next - log->pos);
	}
	p = NULL;
	if (log->fd < 0)
		p = log->mem + (log->pos - log->mem_off);
	err = merge__queue(log, m.cap, log->pos, len, p, m.end, len == m.size);
	if (err)
		return err;
	log->stats.blocks++;
	log->pos += len;
	return 1;
}

/* Takes the log's end mark. Damage can look like it, so a block may still follow. */
static bool take_end(struct eventlog *log, bool last)
{
	const uint8_t *p = frame__peek(log, log->pos, 2);

	if (!p || be16_at(p) != EVENT_END)
		return false;
	if (log->avail - log->pos > 2 && log->avail - log->pos < 2 + MARKER_BYTES && !last)
		return false;
	log->pos += 2;
	log->stats.event_bytes += 2;
	log->stats.ended = true;
	return true;
}

int frame__run(struct eventlog *log, bool last)
{
	int err;

	while (log->pos < log->avail && !log->err) {
		if (log->n_extents >= EXTENTS_MAX || log->held > log->opts.hold_max)
			return 0;
		if (!log->searching && take_end(log, last))
			continue;
		err = log->searching ? -ENOMSG : take_block(log, last);
		if (err == -ENOMSG)
			err = search(log, last);
		if (err < 0)
			return err;
		if (!err)
			break;
	}
	if (last && log->pos < log->avail && !log->err)
		skip(log, log->avail - log->pos);
	return log->err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: the buffers' blocks in time order, and the loop over their events. The loop stays in one
 * buffer until the next event of another is older, so a quiet buffer costs nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/read.h"
#include "reader_priv.h"

/* Chunks of a file, one for each buffer being read; together at most about this. */
#define CHUNKS_TOTAL (16u << 20)
#define CHUNK_MAX    (256u << 10)
#define CHUNK_MIN    (80u << 10) /* has room for any event */

/* ── queue of blocks ─────────────────────────────────────────────────────────────────────── */

static struct cursor *cursor_get(struct eventlog *log, uint16_t cap)
{
	unsigned i = cap == EL_CAP_GLOBAL ? CAPS_MAX : cap;

	if (!log->cursors[i]) {
		struct cursor *c = calloc(1, sizeof(*c));

		if (!c)
			return NULL;
		c->cap = cap;
		log->cursors[i] = c;
		log->n_cursors++;
		log->stats.buffers++;
		if (cap != EL_CAP_GLOBAL)
			log->stats.caps[cap / 64] |= 1ULL << cap % 64;
	}
	return log->cursors[i];
}

static void extent_drop(struct eventlog *log, struct extent *e)
{
	if (e->data) {
		log->held -= e->len + sizeof(*e);
		free(e->data);
		e->data = NULL;
	}
	log->n_extents--;
}

void cursor__free(struct cursor *c)
{
	if (!c)
		return;
	for (size_t i = c->head; i < c->n; i++)
		free(c->q[i].data);
	free(c->q);
	free(c->buf);
	free(c);
}

static bool heap_less(const struct cursor *a, const struct cursor *b)
{
	return a->key != b->key ? a->key < b->key : a->cap < b->cap;
}

static void heap_down(struct eventlog *log)
{
	struct cursor **h = log->heap, *c = h[0];
	unsigned i = 0;

	for (;;) {
		unsigned k = 2 * i + 1;

		if (k >= log->n_heap)
			break;
		if (k + 1 < log->n_heap && heap_less(h[k + 1], h[k]))
			k++;
		if (!heap_less(h[k], c))
			break;
		h[i] = h[k];
		i = k;
	}
	h[i] = c;
}

static void heap_push(struct eventlog *log, struct cursor *c)
{
	struct cursor **h = log->heap;
	unsigned i = log->n_heap++;

	while (i && heap_less(c, h[(i - 1) / 2])) {
		h[i] = h[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h[i] = c;
	c->queued = true;
}

int merge__queue(struct eventlog *log, uint16_t cap, uint64_t off, uint64_t len,
		 const uint8_t *data, uint64_t end_time, bool exact)
{
	struct cursor *c = cursor_get(log, cap);
	struct extent *e;
	int err;

	if (!c)
		return -ENOMEM;
	c->last_end = MAX(c->last_end, end_time);
	/* Neighbours in the file become one extent, unless the first is already being read. */
	if (!data && c->n > c->head + (c->started ? 1 : 0)) {
		e = &c->q[c->n - 1];
		if (exact && e->exact && e->off + e->len == off) {
			e->len += len;
			return 0;
		}
	}
	if (c->head && c->head == c->n)
		c->head = c->n = 0;
	if (c->head > 64 && c->head > c->n / 2) {
		memmove(c->q, c->q + c->head, (c->n - c->head) * sizeof(*c->q));
		c->n -= c->head;
		c->head = 0;
	}
	err = ARRAY_RESERVE(c->q, c->q_cap, c->n + 1, 4 * EXTENTS_MAX);
	if (err)
		return err;
	e = &c->q[c->n];
	*e = (struct extent){.off = off, .len = len, .exact = exact};
	if (data) {
		e->data = malloc(len);
		if (!e->data)
			return -ENOMEM;
		memcpy(e->data, data, len);
		log->held += len + sizeof(*e);
	}
	c->n++;
	log->n_extents++;
	return 0;
}

/* ── reading on in one buffer ────────────────────────────────────────────────────────────── */

static void lose(struct eventlog *log, uint64_t bytes)
{
	if (!bytes)
		return;
	log->stats.lost_bytes += bytes;
	log->stats.damages++;
}

/* Keeps what is left in memory and appends more of the extent. */
static int cursor_load(struct eventlog *log, struct cursor *c)
{
	size_t keep = c->p ? (size_t)(c->lim - c->p) : 0;
	size_t want, got;
	int err;

	if (!c->ext_left)
		return 0;
	if (!c->buf) {
		size_t size = CHUNKS_TOTAL / MAX(log->n_cursors, 1u);

		c->buf_size = MIN(MAX(size, (size_t)CHUNK_MIN), (size_t)CHUNK_MAX);
		c->buf = malloc(c->buf_size);
		if (!c->buf)
			return -ENOMEM;
		keep = 0;
	}
	if (keep)
		memmove(c->buf, c->p, keep);
	c->p = c->buf;
	c->lim = c->buf + keep;
	want = MIN(c->buf_size - keep, c->ext_left);
	err = read__at(log->fd, c->buf + keep, want, c->ext_off, &got);
	if (err)
		return err;
	c->lim += got;
	c->ext_off += got;
	c->ext_left -= got;
	if (got < want) {
		/* the file has been truncated since it was indexed */
		lose(log, c->ext_left);
		c->ext_left = 0;
	}
	return 0;
}

/* Takes the marker at p, which bounds what the block may contain. False if it is not valid. */
static bool block_begin(struct cursor *c)
{
	uint64_t size, time, end, rest = (uint64_t)(c->lim - c->p) + c->ext_left;

	if (c->lim - c->p < MARKER_BYTES || be16_at(c->p) != EL_BLOCK_MARKER)
		return false;
	time = be64_at(c->p + 2);
	size = be32_at(c->p + EVENT_HEAD);
	end = be64_at(c->p + EVENT_HEAD + 4);
	if (size < MARKER_BYTES || end < time)
		return false;
	c->blk_left = MIN(size, rest);
	c->lo = time > TIME_SLACK ? time - TIME_SLACK : 0;
	c->hi = end > UINT64_MAX - TIME_SLACK ? UINT64_MAX : end + TIME_SLACK;
	c->key = MAX(c->key, time);
	return true;
}

/* 1: a block begins at p; 0: nothing is left; negative: error. */
static int cursor_next_block(struct eventlog *log, struct cursor *c)
{
	int err;

	for (;;) {
		if (!c->started) {
			if (c->head == c->n)
				return 0;
			c->started = true;
			c->p = c->lim = c->q[c->head].data;
			c->ext_off = c->q[c->head].off;
			c->ext_left = c->q[c->head].len;
			if (c->p) {
				c->lim = c->p + c->ext_left;
				c->ext_left = 0;
			}
		}
		if (c->lim - c->p < MARKER_BYTES) {
			err = cursor_load(log, c);
			if (err)
				return err;
		}
		if (c->lim > c->p && block_begin(c))
			return 1;
		/* Framing has seen a marker here, so the file must have changed since. */
		lose(log, (uint64_t)(c->lim - c->p) + c->ext_left);
		extent_drop(log, &c->q[c->head++]);
		c->started = false;
		c->p = c->lim = NULL;
		c->ext_left = 0;
	}
}

enum step { STEP_LIMIT, STEP_END, STEP_MORE, STEP_DAMAGE, STEP_ERROR };

/* Stays in registers where event_at is inlined, since nothing else takes its address. */
struct raw_event {
	uint64_t time, len;
	const uint8_t *body;
	uint16_t id;
};

/*
 * Parses the event at p: id, time and payload. STEP_LIMIT: there is one; otherwise the reason why
 * there is none. `whole`: the block ends at `end`; else only the bytes in memory do.
 */
static inline __attribute__((always_inline)) enum step event_at(const struct eventlog *log,
								const uint8_t *p,
								const uint8_t *end, bool whole,
								struct raw_event *raw)
{
	const uint8_t *body = p + EVENT_HEAD;
	uint64_t len;
	int32_t size;

	if (end - p < EVENT_HEAD)
		return !whole ? STEP_MORE : p == end ? STEP_END : STEP_DAMAGE;
	raw->id = be16_at(p);
	raw->time = be64_at(p + 2);
	size = log->size[raw->id];
	if (size >= 0) {
		len = (uint64_t)size;
	} else {
		if (size == SIZE_UNKNOWN)
			return STEP_DAMAGE;
		if (end - p < EVENT_HEAD + 2)
			return whole ? STEP_DAMAGE : STEP_MORE;
		len = be16_at(body);
		body += 2;
	}
	raw->len = len;
	raw->body = body;
	if (len > (uint64_t)(end - body))
		return whole ? STEP_DAMAGE : STEP_MORE;
	return STEP_LIMIT;
}

/* Whether three events in a row, or all up to the block's end, make sense from p on. */
static bool chain_fits(const struct eventlog *log, const struct cursor *c, const uint8_t *p,
		       const uint8_t *end, bool end_is_block)
{
	struct raw_event raw;

	for (unsigned n = 0; n < 3; n++) {
		enum step step = event_at(log, p, end, end_is_block, &raw);

		if (step != STEP_LIMIT)
			return n > 0 && step != STEP_DAMAGE;
		if (raw.time < c->lo || raw.time > c->hi)
			return false;
		p = raw.body + raw.len;
	}
	return true;
}

/* The event at p is damage: moves to the next place that makes sense, or the block's end. */
static int cursor_resync(struct eventlog *log, struct cursor *c)
{
	uint64_t lost = 0;
	int err;

	/* Seen where a stream was cut off: the end mark is inside the block. */
	if (c->blk_left == 2 && c->lim - c->p >= 2 && be16_at(c->p) == EVENT_END) {
		log->stats.ended = true;
		log->stats.event_bytes += 2;
		c->p += 2;
		c->blk_left = 0;
		return 0;
	}
	log->stats.damages++;
	if (c->lim - c->p < 8192) {
		err = cursor_load(log, c);
		if (err)
			return err;
	}
	for (;;) {
		uint64_t in_mem = MIN((uint64_t)(c->lim - c->p), c->blk_left);
		bool whole = in_mem == c->blk_left;
		/* Leaves room to check three events, unless the rest of the block is in memory. */
		size_t tries = whole || in_mem < 4096 ? in_mem : in_mem - 4096 + 1;
		size_t i;

		for (i = 1; i < tries; i++)
			if (chain_fits(log, c, c->p + i, c->p + in_mem, whole))
				break;
		i = MIN(i, in_mem);
		lost += i;
		c->p += i;
		c->blk_left -= i;
		if (i < tries || !c->blk_left)
			break;
		err = cursor_load(log, c);
		if (err)
			return err;
		if (c->p == c->lim)
			break;
	}
	log->stats.lost_bytes += lost;
	return 0;
}

static int dispatch(struct eventlog *log, struct el_event *ev)
{
	unsigned bits = log->want[ev->id];
	int err;

	if (!decode__event(ev)) {
		log->stats.misfits++;
		return 0;
	}
	while (bits) {
		unsigned i = (unsigned)__builtin_ctz(bits);

		err = log->subs[i].fn(log->subs[i].ctx, ev);
		if (err)
			return err;
		bits &= bits - 1;
	}
	return 0;
}

/*
 * The loop over events in memory, up to the first that is later than `limit`. Every special case is
 * left to the caller. It is a function of its own, with few variables, so that these stay in
 * registers.
 */
static __attribute__((noinline)) enum step cursor_run(struct eventlog *log, struct cursor *c,
						      uint64_t limit)
{
	const uint8_t *p = c->p, *start = c->p;
	bool whole = c->blk_left <= (uint64_t)(c->lim - p);
	const uint8_t *end = whole ? p + c->blk_left : c->lim;
	uint64_t lo = c->lo, span = c->hi - c->lo, key = c->key, emitted = log->emitted, next;
	uint64_t events = 0;
	enum step step;
	struct raw_event raw;
	struct el_event ev;

	ev.cap = c->cap;
	for (;;) {
		step = event_at(log, p, end, whole, &raw);
		if (step != STEP_LIMIT)
			break;
		if (raw.time - lo > span) {
			step = STEP_DAMAGE;
			break;
		}
		next = MAX(key, raw.time);
		if (raw.time < key)
			log->stats.backwards++;
		if (next > limit) {
			c->key = next;
			break;
		}
		key = next;
		if (key < emitted)
			log->stats.late++;
		events++;
		p = raw.body + raw.len;
		if (raw.id >= EL_IDS) {
			log->stats.unknown++;
			continue;
		}
		log->stats.by_id[raw.id]++;
		if (!log->want[raw.id])
			continue;
		ev.id = raw.id;
		ev.time = raw.time;
		ev.len = (uint32_t)raw.len;
		ev.payload = raw.body;
		log->err = dispatch(log, &ev);
		if (log->err) {
			step = STEP_ERROR;
			break;
		}
	}
	c->p = p;
	c->blk_left -= (uint64_t)(p - start);
	if (events) {
		c->key = MAX(c->key, key);
		log->emitted = MAX(emitted, key);
	}
	log->stats.events += events;
	log->stats.event_bytes += (uint64_t)(p - start);
	return step;
}

/* One turn of a cursor. 1: it has a next event (its key); 0: nothing is left; negative: error. */
static int cursor_turn(struct eventlog *log, struct cursor *c, uint64_t limit)
{
	int err;

	for (;;) {
		switch (cursor_run(log, c, limit)) {
		case STEP_LIMIT:
			return 1;
		case STEP_ERROR:
			return log->err;
		case STEP_MORE:
			if (c->ext_left) {
				err = cursor_load(log, c);
				if (err)
					return err;
				continue;
			}
			/* The file ended early: what is in memory is all there is. */
			c->blk_left = (uint64_t)(c->lim - c->p);
			continue;
		case STEP_DAMAGE:
			err = cursor_resync(log, c);
			if (err)
				return err;
			if (c->blk_left && c->p < c->lim)
				continue;
			break;
		case STEP_END:
			break;
		}
		if (c->p == c->lim && !c->ext_left) {
			extent_drop(log, &c->q[c->head++]);
			c->started = false;
			c->p = c->lim = NULL;
		}
		err = cursor_next_block(log, c);
		if (err <= 0)
			return err;
		if (c->key > limit)
			return 1;
	}
}

uint64_t eventlog__cap_reaches(const struct eventlog *log, uint16_t cap)
{
	const struct cursor *c = cap < CAPS_MAX ? log->cursors[cap] : NULL;

	return c ? c->last_end : 0;
}

/* No block that is still to come can have an event before this time. */
static uint64_t safe_time(const struct eventlog *log)
{
	uint64_t time = UINT64_MAX;

	for (unsigned i = 0; i <= CAPS_MAX; i++)
		if (log->cursors[i])
			time = MIN(time, log->cursors[i]->last_end);
	return time;
}

int merge__run(struct eventlog *log, enum merge_how how)
{
	uint64_t limit = how == MERGE_SAFE ? safe_time(log) : UINT64_MAX;
	int err;

	for (unsigned i = 0; i <= CAPS_MAX; i++) {
		struct cursor *c = log->cursors[i];

		if (!c || c->queued || (!c->started && c->head == c->n))
			continue;
		err = c->started ? 1 : cursor_next_block(log, c);
		if (err < 0)
			return err;
		if (err)
			heap_push(log, c);
	}
	while (log->n_heap && log->heap[0]->key <= limit) {
		struct cursor *c = log->heap[0];
		uint64_t until = limit;

		if (how == MERGE_SHRINK && log->held <= log->opts.hold_max / 2 &&
		    log->n_extents <= EXTENTS_MAX / 2)
			break;
		if (log->n_heap > 1)
			until = MIN(until, log->heap[1]->key);
		if (log->n_heap > 2)
			until = MIN(until, log->heap[2]->key);
		err = cursor_turn(log, c, until);
		if (err < 0)
			return err;
		if (!err) {
			c->queued = false;
			log->heap[0] = log->heap[--log->n_heap];
			if (!log->n_heap)
				break;
		}
		heap_down(log);
	}
	log->stats.reaches = safe_time(log);
	if (log->stats.reaches == UINT64_MAX)
		log->stats.reaches = 0;
	return 0;
}

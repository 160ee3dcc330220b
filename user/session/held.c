/* SPDX-License-Identifier: GPL-2.0-or-later */
/* held: records of one process, held until it is ready or its threads are known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session_priv.h"

#define HELD_MAX_BYTES (8U << 20)
/* Limit on the time: if the process is not ready by then, its records are passed on anyway. */
#define HELD_MAX_NS 2000000000ULL

struct held {
	struct buf records; /* one after the other; each header has the record's size */
	uint64_t since_ns;
	bool on;
};

int held__new(struct held **ret_held)
{
	struct held *held = calloc(1, sizeof(*held));

	if (!held)
		return -ENOMEM;
	buf__init(&held->records, HELD_MAX_BYTES);
	*ret_held = held;
	return 0;
}

void held__free(struct held *held)
{
	if (held)
		buf__free(&held->records);
	free(held);
}

void held__begin(struct held *held, uint64_t since_ns)
{
	held->on = true;
	held->since_ns = since_ns;
}

bool held__take(struct held *held, struct feed *feed, const void *record, size_t size)
{
	const struct wire_hdr *h = record;

	if (!held->on || h->size > size || h->size < sizeof(*h))
		return false;
	if ((h->ns < held->since_ns || h->ns - held->since_ns < HELD_MAX_NS) &&
	    buf__add(&held->records, record, h->size) == 0)
		return true;
	held__give(held, feed);
	return false;
}

void held__drop(struct held *held)
{
	held->on = false;
	buf__free(&held->records);
}

void held__give(struct held *held, struct feed *feed)
{
	const struct buf *b = &held->records;
	struct wire_hdr h;

	for (size_t at = 0; at + sizeof(h) <= b->len; at += h.size) {
		memcpy(&h, b->data + at, sizeof(h));
		feed__record(feed, b->data + at, h.size);
	}
	held__drop(held);
}

bool held__is_over(const struct held *held)
{
	return !held->on;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of a process whose runtime is not initialised yet are held back: to take them is to name
 * what is in them, and reading the symbols of large files would delay what the process waits for,
 * its confirmed layout and its unwind rows.
 */
#include <errno.h>
#include <string.h>

#include "session_priv.h"

#define HELD_MAX_BYTES (8U << 20)
/* One that becomes ready late is shown as it is. */
#define HELD_MAX_NS 2000000000ULL

bool held__take(struct session *s, const void *record, size_t size)
{
	const struct wire_hdr *h = record;
	struct member *m = s->n_starting ? members__find_live(s, (pid_t)h->tgid) : NULL;

	/* an exec ends the member, and that gives back what is held */
	if (!m || m->ready || m->held_over || h->type == WIRE_EXEC)
		return false;
	if (h->size > size || h->size < sizeof(*h))
		return false;
	if (h->ns - m->attach_ns < HELD_MAX_NS || h->ns < m->attach_ns) {
		if (m->held.max == 0)
			buf__init(&m->held, HELD_MAX_BYTES);
		if (buf__add(&m->held, record, h->size) == 0)
			return true;
	}
	held__give(s, m);
	return false;
}

void held__drop(struct member *m)
{
	m->held_over = true;
	buf__free(&m->held);
}

void held__give(struct session *s, struct member *m)
{
	struct buf held = m->held;
	struct wire_hdr h;

	m->held_over = true;
	memset(&m->held, 0, sizeof(m->held));
	for (size_t at = 0; at + sizeof(h) <= held.len; at += h.size) {
		memcpy(&h, held.data + at, sizeof(h));
		session__take_record(s, held.data + at, h.size);
	}
	buf__free(&held);
}

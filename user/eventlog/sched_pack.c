/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sched_pack: hands the scheduler model over from the process that read the log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pack_priv.h"
#include "sched_priv.h"

struct packed_cap {
	uint64_t state_ns[CS_MAX];
	uint64_t runs, gcs;
	uint16_t cap;
};

struct packed_thread {
	uint64_t start, end, since, safe_calls;
	uint64_t state_ns[HS_MAX];
	uint32_t tid;
	uint16_t cap;
	uint8_t state, finished, has_label, has_lane;
};

/* ── in the process that read it ─────────────────────────────────────────────────────────── */

static void pack_thread(const struct sched_thread *t, struct pack *p)
{
	struct packed_thread packed;

	/* zero the padding, which is handed over, too */
	memset(&packed, 0, sizeof(packed));
	packed.start = t->pub.start;
	packed.end = t->pub.end;
	packed.since = t->pub.since;
	packed.safe_calls = t->pub.safe_calls;
	memcpy(packed.state_ns, t->pub.state_ns, sizeof(packed.state_ns));
	packed.tid = t->pub.tid;
	packed.cap = t->pub.cap;
	packed.state = t->pub.state;
	packed.finished = t->pub.finished;
	packed.has_label = t->pub.label != NULL;
	packed.has_lane = t->lane != NULL;
	PACK(p, packed);
	if (t->pub.label)
		pack__text(p, t->pub.label);
	if (t->lane)
		pack__slices(p, &t->lane->slices);
}

static void pack_cap(const struct sched_cap *c, struct pack *p)
{
	struct packed_cap packed = {.runs = c->pub.runs, .gcs = c->pub.gcs, .cap = c->pub.cap};

	memcpy(packed.state_ns, c->pub.state_ns, sizeof(packed.state_ns));
	PACK(p, packed);
	pack__slices(p, &c->lane.slices);
}

void el_sched__pack(const struct el_sched *s, struct pack *p)
{
	const struct el_sched_info info = el_sched__info(s);

	PACK(p, info);
	for (size_t i = 0; i < s->n_caps; i++)
		pack_cap(s->caps[i], p);
	for (size_t i = 0; i < s->n_threads; i++)
		pack_thread(sched__thread_at(s, i), p);
	pack__array(p, s->all_gcs, s->info.n_gcs, sizeof(*s->all_gcs));
}

/* ── in the one that wants it ────────────────────────────────────────────────────────────── */

static int unpack_cap(struct el_sched *s, struct unpack *u)
{
	/* stack: the status of a STOP_THREAD */
	static const struct slices_kind kind = {
		.states = CS_MAX, .stacks = UINT16_MAX + 1, .max = LANE_MAX};
	struct packed_cap packed;
	struct sched_cap *c;
	int err;

	UNPACK(u, packed);
	if (!unpack__require(u, packed.cap < SCHED_CAPS && !s->by_cap[packed.cap]))
		return -EBADMSG;
	c = sched__cap(s, packed.cap);
	if (!c)
		return -ENOMEM;
	unpack__parts(u, packed.state_ns, CS_MAX);
	memcpy(c->pub.state_ns, packed.state_ns, sizeof(c->pub.state_ns));
	c->pub.runs = packed.runs;
	c->pub.gcs = packed.gcs;
	err = unpack__slices(u, &kind, &c->lane.slices);
	s->cap_room.used += c->lane.slices.n;
	return err;
}

static int unpack_label(struct sched_thread *t, struct unpack *u)
{
	size_t len;
	const char *label = unpack__text(u, &len);

	if (!unpack__require(u, len <= LABEL_MAX))
		return -EBADMSG;
	t->pub.label = strndup(label, len);
	return t->pub.label ? 0 : -ENOMEM;
}

static int unpack_lane(struct el_sched *s, struct sched_thread *t, struct unpack *u)
{
	static const struct slices_kind kind = {.states = HS_MAX, .stacks = 1, .max = LANE_MAX};
	int err;

	t->lane = calloc(1, sizeof(*t->lane));
	if (!t->lane)
		return -ENOMEM;
	t->lane->kind = LANE_HASKELL;
	t->lane->room = &s->thread_room;
	t->pub.lane = &t->lane->slices;
	err = unpack__slices(u, &kind, &t->lane->slices);
	s->thread_room.used += t->lane->slices.n;
	s->n_lanes++;
	return err;
}

static int unpack_thread(struct el_sched *s, struct unpack *u)
{
	struct packed_thread packed;
	struct sched_thread *t;
	int err = 0;

	UNPACK(u, packed);
	if (!unpack__require(u, packed.state < HS_MAX && packed.start <= packed.end &&
					packed.finished <= 1 && s->n_threads < THREADS_MAX &&
					!el_sched__find_thread(s, packed.tid)))
		return -EBADMSG;
	t = sched__thread(s, packed.tid, packed.start);
	if (!t)
		return -ENOMEM;
	t->pub.end = packed.end;
	t->pub.since = packed.since;
	t->pub.safe_calls = packed.safe_calls;
	unpack__parts(u, packed.state_ns, HS_MAX);
	memcpy(t->pub.state_ns, packed.state_ns, sizeof(t->pub.state_ns));
	t->pub.cap = packed.cap;
	t->pub.state = packed.state;
	t->pub.finished = packed.finished;
	if (packed.has_label)
		err = unpack_label(t, u);
	if (!err && packed.has_lane)
		err = unpack_lane(s, t, u);
	return err;
}

static int unpack_all(struct el_sched *s, const struct el_sched_info *info, struct unpack *u)
{
	int err = 0;

	for (size_t i = 0; i < info->n_caps && !err; i++)
		err = unpack_cap(s, u);
	for (size_t i = 0; i < info->n_threads && !err; i++)
		err = unpack_thread(s, u);
	if (!err)
		err = UNPACK_ARRAY(u, s->all_gcs, s->info.n_gcs, GCS_MAX);
	for (size_t i = 0; i < s->info.n_gcs; i++)
		unpack__require(u, s->all_gcs[i].start <= s->all_gcs[i].end);
	return err;
}

int el_sched__unpack(struct unpack *u, struct el_sched **ret_s)
{
	struct el_sched_info info;
	struct el_sched *s;
	int err = el_sched__new(NULL, &s);

	if (err)
		return err;
	UNPACK(u, info);
	s->info = info;
	s->info.n_gcs = 0;
	err = unpack_all(s, &info, u);
	if (!err && u->bad)
		err = -EBADMSG;
	if (err)
		el_sched__free(s);
	else
		*ret_s = s;
	return err;
}

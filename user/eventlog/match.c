/* SPDX-License-Identifier: GPL-2.0-or-later */
/* match: what a log may have in common with what the kernel saw. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "eventlog.h"
#include "pack_priv.h"

#define MAX_CALLS (1u << 20)
#define MAX_TICKS (1u << 21)
#define MAX_GCS	  (1u << 20)
/* Comparing them with another clock's times takes signed differences. */
#define LATEST_NS ((uint64_t)INT64_MAX / 2)

struct el_match {
	const struct el_window *window;
	struct el_match_call *calls;
	struct el_match_tick *ticks;
	uint64_t *gcs;
	size_t cap_calls, cap_ticks, cap_gcs;
	struct el_match_info info;
};

int el_match__new(const struct el_window *window, struct el_match **ret_m)
{
	struct el_match *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->window = window;
	*ret_m = m;
	return 0;
}

void el_match__free(struct el_match *m)
{
	if (!m)
		return;
	free(m->calls);
	free(m->ticks);
	free(m->gcs);
	free(m);
}

/* Counts what there is no room for. */
static int left_out(struct el_match *m, int err)
{
	m->info.dropped += err == -E2BIG;
	return err == -E2BIG ? 0 : err;
}

int el_match__on_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		      uint16_t cap_after)
{
	struct el_match *m = ctx;
	int err;

	m->info.calls++;
	if (end < start)
		return 0;
	if (end > LATEST_NS)
		return left_out(m, -E2BIG);
	err = ARRAY_RESERVE(m->calls, m->cap_calls, m->info.n_calls + 1, MAX_CALLS);
	if (!err)
		m->calls[m->info.n_calls++] =
			(struct el_match_call){start, end, thread, cap, cap_after};
	return left_out(m, err);
}

static int on_tick(struct el_match *m, const struct el_event *ev)
{
	struct el_u32s ccs = ev->prof_sample.ccs;
	int err = ARRAY_RESERVE(m->ticks, m->cap_ticks, m->info.n_ticks + 1, MAX_TICKS);

	if (!err)
		m->ticks[m->info.n_ticks++] = (struct el_match_tick){
			.time = ev->time,
			.centre = ccs.n ? el_u32s__get(ccs, 0) : EL_MATCH_MAIN,
			.cap = (uint16_t)ev->prof_sample.cap,
		};
	return left_out(m, err);
}

static int on_gc(struct el_match *m, const struct el_event *ev)
{
	int err = ARRAY_RESERVE(m->gcs, m->cap_gcs, m->info.n_gcs + 1, MAX_GCS);

	if (!err)
		m->gcs[m->info.n_gcs++] = ev->time;
	return left_out(m, err);
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_match *m = ctx;

	if (!el_window__has(m->window, ev->time))
		return 0;
	if (ev->time > LATEST_NS)
		return left_out(m, -E2BIG);
	return ev->id == EL_GC_START ? on_gc(m, ev) : on_tick(m, ev);
}

int el_match__attach(struct el_match *m, struct eventlog *log)
{
	static const uint16_t ids[] = {EL_GC_START, EL_PROF_SAMPLE_COST_CENTRE};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, m);
}

struct el_match_info el_match__info(const struct el_match *m)
{
	return m->info;
}

const struct el_match_call *el_match__calls(const struct el_match *m)
{
	return m->calls;
}

const struct el_match_tick *el_match__ticks(const struct el_match *m)
{
	return m->ticks;
}

const uint64_t *el_match__gcs(const struct el_match *m)
{
	return m->gcs;
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

void el_match__pack(const struct el_match *m, struct pack *p)
{
	PACK(p, m->info.calls);
	PACK(p, m->info.dropped);
	pack__array(p, m->calls, m->info.n_calls, sizeof(*m->calls));
	pack__array(p, m->ticks, m->info.n_ticks, sizeof(*m->ticks));
	pack__array(p, m->gcs, m->info.n_gcs, sizeof(*m->gcs));
}

int el_match__unpack(struct unpack *u, struct el_match **ret_m)
{
	struct el_match *m;
	int err = el_match__new(NULL, &m);

	if (err)
		return err;
	UNPACK(u, m->info.calls);
	UNPACK(u, m->info.dropped);
	err = UNPACK_ARRAY(u, m->calls, m->info.n_calls, MAX_CALLS);
	if (!err)
		err = UNPACK_ARRAY(u, m->ticks, m->info.n_ticks, MAX_TICKS);
	if (!err)
		err = UNPACK_ARRAY(u, m->gcs, m->info.n_gcs, MAX_GCS);
	for (size_t i = 0; i < m->info.n_calls; i++)
		unpack__require(u, m->calls[i].start <= m->calls[i].end &&
					   m->calls[i].end <= LATEST_NS);
	for (size_t i = 0; i < m->info.n_ticks; i++)
		unpack__require(u, m->ticks[i].time <= LATEST_NS);
	for (size_t i = 0; i < m->info.n_gcs; i++)
		unpack__require(u, m->gcs[i] <= LATEST_NS);
	unpack__require(u, m->info.n_calls <= m->info.calls);
	if (!err && u->bad)
		err = -EBADMSG;
	if (err)
		el_match__free(m);
	else
		*ret_m = m;
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* match: what a log has in common with what the kernel saw. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "eventlog.h"

#define MAX_CALLS (1u << 20)
#define MAX_TICKS (1u << 22)
#define MAX_GCS	  (1u << 20)

struct el_match {
	struct el_match_opts opts;
	struct el_match_call *calls;
	struct el_match_tick *ticks;
	uint64_t *gcs;
	size_t cap_calls, cap_ticks, cap_gcs;
	struct el_match_info info;
};

int el_match__new(const struct el_match_opts *opts, struct el_match **ret_m)
{
	struct el_match *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->opts = *opts;
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

/* Room for one more; 1: there is none, and it is counted. */
static int room(struct el_match *m, void **array, size_t *cap, size_t n, size_t max, size_t size)
{
	int err = array__reserve(array, cap, n + 1, max, size);

	if (err != -E2BIG)
		return err;
	m->info.dropped++;
	return 1;
}

int el_match__on_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		      uint16_t cap_after)
{
	struct el_match *m = ctx;
	void *v = m->calls;
	int err;

	m->info.calls++;
	if (end < start)
		return 0;
	err = room(m, &v, &m->cap_calls, m->info.n_calls, MAX_CALLS, sizeof(*m->calls));
	m->calls = v;
	if (err)
		return err < 0 ? err : 0;
	m->calls[m->info.n_calls++] = (struct el_match_call){start, end, thread, cap, cap_after};
	return 0;
}

static int on_tick(struct el_match *m, const struct el_event *ev)
{
	struct el_u32s ccs = ev->prof_sample.ccs;
	void *v = m->ticks;
	int err = room(m, &v, &m->cap_ticks, m->info.n_ticks, MAX_TICKS, sizeof(*m->ticks));

	m->ticks = v;
	if (err)
		return err < 0 ? err : 0;
	m->ticks[m->info.n_ticks++] = (struct el_match_tick){
		.time = ev->time,
		.centre = ccs.n ? el_u32s__get(ccs, 0) : EL_MATCH_MAIN,
		.cap = (uint16_t)ev->prof_sample.cap,
	};
	return 0;
}

static int on_gc(struct el_match *m, const struct el_event *ev)
{
	void *v = m->gcs;
	int err = room(m, &v, &m->cap_gcs, m->info.n_gcs, MAX_GCS, sizeof(*m->gcs));

	m->gcs = v;
	if (err)
		return err < 0 ? err : 0;
	m->gcs[m->info.n_gcs++] = ev->time;
	return 0;
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_match *m = ctx;

	if (!el_window__has(m->opts.window, ev->time))
		return 0;
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

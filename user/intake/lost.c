/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lost: threads whose end was lost: the kernel side has no entry of them any more. */
#include "intake_priv.h"

static uint64_t last_of(const struct evs *evs)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < evs->n; i++)
		ns = MAX(ns, evs->v[i].t1);
	return ns;
}

/* What was seen of it last; what it did since then is in no record, and may have been nothing. */
static uint64_t last_seen(const struct seen_thread *th)
{
	uint64_t ns = last_of(&th->samples);

	ns = MAX(ns, last_of(&th->offs));
	return MAX(ns, last_of(&th->calls));
}

/* Each that has run in the session has an entry from then on until it ends. */
static bool is_lost(const struct seen_thread *th)
{
	return !th->end_ns && !th->has_final && (th->had_records || th->born);
}

static int end_thread(struct intake *in, const struct seen *s, const struct seen_thread *th,
		      uint64_t at_ns)
{
	struct wire_thread_event rec = {
		.h = {.ns = last_seen(th) ?: at_ns,
		      .tgid = (uint32_t)s->pid,
		      .tid = (uint32_t)th->tid,
		      .type = WIRE_THREAD_EXIT,
		      .size = sizeof(rec)},
		.short_calls = th->shorts_before.calls,
		.short_wall_ns = th->shorts_before.wall_ns,
		.short_blocked_ns = th->shorts_before.blocked_ns,
		.short_runnable_ns = th->shorts_before.runnable_ns,
	};

	rec.start_ns = rec.h.ns;
	return intake__record(in, &rec, sizeof(rec));
}

int intake__end_lost(struct intake *in, uint64_t at_ns)
{
	int err = 0;

	for (size_t i = 0; i < in->n_targets; i++) {
		const struct seen *s = in->targets[i];

		/* of several with one pid the newest has the records */
		if (s->ended || intake__find(in, s->pid) != s)
			continue;
		for (struct seen_thread *th = s->thread_list; !err && th; th = th->next)
			if (is_lost(th))
				err = end_thread(in, s, th, at_ns);
	}
	return err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lost: threads whose exit record was lost: the kernel side has no entry for them any more. */
#include "intake_priv.h"

/* A thread that began or ran after at_ns may be missing in the states of that time. */
static bool is_lost(const struct seen_thread *th, uint64_t at_ns)
{
	return th->has_entry && !th->end_ns && !th->has_final && th->start_ns < at_ns &&
	       th->last_ns < at_ns;
}

/* Ends the thread where it was last seen: what it did after that, if anything, is in no record. */
static int end_thread(struct intake *in, const struct seen *s, const struct seen_thread *th)
{
	struct wire_thread_event rec = {
		.h = {.ns = MAX(MAX(th->last_ns, th->start_ns), s->pub->attach_ns),
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

		/* if several have one pid, the newest has the records */
		if (s->ended || intake__find(in, s->pid) != s)
			continue;
		for (struct seen_thread *th = s->thread_list; !err && th; th = th->next)
			if (is_lost(th, at_ns))
				err = end_thread(in, s, th);
	}
	return err;
}

void intake__lost_unknown(struct intake *in)
{
	for (size_t i = 0; i < intake__n_targets(in); i++)
		intake__target(in, i)->pub->lost_unknown = true;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_models: a reader with every model attached to it. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "log_models.h"

/* Haskell threads whose lanes are kept; of the others there are sums. */
#define THREAD_LANES 256

int log_models__new(struct log_models *m, const struct options *options)
{
	struct el_sched_opts sched = {.thread_lanes = THREAD_LANES};
	const struct el_window *window = NULL;
	int err;

	memset(m, 0, sizeof(*m));
	m->window = (struct el_window){.from = options->from_ns,
				       .to = options->to_ns,
				       .from_marker = options->from_marker,
				       .to_marker = options->to_marker};
	/* Without one nothing need be looked at. */
	if (options->from_ns || options->to_ns || options->from_marker || options->to_marker)
		window = &m->window;
	sched.window = window;
	err = eventlog__new(NULL, &m->log);
	if (!err)
		err = el_sched__new(&sched, &m->sched);
	if (!err)
		err = el_info__new(m->sched, &m->info);
	if (!err)
		err = el_profile__new(window, &m->profile);
	if (!err)
		err = el_annot__new(window, el_profile__tree(m->profile), m->sched, &m->annot);
	if (!err)
		err = el_heap__new(window, el_profile__tree(m->profile), &m->heap);
	/* In this order each event meets them: the window opens before they look at it. */
	if (!err)
		err = el_window__attach(&m->window, m->log);
	if (!err)
		err = el_sched__attach(m->sched, m->log);
	if (!err)
		err = el_info__attach(m->info, m->log);
	if (!err)
		err = el_profile__attach(m->profile, m->log);
	if (!err)
		err = el_annot__attach(m->annot, m->log);
	if (!err)
		err = el_heap__attach(m->heap, m->log);
	if (err)
		log_models__free(m);
	return err;
}

void log_models__free(struct log_models *m)
{
	el_heap__free(m->heap);
	el_annot__free(m->annot);
	el_profile__free(m->profile);
	el_info__free(m->info);
	el_sched__free(m->sched);
	eventlog__free(m->log);
	memset(m, 0, sizeof(*m));
}

int log_models__finish(struct log_models *m)
{
	uint64_t end = eventlog__stats(m->log)->last_time;
	int err = el_sched__finish(m->sched, end);

	return err ? err : el_annot__finish(m->annot, end);
}

void log_models__tell(const struct log_models *m, struct tl_log *ret_log)
{
	uint64_t last = eventlog__stats(m->log)->last_time;

	ret_log->stats = eventlog__stats(m->log);
	ret_log->info = m->info;
	ret_log->sched = m->sched;
	ret_log->profile = m->profile;
	ret_log->annot = m->annot;
	ret_log->heap = m->heap;
	ret_log->from_ns = m->window.from;
	ret_log->to_ns = m->window.to ? MIN(m->window.to, last) : last;
}

uint64_t log_models__dropped(const struct log_models *m)
{
	return el_info__process(m->info).dropped + el_sched__info(m->sched).dropped +
	       el_profile__info(m->profile).dropped + el_annot__info(m->annot).dropped +
	       el_heap__info(m->heap).dropped;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* records: dispatches the records of the kernel side. */
#include <errno.h>
#include <string.h>

#include "session_priv.h"

/* True if the record is held back until its process is ready and its snapshot is taken. */
static bool hold_back(struct session *s, const struct wire_hdr *h, size_t size)
{
	const struct member *m;

	/* an exec ends the member, which passes on the records held */
	if ((!members__count_starting(s->members) && !s->n_snapshots) || h->type == WIRE_EXEC)
		return false;
	m = members__find_live(s->members, (pid_t)h->tgid);
	return m && held__take(m->held, s->feed, h, size);
}

static void on_exec(struct session *s, const struct wire_hdr *h, size_t size)
{
	struct member *m = members__find_live(s->members, (pid_t)h->tgid);

	if (m)
		follow__on_exec(s, m->pid);
	if (m && member__forget(s, m))
		return;
	if (m)
		held__give(m->held, s->feed);
	feed__record(s->feed, h, size);
	if (!m)
		return;
	if (s->opts->kind == SESSION_PIDS)
		log_info("pid %u: runs another program now; its profile ends here", h->tgid);
	member__end(s, m, "exec", h->ns);
}

/* Subtracts the offset; 0 (not known) stays 0. */
static uint64_t less(uint64_t ns, int64_t ahead_ns)
{
	if (ahead_ns < 0)
		return ns ? ns - (uint64_t)ahead_ns : 0;
	return ns - MIN(ns, (uint64_t)ahead_ns);
}

/*
 * The runtime notes the start of a collection by its own clock; all other times of a record are the
 * kernel's. From here on there is a single clock, in a capture too.
 */
static const struct wire_hdr *by_one_clock(const struct session *s, const struct wire_hdr *h,
					   size_t size, struct wire_gc *copy)
{
	const struct member *m = members__find_live(s->members, (pid_t)h->tgid);
	const struct target_info *info = m ? target__info(m->target) : NULL;

	if (!info || size < sizeof(*copy) || (info->clock_known && !info->clock_ahead_ns))
		return h;
	memcpy(copy, h, sizeof(*copy));
	copy->sync_ns = info->clock_known ? less(copy->sync_ns, info->clock_ahead_ns) : 0;
	copy->start_ns = info->clock_known ? less(copy->start_ns, info->clock_ahead_ns) : 0;
	return &copy->h;
}

static int on_record(void *ctx, const void *record, size_t size)
{
	const struct wire_hdr *h = record;
	struct session *s = ctx;
	struct wire_gc gc;
	struct member *m;

	switch (h->type) {
	case WIRE_PROC_NEW:
		if (size >= sizeof(struct wire_proc_new))
			follow__on_new(s, record);
		/* this may have involved a look at the process, and there may be many such
		 * records */
		kernel__beat(s->kernel);
		break;
	case WIRE_READY:
		m = members__find_live(s->members, (pid_t)h->tgid);
		if (m)
			m->retry_ns = 0;
		break;
	case WIRE_EXEC:
		on_exec(s, h, size);
		break;
	case WIRE_HEAP:
		if (!hold_back(s, h, size))
			feed__record(s->feed, record, size);
		censuses__on_heap(s, record, size);
		break;
	case WIRE_GC:
		record = h = by_one_clock(s, h, size, &gc);
		if (!hold_back(s, h, size))
			feed__record(s->feed, record, size);
		break;
	default:
		if (!hold_back(s, h, size))
			feed__record(s->feed, record, size);
	}
	return 0;
}

void records__drain(struct session *s)
{
	kernel__drain(s->kernel, 0, on_record, s);
}

void records__take_all(struct session *s)
{
	kernel__flush(s->kernel);
	records__drain(s);
	for (size_t i = 0; i < members__count(s->members); i++)
		held__give(members__at(s->members, i)->held, s->feed);
}

/* Called after a drain, so that everything the probes reported before their removal has been
 * taken. */
void records__gc_off(struct session *s)
{
	for (pid_t pid = kernel__next_gc_off(s->kernel); pid;
	     pid = kernel__next_gc_off(s->kernel)) {
		struct wire_gc rec = {.point = WIRE_GC_OFF, .number = WIRE_GC_NO_NUMBER};

		rec.h.type = WIRE_GC;
		rec.h.size = sizeof(rec);
		rec.h.tgid = rec.h.tid = (__u32)pid;
		rec.h.ns = time__monotonic_ns();
		on_record(s, &rec, sizeof(rec));
		intake__add_missing(
			s->in, pid,
			"no exact GC pauses, and nothing about allocation and the heap after the "
			"probes on collections came off: collections were so frequent that they "
			"cost too much; a larger --max-overhead keeps them on");
	}
}

static int on_running(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	uint64_t now = time__monotonic_ns();

	follow__running(s, pid);
	follow__check(s, now);
	member__take_looks(s, now);
	member__start_looks(s, now);
	return 0;
}

/* Called for each process of the host, of which there may be tens of thousands. */
static int before_each(void *ctx)
{
	struct session *s = ctx;

	if (switched__off(s, time__monotonic_ns()))
		return -ECANCELED;
	kernel__beat(s->kernel);
	/* processes that started meanwhile have their records in the ring */
	records__drain(s);
	/* this consumes the signal, so it must be acted upon here */
	if (signals__came(&s->signal_fd))
		s->stopped = true;
	return s->stopped ? -ECANCELED : 0;
}

static int on_family(void *ctx, pid_t pid)
{
	struct session *s = ctx;
	int err = before_each(s);

	return !err && discover__process(s->cache, pid) ? on_running(s, pid) : err;
}

int records__scan(struct session *s)
{
	if (s->opts->kind == SESSION_COMMAND)
		return kernel__family(s->kernel, on_family, s);
	return discover__all(s->cache, before_each, on_running, s);
}

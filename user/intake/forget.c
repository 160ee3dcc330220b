/* SPDX-License-Identifier: GPL-2.0-or-later */
/* forget: releases what is not needed any more, so that sessions of any length fit into memory. */
#include "intake_priv.h"

static int by_time(const void *pa, const void *pb)
{
	const struct ev *a = pa, *b = pb;

	return CMP(a->t0, b->t0) ?: CMP(a->t1, b->t1);
}

void seen__sort(struct seen_thread *th)
{
	array__sort(th->samples.v, th->samples.n, sizeof(struct ev), by_time);
	array__sort(th->offs.v, th->offs.n, sizeof(struct ev), by_time);
	array__sort(th->calls.v, th->calls.n, sizeof(struct ev), by_time);
}

/* Drops the events that ended by t. */
static void forget(struct intake *in, struct evs *evs, uint64_t t)
{
	size_t kept = 0;

	for (size_t i = 0; i < evs->n; i++)
		if (evs->v[i].t1 > t)
			evs->v[kept++] = evs->v[i];
	in->n_records -= evs->n - kept;
	evs->n = kept;
}

void seen__forget(struct intake *in, struct seen_thread *th, uint64_t t)
{
	forget(in, &th->samples, t);
	forget(in, &th->offs, t);
	forget(in, &th->calls, t);
}

void seen__forget_tso_notes(struct seen *s, bool (*keep)(void *ctx, const struct tso_note *note),
			    void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_tso_notes; i++)
		if (keep(ctx, &s->tso_notes[i]))
			s->tso_notes[kept++] = s->tso_notes[i];
	s->n_tso_notes = kept;
	s->tso_notes_room_at = 0;
}

void seen__forget_tsos(struct seen *s, uint64_t at_ns, bool (*keep)(void *ctx, uint64_t tso),
		       void *ctx)
{
	struct tso_info *info, *next;

	HASH_ITER (hh, s->tso_infos, info, next) {
		if (MAX(info->living_ns, info->seen_ns) > at_ns || keep(ctx, info->id))
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(s->tso_infos, info);
		free(info);
	}
}

static int ask_again(struct intake *in, struct seen *s, uint64_t start, uint64_t end)
{
	struct seen_addr *addr, *next;
	int err = 0;

	addrs__forget_recent(s);
	HASH_ITER (hh, s->addrs, addr, next) {
		if (!frame__is_within(addr->key, start, end))
			continue;
		HASH_DEL(s->addrs, addr);
		free(addr);
	}
	for (size_t i = 0; !err && i < s->n_sites; i++)
		if (s->site_v[i]->addr >= start && s->site_v[i]->addr <= end)
			err = name__site_again(in, s, s->site_v[i]);
	return err;
}

int intake__retaken(struct intake *in, pid_t pid, uint64_t start, uint64_t end)
{
	const struct intake_input input = {.kind = TI_RETAKEN, .pid = pid, .a = start, .b = end};
	struct seen *s = intake__find(in, pid);
	int err = in->closed ? -EINVAL : s ? 0 : -ENOENT;

	if (!err)
		err = ask_again(in, s, start, end);
	return tap__report(in, err, &input);
}

static void fit(struct evs *evs)
{
	struct ev *smaller = NULL;

	if (!evs->n) {
		free(evs->v);
		memset(evs, 0, sizeof(*evs));
		return;
	}
	if (evs->cap > evs->n)
		smaller = realloc(evs->v, evs->n * sizeof(*evs->v));
	if (!smaller)
		return;
	evs->v = smaller;
	evs->cap = evs->n;
}

void seen__fit(struct seen_thread *th)
{
	fit(&th->samples);
	fit(&th->offs);
	fit(&th->calls);
}

static void drop(struct intake *in, struct seen *s, struct seen_thread *th)
{
	struct seen_thread *newest;

	s->free_numbers[s->n_free_numbers++] = th->no;
	HASH_FIND_INT(s->threads, &th->tid, newest);
	if (newest == th)
		HASH_DEL(s->threads, th);
	s->n_threads--;
	in->n_records -= th->samples.n + th->offs.n + th->calls.n;
	free(th->samples.v);
	free(th->offs.v);
	free(th->calls.v);
	free(th->final);
	free(th->before);
	free(th);
}

int seen__drop_threads(struct intake *in, struct seen *s,
		       int (*drops)(void *ctx, struct seen_thread *th), void *ctx)
{
	struct seen_thread **link = &s->thread_list, *th;

	while ((th = *link)) {
		int err = drops(ctx, th);

		if (err > 0)
			err = ARRAY_RESERVE(s->free_numbers, s->free_numbers_cap,
					    s->n_free_numbers + 1, SEEN_MAX_THREADS);
		else if (!err)
			err = 1;
		if (err < 0)
			return err;
		if (err) {
			link = &th->next;
			continue;
		}
		*link = th->next;
		drop(in, s, th);
	}
	return 0;
}

void seen__made(struct intake *in, struct seen *s)
{
	for (struct seen_thread *th = s->thread_list; th; th = th->next) {
		seen__forget(in, th, UINT64_MAX);
		seen__fit(th);
	}
	seen__forget_allocs(in, s, UINT64_MAX);
	addrs__free(s);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls: the safe calls of a target, one row for each call site, from the kernel's counters. */
#include "private.h"

int input__site_counters(struct timeline *tl, const struct wire_site_key *key,
			 const struct wire_site *site)
{
	struct target_state *tg = tl__find(tl, (pid_t)key->tgid);
	struct site_counters *entry;
	struct wire_site_key clean = *key;
	struct site *named;
	int err;

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	clean.flags &= WIRE_CALL_INTERRUPTIBLE;
	HASH_FIND(hh, tg->counters, &clean, sizeof(clean), entry);
	if (entry) {
		entry->value = *site;
		return 0;
	}
	/* Named now, while the process is there. */
	err = name__site(tl, tg, clean.site, &named);
	if (err)
		return err;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = clean;
	entry->value = *site;
	HASH_ADD(hh, tg->counters, key, sizeof(entry->key), entry);
	if (!entry->hh.tbl) {
		free(entry);
		return -ENOMEM;
	}
	return 0;
}

/* ── calls open at either end ────────────────────────────────────────────────────────────── */

static void count_open_at_end(struct target_state *tg, const struct thread *th, uint64_t end)
{
	for (uint32_t i = 0; i < th->final->depth; i++) {
		const struct wire_open *open = &th->final->open[i];
		int flag = open->flags & WIRE_CALL_INTERRUPTIBLE;
		uint64_t start = MAX(open->start_ns, tg->pub.attach_ns);
		struct site *site;

		HASH_FIND(hh, tg->sites, &open->site, sizeof(open->site), site);
		if (!site)
			continue;
		site->open_at_end[flag]++;
		site->open_wall_ns[flag] += end > start ? end - start : 0;
	}
}

/* The snapshot does not say whether a call is interruptible; the site's counters do. */
static int flag_of(const struct target_state *tg, const struct site *site)
{
	struct wire_site_key key = {.site = site->addr,
				    .tgid = (uint32_t)tg->pub.pid,
				    .flags = WIRE_CALL_INTERRUPTIBLE};
	struct site_counters *entry;

	HASH_FIND(hh, tg->counters, &key, sizeof(key), entry);
	return entry ? 1 : 0;
}

/* One that was open at the attach, and until the thread's end or the session's. */
static void count_never_left(struct target_state *tg, const struct thread *th, uint64_t end)
{
	struct site *site = th->at_start.site ? tg->site_v[th->at_start.site - 1] : NULL;

	if (site && end > tg->pub.attach_ns)
		site->open_wall_ns[flag_of(tg, site)] += end - tg->pub.attach_ns;
}

/*
 * Whether the call that the snapshot at the attach found was there before the probes, which come on
 * somewhat earlier. One that was has a record of its own when it ends; the kernel has seen others
 * begin.
 */
static bool was_before(const struct target_state *tg, const struct thread *th)
{
	const struct site *site;

	if (!th->has_start || th->at_start.where != WIRE_WHERE_SAFE_CALL || !th->at_start.site)
		return false;
	/* its probes were there before its first instruction */
	if (!tg->pub.attach_took_ns)
		return false;
	if (th->ended_before_call || th->began_same_call)
		return th->ended_before_call;
	site = tg->site_v[th->at_start.site - 1];
	for (uint32_t i = 0; th->has_final && i < MIN(th->final->depth, (uint32_t)WIRE_OPEN_MAX);
	     i++)
		if (th->final->open[i].site == site->addr)
			return false;
	return true;
}

/*
 * The snapshot at the end finds the thread in a call, and the kernel knows of none: it has seen all
 * that began since the probes were on, unless they were off while the thread ran.
 */
static bool is_open_at_end(const struct thread *th)
{
	bool known = th->has_final && th->final->epoch;

	return th->has_end && th->at_end.where == WIRE_WHERE_SAFE_CALL && th->at_end.site &&
	       (!known || th->in_first_call);
}

static void count_unseen_begin(struct target_state *tg, const struct thread *th, uint64_t end)
{
	struct site *site = tg->site_v[th->at_end.site - 1];
	int flag = flag_of(tg, site);

	site->open_at_end[flag]++;
	/* what was seen of it is counted by the first snapshot's */
	if (th->in_first_call)
		return;
	/* Without any event since the attach it is still the same call. */
	if (!th->has_final && th->has_start && th->at_start.site == th->at_end.site && !th->done &&
	    !th->offs.n && !th->calls.n)
		count_never_left(tg, th, end);
	else if (th->has_final && th->final->off_since_ns &&
		 th->final_off.where == WIRE_WHERE_SAFE_CALL && end > th->final->off_since_ns)
		/* it has slept in it since then, at least */
		site->open_wall_ns[flag] += end - MAX(th->final->off_since_ns, tg->pub.attach_ns);
}

static void count_open(struct target_state *tg, uint64_t end)
{
	for (const struct thread *th = tg->thread_list; th; th = th->next) {
		struct site *site = NULL;

		if (was_before(tg, th)) {
			site = tg->site_v[th->at_start.site - 1];
			site->open_at_start[flag_of(tg, site)]++;
		}
		if (th->in_first_call)
			count_never_left(tg, th, th->end_ns ? MIN(th->end_ns, end) : end);
		if (th->end_ns)
			continue;
		if (th->has_final && th->final->depth)
			count_open_at_end(tg, th, end);
		else if (is_open_at_end(th))
			count_unseen_begin(tg, th, end);
	}
}

/* ── rows ────────────────────────────────────────────────────────────────────────────────── */

static void fill_counters(struct tl_call *call, const struct wire_site *v)
{
	uint64_t off = MIN(v->wall_ns, v->blocked_ns);
	double e50 = 0, e99 = 0;

	off += MIN(v->wall_ns - off, v->runnable_ns);
	call->calls = v->calls;
	call->wall_ns = v->wall_ns;
	call->handover_ns = v->handover_ns;
	call->blocked_ns = v->blocked_ns;
	call->cpu_ns = v->wall_ns - off;
	call->cap_wait_ns = v->cap_wait_ns;
	call->abandoned = v->abandoned;
	if (!v->calls)
		return;
	call->min_ns = v->min_ns;
	call->max_ns = v->max_ns;
	call->p50_ns = hist__quantile(v->hist, 0.50, v->min_ns, v->max_ns, &e50);
	call->p99_ns = hist__quantile(v->hist, 0.99, v->min_ns, v->max_ns, &e99);
	call->quantile_error = MAX(e50, e99);
}

static void add_row(struct target_state *tg, const struct site *site, int flag)
{
	struct wire_site_key key = {.site = site->addr,
				    .tgid = (uint32_t)tg->pub.pid,
				    .flags = flag ? WIRE_CALL_INTERRUPTIBLE : 0};
	struct tl_call *call = &tg->calls[tg->pub.n_calls];
	struct site_counters *entry;

	HASH_FIND(hh, tg->counters, &key, sizeof(key), entry);
	if (!entry && !site->open_at_start[flag] && !site->open_at_end[flag])
		return;
	*call = (struct tl_call){
		.function = site->function_name,
		.library = site->library,
		.caller = site->caller_name,
		.caller_approximate = site->caller_approximate,
		.site = site->place,
		.interruptible = flag,
		.min_ns = UINT64_MAX,
		.p50_ns = UINT64_MAX,
		.p99_ns = UINT64_MAX,
		.max_ns = UINT64_MAX,
		.open_at_start = site->open_at_start[flag],
		.open_at_end = site->open_at_end[flag] + (entry ? entry->value.open_at_exit : 0),
		.open_wall_ns = site->open_wall_ns[flag],
		.exact = true,
		.observed_share = 1.0,
		.called_back = site->called_back,
	};
	if (entry)
		fill_counters(call, &entry->value);
	tg->pub.n_calls++;
}

static int by_wall(const void *pa, const void *pb)
{
	const struct tl_call *a = pa, *b = pb;
	int diff;

	if (a->wall_ns != b->wall_ns)
		return a->wall_ns < b->wall_ns ? 1 : -1;
	if (a->open_wall_ns != b->open_wall_ns)
		return a->open_wall_ns < b->open_wall_ns ? 1 : -1;
	diff = strcmp(a->function, b->function);
	return diff ? diff : strcmp(a->site, b->site);
}

int calls__build(struct timeline *tl, struct target_state *tg, uint64_t session_end)
{
	(void)tl;
	count_open(tg, session_end);
	tg->calls = calloc(2 * tg->n_sites + 1, sizeof(*tg->calls));
	if (!tg->calls)
		return -ENOMEM;
	for (size_t i = 0; i < tg->n_sites; i++) {
		add_row(tg, tg->site_v[i], 0);
		add_row(tg, tg->site_v[i], 1);
	}
	qsort(tg->calls, tg->pub.n_calls, sizeof(*tg->calls), by_wall);
	tg->pub.calls = tg->calls;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_calls: safe calls that are in no counters. The kernel's counters are read at the end of a
 * session or process; if a capture ends earlier, its calls are those that have records.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "hist.bpf.h"
#include "replay_priv.h"

#define MAX_SITES 65536

/* A call site; the key is that of its counters. */
struct counted_site {
	UT_hash_handle hh;
	struct wire_site_key key;
	struct wire_site value; /* as last read */
	struct wire_site since; /* from records alone, for calls that ended later */
	uint64_t read_ns;
};

static int find(struct replay *r, const struct wire_site_key *key, struct counted_site **ret_site)
{
	struct wire_site_key clean = *key;
	struct counted_site *site;

	clean.flags &= WIRE_CALL_INTERRUPTIBLE;
	HASH_FIND(hh, r->sites, &clean, sizeof(clean), site);
	*ret_site = site;
	if (site)
		return 0;
	if (HASH_COUNT(r->sites) >= MAX_SITES)
		return -E2BIG;
	site = calloc(1, sizeof(*site));
	if (!site)
		return -ENOMEM;
	site->key = clean;
	*ret_site = site;
	return HASH_INSERT(r->sites, key, sizeof(site->key), site);
}

static void count(struct wire_site *sums, const struct wire_call *rec)
{
	uint64_t handover = MIN(rec->handover_ns, rec->h.ns - rec->start_ns);
	uint64_t wall = rec->h.ns - rec->start_ns - handover;

	sums->min_ns = sums->calls ? MIN(sums->min_ns, wall) : wall;
	sums->max_ns = MAX(sums->max_ns, wall);
	sums->calls++;
	sums->wall_ns += wall;
	sums->handover_ns += handover;
	sums->blocked_ns += rec->blocked_ns;
	sums->runnable_ns += rec->runnable_ns;
	sums->hist[hist_slot(wall)]++;
}

int replay__call(struct replay *r, const struct intake_input *in)
{
	struct wire_site_key key = {0};
	struct counted_site *site;
	struct wire_call rec;
	int err;

	if (in->size < sizeof(rec))
		return -EBADMSG;
	memcpy(&rec, in->data, sizeof(rec));
	/* the kernel side does not count a call whose site it did not see */
	if (rec.flags & WIRE_CALL_UNMATCHED || rec.start_ns > rec.h.ns)
		return 0;
	key.site = rec.site;
	key.tgid = rec.h.tgid;
	key.flags = rec.flags & WIRE_CALL_INTERRUPTIBLE;
	err = find(r, &key, &site);
	if (!err && rec.h.ns > site->read_ns)
		count(&site->since, &rec);
	return err == -ENOMEM ? err : 0;
}

int replay__counters(struct replay *r, const struct wire_site_key *key,
		     const struct wire_site *value, uint64_t at_ns)
{
	struct counted_site *site;
	int err = find(r, key, &site);

	if (err)
		return err == -ENOMEM ? err : 0;
	site->value = *value;
	site->since = (struct wire_site){0};
	/* records of calls that ended by then may come later */
	site->read_ns = at_ns ?: r->last_ns;
	return 0;
}

void replay__free_calls(struct replay *r)
{
	HASH_FREE(r->sites);
}

static void add(struct wire_site *to, const struct wire_site *since)
{
	to->min_ns = to->calls ? MIN(to->min_ns, since->min_ns) : since->min_ns;
	to->max_ns = MAX(to->max_ns, since->max_ns);
	to->calls += since->calls;
	to->wall_ns += since->wall_ns;
	to->handover_ns += since->handover_ns;
	to->blocked_ns += since->blocked_ns;
	to->runnable_ns += since->runnable_ns;
	for (unsigned i = 0; i < WIRE_HIST_SLOTS; i++)
		to->hist[i] += since->hist[i];
}

static int count_site(struct replay *r, struct counted_site *site)
{
	int err;

	if (!site->since.calls)
		return 0;
	add(&site->value, &site->since);
	err = intake__site_counters(r->in, &site->key, &site->value, 0);
	/* what is refused stays unknown, as if it were not there */
	return err == -ENOMEM ? err : 0;
}

int replay__count_calls(struct replay *r)
{
	struct counted_site *site, *next;
	int err = 0;

	intake__calls_uncounted(r->in);
	HASH_ITER (hh, r->sites, site, next)
		if (!err)
			err = count_site(r, site);
	return err;
}

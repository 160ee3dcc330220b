/* SPDX-License-Identifier: GPL-2.0-or-later */
/* feed: passes kernel-side data to the intake, and counts what it refuses. */
#include <errno.h>
#include <stdlib.h>

#include "session_priv.h"

struct feed {
	struct intake *in;
	uint64_t bad_records;
	bool lost_some; /* since the last cut */
};

int feed__new(struct intake *in, struct feed **ret_feed)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return -ENOMEM;
	feed->in = in;
	*ret_feed = feed;
	return 0;
}

void feed__free(struct feed *feed)
{
	free(feed);
}

void feed__failed(struct feed *feed)
{
	feed->lost_some = true;
}

void feed__record(struct feed *feed, const void *record, size_t size)
{
	int err = intake__record(feed->in, record, size);

	feed->bad_records += err == -EBADMSG;
	feed->lost_some |= err == -EBADMSG || err == -ENOMEM;
}

int feed__site(void *ctx, const struct wire_site_key *key, const struct wire_site *site)
{
	struct feed *feed = ctx;
	int err = intake__site_counters(feed->in, key, site, time__monotonic_ns());

	return err == -ENOMEM ? err : 0;
}

bool feed__lost_some(const struct feed *feed)
{
	return feed->lost_some;
}

void feed__cut(struct feed *feed)
{
	feed->lost_some = false;
}

uint64_t feed__bad_records(const struct feed *feed)
{
	return feed->bad_records;
}

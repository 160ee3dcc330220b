/* SPDX-License-Identifier: GPL-2.0-or-later */
/* feed: what the timeline takes from the kernel side, and what it refuses. */
#include <errno.h>
#include <stdlib.h>

#include "session_priv.h"

struct feed {
	struct timeline *tl;
	int err; /* the first one */
	uint64_t bad_records;
};

int feed__new(struct timeline *tl, struct feed **ret_feed)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (!feed)
		return -ENOMEM;
	feed->tl = tl;
	*ret_feed = feed;
	return 0;
}

void feed__free(struct feed *feed)
{
	free(feed);
}

void feed__failed(struct feed *feed, int err)
{
	if (!feed->err)
		feed->err = err;
}

void feed__record(struct feed *feed, const void *record, size_t size)
{
	int err = timeline__record(feed->tl, record, size);

	if (err == -EBADMSG)
		feed->bad_records++;
	else if (err == -ENOMEM)
		feed__failed(feed, err);
}

int feed__site(void *ctx, const struct wire_site_key *key, const struct wire_site *site)
{
	struct feed *feed = ctx;
	int err = timeline__site_counters(feed->tl, key, site);

	return err == -ENOMEM ? err : 0;
}

int feed__error(const struct feed *feed)
{
	return feed->err;
}

uint64_t feed__bad_records(const struct feed *feed)
{
	return feed->bad_records;
}

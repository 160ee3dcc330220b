/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The line on a terminal that shows how far the work has come. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"

#define PROGRESS_EVERY_NS 500000000ULL

void progress__init(struct progress *p, bool quiet)
{
	memset(p, 0, sizeof(*p));
	p->shown = !quiet && isatty(STDERR_FILENO);
}

bool progress__shown(const struct progress *p)
{
	return p->shown;
}

bool progress__due(const struct progress *p, uint64_t now_ns)
{
	return p->shown && now_ns - p->last_ns >= PROGRESS_EVERY_NS;
}

void progress__update(struct progress *p, uint64_t now_ns, uint64_t elapsed_ns,
		      uint64_t duration_ns, uint64_t samples, uint64_t probe_hits, uint64_t lost)
{
	if (!progress__due(p, now_ns))
		return;
	p->last_ns = now_ns;
	p->on_screen = true;
	fprintf(stderr, "\r\033[K%.1f s", (double)elapsed_ns / 1e9);
	if (duration_ns)
		fprintf(stderr, " of %.1f", (double)duration_ns / 1e9);
	/* each call hits two probes; the timer's own hits are few */
	fprintf(stderr, " · %" PRIu64 " samples · %" PRIu64 " calls", samples, probe_hits / 2);
	if (lost)
		fprintf(stderr, " · %" PRIu64 " lost", lost);
	fflush(stderr);
}

void progress__bytes(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total)
{
	char read[32], all[32];

	if (!p->last_ns)
		p->last_ns = now_ns;
	if (!progress__due(p, now_ns))
		return;
	p->last_ns = now_ns;
	p->on_screen = true;
	human__bytes(read, sizeof(read), done);
	human__bytes(all, sizeof(all), total);
	fprintf(stderr, "\r\033[K%s of %s", read, all);
	fflush(stderr);
}

void progress__end(struct progress *p)
{
	if (!p->on_screen)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->on_screen = false;
}

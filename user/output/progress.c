/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The progress line on a terminal. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "output.h"

#define PROGRESS_EVERY_NS 500000000ULL
#define PLAIN_EVERY_NS	  30000000000ULL

void progress__init(struct progress *p, bool quiet)
{
	memset(p, 0, sizeof(*p));
	p->shown = !quiet && isatty(STDERR_FILENO);
	p->plain = !quiet && !p->shown && log__level() >= LOG_LVL_VERBOSE;
	/* the first line comes after the interval as well */
	p->last_ns = p->plain ? time__monotonic_ns() : 0;
}

bool progress__shown(const struct progress *p)
{
	return p->shown || p->plain;
}

bool progress__due(const struct progress *p, uint64_t now_ns)
{
	return (p->shown && now_ns - p->last_ns >= PROGRESS_EVERY_NS) ||
	       (p->plain && now_ns - p->last_ns >= PLAIN_EVERY_NS);
}

/* Draws the line on the terminal; any message wipes it first. */
static void draw(const char *text)
{
	if (!log__has_room(false))
		return;
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
	log__set_line(*text);
}

static void show(struct progress *p, uint64_t now_ns, const char *text)
{
	p->last_ns = now_ns;
	if (p->plain) {
		log_verbose("%s", text);
		return;
	}
	p->on_screen = true;
	draw(text);
}

void progress__update(struct progress *p, uint64_t now_ns, uint64_t elapsed_ns,
		      uint64_t duration_ns, uint64_t samples, uint64_t probe_hits, uint64_t lost)
{
	char text[256];
	int len;

	if (!progress__due(p, now_ns))
		return;
	len = snprintf(text, sizeof(text), "%.1f s", (double)elapsed_ns / 1e9);
	if (duration_ns)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " of %.1f",
				(double)duration_ns / 1e9);
	/* each call hits two probes; hits of the timer's probe are few */
	len += snprintf(text + len, sizeof(text) - (size_t)len,
			" · %" PRIu64 " samples · %" PRIu64 " calls", samples, probe_hits / 2);
	if (lost)
		snprintf(text + len, sizeof(text) - (size_t)len, " · %" PRIu64 " lost", lost);
	show(p, now_ns, text);
}

void progress__bytes(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total)
{
	char text[128];

	if (!p->last_ns)
		p->last_ns = now_ns;
	if (!progress__due(p, now_ns))
		return;
	snprintf(text, sizeof(text), "%s of %s", human__bytes(done).s, human__bytes(total).s);
	show(p, now_ns, text);
}

void progress__task(bool quiet, const char *fmt, ...)
{
	char text[160] = "", safe[200];
	va_list args;

	if (quiet || !isatty(STDERR_FILENO))
		return;
	if (fmt) {
		va_start(args, fmt);
		vsnprintf(text, sizeof(text), fmt, args);
		va_end(args);
	}
	text__escape(text, strlen(text), safe, sizeof(safe));
	draw(safe);
}

void progress__end(struct progress *p)
{
	if (!p->on_screen)
		return;
	draw("");
	p->on_screen = false;
}

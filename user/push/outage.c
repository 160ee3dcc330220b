/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * outage: which failures of a server are worth a line. A server that accepts most files, but not
 * all at the first attempt, would fill the log, and so would one whose reasons alternate.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "push_priv.h"

/* An outage within AGAIN_NS of a reported one is reported only if it lasts for LONG_NS. */
#define AGAIN_NS 3600000000000ULL
#define LONG_NS	 60000000000ULL

/* Numbers in the text, such as times, sizes or ids, make no difference; the status does. */
static bool is_same(const char *a, const char *b)
{
	if (strncmp(a, b, strlen("HTTP 503")) != 0)
		return false;
	for (;;) {
		while (isdigit((unsigned char)*a))
			a++;
		while (isdigit((unsigned char)*b))
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

bool outage__is_news(struct outage *o, unsigned failed, const char *why, uint64_t now)
{
	uint64_t since = now - o->reported_ns;
	char text[sizeof(o->why)];

	/* as much of it as is kept */
	snprintf(text, sizeof(text), "%s", why);
	if (failed == 1)
		o->began_ns = now;
	if (o->reported) {
		if (is_same(text, o->why) || since < (o->changed ? AGAIN_NS : LONG_NS))
			return false;
		o->changed = true;
	} else {
		if (o->reported_ns && since < AGAIN_NS && now - o->began_ns < LONG_NS)
			return false;
		o->changed = false;
	}
	o->reported = true;
	o->reported_ns = now;
	snprintf(o->why, sizeof(o->why), "%s", text);
	return true;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * labels: the query of a request to Pyroscope's /ingest: which process the profile is of, and of
 * what time. A process is an application with labels: name{label=value,label=value}.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "push_priv.h"

#define LABEL_MAX 200

/* RFC 3986, section 2.3: all but unreserved characters are percent-encoded. */
static void put_encoded(struct buf *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_' || c == '~';

		if (plain)
			buf__addc(to, c);
		else
			buf__addf(to, "%%%02X", (unsigned char)c);
	}
}

/* There are no quotes or escapes between the braces: characters that would end a value become
 * `_`. A long value is cut between two characters: a server refuses what is not UTF-8. */
static void put_value(struct buf *to, const char *value)
{
	char safe[LABEL_MAX + 1];

	text__escape(value, strlen(value), safe, sizeof(safe));
	for (char *c = safe; *c; c++)
		if (strchr(",={}\"", *c))
			*c = '_';
	put_encoded(to, safe, strlen(safe));
}

static void put_label(struct buf *to, const char *name, const char *value, bool *first)
{
	if (!value || !*value)
		return;
	put_encoded(to, *first ? "{" : ",", 1);
	*first = false;
	put_encoded(to, name, strlen(name));
	put_encoded(to, "=", 1);
	put_value(to, value);
}

int push_labels__query(const struct picture *pic, const struct pic_target *target,
		       const struct export_opts *opts, struct buf *ret_query)
{
	const struct pic_session *session = picture__session(pic);
	uint64_t took = session->end_ns - MIN(session->start_ns, session->end_ns);
	uint64_t until = session->start_unix_ns + took;
	const char *program = path__base(target->exe ? target->exe : "");
	char pid[16];
	bool first = true;

	snprintf(pid, sizeof(pid), "%d", (int)target->pid);
	buf__adds(ret_query, "name=");
	put_value(ret_query, pic_target__program(target).s);
	put_label(ret_query, "host", opts->host_name, &first);
	put_label(ret_query, "pid", pid, &first);
	put_label(ret_query, "exe", program, &first);
	put_label(ret_query, "ghc_version", target->ghc_version, &first);
	put_label(ret_query, "service", target->service, &first);
	put_label(ret_query, "container", target->container, &first);
	put_label(ret_query, "pod", target->pod, &first);
	put_encoded(ret_query, "}", 1);
	/* whole seconds that enclose the session */
	buf__addf(ret_query, "&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof",
		  session->start_unix_ns / 1000000000, (until + 999999999) / 1000000000);
	return ret_query->err;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* http: the responses. Each closes its connection, so that nobody can keep one. */
#include <microhttpd.h>
#include <string.h>

#include "base/base.h"
#include "http/reply.h"
#include "server_priv.h"

/* How long a text may still be served once it is not fresh any more. */
#define TOO_OLD_NS 60000000000ULL

static const struct reply_header closes = {"Connection", "close"};

static enum http_verdict verdict_of(enum MHD_Result result)
{
	return result == MHD_YES ? HTTP_ANSWERED : HTTP_FAILED;
}

static enum http_verdict say(struct MHD_Connection *connection, unsigned status, const char *line)
{
	return verdict_of(reply__line(connection, status, line, &closes, 1));
}

struct MHD_Response *http__text(int fd, size_t size)
{
	static const struct reply_header type = {"Content-Type",
						 "text/plain; version=0.0.4; charset=utf-8"};
	struct MHD_Response *r = reply__of_file(fd, size);

	/* the text is useful even without its headers */
	if (r) {
		reply__add_headers(r, &type, 1);
		reply__add_headers(r, &closes, 1);
	}
	return r;
}

static enum http_verdict answer_metrics(struct served *s, struct MHD_Connection *connection,
					bool waited)
{
	uint64_t now = time__monotonic_ns();

	if (!waited && (!s->text || now - s->text_ns >= s->fresh_ns)) {
		s->want = true;
		return HTTP_LATER;
	}
	/* if reading takes long, the daemon may not make a newer text for minutes */
	if (!s->text || now - s->text_ns >= s->fresh_ns + TOO_OLD_NS)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no figures yet\n");
	return verdict_of(MHD_queue_response(connection, MHD_HTTP_OK, s->text));
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static bool turns(const struct served *s)
{
	return s->beat_ns && time__monotonic_ns() - s->beat_ns < SERVER_STALLED_NS;
}

enum http_verdict http__answer(struct served *s, struct MHD_Connection *connection,
			       const char *method, const char *path, bool waited)
{
	if (!reply__reads(method))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, REPLY_READS_ONLY);
	if (!strcmp(path, "/metrics"))
		return answer_metrics(s, connection, waited);
	if (!strcmp(path, "/healthz"))
		return turns(s) ? say(connection, MHD_HTTP_OK, "ok\n")
				: say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				      "the session's loop is stalled\n");
	if (!strcmp(path, "/readyz"))
		return turns(s) && s->ready ? say(connection, MHD_HTTP_OK, "ok\n")
					    : say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
						  "nothing is being profiled\n");
	return say(connection, MHD_HTTP_NOT_FOUND,
		   "not found; available are /metrics, /healthz and /readyz\n");
}

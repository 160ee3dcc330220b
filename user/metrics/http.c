/* SPDX-License-Identifier: GPL-2.0-or-later */
/* http: what is answered. Every answer ends its connection, so that nobody keeps one. */
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "server_priv.h"

/* How much longer a text is shown than it is fresh: after that nobody should see it. */
#define TOO_OLD_NS 60000000000ULL

static enum http_verdict queue(struct MHD_Connection *connection, unsigned status,
			       struct MHD_Response *response)
{
	return MHD_queue_response(connection, status, response) == MHD_YES ? HTTP_ANSWERED
									   : HTTP_FAILED;
}

/* A line for people. */
static enum http_verdict say(struct MHD_Connection *connection, unsigned status, const char *line)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(line), (void *)(size_t)line,
								 MHD_RESPMEM_PERSISTENT);
	enum http_verdict verdict = HTTP_FAILED;

	if (!r)
		return HTTP_FAILED;
	if (MHD_add_response_header(r, "Content-Type", "text/plain; charset=utf-8") == MHD_YES &&
	    MHD_add_response_header(r, "Connection", "close") == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(r, "Allow", "GET, HEAD") == MHD_YES))
		verdict = queue(connection, status, r);
	MHD_destroy_response(r);
	return verdict;
}

/* ── the text ────────────────────────────────────────────────────────────────────────────── */

struct mapping {
	void *data;
	size_t size;
};

static void unmap(void *ctx)
{
	struct mapping *m = ctx;

	munmap(m->data, m->size);
	free(m);
}

struct MHD_Response *http__text(void *data, size_t size)
{
	struct mapping *m = malloc(sizeof(*m));
	struct MHD_Response *r;

	if (!m)
		return NULL;
	*m = (struct mapping){data, size};
	r = MHD_create_response_from_buffer_with_free_callback_cls(size, data, unmap, m);
	if (!r) {
		free(m);
		return NULL;
	}
	/* without the headers it is still the text */
	MHD_add_response_header(r, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	MHD_add_response_header(r, "Connection", "close");
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
	/* where reading takes long the daemon makes no newer one for minutes */
	if (!s->text || now - s->text_ns >= s->fresh_ns + TOO_OLD_NS)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no figures yet\n");
	return queue(connection, MHD_HTTP_OK, s->text);
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static bool turns(const struct served *s)
{
	return s->beat_ns && time__monotonic_ns() - s->beat_ns < SERVER_STALLED_NS;
}

enum http_verdict http__answer(struct served *s, struct MHD_Connection *connection,
			       const char *method, const char *path, bool waited)
{
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD only\n");
	if (!strcmp(path, "/metrics"))
		return answer_metrics(s, connection, waited);
	if (!strcmp(path, "/healthz"))
		return turns(s) ? say(connection, MHD_HTTP_OK, "ok\n")
				: say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				      "the session's loop does not turn\n");
	if (!strcmp(path, "/readyz"))
		return turns(s) && s->ready ? say(connection, MHD_HTTP_OK, "ok\n")
					    : say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
						  "nothing is profiled now\n");
	return say(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz\n");
}

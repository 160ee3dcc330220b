/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that speaks HTTP: one thread with one poll() for libmicrohttpd and the daemon's
 * messages.
 */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "base/pass.h"
#include "http/reply.h"
#include "http/waits.h"
#include "show_priv.h"

/* Memory of a connection: for the request's line and headers, and for libmicrohttpd's own needs. */
#define CONNECTION_BYTES 16384
#define TURN_MS		 1000
#define MAX_FDS		 (SHOW_CONNECTIONS + 8)

struct serve {
	const struct show_start *start;
	int channel;
	struct MHD_Daemon *mhd;
	struct MHD_Response *page; /* NULL: none yet */
	bool over;
};

/* ── answers ─────────────────────────────────────────────────────────────────────────────── */

/* The page is not cached, and cannot be embedded in or requested from other sites. */
static const struct reply_header headers[] = {
	{"Cache-Control", "no-store"},
	{"Referrer-Policy", "no-referrer"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
};

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *line)
{
	return reply__line(connection, status, line, headers, ARRAY_SIZE(headers));
}

/* Compares in constant time, so that timing reveals nothing about the token. */
static bool is_path(const char *path, const char *want)
{
	size_t len = strlen(want);
	unsigned char differ = 0;

	if (strlen(path) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(path[i] ^ want[i]);
	return !differ;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **unused)
{
	struct serve *s = ctx;

	(void)version;
	(void)body;
	(void)unused;
	/* the answer is queued after the headers: a body is never read */
	*body_size = 0;
	if (!reply__reads(method))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, REPLY_READS_ONLY);
	if (!is_path(path, s->start->path))
		return say(connection, MHD_HTTP_NOT_FOUND, "nothing here\n");
	if (!s->page)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			   "the session is still running\n");
	return MHD_queue_response(connection, MHD_HTTP_OK, s->page);
}

/* ── the page ────────────────────────────────────────────────────────────────────────────── */

static struct MHD_Response *page_of(int fd, size_t size)
{
	static const struct reply_header type = {"Content-Type", "text/html; charset=utf-8"};
	struct MHD_Response *r = reply__of_file(fd, size);

	if (!r)
		return NULL;
	if (!reply__add_headers(r, &type, 1) ||
	    !reply__add_headers(r, headers, ARRAY_SIZE(headers))) {
		MHD_destroy_response(r);
		return NULL;
	}
	return r;
}

/* False: there are no more messages. */
static bool take_message(struct serve *s)
{
	struct show_message msg = {0};
	struct MHD_Response *page = NULL;
	int fd, err = pass__take(s->channel, &msg, sizeof(msg), MSG_DONTWAIT, &fd);

	if (err == -EBADMSG)
		return true;
	s->over = err == -EPIPE;
	if (err)
		return false;
	if (fd >= 0 && msg.size && msg.size <= SHOW_MAX_PAGE)
		page = page_of(fd, (size_t)msg.size);
	if (page && s->page)
		MHD_destroy_response(s->page);
	if (page)
		s->page = page;
	fd__close(&fd);
	return true;
}

/* ── the loop ────────────────────────────────────────────────────────────────────────────── */

static int turn(struct serve *s)
{
	struct pollfd fds[MAX_FDS + 1] = {{.fd = s->channel, .events = POLLIN}};
	int ms = TURN_MS, err;
	size_t n;

	err = waits__get(s->mhd, fds + 1, MAX_FDS, &ms, &n);
	if (err)
		return err;
	if (poll(fds, n + 1, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	while (take_message(s))
		;
	return waits__run(s->mhd, fds + 1, n);
}

void show_serve__run(void *ctx, int in, int out)
{
	struct serve s = {.start = ctx, .channel = in};
	int err = 0;

	(void)out;
	s.mhd = MHD_start_daemon(
		MHD_NO_FLAG, 0, NULL, NULL, on_request, &s, MHD_OPTION_LISTEN_SOCKET,
		s.start->listen_fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)SHOW_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SHOW_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!s.mhd)
		return;
	while (!s.over && !err)
		err = turn(&s);
}

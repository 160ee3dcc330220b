/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve: the process that speaks HTTP. It accepts connections itself, so that it decides which one
 * to close when there are too many; libmicrohttpd does the rest. One thread, one poll().
 */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "http/waits.h"
#include "metrics.h"
#include "server_priv.h"

/* How long the daemon has to deliver a newer text; after that the current one is served. */
#define WAIT_NS 3000000000ULL
/* When the daemon is asked again: the pipe may have been full. */
#define ASK_AGAIN_NS 1000000000ULL
#define TURN_MS	     1000
/* How long a connection is safe from being closed for a new one: a client that sends its request
 * at once is served, however many others there are. */
#define GRACE_NS 200000000ULL
/* For a request's line and headers, and libmicrohttpd's own data. */
#define CONNECTION_BYTES 8192
/* The most connections accepted in a turn, so that others are served in between. */
#define ACCEPTS 16
/* libmicrohttpd's own descriptors, and those that come with messages. */
#define OTHER_FDS 8
#define MAX_FDS	  (SERVER_CONNECTIONS + OTHER_FDS)

struct client {
	int fd; /* -1: none */
	uint64_t since_ns;
	struct MHD_Connection *waiting; /* waiting for a newer text; NULL: not waiting */
	bool waited;
};

struct serve {
	int listen_fd, in, out;
	struct MHD_Daemon *mhd;
	struct client clients[SERVER_CONNECTIONS];
	struct served served;
	uint64_t asked_ns; /* when the daemon was last asked; 0: not since its last text */
	bool over;
};

/* ── clients ─────────────────────────────────────────────────────────────────────────────── */

static struct client *find(struct serve *s, int fd)
{
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++)
		if (s->clients[i].fd == fd)
			return &s->clients[i];
	return NULL;
}

static struct client *client_of(struct serve *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? find(s, info->connect_fd) : NULL;
}

static void wake(struct client *c)
{
	struct MHD_Connection *waiting = c->waiting;

	c->waiting = NULL;
	if (waiting)
		MHD_resume_connection(waiting);
}

/* libmicrohttpd notices that the connection is closed, and releases it. */
static void hang_up(struct client *c)
{
	shutdown(c->fd, SHUT_RDWR);
	wake(c);
}

/* Closes connections whose time is over. */
static void hang_up_late(struct serve *s, uint64_t now)
{
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0)
			continue;
		if (now - c->since_ns >= SERVER_CONNECTION_MS * 1000000ULL)
			hang_up(c);
		else if (c->waiting && now - c->since_ns >= WAIT_NS)
			wake(c);
	}
}

/* NULL: there is room for another one. */
static struct client *oldest(struct serve *s)
{
	struct client *c = &s->clients[0];

	if (find(s, -1))
		return NULL;
	for (size_t i = 1; i < SERVER_CONNECTIONS; i++)
		if (s->clients[i].since_ns < c->since_ns)
			c = &s->clients[i];
	return c;
}

/* How long to accept nobody, because even the oldest client is still in its grace period. 0:
 * accept now. */
static int ms_until_room(struct serve *s, uint64_t now)
{
	const struct client *c = oldest(s);

	return c && now - c->since_ns < GRACE_NS
		       ? (int)((GRACE_NS - (now - c->since_ns)) / 1000000) + 1
		       : 0;
}

static void take_clients(struct serve *s, uint64_t now)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct client *c = find(s, -1), *old = oldest(s);
		struct sockaddr_storage addr = {0};
		socklen_t len = sizeof(addr);
		int fd;

		/*
		 * Hangs up on the oldest; its slot is free once libmicrohttpd has noticed. If the
		 * last slot was taken in this turn, the oldest may still be in its grace period.
		 */
		if (old) {
			if (!i)
				hang_up(old);
			return;
		}
		fd = accept4(s->listen_fd, (struct sockaddr *)&addr, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		*c = (struct client){.fd = fd, .since_ns = now};
		/* on failure, MHD_add_connection() has closed the descriptor */
		if (MHD_add_connection(s->mhd, fd, (struct sockaddr *)&addr, len) != MHD_YES)
			c->fd = -1;
	}
}

/* ── libmicrohttpd's callbacks ───────────────────────────────────────────────────────────── */

static void on_connection(void *ctx, struct MHD_Connection *connection, void **unused,
			  enum MHD_ConnectionNotificationCode code)
{
	struct serve *s = ctx;
	struct client *c = client_of(s, connection);

	(void)unused;
	if (c && code == MHD_CONNECTION_NOTIFY_CLOSED)
		*c = (struct client){.fd = -1};
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **unused)
{
	struct serve *s = ctx;
	struct client *c = client_of(s, connection);

	(void)version;
	(void)body;
	(void)unused;
	/* responses are queued when the headers are in: bodies are never read */
	*body_size = 0;
	if (!c)
		return MHD_NO;
	switch (http__answer(&s->served, connection, method, path, c->waited)) {
	case HTTP_ANSWERED:
		return MHD_YES;
	case HTTP_LATER:
		c->waited = true;
		c->waiting = connection;
		MHD_suspend_connection(connection);
		return MHD_YES;
	case HTTP_FAILED:
		break;
	}
	return MHD_NO;
}

/* ── the daemon's messages ───────────────────────────────────────────────────────────────── */

static void wake_all(struct serve *s)
{
	for (size_t i = 0; i < SERVER_CONNECTIONS; i++)
		wake(&s->clients[i]);
}

static void take_text(struct serve *s, const struct server_message *msg, int fd)
{
	struct MHD_Response *text = NULL;

	if (msg->size && msg->size <= METRICS_MAX_TEXT)
		text = http__text(fd, msg->size);
	if (!text)
		return;
	if (s->served.text)
		MHD_destroy_response(s->served.text);
	s->served.text = text;
	s->served.text_ns = time__monotonic_ns();
	s->served.fresh_ns = msg->fresh_ns;
	s->asked_ns = 0;
	wake_all(s);
}

/* False: there is no message. */
static bool take_message(struct serve *s)
{
	struct server_message msg = {0};
	int fd, err = pass__take(s->in, &msg, sizeof(msg), MSG_DONTWAIT, &fd);

	if (err == -EBADMSG)
		return true;
	s->over = err == -EPIPE;
	if (err)
		return false;
	s->served.beat_ns = time__monotonic_ns();
	s->served.ready = msg.ready;
	if (msg.kind == SERVER_TEXT && fd >= 0)
		take_text(s, &msg, fd);
	fd__close(&fd);
	return true;
}

/* Asks the daemon for a newer text as long as somebody waits for one. */
static void pass_wish_on(struct serve *s, uint64_t now)
{
	bool wanted = s->served.want;

	for (size_t i = 0; i < SERVER_CONNECTIONS; i++)
		wanted |= s->clients[i].waiting != NULL;
	s->served.want = false;
	if (!wanted || (s->asked_ns && now - s->asked_ns < ASK_AGAIN_NS))
		return;
	s->asked_ns = now;
	/* if the pipe is full, the daemon has yet to read an earlier request */
	(void)!write(s->out, "", 1);
}

/* ── the loop ────────────────────────────────────────────────────────────────────────────── */

static int turn(struct serve *s)
{
	struct pollfd fds[MAX_FDS + 2] = {{.fd = s->in, .events = POLLIN},
					  {.fd = s->listen_fd, .events = POLLIN}};
	int full_ms = ms_until_room(s, time__monotonic_ns()), ms = TURN_MS, err;
	size_t n;

	err = waits__get(s->mhd, fds + 2, MAX_FDS, &ms, &n);
	if (err)
		return err;
	fds[1].events = full_ms ? 0 : POLLIN;
	ms = full_ms ? MIN(ms, full_ms) : ms;
	if (poll(fds, n + 2, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	while (take_message(s))
		;
	hang_up_late(s, time__monotonic_ns());
	if (fds[1].revents & POLLIN)
		take_clients(s, time__monotonic_ns());
	err = waits__run(s->mhd, fds + 2, n);
	if (!err)
		pass_wish_on(s, time__monotonic_ns());
	return err;
}

void serve__run(void *ctx, int in, int out)
{
	struct serve s = {.listen_fd = *(const int *)ctx, .in = in, .out = out};
	int err;

	for (size_t i = 0; i < SERVER_CONNECTIONS; i++)
		s.clients[i].fd = -1;
	s.mhd = MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
				 on_request, &s, MHD_OPTION_CONNECTION_LIMIT,
				 (unsigned)SERVER_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				 (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
				 on_connection, &s, MHD_OPTION_END);
	err = s.mhd ? 0 : -ENOMEM;
	/* clients must not wait when the daemon does not read */
	if (!err && fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK))
		err = -errno;
	while (!s.over && !err)
		err = turn(&s);
}

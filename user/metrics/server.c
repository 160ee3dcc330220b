/* SPDX-License-Identifier: GPL-2.0-or-later */
/* server: the daemon's side of the endpoint. */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/confine.h"
#include "metrics.h"
#include "server_priv.h"

#define BEAT_EVERY_NS 1000000000ULL
/* Room for texts still being sent to slow clients, and for the next one. */
#define SERVE_MEMORY (4ULL * METRICS_MAX_TEXT + (32U << 20))
/* The most messages read in a turn. */
#define READS 16

struct metrics_server {
	struct listener listener;
	struct confine_peer *peer;
	pid_t opener;
	uint64_t beat_ns;
	bool wanted, ready, over;
};

int metrics_server__open(const char *address, struct metrics_server **ret_server)
{
	struct metrics_server *s = calloc(1, sizeof(*s));
	struct confine how = {.name = "safescoped:http",
			      .memory = SERVE_MEMORY,
			      .cpu_s = CONFINE_NO_END,
			      .keep = CONFINE_LISTEN,
			      .user = CONFINE_NOBODY,
			      .nice = 19,
			      .more_fds = SERVER_CONNECTIONS + 16,
			      .n_fds = 1};
	int err = s ? listener__open(address, &s->listener) : -ENOMEM;

	if (err) {
		free(s);
		return err;
	}
	s->opener = getpid();
	how.fds = &s->listener.fd;
	err = confine_peer__start(&how, serve__run, &s->listener.fd, &s->peer);
	if (err) {
		log_error("--metrics %s: cannot start its process: %s", address, strerror(-err));
		metrics_server__free(s);
		return err;
	}
	log_info("metrics: %s", s->listener.shown);
	*ret_server = s;
	return 0;
}

void metrics_server__free(struct metrics_server *s)
{
	if (!s)
		return;
	confine_peer__free(s->peer);
	listener__close(&s->listener, s->opener == getpid());
	free(s);
}

pid_t metrics_server__pid(const struct metrics_server *s)
{
	return confine_peer__pid(s->peer);
}

/* ── messages ────────────────────────────────────────────────────────────────────────────── */

static int send_message(struct metrics_server *s, struct server_message *msg, int fd)
{
	msg->ready = s->ready;
	return confine_peer__send(s->peer, msg, sizeof(*msg), fd, MSG_DONTWAIT);
}

/* Reads requests for a newer text. Also detects that the serving process has ended. */
static void read_wishes(struct metrics_server *s)
{
	char byte;

	for (int i = 0; i < READS && !s->over; i++) {
		int err = confine_peer__take(s->peer, &byte, sizeof(byte));

		if (err == -EAGAIN)
			return;
		s->over |= err != 0;
		s->wanted |= !err;
	}
}

int metrics_server__turn(struct metrics_server *s, bool ready, uint64_t now_ns)
{
	struct server_message msg = {.kind = SERVER_BEAT};
	int err;

	if (s->over)
		return 0;
	read_wishes(s);
	if (s->ready == ready && now_ns - s->beat_ns < BEAT_EVERY_NS && !s->over)
		return 0;
	s->ready = ready;
	s->beat_ns = now_ns;
	err = s->over ? -EPIPE : send_message(s, &msg, -1);
	/* if the process is held up, it gets the next beat */
	if (err != -EPIPE && err != -ECONNRESET)
		return 0;
	s->over = true;
	s->wanted = false;
	/* clients are refused instead of waiting for a response that nobody will send */
	shutdown(s->listener.fd, SHUT_RDWR);
	return -EPIPE;
}

bool metrics_server__works(const struct metrics_server *s)
{
	struct pollfd p = {.fd = confine_peer__fd(s->peer)};

	return !s->over && (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR)));
}

bool metrics_server__wanted(const struct metrics_server *s)
{
	return s->wanted;
}

/* ── texts ───────────────────────────────────────────────────────────────────────────────── */

static int make_memory(const char *text, size_t len, int *ret_fd)
{
	int fd = -1, err = pass__memory("metrics", &fd);

	if (!err)
		err = pass__write(fd, text, len);
	if (!err)
		err = pass__seal(fd);
	if (err)
		fd__close(&fd);
	else
		*ret_fd = fd;
	return err;
}

int metrics_server__give(struct metrics_server *s, const char *text, size_t len, uint64_t fresh_ns)
{
	struct server_message msg = {.kind = SERVER_TEXT, .size = len, .fresh_ns = fresh_ns};
	int fd = -1, err;

	s->wanted = false;
	if (s->over || !len)
		return -EINVAL;
	err = make_memory(text, len, &fd);
	if (!err)
		err = send_message(s, &msg, fd);
	fd__close(&fd);
	return err;
}

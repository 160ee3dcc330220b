/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the daemon's side of the endpoint and the serving process. */
#ifndef SAFESCOPED_METRICS_SERVER_PRIV_H
#define SAFESCOPED_METRICS_SERVER_PRIV_H

#include <sys/types.h>

#include "server.h"

/* ── listen.c ────────────────────────────────────────────────────────────────────────────── */

struct listener {
	int fd;
	/* of a Unix socket: its directory (-1: none), its name in there, and its file */
	int dir_fd;
	char name[108];
	dev_t dev;
	ino_t ino;
	char shown[160]; /* for messages: "http://127.0.0.1:9464/metrics" */
};

/* Prints a line on failure. */
int listener__open(const char *address, struct listener *ret_listener);
/* `remove`: also stops other holders of the socket from listening, and removes its path, unless
 * something else has that path by now. */
void listener__close(struct listener *listener, bool remove);

/* ── messages ────────────────────────────────────────────────────────────────────────────── */

enum server_message_kind {
	SERVER_BEAT = 1,
	SERVER_TEXT = 2, /* with the descriptor of a sealed memfd */
};

/* From the daemon; every message also counts as a beat. In the other direction, a byte asks for
 * a newer text. */
struct server_message {
	uint32_t kind; /* enum server_message_kind */
	uint32_t ready;
	uint64_t size;	   /* SERVER_TEXT: length of the text, not 0 */
	uint64_t fresh_ns; /* SERVER_TEXT */
};

/* ── server.c ────────────────────────────────────────────────────────────────────────────── */

/* The pid of the serving process, for tests. */
pid_t metrics_server__pid(const struct metrics_server *server);

/* ── serve.c: the other process ──────────────────────────────────────────────────────────── */

/* Serves until the daemon's end of `in` is closed. Has the type of confine_peer__start()'s
 * callback; ctx: the listening socket (int). */
void serve__run(void *ctx, int in, int out);

/* ── http.c: what is answered ────────────────────────────────────────────────────────────── */

struct MHD_Connection;
struct MHD_Response;

/* The data for responses. */
struct served {
	struct MHD_Response *text; /* NULL: none yet */
	uint64_t text_ns, fresh_ns;
	uint64_t beat_ns; /* 0: none yet */
	bool ready;
	bool want; /* a newer text is wanted: set here, cleared by whoever passes that on */
};

enum http_verdict {
	HTTP_ANSWERED,
	HTTP_FAILED, /* the connection is unusable */
	HTTP_LATER,  /* a newer text was asked for: try again when it is there, or overdue */
};

/* Queues the response. `waited`: it has been put off once, and must not be again. */
enum http_verdict http__answer(struct served *served, struct MHD_Connection *connection,
			       const char *method, const char *path, bool waited);
/* A response with the text in the file; NULL: it cannot be mapped, or no memory. */
struct MHD_Response *http__text(int fd, size_t size);

#endif

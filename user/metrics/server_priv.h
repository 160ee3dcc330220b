/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon's side of the endpoint and the other process share. */
#ifndef SAFESCOPED_METRICS_SERVER_PRIV_H
#define SAFESCOPED_METRICS_SERVER_PRIV_H

#include <sys/types.h>

#include "server.h"

/* ── listen.c ────────────────────────────────────────────────────────────────────────────── */

struct listener {
	int fd;
	/* of a socket with a path: the directory (-1: none), and the name in it */
	int dir_fd;
	char name[108];
	char shown[160]; /* for people: "http://127.0.0.1:9464/metrics" */
};

/* Prints a line on failure. */
int listener__open(const char *address, struct listener *ret_listener);
/* `remove`: nobody listens there any more, whoever has it, and the path goes, too. */
void listener__close(struct listener *listener, bool remove);

/* ── messages ────────────────────────────────────────────────────────────────────────────── */

enum server_message_kind {
	SERVER_BEAT = 1,
	SERVER_TEXT = 2, /* with the descriptor of a sealed memfd */
};

/* From the daemon; each is also a beat. In the other direction a byte means that a newer text is
 * wanted. */
struct server_message {
	uint32_t kind; /* enum server_message_kind */
	uint32_t ready;
	uint64_t size;	   /* SERVER_TEXT: of the text, not 0 */
	uint64_t fresh_ns; /* SERVER_TEXT */
};

/* ── server.c ────────────────────────────────────────────────────────────────────────────── */

/* The other process; for tests. */
pid_t metrics_server__pid(const struct metrics_server *server);

/* ── serve.c: the other process ──────────────────────────────────────────────────────────── */

/* Serves until the daemon's end of `in` is closed; as confine_peer__start calls it. ctx: the
 * listening socket (int). */
void serve__run(void *ctx, int in, int out);

/* ── http.c: what is answered ────────────────────────────────────────────────────────────── */

struct MHD_Connection;
struct MHD_Response;

/* What answers are made of. */
struct served {
	struct MHD_Response *text; /* NULL: none yet */
	uint64_t text_ns, fresh_ns;
	uint64_t beat_ns; /* 0: none yet */
	bool ready;
	bool want; /* a newer text: set here, cleared by whoever passes it on */
};

enum http_verdict {
	HTTP_ANSWERED,
	HTTP_FAILED, /* the connection is of no use any more */
	HTTP_LATER,  /* a newer text was asked for: to be tried again when it is there, or not */
};

/* Queues the answer. `waited`: it has been put off once, and is not again. */
enum http_verdict http__answer(struct served *served, struct MHD_Connection *connection,
			       const char *method, const char *path, bool waited);
/* The text in a file; NULL: it cannot be mapped, or no memory. */
struct MHD_Response *http__text(int fd, size_t size);

#endif

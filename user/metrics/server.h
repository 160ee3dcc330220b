/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * server: the endpoint that Prometheus scrapes. libmicrohttpd speaks HTTP in a process without
 * rights (confine.h, CONFINE_LISTEN), which has the listening socket and nothing else of the
 * daemon; the daemon hands finished texts over, and never waits for it.
 *
 *   /metrics  the text; if it is older than the daemon allows, the daemon is asked for a newer one
 *   /healthz  200 while the session's loop turns
 *   /readyz   200 while it does and the session is attached
 *
 * Limits on clients: at most SERVER_CONNECTIONS at a time, each for at most SERVER_CONNECTION_MS,
 * and for one request of 8 kB. When there are more, the oldest is closed, once it has had a fifth
 * of a second. Request bodies are ignored. However many clients there are, the daemon writes a text
 * no more often than it wants to.
 */
#ifndef SAFESCOPED_METRICS_SERVER_H
#define SAFESCOPED_METRICS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_CONNECTIONS   64
#define SERVER_CONNECTION_MS 10000
/* A loop that has not turned for this long is unhealthy. */
#define SERVER_STALLED_NS 5000000000ULL

struct metrics_server;

/* False: metrics_server__open() would not accept the address. */
bool metrics_server__is_address(const char *address);
/* True if listening at the address needs CAP_NET_BIND_SERVICE. */
bool metrics_server__needs_right(const char *address);
/*
 * Listens at "ADDRESS:PORT" (numbers, or localhost; "[::1]:9464"), "PORT" or ":PORT" (127.0.0.1;
 * port 0: any free one), or "unix:PATH" (a socket for the daemon's user and group), and starts the
 * serving process. To be called before the daemon has learnt anything about others, and in the
 * process that the session is forked from. Prints a line on failure, and the address on success.
 */
int metrics_server__open(const char *address, struct metrics_server **ret_server);
/* In the process that opened it: ends the serving process, and removes the socket's file. */
void metrics_server__free(struct metrics_server *server);

/*
 * To be called in every turn of the loop; notifies the serving process about once a second.
 * `ready`: the session is attached. -EPIPE, once: the serving process has ended, and nothing more
 * is served.
 */
int metrics_server__turn(struct metrics_server *server, bool ready, uint64_t now_ns);
/* False: the serving process has ended, even if metrics_server__turn() has not noticed yet. */
bool metrics_server__works(const struct metrics_server *server);
/* True if somebody has asked for a newer text since the last one was handed over. */
bool metrics_server__wanted(const struct metrics_server *server);
/*
 * Hands a text over, which counts as fresh for fresh_ns. -EAGAIN: the serving process is held up,
 * and has too many messages already; -ENOMEM and other errors: it keeps its current text.
 */
int metrics_server__give(struct metrics_server *server, const char *text, size_t len,
			 uint64_t fresh_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * server: the endpoint that Prometheus scrapes. HTTP is spoken by libmicrohttpd in a process
 * without rights (confine.h, CONFINE_LISTEN), which has the listening socket and nothing else of
 * the daemon; the daemon hands finished texts over, and never waits for it.
 *
 *   /metrics  the text; no older than the daemon allows: for a newer one it is asked
 *   /healthz  200 while the session's loop turns
 *   /readyz   200 while it does and the session is attached
 *
 * What a client can do to it: there are at most SERVER_CONNECTIONS at a time, each for
 * SERVER_CONNECTION_MS at most, and for one request of 8 kB; when there are more the oldest goes,
 * once it has had a fifth of a second.
 * No body is taken. All of them together make the daemon write a text no more often than it wants.
 */
#ifndef SAFESCOPED_METRICS_SERVER_H
#define SAFESCOPED_METRICS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_CONNECTIONS   64
#define SERVER_CONNECTION_MS 10000
/* A loop that has not turned for so long is not healthy: what stops it is reported. */
#define SERVER_STALLED_NS 5000000000ULL

struct metrics_server;

/* False: not an address as metrics_server__open takes it. */
bool metrics_server__is_address(const char *address);
/*
 * Listens at "ADDRESS:PORT" (numbers, or localhost; "[::1]:9464"), "PORT" or ":PORT" (127.0.0.1;
 * port 0: any that is free), or "unix:PATH" (a socket for the daemon's user and group), and starts
 * the process. Before the daemon has learnt anything of others, and in the process that the session
 * is forked from. Prints a line on failure, and where it listens otherwise.
 */
int metrics_server__open(const char *address, struct metrics_server **ret_server);
/* In the process that opened it: ends the other one, and removes the socket's file. */
void metrics_server__free(struct metrics_server *server);

/*
 * To be called in every turn of the loop; the other process hears of it about once a second.
 * `ready`: the session is attached. -EPIPE, once: the process has ended, and nothing more is
 * served.
 */
int metrics_server__turn(struct metrics_server *server, bool ready, uint64_t now_ns);
/* False: the process that serves has ended, whoever has noticed it. */
bool metrics_server__works(const struct metrics_server *server);
/* Somebody has asked for a newer text since the last one was handed over. */
bool metrics_server__wanted(const struct metrics_server *server);
/*
 * Hands a text over, which is not asked for again for fresh_ns. -EAGAIN: the other process is held
 * up, and has too many messages already; -ENOMEM and other errors: it keeps the one that it has.
 */
int metrics_server__give(struct metrics_server *server, const char *text, size_t len,
			 uint64_t fresh_ns);

#endif

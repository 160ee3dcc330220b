/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * show: a session's html page for a browser, until somebody has seen enough (--open).
 *
 * It is served on 127.0.0.1, at a free port, under a path that nobody can guess: other users of the
 * host can connect, and find nothing. HTTP is spoken by libmicrohttpd in a process without rights
 * (confine.h, CONFINE_LISTEN) that is started before the session, and so has nothing in its memory
 * but that path; the page comes to it at the end, as a sealed descriptor.
 */
#ifndef SAFESCOPED_SHOW_H
#define SAFESCOPED_SHOW_H

#include <stdbool.h>
#include <stddef.h>

/* The largest page that is served: the html format stays well below. */
#define SHOW_MAX_PAGE ((size_t)64 << 20)
/* Connections at a time; one that sends nothing for so many seconds goes. */
#define SHOW_CONNECTIONS 16
#define SHOW_IDLE_S	 30

struct show;

/* Prints a line on failure. */
int show__open(struct show **ret_show);
/* Ends the process. NULL is fine. */
void show__free(struct show *show);

/*
 * Serves the file's bytes as they are now, instead of those before. Prints a line on failure:
 * -EFBIG, -EINVAL (not a file), and what opening and reading it give.
 */
int show__page(struct show *show, const char *path);
/*
 * Prints the address, and how to reach it from another host; opens a browser on the file where
 * there is a display, and a user to whom it belongs. Returns at SIGINT, SIGTERM or SIGHUP: 0; or
 * -EPIPE with a line when the process has ended.
 */
int show__wait(struct show *show, const char *path);

#endif

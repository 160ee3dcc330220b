/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * show: serves a session's html page to a browser until the user ends it (--open).
 *
 * The page is served on 127.0.0.1, at a free port, under a path that cannot be guessed: other users
 * of the host can connect, but find nothing. libmicrohttpd speaks HTTP in a process without rights
 * (confine.h, CONFINE_LISTEN) that is started before the session, so that its memory contains
 * nothing but that path; the page is passed to it at the end, as a sealed descriptor.
 */
#ifndef SAFESCOPED_SHOW_H
#define SAFESCOPED_SHOW_H

#include <stddef.h>

/* The largest page that is served; the html format stays well below it. */
#define SHOW_MAX_PAGE ((size_t)64 << 20)
/* The maximum number of connections, and after how many idle seconds one is closed. */
#define SHOW_CONNECTIONS 16
#define SHOW_IDLE_S	 30

struct show;

/* Starts the process that serves the page. Prints a line on failure. */
int show__open(struct show **ret_show);
/* Ends the process. NULL is allowed. */
void show__free(struct show *show);

/*
 * Serves the file's current contents, replacing an earlier page. Prints a line on failure: -EFBIG,
 * -EINVAL (not a regular file, or empty), or an error from opening or reading it.
 */
int show__page(struct show *show, const char *path);
/*
 * Prints the address, and how to reach it from another host; opens a browser on the file if there
 * is a display, and a user other than root to open it for. Returns 0 on SIGINT, SIGTERM or SIGHUP;
 * -EPIPE, with a line, if the process has ended.
 */
int show__wait(struct show *show, const char *path);

#endif

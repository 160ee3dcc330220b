/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the daemon's side and the serving process. */
#ifndef SAFESCOPED_SHOW_PRIV_H
#define SAFESCOPED_SHOW_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "show.h"

/* 128 bits, in hexadecimal. */
#define SHOW_TOKEN_SIZE 33

/* The context of the serving process. */
struct show_start {
	int listen_fd;
	char path[SHOW_TOKEN_SIZE + 2]; /* "/TOKEN/" */
};

/* Sent by the daemon, with the descriptor of a sealed memfd. */
struct show_message {
	uint64_t size; /* of the page, not 0 */
};

/* Serves until the daemon's end of `in` is closed; called by confine_peer__start. ctx: struct
 * show_start. */
void show_serve__run(void *ctx, int in, int out);

/* Opens a browser as the user who ran sudo, or as the current user unless that is root. False:
 * there is no display, or no such user. */
bool show__open_browser(const char *path);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the daemon's side and the other process share. */
#ifndef SAFESCOPED_SHOW_PRIV_H
#define SAFESCOPED_SHOW_PRIV_H

#include <stdint.h>
#include <sys/types.h>

#include "show.h"

/* 128 bits, in hexadecimal. */
#define SHOW_TOKEN_SIZE 33

/* What the other process starts with. */
struct show_start {
	int listen_fd;
	char path[SHOW_TOKEN_SIZE + 2]; /* "/TOKEN/" */
};

/* From the daemon, with the descriptor of a sealed memfd. */
struct show_message {
	uint64_t size; /* of the page, not 0 */
};

/* Serves until the daemon's end of `in` is closed; as confine_peer__start calls it. ctx:
 * struct show_start. */
void show_serve__run(void *ctx, int in, int out);

/* A browser of the user who ran sudo, or of whoever we are unless that is root. False: there is no
 * display, or nobody to open it for. */
bool show__open_browser(const char *path);

#endif

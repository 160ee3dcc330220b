/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reply: helpers for answers that all processes serving HTTP share. */
#ifndef SAFESCOPED_HTTP_REPLY_H
#define SAFESCOPED_HTTP_REPLY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct reply_header {
	const char *name, *value;
};

/* Returns false if out of memory; some headers may then be missing. */
bool reply__add_headers(struct MHD_Response *response, const struct reply_header *headers,
			size_t n);

/* True for GET and HEAD; anything else is answered with REPLY_READS_ONLY. */
bool reply__reads(const char *method);
#define REPLY_READS_ONLY "GET or HEAD only\n"

/* Queues a line of text, which is not copied, with these headers in addition to its own. */
enum MHD_Result reply__line(struct MHD_Connection *connection, unsigned status, const char *line,
			    const struct reply_header *headers, size_t n);

/* A response with a file's content, without headers: a mapping, freed with the response. NULL: the
 * file cannot be mapped, or no memory. */
struct MHD_Response *reply__of_file(int fd, size_t size);

#endif

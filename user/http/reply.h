/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reply: what the processes that serve HTTP have in common in their answers. */
#ifndef SAFESCOPED_HTTP_REPLY_H
#define SAFESCOPED_HTTP_REPLY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct reply_header {
	const char *name, *value;
};

/* False without memory: some of them may be missing. */
bool reply__add_headers(struct MHD_Response *response, const struct reply_header *headers,
			size_t n);

/* GET or HEAD; anything else is answered by REPLY_READS_ONLY. */
bool reply__reads(const char *method);
#define REPLY_READS_ONLY "GET or HEAD only\n"

/* Queues a line for people, which is not copied, with these headers beside its own. */
enum MHD_Result reply__line(struct MHD_Connection *connection, unsigned status, const char *line,
			    const struct reply_header *headers, size_t n);

/* A response of what a file has, without headers: a mapping, which goes with it. NULL: the file
 * cannot be mapped, or no memory. */
struct MHD_Response *reply__of_file(int fd, size_t size);

#endif

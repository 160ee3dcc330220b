/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "reply.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool reply__add_headers(struct MHD_Response *response, const struct reply_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (MHD_add_response_header(response, headers[i].name, headers[i].value) != MHD_YES)
			return false;
	return true;
}

bool reply__reads(const char *method)
{
	return !strcmp(method, "GET") || !strcmp(method, "HEAD");
}

enum MHD_Result reply__line(struct MHD_Connection *connection, unsigned status, const char *line,
			    const struct reply_header *headers, size_t n)
{
	static const struct reply_header type = {"Content-Type", "text/plain; charset=utf-8"};
	static const struct reply_header allow = {"Allow", "GET, HEAD"};
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(line), (void *)(size_t)line,
								 MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_NO;

	if (!r)
		return MHD_NO;
	if (reply__add_headers(r, &type, 1) && reply__add_headers(r, headers, n) &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED || reply__add_headers(r, &allow, 1)))
		result = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return result;
}

/* ── a file's content ────────────────────────────────────────────────────────────────────── */

struct mapping {
	void *data;
	size_t size;
};

static void unmap(void *ctx)
{
	struct mapping *m = ctx;

	munmap(m->data, m->size);
	free(m);
}

struct MHD_Response *reply__of_file(int fd, size_t size)
{
	struct mapping *m = malloc(sizeof(*m));
	struct MHD_Response *r;

	if (!m)
		return NULL;
	*m = (struct mapping){mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0), size};
	if (m->data == MAP_FAILED) {
		free(m);
		return NULL;
	}
	r = MHD_create_response_from_buffer_with_free_callback_cls(size, m->data, unmap, m);
	if (!r)
		unmap(m);
	return r;
}

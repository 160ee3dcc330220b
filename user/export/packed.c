/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "packed.h"

#include <errno.h>
#include <stdlib.h>

#include <zlib.h>

struct packed {
	ProtobufCBuffer base; /* must be first: append() casts it back */
	FILE *out;
	z_stream stream;
	uint64_t bytes;
	int err;
	uint8_t room[16384];
};

static void deflate_all(struct packed *p, const uint8_t *data, size_t len, int flush)
{
	int done = Z_OK;

	p->stream.next_in = (uint8_t *)data;
	p->stream.avail_in = (uInt)len;
	while (!p->err) {
		size_t n;

		p->stream.next_out = p->room;
		p->stream.avail_out = sizeof(p->room);
		done = deflate(&p->stream, flush);
		n = sizeof(p->room) - p->stream.avail_out;
		if (done == Z_STREAM_ERROR || fwrite(p->room, 1, n, p->out) != n)
			p->err = -EIO;
		if (p->stream.avail_out && (flush != Z_FINISH || done == Z_STREAM_END))
			return;
	}
}

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct packed *p = (struct packed *)buffer;

	p->bytes += len;
	deflate_all(p, data, len, Z_NO_FLUSH);
}

int packed__new(FILE *out, struct packed **ret_packed)
{
	struct packed *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->base.append = append;
	p->out = out;
	/* 16 plus the window's bits: a gzip header, without a name or a time */
	if (deflateInit2(&p->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return -ENOMEM;
	}
	*ret_packed = p;
	return 0;
}

ProtobufCBuffer *packed__buffer(struct packed *p)
{
	return &p->base;
}

uint64_t packed__bytes(const struct packed *p)
{
	return p->bytes;
}

int packed__error(const struct packed *p)
{
	return p->err;
}

int packed__finish(struct packed *p)
{
	deflate_all(p, NULL, 0, Z_FINISH);
	return p->err;
}

void packed__free(struct packed *p)
{
	if (!p)
		return;
	deflateEnd(&p->stream);
	free(p);
}

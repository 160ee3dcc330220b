/* SPDX-License-Identifier: GPL-2.0-or-later */
/* blocks: reads the blocks of a capture one by one and skips damaged ones. */
#ifndef SAFESCOPED_CAPTURE_BLOCKS_PRIV_H
#define SAFESCOPED_CAPTURE_BLOCKS_PRIV_H

#include "codec_priv.h"

struct blocks {
	FILE *in;
	uint64_t next; /* the number expected next */
	void *stored, *raw;
	size_t stored_cap, raw_cap;
	uint64_t lost; /* blocks skipped, by their numbers */
	bool damaged;  /* something made no sense; blocks lost by it may be at the file's end */
};

/* Reads the header; *ret_json is its line of JSON (the caller frees). -EBADMSG, -EIO, -ENOMEM. */
int blocks__header(FILE *in, char **ret_json);
/* The next block's raw bytes, valid until the next call. -ENODATA at the end, -EIO, -ENOMEM. */
int blocks__next(struct blocks *b, const uint8_t **ret_raw, size_t *ret_size);
void blocks__free(struct blocks *b);

#endif

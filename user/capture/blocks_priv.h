/* SPDX-License-Identifier: GPL-2.0-or-later */
/* blocks: a capture's blocks, one after the other, past what is damaged. */
#ifndef SAFESCOPED_CAPTURE_BLOCKS_PRIV_H
#define SAFESCOPED_CAPTURE_BLOCKS_PRIV_H

#include "codec_priv.h"

struct blocks {
	FILE *in;
	uint64_t next; /* the number that comes next */
	void *stored, *raw;
	size_t stored_cap, raw_cap;
	uint64_t lost; /* blocks that were left out, by their numbers */
	bool damaged;  /* something made no sense; the blocks lost by it may be at the file's end */
};

/* The header, its line of JSON in *ret_json (freed by the caller). -EBADMSG, -EIO, -ENOMEM. */
int blocks__header(FILE *in, char **ret_json);
/* The next block's raw bytes, until the next call. -ENODATA at the end, -EIO, -ENOMEM. */
int blocks__next(struct blocks *b, const uint8_t **ret_raw, size_t *ret_size);
void blocks__free(struct blocks *b);

#endif

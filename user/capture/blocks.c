/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the blocks of a capture one by one and skips damaged ones. */
#include "blocks_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

/* ── the header ──────────────────────────────────────────────────────────────────────────── */

/* Reads up to and including the next newline. */
static int get_line(FILE *in, struct buf *text)
{
	int ch;

	while ((ch = getc_unlocked(in)) != EOF) {
		if (buf__addc(text, (char)ch))
			return text->err == -ENOMEM ? -ENOMEM : -EBADMSG;
		if (ch == '\n')
			return 0;
	}
	return ferror(in) ? -EIO : -EBADMSG;
}

int blocks__header(FILE *in, char **ret_json)
{
	const size_t magic = strlen(CAPTURE_MAGIC);
	struct buf text;
	size_t len = 0;
	uint32_t crc;
	int err;

	buf__init(&text, CAPTURE_MAX_HEADER);
	err = get_line(in, &text);
	if (!err && (text.len != magic || memcmp(text.data, CAPTURE_MAGIC, magic) != 0))
		err = -EBADMSG;
	if (!err)
		err = get_line(in, &text);
	if (!err) {
		len = text.len;
		crc = (uint32_t)crc32(0, (const void *)text.data, (uInt)len);
		err = get_line(in, &text);
	}
	if (!err && (text.len != len + 9 || strtoul(text.data + len, NULL, 16) != crc))
		err = -EBADMSG;
	if (!err) {
		*ret_json = strndup(text.data + magic, len - magic - 1);
		err = *ret_json ? 0 : -ENOMEM;
	}
	buf__free(&text);
	return err;
}

/* ── blocks ──────────────────────────────────────────────────────────────────────────────── */

static bool makes_sense(const struct block_header *h)
{
	return h->magic == CAPTURE_BLOCK_MAGIC && h->raw_size && h->raw_size <= CAPTURE_MAX_BLOCK &&
	       h->stored_size <= h->raw_size &&
	       h->header_crc == (uint32_t)crc32(0, (const void *)h,
						offsetof(struct block_header, header_crc));
}

/* Seeks to the next magic at or after `at`. */
static int find_magic(struct blocks *b, off_t at)
{
	const uint32_t magic = CAPTURE_BLOCK_MAGIC;
	char chunk[65536];
	size_t n;

	for (;;) {
		const char *found;

		if (fseeko(b->in, at, SEEK_SET))
			return -EIO;
		n = fread(chunk, 1, sizeof(chunk), b->in);
		if (ferror(b->in))
			return -EIO;
		if (n < sizeof(magic))
			return -ENODATA;
		found = memmem(chunk, n, &magic, sizeof(magic));
		if (found)
			return fseeko(b->in, at + (found - chunk), SEEK_SET) ? -EIO : 0;
		at += (off_t)(n - sizeof(magic) + 1);
	}
}

/* Reads and unpacks a block whose header was read. -EBADMSG: the stored bytes are damaged. */
static int get_raw(struct blocks *b, const struct block_header *h)
{
	size_t size;

	if (array__reserve(&b->stored, &b->stored_cap, h->stored_size, CAPTURE_MAX_BLOCK, 1) ||
	    array__reserve(&b->raw, &b->raw_cap, h->raw_size, CAPTURE_MAX_BLOCK, 1))
		return -ENOMEM;
	if (fread(b->stored, 1, h->stored_size, b->in) != h->stored_size)
		return ferror(b->in) ? -EIO : -EBADMSG;
	if (h->crc != (uint32_t)crc32(0, b->stored, h->stored_size))
		return -EBADMSG;
	if (!(h->flags & CAPTURE_BLOCK_ZSTD)) {
		if (h->stored_size != h->raw_size)
			return -EBADMSG;
		memcpy(b->raw, b->stored, h->raw_size);
		return 0;
	}
	size = ZSTD_decompress(b->raw, h->raw_size, b->stored, h->stored_size);
	return ZSTD_isError(size) || size != h->raw_size ? -EBADMSG : 0;
}

int blocks__next(struct blocks *b, const uint8_t **ret_raw, size_t *ret_size)
{
	for (;;) {
		struct block_header h;
		off_t at = ftello(b->in);
		size_t n;
		int err;

		if (at < 0)
			return -EIO;
		n = fread(&h, 1, sizeof(h), b->in);
		if (!n)
			return ferror(b->in) ? -EIO : -ENODATA;
		err = n == sizeof(h) && makes_sense(&h) ? get_raw(b, &h) : -EBADMSG;
		if (ferror(b->in))
			return -EIO;
		/* a block seen before, or out of place */
		if (!err && h.number < b->next)
			err = -EBADMSG;
		if (!err) {
			b->lost += h.number - b->next;
			b->next = h.number + 1;
			*ret_raw = b->raw;
			*ret_size = h.raw_size;
			return 0;
		}
		if (err != -EBADMSG)
			return err;
		b->damaged = true;
		err = find_magic(b, at + 1);
		if (err)
			return err;
	}
}

void blocks__free(struct blocks *b)
{
	free(b->stored);
	free(b->raw);
	memset(b, 0, sizeof(*b));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * codec: inputs of a timeline as bytes and back.
 *
 * One function for each struct lists its members once, for both directions. An input is
 *     u16 kind  u16 fields (bit n: field n of the list in code_input())  u32 bytes that follow
 * and its fields. Integers are little-endian and as wide as in memory; strings and bytes have their
 * length (u32) in front. A reader that knows fewer fields than an input has skips the input;
 * members are only ever added at the end of a struct's list, and are 0 if the writer did not know
 * them.
 */
#ifndef SAFESCOPED_CAPTURE_CODEC_PRIV_H
#define SAFESCOPED_CAPTURE_CODEC_PRIV_H

#include "base/base.h"
#include "capture.h"
#include "timeline/timeline.h"

#define CAPTURE_MAGIC	    "safescoped capture 1\n"
#define CAPTURE_BLOCK_MAGIC 0x4b424353u /* "SCBK" */
#define CAPTURE_MAX_BLOCK   (64u << 20) /* raw, and stored */
#define CAPTURE_MAX_HEADER  65536
#define CAPTURE_BLOCK_ZSTD  1u

/* The file's own kinds, in addition to enum intake_input_kind. */
#define CAPTURE_END_MARK 0xfffeu

struct block_header {
	uint32_t magic, flags, raw_size, stored_size;
	uint64_t number;
	uint32_t crc, header_crc;
};
_Static_assert(sizeof(struct block_header) == 32, "as in capture.h");

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "captures are little-endian, and so are the programs that are profiled"
#endif

struct codec {
	struct buf *out;   /* NULL: reading */
	const uint8_t *in; /* what is left of the input */
	size_t left;
	struct strtab *strings; /* reading: where strings are kept */
	size_t string_room;	/* bytes that may still be added to it */
	uint64_t n_left_out;	/* strings beyond string_room, which are read as "" */
	bool bad;
};

/* The targets of a decoded input's pointers. Zero it first; valid until the next input. */
struct decoded {
	struct target_info info;
	struct snapshot snapshot;
	size_t threads_cap;
	struct code_name name;
	struct target_site site;
	struct target_ccs ccs;
	void *data; /* aligned for any struct */
	size_t data_cap;
};
void decoded__free(struct decoded *d);

/* -E2BIG: larger than a block may be. */
int code__put(struct buf *out, const struct intake_input *input);
/*
 * Decodes the next input of c->in. Returns 0, or -ENODATA at the end; -EBADMSG: what is left makes
 * no sense. If only the input's own bytes make no sense, ret_input->kind is TI_NONE, and reading
 * can go on. *ret_kind is the kind in the file.
 */
int code__get(struct codec *c, struct decoded *d, unsigned *ret_kind,
	      struct intake_input *ret_input);

/* Makes the header's JSON line. When it is parsed, opts are checked and bounded. */
char *capture_header__make(const struct timeline_opts *opts, const char *version, const char *mode);

struct header {
	struct timeline_opts opts;
	char version[64], mode[32];
	uint16_t kinds[TI_MAX]; /* the file's number for each kind; 0: it has no such kind */
};
/* -EBADMSG, -ENOTSUP; prints nothing. Sets ret_header->version if it could be read. */
int capture_header__parse(const char *json, struct header *ret_header);
/* This program's number of a kind in the file; TI_NONE: it does not know the kind. */
enum intake_input_kind capture_header__own_kind(const struct header *header, unsigned kind);

#endif

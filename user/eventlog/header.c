/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * header: the list of event types in front of a log.
 *
 * hdrb hetb { etb\0 u16 id, u16 size (0xffff: variable), u32 length, description,
 * u32 length, extra, ete\0 } hete hdre datb; big-endian (rts/eventlog/EventLog.c).
 */
#include <errno.h>

#include "reader_priv.h"

#define TAG_HDRB 0x68647262u
#define TAG_HETB 0x68657462u
#define TAG_ETB	 0x65746200u
#define TAG_ETE	 0x65746500u
#define TAG_HETE 0x68657465u
#define TAG_HDRE 0x68647265u
#define TAG_DATB 0x64617462u

/* Parses one etb…ete entry at `off`. Returns its length, 0 if more bytes are needed. */
static int parse_type(struct eventlog *log, uint64_t off)
{
	const uint8_t *p = frame__peek(log, off, 12);
	uint32_t desc, extra;
	uint16_t id, size;

	if (!p)
		return 0;
	id = be16_at(p + 4);
	size = be16_at(p + 6);
	desc = be32_at(p + 8);
	if (desc > HEADER_MAX)
		return -EBADMSG;
	p = frame__peek(log, off + 12 + desc, 4);
	if (!p)
		return 0;
	extra = be32_at(p);
	if (extra > HEADER_MAX)
		return -EBADMSG;
	p = frame__peek(log, off + 16 + desc + extra, 4);
	if (!p)
		return 0;
	if (be32_at(p) != TAG_ETE || id == EVENT_END)
		return -EBADMSG;
	if (log->size[id] == SIZE_UNKNOWN)
		log->stats.types++;
	log->size[id] = size == 0xffff ? SIZE_VARIABLE : size;
	return (int)(20 + desc + extra);
}

int header__parse(struct eventlog *log)
{
	const uint8_t *p;
	int len;

	if (!log->pos) {
		p = frame__peek(log, 0, 8);
		if (!p)
			return 0;
		if (be32_at(p) != TAG_HDRB || be32_at(p + 4) != TAG_HETB)
			return -EBADMSG;
		log->pos = 8;
	}
	/* pos advances with each entry, so that a stream that trickles in is not parsed again. */
	for (;;) {
		p = frame__peek(log, log->pos, 4);
		if (!p)
			return 0;
		if (be32_at(p) != TAG_ETB)
			break;
		len = parse_type(log, log->pos);
		if (len <= 0)
			return len;
		log->pos += (uint64_t)len;
		if (log->pos > HEADER_MAX)
			return -EBADMSG;
	}
	p = frame__peek(log, log->pos, 12);
	if (!p)
		return 0;
	if (be32_at(p) != TAG_HETE || be32_at(p + 4) != TAG_HDRE || be32_at(p + 8) != TAG_DATB)
		return -EBADMSG;
	/* Without markers of the known shape no block can be found. */
	if (log->size[EL_BLOCK_MARKER] != MARKER_BYTES - EVENT_HEAD)
		return -EBADMSG;
	log->pos += 12;
	log->stats.header = true;
	log->stats.header_bytes = log->pos;
	return 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: shared by the reader's own files. No other room includes this.
 *
 * header.c reads the list of event types · frame.c finds blocks · merge.c puts the capabilities'
 * buffers in time order and runs over their events · decode.c turns one payload into a struct ·
 * reader.c ties these together · input.c opens files, pipes and sockets.
 */
#ifndef SAFESCOPED_EVENTLOG_READER_PRIV_H
#define SAFESCOPED_EVENTLOG_READER_PRIV_H

#include <endian.h>
#include <string.h>

#include "eventlog.h"

static inline uint16_t be16_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t be32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t be64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

#define EVENT_HEAD   10 /* u16 id, u64 time */
#define MARKER_BYTES 24 /* a whole BLOCK_MARKER event */
#define EVENT_END    0xffff

/* GHC's buffers are 2 MB (EVENT_LOG_SIZE in rts/eventlog/EventLog.c); a block is one of them. */
#define BLOCK_MAX   (16u << 20)
#define CAPS_MAX    EL_CAPS_MAX
#define HEADER_MAX  (1u << 20)
#define EXTENTS_MAX (256u << 10)
/*
 * Events with a time taken before they were written (GC_START and GC_END, posted "at" the time that
 * +RTS -s counts) may lie slightly outside their block.
 */
#define TIME_SLACK 1000000000ull

#define SIZE_VARIABLE (-1)
#define SIZE_UNKNOWN  (-2)

/* Neighbouring blocks of one buffer; a single one if its marker's size is wrong. */
struct extent {
	uint64_t off, len;
	uint8_t *data; /* stream: own copy; NULL: in the file */
	bool exact;    /* the sizes in the markers show where each block ends */
};

/* The buffer of one capability, or the global one: its blocks in log order. */
struct cursor {
	uint16_t cap;
	bool started;	  /* the extent at `head` is being read */
	bool queued;	  /* is in the merge heap */
	struct extent *q; /* [head, n) are still to be read */
	size_t head, n, q_cap;
	uint64_t last_end; /* end time of the last block seen */

	uint64_t key;	    /* largest time so far: the key of the merge */
	const uint8_t *p;   /* next event */
	const uint8_t *lim; /* end of what is in memory */
	uint64_t ext_off;   /* file offset after what is in memory */
	uint64_t ext_left;  /* bytes of the extent not in memory yet */
	uint64_t blk_left;  /* bytes from p to the end of its block */
	uint64_t lo, hi;    /* the range of times that the block can hold */

	uint8_t *buf;
	size_t buf_size;
};

struct subscriber {
	eventlog_fn fn;
	void *ctx;
};

#define SUBSCRIBERS_MAX 16

struct eventlog {
	struct eventlog_opts opts;
	struct eventlog_stats stats;
	int err;
	bool header_done, finished;

	int32_t size[65536];   /* payload size by id */
	uint16_t want[EL_IDS]; /* bit i: subscriber i */
	struct subscriber subs[SUBSCRIBERS_MAX];
	unsigned n_subs;

	/* where the bytes come from: a seekable file, or what was fed */
	int fd;
	uint64_t avail; /* bytes of the log that exist so far */
	uint64_t pos;	/* next byte to frame */
	uint8_t *mem;	/* stream: [mem_off, avail) */
	uint64_t mem_off;
	size_t mem_cap;
	uint8_t *win; /* file: window for framing */
	uint64_t win_off;
	size_t win_len;
	bool searching;	   /* there is no block at pos: looking for the next one */
	uint64_t searched; /* no block begins between pos and here */

	struct cursor *cursors[CAPS_MAX + 1];
	struct cursor *heap[CAPS_MAX + 1];
	unsigned n_cursors, n_heap;
	size_t n_extents;
	uint64_t held;	  /* bytes of stream extents in memory */
	uint64_t emitted; /* largest key delivered */
};

/* header.c. 1: done; 0: needs more bytes; negative: not an eventlog. */
int header__parse(struct eventlog *log);

/* frame.c */
/* [off, off+len) of the log in memory, valid until the next call; NULL if it is not all there. */
const uint8_t *frame__peek(struct eventlog *log, uint64_t off, size_t len);
/* Finds as many blocks as can be delimited; `last`: no more bytes will come. */
int frame__run(struct eventlog *log, bool last);

/* merge.c */
int merge__queue(struct eventlog *log, uint16_t cap, uint64_t off, uint64_t len,
		 const uint8_t *data, uint64_t end_time, bool exact);
enum merge_how {
	MERGE_ALL,   /* everything in the queue */
	MERGE_SAFE,  /* everything that no later block can precede */
	MERGE_SHRINK /* until the memory held is half of the limit */
};
int merge__run(struct eventlog *log, enum merge_how how);
void cursor__free(struct cursor *c);

/* decode.c: the events that are not decoded here. */
bool decode__other(struct el_event *ev);

/* Returns false if the payload is too short. The events that come by the million are inlined. */
static inline bool decode__event(struct el_event *ev)
{
	switch (ev->id) {
	case EL_CREATE_THREAD:
	case EL_RUN_THREAD:
	case EL_THREAD_RUNNABLE:
		if (ev->len < 4)
			return false;
		ev->thread.tid = be32_at(ev->payload);
		ev->thread.cap = ev->cap;
		return true;
	case EL_STOP_THREAD:
		if (ev->len < 10)
			return false;
		ev->stop.tid = be32_at(ev->payload);
		ev->stop.status = be16_at(ev->payload + 4);
		ev->stop.info = be32_at(ev->payload + 6);
		return true;
	default:
		return decode__other(ev);
	}
}

#endif

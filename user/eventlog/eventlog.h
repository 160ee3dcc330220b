/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eventlog: GHC's own log of a program. A reader that takes bytes and gives events in time order,
 * and models that are fed by those events (models.h, included here). The room knows nothing of
 * the kernel's records; the timeline joins the two.
 *
 * Use: eventlog__new · eventlog__subscribe and the models' attach · then either
 * eventlog__read, or eventlog__open_fd and eventlog__poll for a file that still grows, or
 * eventlog__feed for a stream · eventlog__finish · eventlog__stats · eventlog__free.
 *
 * Order. Each capability has a buffer of its own, and one is global; times rise within a buffer,
 * and buffers reach the log whole, when they are full (2 MB), so one may lag behind another by
 * any time.
 *  - A file that is finished: the blocks are indexed first, then all buffers are merged. The
 *    order is exact up to EVENTLOG_WINDOW_BLOCKS runs of neighbouring blocks of one capability;
 *    a log with more is merged in windows of this many.
 *  - A stream, or a file that still grows: blocks are held back until at most `hold_max` bytes
 *    (file: EVENTLOG_WINDOW_BLOCKS blocks) wait; then the oldest are given out. `prompt` gives
 *    out an event as soon as every buffer seen so far has reached its time.
 * An event that comes out after a later one of another buffer is counted in `late`. Within a
 * buffer the log's order is always kept; an event there may be some ns older than the one before
 * it (GHC writes GC_END with a time that it took before), which counts as `backwards`.
 *
 * Blocks. GHC begins whatever it writes with a block marker (postBlockMarker whenever a buffer is
 * emptied, rts/eventlog/EventLog.c of 8.10 to 9.14, in the non-threaded RTS too). Only by it is
 * told whose buffer events are from: a log without any (some tools rewrite logs so) is all damage.
 *
 * Damage. Nothing in a log is trusted. A block must have a plausible marker and be followed by
 * one (or by the end); else the next such place is searched. Within a block, an event of an
 * unlisted type, one that leaves the block, or one whose time the block cannot hold is damage:
 * the next place from which three events in a row (or the rest of the block) make sense is
 * searched inside the block. Bytes skipped are `lost_bytes`; header_bytes + event_bytes +
 * lost_bytes = bytes_in after eventlog__finish.
 */
#ifndef SAFESCOPED_EVENTLOG_H
#define SAFESCOPED_EVENTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"

struct eventlog;

#define EVENTLOG_WINDOW_BLOCKS (256u << 10)
#define EVENTLOG_HOLD_DEFAULT  (32ull << 20)

struct eventlog_opts {
	uint64_t hold_max; /* stream bytes held back for order; 0: EVENTLOG_HOLD_DEFAULT */
	bool prompt;
};

/* GHC's own limit is 256 (MAX_N_CAPABILITIES, rts/include/rts/Config.h). */
#define EL_CAPS_MAX 512

struct eventlog_stats {
	/* a bit for each capability whose buffer had a block */
	uint64_t caps[EL_CAPS_MAX / 64];
	uint64_t bytes_in, header_bytes, event_bytes, lost_bytes;
	uint64_t damages; /* places where bytes were lost */
	uint64_t blocks;
	uint64_t events; /* of all types, block markers included */
	uint64_t by_id[EL_IDS];
	uint64_t unknown; /* events of types that the log lists and this program does not know */
	uint64_t misfits; /* payload too short for the type: not given out */
	uint64_t late, backwards;
	uint64_t last_time; /* latest event given out; 0 if none */
	uint64_t reaches;   /* every buffer seen so far is complete up to here */
	unsigned buffers;   /* capabilities' and the global one that had a block */
	unsigned types;	    /* event types listed in the log's header */
	bool header;	    /* the header was whole */
	bool ended;	    /* the log's own end mark was seen */
};

/* GHC writes a buffer when it is full: of a program that runs on some may not have come yet. */
static inline bool eventlog_stats__has_cap(const struct eventlog_stats *s, uint32_t cap)
{
	return cap < EL_CAPS_MAX && s->caps[cap / 64] >> cap % 64 & 1;
}

/* Not 0 stops the reading; the value comes out of the call that was reading. */
typedef int (*eventlog_fn)(void *ctx, const struct el_event *ev);

int eventlog__new(const struct eventlog_opts *opts, struct eventlog **ret_log);
void eventlog__free(struct eventlog *log);

/* Only events of these types are decoded and given. At most 16 subscribers: -E2BIG. */
int eventlog__subscribe(struct eventlog *log, const uint16_t *ids, size_t n_ids, eventlog_fn fn,
			void *ctx);

/* A stream's next bytes. -EBADMSG: not an eventlog, or its header cannot be read. */
int eventlog__feed(struct eventlog *log, const void *data, size_t len);

/* A seekable file instead of a stream; the caller keeps the descriptor and its ownership. */
int eventlog__open_fd(struct eventlog *log, int fd);
/* Takes what the file has grown by. */
int eventlog__poll(struct eventlog *log);

/* No more bytes will come: gives out the rest and settles the accounts. */
int eventlog__finish(struct eventlog *log);

const struct eventlog_stats *eventlog__stats(const struct eventlog *log);

/* ── where a log comes from ──────────────────────────────────────────────────────────────── */

struct el_input;
enum el_input_kind {
	EL_INPUT_LOG,
	EL_INPUT_REPORT, /* of GHC's own: prof__read takes it */
	EL_INPUT_EMPTY,
	EL_INPUT_OTHER,
};
/*
 * Opens a file, gzip (told by its first bytes, in files as in streams), a FIFO, "-" for standard
 * input, a Unix socket to connect to. The descriptor, the caller's, or negative. `stop` (may be
 * NULL) is asked before each wait; -ECANCELED: it said so before a socket's server took the
 * connection.
 */
int el_input__open_path(const char *path, bool (*stop)(void *ctx), void *ctx);
/* Looks at the first bytes of what the descriptor holds, which the input owns from then on, failed
 * or not. When `stop` says so the reading ends as if the log ended there. */
int el_input__take(int fd, bool (*stop)(void *ctx), void *ctx, struct el_input **ret_in);
void el_input__free(struct el_input *in);
/* A descriptor connected to the Unix socket at `path`, the caller's, which never blocks; or
 * negative; -EAGAIN: its server has enough connections waiting. */
int el_input__connect(const char *path);
enum el_input_kind el_input__kind(const struct el_input *in);
/* `stop` has ended it. */
bool el_input__stopped(const struct el_input *in);
/* Packed data that make no sense were left out, with all after them. */
bool el_input__is_damaged(const struct el_input *in);

/* Reads it all, and finishes. */
int eventlog__read(struct eventlog *log, struct el_input *in);

#include "match.h"
#include "models.h"

#endif

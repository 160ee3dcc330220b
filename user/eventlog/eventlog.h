/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * eventlog: GHC's own log of a program. A reader that takes bytes and returns events in time order,
 * and models that are fed by those events (models.h, included here). The room knows nothing of the
 * kernel's records; the timeline joins the two.
 *
 * Use: eventlog__new · eventlog__subscribe and the models' attach · then either eventlog__read, or
 * eventlog__open_fd and eventlog__poll for a file that is still growing, or eventlog__feed for a
 * stream · eventlog__finish · eventlog__stats · eventlog__free.
 *
 * Order. Each capability has its own buffer, and one buffer is global. Times rise within a buffer,
 * and a buffer is written to the log as a whole when it is full (2 MB), so one may be
 * written any amount of time after another.
 * - A finished file: the blocks are indexed first, then all buffers are merged. The order is exact
 *   up to EVENTLOG_WINDOW_BLOCKS runs of neighbouring blocks of one capability; a log with more is
 *   merged in windows of this size.
 * - A stream, or a file that is still growing: blocks are held back until `hold_max` bytes (file:
 *   EVENTLOG_WINDOW_BLOCKS blocks) are waiting; then the oldest are delivered. With `prompt`, an
 *   event is delivered as soon as every buffer seen so far has reached its time.
 * An event delivered after a later one of another buffer is counted in `late`. Within a buffer the
 * order of the log is always kept; an event there may be some ns older than the one before it (GHC
 * writes GC_END with a time that it took before), which counts as `backwards`.
 *
 * Blocks. GHC begins everything it writes with a block marker (postBlockMarker whenever a buffer is
 * emptied, rts/eventlog/EventLog.c of 8.10 to 9.14, in the non-threaded RTS too). Only the marker
 * shows whose buffer events are from: a log without any (as rewritten by some tools) is all damage.
 *
 * Damage. Nothing in a log is trusted. A block must have a plausible marker and be followed by one
 * (or by the end); otherwise the reader searches for the next such place. Within a block, an event
 * of an unlisted type, one that extends beyond the block, or one whose time the block cannot hold
 * is damage: the reader searches the block for the next place from which three events in a row (or
 * the rest of the block) make sense. Bytes skipped are `lost_bytes`; header_bytes + event_bytes +
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
	uint64_t hold_max; /* stream bytes held back for ordering; 0: EVENTLOG_HOLD_DEFAULT */
	bool prompt;
};

/* GHC's own limit is 256 (MAX_N_CAPABILITIES, rts/include/rts/Config.h). */
#define EL_CAPS_MAX 512

struct eventlog_stats {
	/* bit i: capability i's buffer had a block */
	uint64_t caps[EL_CAPS_MAX / 64];
	uint64_t bytes_in, header_bytes, event_bytes, lost_bytes;
	uint64_t damages; /* places where bytes were lost */
	uint64_t blocks;
	uint64_t events; /* of all types, including block markers */
	uint64_t by_id[EL_IDS];
	uint64_t unknown; /* events of types listed in the log but unknown to this program */
	uint64_t misfits; /* payload too short for the type: not delivered */
	uint64_t late, backwards;
	uint64_t last_time; /* latest event delivered; 0 if none */
	uint64_t reaches;   /* every buffer seen so far is complete up to here */
	unsigned buffers;   /* buffers with a block: the capabilities' and the global one */
	unsigned types;	    /* event types listed in the log's header */
	bool header;	    /* the header was complete */
	bool ended;	    /* the log's own end mark was seen */
};

/* GHC writes a buffer when it is full, so a running program may not have written some yet. */
static inline bool eventlog_stats__has_cap(const struct eventlog_stats *s, uint32_t cap)
{
	return cap < EL_CAPS_MAX && s->caps[cap / 64] >> cap % 64 & 1;
}

/* A nonzero return value stops reading and is returned by the function that was reading. */
typedef int (*eventlog_fn)(void *ctx, const struct el_event *ev);

int eventlog__new(const struct eventlog_opts *opts, struct eventlog **ret_log);
void eventlog__free(struct eventlog *log);

/* Only events of these types are decoded and delivered. At most 16 subscribers: -E2BIG. */
int eventlog__subscribe(struct eventlog *log, const uint16_t *ids, size_t n_ids, eventlog_fn fn,
			void *ctx);

/* Takes the next bytes of a stream. -EBADMSG: not an eventlog, or an unreadable header. */
int eventlog__feed(struct eventlog *log, const void *data, size_t len);

/* Reads a seekable file instead of a stream; the caller still owns the descriptor. */
int eventlog__open_fd(struct eventlog *log, int fd);
/* Takes what was appended to the file. */
int eventlog__poll(struct eventlog *log);

/* No more bytes will come: delivers the rest and completes the statistics. */
int eventlog__finish(struct eventlog *log);

const struct eventlog_stats *eventlog__stats(const struct eventlog *log);

/* The end of the last block of a capability's buffer, up to which the log has its events; 0: it has
 * no block. */
uint64_t eventlog__cap_reaches(const struct eventlog *log, uint16_t cap);

/* ── where a log comes from ──────────────────────────────────────────────────────────────── */

struct el_input;
enum el_input_kind {
	EL_INPUT_LOG,
	EL_INPUT_REPORT, /* a report written by GHC, for prof__read */
	EL_INPUT_EMPTY,
	EL_INPUT_OTHER,
};
/*
 * Opens a file, gzip (recognised by its first bytes, in files and in streams), a FIFO, "-" for
 * standard input, or a Unix socket to connect to. Returns a descriptor, which the caller owns, or a
 * negative errno. `stop` (may be NULL) is called before each wait; -ECANCELED: it returned true
 * before a socket's server accepted the connection.
 */
int el_input__open_path(const char *path, bool (*stop)(void *ctx), void *ctx);
/* Reads the first bytes from the descriptor, which the input owns from then on, even on failure.
 * When `stop` returns true, reading ends as if the log ended there. */
int el_input__take(int fd, bool (*stop)(void *ctx), void *ctx, struct el_input **ret_in);
void el_input__free(struct el_input *in);
/* Returns a non-blocking descriptor connected to the Unix socket at `path`, which the caller owns,
 * or a negative errno; -EAGAIN: its server has enough connections waiting. */
int el_input__connect(const char *path);
enum el_input_kind el_input__kind(const struct el_input *in);
/* Whether `stop` has ended it. */
bool el_input__stopped(const struct el_input *in);
/* Whether packed data made no sense and were left out, with everything after them. */
bool el_input__is_damaged(const struct el_input *in);

/* Reads everything and finishes. */
int eventlog__read(struct eventlog *log, struct el_input *in);

#include "match.h"
#include "models.h"

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture: keeps what goes into a timeline in a file, from which the same picture can be made
 * again, on another machine and without the processes: records, names and other answers of namers,
 * snapshots, counters, cost, what was missing.
 *
 * The file. Three lines of text: a magic word with the format's number; a JSON object with the
 * program's version, the session's options, the kinds of inputs by name and the sizes of the
 * kernel's structs; the CRC-32 of both. Then blocks:
 *
 *     u32 magic  u32 flags  u32 raw size  u32 stored size  u64 number  u32 CRC of the stored bytes
 *     u32 CRC of this header's 28 bytes before it, then the stored bytes (zstd, or as they are)
 *
 * all little-endian. A block's raw bytes are inputs (codec.c), one after the other, in the order in
 * which the timeline took them. Blocks are independent: a damaged one is skipped, and reading
 * continues at the next magic. The last input is an end mark; without it the capture is unfinished,
 * and is used as far as it goes.
 *
 * To keep a new kind of input, see intake/tap.h.
 */
#ifndef SAFESCOPED_CAPTURE_H
#define SAFESCOPED_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "intake/tap.h"

struct picture;
struct timeline;
struct timeline_opts;

/* ── writing ─────────────────────────────────────────────────────────────────────────────── */

struct capture;

/*
 * Creates `path`, as PATH.partial (O_EXCL, O_NOFOLLOW, 0600, given to owner and group unless they
 * are -1), which a session that is killed leaves in place, and which can be replayed. `opts`,
 * `version` and `mode` are those of timeline__new; opts->start_ns and start_unix_ns must be set.
 * Prints a line on failure.
 */
int capture__create(const char *path, uid_t owner, gid_t group, const struct timeline_opts *opts,
		    const char *version, const char *mode, struct capture **ret_capture);
/* An intake_tap; ctx: the capture. The first failure is printed, and ends the file there. */
void capture__take(void *ctx, const struct intake_input *input);
/* The most bytes of eventlogs that a capture keeps, over all logs. */
#define CAPTURE_MAX_LOG ((uint64_t)512 << 20)
/*
 * Keeps the eventlog of process `pid` after it was joined as in *how: the first `size` bytes of
 * `fd`, which were read (fd's position does not change). If they are too many or not there any
 * more, the capture records that it is without them, and a warning is printed.
 */
void capture__take_log(struct capture *capture, pid_t pid, const char *path, int fd, uint64_t size,
		       const struct intake_log_join *how);
/* Writes what was taken so far to the file. */
void capture__flush(struct capture *capture);
/*
 * Writes the end mark, renames PATH.partial to PATH and frees. On failure the errno of the first
 * failure is returned, and what was written stays as PATH.partial.
 */
int capture__finish(struct capture *capture);
/* Closes and frees; PATH.partial stays if `keep`. Accepts NULL. */
void capture__abort(struct capture *capture, bool keep);

/* ── reading ─────────────────────────────────────────────────────────────────────────────── */

struct replay;

/* What the caller of a replay does itself. Any function may be NULL. */
struct replay_hooks {
	void *ctx;
	/*
	 * Joins the eventlog of a process, given its bytes in a file, as it was when the capture
	 * was made. *how, whose times are below 2^62, and fd are valid during the call. What it
	 * makes must live until replay__free. NULL: eventlogs are left out.
	 */
	int (*join)(void *ctx, struct timeline *tl, pid_t pid, const char *path, int fd,
		    const struct intake_log_join *how);
	/*
	 * Called after each record, and (last) when everything has come in: the session has reached
	 * `ns`, and no record so far is later.
	 */
	void (*at)(void *ctx, struct timeline *tl, uint64_t ns, bool last);
	/*
	 * What the session called a frame, or the safe-call site at addr, in the process described
	 * by `info`. May be improved; the strings must then live until replay__free.
	 */
	void (*name)(void *ctx, const struct target_info *info, uint64_t frame,
		     struct code_name *name);
	void (*site)(void *ctx, const struct target_info *info, uint64_t addr,
		     struct target_site *site);
	/*
	 * Replay the session in windows of this many ns (0: as a whole). Each window but the last
	 * is passed to `window`, which then owns it; the last one is the replay's picture. A
	 * nonzero return value ends the replay. Logs are not joined.
	 */
	uint64_t window_ns;
	int (*window)(void *ctx, struct picture *pic);
	/* Lanes of Haskell threads are wanted: if a process has none because the session made none,
	 * that is reported as missing. */
	bool haskell_lanes;
	/* Keep at most this many of each thing that is kept for later, if the replay's own limit is
	 * not lower; 0: that limit. */
	size_t max_kept;
};

struct replay_notes {
	bool complete;		 /* the end mark was there */
	uint64_t damaged_blocks; /* skipped; UINT64_MAX: some, their number is unknown */
	uint64_t unknown_inputs; /* of kinds that this version does not know */
	uint64_t refused_inputs; /* inputs that contradict themselves, or earlier ones */
	uint64_t no_room;	 /* names and targets beyond the limits */
	uint64_t too_far;	 /* inputs so many windows after earlier ones that none were made */
	bool short_ahead;	 /* windows lack what the first pass had no room for */
	bool no_haskell_lanes;	 /* a process has none, as for `haskell_lanes` above */
};

/*
 * Reads `in` (seekable; `name` is for messages) to its end and makes the finished timeline. Prints
 * a line on failure: -EBADMSG: not a capture, or its beginning is damaged; -ENOTSUP: made by a
 * version with other records; others. What is damaged later is left out: see the notes, which are
 * in the timeline's `missing`, too. `hooks` may be NULL.
 */
int replay__read(FILE *in, const char *name, const struct replay_hooks *hooks,
		 struct replay **ret_replay);
void replay__free(struct replay *replay);
/* Lives as long as the replay. */
const struct picture *replay__picture(const struct replay *replay);
const struct replay_notes *replay__notes(const struct replay *replay);

#endif

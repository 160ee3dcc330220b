/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by frame.c (the summary of a window), terminal.c, draw.c (a frame as lines), and screen.c
 * (the child and keys). */
#ifndef SAFESCOPED_TOP_PRIV_H
#define SAFESCOPED_TOP_PRIV_H

#include "base/base.h"
#include "picture/picture.h"
#include "top.h"

/* ── a frame (frame.c) ───────────────────────────────────────────────────────────────────── */

#define TOP_PROCESSES 100
#define TOP_FUNCTIONS 20 /* for each process */
#define TOP_CALLS     12

struct top_function {
	char name[128], module[64];
	uint64_t self, total; /* ns of CPU time, or allocated bytes */
};

/* How much of what is counted was counted: nothing while its probes are off (--max-overhead). */
enum top_seen { TOP_SEEN_ALL, TOP_SEEN_SOME, TOP_SEEN_NONE };

struct top_call {
	char function[64], caller[96];
	bool safe;
	uint8_t seen;	   /* enum top_seen, of the calls */
	uint64_t n;	   /* finished calls; for unsafe calls, which are not counted, samples */
	uint64_t ended_ns; /* the time of finished calls; UINT64_MAX: not known */
	uint64_t total_ns; /* including those still open */
	uint64_t cpu_ns, blocked_ns;
};

struct top_process {
	char comm[32];
	int32_t pid;
	uint32_t threads;
	uint64_t cpu_ns;
	uint64_t states_ns[ST_MAX];   /* of its threads, except housekeeping ones */
	uint64_t calls, call_ns;      /* safe calls */
	uint8_t calls_seen, gcs_seen; /* enum top_seen, of `calls` and `gcs` */
	uint64_t gcs, gc_ns;	      /* collections, and their pauses */
	bool gc_known;		      /* gc_ns is known, or is an upper bound */
	bool alloc_known;	      /* allocation is known, from collections */
	uint64_t alloc_rate;	      /* bytes per second, from one collection to another */
	uint64_t alloc_bytes;	      /* the total that `allocators` have shares of */
	uint64_t live_bytes; /* after the last major collection, or the last one if none was major;
				0: not known */
	uint32_t n_functions, n_calls, n_allocators;
	struct top_function functions[TOP_FUNCTIONS];  /* by self */
	struct top_function allocators[TOP_FUNCTIONS]; /* by self */
	struct top_call list[TOP_CALLS];	       /* by total_ns */
};

/* Contains no pointers: it is sent through a pipe as it is. */
struct top_frame {
	uint64_t magic;
	uint64_t start_unix_ns, length_ns;
	uint32_t frequency_hz;
	uint32_t n_all;	      /* processes */
	uint32_t n_processes; /* of these, the ones that used the CPU most */
	struct top_process processes[TOP_PROCESSES];
};

#define TOP_MAGIC 0x35706f745f737373ULL

/* Validates what came through the pipe, and terminates its strings. False: it is not a frame. */
bool top_frame__check(struct top_frame *frame);
/* Sets how the child learns that the user wants the next window's report: screen.c sets *wanted,
 * which is in shared memory, and the child clears it and calls `report`. */
void top_report__set(bool *wanted, int (*report)(void *ctx, const struct picture *pic), void *ctx);

/* ── the terminal (terminal.c) ───────────────────────────────────────────────────────────── */

/* Takes over the terminal: alternate screen, no cursor, unbuffered keys. It is restored however
 * this process ends, except by SIGKILL. 0 or a negative errno. */
int terminal__take(void);
/* Restores the terminal. May be called any number of times. */
void terminal__give_back(void);
/* True if the terminal was given back and taken again since the last call. */
bool terminal__resumed(void);
void terminal__size(unsigned *ret_columns, unsigned *ret_rows);

/* ── drawing (draw.c) ────────────────────────────────────────────────────────────────────── */

enum top_sort { TOP_BY_CPU, TOP_BY_CALLS, TOP_BY_GC, TOP_BY_ALLOC, TOP_BY_NAME, TOP_SORTS };

struct top_view {
	const struct top_frame *frame; /* NULL: none has arrived */
	enum top_sort sort;
	int32_t selected; /* the pid; 0: the first one */
	bool frozen, ended, help, colour;
	char message[200]; /* from the session, or the effect of a key */
	unsigned columns, rows;
};

/* Sorts the processes; `order` has room for TOP_PROCESSES. Returns their number. */
size_t top__order(const struct top_view *view, const struct top_process **order);
/* Draws the whole screen, including positioning sequences. */
int top__draw(const struct top_view *view, struct buf *out);

#endif

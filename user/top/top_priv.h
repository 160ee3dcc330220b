/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by frame.c (a window in short), terminal.c, draw.c (a frame as lines), and screen.c
 * (keys). */
#ifndef SAFESCOPED_TOP_PRIV_H
#define SAFESCOPED_TOP_PRIV_H

#include <stdio.h>
#include <termios.h>

#include "base/base.h"
#include "picture/picture.h"
#include "top.h"

/* ── a frame (frame.c) ───────────────────────────────────────────────────────────────────── */

#define TOP_PROCESSES 100
#define TOP_FUNCTIONS 20 /* of a process */
#define TOP_CALLS     12

struct top_function {
	char name[128], module[64];
	uint64_t self, total; /* ns of CPU time, or bytes that it allocated */
};

struct top_call {
	char function[64], caller[96];
	bool safe;
	uint64_t n;	   /* calls that ended; unsafe ones are not counted: samples */
	uint64_t ended_ns; /* of these; UINT64_MAX: not known */
	uint64_t total_ns; /* with those that are still open */
	uint64_t cpu_ns, blocked_ns;
};

struct top_process {
	char comm[32];
	int32_t pid;
	uint32_t threads;
	uint64_t cpu_ns;
	uint64_t states_ns[ST_MAX]; /* of its threads, but for housekeeping */
	uint64_t calls, call_ns;    /* safe ones */
	uint64_t gcs, gc_ns;	    /* collections, and their pauses */
	bool alloc_known;	    /* a collection shows what comes next */
	uint64_t alloc_rate;	    /* bytes a second, from one collection to another */
	uint64_t alloc_bytes;	    /* that `allocators` have parts of */
	uint64_t live_bytes;	    /* after the last collection, or major one; 0: not known */
	uint32_t n_functions, n_calls, n_allocators;
	struct top_function functions[TOP_FUNCTIONS];  /* by self */
	struct top_function allocators[TOP_FUNCTIONS]; /* by self */
	struct top_call list[TOP_CALLS];	       /* by total_ns */
};

/* It has no pointers: it goes through a pipe as it is. */
struct top_frame {
	uint64_t magic;
	uint64_t start_unix_ns, length_ns;
	uint32_t frequency_hz;
	uint32_t n_all;	      /* processes */
	uint32_t n_processes; /* of these those that used the CPU most */
	struct top_process processes[TOP_PROCESSES];
};

#define TOP_MAGIC 0x33706f745f737373ULL

/* Reads what came by the pipe. False: it is no frame. */
bool top_frame__check(struct top_frame *frame);
/* Whether the user wants the next window's report: set by screen.c, taken by the child. */
void top_report__set(bool *wanted, int (*report)(void *ctx, const struct picture *pic), void *ctx);

/* ── the terminal (terminal.c) ───────────────────────────────────────────────────────────── */

/* Takes the terminal: another screen, no cursor, keys as they come. Whatever ends this process, but
 * for SIGKILL, gives it back. 0 or a negative errno. */
int terminal__take(void);
/* Any number of times. */
void terminal__give_back(void);
/* It was given back, and taken again, since this was asked last. */
bool terminal__resumed(void);
void terminal__size(unsigned *ret_columns, unsigned *ret_rows);

/* ── drawing (draw.c) ────────────────────────────────────────────────────────────────────── */

enum top_sort { TOP_BY_CPU, TOP_BY_CALLS, TOP_BY_GC, TOP_BY_ALLOC, TOP_BY_NAME, TOP_SORTS };

struct top_view {
	const struct top_frame *frame; /* NULL: none has come */
	enum top_sort sort;
	int32_t selected; /* the pid; 0: the first one */
	bool frozen, ended, help, colour;
	char message[200]; /* of the session, or what a key did */
	unsigned columns, rows;
};

/* The processes in their order; `order` has room for TOP_PROCESSES. Returns how many. */
size_t top__order(const struct top_view *view, const struct top_process **order);
/* The whole screen, with the sequences that place it. */
int top__draw(const struct top_view *view, struct buf *out);

#endif

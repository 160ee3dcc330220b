/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tap: reports every input, so that it can be kept and replayed: the same inputs in the same order
 * make the same picture. Part of the public interface of the intake room.
 *
 * To add a kind of input (a new function of intake.h, or a new question to the namer):
 * 1. append a number to enum intake_input_kind, and note which fields it uses;
 * 2. report it (tap__report) after it was taken; an answer: where it was given;
 * 3. replay it in user/capture/replay.c (apply());
 *    (for input derived from a file, such as a log's models: the reader of the file reports its
 *    bytes, in pieces, and what else the result depends on, the clocks too; at the replay the same
 *    code reads them again: capture__take_log, struct replay_hooks);
 * 4. only if it has a struct with pointers for which struct intake_input has no field yet: add a
 *    field, and its members in user/capture/codec.c.
 */
#ifndef SAFESCOPED_INTAKE_TAP_H
#define SAFESCOPED_INTAKE_TAP_H

#include "intake.h"

/* These numbers are in files: never reuse one. */
enum intake_input_kind {
	TI_NONE = 0,
	TI_TARGET = 1, /* pid, info; a: attach_ns, b: attach_took_ns; n: enum intake_namer_part */
	TI_UPDATE_TARGET = 2, /* pid, info */
	TI_RECORD = 3,	      /* data */
	TI_SNAPSHOT = 4,      /* pid, snapshot; a: at_ns, n: at_end */
	TI_SITE_COUNTERS = 5, /* data: the key, then the value; a: when they were read */
	TI_THREAD_STATE = 6,  /* tid, data */
	TI_OFF_STACK = 7,     /* pid, tid, data */
	TI_COST = 8,	      /* pid, data: struct intake_cost */
	TI_LOST = 9,	      /* pid, text; a */
	TI_LOST_SHARE = 10,   /* pid, share */
	TI_MISSING = 11,      /* pid, text */
	TI_EXIT_CODE = 12,    /* a */
	TI_END_TARGET = 13,   /* pid, text; a: at_ns */
	TI_FINISH = 14,	      /* a: end_ns */
	/* answers of the namer of target number `target`; n: the error, negated */
	TI_NAME = 15, /* a: the frame; name */
	TI_SITE = 16, /* a: the address; site */
	TI_CCS = 17,  /* a: the address; ccs */
	/* reported by the code that joins an eventlog: what was read from the file, and how */
	TI_LOG_BYTES = 18,     /* pid, data; a: number of bytes before these */
	TI_LOG = 19,	       /* pid, text: its path, data: struct intake_log_join; a: its bytes */
	TI_FORGET_TARGET = 20, /* pid */
	TI_SETTLE_TARGET = 21, /* pid; n: keep */
	TI_RETIRE_SETTLED = 22, /* a: how many stay */
	TI_CUT = 23,		/* a: at_ns */
	TI_CENSUS = 24,		/* pid, data: struct target_census up to its last entry; a: at_ns */
	TI_RENAME = 25,
	TI_RETAKEN = 26, /* pid; a: start, b: end */
	TI_LIVING = 27,	 /* pid, data: struct target_living_thread[]; a: at_ns, b: began_ns */
	TI_MAX,
};

/* The kind's name in a file's header, such as "record". */
const char *intake_input__name(enum intake_input_kind kind);

/* What a log's models depend on in addition to its bytes. */
struct intake_log_join {
	uint64_t session_ns, observed_ns; /* CLOCK_MONOTONIC */
	uint64_t now_ns, now_wall_ns;	  /* both clocks when it was read */
	/* Captures of earlier versions end here. */
	uint64_t start_ns; /* CLOCK_MONOTONIC when the process started, assuming that the system was
			      not suspended since; 0: unknown */
	uint64_t suspended_ns; /* total time the system was suspended since boot */
};

/* TI_TARGET, n: the callbacks that the namer has besides `name`. */
enum intake_namer_part { TN_SITE = 1, TN_CCS = 2 };

struct intake_input {
	enum intake_input_kind kind;
	pid_t pid, tid;
	uint32_t target; /* counts the calls of intake__add_target that succeeded, from 0 */
	uint32_t n;
	uint64_t a, b;
	double share;
	const char *text;
	const void *data; /* without pointers, in memory layout */
	size_t size;
	const struct target_info *info;
	const struct snapshot *snapshot;
	const struct code_name *name;
	const struct target_site *site;
	const struct target_ccs *ccs;
};

/*
 * From now on, reports every input that was taken; refused ones (-EINVAL, -ENOENT, -EBADMSG) are
 * not reported. An answer of a namer comes before the input that needed it. Everything that *input
 * points at lives only for the duration of the call.
 */
typedef void (*intake_tap)(void *ctx, const struct intake_input *input);
void intake__set_tap(struct intake *in, intake_tap tap, void *ctx);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of a replay only. */
#ifndef SAFESCOPED_CAPTURE_REPLAY_PRIV_H
#define SAFESCOPED_CAPTURE_REPLAY_PRIV_H

#include "codec_priv.h"
#include "gaps_priv.h"
#include "replay_windows_priv.h"

struct answer;
struct answers;

struct replay_target {
	struct replay *replay;
	uint32_t no;
	struct target_info info; /* as last seen */
};

/* For a log whose TI_LOG is still to come. */
struct log_bytes {
	int fd; /* -1: none */
	pid_t pid;
	uint64_t size;
};

struct counted_site;

struct replay {
	struct timeline *tl;
	struct intake *in; /* the timeline's */
	struct header header;
	struct replay_notes notes;
	struct strtab *strings;
	struct answers *answers;
	struct answer **all; /* answers, for freeing */
	size_t n_all, all_cap;
	/* How many places were taken over by another file's code: in the replay so far, and in the
	 * first pass so far. */
	uint32_t n_retaken, n_retaken_ahead;
	struct replay_target **targets;
	size_t n_targets, targets_cap;
	uint64_t last_ns; /* the latest time in any input */
	struct replay_hooks hooks;
	struct replay_windows windows;
	struct counted_site *sites; /* replay_calls.c */
	struct gaps gaps;
	struct log_bytes log;
	uint64_t log_bytes; /* of all logs */
	bool finished;
	bool looking_ahead;
	bool ending; /* what follows belongs to the session's end */
	/* In windows, the end's snapshots and states wait until all records have been taken, since
	 * records that come after them may be from before the last cut. */
	uint64_t n_inputs, end_at; /* number of the end's first input; 0: there is none so far */
	bool after_records;
};

/* ── replay_answers.c: a namer that answers as the session's did; ctx: a replay_target ───── */

void replay__name(void *ctx, uint64_t frame, struct code_name *ret_name);
int replay__site(void *ctx, uint64_t addr, struct target_site *ret_site);
int replay__ccs(void *ctx, uint64_t addr, struct target_ccs *ret_ccs);
int replay__read_ccs(void *ctx, const uint64_t *addrs, size_t n);
/* Keeps an answer of the capture. -EBADMSG, -E2BIG, -ENOMEM. */
int replay__take_answer(struct replay *r, const struct intake_input *in);
void replay__free_answers(struct replay *r);

/* ── replay_report.c: what is left out, in the timeline's `missing` ──────────────────────── */

void replay__report(struct replay *r);
/* Call as a process joins: in windows no log is joined that could bring lanes, and every window
 * must have the note. */
void replay__report_no_lanes(struct replay *r, pid_t pid);
/* Without windows, call when the replay is finished, since a joined log may have brought lanes. */
void replay__report_lanes(struct replay *r);

/* ── replay_calls.c: the calls of a capture that was not finished ────────────────────────── */

/* Call when a record of a call was taken. -EBADMSG, -ENOMEM. */
int replay__call(struct replay *r, const struct intake_input *in);
/* Call when counters were taken; they had been read at at_ns; 0: unknown. -ENOMEM. */
int replay__counters(struct replay *r, const struct wire_site_key *key,
		     const struct wire_site *value, uint64_t at_ns);
/* Call if the capture ends before the session's end: calls after the last counters are counted by
 * their records. -ENOMEM. */
int replay__count_calls(struct replay *r);
void replay__free_calls(struct replay *r);

/* ── replay_log.c: TI_LOG_BYTES and TI_LOG; -EBADMSG, -ENOMEM, and other errors ──────────── */

int replay__log_bytes(struct replay *r, const struct intake_input *in);
int replay__log(struct replay *r, const struct intake_input *in);

/* ── replay_looks.c: TI_CENSUS and TI_LIVING; as the intake's functions, and -EBADMSG ────── */

int replay__census(struct replay *r, const struct intake_input *in);
int replay__living(struct replay *r, const struct intake_input *in);

#endif

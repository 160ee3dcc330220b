/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A finished picture made by hand behind the functions that exporters read a timeline with: all
 * of the timeline's object that has them, so that the archive's own is not linked.
 */
#ifndef SAFESCOPED_TEST_EXPORT_FAKE_H
#define SAFESCOPED_TEST_EXPORT_FAKE_H

#include <stdlib.h>

#include "base/base.h"
#include "timeline/timeline.h"

struct timeline {
	struct tl_session session;
	const struct tl_target *targets;
	size_t n_targets;
	const struct tl_frame *frames;
	uint32_t n_frames;
	const struct tl_stack *stacks;
	uint32_t n_stacks;
};

static const struct {
	const char *name, *title;
} fake_states[ST_MAX] = {
	[ST_HASKELL] = {"haskell", "Haskell"},
	[ST_UNSAFE_CALL_CPU] = {"unsafe_call_cpu", "unsafe call"},
	[ST_SAFE_CALL_CPU] = {"safe_call_cpu", "safe call"},
	[ST_GC_WORK] = {"gc_work", "GC work"},
	[ST_RTS] = {"rts", "RTS"},
	[ST_FOREIGN_CPU] = {"foreign_cpu", "foreign code"},
	[ST_HASKELL_BLOCKED] = {"haskell_blocked", "Haskell, page fault"},
	[ST_UNSAFE_CALL_BLOCKED] = {"unsafe_call_blocked", "unsafe call, blocked"},
	[ST_SAFE_CALL_BLOCKED] = {"safe_call_blocked", "safe call, blocked"},
	[ST_CAP_WAIT] = {"cap_wait", "waiting for a capability"},
	[ST_GC_WAIT] = {"gc_wait", "waiting for GC"},
	[ST_RTS_BLOCKED] = {"rts_blocked", "RTS, blocked"},
	[ST_IDLE] = {"idle", "idle"},
	[ST_FOREIGN_BLOCKED] = {"foreign_blocked", "foreign code, blocked"},
	[ST_PREEMPTED] = {"preempted", "preempted"},
	[ST_SAFE_CALL] = {"safe_call", "safe call"},
	[ST_UNKNOWN] = {"unknown", "unknown"},
};

const char *state__name(enum tl_state state)
{
	return fake_states[state].name;
}

const char *state__title(enum tl_state state)
{
	return fake_states[state].title;
}

bool state__on_cpu(enum tl_state state)
{
	return state <= ST_FOREIGN_CPU;
}

const struct tl_session *timeline__session(const struct timeline *tl)
{
	return &tl->session;
}

size_t timeline__n_targets(const struct timeline *tl)
{
	return tl->n_targets;
}

/* A row for each slice: the pictures are made of slices, and formats add rows up. */
#define FAKE_ACCOUNTS 4096
static struct ledger_row *fake_accounts[FAKE_ACCOUNTS]; /* until the test's end */
static size_t n_fake_accounts;

static struct ledger_row *fake_account(size_t n)
{
	struct ledger_row *rows = calloc(n + 1, sizeof(*rows));

	if (!rows || n_fake_accounts == FAKE_ACCOUNTS)
		abort();
	fake_accounts[n_fake_accounts++] = rows;
	return rows;
}

#define FAKE_ACCOUNT(lane, samples_, on_cpu_)                                                      \
	do {                                                                                       \
		struct ledger_row *rows_;                                                          \
		if ((lane)->rows)                                                                  \
			break;                                                                     \
		(lane)->rows = rows_ = fake_account((lane)->n_stretches);                          \
		(lane)->n_rows = (lane)->n_stretches;                                              \
		for (size_t j_ = 0; j_ < (lane)->n_stretches; j_++) {                              \
			const __typeof__((lane)->stretches[0]) *s = &(lane)->stretches[j_];        \
			rows_[j_] = (struct ledger_row){                                           \
				.ns = s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0,       \
				.samples = samples_,                                               \
				.stack = s->stack,                                                 \
				.state = s->state,                                                 \
				.on_cpu = on_cpu_};                                                \
		}                                                                                  \
	} while (0)

const struct tl_target *timeline__target(const struct timeline *tl, size_t i)
{
	const struct tl_target *t = &tl->targets[i];

	for (size_t k = 0; k < t->n_lanes; k++) {
		struct tl_lane *lane = (struct tl_lane *)&t->lanes[k];

		FAKE_ACCOUNT(lane, s->samples, state__on_cpu((enum tl_state)s->state));
	}
	for (size_t k = 0; k < t->n_cap_lanes; k++) {
		struct tl_cap_lane *lane = (struct tl_cap_lane *)&t->cap_lanes[k];

		FAKE_ACCOUNT(lane, s->samples,
			     s->state == CS_HASKELL || s->state == CS_GC || s->state == CS_RTS);
	}
	for (size_t k = 0; k < t->n_tso_lanes; k++) {
		struct tl_tso_lane *lane = (struct tl_tso_lane *)&t->tso_lanes[k];

		FAKE_ACCOUNT(lane, 0, s->state == HS_RUNNING);
	}
	return t;
}

const struct tl_frame *timeline__frame(const struct timeline *tl, uint32_t index)
{
	return &tl->frames[index];
}

uint32_t timeline__n_frames(const struct timeline *tl)
{
	return tl->n_frames;
}

struct tl_stack timeline__stack(const struct timeline *tl, uint32_t index)
{
	return index < tl->n_stacks ? tl->stacks[index] : (struct tl_stack){0};
}

#endif

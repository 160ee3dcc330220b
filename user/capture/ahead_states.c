/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ahead_states_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ahead_room_priv.h"
#include "base/base.h"
#include "intake/tap.h"

#define MAX_STATES ((size_t)1 << 20)

void ahead_states__forget(struct ahead_states *states, struct ahead_room *room)
{
	for (size_t i = 0; i < states->n; i++)
		free(states->v[i]);
	room->bytes -= states->n * sizeof(struct ahead_state);
	states->n = 0;
}

void ahead_states__free(struct ahead_states *states)
{
	for (size_t i = 0; i < states->n; i++)
		free(states->v[i]);
	free(states->v);
	*states = (struct ahead_states){0};
}

int ahead_states__look(struct ahead_states *states, struct ahead_room *room,
		       const struct intake_input *input)
{
	struct ahead_state *state;
	int err;

	if (input->size != sizeof(state->thread) || !ahead_room__takes_bytes(room, AHEAD_CUTS))
		return 0;
	err = AHEAD_RESERVE(room, AHEAD_CUTS, states->v, states->cap, states->n + 1, MAX_STATES);
	if (err)
		return err == -E2BIG ? 0 : err;
	state = calloc(1, sizeof(*state));
	if (!state)
		return -ENOMEM;
	memcpy(&state->thread, input->data, sizeof(state->thread));
	state->tid = input->tid;
	states->v[states->n++] = state;
	room->bytes += sizeof(*state);
	return 0;
}

void ahead_states__look_stack(struct ahead_states *states, const struct intake_input *input)
{
	struct ahead_state *last = states->n ? states->v[states->n - 1] : NULL;

	if (input->size != sizeof(last->stack) || !last || last->tid != input->tid)
		return;
	memcpy(&last->stack, input->data, sizeof(last->stack));
	last->has_stack = true;
}

/* The gap before the state: it goes on at the cut, or has ended in the window before it. */
static int give_gap(struct intake *in, struct ahead_state *s, uint64_t cut_ns)
{
	bool over = s->gap.h.ns <= cut_ns;
	int err;

	if (!s->has_gap || cut_ns <= s->gap.out_ns)
		return 0;
	err = over ? intake__record(in, &s->gap, sizeof(s->gap))
		   : intake__ahead(in, &s->gap, sizeof(s->gap));
	s->has_gap = !over;
	return err == -ENOMEM ? err : 0;
}

/* Gives a state that lasted to the end, as the kernel's map would have had it at the cut. */
static int give_state(struct intake *in, const struct ahead_state *s, uint64_t cut_ns)
{
	struct wire_thread thread = s->thread;
	bool off = thread.off_since_ns && thread.off_since_ns < cut_ns;
	uint32_t depth = 0;
	int err;

	while (depth < MIN(thread.depth, (uint32_t)WIRE_OPEN_MAX) &&
	       thread.open[depth].start_ns < cut_ns)
		depth++;
	thread.depth = depth;
	if (!off) {
		thread.off_since_ns = 0;
		thread.on_since_ns = MAX(thread.on_since_ns, UINT64_C(1));
		/* there were fewer of them then */
		thread.short_calls = thread.short_wall_ns = 0;
		thread.short_blocked_ns = thread.short_runnable_ns = 0;
	}
	err = intake__thread_state(in, s->tid, &thread);
	/* the stack of the innermost call, if that is the same one */
	if (!err && (off || (depth && depth == s->thread.depth)) && s->has_stack)
		err = intake__off_stack(in, (pid_t)thread.tgid, s->tid, &s->stack);
	return err == -ENOMEM ? err : 0;
}

int ahead_states__give(const struct ahead_states *states, struct intake *in, uint64_t cut_ns)
{
	int err = 0;

	for (size_t i = 0; !err && i < states->n; i++)
		if (states->v[i]->born_ns <= cut_ns)
			err = give_state(in, states->v[i], cut_ns)
				      ?: give_gap(in, states->v[i], cut_ns);
	return err;
}

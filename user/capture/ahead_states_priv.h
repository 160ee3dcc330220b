/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead_states: the threads in the kernel's map, as the session read it at its end. What a thread
 * was doing then, and had been doing since before a cut, it was doing at the cut.
 */
#ifndef SAFESCOPED_CAPTURE_AHEAD_STATES_PRIV_H
#define SAFESCOPED_CAPTURE_AHEAD_STATES_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

struct ahead_room;
struct intake;
struct intake_input;

struct ahead_state {
	pid_t tid;
	uint64_t born_ns; /* 0: before all records; UINT64_MAX: it has ended */
	bool has_stack;
	bool has_gap; /* `gap` is still to be given */
	struct wire_thread thread;
	struct wire_off_stack stack;
	struct wire_off gap; /* in a damaged capture: until the thread went off the CPU */
};

struct ahead_states {
	struct ahead_state **v;
	size_t n, cap;
};

void ahead_states__free(struct ahead_states *states);
/* Drops the states so far: they were not the last ones. */
void ahead_states__forget(struct ahead_states *states, struct ahead_room *room);
/* Takes a thread's state; one of another size, or without room, is ignored. -ENOMEM. */
int ahead_states__look(struct ahead_states *states, struct ahead_room *room,
		       const struct intake_input *input);
/* Takes the stack for the last state. */
void ahead_states__look_stack(struct ahead_states *states, const struct intake_input *input);
/* Gives the intake the states, as of the cut, of threads that existed then. -ENOMEM. */
int ahead_states__give(const struct ahead_states *states, struct intake *in, uint64_t cut_ns);

#endif

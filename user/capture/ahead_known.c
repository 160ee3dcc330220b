/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ahead_known_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "intake/seen.h"
#include "intake/tap.h"

#define MAX_TARGETS ((size_t)1 << 16)

void ahead_known__free(struct ahead_known *known)
{
	free(known->v);
	*known = (struct ahead_known){0};
}

/* Offset of the runtime's state in a record of that type; 0: it has none. */
static size_t rts_at(uint16_t type)
{
	return type == WIRE_SAMPLE ? offsetof(struct wire_sample, rts)
	       : type == WIRE_OFF  ? offsetof(struct wire_off, rts)
				   : 0;
}

/*
 * A capability that is held, or waited for, is assumed to exist from the start, unless an earlier
 * tick has the number of capabilities.
 */
static void look_at_record(struct known *known, const struct intake_input *input)
{
	struct wire_rts rts;
	struct wire_hdr h;
	size_t at;

	if (input->size < sizeof(h))
		return;
	memcpy(&h, input->data, sizeof(h));
	if (h.type == WIRE_PROC_EXIT)
		known->end_ns = h.ns;
	if (known->ticked)
		return;
	known->ticked = h.type == WIRE_TICK;
	at = rts_at(h.type);
	if (!at || input->size < at + sizeof(rts))
		return;
	memcpy(&rts, (const unsigned char *)input->data + at, sizeof(rts));
	if (rts.cap_no < MAX_CAPS &&
	    (rts.where == WIRE_WHERE_HASKELL || rts.where == WIRE_WHERE_RTS ||
	     rts.where == WIRE_WHERE_RESUMING))
		known->capabilities = MAX(known->capabilities, rts.cap_no + 1);
}

int ahead_known__look(struct ahead_known *known, size_t no, const struct intake_input *input)
{
	const size_t missed_at = offsetof(struct intake_cost, calls_missed);
	int err = ARRAY_RESERVE(known->v, known->cap, no + 1, MAX_TARGETS);

	if (err)
		return err == -E2BIG ? 0 : err;
	while (known->n <= no)
		known->v[known->n++] = (struct known){0};
	/* the session knew it early, but a capture without windows has it at the end */
	if (input->kind == TI_COST && input->size > missed_at)
		known->v[no].calls_missed = ((const unsigned char *)input->data)[missed_at] == 1;
	/* a process that was found as it started had none then */
	else if (input->kind == TI_UPDATE_TARGET && input->info)
		known->v[no].capabilities = input->info->capabilities;
	else if (input->kind == TI_RECORD)
		look_at_record(&known->v[no], input);
	return 0;
}

void ahead_known__give(const struct ahead_known *known, size_t no, struct intake *in, pid_t pid,
		       uint64_t last_ns)
{
	bool exits;

	if (no < known->n)
		intake__known_ahead(in, pid, known->v[no].calls_missed, known->v[no].capabilities);
	exits = no < known->n && known->v[no].end_ns;
	intake__ends_ahead(in, pid, exits ? known->v[no].end_ns : last_ns, exits);
}

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

/* What the record's thread was doing; -1: it has nothing of it. */
static int rts_of(const struct intake_input *input, struct wire_rts *ret_rts)
{
	struct wire_hdr h;
	size_t at;

	if (input->size < sizeof(h))
		return -1;
	memcpy(&h, input->data, sizeof(h));
	if (h.type == WIRE_SAMPLE)
		at = offsetof(struct wire_sample, rts);
	else if (h.type == WIRE_OFF)
		at = offsetof(struct wire_off, rts);
	else
		return -1;
	if (input->size < at + sizeof(*ret_rts))
		return -1;
	memcpy(ret_rts, (const unsigned char *)input->data + at, sizeof(*ret_rts));
	return 0;
}

static bool is_tick(const struct intake_input *input)
{
	struct wire_hdr h;

	if (input->size < sizeof(h))
		return false;
	memcpy(&h, input->data, sizeof(h));
	return h.type == WIRE_TICK;
}

/*
 * A capability that somebody holds, or waits for, was there from the begin on, as far as is known,
 * where no tick before that has how many there were.
 */
static void look_at_record(struct known *known, const struct intake_input *input)
{
	struct wire_rts rts;

	known->ticked |= is_tick(input);
	if (known->ticked || rts_of(input, &rts) || rts.cap_no >= MAX_CAPS)
		return;
	if (rts.where == WIRE_WHERE_HASKELL || rts.where == WIRE_WHERE_RTS ||
	    rts.where == WIRE_WHERE_RESUMING)
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
	/* the session knew it early, and a capture without windows has it at the end */
	if (input->kind == TI_COST && input->size > missed_at)
		known->v[no].calls_missed = ((const unsigned char *)input->data)[missed_at] == 1;
	/* one that was found as it began had none then */
	else if (input->kind == TI_UPDATE_TARGET && input->info)
		known->v[no].capabilities = input->info->capabilities;
	else if (input->kind == TI_RECORD)
		look_at_record(&known->v[no], input);
	return 0;
}

void ahead_known__give(const struct ahead_known *known, size_t no, struct intake *in, pid_t pid)
{
	if (no < known->n)
		intake__known_ahead(in, pid, known->v[no].calls_missed, known->v[no].capabilities);
}

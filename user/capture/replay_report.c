/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_report: reports what a replay's picture lacks of its capture. */
#include <inttypes.h>

#include "picture/picture.h"
#include "replay_priv.h"

static void note(struct replay *r, const char *text)
{
	const struct picture *pic = timeline__picture(r->tl);

	for (size_t i = 0; i < picture__n_targets(pic); i++)
		intake__add_missing(r->in, picture__target(pic, i)->pid, text);
	intake__set_exit_code(r->in, 1);
}

static void report_left_out(struct replay *r)
{
	char text[160];

	if (r->notes.refused_inputs) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " of the capture's records contradict others, and are left out",
			 r->notes.refused_inputs);
		note(r, text);
	}
	if (r->notes.no_room) {
		snprintf(text, sizeof(text),
			 "the capture has %" PRIu64 " more names and processes than a replay keeps",
			 r->notes.no_room);
		note(r, text);
	}
	if (r->notes.too_far) {
		snprintf(text, sizeof(text),
			 "%" PRIu64 " records that come too many windows late are left out: longer "
			 "windows may include them",
			 r->notes.too_far);
		note(r, text);
	}
	/* each window already has what is missing */
	if (r->notes.short_ahead)
		intake__set_exit_code(r->in, 1);
}

void replay__report(struct replay *r)
{
	char text[160];

	if (!r->notes.complete) {
		snprintf(text, sizeof(text),
			 "the capture was not finished: what came after %.3f s is not in it",
			 (double)(r->last_ns > r->header.opts.start_ns
					  ? r->last_ns - r->header.opts.start_ns
					  : 0) /
				 1e9);
		note(r, text);
	}
	if (r->notes.damaged_blocks)
		intake__lost_unknown(r->in);
	if (r->notes.damaged_blocks == UINT64_MAX)
		note(r, "the capture is damaged");
	else if (r->notes.damaged_blocks) {
		snprintf(text, sizeof(text),
			 "the capture is damaged: %" PRIu64 " of its blocks are left out",
			 r->notes.damaged_blocks);
		note(r, text);
	}
	report_left_out(r);
	if (r->notes.unknown_inputs) {
		snprintf(text, sizeof(text),
			 "the capture is from safescoped %s: this version does not know %" PRIu64
			 " of its records",
			 r->header.version, r->notes.unknown_inputs);
		note(r, text);
	}
}

static void note_no_lanes(struct replay *r, pid_t pid)
{
	intake__add_missing(r->in, pid,
			    "no lanes of Haskell threads: the capture was made without "
			    "--lanes haskell");
	intake__set_exit_code(r->in, 1);
	r->notes.no_haskell_lanes = true;
}

void replay__report_no_lanes(struct replay *r, pid_t pid)
{
	if (r->windows.every_ns && r->hooks.haskell_lanes && !r->header.opts.haskell_lanes)
		note_no_lanes(r, pid);
}

void replay__report_lanes(struct replay *r)
{
	const struct picture *pic = timeline__picture(r->tl);

	if (r->windows.every_ns || !r->hooks.haskell_lanes || r->header.opts.haskell_lanes)
		return;
	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *target = picture__target(pic, i);

		if (!target->lanes[LANE_HASKELL].n)
			note_no_lanes(r, target->pid);
	}
}

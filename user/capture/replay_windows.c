/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_windows: cuts a replayed session as the live one would have been cut. */
#include "replay_windows_priv.h"

#include <errno.h>

#include "ahead_priv.h"
#include "ahead_room_priv.h"
#include "base/base.h"
#include "intake/tap.h"
#include "timeline/timeline.h"

/* The most windows in a row without a record, beyond which the capture is assumed to be damaged: at
 * 60 s per window it is two months. */
#define MAX_AT_ONCE 100000

void replay_windows__free(struct replay_windows *w)
{
	ahead__free(w->ahead);
	*w = (struct replay_windows){0};
}

int replay_windows__look(struct replay_windows *w, const struct intake_input *input, uint64_t lost)
{
	int err = w->ahead
			  ? 0
			  : ahead__new(w->next_ns, w->every_ns, w->haskell, w->max_kept, &w->ahead);

	w->n_live_cuts += input->kind == TI_CUT;
	return err ? err : ahead__look(w->ahead, input, lost);
}

int replay_windows__looked(struct replay_windows *w)
{
	return w->ahead ? ahead__looked(w->ahead) : 0;
}

/* Reports what all windows of the process lack. */
static int report_lack(const struct replay_windows *w, struct intake *in, pid_t pid)
{
	char text[256];
	int err = 0;

	for (enum ahead_kind kind = 0; err != -ENOMEM && kind < AHEAD_KINDS; kind++)
		if (ahead_room__lacks(ahead__room(w->ahead), kind, text, sizeof(text)))
			err = intake__add_missing(in, pid, text);
	return err == -ENOMEM ? err : 0;
}

bool replay_windows__lacks(const struct replay_windows *w)
{
	const struct ahead_room *room = w->ahead ? ahead__room(w->ahead) : NULL;
	bool lacks = false;

	for (enum ahead_kind kind = 0; room && kind < AHEAD_KINDS; kind++)
		lacks |= room->left_out[kind] != 0;
	return lacks;
}

int replay_windows__joined(struct replay_windows *w, struct timeline *tl, pid_t pid)
{
	int err = w->ahead ? ahead__joined(w->ahead, timeline__intake(tl), pid) : 0;

	return err || !w->ahead ? err : report_lack(w, timeline__intake(tl), pid);
}

int replay_windows__snapshot(struct replay_windows *w, struct timeline *tl,
			     const struct intake_input *input)
{
	return w->ahead ? ahead__snapshot(w->ahead, timeline__intake(tl), input, w->next_ns)
			: -ENOENT;
}

int replay_windows__begin(struct replay_windows *w, struct timeline *tl,
			  struct wire_thread_event *rec)
{
	return w->ahead ? ahead__begin(w->ahead, timeline__intake(tl), rec) : 0;
}

static int cut(struct replay_windows *w, struct timeline *tl)
{
	struct picture *pic = NULL;
	int err = w->ahead ? ahead__give(w->ahead, timeline__intake(tl), w->next_ns, w->n_records)
			   : 0;

	if (!err)
		err = timeline__window(tl, w->next_ns, &pic);
	w->next_ns += w->every_ns;
	return err || !pic ? err : w->take(w->ctx, pic);
}

/* Whether no cut is left to make; the session's last records may be later than its end. */
static bool is_last(const struct replay_windows *w)
{
	uint64_t end_ns = w->ahead ? ahead__end(w->ahead) : 0;

	return w->latest_ns <= w->next_ns || (end_ns && w->next_ns >= end_ns);
}

/* Makes the windows up to latest_ns for which all records have come. */
static int make(struct replay_windows *w, struct timeline *tl)
{
	while (!w->stopped && !is_last(w)) {
		/* the kernel's records are nearly in time order */
		if (w->ahead && ahead__last_before(w->ahead, w->next_ns) >= w->n_records)
			break;
		w->stopped = cut(w, tl);
	}
	return w->stopped;
}

static bool is_too_far(const struct replay_windows *w, uint64_t ns)
{
	return ns > w->next_ns && (ns - w->next_ns) / w->every_ns > MAX_AT_ONCE;
}

int replay_windows__record(struct replay_windows *w, struct timeline *tl, uint64_t ns)
{
	if (!w->every_ns)
		return 0;
	w->n_records++;
	if (ns == UINT64_MAX)
		return 0;
	if (is_too_far(w, MAX(ns, w->latest_ns)))
		return -ERANGE;
	w->latest_ns = MAX(w->latest_ns, ns);
	return make(w, tl);
}

bool replay_windows__is_over(const struct replay_windows *w, uint64_t ns)
{
	return w->every_ns && ns <= w->next_ns - w->every_ns;
}

int replay_windows__end(struct replay_windows *w, struct timeline *tl, uint64_t ns)
{
	if (!w->every_ns)
		return 0;
	if (ns == UINT64_MAX)
		ns = w->ahead ? ahead__end(w->ahead) : 0;
	if (is_too_far(w, ns))
		return -ERANGE;
	w->n_records = UINT64_MAX;
	w->latest_ns = MAX(w->latest_ns, ns);
	return make(w, tl);
}

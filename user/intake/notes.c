/* SPDX-License-Identifier: GPL-2.0-or-later */
/* notes: what records show of capabilities and Haskell threads, beyond what OS threads did. */
#include "intake_priv.h"

#define MAX_CAP_NOTES (1U << 16)
#define MAX_TSOS      (1U << 20)

int notes__caps(struct seen *s, uint64_t ns, uint32_t n, uint64_t disabled)
{
	const struct cap_note *last = s->n_cap_notes ? &s->cap_notes[s->n_cap_notes - 1] : NULL;
	int err;

	if (last && ((last->n == n && last->disabled == disabled) || ns < last->ns))
		return 0;
	err = ARRAY_RESERVE(s->cap_notes, s->cap_notes_cap, s->n_cap_notes + 1, MAX_CAP_NOTES);
	if (err) {
		s->left_out++;
		return err == -E2BIG ? -ENOSPC : err;
	}
	s->cap_notes[s->n_cap_notes++] = (struct cap_note){.ns = ns, .disabled = disabled, .n = n};
	return 0;
}

/* ── Haskell threads ─────────────────────────────────────────────────────────────────────── */

static int add_note(struct intake *in, struct seen *s, const struct tso_note *note)
{
	int err = ARRAY_RESERVE(s->tso_notes, s->tso_notes_cap, s->n_tso_notes + 1,
				in->opts.max_records);

	if (err) {
		s->left_out++;
		return err == -E2BIG ? -ENOSPC : err;
	}
	s->tso_notes[s->n_tso_notes++] = *note;
	return 0;
}

static int note_left(struct intake *in, struct seen *s, const struct wire_tso *rec)
{
	const struct tso_note left = {
		.tso = rec->left_id,
		.ns = rec->h.ns,
		.why = rec->left_why,
		.ended = wire_tso_has_ended(rec->left_what_next),
	};

	return add_note(in, s, &left);
}

static void note_end(struct seen *s, uint64_t id, uint64_t ns)
{
	struct tso_info *info;

	HASH_FIND(hh, s->tso_infos, &id, sizeof(id), info);
	if (info && !info->end_ns)
		info->end_ns = ns;
}

int notes__tso_waits(struct intake *in, struct seen *s, const struct wire_tso_waits *rec)
{
	const struct tso_note look = {
		.tso = rec->id,
		.ns = rec->h.ns,
		.since_ns = MIN(rec->since_ns, rec->h.ns),
		.why = (uint16_t)MIN(rec->why, WIRE_TSO_UNKNOWN),
		.ended = wire_tso_has_ended(rec->what_next),
		.is_look = true,
	};

	if (!in->opts.haskell || !rec->id)
		return 0;
	if (look.ended)
		note_end(s, rec->id, rec->h.ns);
	return add_note(in, s, &look);
}

int notes__tso_info(struct seen *s, uint64_t id, struct tso_info **ret_info)
{
	struct tso_info *info;
	int err;

	HASH_FIND(hh, s->tso_infos, &id, sizeof(id), info);
	if (!info) {
		if (HASH_COUNT(s->tso_infos) >= MAX_TSOS)
			return -E2BIG;
		info = calloc(1, sizeof(*info));
		if (!info)
			return -ENOMEM;
		info->id = id;
		info->label = "";
		err = HASH_INSERT(s->tso_infos, id, sizeof(info->id), info);
		if (err)
			return err;
	}
	*ret_info = info;
	return 0;
}

int notes__tso(struct intake *in, struct seen *s, const struct wire_tso *rec)
{
	char label[sizeof(rec->label) + 1] = {0};
	struct tso_info *info;
	int err = 0;

	if (!in->opts.haskell)
		return 0;
	if (rec->left_id)
		err = note_left(in, s, rec);
	if (!err && wire_tso_has_ended(rec->left_what_next))
		note_end(s, rec->left_id, rec->h.ns);
	if (err || !rec->id)
		return err;
	memcpy(label, rec->label, sizeof(rec->label));
	err = notes__tso_info(s, rec->id, &info);
	if (err)
		return err == -E2BIG ? 0 : err;
	info->bound |= rec->bound == 1;
	info->seen_ns = MAX(info->seen_ns, rec->h.ns);
	info->run_ns = info->run_ns ? MIN(info->run_ns, rec->h.ns) : rec->h.ns;
	if (label[0])
		info->label = picture__string(in->pic, label);
	return 0;
}

const struct tso_info *seen__tso(const struct seen *s, uint64_t id)
{
	const struct tso_info *info;

	HASH_FIND(hh, s->tso_infos, &id, sizeof(id), info);
	return info;
}

bool seen__may_run(const struct seen *s, uint64_t tso, uint64_t ns)
{
	const struct tso_info *info = seen__tso(s, tso);

	return !info ||
	       ((!info->run_ns || ns >= info->run_ns) && (!info->end_ns || ns < info->end_ns));
}

/* ── safe calls and run queues ───────────────────────────────────────────────────────────── */

/* Drops calls beyond the limit: the rest of the picture is still complete. */
int notes__flow(struct seen *s, pid_t tid, const struct ev *call)
{
	const struct seen_site *site = seen__site(s, call->site);

	if (s->n_flows >= MAX_FLOWS)
		return 0;
	if (ARRAY_RESERVE(s->flows, s->flows_cap, s->n_flows + 1, MAX_FLOWS))
		return -ENOMEM;
	s->flows[s->n_flows++] = (struct pic_flow){
		.start_ns = call->t0,
		.end_ns = call->t1,
		.tso = call->tso,
		.tid = tid,
		.cap_from = call->left < MAX_CAPS ? call->left : UINT32_MAX,
		.cap_to = UINT32_MAX,
		.function = site ? site->function_name : "",
	};
	return 0;
}

static int add_point(struct seen_points *points, uint64_t ns, uint64_t value)
{
	if (points->n >= MAX_POINTS || (points->n && points->v[points->n - 1].ns >= ns))
		return 0;
	if (ARRAY_RESERVE(points->v, points->cap, points->n + 1, MAX_POINTS))
		return -ENOMEM;
	points->v[points->n++] = (struct pic_point){.ns = ns, .value = value};
	return 0;
}

int notes__queued(struct seen *s, uint64_t ns, uint64_t queued)
{
	const struct seen_points *points = &s->queued;

	if (points->n && points->v[points->n - 1].value == queued)
		return 0;
	return add_point(&s->queued, ns, queued);
}

int notes__starved(struct seen *s, uint64_t ns, uint64_t queued)
{
	return add_point(&s->starved, ns, queued);
}

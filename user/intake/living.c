/* SPDX-License-Identifier: GPL-2.0-or-later */
/* living: the Haskell threads that had not ended, as found by looks into the process's memory. */
#include <stdlib.h>

#include "intake_priv.h"

bool intake__collects(const struct intake *in, pid_t pid, uint64_t start, uint64_t end)
{
	const struct seen *s = intake__find(in, pid);

	return s && seen__in_gc(s, start, end);
}

/* The newest look also counts for the threads that it did not find. */
static void note_look(struct seen *s, uint64_t began_ns, uint64_t at_ns)
{
	s->looked_ns = MAX(s->looked_ns, began_ns);
	s->looked_for_ns = MAX(s->looked_for_ns, at_ns);
}

static int find(const struct intake *in, pid_t pid, uint64_t began_ns, uint64_t at_ns,
		struct seen **ret_seen)
{
	struct seen *s = intake__find(in, pid);

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	if (began_ns > at_ns || at_ns > MAX_TIME)
		return -EBADMSG;
	*ret_seen = s;
	return 0;
}

static void note(struct tso_info *info, const struct target_living_thread *thread, uint64_t at_ns)
{
	if (at_ns < info->living_ns)
		return;
	info->living_ns = at_ns;
	info->living_why = thread->why_blocked;
}

int intake__living(struct intake *in, pid_t pid, const struct target_living_thread *v, size_t n,
		   uint64_t began_ns, uint64_t at_ns)
{
	struct intake_input input = {.kind = TI_LIVING, .pid = pid, .a = at_ns, .b = began_ns};
	struct seen *s;
	struct target_living_thread *known;
	size_t n_known = 0;
	int err = find(in, pid, began_ns, at_ns, &s);

	if (err || !in->opts.haskell)
		return err;
	known = malloc((n + 1) * sizeof(*known));
	if (!known)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct tso_info *info;

		HASH_FIND(hh, s->tso_infos, &v[i].id, sizeof(v[i].id), info);
		if (!info)
			continue;
		note(info, &v[i], at_ns);
		known[n_known++] = v[i];
	}
	note_look(s, began_ns, at_ns);
	input.data = known;
	input.size = n_known * sizeof(*known);
	tap__report(in, 0, &input);
	free(known);
	return 0;
}

int intake__living_ahead(struct intake *in, pid_t pid, const struct target_living_thread *v,
			 size_t n, uint64_t began_ns, uint64_t at_ns)
{
	bool no_room = false;
	struct seen *s;
	int err = find(in, pid, began_ns, at_ns, &s);

	if (err || !in->opts.haskell)
		return err;
	for (size_t i = 0; i < n; i++) {
		struct tso_info *info;

		err = notes__tso_info(s, v[i].id, &info);
		/* go on: later ones may be known, and would otherwise count as ended */
		no_room |= err == -E2BIG;
		if (err && err != -E2BIG)
			return err;
		if (!err)
			note(info, &v[i], at_ns);
	}
	note_look(s, began_ns, at_ns);
	return no_room ? -E2BIG : 0;
}

int intake__seen_ahead(struct intake *in, pid_t pid, uint64_t tso, uint64_t ns)
{
	struct tso_info *info;
	struct seen *s;
	int err = find(in, pid, ns, ns, &s);

	if (err || !in->opts.haskell)
		return err;
	err = notes__tso_info(s, tso, &info);
	if (!err)
		info->seen_ns = MAX(info->seen_ns, ns);
	return err;
}

uint64_t seen__lives_until(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t end_ns)
{
	const struct tso_info *info = seen__tso(s, tso);
	uint64_t lived = info ? MAX(info->living_ns, info->seen_ns) : 0;

	/* there was no look, or the last one found the thread */
	if (!info || s->looked_for_ns <= since_ns || lived >= s->looked_for_ns)
		return end_ns;
	return MAX(since_ns, MIN(lived, end_ns));
}

uint16_t seen__living_why(const struct seen *s, uint64_t tso, uint64_t since_ns, uint64_t at_ns)
{
	const struct tso_info *info = seen__tso(s, tso);
	bool is_it = info && info->living_ns >= at_ns && info->living_ns == s->looked_for_ns;

	/* a replay knows of a later look: if the thread never ran again, it has been waiting
	 * since */
	if (is_it && info->living_ns > at_ns)
		is_it = info->seen_ns <= since_ns;
	return is_it && s->looked_ns >= since_ns ? info->living_why : WIRE_TSO_UNKNOWN;
}

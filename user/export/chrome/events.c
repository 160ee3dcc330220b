/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events and the tracks that they are on. */
#include <inttypes.h>

#include "chrome_priv.h"

/* Pids are below 2^22. */
#define GROUP_STEP  UINT64_C(10000000)
#define REPEAT_STEP UINT64_C(100000000)

uint64_t chrome__pid(const struct chrome *w, uint32_t target_no, enum chrome_group group)
{
	static const uint64_t offset[GROUPS] = {
		[GROUP_CAPABILITIES] = GROUP_STEP,
		[GROUP_THREADS] = 0,
		[GROUP_HASKELL] = 2 * GROUP_STEP,
		[GROUP_IDLE] = 3 * GROUP_STEP,
	};
	pid_t pid = picture__target(w->pic, target_no)->pid;
	uint64_t repeats = 0;

	for (uint32_t i = 0; i < target_no; i++)
		repeats += picture__target(w->pic, i)->pid == pid;
	return (uint64_t)pid + offset[group] + repeats * REPEAT_STEP;
}

void chrome__begin(struct chrome *w, char phase, struct chrome_track at, const char *name,
		   const char *head, uint64_t ns)
{
	fputs(w->any ? ",\n" : "\n", w->out);
	w->any = true;
	fprintf(w->out, "{\"ph\":\"%c\",\"pid\":%" PRIu64 ",\"tid\":%" PRIu64 ",\"name\":", phase,
		at.pid, at.tid);
	json__put_string(w->out, name);
	fputs(head, w->out);
	if (ns == CHROME_NO_TS)
		return;
	ns -= MIN(ns, w->views.start_ns);
	fprintf(w->out, ",\"ts\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void chrome__name(struct chrome *w, struct chrome_track at, const char *kind, const char *name)
{
	chrome__begin(w, 'M', at, kind, ",\"args\":{\"name\":", CHROME_NO_TS);
	json__put_string(w->out, name);
	fputs("}}", w->out);
}

void chrome__order(struct chrome *w, struct chrome_track at, const char *kind, int64_t index)
{
	chrome__begin(w, 'M', at, kind, ",\"args\":{\"sort_index\":", CHROME_NO_TS);
	fprintf(w->out, "%" PRId64 "}}", index);
}

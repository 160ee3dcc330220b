/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events and the tracks that they are on. */
#include <inttypes.h>

#include "chrome_priv.h"
#include "export/faces.h"

/* Pids are less than 2^22. */
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

/*
 * Perfetto multiplies by 1000 in floating point and truncates, which turns 1.001 into 1000. One
 * more digit then keeps the intended nanosecond.
 */
static void put_us(FILE *out, uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned rest = (unsigned)(ns % 1000);

	put_u64(out, us);
	if (rest)
		fprintf(out, ".%03u%s", rest, (uint64_t)((double)ns / 1000 * 1000) < ns ? "1" : "");
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
	fputs(",\"ts\":", w->out);
	put_us(w->out, ns - MIN(ns, w->views.start_ns));
}

void chrome__slice(struct chrome *w, struct chrome_track at, const char *name, uint64_t start_ns,
		   uint64_t end_ns)
{
	chrome__begin(w, 'X', at, name, "", start_ns);
	fputs(",\"dur\":", w->out);
	put_us(w->out, end_ns - MAX(start_ns, w->views.start_ns));
}

const char *chrome__colour(enum lane_kind kind, unsigned state)
{
	return face_looks[face__of(kind, state)].chrome;
}

void chrome__put_colour(struct chrome *w, const char *colour)
{
	if (colour)
		fprintf(w->out, ",\"cname\":\"%s\"", colour);
}

void chrome__name(struct chrome *w, struct chrome_track at, const char *kind, const char *name)
{
	chrome__begin(w, 'M', at, kind, ",\"args\":{\"name\":", CHROME_NO_TS);
	json__put_string(w->out, name);
	fputs("}}", w->out);
}

void chrome__labels(struct chrome *w, struct chrome_track at, const char *labels)
{
	chrome__begin(w, 'M', at, "process_labels", ",\"args\":{\"labels\":", CHROME_NO_TS);
	json__put_string(w->out, labels);
	fputs("}}", w->out);
}

void chrome__order(struct chrome *w, struct chrome_track at, const char *kind, int64_t index)
{
	chrome__begin(w, 'M', at, kind, ",\"args\":{\"sort_index\":", CHROME_NO_TS);
	fprintf(w->out, "%" PRId64 "}}", index);
}

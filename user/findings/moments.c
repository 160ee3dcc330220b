/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moments: where to look. A finding is about sums; this finds their longest part: a collection, or
 * a slice of a lane in the states that the finding is about. Families whose findings are about
 * waits for collections set the longest wait themselves.
 */
#include <string.h>

#include "findings_priv.h"

/* What a kind of finding is about. Calls that are too short to be safe are not listed, as they have
 * no long part. */
struct subject {
	const char *kind;
	enum { OF_STATES, OF_GC } of;
	enum lane_kind lanes;
	uint32_t states;
};

#define STATE(s) (1U << (s))
static const struct subject subjects[] = {
	{"blocking_unsafe_call", OF_STATES, LANE_THREAD, STATE(ST_UNSAFE_CALL_BLOCKED)},
	{"gc_share", OF_GC, LANE_THREAD, STATE(ST_GC_WORK)},
	{"gc_spin", OF_GC, LANE_THREAD, STATE(ST_GC_WORK)},
	{"capability_preempted", OF_STATES, LANE_CAPABILITY, STATE(CS_PREEMPTED)},
	{"capability_wait", OF_STATES, LANE_THREAD, STATE(ST_CAP_WAIT)},
	{"bound_thread", OF_STATES, LANE_THREAD, STATE(ST_RTS)},
	{"blocked_on_black_hole", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_BLACKHOLE)},
	{"blocked_on_mvar", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_MVAR)},
	{"blocked_in_stm", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_STM)},
};

static const struct subject *subject_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		if (!strcmp(subjects[i].kind, kind))
			return &subjects[i];
	return NULL;
}

/* True if the stack has the frame whose name the place begins with: "Main.loop (app/Main.hs:3)". */
static bool is_at(const struct finder *f, uint32_t stack, const char *where)
{
	struct pic_stack s = picture__stack(f->pic, stack);

	for (uint32_t i = 0; i < s.n; i++) {
		const char *name = picture__frame(f->pic, s.frames[i])->name;
		size_t len = strlen(name);

		if (len && !strncmp(where, name, len) && (!where[len] || where[len] == ' '))
			return true;
	}
	return false;
}

static bool is_longer(const struct pic_moment *m, uint64_t start_ns, uint64_t end_ns)
{
	return end_ns > start_ns && end_ns - start_ns > m->end_ns - m->start_ns;
}

static void take(struct pic_moment *m, uint64_t start_ns, uint64_t end_ns,
		 const struct pic_lane *lane)
{
	if (is_longer(m, start_ns, end_ns))
		*m = (struct pic_moment){start_ns, end_ns, lane};
}

/* At first a target waits for a CPU because safescoped, just started, needs it. */
#define BEGINNING_NS 500000000ULL

static uint64_t begun_ns(const struct pic_target *t, const struct subject *subject)
{
	bool of_cpus = !strcmp(subject->kind, "capability_preempted");

	return of_cpus && t->attach_ns ? t->attach_ns + BEGINNING_NS : 0;
}

/* The longest slice; preferably at the finding's place, or else after the beginning. */
static struct pic_moment longest_slice(const struct finder *f, const struct subject *subject,
				       const char *where)
{
	const struct pic_lanes *lanes = &f->t->lanes[subject->lanes];
	struct pic_moment any = {0}, there = {0}, later = {0};
	uint64_t begun = begun_ns(f->t, subject);

	for (size_t i = 0; i < lanes->n; i++)
		for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
			const struct pic_slice *s = &lanes->v[i].slices[k];

			if (!(subject->states >> s->state & 1))
				continue;
			take(&any, s->start_ns, s->end_ns, &lanes->v[i]);
			if (begun && s->start_ns >= begun)
				take(&later, s->start_ns, s->end_ns, &lanes->v[i]);
			if (*where && is_longer(&there, s->start_ns, s->end_ns) &&
			    is_at(f, s->stack, where))
				take(&there, s->start_ns, s->end_ns, &lanes->v[i]);
		}
	if (there.end_ns)
		return there;
	return later.end_ns ? later : any;
}

struct pic_moment finding__longest(const struct finder *f, enum lane_kind lanes, uint32_t states)
{
	return longest_slice(f, &(struct subject){"", OF_STATES, lanes, states}, "");
}

static struct pic_moment longest_gc(const struct pic_target *target)
{
	struct pic_moment m = {0};

	for (size_t i = 0; i < target->n_gcs; i++)
		take(&m, target->gcs[i].start_ns, target->gcs[i].end_ns, NULL);
	return m;
}

void findings__find_moments(struct finder *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct pic_finding *finding = &f->v[i];
		const struct subject *subject = subject_of(finding->kind);

		if (!subject || finding->longest.end_ns)
			continue;
		if (subject->of == OF_GC)
			finding->longest = longest_gc(f->t);
		if (!finding->longest.end_ns)
			finding->longest = longest_slice(f, subject, finding->where);
	}
}

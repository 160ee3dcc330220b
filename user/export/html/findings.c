/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands out, with the moment to look at. A finding is about sums; the page shows where in the
 * session the longest part of them is: a collection, or a slice of a lane in the states it is
 * about.
 */
#include <string.h>

#include "html_priv.h"

#define FINDINGS 64

/* What a kind of finding is about. */
struct subject {
	const char *kind;
	enum { OF_STATES, OF_GC_WAIT, OF_GC } of;
	enum lane_kind lanes;
	uint32_t states;
};

#define STATE(s) (1U << (s))
static const struct subject subjects[] = {
	{"unsafe_call_held_up_gc", OF_GC_WAIT, LANE_THREAD,
	 STATE(ST_UNSAFE_CALL_CPU) | STATE(ST_UNSAFE_CALL_BLOCKED)},
	{"blocking_unsafe_call", OF_STATES, LANE_THREAD, STATE(ST_UNSAFE_CALL_BLOCKED)},
	{"haskell_held_up_gc", OF_GC_WAIT, LANE_THREAD, STATE(ST_GC_WAIT)},
	{"gc_share", OF_GC, LANE_THREAD, STATE(ST_GC_WORK)},
	{"gc_spin", OF_GC, LANE_THREAD, STATE(ST_GC_WORK)},
	{"idle_capability", OF_STATES, LANE_THREAD, STATE(ST_CAP_WAIT)},
	{"capability_preempted", OF_STATES, LANE_CAPABILITY, STATE(CS_PREEMPTED)},
	{"capability_wait", OF_STATES, LANE_THREAD, STATE(ST_CAP_WAIT)},
	{"safe_call_overhead", OF_STATES, LANE_THREAD,
	 STATE(ST_SAFE_CALL_CPU) | STATE(ST_SAFE_CALL_BLOCKED)},
	{"bound_thread", OF_STATES, LANE_THREAD, STATE(ST_RTS)},
	{"blocked_on_black_hole", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_BLACKHOLE)},
	{"blocked_on_mvar", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_MVAR)},
	{"blocked_in_stm", OF_STATES, LANE_HASKELL, STATE(HS_BLOCKED_STM)},
};

struct moment {
	uint64_t start_ns, end_ns; /* both 0: there is none */
	const struct view *view;   /* NULL: no lane's */
};

static const struct subject *subject_of(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(subjects); i++)
		if (!strcmp(subjects[i].kind, or_empty(kind)))
			return &subjects[i];
	return NULL;
}

/* The frame's name is what the place begins with: "Main.loop (app/Main.hs:3)". */
static bool is_at(const struct html *h, uint32_t stack, const char *where)
{
	struct pic_stack s = picture__stack(h->pic, stack);

	for (uint32_t i = 0; i < s.n; i++) {
		const char *name = picture__frame(h->pic, s.frames[i])->name;
		size_t len = strlen(name);

		if (len && !strncmp(where, name, len) && (!where[len] || where[len] == ' '))
			return true;
	}
	return false;
}

static void take(struct moment *m, uint64_t start_ns, uint64_t end_ns, const struct view *view)
{
	if (end_ns > start_ns && end_ns - start_ns > m->end_ns - m->start_ns)
		*m = (struct moment){start_ns, end_ns, view};
}

/* The longest slice; those at the finding's place, if there are any. */
static struct moment longest_slice(const struct html *h, uint32_t target_no,
				   const struct subject *subject, const char *where)
{
	struct moment any = {0}, there = {0};

	for (size_t i = 0; i < h->n_lanes; i++) {
		const struct view *view = h->lanes[i].view;

		if (!view || view->target_no != target_no || view->lane->kind != subject->lanes)
			continue;
		for (size_t k = 0; k < view->lane->n_slices; k++) {
			const struct pic_slice *s = &view->lane->slices[k];

			if (!(subject->states >> s->state & 1))
				continue;
			take(&any, s->start_ns, s->end_ns, view);
			if (s->end_ns - s->start_ns > there.end_ns - there.start_ns && *where &&
			    is_at(h, s->stack, where))
				take(&there, s->start_ns, s->end_ns, view);
		}
	}
	return there.end_ns ? there : any;
}

static struct moment longest_gc(const struct pic_target *target, const struct subject *subject)
{
	bool loops = !strcmp(subject->kind, "haskell_held_up_gc");
	struct moment m = {0};

	for (size_t i = 0; i < target->n_gcs; i++) {
		const struct pic_gc_event *gc = &target->gcs[i];

		if (subject->of == OF_GC)
			take(&m, gc->start_ns, gc->end_ns, NULL);
		else if (gc->sync_ns != UINT64_MAX && gc->sync_ns <= gc->start_ns &&
			 (gc->haskell_ns != 0) == loops)
			take(&m, gc->start_ns - gc->sync_ns, gc->start_ns, NULL);
	}
	return m;
}

static struct moment moment_of(const struct html *h, const struct pic_target *target,
			       uint32_t target_no, const struct pic_finding *finding)
{
	const struct subject *subject = subject_of(finding->kind);
	struct moment m = {0};

	if (!subject)
		return m;
	if (subject->of != OF_STATES)
		m = longest_gc(target, subject);
	return m.end_ns ? m : longest_slice(h, target_no, subject, or_empty(finding->where));
}

static int lane_of(const struct html *h, const struct view *view)
{
	for (size_t i = 0; view && i < h->n_lanes; i++)
		if (h->lanes[i].view == view)
			return (int)i;
	return -1;
}

void html__put_findings(const struct html *h, const struct pic_target *target, uint32_t target_no)
{
	fputs(",\"findings\":[", h->out);
	for (size_t i = 0; i < target->n_findings && i < FINDINGS; i++) {
		const struct pic_finding *finding = &target->findings[i];
		struct moment m = moment_of(h, target, target_no, finding);

		fputs(i ? ",\n{\"text\":" : "\n{\"text\":", h->out);
		json__put_in_html(h->out, finding->text);
		fputs(",\"kind\":", h->out);
		json__put_in_html(h->out, or_empty(finding->kind));
		fputs(",\"where\":", h->out);
		json__put_in_html(h->out, or_empty(finding->where));
		fputs(",\"ns\":", h->out);
		put_u64(h->out, finding->ns);
		if (m.end_ns) {
			fputs(",\"at\":[", h->out);
			html__put_int(h->out, html__time(h, m.start_ns));
			fputc(',', h->out);
			html__put_int(h->out, html__time(h, m.end_ns));
			fprintf(h->out, ",%d]", lane_of(h, m.view));
		}
		fputc('}', h->out);
	}
	fputc(']', h->out);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings in hand-made pictures: checks that one finding is there, with its numbers, and no
 * other. */
#ifndef SAFESCOPED_TEST_FINDINGS_KIT_H
#define SAFESCOPED_TEST_FINDINGS_KIT_H

#include "findings/findings.h"
#include "lanes/lanes_priv.h"
#include "test_export_kit.h"

#define MS     UINT64_C(1000000)
#define T0     UINT64_C(1000000000000)
#define AT(ms) (T0 + (uint64_t)((ms)*1000) * 1000)

enum { F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_GC, F_YIELD, F_STATE, F_SUM };
static const struct pic_frame frames[] = {
	[F_MAIN] = {"Main.main", "Main", "", "Main", "", TF_HASKELL, false},
	[F_LOAD] = {"Main.load", "Main", "", "Main", "app/Load.hs:7", TF_HASKELL, false},
	[F_LOCK] = {"take_lock", "", "", "prog", "", TF_FOREIGN, false},
	[F_NANOSLEEP] = {"clock_nanosleep", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_GC] = {"scavenge_block", "", "", "prog", "", TF_GC, false},
	[F_YIELD] = {"sched_yield", "", "", "libc.so.6", "", TF_FOREIGN, false},
	[F_STATE] = {"[a state]", "", "", "state", "", TF_STATE, false},
	[F_SUM] = {"checksum", "", "", "prog", "", TF_FOREIGN, false},
};

enum { S_EMPTY, S_HASKELL, S_LOCK, S_GC, S_SPIN, S_SUM, S_BARE };
static const struct pic_stack stacks[] = {
	[S_EMPTY] = {0},
	[S_HASKELL] = STACK(F_MAIN, F_LOAD, F_STATE),
	[S_LOCK] = STACK(F_MAIN, F_LOAD, F_LOCK, F_NANOSLEEP, F_STATE),
	[S_GC] = STACK(F_MAIN, F_GC, F_STATE),
	[S_SPIN] = STACK(F_GC, F_YIELD, F_STATE),
	[S_SUM] = STACK(F_MAIN, F_SUM, F_STATE),
	[S_BARE] = STACK(F_NANOSLEEP, F_STATE),
};

#define SLICE(from, to, at, what, on, n)                                                           \
	{                                                                                          \
		.start_ns = AT(from), .end_ns = AT(to), .stack = (at), .state = (what),            \
		.cap = (on), .samples = (n)                                                        \
	}
#define LANE(of, ...)                                                                              \
	{                                                                                          \
		.tid = (of), .start_ns = T0, .end_ns = AT(1000),                                   \
		.slices = (struct pic_slice[]){__VA_ARGS__},                                       \
		.n_slices = sizeof((struct pic_slice[]){__VA_ARGS__}) / sizeof(struct pic_slice)   \
	}

/* Computes each lane's sums, as the timeline would. */
static inline void add_up(struct pic_lane *lanes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		memset(lanes[i].states_ns, 0, sizeof(lanes[i].states_ns));
		lanes[i].cpu_ns = 0;
		for (size_t k = 0; k < lanes[i].n_slices; k++) {
			const struct pic_slice *s = &lanes[i].slices[k];

			lanes[i].states_ns[s->state] += s->end_ns - s->start_ns;
			if (state__on_cpu(LANE_THREAD, s->state))
				lanes[i].cpu_ns += s->end_ns - s->start_ns;
		}
	}
}

/* The state of a capability while a thread in this state holds it. */
static inline enum cap_state cap_state_of(enum thread_state state)
{
	switch (state) {
	case ST_HASKELL:
		return CS_HASKELL;
	case ST_UNSAFE_CALL_CPU:
	case ST_UNSAFE_CALL_BLOCKED:
		return CS_UNSAFE_CALL;
	case ST_PREEMPTED:
		return CS_PREEMPTED;
	case ST_GC_WORK:
	case ST_GC_WAIT:
		return CS_GC;
	default:
		return CS_RTS;
	}
}

static inline struct seen_gcs gcs_of(const struct pic_target *t)
{
	struct seen_gcs gcs = {.v = calloc(t->n_gcs + 1, sizeof(*gcs.v)), .n = t->n_gcs};

	assert_non_null(gcs.v);
	for (size_t i = 0; i < t->n_gcs; i++) {
		const struct pic_gc_event *gc = &t->gcs[i];
		bool synced = gc->sync_ns < gc->start_ns;

		gcs.v[i] = (struct gc_span){.start = gc->start_ns - (synced ? gc->sync_ns : 0),
					    .work = gc->start_ns,
					    .end = gc->end_ns,
					    .tid = gc->tid,
					    .synced = synced};
	}
	return gcs;
}

/* Gives each thread a capability of its own, and records which ones the collections waited for. */
static inline void add_holds(struct picture *pic, struct pic_target *t, const struct seen_gcs *gcs)
{
	const struct pic_lanes *lanes = &t->lanes[LANE_THREAD];
	struct holds holds = {0};

	for (size_t i = 0; i < lanes->n; i++) {
		struct holding holding = {0};

		for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
			struct pic_slice s = lanes->v[i].slices[k];

			s.tid = lanes->v[i].tid;
			s.state = (uint8_t)(s.cap == NO_CAP ? CS_IDLE : cap_state_of(s.state));
			assert_int_equal(holds__see(&holds, gcs, &holding, &s), 0);
		}
	}
	for (size_t i = 0; i < gcs->n; i++)
		holds__fill(&holds, i, (struct pic_gc_event *)&t->gcs[i]);
	assert_int_equal(holds__fill_unsafe(&holds, gcs, pic, t), 0);
	free(holds.v);
}

/* Adds the collector's slices that lie between a collection's request and the start of its work. */
static inline void add_sync(struct picture *pic, struct pic_target *t, const struct seen_gcs *gcs)
{
	const struct pic_lanes *lanes = &t->lanes[LANE_THREAD];
	struct pic_row *rows = picture__alloc(pic, 64, sizeof(*rows));

	assert_non_null(rows);
	t->gc.sync_rows = rows;
	for (size_t i = 0; i < lanes->n; i++)
		for (size_t k = 0; k < lanes->v[i].n_slices; k++) {
			const struct pic_slice *s = &lanes->v[i].slices[k];

			for (size_t g = 0; g < gcs->n && s->state == ST_GC_WORK; g++)
				if (s->start_ns >= gcs->v[g].start && s->end_ns <= gcs->v[g].work)
					rows[t->gc.n_sync_rows++] = lanes->v[i].rows[k];
		}
}

static inline void add_overlaps(struct pic_target *t, const struct seen *seen)
{
	const struct pic_lanes *threads = &t->lanes[LANE_THREAD],
			       *caps = &t->lanes[LANE_CAPABILITY];
	struct overlaps o = {0};

	for (size_t i = 0; i < threads->n; i++)
		for (size_t k = 0; k < threads->v[i].n_slices; k++) {
			const struct piece piece = {.s = threads->v[i].slices[k]};

			assert_int_equal(overlaps__thread(&o, seen, &piece, 1), 0);
		}
	for (size_t i = 0; i < caps->n; i++) {
		uint8_t was = 0;

		for (size_t k = 0; k < caps->v[i].n_slices; k++)
			assert_int_equal(overlaps__cap(&o, &was, &caps->v[i].slices[k]), 0);
	}
	assert_int_equal(overlaps__advance(&o, seen, AT(1000), true), 0);
	t->overlaps = o.sums;
	overlaps__free(&o);
}

struct found {
	struct picture *pic;
	const struct pic_finding *v;
	size_t n;
};

static inline void find_starved(const struct pic_target *target, struct pic_lane *lanes, size_t n,
				const struct seen_points *starved, struct found *found)
{
	struct seen seen = {.gcs = gcs_of(target)};
	struct pic_target t = *target, *made;
	const struct sketch sketch = {.session = {.start_ns = T0,
						  .end_ns = AT(1000),
						  .frequency_hz = 99,
						  .period_ns = 10101010},
				      .targets = &t,
				      .n_targets = 1,
				      .frames = frames,
				      .n_frames = ARRAY_SIZE(frames),
				      .stacks = stacks,
				      .n_stacks = ARRAY_SIZE(stacks)};

	add_up(lanes, n);
	t.lanes[LANE_THREAD] = (struct pic_lanes){lanes, n};
	found->pic = kit_picture(&sketch, NULL);
	made = (struct pic_target *)picture__target(found->pic, 0);
	if (starved)
		seen.starved = *starved;
	add_holds(found->pic, made, &seen.gcs);
	add_sync(found->pic, made, &seen.gcs);
	add_overlaps(made, &seen);
	free(seen.gcs.v);
	assert_int_equal(findings__make(found->pic, made), 0);
	found->v = made->findings;
	found->n = made->n_findings;
	for (size_t i = 1; i < found->n; i++)
		assert_true(found->v[i - 1].ns >= found->v[i].ns);
}

static inline void find(const struct pic_target *target, struct pic_lane *lanes, size_t n,
			struct found *found)
{
	find_starved(target, lanes, n, NULL, found);
}

static inline const struct pic_finding *the_only(const struct found *found, const char *kind)
{
	if (found->n != 1)
		fail_msg("%zu findings, should be 1; %s", found->n,
			 found->n ? found->v[0].text : "");
	assert_string_equal(found->v[0].kind, kind);
	return &found->v[0];
}

/* The only finding of that kind; there may be findings of other kinds. */
static inline const struct pic_finding *the_one(const struct found *found, const char *kind)
{
	const struct pic_finding *one = NULL;

	for (size_t i = 0; i < found->n; i++)
		if (!strcmp(found->v[i].kind, kind)) {
			assert_null(one);
			one = &found->v[i];
		}
	assert_non_null(one);
	return one;
}

static inline void assert_says(const struct pic_finding *f, const char *what)
{
	if (!strstr(f->text, what))
		fail_msg("`%s` is not in: %s", what, f->text);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline_log_kit: turns a generated log into a picture and checks what holds for every such
 * picture. */
#ifndef SAFESCOPED_TEST_TIMELINE_LOG_KIT_H
#define SAFESCOPED_TEST_TIMELINE_LOG_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog_writer.h"
#include "logs/logs.h"
#include "join/join.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

#define MS UINT64_C(1000000)

struct kit {
	const char *hide[1];
	size_t n_hide;
	struct log_part part; /* all zero: the whole log */
	struct log_models *models;
	struct join_log log;
	struct timeline *tl;
	const struct picture *pic; /* owned by the timeline */
	const struct pic_target *target;
};

static inline void kit_new(struct kit *k)
{
	assert_int_equal(log_models__new(&k->part, &k->models), 0);
}

static inline void kit_picture(struct kit *k)
{
	const struct timeline_opts opts = {.start_unix_ns = 1, .haskell_lanes = true};

	assert_int_equal(log_models__finish(k->models), 0);
	log_models__fill(k->models, &k->log);
	k->log.path = "dir/some.eventlog";
	k->log.hide = k->hide;
	k->log.n_hide = k->n_hide;
	assert_int_equal(timeline__new(&opts, "0", "eventlog", &k->tl), 0);
	assert_int_equal(timeline__add_log_target(k->tl, &k->log), 0);
	assert_int_equal(timeline__finish(k->tl, 0), 0);
	k->pic = timeline__picture(k->tl);
	k->target = picture__target(k->pic, 0);
	assert_non_null(k->target);
}

static inline void kit_read(struct kit *k, const struct writer *w)
{
	kit_new(k);
	assert_int_equal(eventlog__feed(log_models__reader(k->models), w->data, w->len), 0);
	assert_int_equal(eventlog__finish(log_models__reader(k->models)), 0);
	kit_picture(k);
}

static inline void kit_free(struct kit *k)
{
	timeline__free(k->tl);
	log_models__free(k->models);
}

/* "a;b;c", root first. */
static inline const char *stack_text(const struct kit *k, uint32_t stack, char *out, size_t size)
{
	struct pic_stack s = picture__stack(k->pic, stack);
	size_t n = 0;

	out[0] = 0;
	for (uint32_t i = 0; i < s.n; i++)
		n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ";" : "",
				      picture__frame(k->pic, s.frames[i])->name);
	return out;
}

/* ── what holds for every picture ────────────────────────────────────────────────────────── */

#define CHECK_LANE(lane, n_states)                                                                 \
	do {                                                                                       \
		uint64_t sum_ = 0, at_ = (lane)->start_ns;                                         \
		for (int s_ = 0; s_ < (n_states); s_++)                                            \
			sum_ += (lane)->states_ns[s_];                                             \
		assert_int_equal(sum_, (lane)->end_ns - (lane)->start_ns);                         \
		for (size_t i_ = 0; i_ < (lane)->n_slices; i_++) {                                 \
			assert_int_equal((lane)->slices[i_].start_ns, at_);                        \
			assert_true((lane)->slices[i_].end_ns > at_);                              \
			at_ = (lane)->slices[i_].end_ns;                                           \
		}                                                                                  \
		if ((lane)->n_slices)                                                              \
			assert_int_equal(at_, (lane)->end_ns);                                     \
	} while (0)

static inline void check_picture(const struct kit *k)
{
	const struct pic_target *t = k->target;

	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		CHECK_LANE(&t->lanes[LANE_THREAD].v[i], ST_MAX);
	for (size_t i = 0; i < t->lanes[LANE_CAPABILITY].n; i++)
		CHECK_LANE(&t->lanes[LANE_CAPABILITY].v[i], CS_MAX);
	for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
		CHECK_LANE(&t->lanes[LANE_HASKELL].v[i], HS_MAX);
	for (size_t i = 1; i < t->n_cc_nodes; i++)
		assert_true(t->cc_nodes[i].parent < i);
}

static inline bool is_missing(const struct kit *k, const char *what)
{
	for (size_t i = 0; i < k->target->n_missing; i++)
		if (strstr(k->target->missing[i], what))
			return true;
	return false;
}

#endif

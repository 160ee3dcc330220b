/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_eventlog: any bytes as a log, in pieces and as a file, into every model and the picture
 * that is made of them; and as a report of GHC's. The first byte chooses; half of the inputs get a
 * true header and block in front, since few would grow one by themselves.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/eventlog_writer.h"
#include "export/export.h"
#include "join/join.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

struct models {
	struct el_window window;
	struct el_profile *profile;
	struct el_sched *sched;
	struct el_annot *annot;
	struct el_heap *heap;
	struct el_info *info;
};

static void check(bool good)
{
	if (!good)
		abort();
}

static void models_new(struct models *m, struct eventlog *log)
{
	const struct el_sched_opts opts = {.window = &m->window, .thread_lanes = 8};

	check(!el_profile__new(&m->window, &m->profile));
	check(!el_sched__new(&opts, &m->sched));
	check(!el_annot__new(&m->window, el_profile__tree(m->profile), m->sched, &m->annot));
	check(!el_heap__new(&m->window, el_profile__tree(m->profile), &m->heap));
	check(!el_info__new(m->sched, &m->info));
	check(!el_window__attach(&m->window, log));
	check(!el_profile__attach(m->profile, log));
	check(!el_sched__attach(m->sched, log));
	check(!el_annot__attach(m->annot, log));
	check(!el_heap__attach(m->heap, log));
	check(!el_info__attach(m->info, log));
}

static void lane_check(const struct el_lane *lane)
{
	for (size_t i = 0; i < lane->n; i++) {
		check(lane->s[i].start < lane->s[i].end);
		check(!i || lane->s[i - 1].end <= lane->s[i].start);
	}
}

static void models_check(struct models *m, const struct eventlog *log)
{
	const struct eventlog_stats *st = eventlog__stats(log);
	static const char *const hide[] = {"*a*"};
	struct cctree *tree = el_profile__tree(m->profile), *less;
	struct cctree_totals totals, after;
	struct el_sched_info si;
	uint32_t *map;

	check(st->header_bytes + st->event_bytes + st->lost_bytes == st->bytes_in);
	check(!el_sched__finish(m->sched, st->last_time));
	check(!el_annot__finish(m->annot, st->last_time));
	si = el_sched__info(m->sched);
	for (size_t i = 0; i < si.n_caps; i++)
		lane_check(&el_sched__cap(m->sched, i)->lane);
	for (size_t i = 0; i < si.n_threads; i++)
		if (el_sched__thread(m->sched, i)->lane)
			lane_check(el_sched__thread(m->sched, i)->lane);
	check(!cctree__inherit(tree, &totals));
	check(cctree__node(tree, CC_ROOT)->inherited_ticks == totals.ticks);
	check(!cctree__filter(tree, hide, 1, NULL, 0, &less, &map));
	check(!cctree__inherit(less, &after));
	check(after.ticks + after.ignored_ticks == totals.ticks + totals.ignored_ticks);
	cctree__free(less);
	free(map);
}

#define CHECK_LANE(lane, n_states)                                                                 \
	do {                                                                                       \
		uint64_t sum_ = 0, at_ = (lane)->start_ns;                                         \
		for (int s_ = 0; s_ < (n_states); s_++)                                            \
			sum_ += (lane)->states_ns[s_];                                             \
		check(sum_ == (lane)->end_ns - (lane)->start_ns);                                  \
		for (size_t i_ = 0; i_ < (lane)->n_slices; i_++) {                                 \
			check((lane)->slices[i_].start_ns == at_);                                 \
			check((lane)->slices[i_].end_ns > at_);                                    \
			at_ = (lane)->slices[i_].end_ns;                                           \
		}                                                                                  \
		check(!(lane)->n_slices || at_ == (lane)->end_ns);                                 \
	} while (0)

static void picture_check(struct models *m, const struct eventlog *log)
{
	static const char *const hide[] = {"*b*"};
	const struct export_opts all = {.verbose = true};
	const struct timeline_opts opts = {.start_unix_ns = 1, .haskell_lanes = true};
	const struct join_log in = {.path = "log",
				    .stats = eventlog__stats(log),
				    .sched = m->sched,
				    .profile = m->profile,
				    .annot = m->annot,
				    .heap = m->heap,
				    .info = m->info,
				    .from_ns = m->window.from,
				    .to_ns = eventlog__stats(log)->last_time,
				    .hide = hide,
				    .n_hide = m->window.from ? 1 : 0};
	FILE *null = fopen("/dev/null", "w");
	const struct picture *pic;
	const struct pic_target *t;
	struct timeline *tl = NULL;

	check(null && !timeline__new(&opts, "0", "eventlog", &tl));
	check(!timeline__add_log_target(tl, &in));
	check(!timeline__finish(tl, 0));
	pic = timeline__picture(tl);
	t = picture__target(pic, 0);
	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++)
		CHECK_LANE(&t->lanes[LANE_THREAD].v[i], ST_MAX);
	for (size_t i = 0; i < t->lanes[LANE_CAPABILITY].n; i++)
		CHECK_LANE(&t->lanes[LANE_CAPABILITY].v[i], CS_MAX);
	for (size_t i = 0; i < t->lanes[LANE_HASKELL].n; i++)
		CHECK_LANE(&t->lanes[LANE_HASKELL].v[i], HS_MAX);
	check(!export_json.write(null, pic, &all));
	check(!export_speedscope.write(null, pic, &all));
	check(!export_text.write(null, pic, &all));
	check(!export_html.write(null, pic, &all));
	timeline__free(tl);
	fclose(null);
}

static void models_free(struct models *m)
{
	el_profile__free(m->profile);
	el_sched__free(m->sched);
	el_annot__free(m->annot);
	el_heap__free(m->heap);
	el_info__free(m->info);
}

static void as_log(const uint8_t *data, size_t len, bool file, size_t piece)
{
	const struct eventlog_opts opts = {.hold_max = 2000, .prompt = piece % 2};
	struct models m = {.window = {.to_marker = "stop", .from = piece & 64}};
	struct eventlog *log;
	int fd = -1, err = 0;

	check(!eventlog__new(&opts, &log));
	models_new(&m, log);
	if (file) {
		fd = w_file(data, len);
		check(!eventlog__open_fd(log, fd));
	}
	for (size_t at = 0; !file && at < len && !err; at += piece)
		err = eventlog__feed(log, data + at, len - at < piece ? len - at : piece);
	if (!err)
		err = eventlog__finish(log);
	if (!err) {
		models_check(&m, log);
		picture_check(&m, log);
	}
	models_free(&m);
	eventlog__free(log);
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct prof_info info;
	struct writer w = {0};
	struct cctree *tree;
	uint8_t how;

	if (!size)
		return 0;
	how = *data++;
	size--;
	if (how & 1) {
		w_header(&w);
		if (how & 2)
			w_block(&w, how >> 6, 0);
		w_bytes(&w, data, size);
		if (how & 2)
			w_block_end(&w, how & 4 ? 1ull << 40 : ~0ull >> 2);
		as_log(w.data, w.len, how & 8, 1 + how);
		w_free(&w);
	} else if (how & 2) {
		as_log(data, size, how & 8, 1 + how);
	} else if (!prof__parse((const char *)data, size, &tree, &info)) {
		cctree__free(tree);
	}
	return 0;
}

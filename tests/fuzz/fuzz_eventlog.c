/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_eventlog: any bytes as a log, in pieces and as a file, into every model and the picture that
 * is made of them. The first byte selects how the rest is used: as the log, as what follows a valid
 * header and block marker, or as a script of a few bytes for each event, so that nearly any input
 * is a log of events that make sense, with threads, cost centres and intervals that occur again.
 *
 * The models are handed over as from an unprivileged process: unchanged they must be accepted; with
 * one byte changed, as the input selects, they must be rejected, or be as valid as any other.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/eventlog_writer.h"
#include "eventlog/pack.h"
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
	struct el_match *match;
};

static void check(bool good)
{
	if (!good)
		abort();
}

static void models_new(struct models *m, struct eventlog *log)
{
	struct el_sched_opts opts = {
		.window = &m->window, .thread_lanes = 8, .on_call = el_match__on_call};

	check(!el_match__new(&m->window, &m->match));
	opts.ctx = m->match;
	check(!el_profile__new(&m->window, &m->profile));
	check(!el_sched__new(&opts, &m->sched));
	check(!el_annot__new(&m->window, el_profile__tree(m->profile), m->sched, &m->annot));
	check(!el_heap__new(&m->window, el_profile__tree(m->profile), &m->heap));
	check(!el_info__new(&m->window, m->sched, &m->info));
	check(!el_window__attach(&m->window, log));
	check(!el_profile__attach(m->profile, log));
	check(!el_sched__attach(m->sched, log));
	check(!el_annot__attach(m->annot, log));
	check(!el_heap__attach(m->heap, log));
	check(!el_info__attach(m->info, log));
	check(!el_match__attach(m->match, log));
}

static void lane_check(const struct slices *lane)
{
	for (size_t i = 0; i < lane->n; i++) {
		check(lane->v[i].start_ns < lane->v[i].end_ns);
		check(!i || lane->v[i - 1].end_ns <= lane->v[i].start_ns);
	}
}

static void lanes_check(struct models *m)
{
	struct el_sched_info si = el_sched__info(m->sched);

	for (size_t i = 0; i < si.n_caps; i++)
		lane_check(el_sched__cap(m->sched, i)->lane);
	for (size_t i = 0; i < si.n_threads; i++)
		if (el_sched__thread(m->sched, i)->lane)
			lane_check(el_sched__thread(m->sched, i)->lane);
}

static void models_check(struct models *m, const struct eventlog_stats *st)
{
	static const char *const hide[] = {"*a*"};
	struct cctree *tree = el_profile__tree(m->profile), *less;
	struct cctree_totals totals, after;
	uint32_t *map;

	check(st->header_bytes + st->event_bytes + st->lost_bytes == st->bytes_in);
	check(!el_sched__finish(m->sched, st->last_time));
	check(!el_profile__finish(m->profile));
	check(!el_annot__finish(m->annot, st->last_time));
	lanes_check(m);
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

static void picture_check(struct models *m, const struct eventlog_stats *st, unsigned format)
{
	static const struct export_format *const formats[] = {&export_json, &export_speedscope,
							      &export_text, &export_html};
	static const char *const hide[] = {"*b*"};
	const struct export_opts all = {.verbose = true};
	const struct timeline_opts opts = {.start_unix_ns = 1, .haskell_lanes = true};
	const struct join_log in = {.path = "log",
				    .stats = st,
				    .sched = m->sched,
				    .profile = m->profile,
				    .annot = m->annot,
				    .heap = m->heap,
				    .info = m->info,
				    .from_ns = m->window.from,
				    .to_ns = st->last_time,
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
	check(!formats[format % 4]->write(null, pic, &all));
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
	el_match__free(m->match);
}

/* ── handed over ─────────────────────────────────────────────────────────────────────────── */

static int unpack(struct models *m, struct eventlog_stats *st, struct unpack *u)
{
	int err = eventlog_stats__unpack(u, st);

	if (!err)
		err = el_profile__unpack(u, &m->profile);
	if (!err)
		err = el_sched__unpack(u, &m->sched);
	if (!err)
		err = el_annot__unpack(u, el_profile__tree(m->profile), &m->annot);
	if (!err)
		err = el_heap__unpack(u, &m->heap);
	if (!err)
		err = el_info__unpack(u, &m->info);
	if (!err)
		err = el_match__unpack(u, &m->match);
	return err;
}

/*
 * *m becomes what was handed over. where: the byte to change, counted from the message's end; 0:
 * none.
 */
static bool hand_over(struct models *m, struct eventlog_stats *st, size_t where, uint8_t change)
{
	static uint8_t bytes[16 << 20];
	struct pack p = {.data = bytes, .size = sizeof(bytes)};
	struct models over = {.window = m->window};
	struct unpack u;
	int err;

	eventlog_stats__pack(st, &p);
	el_profile__pack(m->profile, &p);
	el_sched__pack(m->sched, &p);
	el_annot__pack(m->annot, &p);
	el_heap__pack(m->heap, &p);
	el_info__pack(m->info, &p);
	el_match__pack(m->match, &p);
	check(!p.full);
	where %= p.len;
	if (where)
		bytes[p.len - where] ^= change;
	u = (struct unpack){.data = bytes, .left = p.len};
	err = unpack(&over, st, &u);
	check(err == 0 || (err == -EBADMSG && where && change));
	models_free(err ? &over : m);
	if (!err)
		*m = over;
	return !err;
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
		struct eventlog_stats st = *eventlog__stats(log);
		/* at a distance from the end or near it: any byte can be selected */
		size_t where = len > 4 ? data[len - 1] | (size_t)data[len - 2] << 8 : 0;

		models_check(&m, &st);
		if (!(piece & 16))
			where = 0;
		if (hand_over(&m, &st, where, len > 4 ? data[len - 3] : 0)) {
			lanes_check(&m);
			picture_check(&m, &st, (unsigned)st.events);
		}
	}
	models_free(&m);
	eventlog__free(log);
	if (fd >= 0)
		close(fd);
}

/* ── scripts ─────────────────────────────────────────────────────────────────────────────── */

struct script {
	const uint8_t *p, *end;
};

static unsigned take(struct script *s)
{
	return s->p < s->end ? *s->p++ : 0;
}

/* Mostly small, so that a number occurs again in many events. */
static uint64_t take_number(struct script *s)
{
	unsigned v = take(s);

	return v < 0xf0 ? v % 16 : v == 0xff ? UINT64_MAX : (uint64_t)take(s) << (v % 16 * 4);
}

static void put_text(struct writer *w, struct script *s)
{
	static const char *const words[] = {
		"START ",
		"STOP ",
		"END ",
		"ANN_CCS ",
		"ANN_SCC ",
		"ANN_TH ",
		"ANN_CALL_TO ",
		"ANN_CALL_RET ",
		"stop",
		"[\"Main.main (m.hs:1:1)\",\"M.f (x)\"]",
		"GC",
		"IDLE",
		"SYSTEM",
		"MAIN",
		"<built-in>",
		"CAF",
		" ",
		"1",
		"0x40 ",
	};
	unsigned how;

	while ((how = take(s)) & 0x80) {
		const char *word = words[(how & 0x7f) % (sizeof(words) / sizeof(words[0]))];

		w_bytes(w, word, strlen(word));
	}
	for (how &= 15; how; how--)
		w_8(w, (uint8_t)take(s));
}

/* Puts fields by the letters of w_event's format; i: a count and that many ids. */
static void put_fields(struct writer *w, struct script *s, const char *format)
{
	for (; *format; format++)
		switch (*format) {
		case 'b':
			w_8(w, (uint8_t)take_number(s));
			break;
		case 'h':
			w_16(w, (uint16_t)take_number(s));
			break;
		case 'w':
			w_32(w, (uint32_t)take_number(s));
			break;
		case 'l':
			w_64(w, take_number(s));
			break;
		case 'i': {
			unsigned n = take(s) % 32;

			w_8(w, (uint8_t)n);
			for (; n; n--)
				w_32(w, (uint32_t)take_number(s));
			break;
		}
		default:
			put_text(w, s);
			if (*format == 's')
				w_8(w, 0);
			break;
		}
}

static void put_event(struct writer *w, struct script *s, uint64_t *at)
{
	static const struct {
		uint16_t id;
		const char *format;
	} events[] = {
		{EL_RUN_THREAD, "w"},
		{EL_STOP_THREAD, "whw"},
		{EL_CREATE_THREAD, "w"},
		{EL_THREAD_RUNNABLE, "w"},
		{EL_MIGRATE_THREAD, "wh"},
		{EL_THREAD_WAKEUP, "wh"},
		{EL_THREAD_LABEL, "wt"},
		{EL_GC_START, ""},
		{EL_GC_END, ""},
		{EL_GC_GLOBAL_SYNC, ""},
		{EL_GC_STATS_GHC, "whlllwlll"},
		{EL_REQUEST_SEQ_GC, ""},
		{EL_CAP_CREATE, "h"},
		{EL_CAP_DISABLE, "h"},
		{EL_OSPROCESS_PID, "ww"},
		{EL_RTS_IDENTIFIER, "wt"},
		{EL_PROGRAM_ARGS, "wst"},
		{EL_WALL_CLOCK_TIME, "wlw"},
		{EL_USER_MSG, "t"},
		{EL_USER_MARKER, "t"},
		{EL_HEAP_SIZE, "wl"},
		{EL_HEAP_ALLOCATED, "wl"},
		{160, "blwsssssss"},
		{EL_HEAP_PROF_COST_CENTRE, "wsssb"},
		{EL_HEAP_PROF_SAMPLE_BEGIN, "l"},
		{EL_HEAP_BIO_PROF_SAMPLE_BEGIN, "ll"},
		{EL_HEAP_PROF_SAMPLE_END, "l"},
		{EL_HEAP_PROF_SAMPLE_COST_CENTRE, "bli"},
		{EL_HEAP_PROF_SAMPLE_STRING, "bls"},
		{EL_PROF_BEGIN, "l"},
		{EL_PROF_SAMPLE_COST_CENTRE, "wli"},
		{EL_TICKY_COUNTER_DEF, "lhss"},
		{EL_TICKY_COUNTER_SAMPLE, "llll"},
	};
	unsigned no = take(s) % (sizeof(events) / sizeof(events[0]));
	size_t start = w->len;

	*at += take_number(s) & 0xffffffffffff;
	w_16(w, events[no].id);
	w_64(w, *at);
	if (w_size(events[no].id) == 0xffff)
		w_16(w, 0);
	put_fields(w, s, events[no].format);
	if (w_size(events[no].id) == 0xffff) {
		size_t len = w->len - start - 12;

		w->data[start + 10] = (uint8_t)(len >> 8);
		w->data[start + 11] = (uint8_t)len;
	}
}

/* Blocks of two capabilities and of the global buffer, each a few events long. */
static void put_script(struct writer *w, const uint8_t *data, size_t size)
{
	struct script s = {data, data + size};
	uint64_t at[3] = {1, 1, 1};

	w_header(w);
	while (s.p < s.end) {
		unsigned how = take(&s), cap = how % 3;

		w_block(w, cap == 2 ? EL_CAP_GLOBAL : (uint16_t)cap, at[cap]);
		for (unsigned n = 1 + how / 3; n && s.p < s.end; n--)
			put_event(w, &s, &at[cap]);
		w_block_end(w, at[cap]);
	}
	w_end(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct writer w = {0};
	uint8_t how;

	if (!size)
		return 0;
	how = *data++;
	size--;
	if (how & 1) {
		put_script(&w, data, size);
		as_log(w.data, w.len, how & 8, 1 + how);
	} else if (how & 2) {
		as_log(data, size, how & 8, 1 + how);
	} else {
		w_header(&w);
		w_block(&w, how >> 6, 0);
		w_bytes(&w, data, size);
		w_block_end(&w, how & 4 ? 1ull << 40 : ~0ull >> 2);
		as_log(w.data, w.len, how & 8, 1 + how);
	}
	w_free(&w);
	return 0;
}

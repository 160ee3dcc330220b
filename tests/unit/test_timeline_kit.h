/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the timeline tests: a namer for made-up addresses, records, and checks. */
#ifndef SAFESCOPED_TEST_TIMELINE_KIT_H
#define SAFESCOPED_TEST_TIMELINE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <cmocka.h>

#include "base/base.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

/* Made-up addresses: the sixth hex digit is the kind, the fifth and fourth are the function's
 * number. */
#define HS(n)	(0x100000ULL + (n)*0x1000ULL)
#define CFN(n)	(0x200000ULL + (n)*0x1000ULL)
#define SIGRET	0x2fe000ULL /* where signal handlers return to */
#define MANAGER HS(99)	    /* in a module of GHC's event managers */
#define RTS(n)	(0x300000ULL + (n)*0x1000ULL)
#define GCFN(n) (0x400000ULL + (n)*0x1000ULL)
#define SITE(n) (0x500000ULL + (n)*0x1000ULL)
#define UPD	0x600000ULL /* stg_upd_frame */
#define CMM	0x601000ULL /* the runtime's Cmm code without a symbol */
#define NEAR(n) (0x700000ULL + (n)*0x1000ULL)
#define NO_SITE 0x5ff000ULL /* an address about which nothing is known */

#define FR(kind, addr) ((uint64_t)(kind) << WIRE_FRAME_KIND_SHIFT | (addr))
#define IP(a)	       FR(WIRE_FRAME_HS_IP, a)
#define RET(a)	       FR(WIRE_FRAME_HS_RET, a)
#define CIP(a)	       FR(WIRE_FRAME_C_IP, a)
#define CRET(a)	       FR(WIRE_FRAME_C_RET, a)
#define CALLED(a)      FR(WIRE_FRAME_HS_CALL, a)

#define PID 100
#define T0  1000000ULL /* time of attaching */
#define END 2000000ULL

struct kit {
	struct timeline *tl;
	struct intake *in;	   /* owned by the timeline */
	const struct picture *pic; /* owned by the timeline */
	unsigned named;		   /* number of calls of the namer */
	bool hurried;		   /* the namer has no time: names are partial */
	bool alike;		   /* while hurried, all addresses get the same name */
	bool no_sites;		   /* the namer has no time for call sites */
	char strings[64][32];
	unsigned n_strings;
};

static inline const char *kit_string(struct kit *kit, const char *fmt, unsigned n)
{
	char text[32];
	unsigned i;

	snprintf(text, sizeof(text), fmt, n);
	for (i = 0; i < kit->n_strings; i++)
		if (!strcmp(kit->strings[i], text))
			return kit->strings[i];
	assert_true(kit->n_strings < ARRAY_SIZE(kit->strings));
	memcpy(kit->strings[kit->n_strings], text, sizeof(text));
	return kit->strings[kit->n_strings++];
}

static inline void kit_name(void *ctx, uint64_t frame, struct code_name *ret)
{
	struct kit *kit = ctx;
	uint64_t addr = frame & WIRE_FRAME_ADDR_MASK;
	unsigned n = (unsigned)(addr >> 12 & 0xff);

	kit->named++;
	if (kit->hurried) {
		*ret = (struct code_name){
			.name = kit_string(kit, "[prog]+0x%u0", kit->alike ? 1 : n),
			.file = "prog",
			.partial = true};
		return;
	}
	*ret = (struct code_name){
		.module = "", .package = "", .file = "prog", .src = "", .source = NAME_EXACT};
	if (frame >> WIRE_FRAME_KIND_SHIFT == WIRE_FRAME_CALLEE) {
		/* a call through a register: the callee is unknown */
		ret->name = "[indirect]";
		ret->source = NAME_NONE;
		return;
	}
	switch (addr >> 20) {
	case 1:
	case 7:
		ret->name = kit_string(kit, "h%u", n);
		ret->module = addr == MANAGER ? "GHC.Event.Poll" : "Main";
		ret->code = CODE_HASKELL;
		ret->source = addr >> 20 == 7 ? NAME_NEAREST : NAME_EXACT;
		break;
	case 2:
		ret->name = addr == SIGRET ? "__restore_rt" : kit_string(kit, "c%u", n);
		ret->file = "libc.so";
		ret->code = CODE_C;
		break;
	case 3:
		ret->name = n == 9 ? "requestSync" : kit_string(kit, "r%u", n);
		ret->code = CODE_RTS;
		break;
	case 4:
		ret->name = kit_string(kit, "g%u", n);
		ret->code = CODE_GC;
		break;
	case 6:
		ret->name = n ? "[RTS]+0x1230" : "stg_upd_frame";
		ret->package = "rts";
		ret->code = CODE_HASKELL;
		break;
	default:
		ret->name = "[unmapped]";
		ret->source = NAME_NONE;
		break;
	}
}

/* Call site n is in function h(n) and calls c(n) of libc.so. */
static inline int kit_site(void *ctx, uint64_t addr, struct target_site *ret)
{
	struct kit *kit = ctx;
	unsigned n = (unsigned)(addr >> 12 & 0xff);

	if (kit->no_sites)
		return -EBUSY;
	if (addr >> 20 != 5 || addr == NO_SITE)
		return -ENOENT;
	*ret = (struct target_site){.library = "libc.so", .file = "prog", .site = addr};
	ret->function = kit_string(kit, "c%u", n);
	ret->offset = addr & 0xfffff;
	kit_name(ctx, HS(n), &ret->caller);
	return 0;
}

static inline void kit_add_way(struct kit *kit, pid_t pid, uint64_t attach_ns, uint32_t caps,
			       bool threaded)
{
	struct namer namer = {.ctx = kit, .name = kit_name, .site = kit_site};
	struct target_info info = {.pid = pid,
				   .ns_pid = 1,
				   .comm = "prog",
				   .exe = "/bin/prog",
				   .build_id = "abcd",
				   .ghc_version = "9.0.2",
				   .way = threaded ? "rts_thr" : "rts_v",
				   .threaded = threaded,
				   .capabilities = caps};

	info.wire.call_record_ns = 10000;
	assert_int_equal(intake__add_target(kit->in, &info, &namer, attach_ns, 5), 0);
}

static inline void kit_add_with(struct kit *kit, pid_t pid, uint64_t attach_ns, uint32_t caps)
{
	kit_add_way(kit, pid, attach_ns, caps, true);
}

static inline void kit_add(struct kit *kit, pid_t pid, uint64_t attach_ns)
{
	kit_add_with(kit, pid, attach_ns, 2);
}

static inline void kit_new_timeline(struct kit *kit, const struct timeline_opts *opts)
{
	memset(kit, 0, sizeof(*kit));
	assert_int_equal(timeline__new(opts, "0.1.0", "pid", &kit->tl), 0);
	kit->in = timeline__intake(kit->tl);
	kit->pic = timeline__picture(kit->tl);
}

static inline void kit_new_opts(struct kit *kit, const struct timeline_opts *more)
{
	struct timeline_opts opts = more ? *more : (struct timeline_opts){0};

	opts.start_ns = T0;
	opts.start_unix_ns = 1;
	kit_new_timeline(kit, &opts);
	kit_add(kit, PID, T0);
}

static inline void kit_new(struct kit *kit)
{
	kit_new_opts(kit, NULL);
}

/* ── records ─────────────────────────────────────────────────────────────────────────────── */

union rec {
	struct wire_hdr h;
	struct wire_sample sample;
	struct wire_off off;
	struct wire_call call;
	struct wire_tick tick;
	struct wire_thread_event event;
	struct wire_gc gc;
	uint8_t bytes[8192];
};

static inline void rec_head(union rec *r, unsigned type, pid_t tid, uint64_t ns, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->h.type = (uint16_t)type;
	r->h.tgid = PID;
	r->h.tid = (uint32_t)tid;
	r->h.ns = ns;
	r->h.size = (uint32_t)size;
}

/* Appends frames, leaf first, until a 0; the stack is complete. */
static inline void rec_frames(union rec *r, struct wire_stack *stack, size_t fixed, va_list args)
{
	uint64_t frame;
	uint16_t n = 0;

	while ((frame = va_arg(args, uint64_t))) {
		uint8_t *to = &r->bytes[fixed + 8 * (size_t)n];

		assert_true(to + sizeof(frame) <= r->bytes + sizeof(r->bytes));
		memcpy(to, &frame, sizeof(frame));
		n++;
	}
	stack->nframes = n;
	stack->end = n ? WIRE_END_COMPLETE : WIRE_END_NONE;
	r->h.size = (uint32_t)(fixed + 8 * (size_t)n);
}

static inline union rec *mk_sample(union rec *r, pid_t tid, uint64_t ns, unsigned where,
				   uint64_t ip, ...)
{
	va_list args;

	rec_head(r, WIRE_SAMPLE, tid, ns, 0);
	r->sample.rts.where = (uint8_t)where;
	r->sample.rts.cap_no = 1;
	r->sample.ip = ip;
	va_start(args, ip);
	rec_frames(r, &r->sample.stack, sizeof(r->sample), args);
	va_end(args);
	return r;
}

static inline union rec *mk_off(union rec *r, pid_t tid, uint64_t out, uint64_t wake, uint64_t in,
				unsigned where, ...)
{
	va_list args;

	rec_head(r, WIRE_OFF, tid, in, 0);
	r->off.out_ns = out;
	r->off.wake_ns = wake;
	r->off.prev_state = 1;
	r->off.syscall = WIRE_NO_SYSCALL;
	r->off.rts.where = (uint8_t)where;
	r->off.rts.cap_no = 1;
	va_start(args, where);
	rec_frames(r, &r->off.stack, sizeof(r->off), args);
	va_end(args);
	return r;
}

static inline union rec *mk_call(union rec *r, pid_t tid, uint64_t start, uint64_t end,
				 uint64_t site, ...)
{
	va_list args;

	rec_head(r, WIRE_CALL, tid, end, 0);
	r->call.start_ns = start;
	r->call.site = site;
	r->call.rts.where = WIRE_WHERE_SAFE_CALL;
	va_start(args, site);
	rec_frames(r, &r->call.stack, sizeof(r->call), args);
	va_end(args);
	return r;
}

static inline union rec *mk_event(union rec *r, unsigned type, pid_t tid, uint64_t ns)
{
	rec_head(r, type, tid, ns, sizeof(r->event));
	snprintf(r->event.comm, sizeof(r->event.comm), "t%d", tid);
	return r;
}

static inline union rec *mk_gc(union rec *r, pid_t tid, unsigned point, uint64_t ns)
{
	rec_head(r, WIRE_GC, tid, ns, sizeof(r->gc));
	r->gc.point = point;
	return r;
}

static inline void put(struct kit *kit, const union rec *r)
{
	assert_int_equal(intake__record(kit->in, r, r->h.size), 0);
}

/* The end of the variable arguments of mk_sample(), mk_off() and mk_call(). */
#define STOP ((uint64_t)0)

static inline struct snap_thread kit_snap(pid_t tid, unsigned where, char state)
{
	struct snap_thread t = {.tid = tid, .comm = "snap", .state = state};

	t.rts.where = (uint8_t)where;
	t.rts.cap_no = WIRE_NO_CAP;
	t.syscall = WIRE_NO_SYSCALL;
	return t;
}

static inline void put_snap(struct kit *kit, struct snap_thread *threads, size_t n, bool at_end)
{
	struct snapshot snapshot = {.threads = threads, .n = n};

	assert_int_equal(intake__snapshot(kit->in, PID, &snapshot, at_end ? END : T0, at_end), 0);
}

/* ── checks ──────────────────────────────────────────────────────────────────────────────── */

/* Every nanosecond of the lane has a state; adds the slices' time per state to ret_by_state. */
static inline void check_slices(const struct picture *pic, const struct pic_lane *lane,
				uint64_t *ret_by_state)
{
	uint64_t at = lane->start_ns;

	assert_true(lane->n_slices > 0);
	for (size_t i = 0; i < lane->n_slices; i++) {
		const struct pic_slice *s = &lane->slices[i];

		assert_int_equal(s->start_ns, at);
		assert_true(s->end_ns > s->start_ns);
		assert_true(s->state < state__count(lane->kind));
		if (lane->kind == LANE_THREAD
			    ? s->state != ST_IDLE && s->state != ST_FOREIGN_BLOCKED
			    : s->stack != 0)
			assert_true(picture__stack(pic, s->stack).n > 0);
		ret_by_state[s->state] += s->end_ns - s->start_ns;
		at = s->end_ns;
	}
	assert_int_equal(at, lane->end_ns);
}

/*
 * True if a state's slices add up exactly to its time. Time on the CPU is divided by samples, and
 * for Haskell threads so is the time of unsafe calls that may have been running.
 */
static inline bool is_drawn_exactly(enum lane_kind kind, unsigned state)
{
	switch (kind) {
	case LANE_THREAD:
		return !state__on_cpu(kind, state);
	case LANE_CAPABILITY:
		return state == CS_PREEMPTED || state == CS_DISABLED;
	default:
		return state != HS_RUNNING && state != HS_UNSAFE_CALL;
	}
}

static inline void check_lane(const struct picture *pic, const struct pic_lane *lane)
{
	uint64_t by_state[LANE_STATES] = {0}, by_row[LANE_STATES] = {0}, sum = 0, on_cpu = 0;
	uint64_t of_rows = 0;

	for (size_t i = 0; i < lane->n_rows; i++) {
		by_row[lane->rows[i].state] += lane->rows[i].ns;
		of_rows += lane->rows[i].on_cpu ? lane->rows[i].ns : 0;
	}
	if (lane->kind == LANE_THREAD && lane->cpu_ns != UINT64_MAX)
		assert_int_equal(of_rows, lane->cpu_ns);
	for (size_t i = 0; i < LANE_STATES; i++) {
		assert_int_equal(by_row[i], lane->states_ns[i]);
		sum += lane->states_ns[i];
		if (state__on_cpu(lane->kind, (unsigned)i))
			on_cpu += lane->states_ns[i];
	}
	assert_int_equal(sum, lane->end_ns - lane->start_ns);
	/* the lane of many threads has an account only */
	if (lane->kind == LANE_THREAD && !lane->tid)
		return;
	check_slices(pic, lane, by_state);
	for (unsigned i = 0; i < LANE_STATES && !lane->merged_ns; i++)
		if (is_drawn_exactly(lane->kind, i))
			assert_int_equal(by_state[i], lane->states_ns[i]);
	if (lane->kind == LANE_HASKELL && !lane->merged_ns)
		assert_int_equal(by_state[HS_RUNNING] + by_state[HS_UNSAFE_CALL],
				 lane->states_ns[HS_RUNNING] + lane->states_ns[HS_UNSAFE_CALL]);
	if (lane->kind == LANE_THREAD && !lane->states_ns[ST_UNKNOWN])
		assert_int_equal(on_cpu, lane->cpu_ns);
}

static inline void check_all(const struct picture *pic)
{
	for (size_t i = 0; i < picture__n_targets(pic); i++)
		for (unsigned kind = 0; kind < LANE_KINDS; kind++) {
			const struct pic_lanes *lanes = &picture__target(pic, i)->lanes[kind];

			for (size_t j = 0; j < lanes->n; j++)
				check_lane(pic, &lanes->v[j]);
		}
}

static inline const struct pic_target *finish(struct kit *kit)
{
	assert_int_equal(timeline__finish(kit->tl, END), 0);
	check_all(kit->pic);
	return picture__target(kit->pic, 0);
}

/* Finds a lane by its tid, capability number or Haskell thread id, depending on the kind. */
static inline const struct pic_lane *lane_by(const struct pic_target *t, enum lane_kind kind,
					     uint64_t id)
{
	const struct pic_lanes *lanes = &t->lanes[kind];

	for (size_t i = 0; i < lanes->n; i++) {
		const struct pic_lane *lane = &lanes->v[i];
		uint64_t own = kind == LANE_THREAD	 ? (uint64_t)lane->tid
			       : kind == LANE_CAPABILITY ? lane->cap
							 : lane->tso;

		if (own == id)
			return lane;
	}
	fail_msg("no lane %llu of kind %u", (unsigned long long)id, kind);
	return NULL;
}

static inline const struct pic_lane *lane_of(const struct pic_target *t, pid_t tid)
{
	return lane_by(t, LANE_THREAD, (uint64_t)tid);
}

/* "root;…;leaf" */
static inline const char *stack_text(const struct picture *pic, uint32_t id)
{
	static char text[4096];
	struct pic_stack stack = picture__stack(pic, id);
	size_t len = 0;

	text[0] = 0;
	for (uint32_t i = 0; i < stack.n && len < sizeof(text) - 64; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? ";" : "",
					picture__frame(pic, stack.frames[i])->name);
	return text;
}

static inline void check_slice(const struct picture *pic, const struct pic_lane *lane, size_t i,
			       uint64_t start, uint64_t end, enum thread_state state,
			       const char *stack)
{
	assert_true(i < lane->n_slices);
	assert_string_equal(state__name(LANE_THREAD, lane->slices[i].state),
			    state__name(LANE_THREAD, state));
	assert_int_equal(lane->slices[i].start_ns, start);
	assert_int_equal(lane->slices[i].end_ns, end);
	assert_string_equal(stack_text(pic, lane->slices[i].stack), stack);
}

/* The only target in the window up to `at`, NULL if there is none; the caller frees the window
 * by picture__free(). */
static inline const struct pic_target *kit_window(struct kit *kit, uint64_t at,
						  struct picture **ret_pic)
{
	assert_int_equal(timeline__window(kit->tl, at, ret_pic), 0);
	assert_non_null(*ret_pic);
	check_all(*ret_pic);
	kit->pic = timeline__picture(kit->tl);
	return picture__n_targets(*ret_pic) ? picture__target(*ret_pic, 0) : NULL;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Impossible records, and any mixture of records. */
#include "test_timeline_kit.h"

static void test_hostile(void **state)
{
	struct wire_thread th = {.tgid = PID, .depth = WIRE_OPEN_MAX + 1};
	struct snap_thread snap = kit_snap(7, WIRE_WHERE_HASKELL, 'S');
	struct snapshot snapshot = {.threads = &snap, .n = 1};
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	mk_sample(&r, 7, T0 + 1, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), STOP);
	for (size_t size = 0; size < r.h.size; size++)
		assert_int_equal(intake__record(kit.in, &r, size), -EBADMSG);
	r.h.size -= 8; /* one frame more than the record has room for */
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.h.size = sizeof(r) + 1;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.h.size = sizeof(r);
	r.sample.stack.nframes = 65535;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.sample.stack.nframes = WIRE_FRAMES_MAX + 1;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.sample.stack.nframes = 1;
	r.sample.stack.end = 77;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.sample.stack.end = WIRE_END_COMPLETE;
	r.h.type = 0;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.h.type = 99;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);
	r.h.type = WIRE_SAMPLE;
	r.h.tgid = PID + 1;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -ENOENT);
	r.h.tgid = PID;
	r.h.ns = UINT64_MAX;
	assert_int_equal(intake__record(kit.in, &r, sizeof(r)), -EBADMSG);

	mk_off(&r, 7, T0 + 200, 0, T0 + 100, WIRE_WHERE_HASKELL, STOP);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);
	mk_call(&r, 7, T0 + 200, T0 + 100, SITE(1), STOP);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);
	mk_gc(&r, 7, 5, T0 + 100);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);
	put(&kit, mk_gc(&r, 7, WIRE_GC_START, T0 + 100));
	mk_gc(&r, 7, WIRE_GC_END, T0 + 50);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);
	rec_head(&r, WIRE_TICK, 7, T0, sizeof(r.tick));
	r.tick.ncaps = 1;
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);
	r.tick.ncaps = 0xffffffff;
	r.h.size = sizeof(r);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EBADMSG);

	assert_int_equal(intake__thread_state(kit.in, 7, &th), -EBADMSG);
	snap.stack.nframes = WIRE_OFF_FRAMES + 1;
	assert_int_equal(intake__snapshot(kit.in, PID, &snapshot, T0, false), -EBADMSG);
	assert_int_equal(intake__snapshot(kit.in, 1, &snapshot, T0, false), -ENOENT);
	finish(&kit);
	timeline__free(kit.tl);
}

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static uint64_t some_time(uint64_t *seed)
{
	uint64_t r = next(seed);

	switch (r % 16) {
	case 0:
		return 0;
	case 1:
		return END + r % 5000;
	case 2:
		return r >> 3;
	default:
		return T0 - 2000 + (r >> 8) % (END - T0 + 4000);
	}
}

static uint64_t some_frame(uint64_t *seed)
{
	uint64_t r = next(seed);

	return FR(r % 11, (r >> 8 & 7) << 20 | (r >> 16 & 3) << 12);
}

/* A record that passes the checks, of any type and with any times. */
static void some_record(union rec *r, uint64_t *seed)
{
	uint64_t a = some_time(seed), b = some_time(seed);
	pid_t tid = (pid_t)(next(seed) % 4);
	unsigned where = (unsigned)(next(seed) % 9), kind = (unsigned)(next(seed) % 16);

	if (a > b) {
		uint64_t t = a;

		a = b;
		b = t;
	}
	if (kind < 5) {
		mk_sample(r, tid, b, where, some_frame(seed) & WIRE_FRAME_ADDR_MASK,
			  some_frame(seed), some_frame(seed), some_frame(seed), STOP);
		r->sample.site = next(seed) % 2 ? SITE(next(seed) % 3) : 0;
		r->sample.call_start_ns = next(seed) % 2 ? a : 0;
	} else if (kind < 10) {
		mk_off(r, tid, a, some_time(seed), b, where, some_frame(seed), some_frame(seed),
		       STOP);
		r->off.site = next(seed) % 2 ? SITE(next(seed) % 3) : 0;
		r->off.call_start_ns = next(seed) % 2 ? a : 0;
		r->off.prev_state = next(seed) % 3;
		r->off.syscall = next(seed) % 2 ? 35 : WIRE_NO_SYSCALL;
		r->off.ip = some_frame(seed) & WIRE_FRAME_ADDR_MASK;
	} else if (kind < 13) {
		mk_call(r, tid, a, b, SITE(next(seed) % 3), some_frame(seed), STOP);
	} else if (kind < 14) {
		mk_event(r, next(seed) % 2 ? WIRE_THREAD_NEW : WIRE_THREAD_EXIT, tid, b);
	} else {
		mk_gc(r, tid, 1 + next(seed) % 3, b);
	}
}

static void some_state(struct wire_thread *th, uint64_t *seed)
{
	memset(th, 0, sizeof(*th));
	th->tgid = PID;
	th->depth = (uint32_t)(next(seed) % (WIRE_OPEN_MAX + 1));
	th->off_since_ns = next(seed) % 2 ? some_time(seed) : 0;
	th->wake_ns = some_time(seed);
	th->on_since_ns = some_time(seed);
	th->off_state = next(seed) % 2;
	th->off_rts.where = (uint8_t)(next(seed) % 9);
	th->off_ip = some_frame(seed) & WIRE_FRAME_ADDR_MASK;
	th->short_wall_ns = some_time(seed);
	th->short_blocked_ns = some_time(seed);
	th->short_runnable_ns = some_time(seed);
	for (unsigned i = 0; i < th->depth; i++) {
		th->open[i].start_ns = some_time(seed);
		th->open[i].site = SITE(i);
	}
}

/* Whatever comes, every nanosecond of every lane has one state. */
static void test_anything(void **state)
{
	uint64_t seed = 88172645463325252ULL;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct timeline_opts opts = {.max_records = round % 2 ? 8 : 0,
					     .haskell_lanes = round % 4 > 1};
		unsigned n = (unsigned)(next(&seed) % 40);
		struct wire_thread th;
		struct snap_thread snaps[3];
		struct kit kit;
		union rec r;

		kit_new_opts(&kit, &opts);
		for (pid_t i = 0; i < 3; i++) {
			snaps[i] = kit_snap(i, next(&seed) % 9, next(&seed) % 2 ? 'R' : 'S');
			snaps[i].site = next(&seed) % 2 ? SITE(1) : 0;
			snaps[i].start_time_ns = some_time(&seed);
		}
		put_snap(&kit, snaps, next(&seed) % 4, false);
		for (unsigned i = 0; i < n; i++) {
			int err;

			some_record(&r, &seed);
			err = intake__record(kit.in, &r, r.h.size);
			assert_true(err == 0 || err == -EBADMSG ||
				    (err == -ENOSPC && opts.max_records));
		}
		for (pid_t i = 0; i < 3; i++) {
			int err;

			some_state(&th, &seed);
			err = next(&seed) % 2 ? intake__thread_state(kit.in, i, &th) : 0;
			assert_true(err == 0 || err == -EBADMSG);
		}
		put_snap(&kit, snaps, next(&seed) % 4, true);
		finish(&kit);
		timeline__free(kit.tl);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session of hours in bounded memory: millions of records, threads and processes that come and
 * go. */
#include "test_timeline_kit.h"

#include "test_memory.h"

static void put_of(struct kit *kit, pid_t pid, union rec *r)
{
	r->h.tgid = (uint32_t)pid;
	put(kit, r);
}

static uint64_t wall_of(const struct pic_target *t, uint64_t *ret_unknown)
{
	uint64_t wall = 0;

	*ret_unknown = 0;
	for (size_t i = 0; i < t->lanes[LANE_THREAD].n; i++) {
		wall += t->lanes[LANE_THREAD].v[i].end_ns - t->lanes[LANE_THREAD].v[i].start_ns;
		*ret_unknown += t->lanes[LANE_THREAD].v[i].states_ns[ST_UNKNOWN];
	}
	return wall;
}

#define HOUR 3600000000000ULL

/* Two hours of 16 threads, each with about 300 records per second. */
static void test_hours(void **state)
{
	const unsigned rounds = getenv("SAFESCOPED_LONG") ? 2000000 : 200000;
	const uint64_t step = 2 * HOUR / rounds;
	size_t before = memory_begin();
	const struct pic_target *t;
	uint64_t unknown;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	for (pid_t tid = 1; tid <= 16; tid++)
		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0 + (uint64_t)tid));
	for (unsigned i = 0; i < rounds; i++)
		for (pid_t tid = 1; tid <= 16; tid++) {
			uint64_t at = T0 + 1000 + i * step + (uint64_t)tid;

			put(&kit, mk_sample(&r, tid, at, WIRE_WHERE_HASKELL, HS(i % 50),
					    IP(HS(i % 50)), RET(HS(i % 7)), STOP));
			put(&kit,
			    mk_off(&r, tid, at + step / 2, at + step / 2 + 10, at + step / 2 + 20,
				   WIRE_WHERE_HASKELL, IP(HS(i % 3)), STOP));
		}
	assert_int_equal(timeline__finish(kit.tl, T0 + 2 * HOUR), 0);
	t = picture__target(kit.pic, 0);
	assert_int_equal(t->lanes[LANE_THREAD].n, 16);
	assert_int_equal(t->n_lost, 0);
	check_all(kit.pic);
	assert_true(wall_of(t, &unknown) > 31 * HOUR);
	assert_true(unknown < HOUR / 100);
	assert_bounded(before, 350);
	timeline__free(kit.tl);
}

/* A process that starts an OS thread for everything it does. */
static void test_threads_that_end(void **state)
{
	const unsigned n = 300000;
	size_t before = memory_begin();
	const struct pic_target *t;
	uint64_t samples = 0;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = T0 + 1000 + i * 10000ULL;
		pid_t tid = 10 + (pid_t)(i % 30000);

		put(&kit, mk_event(&r, WIRE_THREAD_NEW, tid, at));
		for (unsigned k = 1; k < 5; k++) {
			put(&kit, mk_sample(&r, tid, at + k * 1000, WIRE_WHERE_HASKELL, HS(k),
					    IP(HS(k)), STOP));
			put(&kit, mk_off(&r, tid, at + k * 1000 + 200, at + k * 1000 + 210,
					 at + k * 1000 + 220, WIRE_WHERE_HASKELL, IP(HS(k)), STOP));
		}
		put(&kit, mk_event(&r, WIRE_THREAD_EXIT, tid, at + 6000));
	}
	assert_int_equal(timeline__finish(kit.tl, T0 + n * 10000ULL + 5000), 0);
	check_all(kit.pic);
	t = picture__target(kit.pic, 0);
	/* some threads have no lane, which is reported, but all are included in the sums */
	assert_true(t->lanes[LANE_THREAD].n > 20000 && t->lanes[LANE_THREAD].n < 150000);
	assert_int_equal(t->n_missing, 1);
	assert_non_null(strstr(t->missing[0], "threads that ended"));
	assert_int_equal(t->quality.samples, n * 4);
	for (size_t i = 0; i < t->n_functions; i++)
		samples += t->functions[i].self_samples;
	assert_int_equal(samples, n * 4);
	assert_bounded(before, 700);
	timeline__free(kit.tl);
}

/* A host on which a Haskell command runs every second for an hour. */
static void test_processes_that_end(void **state)
{
	const unsigned n = 4000;
	size_t before = memory_begin();
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = T0 + 1000 + i * 1000000ULL;
		pid_t pid = 1000 + (pid_t)i;

		kit_add(&kit, pid, at);
		for (unsigned k = 0; k < 400; k++) {
			pid_t tid = pid + (pid_t)(k % 4) * 10000;

			put_of(&kit, pid,
			       mk_sample(&r, tid, at + k * 2000, WIRE_WHERE_HASKELL,
					 HS((i + k) % 40), IP(HS((i + k) % 40)), RET(HS(k % 30)),
					 STOP));
		}
		put_of(&kit, pid, mk_event(&r, WIRE_PROC_EXIT, pid, at + 900000));
	}
	assert_int_equal(timeline__finish(kit.tl, T0 + n * 1000000ULL + 5000), 0);
	assert_int_equal(picture__n_targets(kit.pic), n + 1);
	check_all(kit.pic);
	assert_bounded(before, 500);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* runs first: its large allocations need a heap that other tests have not
		 * fragmented */
		cmocka_unit_test(test_hours),
		cmocka_unit_test(test_processes_that_end),
		cmocka_unit_test(test_threads_that_end),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

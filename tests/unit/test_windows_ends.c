/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Windows, and calls that were open when their thread ended, or their process. */
#include "picture/make.h"
#include "test_timeline_kit.h"

#define SECOND 1000000000ULL

/*
 * The only site of the next window's only target; the window ends `seconds` after the session's
 * start.
 */
static struct pic_call window(struct kit *kit, unsigned seconds)
{
	const struct pic_target *t;
	struct pic_call call;
	struct picture *pic;

	assert_int_equal(timeline__window(kit->tl, T0 + seconds * SECOND, &pic), 0);
	check_all(pic);
	kit->pic = timeline__picture(kit->tl);
	t = picture__target(pic, 0);
	assert_true(t->n_calls <= 1);
	call = t->n_calls ? t->calls[0] : (struct pic_call){0};
	picture__free(pic);
	return call;
}

static void put_open(struct kit *kit, pid_t tid, uint64_t since)
{
	struct wire_thread state = {.tgid = PID,
				    .epoch = 1,
				    .on_since_ns = T0 + 1,
				    .depth = 1,
				    .open = {{.start_ns = since, .site = SITE(1)}}};

	assert_int_equal(intake__thread_state(kit->in, tid, &state), 0);
}

static void put_counters(struct kit *kit, uint64_t abandoned, uint64_t open, uint64_t wall_ns)
{
	const struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	const struct wire_site site = {
		.abandoned = abandoned, .open_at_exit = open, .exit_wall_ns = wall_ns};

	assert_int_equal(intake__site_counters(kit->in, &key, &site, 0), 0);
}

/* The end of a thread with one open call. */
static void put_end(struct kit *kit, unsigned type, pid_t tid, uint64_t ns, unsigned flags)
{
	union rec r;

	mk_event(&r, type, tid, ns);
	r.event.open_calls = 1;
	r.event.flags = WIRE_THREAD_HAS_ENTRY | flags;
	put(kit, &r);
}

static void put_exit(struct kit *kit, pid_t tid, uint64_t ns, unsigned flags)
{
	put_end(kit, WIRE_THREAD_EXIT, tid, ns, flags);
}

/* Two threads, each in a call that began half a second before the first window's end. */
static void begin(struct kit *kit)
{
	struct pic_call call;
	union rec r;

	kit_new(kit);
	for (pid_t tid = 7; tid <= 8; tid++) {
		put(kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0));
		put_open(kit, tid, T0 + 5 * SECOND / 2);
	}
	put_counters(kit, 0, 0, 0);
	call = window(kit, 3);
	assert_int_equal(call.open_at_end, 2);
	assert_int_equal(call.open_wall_ns, SECOND);
}

/* The counters have all of both calls, of which the first window had a part. */
static void check_both_end(struct kit *kit)
{
	struct pic_call call;

	put_counters(kit, 0, 2, 2 * SECOND);
	call = window(kit, 4);
	assert_int_equal(call.open_at_start, 2);
	assert_int_equal(call.open_at_end, 2);
	assert_int_equal(call.open_wall_ns, SECOND);
	timeline__free(kit->tl);
}

static void test_process_ends(void **state)
{
	struct kit kit;

	(void)state;
	begin(&kit);
	put_exit(&kit, 7, T0 + 7 * SECOND / 2, 0);
	put_exit(&kit, 8, T0 + 7 * SECOND / 2, 0);
	check_both_end(&kit);
}

/* One of the threads calls exec; its state may have been read in between. */
static void process_execs(bool read)
{
	struct kit kit;

	begin(&kit);
	put_exit(&kit, 7, T0 + 7 * SECOND / 2, 0);
	if (read)
		put_open(&kit, 8, T0 + 5 * SECOND / 2);
	put_end(&kit, WIRE_EXEC, 8, T0 + 7 * SECOND / 2, 0);
	check_both_end(&kit);
}

static void test_process_execs(void **state)
{
	(void)state;
	process_execs(false);
	process_execs(true);
}

/*
 * One thread ends alone: the counters do not have the time of its call, and the other's is
 * complete.
 */
static void test_thread_ends(void **state)
{
	struct pic_call call;
	struct kit kit;

	(void)state;
	begin(&kit);
	put_exit(&kit, 7, T0 + 7 * SECOND / 2, WIRE_THREAD_ALONE);
	put_open(&kit, 8, T0 + 5 * SECOND / 2);
	put_counters(&kit, 1, 0, 0);
	call = window(&kit, 4);
	assert_int_equal(call.abandoned, 1);
	assert_int_equal(call.open_at_end, 1);
	assert_int_equal(call.open_wall_ns, SECOND);
	put_exit(&kit, 8, T0 + 9 * SECOND / 2, 0);
	put_counters(&kit, 1, 1, 2 * SECOND);
	call = window(&kit, 5);
	assert_int_equal(call.abandoned, 0);
	assert_int_equal(call.open_at_end, 1);
	assert_int_equal(call.open_wall_ns, SECOND / 2);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_ends),
		cmocka_unit_test(test_process_execs),
		cmocka_unit_test(test_thread_ends),
	};

	return cmocka_run_group_tests_name("windows_ends", tests, NULL, NULL);
}

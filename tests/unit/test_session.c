/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts of the session room that need no kernel: records that are held back, and how often samples
 * are taken.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session_priv.h"
#include "test_timeline_kit.h"
#include "intake/tap.h"
#include "picture/make.h"

/* ── records that are held back ──────────────────────────────────────────────────────────── */

#define HELD_NS UINT64_C(2000000000)

struct tapped {
	struct kit kit;
	struct feed *feed;
	struct held *held;
	size_t n;
	uint64_t last_ns;
};

/* The timeline must get the records in the order of their times. */
static void on_input(void *ctx, const struct intake_input *input)
{
	struct tapped *t = ctx;
	struct wire_hdr h;

	if (input->kind != TI_RECORD)
		return;
	memcpy(&h, input->data, sizeof(h));
	assert_true(h.ns >= t->last_ns);
	t->last_ns = h.ns;
	t->n++;
}

static void tapped_new(struct tapped *t)
{
	memset(t, 0, sizeof(*t));
	kit_new(&t->kit);
	intake__set_tap(t->kit.in, on_input, t);
	assert_int_equal(feed__new(t->kit.in, &t->feed), 0);
	assert_int_equal(held__new(&t->held), 0);
	held__begin(t->held, T0);
}

static void tapped_free(struct tapped *t)
{
	assert_int_equal(feed__lost_some(t->feed), feed__bad_records(t->feed) > 0);
	held__free(t->held);
	feed__free(t->feed);
	timeline__free(t->kit.tl);
}

static bool take(struct tapped *t, uint64_t ns)
{
	union rec r;

	mk_sample(&r, PID + 1, ns, WIRE_WHERE_HASKELL, 0ULL);
	return held__take(t->held, t->feed, &r, r.h.size);
}

static void held_until_given(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	/* a record from before the member's start is held as well */
	assert_true(take(&t, T0 - 1));
	for (unsigned i = 0; i < 100; i++)
		assert_true(take(&t, T0 + i));
	assert_true(take(&t, T0 + HELD_NS - 1));
	assert_int_equal(t.n, 0);
	assert_false(held__is_over(t.held));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 102);
	assert_true(held__is_over(t.held));
	assert_false(take(&t, T0 + 200));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 102);
	tapped_free(&t);
}

/* Records are held while the threads are looked at, too. */
static void held_a_second_time(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	assert_true(take(&t, T0));
	held__give(t.held, t.feed);
	assert_false(take(&t, T0 + 1));
	held__begin(t.held, T0 + HELD_NS);
	assert_false(held__is_over(t.held));
	assert_true(take(&t, T0 + HELD_NS + 1));
	assert_int_equal(t.n, 1);
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 2);
	tapped_free(&t);
}

static void users_are_served(void **state)
{
	struct served *served;

	(void)state;
	assert_int_equal(served__new(&served), 0);
	assert_int_equal(served__of(served, 7), 0);
	served__add(served, 7, 30);
	served__add(served, 8, 10);
	served__add(served, 7, 12);
	assert_int_equal(served__of(served, 7), 42);
	assert_int_equal(served__of(served, 8), 10);
	/* the number of users is bounded */
	for (uid_t uid = 1000; uid < 11000; uid++)
		served__add(served, uid, 1);
	assert_int_equal(served__of(served, 10999), 1);
	assert_int_equal(served__of(served, 7), 0);
	served__free(served);
	served__free(NULL);
}

static void held_no_longer_than_its_time(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	for (unsigned i = 0; i < 3; i++)
		assert_true(take(&t, T0 + i));
	assert_false(take(&t, T0 + HELD_NS));
	assert_int_equal(t.n, 3);
	assert_true(held__is_over(t.held));
	tapped_free(&t);
}

static void held_no_more_than_its_maximum(void **state)
{
	size_t n = 0;
	struct tapped t;

	(void)state;
	tapped_new(&t);
	while (n < 1 << 20 && take(&t, T0 + n))
		n++;
	assert_true(n > 1000 && n < 1 << 20);
	assert_int_equal(t.n, n);
	assert_true(held__is_over(t.held));
	tapped_free(&t);
}

static void held_and_dropped(void **state)
{
	struct tapped t;

	(void)state;
	tapped_new(&t);
	assert_true(take(&t, T0));
	held__drop(t.held);
	assert_true(held__is_over(t.held));
	held__give(t.held, t.feed);
	assert_int_equal(t.n, 0);
	tapped_free(&t);
	held__free(NULL);
}

/* A record whose length is not the one in its header is not held: the timeline judges it. */
static void damaged_records_are_not_held(void **state)
{
	struct tapped t;
	union rec r;

	(void)state;
	tapped_new(&t);
	mk_sample(&r, PID + 1, T0, WIRE_WHERE_HASKELL, 0ULL);
	assert_false(held__take(t.held, t.feed, &r, r.h.size - 1));
	assert_false(held__is_over(t.held));
	feed__record(t.feed, &r, r.h.size - 1);
	assert_int_equal(feed__bad_records(t.feed), 1);
	r.h.size = sizeof(r.h) - 1;
	assert_false(held__take(t.held, t.feed, &r, sizeof(r)));
	feed__record(t.feed, &r, sizeof(r));
	assert_int_equal(feed__bad_records(t.feed), 2);
	assert_int_equal(t.n, 0);
	tapped_free(&t);
}

/* Records are lost from one window: later windows are complete. */
static void losses_belong_to_one_window(void **state)
{
	struct tapped t;
	union rec r;

	(void)state;
	tapped_new(&t);
	assert_false(feed__lost_some(t.feed));
	feed__failed(t.feed);
	assert_true(feed__lost_some(t.feed));
	feed__cut(t.feed);
	assert_false(feed__lost_some(t.feed));
	mk_sample(&r, PID + 1, T0, WIRE_WHERE_HASKELL, 0ULL);
	feed__record(t.feed, &r, r.h.size);
	assert_false(feed__lost_some(t.feed));
	feed__record(t.feed, &r, r.h.size - 1);
	assert_true(feed__lost_some(t.feed));
	feed__cut(t.feed);
	assert_false(feed__lost_some(t.feed));
	assert_int_equal(feed__bad_records(t.feed), 1);
	held__free(t.held);
	feed__free(t.feed);
	timeline__free(t.kit.tl);
}

/* ── how often ───────────────────────────────────────────────────────────────────────────── */

/*
 * For a runtime that is never initialised: five looks a second at first, one in ten seconds later.
 */
static void looks_become_rare(void **state)
{
	const uint64_t ms = 1000000;

	(void)state;
	assert_int_equal(member__wait_ns(0, 0), ms);
	assert_int_equal(member__wait_ns(5, 0), 32 * ms);
	assert_int_equal(member__wait_ns(50, 0), 200 * ms);
	for (unsigned n = 1; n < 6; n++)
		assert_int_equal(member__wait_ns(50, n), (200 * ms) << n);
	for (unsigned n = 6; n < 200; n++)
		assert_int_equal(member__wait_ns(UINT_MAX, n), 10000 * ms);
}

/* Returns how many looks at a cost of `percent` it takes until the share of samples changes. */
static unsigned looks_until_next(struct sparing *sp, double percent)
{
	uint32_t every = sp->every;
	unsigned n = 0;

	do {
		sparing__next(sp, percent, 1.0);
		n++;
	} while (sp->every == every && n < 10000);
	return n;
}

/*
 * The share goes down while the cost is too high, and up at once only if twice as many samples
 * would not cost too much.
 */
static void samples_are_spared(void **state)
{
	struct sparing sp = {.every = 1};

	(void)state;
	sparing__next(&sp, 1.0, 1.0);
	assert_int_equal(sp.every, 1);
	sparing__next(&sp, 0, 1.0);
	assert_int_equal(sp.every, 1);
	for (int i = 0; i < 100; i++) {
		uint32_t every = sp.every;

		sparing__next(&sp, 1.01, 1.0);
		assert_true(sp.every == 2 * every || (sp.every == every && every >= 32));
	}
	assert_int_equal(looks_until_next(&sp, 0.71), 10000);
	for (int i = 0; i < 10; i++)
		sparing__next(&sp, 0.24, 1.0);
	assert_int_equal(sp.every, 1);
}

/* If half of the cost does not shrink with the samples, the share still recovers from bursts. */
static void samples_come_back(void **state)
{
	struct sparing sp = {.every = 1};
	unsigned waited = 10;

	(void)state;
	for (int i = 0; i < 3; i++)
		sparing__next(&sp, 2.0, 1.0);
	assert_int_equal(sp.every, 8);
	/* a single look that is not calm starts the series over */
	for (int i = 0; i < 9; i++)
		sparing__next(&sp, 0.5, 1.0);
	sparing__next(&sp, 0.8, 1.0);
	assert_int_equal(looks_until_next(&sp, 0.5), 10);
	assert_int_equal(looks_until_next(&sp, 0.5), 10);
	assert_int_equal(looks_until_next(&sp, 0.5), 10);
	assert_int_equal(sp.every, 1);
	/* all samples are always too many: the attempts become rarer and rarer */
	for (int i = 0; i < 10; i++) {
		assert_int_equal(looks_until_next(&sp, 1.1), 1);
		waited = MIN(2 * waited, 640);
		assert_int_equal(looks_until_next(&sp, 0.6), waited);
		assert_int_equal(sp.every, 1);
	}
	/* until they were not too many for a while */
	for (int i = 0; i < 10; i++)
		sparing__next(&sp, 0.9, 1.0);
	assert_int_equal(looks_until_next(&sp, 1.1), 1);
	assert_int_equal(looks_until_next(&sp, 0.6), 10);
}

/* A window reports the longest period that it had, and the next one starts with the current one. */
static void periods_of_windows(void **state)
{
	const struct timeline_opts opts = {.frequency_hz = 99, .start_ns = T0};
	struct picture *pic;
	struct timeline *tl;

	(void)state;
	assert_int_equal(timeline__new(&opts, "0", "system", &tl), 0);
	assert_int_equal(picture__session(timeline__picture(tl))->frequency_hz, 99);
	timeline__set_period(tl, 42000000);
	timeline__set_period(tl, 20000000);
	assert_int_equal(timeline__window(tl, T0 + 1000, &pic), 0);
	assert_int_equal(picture__session(pic)->period_ns, 42000000);
	assert_int_equal(picture__session(pic)->frequency_hz, 24);
	picture__free(pic);
	timeline__set_period(tl, 3400000000);
	assert_int_equal(timeline__window(tl, T0 + 2000, &pic), 0);
	assert_int_equal(picture__session(pic)->period_ns, 3400000000);
	assert_int_equal(picture__session(pic)->frequency_hz, 1);
	picture__free(pic);
	assert_int_equal(timeline__finish(tl, T0 + 3000), 0);
	assert_int_equal(picture__session(timeline__picture(tl))->period_ns, 3400000000);
	timeline__free(tl);
}

/* Readings take a hundredth of the time at most, but figures stay recent, however long one took. */
static void readings_are_rare_but_bounded(void **state)
{
	const uint64_t ms = 1000000;

	(void)state;
	assert_int_equal(scrape__every_ns(0), 5000 * ms);
	assert_int_equal(scrape__every_ns(50 * ms), 5000 * ms);
	assert_int_equal(scrape__every_ns(103 * ms), 10300 * ms);
	assert_int_equal(scrape__every_ns(300 * ms), 30000 * ms);
	assert_int_equal(scrape__every_ns(347 * ms), 30000 * ms);
	assert_int_equal(scrape__every_ns(600000 * ms), 30000 * ms);
}

/* ── what there was no room for ──────────────────────────────────────────────────────────── */

/*
 * Ends the window at `at_ns`; its sentences about what is missing must contain the texts in `want`.
 */
static void check_window(struct kit *kit, uint64_t at_ns, const char *const *want, size_t n)
{
	const struct pic_target *t;
	struct picture *pic;

	assert_int_equal(timeline__window(kit->tl, at_ns, &pic), 0);
	t = picture__target(pic, 0);
	assert_int_equal(t->n_missing, n);
	for (size_t i = 0; i < n; i++)
		assert_non_null(strstr(t->missing[i], want[i]));
	picture__free(pic);
}

/* A window reports who was refused during it, and not earlier, and what has no room all along. */
static void refused_in_windows(void **state)
{
	struct missing_room room = {.user = {.threads = 5, .calls = 7}};
	struct member m = {.pid = PID, .account = 1000, .refused = room.user};
	struct session s = {.in = NULL};
	uint64_t at = T0 + 1000;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	s.in = kit.in;
	/* those refused before it joined were other processes of the user */
	missing__note_room(&s, &m, &room, false);
	check_window(&kit, at, NULL, 0);
	room.user.threads = 6;
	room.files.no_room = 3;
	missing__note_room(&s, &m, &room, false);
	check_window(&kit, at += 1000, (const char *[]){"code of 3 of its", "some threads"}, 2);
	missing__note_room(&s, &m, &room, false);
	check_window(&kit, at += 1000, (const char *[]){"code of 3 of its"}, 1);
	room.user.calls = 17;
	room.files.no_room = 0;
	room.rows = (struct kernel_left_out){.process = 1, .user = 2};
	missing__note_room(&s, &m, &room, false);
	check_window(&kit, at += 1000,
		     (const char *[]){"10 safe calls of user 1000's", "1 of its mappings have no",
				      "2 of its mappings have no"},
		     3);
	/* lower: some code was unmapped, and its user has another account */
	room = (struct missing_room){.user.threads = 1};
	missing__note_room(&s, &m, &room, false);
	check_window(&kit, at += 1000, NULL, 0);
	room.user.threads = 2;
	room.rows.user = 1;
	missing__note_room(&s, &m, &room, true);
	check_window(&kit, at + 1000, (const char *[]){"some threads", "1 of its mappings"}, 2);
	timeline__free(kit.tl);
}

/* ── lines about programs ────────────────────────────────────────────────────────────────── */

/* Whether a child that runs this test is reported; its pid is a different one each time. */
static bool is_hourly(struct hourly *hourly, const char *why, uint64_t now)
{
	pid_t pid = fork();
	bool is_new;

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	is_new = hourly__is_new(hourly, pid, why, now);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return is_new;
}

/* A cron job that cannot be profiled is logged once an hour for each distinct reason. */
static void reported_once_an_hour(void **state)
{
	struct hourly hourly = {.n = 0};
	const uint64_t began = 1000;

	(void)state;
	assert_true(is_hourly(&hourly, "GHC 7.0: no layout at 0x7fa0 of pid 12", began));
	for (int i = 0; i < 5; i++)
		assert_false(
			is_hourly(&hourly, "GHC 7.0: no layout at 0x12ee of pid 345", began + 9));
	assert_true(is_hourly(&hourly, "no layout", began + HOURLY_NS - 1));
	/* another program */
	assert_true(hourly__is_new(&hourly, 1, "no layout", began + HOURLY_NS - 1));
	assert_false(is_hourly(&hourly, "no layout", began + HOURLY_NS - 1));
	assert_true(is_hourly(&hourly, "no layout", began + HOURLY_NS));
	assert_false(is_hourly(&hourly, "no layout", began + HOURLY_NS));
}

/* A program with many different reasons does not fill the log, either. */
static void reported_no_more_than_its_maximum(void **state)
{
	struct hourly hourly = {.n = 0};
	char why[3 * HOURLY_MAX + 1] = "";
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(why) - 1; i++) {
		why[i] = 'y';
		n += hourly__is_new(&hourly, getpid(), why, 1000 + i);
	}
	assert_int_equal(n, HOURLY_MAX);
	assert_true(hourly.full);
	assert_true(hourly__is_new(&hourly, getpid(), why, 1000 + HOURLY_NS));
	assert_false(hourly.full);
}

/* ── messages ────────────────────────────────────────────────────────────────────────────── */

/* A busy host is not a busy device, and no connection is involved. */
static void snapshots_that_fail(void **state)
{
	static const int errs[] = {-EBUSY, -ETIMEDOUT};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		assert_non_null(strstr(snapshots__why_not(errs[i]), "time"));
		assert_string_not_equal(snapshots__why_not(errs[i]), strerror(-errs[i]));
	}
	assert_string_equal(snapshots__why_not(-EACCES), strerror(EACCES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_until_given),
		cmocka_unit_test(held_a_second_time),
		cmocka_unit_test(users_are_served),
		cmocka_unit_test(held_no_longer_than_its_time),
		cmocka_unit_test(held_no_more_than_its_maximum),
		cmocka_unit_test(held_and_dropped),
		cmocka_unit_test(damaged_records_are_not_held),
		cmocka_unit_test(losses_belong_to_one_window),
		cmocka_unit_test(samples_are_spared),
		cmocka_unit_test(looks_become_rare),
		cmocka_unit_test(samples_come_back),
		cmocka_unit_test(periods_of_windows),
		cmocka_unit_test(readings_are_rare_but_bounded),
		cmocka_unit_test(refused_in_windows),
		cmocka_unit_test(reported_once_an_hour),
		cmocka_unit_test(reported_no_more_than_its_maximum),
		cmocka_unit_test(snapshots_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that have ended: their names are not looked up again, and of many processes only
 * sums are kept. */
#include <unistd.h>

#include "capture/capture.h"
#include "test_timeline_kit.h"

#define LIFE_NS 10000ULL
#define OFF_NS	3000ULL
#define CALL_NS 700ULL

static char path[64];

static int make_path(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_ended.XXXXXX");
	fd = mkstemp(path);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : -1;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

static void put_of(struct kit *kit, pid_t pid, union rec *r)
{
	r->h.tgid = (uint32_t)pid;
	put(kit, r);
}

/* A process whose only thread lives LIFE_NS, sleeps for OFF_NS of it, is sampled once, and makes
 * two calls. */
static void live(struct kit *kit, pid_t pid, uint64_t at)
{
	const struct wire_site_key key = {.site = SITE(2), .tgid = (uint32_t)pid};
	const struct wire_site site = {
		.calls = 2, .wall_ns = 2 * CALL_NS, .min_ns = CALL_NS, .max_ns = CALL_NS};
	union rec r;

	kit_add(kit, pid, at);
	put_of(kit, pid, mk_event(&r, WIRE_THREAD_NEW, pid, at));
	put_of(kit, pid,
	       mk_off(&r, pid, at + 1000, at + 1000 + OFF_NS, at + 1000 + OFF_NS,
		      WIRE_WHERE_SAFE_CALL, RET(HS(2)), STOP));
	put_of(kit, pid,
	       mk_sample(&r, pid, at + 5000, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)),
			 STOP));
	put_of(kit, pid, mk_event(&r, WIRE_THREAD_EXIT, pid, at + LIFE_NS));
	put_of(kit, pid, mk_event(&r, WIRE_PROC_EXIT, pid, at + LIFE_NS));
	assert_int_equal(intake__site_counters(kit->in, &key, &site, 0), 0);
}

struct sums {
	uint64_t processes, threads, wall_ns, cpu_ns, samples, calls, call_ns;
};

static struct sums sums_of(const struct picture *pic)
{
	const struct pic_session *session = picture__session(pic);
	struct sums sums = {0};

	for (size_t i = 0; i < session->n_ended; i++) {
		const struct pic_ended *e = &session->ended[i];

		sums.processes += e->processes;
		sums.threads += e->threads;
		sums.cpu_ns += e->cpu_ns;
		sums.samples += e->samples;
		sums.calls += e->safe_calls;
		sums.call_ns += e->safe_call_ns;
		for (unsigned s = 0; s < LANE_STATES; s++)
			sums.wall_ns += e->states_ns[s];
	}
	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *t = picture__target(pic, i);

		sums.processes++;
		sums.samples += t->quality.samples;
		for (size_t k = 0; k < t->lanes[LANE_THREAD].n; k++) {
			sums.threads++;
			sums.cpu_ns += t->lanes[LANE_THREAD].v[k].cpu_ns;
			for (unsigned s = 0; s < LANE_STATES; s++)
				sums.wall_ns += t->lanes[LANE_THREAD].v[k].states_ns[s];
		}
		for (size_t k = 0; k < t->n_calls; k++) {
			sums.calls += t->calls[k].calls;
			sums.call_ns += t->calls[k].wall_ns;
		}
	}
	return sums;
}

/* The totals of all processes, however many of them are in sums. */
static void check_sums(const struct picture *pic, uint64_t n)
{
	struct sums sums = sums_of(pic);

	assert_int_equal(sums.processes, n);
	assert_int_equal(sums.threads, n);
	assert_int_equal(sums.wall_ns, n * LIFE_NS);
	assert_int_equal(sums.cpu_ns, n * (LIFE_NS - OFF_NS));
	assert_int_equal(sums.samples, n);
	assert_int_equal(sums.calls, 2 * n);
	assert_int_equal(sums.call_ns, 2 * n * CALL_NS);
}

static void end(struct kit *kit, pid_t pid, bool keep)
{
	unsigned named;

	assert_int_equal(intake__settle_target(kit->in, pid, keep), 0);
	named = kit->named;
	/* the kernel's map may still have a counter */
	assert_int_equal(intake__site_counters(
				 kit->in,
				 &(struct wire_site_key){.site = SITE(9), .tgid = (uint32_t)pid},
				 &(struct wire_site){0}, 0),
			 0);
	assert_int_equal(kit->named, named);
}

static void test_settle(void **state)
{
	struct kit kit;

	(void)state;
	kit_new_timeline(&kit, &(struct timeline_opts){.start_ns = T0, .start_unix_ns = 1});
	assert_int_equal(intake__settle_target(kit.in, 7, false), -ENOENT);
	kit_add(&kit, 6, T0);
	/* still alive */
	assert_int_equal(intake__settle_target(kit.in, 6, false), -ENOENT);
	live(&kit, 7, T0);
	end(&kit, 7, false);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(picture__n_targets(kit.pic), 2);
	assert_int_equal(intake__settle_target(kit.in, 7, false), -EINVAL);
	assert_int_equal(intake__retire_settled(kit.in, 0), -EINVAL);
	timeline__free(kit.tl);
}

/* Some are added to sums before any lanes are made, some after; pids are reused. */
static void put_many(struct kit *kit, unsigned n)
{
	struct timeline_cut cut;

	for (unsigned i = 0; i < n; i++) {
		pid_t pid = (pid_t)(1000 + i % 50);

		live(kit, pid, T0 + i * 100);
		end(kit, pid, i == 3);
		if (i == n / 2) {
			assert_int_equal(timeline__cut(kit->tl, T0 + i * 100 + LIFE_NS, &cut), 0);
			timeline_cut__free(&cut);
		}
		if (i % 40 == 39)
			assert_int_equal(intake__retire_settled(kit->in, 10), 0);
	}
}

static void test_sums(void **state)
{
	struct kit kit;

	(void)state;
	kit_new_timeline(&kit, &(struct timeline_opts){.start_ns = T0, .start_unix_ns = 1});
	put_many(&kit, 200);
	/* ten, and the one to keep */
	assert_int_equal(picture__n_targets(kit.pic), 11);
	assert_int_equal(picture__session(kit.pic)->n_ended, 1);
	assert_string_equal(picture__session(kit.pic)->ended[0].exe, "/bin/prog");
	assert_int_equal(picture__session(kit.pic)->ended[0].processes, 189);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	check_sums(kit.pic, 200);
	assert_int_equal(picture__target(kit.pic, 0)->pid, 1003);
	timeline__free(kit.tl);
	/* the same without sums */
	kit_new_timeline(&kit, &(struct timeline_opts){.start_ns = T0, .start_unix_ns = 1});
	for (unsigned i = 0; i < 200; i++)
		live(&kit, (pid_t)(1000 + i), T0 + i * 100);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(picture__session(kit.pic)->n_ended, 0);
	check_sums(kit.pic, 200);
	timeline__free(kit.tl);
}

static void test_replay(void **state)
{
	const struct timeline_opts opts = {.start_ns = T0, .start_unix_ns = 1};
	struct capture *capture;
	struct replay *replay;
	struct sums a, b;
	struct kit kit;
	FILE *in;

	(void)state;
	kit_new_timeline(&kit, &opts);
	assert_int_equal(
		capture__create(path, (uid_t)-1, (gid_t)-1, &opts, "0.1.0", "pid", &capture), 0);
	intake__set_tap(kit.in, capture__take, capture);
	put_many(&kit, 200);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_int_equal(replay__read(in, "c", NULL, &replay), 0);
	fclose(in);
	a = sums_of(kit.pic);
	b = sums_of(replay__picture(replay));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(picture__n_targets(replay__picture(replay)), 11);
	replay__free(replay);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_replay),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}

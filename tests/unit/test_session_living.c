/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When members' Haskell threads are looked up, and for which windows a look counts. */
#include <poll.h>
#include <unistd.h>

#include "session/session_priv.h"
#include "test_timeline_kit.h"
#include "intake/tap.h"
#include "living_kit.h"
#include "process/proc.h"

#define MS	  1000000ULL
#define WINDOW_NS (400 * MS)
/* 50 ms, plus 10 ms for the one member; at most a quarter of the window */
#define LEAD_NS (60 * MS)
#define MOST_NS (100 * MS)

struct fixture {
	struct kit kit;
	struct session_opts opts;
	struct output_opts output;
	struct session s;
	struct living_heap *heap;
	struct member *m;
	int pidfd;
	uint64_t end; /* of the window */
	size_t given; /* looks so far; threads: how many threads with records the last one had */
	size_t threads;
	uint64_t given_ns;
};

static void on_input(void *ctx, const struct intake_input *input)
{
	struct fixture *f = ctx;

	if (input->kind != TI_LIVING)
		return;
	f->given++;
	f->given_ns = input->a;
	f->threads = input->size / sizeof(struct target_living_thread);
}

/* Starts another window. */
static void next_window(struct fixture *f)
{
	free(f->s.windows);
	assert_int_equal(windows__new(&f->s, &f->s.windows), 0);
	f->end = windows__ends_ns(&f->s);
}

static void see(struct fixture *f, uint64_t tso)
{
	union {
		union rec r;
		struct wire_tso tso;
	} u;

	rec_head(&u.r, WIRE_TSO, 7, T0 + 1, sizeof(u.tso));
	u.r.h.tgid = (uint32_t)getpid();
	u.tso.id = tso;
	put(&f->kit, &u.r);
}

static void begin(struct fixture *f)
{
	static const struct timeline_opts opts = {.haskell_lanes = true};

	memset(f, 0, sizeof(*f));
	kit_new_opts(&f->kit, &opts);
	kit_add(&f->kit, getpid(), T0);
	see(f, 3);
	see(f, 4);
	intake__set_tap(f->kit.in, on_input, f);
	f->heap = living_heap(GENS, 384);
	f->heap->target.pidfd = -1;
	living_add_some(f->heap);
	f->output.lanes = EXPORT_LANES_HASKELL;
	f->opts.output = &f->output;
	f->opts.window_ns = WINDOW_NS;
	f->s.opts = &f->opts;
	f->s.in = f->kit.in;
	assert_int_equal(looks__new(&f->s.looks), 0);
	assert_int_equal(members__new(&f->s.members), 0);
	assert_int_equal(members__add(f->s.members, NULL, getpid(), 1000, true, &f->m), 0);
	f->m->target = &f->heap->target;
	assert_int_equal(proc__pidfd(getpid(), &f->pidfd), 0);
	assert_int_equal(members__set_live(f->s.members, f->m, f->pidfd), 0);
	next_window(f);
}

static void end(struct fixture *f)
{
	looks__cancel(f->s.looks, f->m->target);
	f->m->target = NULL;
	members__free(f->s.members);
	close(f->pidfd);
	looks__free(f->s.looks);
	free(f->s.windows);
	free(f->heap);
	timeline__free(f->kit.tl);
}

/* Starts a look at the end of the lead. */
static void start(struct fixture *f)
{
	living__turn(&f->s, f->end - 1);
	assert_true(f->m->living.going);
}

static void take(struct fixture *f)
{
	while (f->m->living.going) {
		poll(NULL, 0, 1);
		living__take(&f->s, f->m);
	}
}

static void test_in_time(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(living__next_due(&f.s, f.end - WINDOW_NS), f.end - LEAD_NS);
	living__turn(&f.s, f.end - LEAD_NS - 1);
	assert_false(f.m->living.going);
	living__turn(&f.s, f.end - LEAD_NS);
	assert_true(f.m->living.going);
	assert_int_equal(living__next_due(&f.s, f.end - LEAD_NS), 0);
	take(&f);
	assert_non_null(f.m->living.living);
	assert_in_range(f.m->living.took_ns, 1, 1000 * MS);
	/* one look for each window */
	f.m->living.not_before_ns = 0;
	living__turn(&f.s, f.end);
	assert_false(f.m->living.going);
	living__give(&f.s, f.end);
	assert_int_equal(f.given, 1);
	assert_int_equal(f.given_ns, f.end);
	/* thread 3: there is no record of 9, and 4 has ended */
	assert_int_equal(f.threads, 1);
	living__give(&f.s, f.end);
	assert_int_equal(f.given, 1);
	end(&f);
}

/* The longer the previous look took, the earlier the next one starts. */
static void test_lead(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.m->living.took_ns = 10 * MS;
	assert_int_equal(living__next_due(&f.s, f.end - WINDOW_NS), f.end - LEAD_NS - 20 * MS);
	f.m->living.took_ns = 1000 * MS;
	assert_int_equal(living__next_due(&f.s, f.end - WINDOW_NS), f.end - MOST_NS);
	/* members that are not looked at do not count */
	f.m->living.not_before_ns = f.end;
	assert_int_equal(living__next_due(&f.s, f.end - WINDOW_NS), f.end - LEAD_NS);
	f.output.lanes = 0;
	assert_int_equal(living__next_due(&f.s, f.end - WINDOW_NS), 0);
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	end(&f);
}

/* A look that ends after its window does not count for the next one, but its cost does. */
static void test_late(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	start(&f);
	living__give(&f.s, f.end);
	next_window(&f);
	take(&f);
	assert_null(f.m->living.living);
	assert_in_range(f.m->living.took_ns, 1, 1000 * MS);
	assert_true(f.m->living.not_before_ns > time__monotonic_ns() - 1000 * MS);
	living__give(&f.s, f.end);
	assert_int_equal(f.given, 0);
	/* the next window has its own look */
	f.m->living.not_before_ns = 0;
	start(&f);
	take(&f);
	living__give(&f.s, f.end);
	assert_int_equal(f.given, 1);
	end(&f);
}

/* After a look there is a pause, which is longer the more CPU time the look took, even in vain. */
static void test_paused(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	living_old_blocks(f.heap, 0, 1);
	start(&f);
	take(&f);
	/* it waited in vain for a collection to end */
	assert_null(f.m->living.living);
	assert_int_equal(f.m->living.took_ns, 0);
	assert_true(f.m->living.not_before_ns > f.m->living.began_ns);
	living_old_blocks(f.heap, 0, 0);
	next_window(&f);
	f.m->living.not_before_ns = f.end;
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	living__turn(&f.s, f.m->living.not_before_ns);
	assert_true(f.m->living.going);
	take(&f);
	assert_non_null(f.m->living.living);
	living__drop(f.m);
	assert_null(f.m->living.living);
	end(&f);
}

/* Only members that are profiled and have no other look going on are looked at. */
static void test_not_now(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	f.m->only_sampled = true;
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	f.m->only_sampled = false;
	f.m->snapshot_due = true;
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	f.m->snapshot_due = false;
	f.heap->target.info.layout_checked = false;
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	/* the look is given up for this window */
	f.heap->target.info.layout_checked = true;
	living__turn(&f.s, f.end - 1);
	assert_false(f.m->living.going);
	next_window(&f);
	start(&f);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_time), cmocka_unit_test(test_lead),
		cmocka_unit_test(test_late),	cmocka_unit_test(test_paused),
		cmocka_unit_test(test_not_now),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("session_living", tests, NULL, NULL);
}

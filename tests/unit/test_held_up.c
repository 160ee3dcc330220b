/* SPDX-License-Identifier: GPL-2.0-or-later */
/* After the daemon was held up, with probes that cannot be attached again, since they have no
 * file. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernel/keeper_priv.h"
#include "kernel/kernel_priv.h"
#include "safescope.skel.h"

#define SECOND	     1000000000ULL
#define TURN_MS	     5
#define PATIENCE_MS  60000
#define A_LONG_WHILE (1000 * SECOND)

struct held {
	struct kernel kernel;
	struct safescope_bpf skel;
	struct attached target;
	struct probe tick, gc;
};

static void add_probe(struct held *h, struct probe *p, enum probe_kind kind)
{
	*p = (struct probe){.key.kind = kind, .file = -1, .on = true, .refs = 1};
	HASH_ADD(hh, h->kernel.probes, key, sizeof(p->key), p);
	assert_non_null(p->hh.tbl);
	h->target.probes[kind] = p;
}

static void begin(struct held *h)
{
	memset(h, 0, sizeof(*h));
	h->skel.bss = calloc(1, sizeof(*h->skel.bss));
	assert_non_null(h->skel.bss);
	h->kernel.skel = &h->skel;
	assert_int_equal(keeper__new(&h->kernel.keeper), 0);
	h->target.pid = 7;
	HASH_ADD(hh, h->kernel.targets, pid, sizeof(h->target.pid), &h->target);
	assert_non_null(h->target.hh.tbl);
	add_probe(h, &h->tick, PROBE_TICK);
	add_probe(h, &h->gc, PROBE_GC_END);
}

static void end(struct held *h)
{
	HASH_CLEAR(hh, h->kernel.targets);
	HASH_CLEAR(hh, h->kernel.probes);
	keeper__free(h->kernel.keeper);
	free(h->skel.bss);
}

/* The loop stalls for a long time, then turns until the probes are due to be attached again. */
static void hold_up(struct held *h)
{
	h->kernel.beat_ns = time__monotonic_ns() - A_LONG_WHILE;
	assert_int_equal(kernel__beat(&h->kernel), 0);
	assert_true(h->kernel.held_up_until_ns);
	assert_true(h->gc.held_up && !h->gc.on);
	h->kernel.held_up_until_ns = 1;
	for (int ms = 0; h->kernel.held_up_until_ns && ms < PATIENCE_MS; ms += TURN_MS) {
		assert_int_equal(kernel__beat(&h->kernel), 0);
		poll(NULL, 0, TURN_MS);
	}
	assert_int_equal(h->kernel.held_up_until_ns, 0);
}

static uint64_t try_again(struct held *h)
{
	uint64_t before = time__monotonic_ns();

	h->kernel.left.until_ns = 1;
	assert_int_equal(kernel__beat(&h->kernel), 0);
	return retry__has_begun(&h->kernel.left) ? h->kernel.left.until_ns - before : 0;
}

/* They are retried at growing intervals, and are not given up meanwhile. */
static void tried_again(void **state)
{
	struct held h;

	(void)state;
	begin(&h);
	hold_up(&h);
	for (uint64_t pause = 2; pause < 200; pause *= 2) {
		assert_true(h.gc.held_up && h.tick.held_up);
		assert_false(gc_probes__are_off(&h.target));
		assert_true(try_again(&h) >= MIN(pause, 30) * SECOND);
	}
	assert_true(try_again(&h) < 60 * SECOND);
	/* the next hold-up starts afresh */
	hold_up(&h);
	assert_true(try_again(&h) < 30 * SECOND);
	/* a probe taken off deliberately meanwhile stays off */
	probe__off(&h.kernel, &h.gc);
	probe__off(&h.kernel, &h.tick);
	assert_int_equal(try_again(&h), 0);
	assert_int_equal(kernel__next_gc_off(&h.kernel), 0);
	end(&h);
}

/* In a file that was overwritten the probes are off for good, which is reported. */
static void given_up(void **state)
{
	struct held h;

	(void)state;
	begin(&h);
	hold_up(&h);
	h.gc.stale = true;
	assert_true(try_again(&h) > 0);
	assert_false(h.gc.held_up);
	assert_true(h.tick.held_up);
	assert_int_equal(kernel__next_gc_off(&h.kernel), 7);
	assert_int_equal(kernel__next_gc_off(&h.kernel), 0);
	/* no longer used */
	h.tick.refs = 0;
	assert_int_equal(try_again(&h), 0);
	assert_false(h.tick.held_up);
	end(&h);
}

/*
 * Something takes long before the loop first turns, such as attaching to the first target: the
 * keeper has taken the probes off by then, which the calibration's two calls to held_up__begin()
 * must not hide.
 */
static void before_the_loop(void **state)
{
	struct kernel_held_up held_up;
	uint64_t began;
	struct held h;

	(void)state;
	begin(&h);
	began = time__monotonic_ns();
	held_up__begin(&h.kernel);
	for (int ms = 0; !keeper__times_taken(h.kernel.keeper) && ms < PATIENCE_MS; ms += TURN_MS)
		poll(NULL, 0, TURN_MS);
	assert_true(keeper__times_taken(h.kernel.keeper) > 0);
	assert_int_equal(h.kernel.held_up.times, 0);
	held_up__begin(&h.kernel);
	held_up__begin(&h.kernel);
	assert_int_equal(kernel__beat(&h.kernel), 0);
	assert_int_equal(h.kernel.held_up.times, 1);
	assert_in_range(h.kernel.held_up_since_ns, began, began + SECOND);
	assert_true(h.gc.held_up && !h.gc.on);
	kernel__held_up(&h.kernel, &held_up);
	assert_true(held_up.ns >= SECOND);
	assert_int_equal(held_up.times, 1);
	end(&h);
}

/* A process ends in the same turn of the loop in which it is held up: its probes were off. */
static void unnoticed(void **state)
{
	struct kernel_cost cost = {0};
	struct held h;
	uint64_t now;

	(void)state;
	begin(&h);
	now = time__monotonic_ns();
	h.target.state = PROBES_ON;
	h.target.since_ns = now - 20 * SECOND;
	h.kernel.beat_ns = now - SECOND;
	budget__times(&h.kernel, &h.target, now, &cost);
	assert_int_equal(cost.held_up_until_ns, 0);
	assert_int_equal(cost.paused_ns, 0);
	assert_int_equal(cost.observed_ns, 20 * SECOND);
	h.kernel.beat_ns = now - A_LONG_WHILE;
	h.target.since_ns = now - 20 * SECOND;
	budget__times(&h.kernel, &h.target, now, &cost);
	assert_int_equal(cost.held_up_until_ns, now);
	assert_int_equal(cost.paused_ns, 20 * SECOND);
	assert_int_equal(cost.observed_ns, 0);
	h.target.since_ns = now - 2 * A_LONG_WHILE;
	budget__times(&h.kernel, &h.target, now, &cost);
	assert_int_equal(cost.paused_ns, A_LONG_WHILE);
	assert_int_equal(cost.observed_ns, A_LONG_WHILE);
	end(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tried_again),
		cmocka_unit_test(given_up),
		cmocka_unit_test(before_the_loop),
		cmocka_unit_test(unnoticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

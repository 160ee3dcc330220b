/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_eventlog_pairs: threads that alternate between running and safe calls, hundreds of thousands
 * of times, so that lanes merge. A model that must report each call takes each event singly; one
 * that need not must arrive at the same result, to the last slice, and at what was written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog_writer.h"
#include "picture/merge.h"

#define EVENTS 300000

struct program {
	uint64_t seed, calls, runs;
	uint32_t thread; /* running or in a call; 0: none */
	bool in_call;
};

static uint64_t chance(struct program *p)
{
	p->seed = p->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return p->seed >> 33;
}

/* Something other than a call: rare, and sometimes a sequence that GHC would never write. */
static void write_odd(struct writer *w, struct program *p, uint16_t cap, uint64_t at)
{
	switch (chance(p) % 8) {
	case 0:
		w_event(w, EL_GC_START, at, "");
		w_event(w, EL_GC_END, at + chance(p) % 3000, "");
		break;
	case 1:
		w_event(w, EL_STOP_THREAD, at, "whw", p->thread, EL_STOP_YIELDING, 0);
		w_event(w, EL_RUN_THREAD, at, "w", p->thread);
		p->in_call = false;
		p->runs++;
		break;
	case 2:
		w_event(w, EL_THREAD_LABEL, at, "ws", p->thread, "a label");
		break;
	case 3:
		w_event(w, EL_THREAD_WAKEUP, at, "wh", p->thread, 1 - cap);
		break;
	case 4:
		/* The thread runs again on this capability without having stopped. */
		w_event(w, EL_RUN_THREAD, at, "w", p->thread);
		p->in_call = false;
		p->runs++;
		break;
	case 5:
		/* A thread of the other capability, which may be in the middle of a call. */
		w_event(w, EL_RUN_THREAD, at, "w", 10 + (uint32_t)(chance(p) % 4));
		p->runs++;
		p->in_call = false;
		break;
	default:
		p->thread = (cap ? 10 : 12) + (uint32_t)(chance(p) % 2);
		w_event(w, EL_RUN_THREAD, at, "w", p->thread);
		p->in_call = false;
		p->runs++;
		break;
	}
}

static void write_cap(struct writer *w, struct program *p, uint16_t cap)
{
	uint64_t at = 1000;

	w_block(w, cap, at);
	p->thread = cap ? 10 : 12;
	w_event(w, EL_RUN_THREAD, at, "w", p->thread);
	p->runs++;
	for (unsigned i = 0; i < EVENTS; i++) {
		uint64_t roll = chance(p) % 4000;

		/* Mostly short gaps; sometimes none, and sometimes a long one. */
		at += roll < 100 ? 0 : roll < 110 ? 100000 : 20 + chance(p) % 500;
		if (roll > 3997) {
			write_odd(w, p, cap, at);
			continue;
		}
		if (p->in_call)
			w_event(w, EL_RUN_THREAD, at, "w", p->thread);
		else
			w_event(w, EL_STOP_THREAD, at, "whw", p->thread, EL_STOP_FOREIGN_CALL, 0);
		p->calls += !p->in_call;
		p->runs += p->in_call;
		p->in_call = !p->in_call;
	}
	w_block_end(w, at + 5000);
}

static int each_call(void *ctx, uint32_t thread, uint64_t start, uint64_t end, uint16_t cap,
		     uint16_t cap_after)
{
	(void)thread, (void)start, (void)end, (void)cap, (void)cap_after;
	++*(uint64_t *)ctx;
	return 0;
}

static struct el_sched *model(const struct writer *w, const struct el_sched_opts *opts)
{
	struct eventlog *log;
	struct el_sched *s;

	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(el_sched__new(opts, &s), 0);
	assert_int_equal(el_sched__attach(s, log), 0);
	assert_int_equal(eventlog__feed(log, w->data, w->len), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	assert_int_equal(el_sched__finish(s, 0), 0);
	eventlog__free(log);
	return s;
}

static void same_lane(const struct slices *a, const struct slices *b)
{
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->merged_ns, b->merged_ns);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->v[i].start_ns, b->v[i].start_ns);
		assert_int_equal(a->v[i].end_ns, b->v[i].end_ns);
		assert_true(slice__alike(&a->v[i], &b->v[i]));
		assert_int_equal(a->v[i].exact, b->v[i].exact);
		assert_int_equal(a->v[i].samples, b->v[i].samples);
	}
}

static void same_thread(const struct el_thread *a, const struct el_thread *b)
{
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->since, b->since);
	assert_int_equal(a->end, b->end);
	assert_memory_equal(a->state_ns, b->state_ns, sizeof(a->state_ns));
	assert_int_equal(a->safe_calls, b->safe_calls);
	same_lane(a->lane, b->lane);
}

static void t_pairs(void **state)
{
	struct program p[2] = {{.seed = 1}, {.seed = 2}};
	uint64_t told = 0, calls = 0, runs = 0;
	struct el_sched_opts plain = {.thread_lanes = 64, .on_call = each_call, .ctx = &told};
	struct el_sched_opts opts = {.thread_lanes = 64};
	struct el_sched_info ia, ib;
	struct el_sched *a, *b;
	struct writer w = {0};

	(void)state;
	w_header(&w);
	for (uint16_t cap = 0; cap < 2; cap++)
		write_cap(&w, &p[cap], cap);
	w_end(&w);
	a = model(&w, &plain);
	b = model(&w, &opts);
	ia = el_sched__info(a);
	ib = el_sched__info(b);
	assert_memory_equal(&ia, &ib, sizeof(ia));
	for (size_t i = 0; i < ia.n_caps; i++) {
		const struct el_cap *x = el_sched__cap(a, i), *y = el_sched__cap(b, i);

		assert_true(y->lane->merged_ns > 0);
		assert_memory_equal(x->state_ns, y->state_ns, sizeof(x->state_ns));
		assert_int_equal(x->runs, y->runs);
		same_lane(x->lane, y->lane);
		runs += y->runs;
	}
	for (size_t i = 0; i < ia.n_threads; i++) {
		same_thread(el_sched__thread(a, i), el_sched__thread(b, i));
		calls += el_sched__thread(b, i)->safe_calls;
	}
	assert_int_equal(calls, told);
	assert_int_equal(runs, p[0].runs + p[1].runs);
	el_sched__free(a);
	el_sched__free(b);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_pairs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

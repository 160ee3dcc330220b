/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a look finds in the lists of Haskell threads. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "living_kit.h"
#include "process/mem.h"

#define TIMEOUT_MS 20000

static void link_to(struct living_tso *tso, const void *next)
{
	living_put((uint8_t *)tso->words + AT_LINK, living_addr(next));
}

static const struct target_living_thread three_and_nine[] = {
	{.id = 3, .why_blocked = 1},
	{.id = 9, .why_blocked = 6},
};

static int look(struct living_heap *h, struct target_living **ret_living)
{
	int err = target__start_living(&h->target, TIMEOUT_MS);

	if (err)
		return err;
	do {
		poll(NULL, 0, 1);
		err = target__take_living(&h->target, ret_living);
	} while (err == -EINPROGRESS);
	return err;
}

/* Fails unless it finds these ids and reasons, sorted by id. */
static void assert_found(struct living_heap *h, const struct target_living_thread *want, size_t n)
{
	uint64_t before = time__monotonic_ns();
	struct target_living *living;

	assert_int_equal(look(h, &living), 0);
	assert_true(before <= living->began_ns && living->began_ns <= living->ended_ns);
	assert_true(living->ended_ns <= time__monotonic_ns());
	assert_int_equal(living->n, n);
	assert_memory_equal(living->v, want, n * sizeof(*want));
	free(living);
}

static void assert_refused(struct living_heap *h, int want)
{
	struct target_living *living;

	assert_int_equal(look(h, &living), want);
}

static void assert_torn(struct living_heap *h)
{
	struct target_living *living;

	assert_int_equal(look(h, &living), 0);
	assert_int_equal(living->n_quiet, 0);
	assert_int_equal(living->n, 0);
	assert_true(living->cpu_ns <= living->ended_ns - living->began_ns);
	free(living);
}

/* Finds threads that have not ended, in all generations, whatever the runtime's way and release. */
static void test_found(void **state)
{
	static const struct {
		size_t size;
		bool threaded;
		uint16_t label;
	} cases[] = {{232, false, 0}, {232, false, 88}, {384, true, 0}, {368, true, 88}};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct living_heap *h = living_heap(1 + i % 2, cases[i / 2].size);
		struct target_living *living;

		h->target.info.threaded = cases[i / 2].threaded;
		h->target.info.wire.layout.tso_label = cases[i / 2].label;
		assert_int_equal(look(h, &living), 0);
		assert_int_equal(living->n, 0);
		free(living);
		living_add_some(h);
		assert_found(h, three_and_nine, 2);
		for (unsigned no = 0; no < h->n_gens; no++) {
			living_old_blocks(h, no, 1);
			assert_torn(h);
			living_old_blocks(h, no, 0);
		}
		free(h);
	}
}

/* A thread is reported once, whatever its order in the lists. */
static void test_twice(void **state)
{
	static const struct target_living_thread want[] = {{.id = 3, .why_blocked = 6}};
	struct living_heap *h = living_heap(GENS, 384);

	(void)state;
	living_add(h, 0, 3, RUNS, 1);
	living_add(h, 1, 3, RUNS, 6);
	living_add(h, 1, 3, RUNS, 1);
	assert_found(h, want, 1);
	free(h);
}

/* At the start of a collection the lists are taken away. */
static void test_under_way(void **state)
{
	struct living_heap *h = living_heap(GENS, 384);

	(void)state;
	living_add_some(h);
	living_old_blocks(h, 0, living_addr(h->block));
	living_put(living_gen(h, 0) + HEAP_GEN_THREADS, living_addr(h->end));
	assert_torn(h);
	free(h);
}

/* The very first collection has no old blocks, so old_threads shows that it is going on; after
 * that, old_threads holds threads that have ended. */
static void test_first(void **state)
{
	struct living_heap *h = living_heap(GENS, 384);

	(void)state;
	living_add_some(h);
	living_count(h, 0, 0);
	assert_found(h, three_and_nine, 2);
	living_old_threads(h, 0, living_addr(&h->tsos[0]));
	assert_torn(h);
	living_count(h, 1, 1);
	assert_found(h, three_and_nine, 2);
	free(h);
}

static void *end_collection(void *heap)
{
	poll(NULL, 0, 20);
	living_count(heap, 0, 6);
	living_old_blocks(heap, 0, 0);
	return NULL;
}

/* The look waits for the end of a collection. */
static void test_ends(void **state)
{
	struct living_heap *h = living_heap(GENS, 384);
	pthread_t thread;

	(void)state;
	living_add_some(h);
	living_old_blocks(h, 0, 1);
	assert_int_equal(pthread_create(&thread, NULL, end_collection, h), 0);
	assert_found(h, three_and_nine, 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(h);
}

#define OLD_THREADS 20000

struct collector {
	struct living_heap *heap;
	unsigned oldest; /* oldest generation that is collected */
	_Atomic unsigned n_threads;
	unsigned after_us;
	atomic_bool stops;
};

/* All threads of a generation survive and are prepended to the older generation's list. */
static void move_all(struct living_heap *h, unsigned no)
{
	uint8_t *from = living_gen(h, no) + HEAP_GEN_THREADS;
	uint8_t *to = living_gen(h, 1) + HEAP_GEN_THREADS;
	uint64_t tso, next;

	memcpy(&tso, from, 8);
	living_put(from, living_addr(h->end));
	for (; tso != living_addr(h->end); tso = next) {
		uint8_t *link = (uint8_t *)(uintptr_t)tso + AT_LINK; // NOLINT

		memcpy(&next, link, 8);
		memcpy(link, to, 8);
		living_put(to, tso);
	}
}

static void collect(struct collector *c, uint32_t over)
{
	for (unsigned no = 0; no <= c->oldest; no++)
		living_old_blocks(c->heap, no, 1);
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned no = c->oldest + 1; no--;)
		move_all(c->heap, no);
	living_count(c->heap, c->oldest, over);
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned no = 0; no <= c->oldest; no++)
		living_old_blocks(c->heap, no, 0);
}

/* Adds a thread and collects, several thousand times a second. */
static void *run_collector(void *ctx)
{
	struct collector *c = ctx;

	for (uint32_t over = 6; !c->stops; over++) {
		if (c->heap->n_tsos < MAX_TSOS) {
			living_add(c->heap, 0, c->heap->n_tsos + 1, RUNS, 1);
			c->n_threads = c->heap->n_tsos;
		}
		usleep(100);
		collect(c, over);
	}
	return NULL;
}

static void start_collector(struct collector *c, pthread_t *ret_thread)
{
	c->heap = living_heap(GENS, 384);
	for (unsigned i = 1; i <= OLD_THREADS; i++)
		living_add(c->heap, 1, i, RUNS, 1);
	assert_int_equal(pthread_create(ret_thread, NULL, run_collector, c), 0);
}

static void end_collector(struct collector *c, pthread_t thread)
{
	c->stops = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(c->heap);
}

/* Must find all threads that existed before, or nothing if a result is not certain. */
static void look_for_all(struct collector *c, bool certain)
{
	struct target_living *living;
	uint64_t had = c->n_threads;

	assert_int_equal(look(c->heap, &living), 0);
	if (!living->n_quiet && !certain) {
		free(living);
		return;
	}
	assert_in_range(living->n_quiet, 1, TARGET_LIVING_QUIETS);
	assert_true(living->n >= had && living->n >= OLD_THREADS);
	for (uint64_t id = 1; id <= had; id++)
		assert_int_equal(living->v[id - 1].id, id);
	for (uint64_t i = 0; i < living->n_quiet; i++) {
		assert_true(living->quiet[i].start_ns <= living->quiet[i].end_ns);
		assert_in_range(living->quiet[i].start_ns, living->began_ns, living->ended_ns);
		assert_in_range(living->quiet[i].end_ns, living->began_ns, living->ended_ns);
	}
	assert_in_range(living->cpu_ns, 1, living->ended_ns - living->began_ns);
	free(living);
}

/*
 * While many threads are read, the youngest generation is collected often: this moves none of them,
 * and each thread that is added is found. A collection of the older generation moves them all, and
 * none may be missed because of it.
 */
static void test_collected(void **state)
{
	(void)state;
	for (unsigned oldest = 0; oldest < GENS; oldest++) {
		struct collector c = {.oldest = oldest};
		pthread_t thread;

		start_collector(&c, &thread);
		for (int i = 0; i < 10; i++)
			look_for_all(&c, !oldest);
		end_collector(&c, thread);
	}
}

static void *begin_collection(void *ctx)
{
	struct collector *c = ctx;

	usleep(c->after_us);
	living_old_blocks(c->heap, 0, 1);
	return NULL;
}

/* A collection that begins after everything was found, and does not end, is not waited for. */
static void test_goes_on(void **state)
{
	struct collector c = {.heap = living_heap(GENS, 384)};
	struct target_living *living;
	pthread_t thread;

	(void)state;
	for (unsigned i = 1; i <= OLD_THREADS; i++)
		living_add(c.heap, 1, i, RUNS, 1);
	for (c.after_us = 0; c.after_us < 10000; c.after_us += 500) {
		living_old_blocks(c.heap, 0, 0);
		assert_int_equal(pthread_create(&thread, NULL, begin_collection, &c), 0);
		assert_int_equal(look(c.heap, &living), 0);
		assert_int_equal(living->n, living->n_quiet ? OLD_THREADS : 0);
		free(living);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	free(c.heap);
}

static void test_torn(void **state)
{
	struct living_heap *h = living_heap(GENS, 384);
	struct living_tso *first, *tso;

	(void)state;
	first = living_add(h, 0, 11, RUNS, 1);
	living_add_some(h);
	tso = living_add(h, 0, 10, RUNS, 1);
	/* ends in something other than the lists' end closure; ends in NULL */
	link_to(tso, h->tables[1]);
	assert_torn(h);
	link_to(tso, NULL);
	assert_torn(h);
	/* circular at once or later, among live threads and others */
	link_to(tso, tso);
	assert_torn(h);
	((uint8_t *)tso->words)[AT_WHAT_NEXT] = COMPLETE;
	assert_torn(h);
	link_to(tso, first);
	link_to(first, tso);
	assert_torn(h);
	link_to(tso, &h->tsos[1]);
	link_to(first, &h->tsos[1]);
	assert_torn(h);
	free(h);
}

static void test_hostile(void **state)
{
	struct living_heap *h = living_heap(GENS, 384);
	struct target_living *living;

	(void)state;
	living_add_some(h);
	assert_int_equal(target__take_living(&h->target, &living), -EINVAL);
	/* not an array; circular; generations of size 0 */
	living_put(living_gen(h, 0) + HEAP_GEN_TO, living_addr(living_gen(h, 1)) + 160);
	assert_refused(h, -EFAULT);
	living_put(living_gen(h, 0) + HEAP_GEN_TO, living_addr(living_gen(h, 1)));
	living_put(living_gen(h, 1) + HEAP_GEN_TO, living_addr(living_gen(h, 0)));
	assert_refused(h, -EFAULT);
	living_put(living_gen(h, 1) + HEAP_GEN_TO, 0);
	assert_refused(h, -EFAULT);
	h->block[HEAP_BD_GEN / 8] = 0;
	assert_refused(h, -EFAULT);
	h->target.check.n_caps = 0;
	assert_refused(h, -ENOTSUP);
	h->target.info.layout_checked = false;
	assert_refused(h, -EAGAIN);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),	  cmocka_unit_test(test_twice),
		cmocka_unit_test(test_under_way), cmocka_unit_test(test_first),
		cmocka_unit_test(test_ends),	  cmocka_unit_test(test_collected),
		cmocka_unit_test(test_goes_on),	  cmocka_unit_test(test_torn),
		cmocka_unit_test(test_hostile),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("living", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of Haskell threads made here, as a runtime has them, and what a look finds in them. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/mem.h"
#include "target/target_priv.h"

#include "mem.bpf.h"
#include "stg.bpf.h"
#include "heap.bpf.h"

#define TIMEOUT_MS 20000
#define MAX_TSOS   64
#define GENS	   2

#define RUNS	 1
#define KILLED	 3
#define COMPLETE 4

/* Where a TSO has what; global_link is in front of stackobj, what_next after it. */
enum { AT_LINK = 16, AT_STACKOBJ = 24, AT_WHAT_NEXT = 32, AT_WHY = 34, AT_ID = 40 };

struct tso {
	uint64_t words[12];
};

/* A runtime's memory, which is this process's own. */
struct heap {
	struct target target;
	uint64_t tables[2][4]; /* info tables: of TSOs, and of what ends their lists */
	uint64_t end[12];
	uint8_t cap[64], gens[GENS][512];
	uint64_t block[8];
	struct tso tsos[MAX_TSOS];
	unsigned n_tsos, n_gens;
	size_t gen_size;
};

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint64_t info(struct heap *h, unsigned no)
{
	return addr(&h->tables[no][2]);
}

static uint8_t *gen(struct heap *h, unsigned no)
{
	return h->gens[0] + no * h->gen_size;
}

static void put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static void put_old_blocks(struct heap *h, unsigned no, uint64_t value)
{
	put(gen(h, no) + h->gen_size - 80, value);
}

static void put_old_threads(struct heap *h, unsigned no, uint64_t value)
{
	put(gen(h, no) + h->gen_size - 16, value);
}

static void count(struct heap *h, unsigned no, uint32_t collections)
{
	memcpy(gen(h, no) + 128, &collections, sizeof(collections));
}

static struct heap *heap_new(unsigned n_gens, size_t gen_size)
{
	struct heap *h = calloc(1, sizeof(*h));
	struct wire_layout *l;

	assert_non_null(h);
	h->n_gens = n_gens;
	h->gen_size = gen_size;
	h->tables[0][1] = STG_TSO;
	h->tables[1][1] = 1;
	h->end[0] = info(h, 1);
	h->target.info.pid = getpid();
	h->target.info.layout_checked = true;
	h->target.check.n_caps = 1;
	h->target.check.caps[0] = addr(h->cap);
	l = &h->target.info.wire.layout;
	l->cap_nursery = 16;
	l->cap_run_queue = 40;
	l->cap_total_allocated = 56;
	l->tso_stackobj = AT_STACKOBJ;
	l->tso_why_blocked = AT_WHY;
	l->tso_id = AT_ID;
	l->tso_id_size = 8;
	put(h->cap + 16 + HEAP_CURRENT_NURSERY, addr(h->block));
	h->block[HEAP_BD_GEN / 8] = addr(gen(h, 0));
	for (unsigned i = 0; i < n_gens; i++) {
		put(gen(h, i) + HEAP_GEN_THREADS, addr(h->end));
		put(gen(h, i) + HEAP_GEN_TO, addr(gen(h, MIN(i + 1, n_gens - 1))));
		put_old_threads(h, i, addr(h->end));
	}
	count(h, 0, 5);
	return h;
}

static struct tso *add(struct heap *h, unsigned no, uint64_t id, unsigned what_next, unsigned why)
{
	struct tso *tso = &h->tsos[h->n_tsos++];
	uint8_t *at = (uint8_t *)tso->words, *list = gen(h, no) + HEAP_GEN_THREADS;

	assert_true(h->n_tsos <= MAX_TSOS);
	put(at, info(h, 0));
	memcpy(at + AT_LINK, list, 8);
	at[AT_WHAT_NEXT] = (uint8_t)what_next;
	at[AT_WHY] = (uint8_t)why;
	put(at + AT_ID, id);
	put(list, addr(tso));
	return tso;
}

static void link_to(struct tso *tso, const void *next)
{
	put((uint8_t *)tso->words + AT_LINK, addr(next));
}

static int look(struct heap *h, struct target_living **ret_living)
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

/* The ids and reasons that it finds, from the lowest id on. */
static void assert_found(struct heap *h, const struct target_living_thread *want, size_t n)
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

static void assert_refused(struct heap *h, int want)
{
	struct target_living *living;

	assert_int_equal(look(h, &living), want);
}

static const struct target_living_thread three_and_nine[] = {
	{.id = 3, .why_blocked = 1},
	{.id = 9, .why_blocked = 6},
};

static void add_some(struct heap *h)
{
	add(h, 0, 9, RUNS, 6);
	add(h, 0, 4, KILLED, 0);
	add(h, h->n_gens - 1, 3, RUNS, 1);
	add(h, h->n_gens - 1, 2, COMPLETE, 0);
}

/* Those that have not ended, of all generations, whatever the runtime's way and release. */
static void test_found(void **state)
{
	static const struct {
		size_t size;
		bool threaded;
		uint16_t label;
	} cases[] = {{232, false, 0}, {232, false, 88}, {384, true, 0}, {368, true, 88}};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		struct heap *h = heap_new(1 + i % 2, cases[i / 2].size);
		struct target_living *living;

		h->target.info.threaded = cases[i / 2].threaded;
		h->target.info.wire.layout.tso_label = cases[i / 2].label;
		assert_int_equal(look(h, &living), 0);
		assert_int_equal(living->n + living->n_read, 0);
		free(living);
		add_some(h);
		assert_found(h, three_and_nine, 2);
		for (unsigned no = 0; no < h->n_gens; no++) {
			put_old_blocks(h, no, 1);
			assert_refused(h, -EBUSY);
			put_old_blocks(h, no, 0);
		}
		free(h);
	}
}

/* One is reported once, whatever the order in which the lists have it. */
static void test_twice(void **state)
{
	static const struct target_living_thread want[] = {{.id = 3, .why_blocked = 6}};
	struct heap *h = heap_new(GENS, 384);

	(void)state;
	add(h, 0, 3, RUNS, 1);
	add(h, 1, 3, RUNS, 6);
	add(h, 1, 3, RUNS, 1);
	assert_found(h, want, 1);
	free(h);
}

/* As one begins the lists are taken away. */
static void test_under_way(void **state)
{
	struct heap *h = heap_new(GENS, 384);

	(void)state;
	add_some(h);
	put_old_blocks(h, 0, addr(h->block));
	put(gen(h, 0) + HEAP_GEN_THREADS, addr(h->end));
	assert_refused(h, -EBUSY);
	free(h);
}

/* The first of all finds no blocks; later on old_threads has what has ended. */
static void test_first(void **state)
{
	struct heap *h = heap_new(GENS, 384);

	(void)state;
	add_some(h);
	count(h, 0, 0);
	assert_found(h, three_and_nine, 2);
	put_old_threads(h, 0, addr(&h->tsos[0]));
	assert_refused(h, -EBUSY);
	count(h, 1, 1);
	assert_found(h, three_and_nine, 2);
	free(h);
}

static void *end_collection(void *heap)
{
	poll(NULL, 0, 20);
	count(heap, 0, 6);
	put_old_blocks(heap, 0, 0);
	return NULL;
}

/* Its end is waited for. */
static void test_ends(void **state)
{
	struct heap *h = heap_new(GENS, 384);
	pthread_t thread;

	(void)state;
	add_some(h);
	put_old_blocks(h, 0, 1);
	assert_int_equal(pthread_create(&thread, NULL, end_collection, h), 0);
	assert_found(h, three_and_nine, 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(h);
}

static void test_torn(void **state)
{
	struct heap *h = heap_new(GENS, 384);
	struct tso *first, *tso;

	(void)state;
	first = add(h, 0, 11, RUNS, 1);
	add_some(h);
	tso = add(h, 0, 10, RUNS, 1);
	/* at something else than what ends the other list; at nothing */
	link_to(tso, h->tables[1]);
	assert_refused(h, -EBUSY);
	link_to(tso, NULL);
	assert_refused(h, -EBUSY);
	/* in a circle, at once or later on, of those that live and of others */
	link_to(tso, tso);
	assert_refused(h, -EBUSY);
	((uint8_t *)tso->words)[AT_WHAT_NEXT] = COMPLETE;
	assert_refused(h, -EBUSY);
	link_to(tso, first);
	link_to(first, tso);
	assert_refused(h, -EBUSY);
	link_to(tso, &h->tsos[1]);
	link_to(first, &h->tsos[1]);
	assert_refused(h, -EBUSY);
	free(h);
}

static void test_hostile(void **state)
{
	struct heap *h = heap_new(GENS, 384);
	struct target_living *living;

	(void)state;
	add_some(h);
	assert_int_equal(target__take_living(&h->target, &living), -EINVAL);
	/* no array; one without an end; one whose generations have no size */
	put(gen(h, 0) + HEAP_GEN_TO, addr(gen(h, 1)) + 160);
	assert_refused(h, -EFAULT);
	put(gen(h, 0) + HEAP_GEN_TO, addr(gen(h, 1)));
	put(gen(h, 1) + HEAP_GEN_TO, addr(gen(h, 0)));
	assert_refused(h, -EFAULT);
	put(gen(h, 1) + HEAP_GEN_TO, 0);
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
		cmocka_unit_test(test_ends),	  cmocka_unit_test(test_torn),
		cmocka_unit_test(test_hostile),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests_name("living", tests, NULL, NULL);
}
